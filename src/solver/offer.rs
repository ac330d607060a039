//! What the solver would do now with the deposit that decides an order.

use alloy::primitives::B256;

use super::{Solver, SolverError, View, fill, judge::Offer, late};
use crate::{
    request::reason::FailReason,
    store::rows::pause::{self, Paused},
};

impl Solver {
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
        let Ok(amounts) = fill::quoted(request) else {
            return Ok(Offer::Refuse(FailReason::Unknown));
        };
        let offer = match deposit.is_some_and(|deposit| late::is_late(request, deposit)) {
            true => self.reprice(request, amounts, now).await,
            false => Offer::Pay(amounts),
        };
        if let Offer::Pay(amounts) = &offer
            && !self.enter(request, amounts, now).await?
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
