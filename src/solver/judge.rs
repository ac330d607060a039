//! What to do next for a request. Pure: the whole table in one function.
//!
//! The claim is the authority on what has been begun, the facts on what has been deposited. Nothing
//! is decided while a payment may still land; an order that failed is never filled.

use alloy::primitives::B256;
use vm::spelled_alike;

use crate::{
    request::{
        Execution, Request,
        fact::{Deposit, Facts, Purpose, Standing},
        mismatch::mismatch,
        reason::{FailReason, RefundFailReason},
    },
    store::rows::claim::{Claim, Leg, Stage},
};

/// A `referrer` that asks for the refund path (integrator-api.md 22.4).
pub const FORCE_REFUND: &str = "debug-force-refund";

/// How often a refund is tried before somebody has to look.
const MOST_REFUNDS: usize = 3;

/// What the solver waits for. Seconds.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// A deadline this near counts as passed: the payment has to be in a block before it.
    pub margin: u64,
    /// How long after its deposit an order waits for funds.
    pub funds: u64,
}

/// Whether the solver can pay for a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Funds {
    Enough,
    Short,
}

/// Everything that the decision rests on.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    pub request: &'a Request,
    pub facts: &'a Facts,
    pub claim: &'a Claim,
    /// Unix seconds.
    pub now: u64,
    pub patience: Patience,
}

/// What to do. Deposits are named by their onchain ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// For the chain, for funds, for time.
    Wait,
    Fill {
        deposit: B256,
    },
    Refund {
        deposit: B256,
        reason: FailReason,
    },
    FailWithoutRefund {
        deposit: B256,
        reason: FailReason,
        why: RefundFailReason,
    },
    /// Hand the outcome to the settlement worker.
    Settle,
    /// Nothing is left to do until new facts come.
    Done,
}

/// What to do next.
pub fn next(case: &Case<'_>, funds: Funds) -> Next {
    let (facts, claim) = (case.facts, case.claim);
    if case.request.execution == Execution::User {
        return Next::Done;
    }
    if claim.legs.iter().any(|leg| leg.stage == Stage::Open) {
        return Next::Wait;
    }
    let filled = paid(claim).any(|leg| leg.purpose == Purpose::Fill);
    let unused: Vec<_> = finals(facts)
        .filter(|deposit| !claim.given_up.contains(&deposit.onchain_id))
        .filter(|deposit| !paid(claim).any(|leg| leg.deposit == deposit.onchain_id))
        .collect();
    let failure = claim.failure.or(facts.failure);
    let decided = match (filled, failure, unused.first()) {
        (_, _, None) => None,
        (true, _, Some(deposit)) => Some(give_back(case, deposit, FailReason::DoubleSpend)),
        (false, Some(reason), Some(deposit)) => Some(give_back(case, deposit, reason)),
        (false, None, Some(first)) => {
            let matching = unused
                .iter()
                .find(|deposit| mismatch(case.request, deposit).is_none());
            Some(match matching {
                None => {
                    let reason = mismatch(case.request, first);
                    give_back(case, first, reason.unwrap_or(FailReason::Unknown))
                }
                Some(deposit) => fund(case, deposit, funds),
            })
        }
    };
    decided.unwrap_or_else(|| at_rest(case))
}

fn fund(case: &Case<'_>, deposit: &Deposit, funds: Funds) -> Next {
    let passed = |deadline: u64| deadline <= case.now.saturating_add(case.patience.margin);
    let request = case.request;
    let waited = case.now.saturating_sub(deposit.place.time);
    let reason = if request.referrer.as_deref() == Some(FORCE_REFUND) {
        FailReason::ManualAdminRefund
    } else if request.expires_at.is_some_and(|at| at <= case.now) {
        FailReason::TtlExpired
    } else if passed(request.order.output.deadline.into()) {
        FailReason::OrderExpired
    } else if funds == Funds::Enough {
        let deposit = deposit.onchain_id;
        return Next::Fill { deposit };
    } else if waited < case.patience.funds {
        return Next::Wait;
    } else {
        FailReason::SolverBalanceTooLow
    };
    give_back(case, deposit, reason)
}

fn give_back(case: &Case<'_>, deposit: &Deposit, reason: FailReason) -> Next {
    let tried = case.claim.legs.iter().filter(|leg| {
        leg.purpose == Purpose::Refund
            && leg.deposit == deposit.onchain_id
            && leg.stage == Stage::Failed
    });
    let late = option(case.request, deposit).is_none_or(|(_, refund)| {
        u64::from(refund.deadline) <= case.now.saturating_add(case.patience.margin)
    });
    let deposit = deposit.onchain_id;
    if late || tried.count() >= MOST_REFUNDS {
        let why = RefundFailReason::ManualRefundRequired;
        return Next::FailWithoutRefund {
            deposit,
            reason,
            why,
        };
    }
    Next::Refund { deposit, reason }
}

/// The order's way to give back on the deposit's chain, and its index.
pub fn option<'a>(
    request: &'a Request,
    deposit: &Deposit,
) -> Option<(usize, &'a vm::protocol::order::Refund)> {
    let options = request.order.inputs.first()?.refunds.iter().enumerate();
    let mut here = options.filter(|(_, refund)| refund.chain_id == deposit.network);
    let first = here.clone().next();
    here.find(|(_, refund)| spelled_alike(&refund.currency, &deposit.currency))
        .or(first)
}

/// Nothing is to be paid now; is anything left to see or to tell?
fn at_rest(case: &Case<'_>) -> Next {
    let (facts, claim) = (case.facts, case.claim);
    let unsettled = claim.legs.iter().any(|leg| leg.stage == Stage::Confirmed)
        || facts
            .deposits
            .iter()
            .any(|deposit| deposit.standing == Standing::Included);
    if outcome(claim).is_some() && !claim.settling {
        return Next::Settle;
    }
    if unsettled { Next::Wait } else { Next::Done }
}

/// The payment that ended the order for good: its fill, or the refund of an order without one.
pub fn outcome(claim: &Claim) -> Option<&Leg> {
    let done = |leg: &&Leg| leg.stage == Stage::Final;
    let mut fills = claim
        .legs
        .iter()
        .filter(|leg| leg.purpose == Purpose::Fill && leg.stage != Stage::Failed);
    match fills.next() {
        Some(fill) => Some(fill).filter(done),
        None => claim.legs.iter().find(done),
    }
}

fn finals(facts: &Facts) -> impl Iterator<Item = &Deposit> {
    let is = |deposit: &&Deposit| deposit.standing == Standing::Final;
    facts.deposits.iter().filter(is)
}

fn paid(claim: &Claim) -> impl Iterator<Item = &Leg> {
    let is = |leg: &&Leg| matches!(leg.stage, Stage::Confirmed | Stage::Final);
    claim.legs.iter().filter(is)
}

#[cfg(test)]
mod tests;
