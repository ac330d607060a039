//! A store whose process dies at a commit: nothing goes on from there.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, Ordering},
};

use async_trait::async_trait;
use intentd::store::{Batch, Key, Outcome, Range, Store, StoreError, memory::MemoryStore};
use tokio::sync::Notify;

/// See the module.
pub struct Mortal {
    pub rows: MemoryStore,
    left: AtomicI64,
    /// Whether the last commit is done before it dies.
    late: AtomicBool,
    dead: AtomicBool,
    died: Notify,
}

impl Mortal {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            rows: MemoryStore::new(),
            left: AtomicI64::new(i64::MAX),
            late: AtomicBool::new(false),
            dead: AtomicBool::new(false),
            died: Notify::new(),
        })
    }

    /// The process dies at the `commits`-th commit from now: before it, or behind it.
    pub fn set(&self, commits: i64, late: bool) {
        self.left.store(commits, Ordering::SeqCst);
        self.late.store(late, Ordering::SeqCst);
    }

    pub fn heal(&self) {
        self.set(i64::MAX, false);
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
        if self.left.fetch_sub(1, Ordering::SeqCst) > 1 {
            return self.rows.commit(batch).await;
        }
        if self.late.swap(false, Ordering::SeqCst) {
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
