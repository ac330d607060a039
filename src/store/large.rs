//! The disk budget of large quotes that nobody has acted on, by caller. Pure.
//!
//! Small quotes do not count: large quotes never displace them. Callers without a key share at most half of the
//! budget and never displace a key's quote. The caller with the most bytes makes room first, so that many quotes of
//! one caller cost others nothing. A quote makes room only once no deposit in time can need it, as far as its origin
//! is indexed; a key below its share gets room from callers without a key at once.

use std::collections::{BTreeSet, HashMap};

use alloy::primitives::B256;

use super::rows::large::Large;

/// Seconds after its validity for which a quote makes no room: by then the index has seen every deposit in time.
const SPARED: u64 = 10 * 60;

/// The byte budget: per caller, and in all.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub each: u64,
    pub all: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            each: 32 << 20,
            all: 512 << 20,
        }
    }
}

/// What the caller does before it stores a quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Nothing: the ledger has counted the quote.
    Taken,
    /// Delete this quote first.
    After(B256),
    /// Refuse the quote: nothing may be deleted yet.
    Full,
}

/// Counts the large quotes and decides which one makes room.
#[derive(Debug, Default)]
pub struct Ledger {
    budget: Budget,
    quotes: HashMap<B256, Large>,
    callers: HashMap<u64, Caller>,
    total: u64,
    /// The quotes of callers without a key, and their bytes.
    keyless: BTreeSet<B256>,
    strangers: u64,
    /// By network, the time of the last indexed block.
    reached: HashMap<String, u64>,
}

#[derive(Debug, Default)]
struct Caller {
    keyed: bool,
    bytes: u64,
    /// Ids begin with their time, so the oldest is first.
    quotes: BTreeSet<B256>,
}

impl Ledger {
    pub fn new(budget: Budget) -> Self {
        Self {
            budget,
            ..Self::default()
        }
    }

    /// The bytes of all counted quotes.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Records that all blocks of `network` up to this time (unix seconds) are indexed.
    pub fn reach(&mut self, network: &str, time: u64) {
        match self.reached.get_mut(network) {
            Some(reached) => *reached = time.max(*reached),
            None => drop(self.reached.insert(network.to_owned(), time)),
        }
    }

    /// Whether the origin is indexed for more than `seconds` beyond the quote's validity.
    pub fn is_over(&self, id: &B256, seconds: u64) -> bool {
        self.quotes.get(id).is_some_and(|large| {
            let reached = self.reached.get(&large.network);
            reached.is_some_and(|time| large.valid_until.saturating_add(seconds) < *time)
        })
    }

    /// Counts a quote if there is room; else names the quote to delete first.
    pub fn take(&mut self, id: B256, large: Large) -> Room {
        let own = self.callers.get(&large.by).map_or(0, |caller| caller.bytes);
        let exceeds = |used: u64, most| used.saturating_add(large.bytes) > most;
        let Budget { each, all } = self.budget;
        let found = if exceeds(own, each) {
            self.oldest(large.by)
        } else if !large.keyed && exceeds(self.strangers, all / 2) {
            self.greediest(false)
        } else if exceeds(self.total, all) {
            let keyed = || {
                self.keyless
                    .first()
                    .copied()
                    .or_else(|| self.greediest(true))
            };
            let keyed = || large.keyed.then(keyed).flatten();
            self.greediest(false).or_else(keyed)
        } else {
            self.add(id, large);
            return Room::Taken;
        };
        found.map_or(Room::Full, Room::After)
    }

    /// Counts a stored quote.
    pub fn add(&mut self, id: B256, large: Large) {
        self.remove(&id);
        let caller = self.callers.entry(large.by).or_default();
        caller.keyed = large.keyed;
        caller.bytes = caller.bytes.saturating_add(large.bytes);
        caller.quotes.insert(id);
        self.total = self.total.saturating_add(large.bytes);
        if !large.keyed {
            self.keyless.insert(id);
            self.strangers = self.strangers.saturating_add(large.bytes);
        }
        self.quotes.insert(id, large);
    }

    /// Removes a quote that was acted on or deleted.
    pub fn remove(&mut self, id: &B256) {
        let Some(large) = self.quotes.remove(id) else {
            return;
        };
        self.total = self.total.saturating_sub(large.bytes);
        if self.keyless.remove(id) {
            self.strangers = self.strangers.saturating_sub(large.bytes);
        }
        if let Some(caller) = self.callers.get_mut(&large.by) {
            caller.bytes = caller.bytes.saturating_sub(large.bytes);
            caller.quotes.remove(id);
            if caller.quotes.is_empty() {
                self.callers.remove(&large.by);
            }
        }
    }

    /// A caller's oldest quote, if it may be deleted.
    fn oldest(&self, by: u64) -> Option<B256> {
        let id = self.callers.get(&by)?.quotes.first()?;
        self.is_over(id, SPARED).then_some(*id)
    }

    /// The oldest quote of the caller, with a key or without, that has the most bytes and one that may be deleted.
    fn greediest(&self, keyed: bool) -> Option<B256> {
        let callers = self.callers.iter();
        let callers = callers.filter(|(_, caller)| caller.keyed == keyed);
        let spare = callers.filter_map(|(by, caller)| Some((caller.bytes, self.oldest(*by)?)));
        spare.max().map(|(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 100_000;
    const BUDGET: Budget = Budget { each: 50, all: 200 };
    /// Callers from this number on have a key.
    const KEYS: u64 = 100;

    fn id(number: u8) -> B256 {
        B256::with_last_byte(number)
    }

    /// A quote of ten bytes that may be deleted at `NOW`, or not yet.
    fn quote(by: u64, old: bool) -> Large {
        let age = if old { SPARED + 1 } else { SPARED };
        Large {
            bytes: 10,
            by,
            keyed: by >= KEYS,
            network: "origin".into(),
            valid_until: NOW - age,
        }
    }

    fn filled(callers: &[(u64, u8, bool)]) -> Ledger {
        let (mut ledger, mut number) = (Ledger::new(BUDGET), 0);
        ledger.reach("origin", NOW);
        for (by, count, old) in callers {
            for _ in 0..*count {
                number += 1;
                assert_eq!(ledger.take(id(number), quote(*by, *old)), Room::Taken);
            }
        }
        ledger
    }

    #[test]
    fn who_has_his_part_makes_room_himself_or_has_none() {
        let mut ledger = filled(&[(1, 5, true)]);
        assert_eq!(ledger.take(id(99), quote(1, true)), Room::After(id(1)));
        ledger.remove(&id(1));
        assert_eq!(ledger.take(id(99), quote(1, true)), Room::Taken);
        let mut ledger = filled(&[(1, 5, false)]);
        assert_eq!(ledger.take(id(99), quote(1, true)), Room::Full);
        // The other callers have their own shares.
        assert_eq!(ledger.take(id(99), quote(2, true)), Room::Taken);
    }

    #[test]
    fn who_has_most_makes_room_for_all() {
        let mut ledger = filled(&[(1, 1, true), (2, 4, true), (3, 5, true)]);
        let mut gone = Vec::new();
        for number in 50..54 {
            while let Room::After(first) = ledger.take(id(number), quote(4, true)) {
                gone.push(first);
                ledger.remove(&first);
            }
        }
        // First the third caller's, then in turn; the first caller's stays.
        assert_eq!(gone.len(), 4);
        assert!(gone.contains(&id(6)) && gone.contains(&id(2)) && !gone.contains(&id(1)));
        assert_eq!(ledger.total(), 100);
        let mut fresh = filled(&[(2, 5, false), (3, 5, false)]);
        assert_eq!(fresh.take(id(99), quote(4, true)), Room::Full);
    }

    #[test]
    fn strangers_fill_their_half_and_no_key_is_refused_for_it() {
        let strangers = [(1, 5, false), (2, 5, false)];
        let keys: Vec<_> = (KEYS..KEYS + 2).map(|key| (key, 5, false)).collect();
        let mut ledger = filled(&[&strangers[..], &keys].concat());
        assert_eq!((ledger.total(), ledger.strangers), (200, 100));
        // Full of quotes that may not be deleted yet: a stranger gets no room, and a key without quotes displaces a
        // stranger's.
        assert_eq!(ledger.take(id(99), quote(3, false)), Room::Full);
        assert_eq!(
            ledger.take(id(99), quote(KEYS + 3, false)),
            Room::After(id(1))
        );
        // A quote that may be deleted goes first. A key displaces nothing beyond its share.
        assert_eq!(ledger.take(id(99), quote(KEYS, false)), Room::Full);
        let old = [(1, 5, false), (2, 5, true)];
        let mut ledger = filled(&[&old[..], &keys].concat());
        assert_eq!(
            ledger.take(id(99), quote(KEYS + 3, false)),
            Room::After(id(6))
        );
    }

    #[test]
    fn no_strangers_quote_takes_the_place_of_a_keys() {
        let keys: Vec<_> = (KEYS..KEYS + 4).map(|key| (key, 5, true)).collect();
        let mut ledger = filled(&keys);
        assert_eq!(ledger.take(id(99), quote(1, true)), Room::Full);
        // A key's own quotes go in turn.
        let taken = ledger.take(id(99), quote(KEYS + 5, true));
        assert!(matches!(taken, Room::After(_)), "{taken:?}");
    }

    /// The index has not yet seen a deposit in time.
    #[test]
    fn what_is_over_is_told_by_the_blocks_of_the_origin() {
        let mut ledger = filled(&[(1, 5, true)]);
        ledger.reached.clear();
        for (time, expected) in [(0, Room::Full), (NOW - 1, Room::Full)] {
            ledger.reach("origin", time);
            ledger.reach("elsewhere", NOW);
            assert_eq!(ledger.take(id(99), quote(1, true)), expected, "{time}");
        }
        ledger.reach("origin", NOW);
        // A late provider does not move the time back.
        ledger.reach("origin", 1);
        assert_eq!(ledger.take(id(99), quote(1, true)), Room::After(id(1)));
    }

    #[test]
    fn what_is_gone_counts_no_more() {
        let mut ledger = filled(&[(1, 5, true), (KEYS, 2, true)]);
        for number in 0..9 {
            ledger.remove(&id(number));
        }
        assert_eq!((ledger.total(), ledger.strangers), (0, 0));
        assert!(ledger.quotes.is_empty() && ledger.callers.is_empty());
        assert!(ledger.keyless.is_empty());
    }
}
