//! The two stores of a daemon: the journal of what was signed, and everything else. Each has its own directory, log
//! and committer, so that signing does not wait for the index.
//!
//! Both hold the same 16 random bytes, and neither opens without the other, because a missing or foreign journal does
//! not know what was signed.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;

use super::{
    Batch, Key, Kind, OpenError, Outcome, Range, ReplaceError, Store, StoreError, rows,
    sled::{Making, SledStore, clear, home},
};

/// The directories of the two stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directories {
    data: PathBuf,
    journal: PathBuf,
}

impl Directories {
    /// Both in `DATA_DIR`, or the journal in `JOURNAL_DIR` where that is set.
    pub fn new(data: impl Into<PathBuf>, journal: Option<PathBuf>) -> Self {
        let data = data.into();
        let journal = journal.unwrap_or_else(|| data.clone());
        Self { data, journal }
    }

    /// The directory of the store of everything but the journal.
    pub fn store(&self) -> PathBuf {
        self.data.join("store")
    }

    /// The directory of the journal.
    pub fn journal(&self) -> PathBuf {
        self.journal.join("journal")
    }

    /// `DATA_DIR` itself.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Paths on the file systems of both stores.
    pub fn homes(&self) -> Vec<PathBuf> {
        vec![self.data.clone(), self.journal.clone()]
    }

    /// Fails where other users have access to an existing store.
    pub fn closed(&self) -> Result<(), OpenError> {
        let homes = self.homes().into_iter();
        let mut there = homes.filter(|directory| directory.is_dir());
        there.try_for_each(|directory| home(&directory, Making::Refused))
    }

    fn apart(&self) -> OpenError {
        OpenError::Apart {
            store: self.store(),
            journal: self.journal(),
        }
    }
}

/// Both stores, open.
pub struct Pair {
    pub store: Arc<SledStore>,
    pub journal: Arc<SledStore>,
}

impl Pair {
    /// Opens both. Creates them where neither has rows and `making` allows it. Blocks.
    pub fn open(directories: &Directories, making: Making) -> Result<Self, OpenError> {
        for directory in directories.homes() {
            home(&directory, making)?;
        }
        let (store, journal) = (there(&directories.store())?, there(&directories.journal())?);
        let origins = [&store, &journal].map(|one| one.as_ref().map(SledStore::origin));
        let pairs = origins.map(|one| one.and_then(|one| one.pair));
        let neither = store.is_none() && journal.is_none();
        if let (Some(store), Some(journal)) = (store, journal)
            && pairs[0].is_some()
            && pairs[0] == pairs[1]
        {
            return Ok(Self::of(store, journal));
        }
        // Neither has rows: an earlier start may have ended between the two.
        let blank = pairs[0].is_none() && origins.iter().flatten().all(|one| one.blank);
        match making {
            Making::Allowed if blank => Self::made(directories, pairs[1]),
            Making::Refused if neither => Err(OpenError::Missing(directories.store())),
            _ => Err(directories.apart()),
        }
    }

    /// The journal first: only its absence says that nothing was signed.
    fn made(directories: &Directories, pair: Option<[u8; 16]>) -> Result<Self, OpenError> {
        let pair = match pair {
            Some(pair) => pair,
            None => fresh(&directories.store())?,
        };
        let journal = SledStore::paired(&directories.journal(), pair)?;
        let store = SledStore::paired(&directories.store(), pair)?;
        Ok(Self::of(store, journal))
    }

    fn of(store: SledStore, journal: SledStore) -> Self {
        Self {
            store: Arc::new(store.taking(|kind| !rows::is_journal(kind))),
            journal: Arc::new(journal.taking(|kind| rows::is_journal(kind) || kind.0 == 0)),
        }
    }

    /// Creates both, where nothing may be, with the rows that `fill` writes. After an error neither exists. After a
    /// crash the journal may exist alone, and does not open.
    pub async fn create<T, E: From<ReplaceError>>(
        directories: &Directories,
        fill: impl AsyncFnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let pair = fresh(&directories.store()).map_err(ReplaceError::from)?;
        for path in [directories.store(), directories.journal()] {
            if path.exists() {
                return Err(ReplaceError::Taken(path).into());
            }
        }
        let (store, journal) = (directories.store(), directories.journal());
        let made = SledStore::create(&store, pair, async |store: &Arc<SledStore>| {
            SledStore::create(&journal, pair, async |journal: &Arc<SledStore>| {
                let both = Self {
                    store: store.clone(),
                    journal: journal.clone(),
                };
                fill(&both).await
            })
            .await
        })
        .await;
        if made.is_err() && journal.is_dir() {
            // The journal got its name before the store failed.
            clear(&journal)?;
        }
        made
    }

    /// Rewrites both without deleted and replaced rows; returns the number of rows.
    pub async fn compact(directories: &Directories) -> Result<u64, ReplaceError> {
        // Checks first that both belong together.
        drop(Self::open(directories, Making::Refused)?);
        let store = SledStore::compact(&directories.store()).await?;
        Ok(store + SledStore::compact(&directories.journal()).await?)
    }

    /// Both stores with their names.
    pub fn both(&self) -> [(&'static str, &SledStore); 2] {
        [("store", &self.store), ("journal", &self.journal)]
    }

    fn of_kind(&self, kind: Kind) -> &SledStore {
        match rows::is_journal(kind) {
            true => &self.journal,
            false => &self.store,
        }
    }
}

/// The store in `path`, if there is one.
fn there(path: &Path) -> Result<Option<SledStore>, OpenError> {
    match path.is_dir() {
        true => SledStore::existing(path).map(Some),
        false => Ok(None),
    }
}

fn fresh(path: &Path) -> Result<[u8; 16], OpenError> {
    let mut pair = [0; 16];
    let filled = getrandom::fill(&mut pair);
    filled.map_err(|error| OpenError::io(path)(io::Error::other(error.to_string())))?;
    Ok(pair)
}

/// The pair as one store, for code that reads or copies everything: each row goes to the store of its kind, and no
/// commit is in both.
#[async_trait]
impl Store for Pair {
    async fn commit(&self, batch: Batch) -> Result<Outcome, StoreError> {
        let first = batch.kinds().next();
        match first {
            Some(kind) => self.of_kind(kind).commit(batch).await,
            None => self.store.commit(batch).await,
        }
    }

    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.of_kind(key.kind).read(key).await
    }

    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        self.of_kind(range.kind).scan(range).await
    }

    async fn close(&self) {
        self.journal.close().await;
        self.store.close().await;
    }
}

#[cfg(test)]
mod tests;
