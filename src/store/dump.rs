//! A store as a file of lines, to look at and to move with.
//!
//! The first line is [`Head`], the last one [`Foot`], every line between them a [`Line`]; all are
//! JSON objects, and each line ends with a newline. Rows come in the order of kind and name. `sha256`
//! of the foot is over every byte before the foot's line: a file that was cut or changed is refused.

mod format3;
mod older;

use std::{
    fmt,
    io::{self, BufRead, Read, Write},
};

use alloy::primitives::{B256, Bytes};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use self::older::Older;
use super::{
    FORMAT, Key, Kind, MAX_KEY, MAX_VALUE, OLDER, Store, StoreError,
    rows::RowError,
    walk::{Filling, Walk},
};

/// The version of these lines.
pub const VERSION: u32 = 1;
/// Longer than the line of the greatest row.
const MAX_LINE: u64 = 4 * (MAX_KEY + MAX_VALUE) as u64;

/// `{"dump":"intentd store","version":1,"format":4}`
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Always `intentd store`.
    pub dump: String,
    /// [`VERSION`].
    pub version: u32,
    /// The store's [`FORMAT`]; those of [`OLDER`] are read too.
    pub format: u8,
}

/// `{"kind":7,"name":"0x…","value":"0x…"}`
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The row's kind, by its number on disk.
    pub kind: u8,
    /// The key within the kind, hex.
    pub name: Bytes,
    /// The row's bytes, hex.
    pub value: Bytes,
}

/// `{"rows":2,"sha256":"0x…"}`
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Foot {
    /// How many rows there are.
    pub rows: u64,
    pub sha256: B256,
}

const DUMP: &str = "intentd store";

/// Why a store cannot be written or read as lines.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("this is no export of a store")]
    Foreign,
    #[error(
        "the export has version {version} and format {format}, this version knows {VERSION}, and formats {FORMAT}, {} and {}: it was written by {}",
        OLDER[1], OLDER[0],
        match *version > VERSION || *format > FORMAT {
            true => "a newer version, which imports it",
            false => "an older version: go on with that one, or begin in an empty DATA_DIR with another signing key",
        }
    )]
    Version { version: u32, format: u8 },
    /// Of an older version.
    #[error(transparent)]
    Row(#[from] RowError),
    #[error(
        "the export has payments or deliveries under way, or payments that no statement of it covers ({0}): finish this with the version that wrote it, then export again"
    )]
    Unfinished(String),
    #[error("the export has a fill and a refund of the same deposits")]
    Opposites,
    #[error("line {0} is not a row")]
    Line(u64),
    #[error("line {0} is not behind the row before it")]
    Order(u64),
    #[error("the export is not whole: its last line is missing")]
    Cut,
    #[error("the export was changed: its checksum or its number of rows is another")]
    Changed,
}

/// What was put into a store.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub rows: u64,
    /// Rows of an older version that were not, by their kinds.
    pub left_out: Vec<(&'static str, u64)>,
}

impl fmt::Display for Imported {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} rows", self.rows)?;
        match self.left_out.is_empty() {
            true => Ok(()),
            false => write!(out, " (left out: {})", older::listed(&self.left_out)),
        }
    }
}

/// Counts and hashes what passes.
struct Seal<T> {
    inner: T,
    hash: Sha256,
    rows: u64,
}

impl<T> Seal<T> {
    fn new(inner: T) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
            rows: 0,
        }
    }

    fn foot(&self) -> Foot {
        Foot {
            rows: self.rows,
            sha256: B256::from_slice(&self.hash.clone().finalize()),
        }
    }
}

impl<W: Write> Seal<W> {
    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.hash.update(&bytes);
        self.inner.write_all(&bytes)
    }
}

impl<R: BufRead> Seal<R> {
    /// The next line, with its end; `None` behind the last.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let limited = &mut (&mut self.inner).take(MAX_LINE);
        limited.read_until(b'\n', &mut bytes)?;
        Ok((!bytes.is_empty()).then_some(bytes))
    }
}

/// Writes every row of `store`; how many.
pub async fn write(store: &dyn Store, out: &mut impl Write) -> Result<u64, DumpError> {
    let mut out = Seal::new(out);
    out.line(&Head {
        dump: DUMP.into(),
        version: VERSION,
        format: FORMAT,
    })?;
    let mut walk = Walk::new(store);
    while let Some((key, value)) = walk.next().await? {
        out.line(&Line {
            kind: key.kind.0,
            name: key.name.into(),
            value: value.into(),
        })?;
        out.rows += 1;
    }
    let foot = out.foot();
    out.line(&foot)?;
    out.inner.flush()?;
    Ok(out.rows)
}

/// How rows become those of this version.
enum Carrying {
    Nothing,
    /// An export of a store of format 3.
    Format3,
    /// An export of a store of format 1, with what is known of it so far.
    Journal(Box<Older>),
}

/// Puts every row of `input` into `store`, of an older version what is carried over ([`older`], [`format3`]).
/// After an error some may be there.
pub async fn read(store: &dyn Store, input: &mut impl BufRead) -> Result<Imported, DumpError> {
    let mut input = Seal::new(input);
    let mut carrying = match head(&mut input)? {
        FORMAT => Carrying::Nothing,
        format3::STORE => Carrying::Format3,
        _ => Carrying::Journal(Box::default()),
    };
    let (mut filling, mut last) = (Filling::new(store), None);
    loop {
        let bytes = input.next()?.ok_or(DumpError::Cut)?;
        let number = input.rows + 2;
        let Ok(line) = serde_json::from_slice::<Line>(&bytes) else {
            foot(&mut input, &bytes)?;
            filling.flush().await?;
            let rows = input.rows;
            return match carrying {
                Carrying::Journal(older) => older.end(store).await,
                Carrying::Nothing | Carrying::Format3 => Ok(Imported {
                    rows,
                    left_out: Vec::new(),
                }),
            };
        };
        let key = Key::new(Kind(line.kind), line.name.to_vec());
        if line.kind == 0 || !bytes.ends_with(b"\n") {
            return Err(DumpError::Line(number));
        }
        if last.as_ref().is_some_and(|last| *last >= key) {
            return Err(DumpError::Order(number));
        }
        input.hash.update(&bytes);
        input.rows += 1;
        last = Some(key.clone());
        let row = (key, line.value.to_vec());
        let rows = match &mut carrying {
            Carrying::Nothing => vec![row],
            Carrying::Format3 => format3::row(row)?,
            Carrying::Journal(older) => older.row(row)?.into_iter().collect(),
        };
        for row in rows {
            filling.put(row).await?;
        }
    }
}

/// The store's format.
fn head(input: &mut Seal<impl BufRead>) -> Result<u8, DumpError> {
    let bytes = input.next()?.ok_or(DumpError::Foreign)?;
    let head: Head = serde_json::from_slice(&bytes).map_err(|_| DumpError::Foreign)?;
    let Head {
        dump,
        version,
        format,
    } = head;
    if dump != DUMP {
        return Err(DumpError::Foreign);
    }
    if version != VERSION || !(format == FORMAT || OLDER.contains(&format)) {
        return Err(DumpError::Version { version, format });
    }
    input.hash.update(&bytes);
    Ok(format)
}

/// `bytes` is no row: then it has to be the foot, right, and the end.
fn foot(input: &mut Seal<impl BufRead>, bytes: &[u8]) -> Result<(), DumpError> {
    let number = input.rows + 2;
    let whole = bytes.ends_with(b"\n");
    let foot = serde_json::from_slice::<Foot>(bytes).ok().filter(|_| whole);
    let Some(foot) = foot else {
        let error = if whole {
            DumpError::Line(number)
        } else {
            DumpError::Cut
        };
        return Err(error);
    };
    let wanted = input.foot();
    if (foot.rows, foot.sha256) != (wanted.rows, wanted.sha256) || input.next()?.is_some() {
        return Err(DumpError::Changed);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
