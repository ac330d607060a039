//! What is known of tokens: whether they arrive as they are sent. Pure: time is an argument.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use alloy::primitives::U256;
use moka::sync::Cache;
use vm::Address;

/// Seconds that a verdict is believed.
pub const BELIEVED: u64 = 600;
/// A token that passed is believed with so many times the amount: rounding hides a fee on little.
const FOLD: u64 = 10;
/// Verdicts of callers that are kept.
const MOST_CALLERS: u64 = 4_096;

/// A network's name and a currency.
pub type Token = (String, Address);

/// What was found.
#[derive(Clone, Copy)]
pub struct Verdict {
    /// All of it arrives.
    pub free: bool,
    pub amount: U256,
    /// Unix seconds.
    pub at: u64,
}

/// Verdicts on tokens: everybody's, and those of callers.
pub struct Verdicts {
    /// Of the market's currencies only: memory stays bounded.
    shared: Mutex<HashMap<Token, Verdict>>,
    callers: Cache<(Token, Address), Verdict>,
}

impl Default for Verdicts {
    fn default() -> Self {
        Self {
            shared: Mutex::default(),
            callers: Cache::new(MOST_CALLERS),
        }
    }
}

impl Verdict {
    fn holds(&self, amount: U256, now: u64) -> Option<bool> {
        let known = !self.free || amount <= self.amount.saturating_mul(U256::from(FOLD));
        let fresh = now < self.at.saturating_add(BELIEVED);
        (known && fresh).then_some(self.free)
    }
}

impl Verdicts {
    /// What holds for `amount`: everybody's verdict, or else that of the `caller`.
    pub fn of(
        &self,
        token: &Token,
        caller: Option<&Address>,
        amount: U256,
        now: u64,
    ) -> Option<bool> {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = shared.get(token).copied();
        let held = |verdict: Verdict| verdict.holds(amount, now);
        shared.and_then(held).or_else(|| {
            let own = (token.clone(), caller?.clone());
            self.callers.get(&own).and_then(held)
        })
    }

    pub fn put(&self, token: Token, caller: Option<&Address>, verdict: Verdict) {
        match caller {
            Some(caller) => self.callers.insert((token, caller.clone()), verdict),
            None => {
                let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
                shared.insert(token, verdict);
            }
        }
    }
}
