//! A store in memory, for tests and simulations. Dropping it deletes all rows.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;

use super::{Batch, Key, Kind, Outcome, Range, Store, StoreError, number};

/// A [`Store`] in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rows: BTreeMap<Key, Vec<u8>>,
    closed: bool,
    failed: Option<String>,
}

impl State {
    /// The greatest number of a log; zero when it is empty.
    fn last(&self, log: Kind) -> u64 {
        let (from, to) = (Key::new(log, []), Key::new(log, u64::MAX.to_be_bytes()));
        let last = self.rows.range(from..=to).next_back();
        last.and_then(|(key, _)| number(&key.name)).unwrap_or(0)
    }
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes every further call fail, as after a failed sync.
    pub fn fail(&self, why: &str) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .failed = Some(why.to_owned());
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> Result<T, StoreError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &state.failed {
            Some(why) => Err(StoreError::Failed(why.clone())),
            None if state.closed => Err(StoreError::Closed),
            None => Ok(act(&mut state)),
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn commit(&self, batch: Batch) -> Result<Outcome, StoreError> {
        if batch.oversized() {
            return Err(StoreError::Oversized);
        }
        self.with(|state| {
            let read = |key: &Key| Ok::<_, StoreError>(state.rows.get(key));
            if let Some(refused) = batch.refusal(read)? {
                return Ok(refused);
            }
            for (key, value) in batch.writes {
                match value {
                    Some(value) => state.rows.insert(key, value),
                    None => state.rows.remove(&key),
                };
            }
            let number = batch.append.map(|append| {
                let number = state.last(append.log) + 1;
                let ((key, value), lead) = append.at(number);
                state.rows.insert(key, value);
                state.rows.extend(lead);
                number
            });
            Ok(Outcome::Applied { number })
        })?
    }

    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.with(|state| state.rows.get(key).cloned())
    }

    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        let from = Key::new(range.kind, range.prefix.clone());
        self.with(|state| {
            let rows = state.rows.range(from..).take_while(|(key, _)| {
                key.kind == range.kind && key.name.starts_with(&range.prefix)
            });
            let mut rows: Vec<_> = rows.collect();
            if range.reverse {
                rows.reverse();
            }
            let follows = |name: &Vec<u8>, after: &Vec<u8>| match range.reverse {
                true => name < after,
                false => name > after,
            };
            let after = range.after.as_ref();
            rows.into_iter()
                .filter(|(key, _)| after.is_none_or(|after| follows(&key.name, after)))
                .take(range.limit)
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        })
    }

    async fn close(&self) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .closed = true;
    }
}
