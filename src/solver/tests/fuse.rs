//! Where the process dies: at the n-th point that counts, and from then on nothing goes on.

use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

use async_trait::async_trait;
use tokio::sync::Notify;

use crate::store::{Batch, Key, Outcome, Range, Store, StoreError, memory::MemoryStore, rows};

/// Counts down to the point at which the process dies.
pub struct Fuse {
    left: AtomicI64,
    burnt: Notify,
    /// How often facts were read.
    facts: AtomicU64,
}

impl Fuse {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            left: AtomicI64::new(i64::MAX),
            burnt: Notify::new(),
            facts: AtomicU64::new(0),
        })
    }

    /// The process dies at the `points`-th point from now.
    pub fn set(&self, points: i64) {
        self.left.store(points, Ordering::SeqCst);
    }

    pub fn off(&self) {
        self.set(i64::MAX);
    }

    pub fn facts(&self) -> u64 {
        self.facts.load(Ordering::SeqCst)
    }

    pub async fn burn(&self) {
        if self.left.fetch_sub(1, Ordering::SeqCst) <= 1 {
            self.burnt.notify_one();
            std::future::pending::<()>().await;
        }
    }

    /// Runs `life` until it ends (`true`) or dies.
    pub async fn survive(&self, life: impl Future<Output = ()>) -> bool {
        tokio::select! {
            biased;
            () = self.burnt.notified() => false,
            () = life => true,
        }
    }
}

/// A store that dies before or after a commit.
pub struct Mortal {
    pub store: MemoryStore,
    pub fuse: Arc<Fuse>,
}

#[async_trait]
impl Store for Mortal {
    async fn commit(&self, batch: Batch) -> Result<Outcome, StoreError> {
        self.fuse.burn().await;
        let outcome = self.store.commit(batch).await;
        self.fuse.burn().await;
        outcome
    }

    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        if key.kind == rows::FACTS {
            self.fuse.facts.fetch_add(1, Ordering::SeqCst);
        }
        self.store.read(key).await
    }

    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        self.store.scan(range).await
    }

    async fn close(&self) {
        self.store.close().await;
    }
}
