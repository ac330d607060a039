//! What to do next for a request. Pure: all decisions are made here.
//!
//! The claim is the authority on what has been begun, the facts on what has been deposited. The user's own
//! first final deposit that matches decides the order: it is filled, or the order fails and it goes back.
//! Without one, the first deposit of somebody else's that can be paid for is filled; no order fails for those. Every
//! other deposit is given back where the oracle will attest that and it is worth a transaction, else parked. No deposit
//! holds up another.

pub mod excess;
mod refund;

use std::collections::{HashMap, HashSet};

use alloy::primitives::{B256, U256};

pub use self::refund::Parking;
use super::{claim, claimable};
use crate::{
    attest::{Refusal, claim::Families},
    request::{
        Execution, Request,
        fact::{Deposit, Facts, Purpose, Standing},
        mismatch::mismatch,
        reason::FailReason,
        status::is_users,
    },
    store::rows::claim::{Claim, Leg, Stage},
};

/// A `referrer` that asks for the refund path (guide: protocol 11.3).
pub const FORCE_REFUND: &str = "debug-force-refund";

/// Seconds for which an order waits whose deposit came in time, while a network or the market is away. Its
/// price has ceased to hold long before.
const AWAY: u64 = 86_400;
/// Deposits of others for which one look works out an offer: each may cost as much as the first.
const CANDIDATES: usize = 4;

/// How long the solver waits, and who may ask for the refund path.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For how many seconds an order waits for funds once it could be decided, and for how long its price holds then.
    pub funds: u64,
    /// Callers without a key may ask for the refund path: not in production.
    pub forced_by_all: bool,
}

/// Seconds before a deadline from which it counts as passed for a payment on a network, by the network's name: the
/// payment has to be in a block before the deadline, or in none.
pub type Margins<'a> = &'a (dyn Fn(&str) -> u64 + Sync);

/// What a deposit, or what exceeds an order, is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// It is no currency of the market, and has no price.
    Unknown,
    /// It is worth less than giving it back could ever cost.
    Dust,
    Something,
}

/// What the solver would do now with the deposit that decides the order. It is worked out before the
/// decision; see [`fund`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// To pay these amounts, one for each payment of the order's output. Where the order is priced anew: with what its
    /// chain charges for the fill besides work, in the native currency.
    Pay(Vec<U256>, Option<U256>),
    /// Nothing yet: the solver has too little.
    Short,
    /// Nothing yet: the operator, a breaker or a limit holds fills.
    Held,
    /// Nothing yet: the market says no price.
    Unpriced,
    /// Nothing yet: the networks, or the market, do not answer for a deposit that came in time.
    Away,
    /// Nothing yet: an exchange would fail now.
    Reverts,
    /// Nothing yet: its chain asks more for it than was charged.
    Dear,
    /// Not to fill the order, for this reason.
    Refuse(FailReason),
}

/// Everything that a decision depends on.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    pub request: &'a Request,
    pub facts: &'a Facts,
    pub claim: &'a Claim,
    /// Unix seconds.
    pub now: u64,
    pub patience: Patience,
    pub margins: Margins<'a>,
    /// By onchain id; a deposit that is missing has no known worth now.
    pub worths: &'a HashMap<B256, Worth>,
    /// Deposits of others whose depositors the breaker bars now.
    pub barred: &'a HashSet<B256>,
    /// Deposits on networks that this start has not opened: nothing is done about them before the next one.
    pub closed: &'a HashSet<B256>,
    pub families: Families<'a>,
}

impl Case<'_> {
    /// Whether a payment on `network` that is begun now may miss `deadline` (unix seconds).
    fn may_miss(&self, network: &str, deadline: u64) -> bool {
        deadline <= self.now.saturating_add((self.margins)(network))
    }
}

/// One thing to do. Deposits are named by their onchain ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The deposit decides the order, and could be paid for: an [`Offer`] says what happens.
    Fund { deposit: B256 },
    /// The order is not filled for the deposit.
    Fail { deposit: B256, reason: FailReason },
    /// Give the deposit back; no less than `minimum` would be attested.
    Refund {
        deposit: B256,
        reason: FailReason,
        minimum: U256,
    },
    /// Give back what the deposit was more than the order asked for.
    Excess { deposit: B256, amount: U256 },
    /// Leave these to the operator.
    Park(Vec<Parking>),
}

/// What becomes of the deposit that decides the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Funding {
    /// As [`Offer::Pay`].
    Pay(Vec<U256>, Option<U256>),
    Wait,
    Fail(FailReason),
}

/// When a request is looked at again if nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Soon: for the chain, for funds.
    Wait,
    /// At this time (unix seconds), unless new facts come before.
    Until(u64),
    /// Nothing is left to do until new facts come.
    Done,
}

/// What can be done, the most urgent first. None of it depends on what comes of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub steps: Vec<Step>,
    pub next: Next,
}

/// What one deposit asks for.
enum Verdict {
    Do(Step),
    Park(Parking),
    Until(u64),
    Wait,
    Nothing,
}

/// What to do next.
pub fn plan(case: &Case<'_>) -> Plan {
    let mut plan = Plan {
        steps: Vec::new(),
        next: Next::Done,
    };
    if unsettled(case) {
        plan.next = Next::Wait;
    }
    // The solver pays nobody. The index lists deposits that are made all the same once they are final.
    if case.request.execution == Execution::User {
        return plan;
    }
    let mut parked = Vec::new();
    let unused = finals(case.facts).filter(|deposit| is_unused(case.claim, deposit));
    let decide = deciding(case);
    let verdicts = unused.map(|deposit| verdict(case, deposit, &decide));
    let excesses = finals(case.facts).map(|deposit| excess::verdict(case, deposit));
    for verdict in verdicts.chain(excesses) {
        match verdict {
            Verdict::Do(step) => {
                let urgent = |step: &Step| matches!(step, Step::Fund { .. } | Step::Fail { .. });
                let at = match urgent(&step) {
                    true => plan.steps.iter().take_while(|one| urgent(one)).count(),
                    false => plan.steps.len(),
                };
                plan.steps.insert(at, step);
                plan.next = Next::Wait;
            }
            Verdict::Park(parking) => parked.push(parking),
            Verdict::Wait => plan.next = Next::Wait,
            Verdict::Until(at) => {
                plan.next = match plan.next {
                    Next::Wait => Next::Wait,
                    Next::Until(other) => Next::Until(other.min(at)),
                    Next::Done => Next::Until(at),
                }
            }
            Verdict::Nothing => {}
        }
    }
    if !parked.is_empty() {
        plan.steps.push(Step::Park(parked));
        plan.next = Next::Wait;
    }
    plan
}

/// What becomes of the deposit that decides the order, by what the solver would do. The wait counts from the first look
/// that could decide: how long the chain took does not count.
pub fn fund(case: &Case<'_>, deposit: &B256, offer: &Offer) -> Funding {
    let since = claim::since(case.claim, deposit);
    let waited = since.map(|since| case.now.saturating_sub(since));
    let within = |seconds, reason| match waited.unwrap_or_default() < seconds {
        true => Funding::Wait,
        false => Funding::Fail(reason),
    };
    let briefly = |reason| within(case.patience.funds, reason);
    match offer {
        Offer::Pay(amounts, besides) => Funding::Pay(amounts.clone(), *besides),
        Offer::Short => briefly(FailReason::SolverBalanceTooLow),
        Offer::Held => briefly(FailReason::SolverCapacityExceeded),
        Offer::Unpriced => briefly(FailReason::NoQuotes),
        Offer::Away => within(AWAY, FailReason::NoQuotes),
        Offer::Reverts => briefly(FailReason::ExecutionReverted),
        Offer::Dear => briefly(FailReason::QuotedGasLimitExceeded),
        Offer::Refuse(reason) => Funding::Fail(*reason),
    }
}

fn verdict(case: &Case<'_>, deposit: &Deposit, deciding: &[B256]) -> Verdict {
    if let Some(reason) = mismatch(case.request, deposit) {
        return refund::verdict(case, deposit, reason);
    }
    let fill = case.claim.legs.iter().find(|leg| is_live_fill(leg));
    let failure = case.claim.failure.or(case.facts.failure);
    match (fill, failure) {
        // It is not known yet whether this deposit is one too many.
        (Some(fill), _) if fill.stage == Stage::Open => Verdict::Wait,
        (Some(_), _) => refund::verdict(case, deposit, FailReason::DoubleSpend),
        (None, Some(reason)) => refund::verdict(case, deposit, reason),
        // This deposit ends by itself: its depositor decides no order of somebody else's.
        (None, None) if !is_attestable(case, deposit) => {
            refund::verdict(case, deposit, FailReason::Unknown)
        }
        (None, None) => match refused(case.claim, case.barred, deposit) {
            Some(reason) => refund::verdict(case, deposit, reason),
            None if deciding.contains(&deposit.onchain_id) => decide(case, deposit),
            None => Verdict::Wait,
        },
    }
}

/// What becomes of a deposit that matches the order, before any offer is worked out: it funds the order, or the order
/// fails.
fn decide(case: &Case<'_>, deposit: &Deposit) -> Verdict {
    let (request, output) = (case.request, &case.request.order.output);
    let last = claimable::fill_until(deposit).min(output.deadline.into());
    let entitled = request.api_key.is_some() || case.patience.forced_by_all;
    let reason = if entitled && request.referrer.as_deref() == Some(FORCE_REFUND) {
        FailReason::ManualAdminRefund
    } else if request.expires_at.is_some_and(|at| at <= case.now) {
        FailReason::TtlExpired
    } else if case.may_miss(&output.chain_id, last) {
        FailReason::OrderExpired
    } else {
        let fill = claimable::fill(request, deposit, case.families);
        if is_away(case, deposit, &fill) {
            return refund::later(case);
        }
        match fill {
            Ok(()) => {
                let deposit = deposit.onchain_id;
                return Verdict::Do(Step::Fund { deposit });
            }
            Err(_) => FailReason::Unknown,
        }
    };
    let deposit = deposit.onchain_id;
    Verdict::Do(Step::Fail { deposit, reason })
}

/// The deposits that may decide an order of which nothing is decided yet: the user's own, or else others', of which
/// the first that can be paid for does. What one of them waits for holds up no other.
fn deciding(case: &Case<'_>) -> Vec<B256> {
    let could = |one: &&Deposit| {
        is_unused(case.claim, one)
            && mismatch(case.request, one).is_none()
            && is_attestable(case, one)
            && refused(case.claim, case.barred, one).is_none()
    };
    let all: Vec<&Deposit> = finals(case.facts).filter(could).collect();
    let own = all.iter().find(|one| is_users(case.request, one));
    let ids = all.iter().take(CANDIDATES).map(|one| one.onchain_id);
    own.map_or_else(|| ids.collect(), |own| vec![own.onchain_id])
}

/// Why a deposit that the user did not give ends by itself, so that its depositor cannot fail somebody else's order:
/// the breaker bars the depositor, or the order is not filled for the deposit.
pub fn refused(claim: &Claim, barred: &HashSet<B256>, deposit: &Deposit) -> Option<FailReason> {
    let id = &deposit.onchain_id;
    let known = claim.refused.iter().find(|one| one.deposit == *id);
    let barred = barred.contains(id);
    known
        .map(|one| one.why)
        .or_else(|| barred.then_some(FailReason::SolverCapacityExceeded))
}

/// Whether the deposit's network is not opened, or some chain of its order is not configured, by what is `judged` of
/// them: that may end with the next start.
fn is_away<T>(case: &Case<'_>, deposit: &Deposit, judged: &Result<T, Refusal>) -> bool {
    let missing = matches!(judged, Err(Refusal::ChainNotAvailable(_)));
    missing || case.closed.contains(&deposit.onchain_id)
}

/// Whether oracles take the deposit itself, whatever they say of the order.
fn is_attestable(case: &Case<'_>, deposit: &Deposit) -> bool {
    claimable::attestable(case.request, deposit, case.families)
}

/// Whether a payment or a deposit is not final yet.
pub(super) fn unsettled(case: &Case<'_>) -> bool {
    let moving = |leg: &Leg| matches!(leg.stage, Stage::Open | Stage::Confirmed);
    let early = |deposit: &Deposit| deposit.standing == Standing::Included;
    case.claim.legs.iter().any(moving) || case.facts.deposits.iter().any(early)
}

fn finals(facts: &Facts) -> impl Iterator<Item = &Deposit> {
    let is = |deposit: &&Deposit| deposit.standing == Standing::Final;
    facts.deposits.iter().filter(is)
}

/// Whether a deposit has no payment that has paid or may still.
pub fn is_unused(claim: &Claim, deposit: &Deposit) -> bool {
    let uses = |leg: &Leg| leg.deposit == deposit.onchain_id && leg.purpose != Purpose::Excess;
    !claim.parked.contains(&deposit.onchain_id) && !claim.live().any(uses)
}

fn is_live_fill(leg: &Leg) -> bool {
    leg.purpose == Purpose::Fill && leg.is_live()
}

#[cfg(test)]
mod tests;
