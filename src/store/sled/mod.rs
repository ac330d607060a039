//! The embedded backend: one sled tree, one thread that writes it, one process per directory.
//!
//! A row's key in the tree is its kind's byte and its name. Kind 0 is the backend's own: `format` ([`super::FORMAT`],
//! one byte) and `sequence` (the number of the last group of commits, 8 bytes big endian; see [`disk::witnessed`]).
//! sled panics on some damage, so every use of it that may meet damage goes through [`guard::guarded`].

mod committer;
mod disk;
mod guard;
mod open;
mod pace;
mod replace;
mod scan;
#[cfg(test)]
mod tests;

use std::{
    fs::File,
    io,
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    thread::JoinHandle,
};

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub(in crate::store) use self::replace::clear;
use self::{
    committer::{Committer, Request},
    disk::Disk,
    guard::guarded,
    open::{lock, open_tree, patiently, prepare},
    pace::Pace,
};
pub use self::{
    open::{Making, OpenError, Origin, home},
    replace::ReplaceError,
};
use super::{Batch, Key, Kind, Outcome, Range, Store, StoreError};

const OWN: Kind = Kind(0);
/// The most commits that wait for the committer; further callers wait to send theirs.
const QUEUE: usize = 1024;

/// A store on disk. Dropping it waits for the commits that were sent.
pub struct SledStore {
    failure: Failure,
    open: Mutex<Option<Open>>,
    origin: Origin,
    /// Which kinds of rows the store accepts.
    takes: fn(Kind) -> bool,
    pace: Arc<Pace>,
}

/// Everything that an open store holds; closing releases all of it.
struct Open {
    /// One handle for all reads: to make another takes longer than some of them.
    tree: Arc<::sled::Db>,
    requests: mpsc::Sender<Request>,
    committer: JoinHandle<()>,
}

impl SledStore {
    /// Opens or creates the store in `path`. Blocks: it reads the end of the log, syncs, and waits for a predecessor
    /// that is just closing.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_as(path, Making::Allowed, None)
    }

    /// As [`Self::open`], but fails if there is no store.
    pub fn existing(path: &Path) -> Result<Self, OpenError> {
        Self::open_as(path, Making::Refused, None)
    }

    /// As [`Self::open`], as one of the stores of `pair` unless it already belongs to another.
    pub(in crate::store) fn paired(path: &Path, pair: [u8; 16]) -> Result<Self, OpenError> {
        Self::open_as(path, Making::Allowed, Some(pair))
    }

    fn open_as(path: &Path, making: Making, pair: Option<[u8; 16]>) -> Result<Self, OpenError> {
        open::ensure(path, making)?;
        let lock = patiently(|| lock(path))?;
        Self::open_held(path, lock, pair)
    }

    /// The store's origin at the time of its opening.
    pub(in crate::store) fn origin(&self) -> Origin {
        self.origin
    }

    /// Accepts only rows of the kinds that `takes` accepts.
    pub(in crate::store) fn taking(self, takes: fn(Kind) -> bool) -> Self {
        let mut this = self;
        this.takes = takes;
        this
    }

    /// Waits until the store has failed; returns why. It answers nothing more then, until it is opened again.
    pub fn failed(&self) -> impl Future<Output = String> + Send + use<> {
        let failure = self.failure.clone();
        async move { failure.wait().await }
    }

    /// As [`Self::open`], with the lock of an existing directory.
    fn open_held(path: &Path, lock: File, pair: Option<[u8; 16]>) -> Result<Self, OpenError> {
        let io = OpenError::io(path);
        if let Some(why) = disk::doubted(path).map_err(&io)? {
            let path = path.to_owned();
            return Err(OpenError::InDoubt { path, why });
        }
        let tree = patiently(|| open_tree(path))?;
        let prepared = prepare(path, &tree, pair)?;
        let disk = Disk::open(path, prepared.sequence).map_err(&io)?;
        disk::tighten(path).map_err(&io)?;
        Self::start(lock, tree, disk, prepared.origin).map_err(io)
    }

    /// Records the operator's decision that the store in `path` is complete although a sync failed; `false` if it is
    /// not in doubt. Fails while a process has it open.
    pub fn trust(path: &Path) -> Result<bool, OpenError> {
        let _lock = lock(path)?;
        disk::trust(path).map_err(OpenError::io(path))
    }

    fn start(lock: File, tree: ::sled::Db, disk: Disk, origin: Origin) -> io::Result<Self> {
        let (requests, queue) = mpsc::channel(QUEUE);
        let failure = Failure::default();
        metrics::gauge!("intentd_store_failed").set(0.0);
        let committer = Committer::new(tree.clone(), disk, failure.clone());
        let run = move || {
            committer.run(queue);
            drop(lock);
        };
        let committer = std::thread::Builder::new()
            .name("store".into())
            .spawn(run)?;
        let open = Mutex::new(Some(Open {
            tree: Arc::new(tree),
            requests,
            committer,
        }));
        Ok(Self {
            failure,
            open,
            origin,
            takes: |_| true,
            pace: Arc::default(),
        })
    }

    fn with<T>(&self, take: impl FnOnce(&Open) -> T) -> Result<T, StoreError> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.as_ref().map(take).ok_or(StoreError::Closed)
    }

    fn stop(&self) -> Option<JoinHandle<()>> {
        let open = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()?;
        Some(open.committer)
    }

    /// Reads on a blocking thread.
    async fn reading<T: Send + 'static>(
        &self,
        read: impl FnOnce(&::sled::Tree) -> ::sled::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.failure.check()?;
        let (tree, failure) = (self.with(|open| open.tree.clone())?, self.failure.clone());
        let joined = tokio::task::spawn_blocking(move || look(tree, &failure, read)).await;
        joined.unwrap_or(Err(StoreError::Closed))
    }

    /// Reads on the caller's thread.
    async fn reading_here<T>(
        &self,
        read: impl FnOnce(&::sled::Tree) -> ::sled::Result<T>,
    ) -> Result<T, StoreError> {
        // Many such reads in a row wait for nothing: the task lets others run all the same.
        tokio::task::coop::consume_budget().await;
        self.failure.check()?;
        look(self.with(|open| open.tree.clone())?, &self.failure, read)
    }

    /// The rows under `keys`, in their order.
    async fn rows(&self, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let (pace, count) = (self.pace.clone(), keys.len());
        let read = move |tree: &::sled::Tree| {
            let row = |key| Ok(tree.get(key)?.map(|value: ::sled::IVec| value.to_vec()));
            pace.measured(count, || keys.into_iter().map(row).collect())
        };
        self.pace.pause(count).await;
        match self.pace.may_wait(count) {
            true => self.reading(read).await,
            false => self.reading_here(read).await,
        }
    }
}

/// Reads, and drops the tree: sled panics when the sync of its last handle fails.
fn look<T>(
    tree: Arc<::sled::Db>,
    failure: &Failure,
    read: impl FnOnce(&::sled::Tree) -> ::sled::Result<T>,
) -> Result<T, StoreError> {
    let looked = guarded(move || {
        let found = read(&tree);
        drop(tree);
        found
    });
    looked.map_err(|why| failure.set(&why))
}

#[async_trait]
impl Store for SledStore {
    async fn commit(&self, batch: Batch) -> Result<Outcome, StoreError> {
        if batch.oversized() {
            return Err(StoreError::Oversized);
        }
        if let Some(kind) = batch.kinds().find(|kind| !(self.takes)(*kind)) {
            return Err(StoreError::Foreign(kind.0));
        }
        let sender = self.with(|open| open.requests.clone())?;
        let (reply, answer) = oneshot::channel();
        sender
            .send(Request { batch, reply })
            .await
            .map_err(|_| StoreError::Closed)?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        let rows = self.rows(vec![flat(key)]).await?;
        Ok(rows.into_iter().next().flatten())
    }

    async fn read_all(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.rows(keys.iter().map(flat).collect()).await
    }

    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        self.reading(move |tree| scan::rows(tree, &range)).await
    }

    async fn close(&self) {
        if let Some(thread) = self.stop() {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("the store's committer ended with a panic");
            }
        }
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        if let Some(thread) = self.stop()
            && thread.join().is_err()
        {
            tracing::error!("the store's committer ended with a panic");
        }
    }
}

/// The first failure; after it the store answers nothing more.
#[derive(Clone, Default)]
struct Failure {
    why: Arc<OnceLock<String>>,
    /// Cancelled once there is one.
    known: CancellationToken,
}

impl Failure {
    fn check(&self) -> Result<(), StoreError> {
        self.why
            .get()
            .map_or(Ok(()), |why| Err(StoreError::Failed(why.clone())))
    }

    async fn wait(&self) -> String {
        self.known.cancelled().await;
        self.why.get().cloned().unwrap_or_default()
    }

    fn set(&self, why: &str) -> StoreError {
        let first = self.why.get_or_init(|| {
            tracing::error!(
                why,
                "the store failed; it takes no more commits until a restart"
            );
            metrics::gauge!("intentd_store_failed").set(1.0);
            why.to_owned()
        });
        self.known.cancel();
        StoreError::Failed(first.clone())
    }
}

fn flat(key: &Key) -> Vec<u8> {
    flat_name(key.kind, &key.name)
}

fn flat_name(kind: Kind, name: &[u8]) -> Vec<u8> {
    [&[kind.0], name].concat()
}
