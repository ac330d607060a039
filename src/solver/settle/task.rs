//! A settlement as it is worked on. Pure: time is an argument.

use alloy::primitives::B256;
use serde_json::Value;

use crate::{
    request::{
        Request,
        fact::{self, Applied, Facts},
    },
    store::{
        Key,
        rows::settlement::{Part, Settlement},
    },
};

/// The longest pause between tries, in seconds.
pub const LONGEST_PAUSE: u64 = 600;

/// A row as it was read.
pub struct Task {
    pub key: Key,
    pub request: Request,
    pub facts: Facts,
    pub row: Vec<u8>,
    pub settlement: Settlement,
    /// Unix milliseconds.
    pub now: u64,
}

/// Which of the two executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Deposit,
    Outcome,
}

/// An execution that the oracles signed.
pub struct Attested {
    pub side: Side,
    /// What the contract knows it by.
    pub key: B256,
    pub execution: Value,
}

impl Task {
    /// The row with one of its parts changed.
    pub fn with(&self, side: Side, part: Part) -> Settlement {
        self.settlement.clone().with(side, part)
    }

    /// The row with another try, after a pause that doubles.
    pub fn later(&self, why: &str) -> Settlement {
        let mut next = self.settlement.clone();
        (next.why, next.refused) = (Some(why.to_owned()), false);
        let pause = 1_u64.checked_shl(next.tries).unwrap_or(LONGEST_PAUSE);
        next.tries = next.tries.saturating_add(1);
        next.not_before = self
            .now
            .saturating_add(pause.min(LONGEST_PAUSE).saturating_mul(1_000));
        next
    }
}

impl Settlement {
    /// With one of its parts changed. Tries are counted until that part is applied, since an execution may also fail
    /// after it is sent.
    pub(super) fn with(mut self, side: Side, part: Part) -> Self {
        if part == Part::Applied {
            self.tries = 0;
        }
        match side {
            Side::Deposit => self.deposited = part,
            Side::Outcome => self.outcome = part,
        }
        self
    }
}

/// Adds to the facts that an execution was applied.
pub fn record(facts: &mut Facts, side: Side, applied: &Applied) {
    let settlement = facts.settlement.get_or_insert(fact::Settlement {
        deposit: None,
        outcome: None,
    });
    match side {
        Side::Deposit => settlement.deposit = Some(applied.clone()),
        Side::Outcome => settlement.outcome = Some(applied.clone()),
    }
}
