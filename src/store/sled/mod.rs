//! The embedded backend: one sled tree, one thread that writes it, one process per directory.
//!
//! A row's key in the tree is its kind's byte and its name. Kind 0 is ours: `format` (the layout of
//! the whole directory, one byte) and `sequence` (the number of the last group of commits, 8 bytes
//! big endian; see [`disk::Witness`]). sled panics on some damage, so every use of it that may meet
//! damage stands behind [`guarded`].

mod committer;
mod disk;
#[cfg(test)]
mod tests;

use std::{
    fs::{File, TryLockError},
    io,
    ops::Bound,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

use self::{
    committer::{Committer, Request},
    disk::Disk,
};
use super::{Batch, Key, Kind, Outcome, Range, Store, StoreError};

/// The directory layout that this version reads and writes.
const FORMAT: u8 = 1;
const OWN: Kind = Kind(0);
/// sled's default is a gigabyte.
const CACHE_BYTES: u64 = 64 << 20;
/// Commits that may wait for the committer; further callers wait to hand theirs over.
const QUEUE: usize = 1024;

/// How often, and how far apart, a held directory is tried.
const LOCK_ATTEMPTS: usize = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Why a directory cannot be opened as a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{0} is in use by another process")]
    Locked(PathBuf),
    #[error("the store in {path} is damaged: {why}")]
    Damaged { path: PathBuf, why: String },
    #[error("the store in {path} has format {found}, this version knows format {FORMAT}")]
    Format { path: PathBuf, found: u8 },
    /// Rows that were acknowledged may be gone, although the store looks whole.
    #[error(
        "the store in {path} is in doubt ({why}): look after its disk, then say `intentd journal trust`"
    )]
    InDoubt { path: PathBuf, why: String },
    #[error("cannot open the store in {path}: {error}")]
    Io { path: PathBuf, error: io::Error },
}

impl OpenError {
    /// Somebody holds the directory: our lock, or sled's own.
    fn is_held(&self) -> bool {
        match self {
            Self::Locked(_) => true,
            Self::Io { error, .. } => error.to_string().contains("could not acquire lock"),
            Self::Damaged { .. } | Self::Format { .. } | Self::InDoubt { .. } => false,
        }
    }
}

/// See the module. Dropping it waits for the commits that were handed over.
pub struct SledStore {
    failure: Failure,
    open: Mutex<Option<Open>>,
}

/// What an open store holds on to; closing it lets go of all of it.
struct Open {
    tree: ::sled::Db,
    requests: mpsc::Sender<Request>,
    committer: JoinHandle<()>,
}

impl SledStore {
    /// Opens or creates the store in `path`. Blocks: it reads the log's tail and syncs, and waits
    /// for a predecessor that is just letting go.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let io = |error| OpenError::Io {
            path: path.to_owned(),
            error,
        };
        disk::create(path, &mut disk::sync_names).map_err(io)?;
        let lock = patiently(|| lock(path))?;
        if let Some(why) = disk::doubted(path).map_err(io)? {
            let path = path.to_owned();
            return Err(OpenError::InDoubt { path, why });
        }
        let tree = patiently(|| open_tree(path))?;
        let sequence = prepare(path, &tree)?;
        let disk = Disk::open(path, sequence).map_err(io)?;
        Self::start(lock, tree, disk).map_err(io)
    }

    /// An operator's word that the store in `path` is what it should be although a sync failed;
    /// `false` if nobody doubts it. Fails while a process has it open.
    pub fn trust(path: &Path) -> Result<bool, OpenError> {
        let _lock = lock(path)?;
        disk::trust(path).map_err(|error| OpenError::Io {
            path: path.to_owned(),
            error,
        })
    }

    fn start(lock: File, tree: ::sled::Db, disk: Disk) -> io::Result<Self> {
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
            tree,
            requests,
            committer,
        }));
        Ok(Self { failure, open })
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

    async fn reading<T: Send + 'static>(
        &self,
        read: impl FnOnce(&::sled::Tree) -> ::sled::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.failure.check()?;
        let (tree, failure) = (self.with(|open| open.tree.clone())?, self.failure.clone());
        let task = move || guarded(|| read(&tree)).map_err(|why| failure.set(&why));
        let joined = tokio::task::spawn_blocking(task).await;
        joined.unwrap_or(Err(StoreError::Closed))
    }
}

#[async_trait]
impl Store for SledStore {
    async fn commit(&self, batch: Batch) -> Result<Outcome, StoreError> {
        if batch.oversized() {
            return Err(StoreError::Oversized);
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
        let key = flat(key);
        self.reading(move |tree| Ok(tree.get(key)?.map(|value| value.to_vec())))
            .await
    }

    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        self.reading(move |tree| {
            let prefix = flat_name(range.kind, &range.prefix);
            let after = range
                .after
                .as_ref()
                .map(|after| flat_name(range.kind, after));
            let from = match after.filter(|after| *after >= prefix) {
                Some(after) => Bound::Excluded(after),
                None => Bound::Included(prefix.clone()),
            };
            tree.range::<Vec<u8>, _>((from, Bound::Unbounded))
                .take_while(|row| {
                    row.as_ref()
                        .map_or(true, |(key, _)| key.starts_with(&prefix))
                })
                .take(range.limit)
                .map(|row| {
                    row.map(|(key, value)| (Key::new(range.kind, &key[1..]), value.to_vec()))
                })
                .collect()
        })
        .await
    }

    async fn close(&self) {
        if let Some(thread) = self.stop() {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("the store's committer did not end in order");
            }
        }
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        if let Some(thread) = self.stop()
            && thread.join().is_err()
        {
            tracing::error!("the store's committer did not end in order");
        }
    }
}

/// The first failure, after which nothing is answered any more.
#[derive(Clone, Default)]
struct Failure(Arc<OnceLock<String>>);

impl Failure {
    fn check(&self) -> Result<(), StoreError> {
        self.0
            .get()
            .map_or(Ok(()), |why| Err(StoreError::Failed(why.clone())))
    }

    fn set(&self, why: &str) -> StoreError {
        let first = self.0.get_or_init(|| {
            tracing::error!(
                why,
                "the store failed; it takes no more commits until a restart"
            );
            metrics::gauge!("intentd_store_failed").set(1.0);
            why.to_owned()
        });
        StoreError::Failed(first.clone())
    }
}

/// Runs what may meet damage: sled's errors and its panics become one text.
fn guarded<T>(act: impl FnOnce() -> ::sled::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(panic) => Err(panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("panic")
            .to_owned()),
    }
}

/// Tries again for a second while somebody holds the directory.
fn patiently<T>(attempt: impl Fn() -> Result<T, OpenError>) -> Result<T, OpenError> {
    for _ in 0..LOCK_ATTEMPTS {
        match attempt() {
            Err(error) if error.is_held() => {
                #[allow(clippy::disallowed_methods, reason = "opening blocks anyway")]
                std::thread::sleep(LOCK_PAUSE);
            }
            opened => return opened,
        }
    }
    attempt()
}

/// A lock of our own: sled's answers with a text only.
fn lock(path: &Path) -> Result<File, OpenError> {
    let io = |error| OpenError::Io {
        path: path.to_owned(),
        error,
    };
    let mut options = File::options();
    let file = options
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.join("lock"));
    let file = file.map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(io(error)),
    }
}

fn open_tree(path: &Path) -> Result<::sled::Db, OpenError> {
    let config = ::sled::Config::new().path(path).cache_capacity(CACHE_BYTES);
    let mut refused = None;
    let opened = guarded(|| {
        config.open().inspect_err(|e| {
            if let ::sled::Error::Io(e) = e {
                refused = Some(io::Error::new(e.kind(), e.to_string()));
            }
        })
    });
    opened.map_err(|why| match refused {
        // sled reports a torn or missing piece of its own files as one of these.
        Some(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::NotFound
            ) =>
        {
            OpenError::Io {
                path: path.to_owned(),
                error,
            }
        }
        _ => OpenError::Damaged {
            path: path.to_owned(),
            why,
        },
    })
}

/// Checks the layout and the witness; answers with the last group's number.
fn prepare(path: &Path, tree: &::sled::Db) -> Result<u64, OpenError> {
    let damaged = |why: String| OpenError::Damaged {
        path: path.to_owned(),
        why,
    };
    let own = |name: &str| {
        let key = flat(&Key::new(OWN, name));
        guarded(|| tree.get(key)).map_err(damaged)
    };
    match own("format")?.as_deref() {
        Some(&[FORMAT]) => {}
        Some(found) => {
            let found = found.first().copied().unwrap_or_default();
            return Err(OpenError::Format {
                path: path.to_owned(),
                found,
            });
        }
        None => {
            let key = flat(&Key::new(OWN, "format"));
            guarded(|| tree.insert(key, &[FORMAT])).map_err(damaged)?;
            guarded(|| tree.flush()).map_err(damaged)?;
        }
    }
    let sequence = match own("sequence")?.as_deref() {
        None => 0,
        Some(bytes) => u64::from_be_bytes(
            bytes
                .try_into()
                .map_err(|_| damaged("sequence is not 8 bytes".into()))?,
        ),
    };
    let witnessed = disk::witnessed(path).map_err(|error| OpenError::Io {
        path: path.to_owned(),
        error,
    })?;
    if witnessed.is_some_and(|witnessed| witnessed > sequence) {
        return Err(damaged(format!(
            "its log ends at commit group {sequence}, but group {} was acknowledged",
            witnessed.unwrap_or_default()
        )));
    }
    Ok(sequence)
}

fn flat(key: &Key) -> Vec<u8> {
    flat_name(key.kind, &key.name)
}

fn flat_name(kind: Kind, name: &[u8]) -> Vec<u8> {
    [&[kind.0], name].concat()
}
