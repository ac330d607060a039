//! Walks all rows of a store, of any kind.

use super::{Batch, Key, Kind, Range, Store, StoreError, rows::is_journal};

/// The most rows per read and per commit.
const PAGE: usize = 256;
/// The most bytes of a commit of copied rows, unless one row is larger.
const COMMIT_BYTES: usize = 4 << 20;

/// A stored row.
pub type Stored = (Key, Vec<u8>);

/// Reads every row, kind by kind, and in key order within a kind. It may or may not see rows that are written
/// meanwhile.
pub struct Walk<'a> {
    store: &'a dyn Store,
    kinds: std::ops::RangeInclusive<u8>,
    /// Of the names that are walked.
    prefix: Vec<u8>,
    range: Option<Range>,
    /// Rows that were read and not returned by [`Self::next`] yet.
    read: std::vec::IntoIter<Stored>,
}

impl<'a> Walk<'a> {
    /// Walks every kind; the backends use zero.
    pub fn new(store: &'a dyn Store) -> Self {
        Self {
            store,
            kinds: 1..=u8::MAX,
            prefix: Vec::new(),
            range: None,
            read: Vec::new().into_iter(),
        }
    }

    /// Walks one kind.
    pub fn of(store: &'a dyn Store, kind: Kind) -> Self {
        Self::under(store, kind, Vec::new())
    }

    /// Walks the rows of one kind whose names begin with `prefix`.
    pub fn under(store: &'a dyn Store, kind: Kind, prefix: Vec<u8>) -> Self {
        Self {
            kinds: kind.0..=kind.0,
            prefix,
            ..Self::new(store)
        }
    }

    /// The next row; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Stored>, StoreError> {
        if self.read.as_slice().is_empty() {
            self.read = self.page().await?.into_iter();
        }
        Ok(self.read.next())
    }

    /// The next rows; empty at the end. Not to be mixed with [`Self::next`].
    pub async fn page(&mut self) -> Result<Vec<Stored>, StoreError> {
        loop {
            let range = match self.range.take() {
                Some(range) => range,
                None => match self.kinds.next() {
                    Some(kind) => Range::new(Kind(kind), &self.prefix, None, PAGE),
                    None => return Ok(Vec::new()),
                },
            };
            let rows = self.store.scan(range.clone()).await?;
            if let Some((last, _)) = rows.last() {
                // What is not full is the last.
                self.range = (rows.len() == range.limit).then(|| Range {
                    after: Some(last.name.clone()),
                    ..range
                });
                return Ok(rows);
            }
        }
    }
}

/// Writes rows into an empty store, many per commit.
pub struct Filling<'a> {
    store: &'a dyn Store,
    batch: Batch,
    rows: usize,
    bytes: usize,
    /// Whether the collected rows belong to the journal.
    journal: bool,
}

impl<'a> Filling<'a> {
    pub fn new(store: &'a dyn Store) -> Self {
        Self {
            store,
            batch: Batch::new(),
            rows: 0,
            bytes: 0,
            journal: false,
        }
    }

    pub async fn put(&mut self, (key, value): Stored) -> Result<(), StoreError> {
        // No commit may be in both stores of a pair.
        let journal = is_journal(key.kind);
        if std::mem::replace(&mut self.journal, journal) != journal && self.rows > 0 {
            self.flush().await?;
        }
        self.rows += 1;
        self.bytes += key.name.len() + value.len();
        self.batch = std::mem::take(&mut self.batch).put(key, value);
        if self.rows >= PAGE || self.bytes >= COMMIT_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Commits the collected rows.
    pub async fn flush(&mut self) -> Result<(), StoreError> {
        (self.rows, self.bytes) = (0, 0);
        let written = self.store.commit(std::mem::take(&mut self.batch)).await?;
        let refused = || StoreError::Failed("a put was refused".into());
        written.is_applied().then_some(()).ok_or_else(refused)
    }
}

/// Copies every row of `from` into `to`, durably; returns the number.
pub async fn copy(from: &dyn Store, to: &dyn Store) -> Result<u64, StoreError> {
    let (mut walk, mut filling, mut count) = (Walk::new(from), Filling::new(to), 0);
    while let Some(row) = walk.next().await? {
        filling.put(row).await?;
        count += 1;
    }
    filling.flush().await?;
    Ok(count)
}

/// Whether both stores hold the same rows.
pub async fn same(one: &dyn Store, other: &dyn Store) -> Result<bool, StoreError> {
    let (mut one, mut other) = (Walk::new(one), Walk::new(other));
    loop {
        let page = one.page().await?;
        if page != other.page().await? {
            return Ok(false);
        }
        if page.is_empty() {
            return Ok(true);
        }
    }
}
