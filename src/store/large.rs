//! What large quotes that nobody has acted on may take of the disk together, and who asked for them.
//! Pure.
//!
//! Small quotes are not counted: nobody's small quote is refused, or forgotten, for anybody's large ones.
//! Who has more of them makes room first, so that many of one caller's cost another caller nothing. A
//! quote makes room only when it no longer matters to a deposit that was made in time.

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
}

#[derive(Debug, Default)]
struct Caller {
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

    /// Makes a place for a quote, or says what keeps it from one. `now` in unix seconds.
    pub fn take(&mut self, id: B256, large: Large, now: u64) -> Room {
        let own = self.callers.get(&large.by).map_or(0, |caller| caller.bytes);
        let found = if own.saturating_add(large.bytes) > self.budget.each {
            self.oldest(large.by, now)
        } else if self.total.saturating_add(large.bytes) > self.budget.all {
            self.greediest(now)
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
        caller.bytes = caller.bytes.saturating_add(large.bytes);
        caller.quotes.insert(id);
        self.total = self.total.saturating_add(large.bytes);
        self.quotes.insert(id, large);
    }

    /// One that was acted on, or is forgotten.
    pub fn remove(&mut self, id: &B256) {
        let Some(large) = self.quotes.remove(id) else {
            return;
        };
        self.total = self.total.saturating_sub(large.bytes);
        if let Some(caller) = self.callers.get_mut(&large.by) {
            caller.bytes = caller.bytes.saturating_sub(large.bytes);
            caller.quotes.remove(id);
            if caller.quotes.is_empty() {
                self.callers.remove(&large.by);
            }
        }
    }

    /// A caller's oldest, if it may go.
    fn oldest(&self, by: u64, now: u64) -> Option<B256> {
        let id = self.callers.get(&by)?.quotes.first()?;
        let large = self.quotes.get(id)?;
        (large.valid_until.saturating_add(SPARED) < now).then_some(*id)
    }

    /// The oldest of whoever has most and one that may go.
    fn greediest(&self, now: u64) -> Option<B256> {
        let callers = self.callers.iter();
        let spare = callers.filter_map(|(by, caller)| Some((caller.bytes, self.oldest(*by, now)?)));
        spare.max().map(|(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 100_000;
    const BUDGET: Budget = Budget { each: 50, all: 100 };

    fn id(number: u8) -> B256 {
        B256::with_last_byte(number)
    }

    /// Ten bytes that may go at `NOW`, or not yet.
    fn quote(by: u64, old: bool) -> Large {
        let age = if old { SPARED + 1 } else { SPARED };
        Large {
            bytes: 10,
            by,
            valid_until: NOW - age,
        }
    }

    fn filled(callers: &[(u64, u8, bool)]) -> Ledger {
        let (mut ledger, mut number) = (Ledger::new(BUDGET), 0);
        for (by, count, old) in callers {
            for _ in 0..*count {
                number += 1;
                assert_eq!(ledger.take(id(number), quote(*by, *old), NOW), Room::Taken);
            }
        }
        ledger
    }

    #[test]
    fn who_has_his_part_makes_room_himself_or_has_none() {
        let mut ledger = filled(&[(1, 5, true)]);
        assert_eq!(ledger.take(id(99), quote(1, true), NOW), Room::After(id(1)));
        ledger.remove(&id(1));
        assert_eq!(ledger.take(id(99), quote(1, true), NOW), Room::Taken);
        let mut ledger = filled(&[(1, 5, false)]);
        assert_eq!(ledger.take(id(99), quote(1, true), NOW), Room::Full);
        // Everybody else has theirs.
        assert_eq!(ledger.take(id(99), quote(2, true), NOW), Room::Taken);
    }

    #[test]
    fn who_has_most_makes_room_for_all() {
        let mut ledger = filled(&[(1, 1, true), (2, 4, true), (3, 5, true)]);
        let mut gone = Vec::new();
        for number in 50..54 {
            while let Room::After(first) = ledger.take(id(number), quote(4, true), NOW) {
                gone.push(first);
                ledger.remove(&first);
            }
        }
        // The third's, then in turn; the first's one stays.
        assert_eq!(gone.len(), 4);
        assert!(gone.contains(&id(6)) && gone.contains(&id(2)) && !gone.contains(&id(1)));
        assert_eq!(ledger.total(), 100);
        let mut fresh = filled(&[(2, 5, false), (3, 5, false)]);
        assert_eq!(fresh.take(id(99), quote(4, true), NOW), Room::Full);
    }

    #[test]
    fn what_is_gone_counts_no_more() {
        let mut ledger = filled(&[(1, 5, true), (2, 2, true)]);
        for number in 0..9 {
            ledger.remove(&id(number));
        }
        assert_eq!(ledger.total(), 0);
        assert!(ledger.quotes.is_empty() && ledger.callers.is_empty());
    }
}
