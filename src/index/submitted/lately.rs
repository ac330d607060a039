//! Transactions that were looked for a moment ago. Submitting one again asks no provider for a while after it was
//! found, so nobody can make every provider send a large one again and again; and for some seconds after it was missing,
//! where callers wait for the answer. Time is an argument, in unix milliseconds.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Found transactions that are remembered at most; beyond it those that expire next make room.
const MOST: usize = 10_000;
/// The same for missing ones: far more than providers are asked about in the time.
const MOST_MISSING: usize = 2_000;
/// How long one is remembered that a reorg may still change, or that is a request's: milliseconds.
const SHORT: u64 = 30_000;
/// How long one is remembered that is final and nobody's: milliseconds.
const LONG: u64 = 600_000;
/// How long one is remembered that is in no block: milliseconds. A block may have it by then.
const MISSING: u64 = 3_000;

type Name = (String, Vec<u8>);

/// What was found, and what was missing.
#[derive(Debug, Default)]
pub struct Lately {
    found: Ends,
    missing: Ends,
}

/// Until when each transaction is remembered.
#[derive(Debug, Default)]
struct Ends(Mutex<HashMap<Name, u64>>);

impl Lately {
    /// Whether it was found a moment ago.
    pub fn has(&self, network: &str, id: &[u8], now: u64) -> bool {
        self.found.has(&name(network, id), now)
    }

    /// Whether it was in no block a moment ago.
    pub fn lacks(&self, network: &str, id: &[u8], now: u64) -> bool {
        self.missing.has(&name(network, id), now)
    }

    /// Remembers that it was found just now. `nobodys`: no block and no present request can make it anybody's.
    pub fn found(&self, network: &str, id: &[u8], (nobodys, now): (bool, u64)) {
        let length = if nobodys { LONG } else { SHORT };
        self.found.keep(name(network, id), (length, now), MOST);
    }

    /// Remembers that it is in no block now.
    pub fn missed(&self, network: &str, id: &[u8], now: u64) {
        let name = name(network, id);
        self.missing.keep(name, (MISSING, now), MOST_MISSING);
    }
}

impl Ends {
    fn has(&self, name: &Name, now: u64) -> bool {
        self.all().get(name).is_some_and(|until| now < *until)
    }

    /// Remembers it for `length`, of `most` at most.
    fn keep(&self, name: Name, (length, now): (u64, u64), most: usize) {
        let mut all = self.all();
        if all.len() >= most {
            all.retain(|_, until| now < *until);
        }
        if all.len() >= most {
            let mut ends: Vec<u64> = all.values().copied().collect();
            let (_, middle, _) = ends.select_nth_unstable(most / 2);
            let middle = *middle;
            // Many may expire at the same time: then all of them go.
            all.retain(|_, until| *until > middle);
        }
        all.insert(name, now.saturating_add(length));
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Name, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(network: &str, id: &[u8]) -> Name {
    (network.to_owned(), id.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_and_never_grows() {
        let lately = Lately::default();
        lately.found("a", b"one", (true, 0));
        lately.found("a", b"two", (false, 0));
        let has = |id: &[u8], now| lately.has("a", id, now);
        assert!(has(b"one", LONG - 1) && !has(b"one", LONG));
        assert!(has(b"two", SHORT - 1) && !has(b"two", SHORT));
        assert!(!has(b"three", 0) && !lately.has("b", b"one", 0));
        for number in 0..3 * MOST as u64 {
            lately.found("a", &number.to_be_bytes(), (true, number));
            assert!(has(&number.to_be_bytes(), number));
        }
        assert!(lately.found.all().len() <= MOST);
    }

    #[test]
    fn what_is_missing_is_so_for_seconds_and_never_found() {
        let lately = Lately::default();
        lately.missed("a", b"one", 0);
        let lacks = |id: &[u8], now| lately.lacks("a", id, now);
        assert!(lacks(b"one", MISSING - 1) && !lacks(b"one", MISSING));
        assert!(!lacks(b"two", 0) && !lately.lacks("b", b"one", 0));
        assert!(!lately.has("a", b"one", 0));
        for number in 0..3 * MOST_MISSING as u64 {
            lately.missed("a", &number.to_be_bytes(), 0);
            assert!(lacks(&number.to_be_bytes(), 0));
        }
        assert!(lately.missing.all().len() <= MOST_MISSING);
    }
}
