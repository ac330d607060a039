//! How many reads of one chain are under way at a time for all requests: what is beyond waits.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use vm::{
    ChainId, ReadError,
    permits::{Held, Permits},
};

use super::asking;

/// The most concurrent reads of all requests on one chain: three quarters of a provider's limit.
pub const OF_ALL: usize = 48;
/// The same for callers without a key; the rest is reserved for callers with keys.
const OF_STRANGERS: usize = 32;
/// How long a read for a caller without a key waits for its permit; others wait without a limit.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The read permits of all requests, by chain; clones share them.
#[derive(Clone, Debug, Default)]
pub struct ReadPermits(Arc<Mutex<HashMap<ChainId, Arc<Permits>>>>);

impl ReadPermits {
    /// Those of `chain`.
    pub fn of(&self, chain: &ChainId) -> Arc<Permits> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = all.entry(chain.clone());
        of.or_insert_with(|| Arc::new(Permits::new(OF_ALL, OF_STRANGERS)))
            .clone()
    }
}

/// Waits for a permit of one read; dropping the result releases it. A read that no caller asked for is the operator's own,
/// and waits as one for a caller with a key.
pub async fn enter(permits: &Permits) -> Result<Held<'_>, ReadError> {
    enter_for(permits, 1).await
}

/// [`enter`], for what makes so many `reads` at a time.
pub async fn enter_for(permits: &Permits, reads: usize) -> Result<Held<'_>, ReadError> {
    let is_stranger = asking::is_stranger();
    let patience = match is_stranger {
        true => PATIENCE,
        false => Duration::MAX,
    };
    let permit = permits.wait(is_stranger, reads, patience).await;
    permit.ok_or_else(|| ReadError::Unavailable("others are reading; try again".into()))
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn strangers_wait_for_seconds_and_others_for_as_long_as_it_takes() {
        let permits = Permits::new(OF_ALL, OF_STRANGERS);
        let taken = asking::by(true, join_all((0..OF_ALL).map(|_| enter(&permits)))).await;
        assert!(taken.iter().all(Result::is_ok));
        let begun = Instant::now();
        // It has one of the strangers' permits, and waits for one of all.
        let stranger = async {
            let refused = asking::by(false, enter(&permits)).await;
            assert!(matches!(refused, Err(ReadError::Unavailable(_))));
            assert!(begun.elapsed() < 2 * PATIENCE);
        };
        let ends = async {
            sleep(3 * PATIENCE).await;
            drop(taken);
        };
        let (key, own) = (asking::by(true, enter(&permits)), enter(&permits));
        let (key, own, (), ()) = tokio::join!(key, own, stranger, ends);
        assert!(key.is_ok() && own.is_ok());
    }
}
