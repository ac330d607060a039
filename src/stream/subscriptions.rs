//! Which listeners subscribe to which requests. Pure.

use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
    hash::Hash,
};

use alloy::primitives::B256;

use crate::http::KeyLabel;

/// What a listener subscribes to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Interest {
    /// One request.
    Request(B256),
    /// Every request quoted with a key of this label.
    Key(KeyLabel),
}

impl Interest {
    /// Whether the interest covers `request`, quoted with `key`.
    pub fn covers(&self, request: &B256, key: Option<&KeyLabel>) -> bool {
        match self {
            Self::Request(id) => id == request,
            Self::Key(label) => Some(label) == key,
        }
    }
}

/// The listeners, as numbers, by interest.
#[derive(Debug, Default)]
pub struct Subscriptions {
    listeners: HashMap<Interest, Vec<u64>>,
}

impl Subscriptions {
    /// Adds an interest; a repeated one counts once.
    pub fn want(&mut self, listener: u64, interest: Interest) {
        let listeners = self.listeners.entry(interest).or_default();
        if !listeners.contains(&listener) {
            listeners.push(listener);
        }
    }

    /// Removes an interest if the listener has it.
    pub fn leave(&mut self, listener: u64, interest: &Interest) {
        if let Entry::Occupied(mut entry) = self.listeners.entry(interest.clone()) {
            let listeners = entry.get_mut();
            listeners.retain(|known| *known != listener);
            if listeners.is_empty() {
                entry.remove();
            }
        }
    }

    /// The listeners of `request`, quoted with `key`; each once.
    pub fn takers(&self, request: B256, key: Option<&KeyLabel>) -> BTreeSet<u64> {
        let request = self.listeners.get(&Interest::Request(request));
        let key = key.and_then(|key| self.listeners.get(&Interest::Key(key.clone())));
        [request, key]
            .into_iter()
            .flatten()
            .flatten()
            .copied()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u8) -> Interest {
        Interest::Request(B256::repeat_byte(number))
    }

    fn key(label: &str) -> Interest {
        Interest::Key(KeyLabel::new(label))
    }

    #[test]
    fn each_hears_once_of_what_it_wants_and_of_nothing_else() {
        let mut subscriptions = Subscriptions::default();
        subscriptions.want(1, request(7));
        subscriptions.want(1, request(7));
        subscriptions.want(1, key("a"));
        subscriptions.want(2, request(8));
        subscriptions.want(3, key("a"));
        subscriptions.want(4, key("b"));
        let takers = |subscriptions: &Subscriptions, number, label: Option<&str>| {
            let label = label.map(KeyLabel::new);
            let takers = subscriptions.takers(B256::repeat_byte(number), label.as_ref());
            takers.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(takers(&subscriptions, 7, None), [1]);
        assert_eq!(takers(&subscriptions, 7, Some("a")), [1, 3]);
        assert_eq!(takers(&subscriptions, 9, Some("a")), [1, 3]);
        assert_eq!(takers(&subscriptions, 9, Some("c")), [0; 0]);
        subscriptions.leave(1, &request(7));
        subscriptions.leave(1, &request(7));
        subscriptions.leave(2, &request(7));
        assert_eq!(takers(&subscriptions, 7, None), [0; 0]);
        assert_eq!(takers(&subscriptions, 8, None), [2]);
        subscriptions.leave(1, &key("a"));
        subscriptions.leave(3, &key("a"));
        assert_eq!(takers(&subscriptions, 7, Some("a")), [0; 0]);
        assert_eq!(
            subscriptions.listeners.len(),
            2,
            "nothing is kept of those who left"
        );
    }
}
