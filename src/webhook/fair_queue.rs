//! The order of tries. Every endpoint has a queue, and endpoints take turns. Failing and slow endpoints share a
//! smaller pool of concurrent tries, so that they cannot displace the others. Pure.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use super::queue::{Ended, Queue};

/// The most concurrent tries at endpoints that answer promptly, and at all others.
const PERMITS: [usize; 2] = [512, 256];

/// The label of an endpoint's integrator.
pub type Label = Arc<str>;

/// The pool that a try counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    Prompt,
    Unwell,
}

/// A try that can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub label: Label,
    pub number: u64,
    pub pool: Pool,
}

/// The queues of all endpoints, and the order in which they take turns.
#[derive(Debug, Default)]
pub struct FairQueue {
    queues: HashMap<Label, Entry>,
    /// When (unix milliseconds) an endpoint's turn is due.
    timed: BTreeSet<(u64, Label)>,
    ready: [VecDeque<Label>; 2],
    running: [usize; 2],
}

#[derive(Debug, Default)]
struct Entry {
    queue: Queue,
    scheduled: Scheduled,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Scheduled {
    #[default]
    Nowhere,
    Timed(u64),
    Ready,
}

impl FairQueue {
    /// Changes the queue of `label`, then schedules its next turn.
    pub fn with<T>(&mut self, label: &Label, change: impl FnOnce(&mut Queue) -> T) -> T {
        let slot = self.queues.entry(label.clone()).or_default();
        let answer = change(&mut slot.queue);
        match slot.scheduled {
            // A ready queue is rescheduled at its turn.
            Scheduled::Ready => return answer,
            Scheduled::Timed(at) => drop(self.timed.remove(&(at, label.clone()))),
            Scheduled::Nowhere => {}
        }
        slot.scheduled = match slot.queue.wake() {
            None => Scheduled::Nowhere,
            Some(at) => {
                self.timed.insert((at, label.clone()));
                Scheduled::Timed(at)
            }
        };
        answer
    }

    /// All queues.
    pub fn queues(&self) -> impl Iterator<Item = (&Label, &Queue)> {
        let slots = self.queues.iter();
        slots.map(|(label, slot)| (label, &slot.queue))
    }

    /// The next try to make at `now` (unix milliseconds); `None` while the pools are full.
    pub fn next(&mut self, now: u64) -> Option<Turn> {
        while self.timed.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, label)) = self.timed.pop_first()
        {
            if let Some(slot) = self.queues.get_mut(&label) {
                slot.scheduled = Scheduled::Ready;
                let pool = slot.pool();
                self.ready[pool as usize].push_back(label);
            }
        }
        let turn = self.turn(Pool::Prompt, now);
        turn.or_else(|| self.turn(Pool::Unwell, now))
    }

    fn turn(&mut self, pool: Pool, now: u64) -> Option<Turn> {
        while self.running[pool as usize] < PERMITS[pool as usize] {
            let label = self.ready[pool as usize].pop_front()?;
            let Some(slot) = self.queues.get_mut(&label) else {
                continue;
            };
            if slot.pool() != pool {
                self.ready[slot.pool() as usize].push_back(label);
                continue;
            }
            let started = slot.queue.start(now);
            match slot.queue.wake() {
                Some(at) if at <= now => self.ready[pool as usize].push_back(label.clone()),
                Some(at) => {
                    slot.scheduled = Scheduled::Timed(at);
                    self.timed.insert((at, label.clone()));
                }
                None => slot.scheduled = Scheduled::Nowhere,
            }
            if let Some(number) = started {
                self.running[pool as usize] += 1;
                return Some(Turn {
                    label,
                    number,
                    pool,
                });
            }
        }
        None
    }

    /// Records the end of a try; `ended` is `None` when no try was made.
    pub fn ended(&mut self, turn: &Turn, ended: Option<Ended>) {
        let running = &mut self.running[turn.pool as usize];
        *running = running.saturating_sub(1);
        self.with(&turn.label, |queue| match ended {
            Some(ended) => queue.ended(ended),
            None => queue.skipped(),
        });
    }

    /// When (unix milliseconds) the next turn is due, if nothing else happens.
    pub fn wake(&self) -> Option<u64> {
        self.timed.first().map(|(at, _)| *at)
    }

    /// The number of running tries.
    pub fn running(&self) -> usize {
        self.running.iter().sum()
    }
}

impl Entry {
    fn pool(&self) -> Pool {
        match self.queue.unwell() {
            false => Pool::Prompt,
            true => Pool::Unwell,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(took: u64, failure: Option<&str>) -> Option<Ended> {
        Some(Ended {
            at: 1,
            took,
            failure: failure.map(str::to_owned),
            quiet_until: 0,
        })
    }

    fn label(number: usize) -> Label {
        format!("app {number}").into()
    }

    fn owe(fair_queue: &mut FairQueue, who: usize, numbers: std::ops::Range<u64>) {
        for number in numbers {
            fair_queue.with(&label(who), |queue| queue.add(number, 0, 0));
        }
    }

    fn turns(fair_queue: &mut FairQueue) -> Vec<Turn> {
        std::iter::from_fn(|| fair_queue.next(0)).collect()
    }

    #[test]
    fn endpoints_take_turns() {
        let mut fair_queue = FairQueue::default();
        for who in 0..2 {
            owe(&mut fair_queue, who, 1..9);
            // They answer and may have several concurrent tries.
            fair_queue.with(&label(who), |queue| queue.ended(ended(1, None).unwrap()));
        }
        let order: Vec<_> = turns(&mut fair_queue)
            .into_iter()
            .map(|turn| (turn.label.to_string(), turn.number))
            .collect();
        let [a, b] = [0, 1].map(|who| label(who).to_string());
        let wanted = [(&a, 1), (&b, 1), (&a, 2), (&b, 2)];
        assert_eq!(order, wanted.map(|(who, number)| (who.clone(), number)));
        assert_eq!((fair_queue.running(), fair_queue.wake()), (4, None));
    }

    #[test]
    fn the_unwell_leave_places_for_the_others_however_many_they_are() {
        let mut fair_queue = FairQueue::default();
        for who in 0..2_000 {
            owe(&mut fair_queue, who, 1..3);
            fair_queue.with(&label(who), |queue| {
                queue.ended(ended(1, Some("no")).unwrap());
            });
        }
        let sick = turns(&mut fair_queue);
        assert_eq!(sick.len(), PERMITS[1]);
        assert!(sick.iter().all(|turn| turn.pool == Pool::Unwell));
        owe(&mut fair_queue, 5_000, 1..2);
        let turn = fair_queue.next(0).unwrap();
        assert_eq!((turn.label, turn.pool), (label(5_000), Pool::Prompt));
        assert_eq!(fair_queue.next(0), None);
        // Each ended try makes room for one.
        fair_queue.ended(&sick[0], ended(10_000, Some("no")));
        assert_eq!(turns(&mut fair_queue).len(), 1);
        fair_queue.ended(&sick[1], None);
        assert_eq!(turns(&mut fair_queue).len(), 1);
    }

    #[test]
    fn nothing_is_tried_before_its_time() {
        let mut fair_queue = FairQueue::default();
        fair_queue.with(&label(0), |queue| queue.add(1, 0, 50));
        assert_eq!((fair_queue.next(49), fair_queue.wake()), (None, Some(50)));
        assert_eq!(fair_queue.next(50).unwrap().number, 1);
        assert_eq!((fair_queue.next(50), fair_queue.wake()), (None, None));
    }
}
