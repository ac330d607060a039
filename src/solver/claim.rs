//! Beginning payments: which claims may follow which, and what a claim says of its payments. Pure. An order has at most
//! one fill that may land. A deposit has at most one payment: a fill, with the excess over the order beside it, or a
//! refund.

use alloy::primitives::B256;

use crate::{
    request::{
        fact::{Facts, Purpose, State},
        reason::{FailReason, RefundFailReason},
    },
    store::rows::claim::{Claim, Leg, Pause, Refused, Stage, Waiting},
};

/// Seconds between two tries to give something back: the first pause, and the longest.
const FIRST_PAUSE: u64 = 60;
const LONGEST_PAUSE: u64 = 21_600;

/// A payment that may not be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    #[error("the order was filled, or a fill may still land")]
    Filled,
    #[error("the order failed")]
    Failed,
    #[error("the deposit is used up")]
    Used,
    #[error("no final fill has used the deposit")]
    Unfilled,
}

/// `claim` with a fill begun.
pub fn fill(claim: &Claim, leg: Leg) -> Result<Claim, ClaimError> {
    if claim.live().any(|leg| leg.purpose == Purpose::Fill) {
        return Err(ClaimError::Filled);
    }
    if claim.failure.is_some() {
        return Err(ClaimError::Failed);
    }
    usable(claim, &leg.deposit)?;
    Ok(with(claim, leg))
}

/// `claim` with a refund begun.
pub fn refund(claim: &Claim, leg: Leg) -> Result<Claim, ClaimError> {
    usable(claim, &leg.deposit)?;
    Ok(with(claim, leg))
}

/// `claim` with what exceeds an order begun to be given back.
pub fn excess(claim: &Claim, leg: Leg) -> Result<Claim, ClaimError> {
    let of = |one: &&Leg, purpose| one.purpose == purpose && one.deposit == leg.deposit;
    let mut fills = claim.live().filter(|one| of(one, Purpose::Fill));
    if !fills.any(|fill| fill.stage == Stage::Final) {
        return Err(ClaimError::Unfilled);
    }
    if claim.live().any(|one| of(&one, Purpose::Excess)) {
        return Err(ClaimError::Used);
    }
    Ok(with(claim, leg))
}

/// `claim` with deposits parked: the solver does nothing more about them, or about their excess where a final fill has
/// used them.
pub fn park(claim: &Claim, deposits: &[B256]) -> Result<Claim, ClaimError> {
    let mut next = claim.clone();
    for deposit in deposits {
        let filled = |leg: &Leg| leg.purpose == Purpose::Fill && leg.stage == Stage::Final;
        let busy = |leg: &Leg| leg.deposit == *deposit && !filled(leg);
        if next.live().any(busy) || next.parked.contains(deposit) {
            return Err(ClaimError::Used);
        }
        next.pauses.retain(|pause| pause.deposit != *deposit);
        next.parked.push(*deposit);
    }
    Ok(next)
}

/// `claim` with a deposit parked whose payment succeeded and paid nobody.
pub fn unpaid(claim: &Claim, deposit: B256) -> Result<Claim, ClaimError> {
    let mut next = park(claim, &[deposit])?;
    next.unpaid.push(deposit);
    Ok(next)
}

/// `claim` with a parked deposit that the operator wants decided about anew.
pub fn release(claim: &Claim, deposit: B256) -> Claim {
    let mut next = claim.clone();
    next.parked.retain(|one| *one != deposit);
    next.unpaid.retain(|one| *one != deposit);
    next.released.push(deposit);
    next
}

/// `claim` with a deposit that could not be given back at `now` (unix seconds). The next try comes after a pause that
/// doubles.
pub fn pause(claim: &Claim, deposit: B256, why: RefundFailReason, now: u64) -> Claim {
    let mut next = claim.clone();
    let known = next
        .pauses
        .iter()
        .position(|pause| pause.deposit == deposit);
    let tries = known.map_or(0, |at| next.pauses.swap_remove(at).tries);
    let length = FIRST_PAUSE.checked_shl(tries.min(32)).unwrap_or(u64::MAX);
    next.pauses.push(Pause {
        deposit,
        tries: tries.saturating_add(1),
        until: now.saturating_add(length.min(LONGEST_PAUSE)),
        why,
    });
    next
}

/// `claim` of an order that could be decided for `deposit` at `now` (unix seconds), and waits; `None`: it says so.
pub fn wait(claim: &Claim, deposit: B256, now: u64) -> Option<Claim> {
    let waits = since(claim, &deposit).is_some();
    (!waits).then(|| wait_anew(claim, deposit, now))
}

/// `claim` of an order that waits for `deposit` from `now` (unix seconds) on, whatever it has waited before.
pub fn wait_anew(claim: &Claim, deposit: B256, now: u64) -> Claim {
    let mut next = claim.clone();
    next.waits.get_or_insert(now);
    next.waiting.retain(|one| one.deposit != deposit);
    let since = now;
    next.waiting.push(Waiting { deposit, since });
    next
}

/// Every fill that was begun, whatever became of it.
pub fn fills(claim: &Claim) -> impl Iterator<Item = &Leg> {
    let legs = claim.legs.iter();
    legs.filter(|leg| leg.purpose == Purpose::Fill)
}

/// When a payment reverted, by its block, in unix seconds. `None` where it has not: what failed in its simulation alone,
/// what no node took and what a reorg removed is nobody's doing.
pub fn reverted_at(facts: &Facts, leg: &Leg) -> Option<u64> {
    let mut attempts = facts.attempts.iter();
    attempts.find_map(|attempt| match &attempt.state {
        State::Reverted { place, .. }
            if attempt.network == leg.network
                && leg.transaction.as_ref() == Some(&attempt.transaction) =>
        {
            Some(place.time)
        }
        _ => None,
    })
}

/// Since when the order waits that could be decided for `deposit`, unix seconds. What another one has waited for
/// does not count.
pub fn since(claim: &Claim, deposit: &B256) -> Option<u64> {
    let waiting = &claim.waiting;
    let known = waiting.iter().find(|one| one.deposit == *deposit);
    let any = claim.waits.filter(|_| waiting.is_empty());
    known.map(|one| one.since).or(any)
}

/// `claim` of an order that is not filled for `deposit`, which its user did not give.
pub fn refuse(claim: &Claim, deposit: B256, why: FailReason) -> Claim {
    let mut next = claim.clone();
    next.refused.push(Refused { deposit, why });
    next
}

/// `claim` of an order that will not be filled; unchanged if it was.
pub fn failed(claim: &Claim, reason: FailReason) -> Claim {
    let mut next = claim.clone();
    if !claim.live().any(|leg| leg.purpose == Purpose::Fill) {
        next.failure.get_or_insert(reason);
    }
    next
}

fn with(claim: &Claim, mut leg: Leg) -> Claim {
    let mut next = claim.clone();
    leg.stage = Stage::Open;
    next.legs.push(leg);
    next
}

fn usable(claim: &Claim, deposit: &B256) -> Result<(), ClaimError> {
    let used = claim.live().any(|leg| leg.deposit == *deposit);
    if used || claim.parked.contains(deposit) {
        return Err(ClaimError::Used);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
