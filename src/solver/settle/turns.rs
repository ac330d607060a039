//! Whose turn it is to be settled. Payments that wait for the same networks have a queue of their own, so that what hangs
//! there delays no other. Reads nothing.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::store::Key;

/// Payments of one queue looked at at a time.
const AT_ONCE: usize = 16;

/// What a payment waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    /// The settlement chain: an execution was sent, or nothing is left to do.
    Chain,
    /// Oracles, which read the networks of the order: its origin and its destination.
    Oracles(String, String),
}

/// The payments that wait, and those that are looked at.
#[derive(Default)]
pub struct Turns {
    queues: BTreeMap<Queue, Waiting>,
    /// Where each of them is.
    known: HashMap<Key, Queue>,
}

#[derive(Default)]
struct Waiting {
    rows: VecDeque<Key>,
    running: usize,
}

impl Turns {
    /// Whether the payment under `key` waits or is looked at.
    pub fn has(&self, key: &Key) -> bool {
        self.known.contains_key(key)
    }

    /// Adds a payment that is not there yet, behind all others of its queue.
    pub fn add(&mut self, key: Key, queue: Queue) {
        self.known.insert(key.clone(), queue.clone());
        self.queues.entry(queue).or_default().rows.push_back(key);
    }

    /// The payments that are looked at from now on.
    pub fn start(&mut self) -> Vec<Key> {
        let mut started = Vec::new();
        for queue in self.queues.values_mut() {
            let free = AT_ONCE.saturating_sub(queue.running);
            let next = queue.rows.drain(..free.min(queue.rows.len()));
            let before = started.len();
            started.extend(next);
            queue.running += started.len() - before;
        }
        started
    }

    /// The payment under `key` was looked at.
    pub fn finished(&mut self, key: &Key) {
        let queue = self.known.remove(key);
        if let Some(queue) = queue.and_then(|queue| self.queues.get_mut(&queue)) {
            queue.running = queue.running.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::rows::SETTLEMENT;

    fn key(number: u8) -> Key {
        Key::new(SETTLEMENT, [number])
    }

    fn oracles(network: &str) -> Queue {
        Queue::Oracles("origin".into(), network.into())
    }

    #[test]
    fn what_hangs_in_one_queue_delays_none_of_another() {
        let mut turns = Turns::default();
        for number in 1..=20 {
            turns.add(key(number), oracles("hanging"));
        }
        let first: Vec<_> = (1..=16).map(key).collect();
        assert_eq!(turns.start(), first);
        turns.add(key(21), oracles("other"));
        turns.add(key(22), Queue::Chain);
        assert_eq!(turns.start(), [key(22), key(21)]);
        assert_eq!(turns.start(), []);
        // Who ends makes room for the next one of the same queue.
        turns.finished(&key(21));
        assert_eq!(turns.start(), []);
        turns.finished(&key(3));
        assert_eq!(turns.start(), [key(17)]);
    }

    #[test]
    fn who_was_looked_at_comes_behind_those_who_wait() {
        let mut turns = Turns::default();
        for number in 1..=17 {
            turns.add(key(number), Queue::Chain);
        }
        assert_eq!(turns.start().len(), 16);
        assert!(turns.has(&key(1)) && turns.has(&key(17)));
        turns.finished(&key(1));
        assert!(!turns.has(&key(1)));
        turns.add(key(1), Queue::Chain);
        assert_eq!(turns.start(), [key(17)]);
    }
}
