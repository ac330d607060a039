//! How a deposit that fills nothing ends. Pure.

use alloy::primitives::{B256, U256};
use vm::spelled_alike;

use super::{Case, Step, Verdict, Worth, is_away};
use crate::{
    attest::Refusal,
    request::{
        fact::{Deposit, Purpose},
        mismatch::mismatch,
        reason::{FailReason, RefundFailReason},
        status::is_users,
    },
    solver::{
        claim,
        claimable::{self, Way},
    },
    store::rows::claim::{Leg, Stage},
};

/// Deposits of an order, besides the one that decides it, that are given back although others of their size were: of
/// one depositor, and of all but the user's own.
const MOST_OF_ONE: usize = 3;
const MOST_IN_ALL: usize = 12;
/// Refunds of one deposit that may fail before the operator has to look: in a block, although their simulation
/// succeeded, or in none. Each failure costs.
const MOST_REVERTED: usize = 2;
const MOST_FAILED: usize = 8;
pub(super) const HOPELESS: &str = "its refund fails in every block";

const BY_HAND: &str = "no oracle settles it: give it back by hand and dismiss it, or wait until others have settled it and its depositor recovers it";

/// Seconds between looks at a deposit that nothing can be decided about: it has no price, or its network is not opened.
const UNDECIDED_PAUSE: u64 = 600;
pub(super) const UNPRICED: &str = "no price came in time";

/// A deposit that is parked for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parking {
    pub deposit: B256,
    /// The amount of it that is parked.
    pub amount: U256,
    /// Why it fills nothing.
    pub reason: FailReason,
    /// Why it is not given back.
    pub why: RefundFailReason,
    /// An explanation for the operator.
    pub note: String,
    /// It is dust, or has no price.
    pub minor: bool,
}

/// What to do with a deposit that fills nothing because of `reason`.
pub(super) fn verdict(case: &Case<'_>, deposit: &Deposit, reason: FailReason) -> Verdict {
    use RefundFailReason::{AmountTooLowToRefund, ManualRefundRequired};
    let park = |why, note: &str, minor| {
        Verdict::Park(Parking {
            deposit: deposit.onchain_id,
            amount: deposit.amount,
            reason,
            why,
            note: note.to_owned(),
            minor,
        })
    };
    let pays = mismatch(case.request, deposit).is_none();
    let way = claimable::refund(case.request, deposit, case.families);
    let over = is_over(case, deposit, &way);
    if !over && is_away(case, deposit, &way) {
        return later(case);
    }
    let worth = match case.worths.get(&deposit.onchain_id) {
        // A deposit that is what the order asked for is never dust, whatever its price is now.
        _ if pays => Worth::Something,
        Some(worth) => *worth,
        None if !over => return later(case),
        None => return park(ManualRefundRequired, UNPRICED, false),
    };
    let minor = worth != Worth::Something;
    let (way, why) = match (way, worth) {
        (Err(refusal), _) => return park(ManualRefundRequired, &note(&refusal), minor),
        (_, Worth::Unknown) => return park(ManualRefundRequired, "a token without a price", true),
        (_, Worth::Dust) => return park(AmountTooLowToRefund, "dust", true),
        (Ok(way), Worth::Something) => (way, pause(case, deposit).map(|pause| pause.why)),
    };
    let why = why.unwrap_or(ManualRefundRequired);
    if over {
        return park(why, "the order's refund has expired", false);
    }
    if is_hopeless(case, &deposit.onchain_id, Purpose::Refund) {
        return park(why, HOPELESS, false);
    }
    if is_crowded(case, deposit) {
        return park(ManualRefundRequired, "too many refunds of one order", false);
    }
    match pause(case, deposit) {
        Some(pause) if pause.until > case.now => Verdict::Until(pause.until),
        _ => Verdict::Do(Step::Refund {
            deposit: deposit.onchain_id,
            reason,
            minimum: way.minimum,
        }),
    }
}

/// Waits for a price, or for a start that opens a network.
pub(super) fn later(case: &Case<'_>) -> Verdict {
    Verdict::Until(case.now.saturating_add(UNDECIDED_PAUSE))
}

/// Whether it is too late to give the deposit back.
pub(super) fn is_over(case: &Case<'_>, deposit: &Deposit, way: &Result<Way, Refusal>) -> bool {
    let until = claimable::until(deposit);
    let deadline = way.as_ref().map_or(until, |way| way.deadline);
    case.may_miss(&deposit.network, deadline)
}

/// Why no refund is attested, and what the operator can do where the depositor can do nothing.
fn note(refusal: &Refusal) -> String {
    match refusal {
        Refusal::ExecutionTooLarge(_) => format!("{refusal}; {BY_HAND}"),
        _ => refusal.to_string(),
    }
}

/// Whether enough of a deposit's transactions were in final blocks, or lost, and paid nobody. Each time
/// that the operator releases it, it may be tried as often again.
pub(super) fn is_hopeless(case: &Case<'_>, deposit: &B256, purpose: Purpose) -> bool {
    let is = |leg: &&Leg| {
        leg.purpose == purpose && leg.deposit == *deposit && leg.stage == Stage::Failed
    };
    let failed = || case.claim.legs.iter().filter(is);
    let reverted = failed().filter(|leg| claim::reverted_at(case.facts, leg).is_some());
    let released = case.claim.released.iter().filter(|one| *one == deposit);
    let turns = released.count().saturating_add(1);
    reverted.count() >= MOST_REVERTED.saturating_mul(turns)
        || failed().count() >= MOST_FAILED.saturating_mul(turns)
}

pub(super) fn pause<'a>(
    case: &Case<'a>,
    deposit: &Deposit,
) -> Option<&'a crate::store::rows::claim::Pause> {
    let mut pauses = case.claim.pauses.iter();
    pauses.find(|pause| pause.deposit == deposit.onchain_id)
}

/// Whether enough other deposits of the order have had their turn. The first one that pays for the
/// order always has its own. Of what may be another's only what is at least half as large counts, so that whoever
/// takes another's turn gives more than that one is worth; and nobody but the user takes the user's. All
/// that is given back is of the order's currency.
fn is_crowded(case: &Case<'_>, deposit: &Deposit) -> bool {
    let mut paying = case.facts.deposits.iter();
    let first = paying.find(|one| mismatch(case.request, one).is_none());
    let first = first.map(|first| first.onchain_id);
    let begun = |id: &B256| {
        let legs = &case.claim.legs;
        legs.iter()
            .any(|leg| leg.deposit == *id && leg.purpose == Purpose::Refund)
            || case.claim.pauses.iter().any(|pause| pause.deposit == *id)
    };
    if first == Some(deposit.onchain_id) || begun(&deposit.onchain_id) {
        return false;
    }
    let is_large = |one: &Deposit| one.amount >= deposit.amount / U256::from(2);
    let others = || {
        let deposits = case.facts.deposits.iter();
        deposits.filter(|one| first != Some(one.onchain_id) && begun(&one.onchain_id))
    };
    // Where a quorum shows that the depositor gave it, no stranger did: sizes do not matter.
    let same = |one: &&Deposit| {
        one.own == deposit.own
            && spelled_alike(&one.depositor, &deposit.depositor)
            && (deposit.own || is_large(one))
    };
    let users = |one: &Deposit| is_users(case.request, one);
    let strangers = others().filter(|one| is_large(one) && !users(one));
    others().filter(same).count() >= MOST_OF_ONE
        || (!users(deposit) && strangers.count() >= MOST_IN_ALL)
}
