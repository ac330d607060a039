//! The record of a provider's heads. Pure: the moment is an argument.
//!
//! Honest nodes are on another fork for a moment, run ahead of slow ones, and are slow themselves. Only a lasting
//! deviation counts against a provider; being behind never does.

use std::time::Duration;

use tokio::time::Instant;

use super::seat::Weight;
use crate::types::Block;

/// The pause between two looks at a provider's heads; a deviation that is gone by then was a race.
pub const RACE: Duration = Duration::from_secs(2);
/// How long the others have to reach a head that only one provider has.
const CATCH_UP: Duration = Duration::from_secs(60);
/// From this many times in a row on, another fork is not a reorg.
const FORKS: u32 = 3;
/// This many late heads in a row cost the vote.
const LATE: u32 = 3;

/// What counts against a provider because of its heads.
#[derive(Default)]
pub struct Conduct {
    looked_at: Option<Instant>,
    fork_since: Option<Instant>,
    /// How often in a row another fork counted against it.
    forks: u32,
    /// The first head that no other provider had reached.
    claim: Option<(Block, Instant)>,
    late: u32,
    late_at: Option<Instant>,
}

impl Conduct {
    /// Whether its head may be checked now: one check at a time, and not at every read.
    pub fn look(&mut self, now: Instant) -> bool {
        let due = self.looked_at.is_none_or(|at| now - at >= RACE);
        if due {
            self.looked_at = Some(now);
        }
        due
    }

    /// Records that its head is on the agreed chain.
    pub fn fine(&mut self) {
        self.fork_since = None;
        self.forks = 0;
        self.claim = None;
    }

    /// Records that its head is on another fork than the agreed one.
    pub fn forked(&mut self, now: Instant) -> Option<Weight> {
        let since = *self.fork_since.get_or_insert(now);
        if now - since < RACE {
            return None;
        }
        self.forks = self.forks.saturating_add(1);
        Some(if self.forks < FORKS {
            Weight::Doubt
        } else {
            Weight::Contradiction
        })
    }

    /// The first head of its own that no other provider has reached.
    pub fn claim(&self) -> Option<&Block> {
        self.claim.as_ref().map(|(block, _)| block)
    }

    /// Records that no other provider has reached `head`, nor its earlier claim.
    pub fn ahead(&mut self, head: &Block, now: Instant) -> Option<Weight> {
        let (_, since) = self.claim.get_or_insert_with(|| (head.clone(), now));
        if now - *since < CATCH_UP {
            return None;
        }
        self.claim = None;
        Some(Weight::Contradiction)
    }

    /// Records that others have reached its claim.
    pub fn reached(&mut self) {
        self.claim = None;
    }

    pub fn punctual(&mut self) {
        self.late = 0;
    }

    /// Records a late head; returns whether lateness has become a habit. Concurrent reads count once.
    pub fn late(&mut self, now: Instant) -> bool {
        if self.late_at.is_some_and(|at| now - at < RACE) {
            return false;
        }
        self.late_at = Some(now);
        self.late = self.late.saturating_add(1);
        if self.late < LATE {
            return false;
        }
        self.late = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn only_a_lasting_fork_is_held_against_it() {
        let (mut conduct, now) = (Conduct::default(), Instant::now());
        assert_eq!(conduct.forked(now), None);
        assert_eq!(conduct.forked(now + SECOND), None);
        conduct.fine();
        assert_eq!(conduct.forked(now + SECOND * 10), None);
        for weight in [Weight::Doubt, Weight::Doubt, Weight::Contradiction] {
            assert_eq!(conduct.forked(now + SECOND * 20), Some(weight));
        }
        conduct.fine();
        assert_eq!(conduct.forked(now + SECOND * 30), None);
        assert_eq!(conduct.forked(now + SECOND * 40), Some(Weight::Doubt));
    }

    #[tokio::test(start_paused = true)]
    async fn the_others_get_a_minute_to_reach_a_head() {
        let (mut conduct, now) = (Conduct::default(), Instant::now());
        assert_eq!(conduct.ahead(&block(9, 0), now), None);
        assert_eq!(conduct.ahead(&block(10, 0), now + SECOND * 59), None);
        assert_eq!(conduct.claim(), Some(&block(9, 0)));
        conduct.reached();
        assert_eq!(conduct.ahead(&block(10, 0), now + SECOND * 60), None);
        let weight = conduct.ahead(&block(11, 0), now + SECOND * 120);
        assert_eq!(weight, Some(Weight::Contradiction));
    }

    #[tokio::test(start_paused = true)]
    async fn three_late_heads_in_a_row_are_a_habit() {
        let (mut conduct, now) = (Conduct::default(), Instant::now());
        let late = [0, 1, 2, 3, 4].map(|n| conduct.late(now + SECOND * n));
        assert_eq!(late, [false, false, false, false, true]);
        assert!(!conduct.late(now + SECOND * 6));
        conduct.punctual();
        let late = [8, 10, 12].map(|n| conduct.late(now + SECOND * n));
        assert_eq!(late, [false, false, true]);
    }
}
