//! The newest events by request, so that a client that resumes for a few requests reads only their events. Pure.

use std::collections::{BTreeSet, HashMap, VecDeque};

use alloy::primitives::B256;

use super::feed::PAST;

/// The newest events by request.
#[derive(Debug, Default)]
pub struct Past {
    /// Every event after this number is here; `None` before the first.
    begins: Option<u64>,
    order: VecDeque<(u64, B256)>,
    requests: HashMap<B256, VecDeque<u64>>,
}

impl Past {
    /// Starts empty after event `after`.
    pub fn behind(after: u64) -> Self {
        Self {
            begins: Some(after),
            ..Self::default()
        }
    }

    /// Adds the next event; drops the oldest beyond [`PAST`].
    pub fn push(&mut self, number: u64, request: B256) {
        self.order.push_back((number, request));
        self.requests.entry(request).or_default().push_back(number);
        if self.order.len() as u64 > PAST {
            self.forget();
        }
    }

    fn forget(&mut self) {
        let Some((number, request)) = self.order.pop_front() else {
            return;
        };
        self.begins = Some(number);
        if let Some(numbers) = self.requests.get_mut(&request) {
            numbers.pop_front();
            if numbers.is_empty() {
                self.requests.remove(&request);
            }
        }
    }

    /// The events of `requests` after `after`, in order; `None` when some are no longer here.
    pub fn of<'a>(
        &self,
        requests: impl Iterator<Item = &'a B256>,
        after: u64,
    ) -> Option<BTreeSet<u64>> {
        self.begins.filter(|begins| *begins <= after)?;
        let known = requests.filter_map(|request| self.requests.get(request));
        let all =
            known.flat_map(|numbers| numbers.iter().rev().take_while(|number| **number > after));
        Some(all.copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_by_request_and_the_oldest_are_forgotten() {
        let mut past = Past::behind(4);
        let [one, other] = [B256::repeat_byte(1), B256::repeat_byte(2)];
        let of = |past: &Past, requests: &[B256], after| {
            let found = past.of(requests.iter(), after);
            found.map(|found| found.into_iter().collect::<Vec<_>>())
        };
        for (number, request) in [(5, one), (6, other), (7, one), (8, B256::ZERO)] {
            past.push(number, request);
        }
        assert_eq!(of(&past, &[one], 4), Some(vec![5, 7]));
        assert_eq!(of(&past, &[other, one], 5), Some(vec![6, 7]));
        assert_eq!(of(&past, &[one], 7), Some(vec![]));
        assert_eq!(of(&past, &[B256::repeat_byte(9)], 4), Some(vec![]));
        assert_eq!(of(&past, &[one], 3), None, "it was not here then");
        for number in 9..9 + PAST {
            past.push(number, B256::ZERO);
        }
        assert_eq!(of(&past, &[one], 7), None);
        assert_eq!(of(&past, &[one], 8), Some(vec![]));
        assert_eq!((past.order.len() as u64, past.requests.len()), (PAST, 1));
        assert_eq!(of(&Past::default(), &[one], 0), None);
    }
}
