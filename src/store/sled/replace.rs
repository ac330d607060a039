//! Whole stores: made at once, or put in the place of another.

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
    open::{lock, patiently, place as place_of},
};
use crate::store::{
    Store, StoreError,
    walk::{copy, same},
};

/// Why a store is not replaced, or not made.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the rewritten store is not what the old one is; nothing was changed")]
    Different,
    #[error("there is something in {0} already")]
    Taken(PathBuf),
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: io::Error },
}

/// `path` with an ending: where a store is prepared, on the same file system.
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
    /// Rewrites the store in `path` into a fresh directory and puts that in its place in one step;
    /// how many rows it has. A crash leaves the old store or the new one in `path`, and perhaps the
    /// other in `path` + `.compacting`, which the next call removes. Fails while a process has it open.
    pub async fn compact(path: &Path) -> Result<u64, ReplaceError> {
        place_of(path, Making::Refused)?;
        let held = patiently(|| lock(path))?;
        let fresh = beside(path, ".compacting");
        clear(&fresh)?;
        let shared = held.try_clone().map_err(io_at(path))?;
        let old = Self::open_held(path, shared, None)?;
        let written = rewrite(&old, &fresh).await;
        // Before the directories change names: sled writes to a name when it ends.
        old.close().await;
        drop(old);
        let count = written?;
        exchange(&fresh, path)?;
        // The old one by now, and ours.
        remove(&fresh)?;
        drop(held);
        Ok(count)
    }

    /// Makes a store of `pair` in `path`, where nothing may be, with what `fill` puts into it: after an
    /// error or a crash nothing is there.
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
            place(&fresh, path)?;
            Ok(made)
        });
        if placed.is_err() {
            clear(&fresh)?;
        }
        placed
    }

    /// Removes a store that nobody has open.
    pub(in crate::store) fn remove(path: &Path) -> Result<(), ReplaceError> {
        clear(path)
    }
}

/// Copies `old` to a new store in `fresh` and looks whether it is the same.
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

/// Swaps two directories in one step, durably.
fn exchange(fresh: &Path, path: &Path) -> Result<(), ReplaceError> {
    renamed(fresh, path, RenameFlags::EXCHANGE)
}

/// Gives a finished store its name.
fn place(fresh: &Path, path: &Path) -> Result<(), ReplaceError> {
    settle(fresh)?;
    renamed(fresh, path, RenameFlags::NOREPLACE)
}

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

/// Removes what an earlier try left; not what somebody is working on.
fn clear(path: &Path) -> Result<(), ReplaceError> {
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
