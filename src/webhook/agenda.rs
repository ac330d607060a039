//! Whose turn it is. Every endpoint has a queue of its own, and endpoints take turns. Endpoints that fail or are slow
//! share a smaller number of places, so however many they are, the others keep theirs. Pure.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use super::queue::{Ended, Queue};

/// Tries under way at endpoints that answer promptly, and at all others.
const PLACES: [usize; 2] = [512, 256];

/// The label of an endpoint's integrator.
pub type Label = Arc<str>;

/// Which places a try takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    Prompt,
    Unwell,
}

/// A try to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub label: Label,
    pub number: u64,
    pub lane: Lane,
}

/// The queues of all endpoints, and the order in which they take turns.
#[derive(Debug, Default)]
pub struct Agenda {
    queues: HashMap<Label, Slot>,
    /// When (unix milliseconds) an endpoint has its turn.
    timed: BTreeSet<(u64, Label)>,
    ready: [VecDeque<Label>; 2],
    running: [usize; 2],
}

#[derive(Debug, Default)]
struct Slot {
    queue: Queue,
    place: Place,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Nowhere,
    Timed(u64),
    Ready,
}

impl Agenda {
    /// Changes the queue of `label`, then schedules its turn by the time that follows from it.
    pub fn with<T>(&mut self, label: &Label, change: impl FnOnce(&mut Queue) -> T) -> T {
        let slot = self.queues.entry(label.clone()).or_default();
        let answer = change(&mut slot.queue);
        match slot.place {
            // A ready queue is looked at when its turn comes.
            Place::Ready => return answer,
            Place::Timed(at) => drop(self.timed.remove(&(at, label.clone()))),
            Place::Nowhere => {}
        }
        slot.place = match slot.queue.wake() {
            None => Place::Nowhere,
            Some(at) => {
                self.timed.insert((at, label.clone()));
                Place::Timed(at)
            }
        };
        answer
    }

    /// The queues there are.
    pub fn queues(&self) -> impl Iterator<Item = (&Label, &Queue)> {
        let slots = self.queues.iter();
        slots.map(|(label, slot)| (label, &slot.queue))
    }

    /// The next try to make at `now` (unix milliseconds), if a place is free for it.
    pub fn next(&mut self, now: u64) -> Option<Turn> {
        while self.timed.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, label)) = self.timed.pop_first()
        {
            if let Some(slot) = self.queues.get_mut(&label) {
                slot.place = Place::Ready;
                let lane = slot.lane();
                self.ready[lane as usize].push_back(label);
            }
        }
        let turn = self.turn(Lane::Prompt, now);
        turn.or_else(|| self.turn(Lane::Unwell, now))
    }

    fn turn(&mut self, lane: Lane, now: u64) -> Option<Turn> {
        while self.running[lane as usize] < PLACES[lane as usize] {
            let label = self.ready[lane as usize].pop_front()?;
            let Some(slot) = self.queues.get_mut(&label) else {
                continue;
            };
            if slot.lane() != lane {
                self.ready[slot.lane() as usize].push_back(label);
                continue;
            }
            let started = slot.queue.start(now);
            match slot.queue.wake() {
                Some(at) if at <= now => self.ready[lane as usize].push_back(label.clone()),
                Some(at) => {
                    slot.place = Place::Timed(at);
                    self.timed.insert((at, label.clone()));
                }
                None => slot.place = Place::Nowhere,
            }
            if let Some(number) = started {
                self.running[lane as usize] += 1;
                return Some(Turn {
                    label,
                    number,
                    lane,
                });
            }
        }
        None
    }

    /// Records that a try ended; `None`: the try was not made.
    pub fn ended(&mut self, turn: &Turn, ended: Option<Ended>) {
        let running = &mut self.running[turn.lane as usize];
        *running = running.saturating_sub(1);
        self.with(&turn.label, |queue| match ended {
            Some(ended) => queue.ended(ended),
            None => queue.skipped(),
        });
    }

    /// When (unix milliseconds) the next turn is due, if nothing happens before.
    pub fn wake(&self) -> Option<u64> {
        self.timed.first().map(|(at, _)| *at)
    }

    /// Tries under way.
    pub fn running(&self) -> usize {
        self.running.iter().sum()
    }
}

impl Slot {
    fn lane(&self) -> Lane {
        match self.queue.unwell() {
            false => Lane::Prompt,
            true => Lane::Unwell,
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

    fn owe(agenda: &mut Agenda, who: usize, numbers: std::ops::Range<u64>) {
        for number in numbers {
            agenda.with(&label(who), |queue| queue.add(number, 0, 0));
        }
    }

    fn turns(agenda: &mut Agenda) -> Vec<Turn> {
        std::iter::from_fn(|| agenda.next(0)).collect()
    }

    #[test]
    fn endpoints_take_turns() {
        let mut agenda = Agenda::default();
        for who in 0..2 {
            owe(&mut agenda, who, 1..9);
            // They answer, and may have several tries under way.
            agenda.with(&label(who), |queue| queue.ended(ended(1, None).unwrap()));
        }
        let order: Vec<_> = turns(&mut agenda)
            .into_iter()
            .map(|turn| (turn.label.to_string(), turn.number))
            .collect();
        let [a, b] = [0, 1].map(|who| label(who).to_string());
        let wanted = [(&a, 1), (&b, 1), (&a, 2), (&b, 2)];
        assert_eq!(order, wanted.map(|(who, number)| (who.clone(), number)));
        assert_eq!((agenda.running(), agenda.wake()), (4, None));
    }

    #[test]
    fn the_unwell_leave_places_for_the_others_however_many_they_are() {
        let mut agenda = Agenda::default();
        for who in 0..2_000 {
            owe(&mut agenda, who, 1..3);
            agenda.with(&label(who), |queue| {
                queue.ended(ended(1, Some("no")).unwrap());
            });
        }
        let sick = turns(&mut agenda);
        assert_eq!(sick.len(), PLACES[1]);
        assert!(sick.iter().all(|turn| turn.lane == Lane::Unwell));
        owe(&mut agenda, 5_000, 1..2);
        let turn = agenda.next(0).unwrap();
        assert_eq!((turn.label, turn.lane), (label(5_000), Lane::Prompt));
        assert_eq!(agenda.next(0), None);
        // Each that ends makes room for one.
        agenda.ended(&sick[0], ended(10_000, Some("no")));
        assert_eq!(turns(&mut agenda).len(), 1);
        agenda.ended(&sick[1], None);
        assert_eq!(turns(&mut agenda).len(), 1);
    }

    #[test]
    fn nothing_is_tried_before_its_time() {
        let mut agenda = Agenda::default();
        agenda.with(&label(0), |queue| queue.add(1, 0, 50));
        assert_eq!((agenda.next(49), agenda.wake()), (None, Some(50)));
        assert_eq!(agenda.next(50).unwrap().number, 1);
        assert_eq!((agenda.next(50), agenda.wake()), (None, None));
    }
}
