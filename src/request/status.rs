//! Facts → status: the whole transition table in one function (guide: protocol 11.7). Versions of
//! the status API are renderings of this.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use vm::spelled_alike;

use super::{
    Execution, Request,
    fact::{Deposit, Ending, Facts, Purpose, Sent, State},
    mismatch::mismatch,
    reason::{FailReason, RefundFailReason},
};

/// Where a request stands, in the current API's words. The order is on disk ([`super::summary`]).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "lowercase")]
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
    /// The wire's word.
    pub fn text(self) -> &'static str {
        self.into()
    }
}

/// Whether a deposit says something of the request: it pays for it, or the user gave it and it is worth
/// something. What others deposit for it, in the user's name too, ends by itself.
pub fn speaks(request: &Request, facts: &Facts, deposit: &Deposit) -> bool {
    let own = is_users(request, deposit);
    mismatch(request, deposit).is_none() || (own && !facts.is_minor(deposit))
}

/// Whether the request's user gave the deposit.
pub fn is_users(request: &Request, deposit: &Deposit) -> bool {
    deposit.own && spelled_alike(&deposit.depositor, &request.user)
}

/// Where `request` stands after `facts`. A failure is told only when no refund will come.
pub fn of(request: &Request, facts: &Facts) -> Verdict {
    match request.execution {
        Execution::Solver => solved(request, facts),
        Execution::User => own(facts),
    }
}

/// The rows are in the order of their force; the first that holds is the status.
fn solved(request: &Request, facts: &Facts) -> Verdict {
    let confirmed = |purpose| {
        facts
            .alive(purpose)
            .any(|attempt| matches!(attempt.state, State::Confirmed(_)))
    };
    let sent = |purpose| facts.alive(purpose).next().is_some();
    let pays = |deposit: &&Deposit| mismatch(request, deposit).is_none();
    let paying = facts.standing().any(|deposit| pays(&deposit));
    let open = facts
        .standing()
        .any(|one| pays(&one) && !facts.has_ended(one));
    // What paid for the order was there and is gone; a fill ahead of its deposit is none of these.
    let reorged = !paying && facts.deposits.iter().any(|deposit| pays(&deposit));
    if sent(Purpose::Fill) && reorged {
        let reason = FailReason::DepositReorged;
        return ended(Status::Failure, reason, facts.refund_failure);
    }
    if confirmed(Purpose::Fill) {
        return plain(Status::Success);
    }
    if sent(Purpose::Fill) {
        return plain(Status::Submitted);
    }
    // A deposit that pays for the order decides about it, however others end.
    if open && facts.failure.is_none() && facts.refund_failure.is_none() {
        return plain(Status::Pending);
    }
    given_back(request, facts, reorged, (confirmed, sent)).unwrap_or_else(|| {
        let mut standing = facts.standing();
        let counts = standing.any(|deposit| speaks(request, facts, deposit));
        let mut own = facts.own.iter();
        let waits = own.any(|sent| sent.state == State::Broadcast);
        plain(match counts || waits {
            true => Status::Pending,
            false => Status::Waiting,
        })
    })
}

/// Where a request stands that nothing fills, by what was given back and what was not.
fn given_back(
    request: &Request,
    facts: &Facts,
    reorged: bool,
    (confirmed, sent): (impl Fn(Purpose) -> bool, impl Fn(Purpose) -> bool),
) -> Option<Verdict> {
    let foreign = |ending: &&Ending| {
        let mut deposits = facts.deposits.iter();
        let deposit = deposits.find(|one| one.onchain_id == ending.deposit);
        deposit.is_some_and(|deposit| !speaks(request, facts, deposit))
    };
    let ending = |back: bool| {
        let mut endings = facts.endings.iter().filter(|ending| !ending.minor);
        endings.find(|ending| ending.refused.is_none() == back && !foreign(ending))
    };
    // Only others were given something back.
    let mut endings = facts.endings.iter();
    let others = facts.failure.is_none()
        && ending(true).is_none()
        && endings.any(|ending| ending.refused.is_none());
    let reason = |back| facts.failure.or(ending(back).map(|ending| ending.reason));
    if confirmed(Purpose::Refund) && !others {
        let reason = reason(true).unwrap_or(FailReason::Unknown);
        return Some(ended(Status::Refund, reason, facts.refund_failure));
    }
    if sent(Purpose::Refund) && !others {
        return Some(plain(Status::Pending));
    }
    let refused = ending(false).and_then(|ending| ending.refused);
    // Nothing is left to refund, and nothing will be filled.
    let empty = reorged && facts.failure.is_some();
    let why = facts.refund_failure.or(refused);
    (empty || why.is_some()).then(|| {
        let reason = reason(false).unwrap_or(FailReason::Unknown);
        ended(Status::Failure, reason, why)
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
        return ended(
            Status::Failure,
            FailReason::TransactionReverted,
            facts.refund_failure,
        );
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

fn ended(status: Status, reason: FailReason, refused: Option<RefundFailReason>) -> Verdict {
    Verdict {
        status,
        fail_reason: Some(reason),
        refund_fail_reason: refused,
    }
}

#[cfg(test)]
mod tests;
