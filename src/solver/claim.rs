//! Beginning payments: which claims may follow which. Pure. Whoever asks, and however often, an order
//! has at most one fill that may land, and never one beside a refund of the same deposit.

use alloy::primitives::B256;

use crate::{
    request::{fact::Purpose, reason::FailReason},
    store::rows::claim::{Claim, Leg, Stage},
};

/// A payment that may not be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    #[error("a payment of this request may still land")]
    Open,
    #[error("the order was filled")]
    Filled,
    #[error("the order failed, or a refund was begun")]
    Failed,
    #[error("the deposit is used up")]
    Used,
}

/// `claim` with a fill begun.
pub fn fill(claim: &Claim, leg: Leg) -> Result<Claim, ClaimError> {
    at_rest(claim)?;
    if paid(claim, Purpose::Fill).next().is_some() {
        return Err(ClaimError::Filled);
    }
    let refunds = |leg: &Leg| leg.purpose == Purpose::Refund;
    if claim.failure.is_some() || claim.legs.iter().any(refunds) {
        return Err(ClaimError::Failed);
    }
    Ok(with(claim, leg))
}

/// `claim` with a refund begun. Of an order that was not filled, it fails the order for good.
pub fn refund(claim: &Claim, leg: Leg) -> Result<Claim, ClaimError> {
    at_rest(claim)?;
    usable(claim, &leg.deposit)?;
    let reason = leg.reason.unwrap_or(FailReason::Unknown);
    Ok(with(&failed(claim, reason), leg))
}

/// `claim` with the deposit given up: it will not be given back.
pub fn give_up(claim: &Claim, deposit: B256, reason: FailReason) -> Result<Claim, ClaimError> {
    at_rest(claim)?;
    usable(claim, &deposit)?;
    let mut next = failed(claim, reason);
    next.given_up.push(deposit);
    Ok(next)
}

/// `claim` of an order that will not be filled; unchanged if it was.
pub fn failed(claim: &Claim, reason: FailReason) -> Claim {
    let mut next = claim.clone();
    let filled = claim
        .legs
        .iter()
        .any(|leg| leg.purpose == Purpose::Fill && leg.stage != Stage::Failed);
    if !filled {
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

fn at_rest(claim: &Claim) -> Result<(), ClaimError> {
    let open = claim.legs.iter().any(|leg| leg.stage == Stage::Open);
    if open { Err(ClaimError::Open) } else { Ok(()) }
}

fn usable(claim: &Claim, deposit: &B256) -> Result<(), ClaimError> {
    let used = claim
        .legs
        .iter()
        .any(|leg| leg.deposit == *deposit && leg.stage != Stage::Failed);
    if used || claim.given_up.contains(deposit) {
        return Err(ClaimError::Used);
    }
    Ok(())
}

fn paid(claim: &Claim, purpose: Purpose) -> impl Iterator<Item = &Leg> {
    claim.legs.iter().filter(move |leg| {
        leg.purpose == purpose && matches!(leg.stage, Stage::Confirmed | Stage::Final)
    })
}

#[cfg(test)]
mod tests;
