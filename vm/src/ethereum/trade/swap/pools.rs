//! The pools that are known to exist or not to exist, as far as they were asked for. Pure.
//!
//! It depends on no amount and on nobody who asks, so what one quote learned holds for all.

use std::{collections::HashMap, time::Duration};

use alloy::primitives::Address;
use tokio::time::Instant;

use super::route::Ends;

/// How long it counts: a new pool is found that soon.
pub const LIFE: Duration = Duration::from_secs(10 * 60);

/// The pools of pairs of currencies, as far as they were asked for. Bounded by the listed currencies: pools with a hub are always remembered, the pairs of
/// all others up to a number, and none takes another's place.
pub struct Pools {
    most: usize,
    hubs: HashMap<Pair, Known>,
    others: HashMap<Pair, Known>,
}

/// In one order, whichever way it is exchanged.
type Pair = (Address, Address);

struct Known {
    at: Instant,
    fees: Vec<u32>,
}

fn pair(ends: Ends) -> Pair {
    (ends.from.min(ends.to), ends.from.max(ends.to))
}

impl Pools {
    /// With room for so many pairs without a hub.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            hubs: HashMap::new(),
            others: HashMap::new(),
        }
    }

    /// The fees of the pools that there are; `None` where nobody knows any more.
    pub fn fees(&self, ends: Ends, now: Instant) -> Option<Vec<u32>> {
        let pair = pair(ends);
        let known = self.hubs.get(&pair).or_else(|| self.others.get(&pair))?;
        (now < known.at + LIFE).then(|| known.fees.clone())
    }

    /// What was found; `hub` where one of the two is one.
    pub fn learn(&mut self, ends: Ends, hub: bool, fees: Vec<u32>, now: Instant) {
        let (pair, known) = (pair(ends), Known { at: now, fees });
        if hub {
            self.hubs.insert(pair, known);
            return;
        }
        if self.others.len() >= self.most && !self.others.contains_key(&pair) {
            self.others.retain(|_, known| now < known.at + LIFE);
        }
        if self.others.len() < self.most || self.others.contains_key(&pair) {
            self.others.insert(pair, known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u8) -> Address {
        Address::with_last_byte(number)
    }

    fn ends(from: Address, to: Address) -> Ends {
        Ends { from, to }
    }

    #[test]
    fn what_is_known_counts_for_ten_minutes_both_ways() {
        let (mut pools, now) = (Pools::new(2), Instant::now());
        let (a, b) = (token(1), token(2));
        assert_eq!(pools.fees(ends(a, b), now), None);
        pools.learn(ends(a, b), false, vec![500], now);
        let late = now + LIFE;
        let before = late - Duration::from_millis(1);
        assert_eq!(pools.fees(ends(b, a), before), Some(vec![500]));
        assert_eq!(pools.fees(ends(a, b), late), None);
        pools.learn(ends(b, a), false, Vec::new(), late);
        assert_eq!(pools.fees(ends(a, b), late), Some(Vec::new()));
    }

    /// Whoever asks for every pair of the market makes nobody's be forgotten.
    #[test]
    fn no_pair_takes_anothers_place() {
        let (mut pools, now) = (Pools::new(2), Instant::now());
        let first = token(1);
        for number in 2..9 {
            pools.learn(ends(first, token(number)), false, vec![500], now);
        }
        let known = |pools: &Pools, now| {
            let known =
                (2..9).filter(|number| pools.fees(ends(first, token(*number)), now).is_some());
            known.collect::<Vec<_>>()
        };
        assert_eq!(known(&pools, now), [2, 3]);
        // The way over a hub is everybody's.
        for number in 10..20 {
            pools.learn(ends(first, token(number)), true, vec![500], now);
        }
        assert!((10..20).all(|number| pools.fees(ends(first, token(number)), now).is_some()));
        let late = now + LIFE;
        pools.learn(ends(first, token(8)), false, vec![500], late);
        assert_eq!(known(&pools, late), [8]);
    }
}
