//! The state of each network's tail: what stops it, and whether it reads its chain. For operators and for the API.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The state of each network's tail.
#[derive(Debug, Default)]
pub struct TailStates(Mutex<BTreeMap<String, Tailed>>);

#[derive(Debug, Default)]
struct Tailed {
    /// The last error, while the tail is stopped.
    why: Option<String>,
    /// When a provider last reported the chain's head, in unix milliseconds.
    read_at: Option<u64>,
}

/// Milliseconds after which a head that was read says nothing of the chain any more: tails look for one every few
/// seconds, after errors every thirty.
const LATELY: u64 = 60_000;

impl TailStates {
    /// `None`: the network's tail goes on.
    pub fn set_trouble(&self, network: &str, why: Option<String>) {
        self.all().entry(network.to_owned()).or_default().why = why;
    }

    /// What stops the network's tail, if anything does.
    pub fn trouble(&self, network: &str) -> Option<String> {
        self.all().get(network)?.why.clone()
    }

    /// Notes that the chain's head was read at `now`, in unix milliseconds.
    pub fn read(&self, network: &str, now: u64) {
        self.all().entry(network.to_owned()).or_default().read_at = Some(now);
    }

    /// Whether the chain was read lately and the tail goes on.
    pub fn reads(&self, network: &str, now: u64) -> bool {
        let all = self.all();
        let tailed = all.get(network).filter(|tailed| tailed.why.is_none());
        let at = tailed.and_then(|tailed| tailed.read_at);
        at.is_some_and(|at| now.saturating_sub(at) <= LATELY)
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Tailed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_read_whose_tail_saw_its_head_a_minute_ago_at_most() {
        let tail_states = TailStates::default();
        assert!(!tail_states.reads("origin", 0));
        tail_states.read("origin", 1_000);
        for (now, expected) in [(1_000, true), (61_000, true), (61_001, false)] {
            assert_eq!(tail_states.reads("origin", now), expected, "{now}");
        }
        assert!(!tail_states.reads("other", 1_000));
        // Nor is one whose tail is stuck, whatever it sees of the head.
        tail_states.set_trouble("origin", Some("too large".into()));
        tail_states.read("origin", 61_001);
        assert!(!tail_states.reads("origin", 61_001));
        tail_states.set_trouble("origin", None);
        assert!(tail_states.reads("origin", 61_001));
    }
}
