//! Facts → status: the whole transition table in one function (interface.md, States; integrator-api.md
//! 7). Versions of the status API are renderings of this.

use serde::{Deserialize, Serialize};

use super::{
    Execution, Request,
    fact::{Facts, Purpose, Sent, State},
    reason::{FailReason, RefundFailReason},
};

/// Where a request stands, in the current API's words. The order is on disk ([`super::summary`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    Waiting,
    Depositing,
    Pending,
    Submitted,
    Success,
    Failure,
    Refund,
}

/// A status with why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub status: Status,
    /// Set with [`Status::Failure`] and [`Status::Refund`] only.
    pub fail_reason: Option<FailReason>,
    pub refund_fail_reason: Option<RefundFailReason>,
}

impl Status {
    pub fn text(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Depositing => "depositing",
            Self::Pending => "pending",
            Self::Submitted => "submitted",
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Refund => "refund",
        }
    }
}

/// Where `request` stands after `facts`. A failure is told only when no refund will come.
pub fn of(request: &Request, facts: &Facts) -> Verdict {
    match request.execution {
        Execution::Solver => solved(facts),
        Execution::User => own(facts),
    }
}

/// The rows are in the order of their force; the first that holds is the status.
fn solved(facts: &Facts) -> Verdict {
    let confirmed = |purpose| {
        facts
            .alive(purpose)
            .any(|attempt| matches!(attempt.state, State::Confirmed(_)))
    };
    let sent = |purpose| facts.alive(purpose).next().is_some();
    let deposited = facts.standing().next().is_some();
    // Deposits that were there and are gone; a fill ahead of its deposit is none of these.
    let reorged = !deposited && !facts.deposits.is_empty();
    let reason = facts.failure.unwrap_or(FailReason::Unknown);
    if sent(Purpose::Fill) && reorged {
        return ended(Status::Failure, FailReason::DepositReorged, facts);
    }
    if confirmed(Purpose::Fill) {
        return plain(Status::Success);
    }
    if confirmed(Purpose::Refund) {
        return ended(Status::Refund, reason, facts);
    }
    if sent(Purpose::Fill) {
        return plain(Status::Submitted);
    }
    if sent(Purpose::Refund) {
        return plain(Status::Pending);
    }
    // Nothing is left to refund, and nothing will be filled.
    let empty = reorged && facts.failure.is_some();
    if empty || facts.refund_failure.is_some() {
        return ended(Status::Failure, reason, facts);
    }
    plain(match deposited {
        true => Status::Pending,
        false => Status::Waiting,
    })
}

fn own(facts: &Facts) -> Verdict {
    let any = |wanted: fn(&State) -> bool| facts.own.iter().any(|sent: &Sent| wanted(&sent.state));
    if any(|state| matches!(state, State::Confirmed(_) | State::Included(_))) {
        return plain(Status::Success);
    }
    if any(|state| matches!(state, State::Broadcast)) {
        return plain(Status::Pending);
    }
    if any(|state| matches!(state, State::Reverted { .. })) {
        return ended(Status::Failure, FailReason::TransactionReverted, facts);
    }
    plain(Status::Waiting)
}

fn plain(status: Status) -> Verdict {
    Verdict {
        status,
        fail_reason: None,
        refund_fail_reason: None,
    }
}

fn ended(status: Status, reason: FailReason, facts: &Facts) -> Verdict {
    Verdict {
        status,
        fail_reason: Some(reason),
        refund_fail_reason: facts.refund_failure,
    }
}

#[cfg(test)]
mod tests;
