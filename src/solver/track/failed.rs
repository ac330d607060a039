//! What follows for an order and its deposit from a payment that can never pay, and why.

use crate::{
    request::{
        fact::{Purpose, Standing},
        reason::{FailReason, RefundFailReason},
    },
    solver::{Solver, SolverError, View, account::AttemptStatus, claim},
    store::rows::claim::{Claim, Leg},
};

impl Solver {
    /// What follows from a payment that can never pay: its order fails or is judged anew, or its deposit is given back after
    /// a pause. The deposit is parked where the payment succeeded: it is unknown what became of the money.
    pub(super) fn failed(
        &self,
        view: &View,
        mut next: Claim,
        leg: &Leg,
        status: &AttemptStatus,
    ) -> Result<Claim, SolverError> {
        let (succeeded, why) = (has_succeeded(status), self.why(view, leg, status));
        let anew = match (status, why) {
            (AttemptStatus::Expired, FailReason::TransactionNotIncluded) => {
                self.judged_anew(view, &next, leg)
            }
            _ => None,
        };
        if let Some(anew) = anew {
            next = anew;
        } else if leg.purpose == Purpose::Fill && succeeded {
            next = claim::failed(&next, why);
        } else if leg.purpose == Purpose::Fill {
            next = view.declined(&next, leg.deposit, why);
        } else if is_reverted(status) {
            let manual = RefundFailReason::ManualRefundRequired;
            next = claim::pause(&next, leg.deposit, manual, view.now / 1_000);
        }
        Ok(match succeeded {
            true => claim::unpaid(&next, leg.deposit)?,
            false => next,
        })
    }

    fn why(&self, view: &View, leg: &Leg, status: &AttemptStatus) -> FailReason {
        match status {
            AttemptStatus::Lost | AttemptStatus::Waiting => FailReason::TransactionNotIncluded,
            AttemptStatus::Included {
                signed, success, ..
            } if !signed.cancels => match success {
                true => FailReason::TooLittleReceived,
                false => FailReason::ExecutionReverted,
            },
            // It was given up: a transaction used up what it holds, or its own ones expired.
            _ if is_reorged(view, leg) => FailReason::DepositReorged,
            _ if self.is_too_late(view, leg) => FailReason::OrderExpired,
            AttemptStatus::Expired => FailReason::TransactionNotIncluded,
            AttemptStatus::Included { .. } => FailReason::TransactionSubmissionFailed,
        }
    }

    /// `claim` of an order whose fill was overdue and has expired: it is judged anew, at the price of then, with all the
    /// patience that an order has. Once for each deposit, so that it ends: `None` where that was done, or the fill was not
    /// overdue.
    fn judged_anew(&self, view: &View, claim: &Claim, leg: &Leg) -> Option<Claim> {
        let fills = claim::fills(claim).filter(|one| one.deposit == leg.deposit);
        let anew = fills.count() == 1 && self.is_overdue(view, leg);
        anew.then(|| claim::wait_anew(claim, leg.deposit, view.now / 1_000))
    }
}

/// Whether it reverted: its recipient may have made it fail.
fn is_reverted(status: &AttemptStatus) -> bool {
    matches!(status, AttemptStatus::Included { signed, success: false, .. } if !signed.cancels)
}

fn has_succeeded(status: &AttemptStatus) -> bool {
    matches!(status, AttemptStatus::Included { signed, success: true, .. } if !signed.cancels)
}

fn is_reorged(view: &View, leg: &Leg) -> bool {
    view.deposit(&leg.deposit)
        .is_some_and(|deposit| deposit.standing == Standing::Reorged)
}
