//! Creates whole stores, and replaces a store by a rewritten one.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{
    Making, OpenError, SledStore,
    disk::{self, sync_names},
    open::{ensure, lock, patiently},
};
use crate::store::{
    Store, StoreError,
    walk::{copy, same},
};

/// Why a store is not created or replaced.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the rewritten store differs from the old one; nothing was changed")]
    Different,
    #[error("there is something in {0} already")]
    Taken(PathBuf),
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: io::Error },
}

/// `path` with an ending: the place where a store is prepared, on the same file system.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn io_at(path: &Path) -> impl FnOnce(io::Error) -> ReplaceError {
    let path = path.to_owned();
    move |error| ReplaceError::Io { path, error }
}

impl SledStore {
    /// Rewrites the store in `path` into a fresh directory and swaps the two in one step; returns the number of rows.
    /// A crash leaves the old store or the new one in `path`, and perhaps the other in `path` + `.compacting`, which
    /// the next call removes. Fails while a process has the store open.
    pub async fn compact(path: &Path) -> Result<u64, ReplaceError> {
        ensure(path, Making::Refused)?;
        let held = patiently(|| lock(path))?;
        let fresh = beside(path, ".compacting");
        clear(&fresh)?;
        let shared = held.try_clone().map_err(io_at(path))?;
        let old = Self::open_held(path, shared, None)?;
        let written = rewrite(&old, &fresh).await;
        // Before the directories are renamed, because sled writes by path when it ends.
        old.close().await;
        drop(old);
        let count = written?;
        renamed(&fresh, path, RenameFlags::EXCHANGE)?;
        // The old store is there now, and we hold its lock.
        remove(&fresh)?;
        drop(held);
        Ok(count)
    }

    /// Creates a store of `pair` in `path`, which must be empty, with the rows that `fill` writes. After an error or
    /// a crash `path` is empty.
    pub(in crate::store) async fn create<T, E: From<ReplaceError>>(
        path: &Path,
        pair: [u8; 16],
        fill: impl AsyncFnOnce(&Arc<Self>) -> Result<T, E>,
    ) -> Result<T, E> {
        if path.exists() {
            return Err(ReplaceError::Taken(path.to_owned()).into());
        }
        let fresh = beside(path, ".importing");
        clear(&fresh)?;
        let store = Arc::new(Self::paired(&fresh, pair).map_err(ReplaceError::Open)?);
        let filled = fill(&store).await;
        store.close().await;
        drop(store);
        let placed = filled.and_then(|made| {
            settle(&fresh)?;
            renamed(&fresh, path, RenameFlags::NOREPLACE)?;
            Ok(made)
        });
        if placed.is_err() {
            clear(&fresh)?;
        }
        placed
    }
}

/// Copies `old` to a new store in `fresh` and checks that they are equal.
async fn rewrite(old: &SledStore, fresh: &Path) -> Result<u64, ReplaceError> {
    let new = match old.origin().pair {
        Some(pair) => SledStore::paired(fresh, pair)?,
        None => SledStore::open(fresh)?,
    };
    let copied = async {
        let count = copy(old, &new).await?;
        let same = same(old, &new).await?;
        Ok(same.then_some(count))
    };
    let copied: Result<_, StoreError> = copied.await;
    new.close().await;
    drop(new);
    let count = copied?.ok_or(ReplaceError::Different)?;
    settle(fresh)?;
    Ok(count)
}

/// Renames a directory, or swaps two, in one step and durably.
fn renamed(fresh: &Path, path: &Path, how: RenameFlags) -> Result<(), ReplaceError> {
    let moved = renameat_with(CWD, fresh, CWD, path, how).map_err(io::Error::from);
    moved
        .and_then(|()| sync_names(disk::parent(path)))
        .map_err(io_at(path))
}

/// Makes every file of a closed store durable.
fn settle(path: &Path) -> Result<(), ReplaceError> {
    let each = |directory: &Path| -> io::Result<()> {
        for entry in std::fs::read_dir(directory)? {
            File::open(entry?.path())?.sync_all()?;
        }
        sync_names(directory)
    };
    each(&path.join("blobs"))
        .and_then(|()| each(path))
        .map_err(io_at(path))
}

/// Removes a store, or the remains of an earlier try, unless a process is using them.
pub(in crate::store) fn clear(path: &Path) -> Result<(), ReplaceError> {
    if !path.exists() {
        return Ok(());
    }
    let held = lock(path)?;
    remove(path)?;
    drop(held);
    Ok(())
}

fn remove(path: &Path) -> Result<(), ReplaceError> {
    std::fs::remove_dir_all(path)
        .and_then(|()| sync_names(disk::parent(path)))
        .map_err(io_at(path))
}
