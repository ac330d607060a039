//! The two stores of a daemon: the journal of what was signed, and everything else. Each has its own
//! directory, log and committer, so that signing waits for nobody who indexes.
//!
//! They know each other: both hold the same 16 random bytes, and neither is opened without the other,
//! for a journal that is missing or another one's does not know what was signed.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;

use super::{
    Batch, Key, Kind, OpenError, Outcome, Range, ReplaceError, Store, StoreError, rows,
    sled::{Making, SledStore, home},
};

/// Where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directories {
    data: PathBuf,
    journal: PathBuf,
}

impl Directories {
    /// In `DATA_DIR`; the journal in `JOURNAL_DIR` where that is another one.
    pub fn new(data: impl Into<PathBuf>, journal: Option<PathBuf>) -> Self {
        let data = data.into();
        let journal = journal.unwrap_or_else(|| data.clone());
        Self { data, journal }
    }

    /// The directory of all but the journal.
    pub fn store(&self) -> PathBuf {
        self.data.join("store")
    }

    /// The directory of the journal.
    pub fn journal(&self) -> PathBuf {
        self.journal.join("journal")
    }

    /// `DATA_DIR`.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// What the file systems of both are asked by.
    pub fn homes(&self) -> Vec<PathBuf> {
        vec![self.data.clone(), self.journal.clone()]
    }

    /// Fails where somebody else may look into what there is of them.
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
    /// Opens both. They are made where neither has been written to and that is allowed. Blocks.
    pub fn open(places: &Directories, making: Making) -> Result<Self, OpenError> {
        for directory in places.homes() {
            home(&directory, making)?;
        }
        let (store, journal) = (there(&places.store())?, there(&places.journal())?);
        let origins = [&store, &journal].map(|one| one.as_ref().map(SledStore::origin));
        let pairs = origins.map(|one| one.and_then(|one| one.pair));
        let neither = store.is_none() && journal.is_none();
        if let (Some(store), Some(journal)) = (store, journal)
            && pairs[0].is_some()
            && pairs[0] == pairs[1]
        {
            return Ok(Self::of(store, journal));
        }
        // Nothing was written: a start may have been cut off between the two.
        let blank = pairs[0].is_none() && origins.iter().flatten().all(|one| one.blank);
        match making {
            Making::Allowed if blank => Self::made(places, pairs[1]),
            Making::Refused if neither => Err(OpenError::Missing(places.store())),
            _ => Err(places.apart()),
        }
    }

    /// The journal first: it alone says that nothing was signed.
    fn made(places: &Directories, pair: Option<[u8; 16]>) -> Result<Self, OpenError> {
        let pair = match pair {
            Some(pair) => pair,
            None => fresh(&places.store())?,
        };
        let journal = SledStore::paired(&places.journal(), pair)?;
        let store = SledStore::paired(&places.store(), pair)?;
        Ok(Self::of(store, journal))
    }

    fn of(store: SledStore, journal: SledStore) -> Self {
        Self {
            store: Arc::new(store.taking(|kind| !rows::is_journal(kind))),
            journal: Arc::new(journal.taking(|kind| rows::is_journal(kind) || kind.0 == 0)),
        }
    }

    /// Makes both, where nothing may be, with what `fill` puts into them: after an error nothing is
    /// there. After a crash the journal may be there alone, and is not opened so.
    pub async fn create<T, E: From<ReplaceError>>(
        places: &Directories,
        fill: impl AsyncFnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let pair = fresh(&places.store()).map_err(ReplaceError::from)?;
        for path in [places.store(), places.journal()] {
            if path.exists() {
                return Err(ReplaceError::Taken(path).into());
            }
        }
        let (store, journal) = (places.store(), places.journal());
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
            // It had its name before the other had one.
            SledStore::remove(&journal)?;
        }
        made
    }

    /// Rewrites both without what was deleted or replaced; how many rows there are.
    pub async fn compact(places: &Directories) -> Result<u64, ReplaceError> {
        // Neither without the other.
        drop(Self::open(places, Making::Refused)?);
        let store = SledStore::compact(&places.store()).await?;
        Ok(store + SledStore::compact(&places.journal()).await?)
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
    getrandom::fill(&mut pair).map_err(|error| OpenError::Io {
        path: path.to_owned(),
        error: io::Error::other(error.to_string()),
    })?;
    Ok(pair)
}

/// As one store, for those who read or copy all of it: each row is where its kind belongs, and no
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
