//! Transactions that were found a moment ago. Submitting them again asks no provider, so nobody can make every
//! provider send a large one again and again. Time is an argument, in unix milliseconds.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Transactions that are remembered at most; beyond it those that expire next make room.
const MOST: usize = 10_000;
/// How long one is remembered that a reorg may still change, or that is a request's: milliseconds.
const SHORT: u64 = 30_000;
/// How long one is remembered that is final and nobody's: milliseconds.
const LONG: u64 = 600_000;

type Name = (String, Vec<u8>);

/// Until when each transaction is remembered.
#[derive(Debug, Default)]
pub struct Lately(Mutex<HashMap<Name, u64>>);

impl Lately {
    /// Whether it was found a moment ago.
    pub fn has(&self, network: &str, id: &[u8], now: u64) -> bool {
        let name = (network.to_owned(), id.to_vec());
        self.all().get(&name).is_some_and(|until| now < *until)
    }

    /// Remembers that it was found just now. `nobodys`: no block and no present request can make it anybody's.
    pub fn found(&self, network: &str, id: &[u8], (nobodys, now): (bool, u64)) {
        let mut all = self.all();
        if all.len() >= MOST {
            all.retain(|_, until| now < *until);
        }
        if all.len() >= MOST {
            let mut ends: Vec<u64> = all.values().copied().collect();
            let (_, middle, _) = ends.select_nth_unstable(MOST / 2);
            let middle = *middle;
            // Many may expire at the same time: then all of them go.
            all.retain(|_, until| *until > middle);
        }
        let length = if nobodys { LONG } else { SHORT };
        let name = (network.to_owned(), id.to_vec());
        all.insert(name, now.saturating_add(length));
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Name, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        assert!(lately.all().len() <= MOST);
    }
}
