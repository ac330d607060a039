//! What the solver would do now with the deposit that decides an order.

use alloy::primitives::B256;

use super::{Solver, SolverError, View, fill, judge::Offer, late};
use vm::{Amount, U256};

use crate::{
    request::reason::FailReason,
    store::rows::pause::{self, Paused},
};

/// Gas units of the native currency that are never promised: of fifty payments. Without them nothing else
/// could be paid, and nothing given back.
const KEPT_GAS: u64 = 50 * 100_000;

impl Solver {
    /// What the solver can promise of a currency: what it can spend, less what it needs itself.
    pub async fn sellable(&self, network: &str, currency: &str) -> Result<Amount, SolverError> {
        let available = self.available(network, currency).await?;
        let lane = self.lane(network)?;
        if lane.site.family().address(currency)? != lane.site.native {
            return Ok(available);
        }
        let fees = lane.fees().await?;
        let price = U256::from(fees.base.saturating_add(fees.priority));
        Ok(available.saturating_sub(price.saturating_mul(U256::from(KEPT_GAS))))
    }

    /// Whether a network has made a block within `most` seconds before `now` (unix seconds), as a quorum sees
    /// it. What is quoted while it stands is deposited nobody knows when, in blocks that may be dated back.
    pub async fn moves(&self, network: &str, most: u64, now: u64) -> Result<(), SolverError> {
        let site = &self.lane(network)?.site;
        match now.saturating_sub(site.tip().await?) {
            age if age > most => Err(SolverError::Stalled(network.to_owned(), age)),
            _ => Ok(()),
        }
    }

    /// What is paid for `deposit`, which matches the order and is final, at this moment; or why
    /// nothing is. Whatever a price, gas or the solver's own state has to say about it is said here,
    /// before the decision.
    pub(super) async fn offer(&self, view: &View, deposit: &B256) -> Result<Offer, SolverError> {
        if self.paused().await?.is_some() {
            return Ok(Offer::Held);
        }
        let (request, now) = (&view.request, view.now / 1_000);
        let deposit = view.deposit(deposit);
        if deposit.is_some_and(|deposit| self.is_too_costly(view, deposit)) {
            return Ok(Offer::Refuse(FailReason::SolverCapacityExceeded));
        }
        if self.is_held(view).await {
            return Ok(Offer::Held);
        }
        let Ok(amounts) = fill::quoted(request) else {
            return Ok(Offer::Refuse(FailReason::Unknown));
        };
        let late = deposit.is_some_and(|deposit| late::is_late(request, deposit));
        let together = deposit.map_or(1, |deposit| deposit.together);
        let offer = match deposit.is_some_and(|deposit| self.is_repriced(view, deposit)) {
            true => self.reprice((request, together), amounts, now).await,
            false => Offer::Pay(amounts),
        };
        if offer == Offer::Unpriced && !late {
            return Ok(Offer::Away);
        }
        if let Offer::Pay(amounts) = &offer
            && !self.enter((request, deposit), amounts, now).await?
        {
            return Ok(Offer::Held);
        }
        Ok(offer)
    }

    /// Whether fills are held, and why.
    pub async fn paused(&self) -> Result<Option<Paused>, SolverError> {
        let row = self.requests.store().read(&pause::key()).await?;
        Ok(row.as_deref().map(Paused::decode).transpose()?)
    }
}
