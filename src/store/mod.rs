//! The daemon's store: rows under typed keys, with one operation to change them.
//!
//! [`Store::commit`] is the only write. It checks preconditions and writes rows in one step, and returns only when
//! everything that it wrote or compared survives a power loss. The store does not know the meaning of rows; [`rows`]
//! has the kinds and layouts.

pub mod check;
#[cfg(test)]
mod conformance;
pub mod dump;
#[cfg(test)]
mod fixtures;
pub mod integrators;
pub mod large;
pub mod lease;
pub mod listing;
pub mod memory;
pub mod pair;
mod preconditions;
pub mod requests;
pub mod reserve;
pub mod retention;
pub mod rows;
pub mod sled;
pub mod summaries;
pub mod walk;

use async_trait::async_trait;

pub use self::preconditions::Preconditions;
pub use self::sled::{Making, OpenError, ReplaceError, home};

/// The layout of a store as a whole: its row kinds and their relations. A store with another layout does not open.
pub const FORMAT: u8 = 4;
/// The older layouts whose exports can be imported ([`dump`]).
pub const OLDER: [u8; 2] = [1, 3];

/// The most bytes of a key.
pub const MAX_KEY: usize = 4 << 10;
/// The most bytes of a value.
pub const MAX_VALUE: usize = 1 << 20;

/// A kind of row. The numbers are on disk and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u8);

/// The key of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub kind: Kind,
    pub name: Vec<u8>,
}

impl Key {
    pub fn new(kind: Kind, name: impl Into<Vec<u8>>) -> Self {
        Self {
            kind,
            name: name.into(),
        }
    }
}

/// A commit's precondition on a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    Absent,
    Equals(Vec<u8>),
    AbsentOrEquals(Vec<u8>),
}

impl Expect {
    /// That a row is as it was found.
    pub fn unchanged(found: Option<Vec<u8>>) -> Self {
        found.map_or(Self::Absent, Self::Equals)
    }

    /// Whether `found` meets the precondition.
    pub fn met(&self, found: Option<&[u8]>) -> bool {
        match (self, found) {
            (Self::Absent | Self::AbsentOrEquals(_), None) => true,
            (Self::Equals(wanted) | Self::AbsentOrEquals(wanted), Some(found)) => found == wanted,
            (Self::Absent, Some(_)) | (Self::Equals(_), None) => false,
        }
    }
}

/// Preconditions, which must all hold, and the rows to write if they do.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    expects: Vec<(Key, Expect)>,
    writes: Vec<(Key, Option<Vec<u8>>)>,
    append: Option<Append>,
}

/// A row's key and value.
type Row = (Key, Vec<u8>);

/// A row to append to a log.
#[derive(Clone, Debug)]
struct Append {
    log: Kind,
    value: Vec<u8>,
    /// A row that leads to it: the name before the number, and the value.
    index: Option<Row>,
}

impl Append {
    /// The row as number `number`, and the row that leads to it.
    fn at(self, number: u64) -> (Row, Option<Row>) {
        let number = number.to_be_bytes();
        let index = self.index.map(|(mut key, value)| {
            key.name.extend_from_slice(&number);
            (key, value)
        });
        ((Key::new(self.log, number), self.value), index)
    }
}

impl Batch {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a precondition; the store checks them in the order of their addition.
    #[must_use]
    pub fn expect(mut self, key: Key, expect: Expect) -> Self {
        self.expects.push((key, expect));
        self
    }

    #[must_use]
    pub fn put(mut self, key: Key, value: Vec<u8>) -> Self {
        self.writes.push((key, Some(value)));
        self
    }

    #[must_use]
    pub fn delete(mut self, key: Key) -> Self {
        self.writes.push((key, None));
        self
    }

    /// Writes the row under `key`, which must still be `before`.
    #[must_use]
    pub fn swap(self, key: Key, before: Option<Vec<u8>>, after: Vec<u8>) -> Self {
        let unchanged = Expect::unchanged(before);
        self.expect(key.clone(), unchanged).put(key, after)
    }

    /// Deletes the row under `key`, which must still be `before`.
    #[must_use]
    pub fn remove(self, key: Key, before: Vec<u8>) -> Self {
        self.expect(key.clone(), Expect::Equals(before)).delete(key)
    }

    /// Appends a row to a log: a kind whose names are 8-byte big-endian numbers. The commit assigns the number, one
    /// above the log's last, or 1, so numbers follow the order of commits without gaps. One per batch. The newest row
    /// of a log must never be deleted.
    #[must_use]
    pub fn append(mut self, log: Kind, value: Vec<u8>) -> Self {
        self.append = Some(Append {
            log,
            value,
            index: None,
        });
        self
    }

    /// As [`Batch::append`], with one more row in the same step: the value of `lead` under its name followed by the
    /// number.
    #[must_use]
    pub fn append_led(self, log: Kind, value: Vec<u8>, lead: (Key, Vec<u8>)) -> Self {
        let mut batch = self.append(log, value);
        if let Some(append) = &mut batch.append {
            append.index = Some(lead);
        }
        batch
    }

    /// Takes the row for `value`: writes it if it is absent, and refuses the commit if it holds another value.
    #[must_use]
    pub fn claim(self, key: Key, value: Vec<u8>) -> Self {
        self.expect(key.clone(), Expect::AbsentOrEquals(value.clone()))
            .put(key, value)
    }

    /// Whether the batch has no preconditions and no writes.
    pub fn is_empty(&self) -> bool {
        self.expects.is_empty() && self.writes.is_empty() && self.append.is_none()
    }

    /// Whether it writes a row that is absent if its preconditions hold.
    fn writes_new_row(&self) -> bool {
        let absent = |key: &Key| {
            let mut expects = self.expects.iter();
            expects.any(|(of, expect)| of == key && *expect == Expect::Absent)
        };
        let mut writes = self.writes.iter();
        writes.any(|(key, value)| value.is_some() && absent(key))
    }

    /// The rows that the batch would write: the key of each, and the bytes of key and value.
    #[cfg(test)]
    fn sizes(&self) -> Vec<(Key, usize)> {
        let size = |(key, value): &(Key, Option<Vec<u8>>)| {
            let bytes = key.name.len() + value.as_ref().map_or(0, Vec::len);
            (key.clone(), bytes)
        };
        self.writes.iter().map(size).collect()
    }

    /// The kinds of all rows that the batch reads or writes.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        let keys = self.expects.iter().map(|(key, _)| key);
        let keys = keys.chain(self.writes.iter().map(|(key, _)| key));
        let append = self.append.iter();
        let append = append.flat_map(|one| {
            let lead = one.index.as_ref().map(|(key, _)| key.kind);
            std::iter::once(one.log).chain(lead)
        });
        keys.map(|key| key.kind).chain(append)
    }

    fn oversized(&self) -> bool {
        let keys = self.expects.iter().map(|(key, _)| key);
        let long = |key: &Key| key.name.len() > MAX_KEY;
        keys.chain(self.writes.iter().map(|(key, _)| key)).any(long)
            || self
                .writes
                .iter()
                .filter_map(|(_, value)| value.as_ref())
                .chain(self.append.iter().map(|append| &append.value))
                .any(|value| value.len() > MAX_VALUE)
    }

    /// The first precondition that does not hold, with the value found.
    fn refusal<R: AsRef<[u8]>, E>(
        &self,
        mut read: impl FnMut(&Key) -> Result<Option<R>, E>,
    ) -> Result<Option<Outcome>, E> {
        for (key, expect) in &self.expects {
            let row = read(key)?;
            let found: Option<&[u8]> = row.as_ref().map(AsRef::as_ref);
            if !expect.met(found) {
                return Ok(Some(Outcome::Refused {
                    key: key.clone(),
                    found: found.map(<[u8]>::to_vec),
                }));
            }
        }
        Ok(None)
    }
}

/// The result of a commit that the store decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every precondition held, and every row is written. `number` is that of the appended row.
    Applied { number: Option<u64> },
    /// The row under `key` held `found`; the commit wrote nothing.
    Refused { key: Key, found: Option<Vec<u8>> },
}

impl Outcome {
    /// Whether everything is written.
    pub fn is_applied(&self) -> bool {
        matches!(self, Self::Applied { .. })
    }

    /// Applied, without an appended row.
    pub const APPLIED: Self = Self::Applied { number: None };
}

/// The number in the name of a log's row; see [`Batch::append`].
pub fn number(name: &[u8]) -> Option<u64> {
    name.try_into().ok().map(u64::from_be_bytes)
}

/// A part of a kind's rows in key order.
#[derive(Clone, Debug)]
pub struct Range {
    pub kind: Kind,
    /// Only names with this prefix.
    pub prefix: Vec<u8>,
    /// Only names after this one, in the direction of the range.
    pub after: Option<Vec<u8>>,
    /// The most rows.
    pub limit: usize,
    /// From the greatest name down.
    pub reverse: bool,
}

impl Range {
    /// From the least name up.
    pub fn new(kind: Kind, prefix: &[u8], after: Option<Vec<u8>>, limit: usize) -> Self {
        Self {
            kind,
            prefix: prefix.to_vec(),
            after,
            limit,
            reverse: false,
        }
    }
}

/// Why a store gave no answer. After [`StoreError::Failed`] the state of the disk is unknown, so the store answers
/// nothing more until it is opened again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("store failed, restart needed: {0}")]
    Failed(String),
    #[error("store is closed")]
    Closed,
    #[error("row exceeds the store's limits")]
    Oversized,
    /// The journal's rows and all others are in two stores; a commit belongs to one of them.
    #[error("a row of kind {0} belongs to the other store")]
    Foreign(u8),
}

/// Makes errors of the types `from` errors of type `error`, by way of the one that both have to do with.
macro_rules! by_way_of {
    ($error:ty, $way:ty: $($from:ty),+) => {
        $(impl From<$from> for $error {
            fn from(error: $from) -> Self {
                <$way>::from(error).into()
            }
        })+
    };
}
pub(crate) use by_way_of;

/// A store. All backends pass the same conformance tests.
#[async_trait]
pub trait Store: Send + Sync {
    /// Checks and writes in one step, and returns when that is durable. The rows that it compared are durable too,
    /// whoever wrote them. A commit whose future is dropped may still happen.
    async fn commit(&self, batch: Batch) -> Result<Outcome, StoreError>;
    /// The row under `key`. Its commit may not be durable yet: a caller that acts on it irrevocably repeats it as a
    /// precondition of a commit.
    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError>;
    /// [`Store::read`] of several keys, in their order.
    async fn read_all(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let mut rows = Vec::with_capacity(keys.len());
        for key in keys {
            rows.push(self.read(key).await?);
        }
        Ok(rows)
    }
    /// The rows of a range in its order; as fresh as those of [`Store::read`].
    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError>;
    /// Finishes the started commits, then refuses all others.
    async fn close(&self);
}
