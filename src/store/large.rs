//! What large quotes that nobody has acted on may take of the disk together, and who asked for them.
//! Pure.
//!
//! Small quotes are not counted: nobody's small quote is refused, or forgotten, for anybody's large ones.
//! Callers without a key have half of the room at most, and none of theirs takes the place of a key's. Who
//! has more of them makes room first, so that many of one caller's cost another caller nothing. A quote
//! makes room only when it no longer matters to a deposit that was made in time, as far as its origin has
//! been indexed; but a key that has less than its part has its place, whatever others without one have.

use std::collections::{BTreeSet, HashMap};

use alloy::primitives::B256;

use super::rows::large::Large;

/// Seconds beyond its validity for which a quote makes no room: a deposit in time is seen by then.
const SPARED: u64 = 10 * 60;

/// Bytes that there is room for: of one caller, and of all.
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

/// What must be done before a quote is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Nothing: it has its place now.
    Taken,
    /// This one goes first.
    After(B256),
    /// There is none until those of others have had their time.
    Full,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Ledger {
    budget: Budget,
    quotes: HashMap<B256, Large>,
    callers: HashMap<u64, Caller>,
    total: u64,
    /// Of callers without a key, and its bytes.
    keyless: BTreeSet<B256>,
    strangers: u64,
    /// By network, the time of the last block that was indexed.
    reached: HashMap<String, u64>,
}

#[derive(Debug, Default)]
struct Caller {
    keyed: bool,
    bytes: u64,
    /// Ids begin with the time: the oldest is first.
    quotes: BTreeSet<B256>,
}

impl Ledger {
    pub fn new(budget: Budget) -> Self {
        Self {
            budget,
            ..Self::default()
        }
    }

    /// Bytes of all that are counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// All blocks of `network` up to one of this time, in unix seconds, are indexed.
    pub fn reach(&mut self, network: &str, time: u64) {
        match self.reached.get_mut(network) {
            Some(reached) => *reached = time.max(*reached),
            None => drop(self.reached.insert(network.to_owned(), time)),
        }
    }

    /// Whether the origin has been indexed for more than `seconds` beyond the quote's validity.
    pub fn is_over(&self, id: &B256, seconds: u64) -> bool {
        self.quotes.get(id).is_some_and(|large| {
            let reached = self.reached.get(&large.network);
            reached.is_some_and(|time| large.valid_until.saturating_add(seconds) < *time)
        })
    }

    /// Makes a place for a quote, or says what keeps it from one.
    pub fn take(&mut self, id: B256, large: Large) -> Room {
        let own = self.callers.get(&large.by).map_or(0, |caller| caller.bytes);
        let over = |used: u64, most| used.saturating_add(large.bytes) > most;
        let Budget { each, all } = self.budget;
        let found = if over(own, each) {
            self.oldest(large.by)
        } else if !large.keyed && over(self.strangers, all / 2) {
            self.greediest(false)
        } else if over(self.total, all) {
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

    /// Counts a quote that has its place.
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

    /// One that was acted on, or is forgotten.
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

    /// A caller's oldest, if it may go.
    fn oldest(&self, by: u64) -> Option<B256> {
        let id = self.callers.get(&by)?.quotes.first()?;
        self.is_over(id, SPARED).then_some(*id)
    }

    /// The oldest of whoever, with a key or without, has most and one that may go.
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
    /// Callers from here on have a key.
    const KEYS: u64 = 100;

    fn id(number: u8) -> B256 {
        B256::with_last_byte(number)
    }

    /// Ten bytes that may go at `NOW`, or not yet.
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
        // Everybody else has theirs.
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
        // The third's, then in turn; the first's one stays.
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
        // Full of what may not go yet: no stranger has a place, a key that has nothing takes a stranger's.
        assert_eq!(ledger.take(id(99), quote(3, false)), Room::Full);
        assert_eq!(
            ledger.take(id(99), quote(KEYS + 3, false)),
            Room::After(id(1))
        );
        // One that may go goes first. What a key has had is its own.
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
        // A key's own take their turn.
        let taken = ledger.take(id(99), quote(KEYS + 5, true));
        assert!(matches!(taken, Room::After(_)), "{taken:?}");
    }

    /// A deposit in time is not seen yet where the index stands.
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
        // A provider that is late takes nothing back.
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
