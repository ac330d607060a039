//! How many reads of one chain are under way at a time for all requests: what is beyond waits.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};
use vm::{ChainId, ReadError};

use super::asking;

/// The most concurrent reads of all requests on one chain: three quarters of a provider's limit.
pub const OF_ALL: usize = 48;
/// The same for callers without a key; the rest is reserved for callers with keys.
const OF_STRANGERS: usize = 32;
/// How long a read for a caller without a key waits for its permit.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The read permits of all requests, by chain; clones share them.
#[derive(Clone, Debug, Default)]
pub struct ReadPermits(Arc<Mutex<HashMap<ChainId, Arc<ChainPermits>>>>);

/// The read permits of one chain; callers without a key share two thirds of them.
#[derive(Debug)]
pub struct ChainPermits {
    all: Semaphore,
    strangers: Semaphore,
}

impl ReadPermits {
    /// Those of `chain`.
    pub fn of(&self, chain: &ChainId) -> Arc<ChainPermits> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = all.entry(chain.clone());
        let permits = || ChainPermits {
            all: Semaphore::new(OF_ALL),
            strangers: Semaphore::new(OF_STRANGERS),
        };
        of.or_insert_with(|| Arc::new(permits())).clone()
    }
}

impl ChainPermits {
    /// Waits for a permit; dropping the result releases it.
    pub async fn enter(&self) -> Result<[Option<SemaphorePermit<'_>>; 2], ReadError> {
        let closed = |_| ReadError::Unavailable("nothing is read any more".into());
        let stranger = match asking::is_stranger() {
            false => None,
            true => {
                let permit = timeout(PATIENCE, self.strangers.acquire()).await;
                let busy = |_| ReadError::Unavailable("others are reading; try again".into());
                Some(permit.map_err(busy)?.map_err(closed)?)
            }
        };
        let permit = self.all.acquire().await.map_err(closed)?;
        Ok([stranger, Some(permit)])
    }
}
