//! Which open requests wait for a look, which are looked at now, and what their last looks saw. Each way has a queue of
//! its own; a request whose look failed waits some turns longer. Reads nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use alloy::primitives::B256;
use tokio::task::{Id, JoinError, JoinSet};

/// Seconds between two looks at a request that fails. They double from one to [`PAUSE`], stay there while its
/// price may still hold, then double to [`LONGEST_PAUSE`]. New facts begin anew.
const LONGEST_PAUSE: u64 = 600;
const PAUSE: u64 = 40;
/// How many pauses of [`PAUSE`] there are.
const PAUSES: u32 = 7;

/// Rounds for which a request whose look failed lets others go first, at most.
const MOST_BEHIND: u32 = 8;

/// The networks of a request's origin and destination.
pub type Way = (String, String);

/// The looks that wait and those under way.
#[derive(Default)]
pub struct Looks {
    pub tasks: JoinSet<Looked>,
    pub busy: HashMap<Id, B256>,
    pub queues: BTreeMap<Way, Queue>,
    /// How many have been queued.
    queued: u64,
    /// What is known of open requests.
    pub open: HashMap<B256, Open>,
    /// Networks of such requests that this start has not opened, each told once.
    pub unopened: HashSet<String>,
}

/// The requests of one way that are to be looked at, and how many of it are looked at now.
#[derive(Default)]
pub struct Queue {
    /// Turn and request. A request whose look failed comes some rounds later.
    pub waiting: BTreeSet<(u64, B256)>,
    pub running: usize,
}

/// What a look at a request saw.
#[derive(Clone, Copy)]
pub struct Looked {
    /// The version of its facts.
    pub version: u64,
    /// When the request is to be looked at again, in unix seconds, unless its facts change before.
    pub until: u64,
    pub failed: bool,
}

/// What the worker knows of an open request.
pub struct Open {
    way: Way,
    /// What the last look saw.
    seen: Option<Looked>,
    /// How many of its last looks failed since its facts changed.
    pub errors: u32,
    /// It is queued, or being looked at.
    pub taken: bool,
    /// Its facts have changed since it was queued.
    pub news: bool,
}

impl Open {
    /// A request that nobody has looked at.
    pub fn new(way: Way) -> Self {
        Self {
            way,
            seen: None,
            errors: 0,
            taken: false,
            news: false,
        }
    }

    /// `now` in unix milliseconds.
    pub fn is_due(&self, now: u64) -> bool {
        let due = |seen: Looked| seen.until.saturating_mul(1_000) <= now;
        !self.taken && self.seen.is_none_or(due)
    }

    /// Notes what a look saw. If the facts have changed since, earlier errors do not count.
    fn note(&mut self, seen: Looked) {
        if self
            .seen
            .is_some_and(|before| before.version != seen.version)
        {
            self.errors = 0;
        }
        self.errors = match seen.failed {
            true => self.errors.saturating_add(1),
            false => 0,
        };
        self.seen = Some(seen);
    }
}

/// Seconds until a request is looked at again that failed so often before this time.
pub fn pause(errors: u32) -> u64 {
    let length = |errors| 1_u64.checked_shl(errors).unwrap_or(u64::MAX);
    match length(errors) {
        short if short <= PAUSE => short,
        _ => length(errors.saturating_sub(PAUSES)).clamp(PAUSE, LONGEST_PAUSE),
    }
}

impl Looks {
    /// Queues a look at an open request; one that is not known is left out.
    pub fn queue(&mut self, id: B256) {
        let Some(known) = self.open.get_mut(&id) else {
            return;
        };
        (known.taken, known.news) = (true, false);
        let queue = self.queues.entry(known.way.clone()).or_default();
        self.queued = self.queued.wrapping_add(1);
        let round = u64::try_from(queue.waiting.len()).unwrap_or(u64::MAX);
        let behind = round.saturating_mul(known.errors.min(MOST_BEHIND).into());
        queue
            .waiting
            .insert((self.queued.saturating_add(behind), id));
    }

    /// Notices of changes were lost: every open request counts as changed.
    pub fn missed(&mut self) {
        for known in self.open.values_mut() {
            (known.news, known.seen) = (known.taken, None);
        }
    }

    /// The request of a finished look, if its facts have changed since it was queued. One whose look panicked is looked
    /// at again like any other.
    pub fn finished(&mut self, done: Result<(Id, Looked), JoinError>) -> Option<B256> {
        let (task, seen) = match done {
            Ok((task, seen)) => (task, Some(seen)),
            Err(error) => {
                tracing::error!(%error, "looking at a request panicked");
                (error.id(), None)
            }
        };
        let id = self.busy.remove(&task)?;
        let known = self.open.get_mut(&id)?;
        known.taken = false;
        if let Some(seen) = seen {
            known.note(seen);
        }
        if let Some(queue) = self.queues.get_mut(&known.way) {
            queue.running = queue.running.saturating_sub(1);
        }
        known.news.then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(ids: &[u8]) -> Looks {
        let mut looks = Looks::default();
        for id in ids {
            let open = Open::new(Way::default());
            looks.open.insert(B256::repeat_byte(*id), open);
        }
        looks
    }

    fn next(looks: &mut Looks) -> u8 {
        let queue = looks.queues.get_mut(&Way::default()).unwrap();
        queue.waiting.pop_first().unwrap().1[0]
    }

    fn seen(version: u64, failed: bool) -> Looked {
        Looked {
            version,
            until: 0,
            failed,
        }
    }

    #[test]
    fn who_waits_or_is_being_paid_has_his_turn_as_who_comes_anew_has() {
        let mut looks = looks(&[1, 2, 3]);
        for _ in 0..1_000 {
            let old = looks.open.get_mut(&B256::repeat_byte(1)).unwrap();
            old.note(seen(1, false));
        }
        for id in [2, 1, 3] {
            looks.queue(B256::repeat_byte(id));
        }
        assert_eq!([(); 3].map(|()| next(&mut looks)), [2, 1, 3]);
    }

    #[test]
    fn who_failed_is_some_rounds_behind_and_no_more() {
        let all: Vec<u8> = (1..=40).collect();
        let mut looks = looks(&all);
        for _ in 0..1_000 {
            let failing = looks.open.get_mut(&B256::repeat_byte(1)).unwrap();
            failing.note(seen(1, true));
        }
        for id in [2, 3, 1] {
            looks.queue(B256::repeat_byte(id));
        }
        let mut turns = 0;
        for id in 4..=40 {
            looks.queue(B256::repeat_byte(id));
            turns += 1;
            if next(&mut looks) == 1 {
                break;
            }
        }
        assert!((10..30).contains(&turns), "{turns}");
    }

    #[test]
    fn pauses_grow_when_no_price_holds_any_more() {
        let mut at = 0;
        let looks: Vec<u64> = (0..20)
            .map(|errors| {
                at += pause(errors);
                at
            })
            .collect();
        let while_it_holds: Vec<_> = looks.iter().filter(|at| **at < 300).collect();
        assert!(
            while_it_holds
                .windows(2)
                .all(|two| two[1] - two[0] <= PAUSE)
        );
        assert!(while_it_holds.len() < 14);
        assert_eq!(pause(30), LONGEST_PAUSE);
    }
}
