//! What the solver would do now with the deposit that decides an order.

use std::sync::PoisonError;

use alloy::primitives::B256;

use super::{
    Paid, Solver, SolverError, View,
    account::SolverAccount,
    claim, fill,
    judge::{self, Funding, Offer},
    late,
};
use vm::Amount;

use crate::{
    request::reason::FailReason,
    store::{
        Batch,
        requests::RequestsError,
        rows::{
            self,
            claim::Claim,
            pause::{self, Paused},
        },
    },
};

/// Gas units of the native currency that only refunds and plain payments of tokens use: of fifty payments.
/// Without them nothing else could be paid, and nothing given back. Twice as much is never promised: gas may
/// become dearer until what was promised is paid.
pub(super) const KEPT_GAS: u64 = 50 * 100_000;

impl Solver {
    /// What the solver can promise of a currency: what it can spend, less what it needs itself.
    pub async fn sellable(&self, network: &str, currency: &str) -> Result<Amount, SolverError> {
        let available = self.available(network, currency).await?;
        let lane = self.lane(network)?;
        if lane.site.family().address(currency)? != lane.site.native {
            return Ok(available);
        }
        Ok(available.saturating_sub(unpromised(lane).await?))
    }

    /// Whether a fill that takes so much of the native currency, gas included, could be paid now.
    pub async fn affords(&self, network: &str, needed: Amount) -> Result<bool, SolverError> {
        let lane = self.lane(network)?;
        let available = lane.available(&lane.site.native).await?;
        Ok(available.saturating_sub(unpromised(lane).await?) >= needed)
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

    /// Fills the order, or fails it, as the offer of now says. What is not paid counts for no limit, however
    /// long it waits.
    pub(super) async fn fund(&self, view: &View, deposit: B256) -> Result<bool, SolverError> {
        let done = match self.try_fund(view, deposit).await {
            Ok(Paid::Sent) => return Ok(true),
            Ok(paid) => self.put_off(view, deposit, paid).await,
            Err(error @ SolverError::Requests(RequestsError::Refused)) => Err(error),
            // Whatever it is: an order has its end.
            Err(error) => match self.put_off(view, deposit, Paid::Away).await {
                Ok(false) => Err(error),
                done => done,
            },
        };
        if self.is_unchanged(view).await {
            self.give_up(&view.request.id);
        }
        done
    }

    /// The order is not paid after all: it counts for no limit, and nothing of it is at stake.
    pub(super) fn give_up(&self, request: &B256) {
        self.exposure.leave(request);
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        breaker.ended(&(*request, None));
    }

    async fn try_fund(&self, view: &View, deposit: B256) -> Result<Paid, SolverError> {
        let offer = self.offer(view, &deposit).await?;
        match self.judged(view, &deposit, &offer) {
            Funding::Pay(amounts) => self.fill(view, deposit, amounts).await,
            Funding::Fail(reason) => Ok(Paid::Fails(reason)),
            Funding::Wait => Ok(Paid::Waits),
        }
    }

    /// Fails the order, or refuses the deposit, where it has waited for long enough, and stores since when it waits;
    /// whether anything changed.
    async fn put_off(&self, view: &View, deposit: B256, paid: Paid) -> Result<bool, SolverError> {
        let offer = match paid {
            Paid::Sent => return Ok(true),
            Paid::Later | Paid::NotYet(_) | Paid::Refused(_) => return Ok(false),
            Paid::Fails(reason) => return self.decline(view, deposit, reason).await,
            Paid::Waits => return self.wait(view, deposit).await,
            Paid::Short => Offer::Short,
            Paid::Dear => Offer::Dear,
            Paid::Reverts => Offer::Reverts,
            Paid::Held => Offer::Held,
            Paid::Away => Offer::Away,
        };
        match self.judged(view, &deposit, &offer) {
            Funding::Fail(reason) => self.decline(view, deposit, reason).await,
            Funding::Wait | Funding::Pay(_) => self.wait(view, deposit).await,
        }
    }

    fn judged(&self, view: &View, deposit: &B256, offer: &Offer) -> Funding {
        let families = |network: &str| Some(self.lanes.get(network)?.site.family());
        judge::fund(&view.case(self.patience, &families), deposit, offer)
    }

    async fn wait(&self, view: &View, deposit: B256) -> Result<bool, SolverError> {
        let Some(next) = claim::wait(&view.claim, deposit, view.now / 1_000) else {
            return Ok(false);
        };
        self.decide(view, Batch::new(), &next, |_| ()).await?;
        Ok(true)
    }

    /// Whether nothing was begun that `view` does not know: a commit may have come through without a word.
    async fn is_unchanged(&self, view: &View) -> bool {
        let key = rows::claim::key(&view.request.id);
        let row = self.requests.store().read(&key).await;
        let legs = |row: &[u8]| Some(Claim::decode(row).ok()?.legs.len());
        match row {
            Ok(None) => true,
            Ok(Some(row)) => legs(&row) == Some(view.claim.legs.len()),
            Err(_) => false,
        }
    }

    /// Whether fills are held, and why.
    pub async fn paused(&self) -> Result<Option<Paused>, SolverError> {
        let row = self.requests.store().read(&pause::key()).await?;
        Ok(row.as_deref().map(Paused::decode).transpose()?)
    }
}

async fn unpromised(lane: &SolverAccount) -> Result<Amount, SolverError> {
    let fees = lane.fees().await?;
    Ok(fees.of(KEPT_GAS.saturating_mul(2)))
}
