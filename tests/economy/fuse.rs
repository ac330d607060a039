//! A store whose process dies at a commit: nothing goes on from there.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use intentd::store::{
    Batch, Key, Outcome, Range, Store, StoreError,
    memory::MemoryStore,
    rows::{CLAIM, LANE},
};
use tokio::sync::Notify;

/// A store in memory that refuses everything from the commit on at which its process dies.
pub struct Mortal {
    pub rows: MemoryStore,
    next: Mutex<Option<Death>>,
    dead: AtomicBool,
    died: Notify,
}

/// How a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Death {
    /// At this commit from now.
    pub commits: u64,
    /// Only commits of payments count.
    pub paying: bool,
    /// Behind the commit, or before.
    pub late: bool,
    /// Seconds until it begins again.
    pub down: u64,
}

impl Mortal {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            rows: MemoryStore::new(),
            next: Mutex::default(),
            dead: AtomicBool::new(false),
            died: Notify::new(),
        })
    }

    pub fn set(&self, death: Option<Death>) {
        *self.next.lock().unwrap() = death;
    }

    /// How the process dies, if it does at this commit.
    fn last(&self, batch: &Batch) -> Option<Death> {
        let mut next = self.next.lock().unwrap();
        let death = next.as_mut()?;
        let kinds: Vec<_> = batch.kinds().collect();
        if death.paying && !(kinds.contains(&CLAIM) && kinds.contains(&LANE)) {
            return None;
        }
        death.commits = death.commits.saturating_sub(1);
        (death.commits == 0).then_some(*death)
    }

    pub fn heal(&self) {
        self.set(None);
        self.dead.store(false, Ordering::SeqCst);
    }

    /// Whether the process is dead.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// Until the process is dead.
    pub async fn died(&self) {
        self.died.notified().await;
    }

    async fn die<T>(&self) -> T {
        if !self.dead.swap(true, Ordering::SeqCst) {
            self.died.notify_one();
        }
        std::future::pending().await
    }
}

#[async_trait]
impl Store for Mortal {
    async fn commit(&self, batch: Batch) -> Result<Outcome, StoreError> {
        if self.is_dead() {
            return self.die().await;
        }
        let Some(death) = self.last(&batch) else {
            return self.rows.commit(batch).await;
        };
        if death.late {
            self.rows.commit(batch).await?;
        }
        self.die().await
    }

    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.rows.read(key).await
    }

    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        self.rows.scan(range).await
    }

    async fn close(&self) {
        self.rows.close().await;
    }
}
