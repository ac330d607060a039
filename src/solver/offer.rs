//! What the solver would do now with the deposit that decides an order.

use alloy::primitives::B256;

use super::{Solver, SolverError, View, fill, judge::Offer};
use crate::{
    request::reason::FailReason,
    store::rows::pause::{self, Paused},
};

impl Solver {
    /// What is paid for `deposit`, which matches the order and is final, at this moment; or why
    /// nothing is. Whatever a price, gas or the solver's own state has to say about it is said here,
    /// before the decision.
    pub(super) async fn offer(&self, view: &View, _deposit: &B256) -> Result<Offer, SolverError> {
        if self.paused().await?.is_some() {
            return Ok(Offer::Held);
        }
        Ok(match fill::quoted(&view.request) {
            Ok(amounts) => Offer::Pay(amounts),
            Err(_) => Offer::Refuse(FailReason::Unknown),
        })
    }

    /// Whether fills are held, and why.
    pub async fn paused(&self) -> Result<Option<Paused>, SolverError> {
        let row = self.requests.store().read(&pause::key()).await?;
        Ok(row.as_deref().map(Paused::decode).transpose()?)
    }
}
