//! Networks that are read again from where a provider showed what is not there: it may have left out other
//! things, and a quorum that had a bad minute gets the deposit shown once more. Ever more rarely while that
//! goes on, so that who shows one after the other does not keep the index from coming further.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::Confirmer;
use crate::{
    index::{IndexError, tail::rewound},
    store::{
        Batch, Expect, Outcome,
        rows::cursor::{self, Cursor, Mark},
    },
};

/// Milliseconds between two times at first.
const SHORTEST: u64 = 60_000;
/// See [`SHORTEST`].
const LONGEST: u64 = 3_600_000;

/// See the module.
#[derive(Default)]
pub(super) struct Again(Mutex<HashMap<String, Owed>>);

#[derive(Clone, Copy, Default)]
struct Owed {
    /// The lowest block that is to be read again.
    block: Option<u64>,
    /// Unix milliseconds before which it is not.
    next: u64,
    pause: u64,
}

impl Again {
    /// Block `number` of the network is to be read again.
    pub fn owe(&self, network: &str, number: u64) {
        let mut all = self.all();
        let owed = all.entry(network.to_owned()).or_default();
        owed.block = Some(owed.block.map_or(number, |block| block.min(number)));
    }

    /// The block from which the network is read again now.
    fn due(&self, network: &str, now: u64) -> Option<u64> {
        let owed = self.all().get(network).copied()?;
        owed.block.filter(|_| owed.next <= now)
    }

    fn done(&self, network: &str, now: u64) {
        let mut all = self.all();
        let owed = all.entry(network.to_owned()).or_default();
        // After as long without one it is as at first.
        let quiet = now >= owed.next.saturating_add(owed.pause);
        owed.pause = match quiet {
            true => SHORTEST,
            false => owed.pause.saturating_mul(2).clamp(SHORTEST, LONGEST),
        };
        (owed.block, owed.next) = (None, now.saturating_add(owed.pause));
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Owed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Confirmer {
    /// Takes the network's cursor back if that is due.
    pub(super) async fn read_again(&self, network: &str, now: u64) {
        let Some(number) = self.again.due(network, now) else {
            return;
        };
        match self.taken_back(network, number).await {
            Ok(true) => self.again.done(network, now),
            // The tail moved its cursor meanwhile: next time.
            Ok(false) => {}
            Err(error) => tracing::error!(%error, network, "not read again"),
        }
    }

    /// The network's cursor before the block `number`; false when another commit came first.
    async fn taken_back(&self, network: &str, number: u64) -> Result<bool, IndexError> {
        let (store, key) = (self.requests.store(), cursor::key(network));
        let Some(bytes) = store.read(&key).await? else {
            return Ok(true);
        };
        let cursor = Cursor::decode(&bytes)?;
        let below = |mark: &Mark| mark.number < number;
        let Some(kept) = cursor.marks.iter().rposition(below) else {
            return Ok(true);
        };
        let back = rewound(&cursor, kept).encode()?;
        let batch = Batch::new().expect(key.clone(), Expect::Equals(bytes));
        let done = store.commit(batch.put(key, back)).await?;
        if let Some(network) = self.networks.get(network) {
            network.bell.ring();
        }
        Ok(matches!(done, Outcome::Applied { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_ever_more_rarely_while_it_goes_on() {
        let again = Again::default();
        let mut times = Vec::new();
        // A deposit is invented every second for a day.
        for now in (0..86_400_000).step_by(1_000) {
            again.owe("a", 100 + now);
            if again.due("a", now).is_some() {
                again.done("a", now);
                times.push(now);
            }
            assert_eq!(again.due("b", now), None);
        }
        assert_eq!(times[..4], [0, 60_000, 180_000, 420_000]);
        assert!((24..40).contains(&times.len()), "{}", times.len());
        // The lowest is not forgotten while it waits, and later it is as at first.
        let last = 86_400_000;
        again.owe("a", 7);
        assert_eq!(again.due("a", last + 2 * LONGEST), Some(7));
        again.done("a", last + 3 * LONGEST);
        again.owe("a", 9);
        assert_eq!(again.due("a", last + 3 * LONGEST + SHORTEST), Some(9));
        assert_eq!(again.due("a", last + 3 * LONGEST + SHORTEST - 1), None);
    }
}
