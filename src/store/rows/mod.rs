//! Row kinds, one file each: the key of a row, and the layout of its value.
//!
//! A value is one byte, the kind's `FORMAT`, and then the fields in postcard's encoding, unless the kind's file says
//! otherwise. A reader refuses an unknown format: nobody guesses what was signed.
//!
//! In names and values `text` is UTF-8 to the end, numbers are big endian, ids and hashes have 32 bytes.
//!
//! Each kind's file says how long its rows live and roughly what one costs on the disk; the guide operate.md has the
//! table for operators. A stranger can create only quotes and transactions for the index to look for, free of charge;
//! [`super::retention`] deletes both.
//!
//! [`KINDS`] lists each kind once, for code that reads whole stores; [`Row`] is a row of any kind. The layout of the
//! whole store is [`super::FORMAT`].

/// Declares the encoding of a value with its row's format byte: the row's name, the encoder and the decoder. For a type
/// of another module (`foreign`) they are functions of the row's file.
macro_rules! stored {
    (foreign $value:ty, $row:literal, $encode:ident, $decode:ident) => {
        pub fn encode(value: &$value) -> Result<Vec<u8>, super::RowError> {
            super::$encode($row, FORMAT, value)
        }

        pub fn decode(bytes: &[u8]) -> Result<$value, super::RowError> {
            super::$decode($row, FORMAT, bytes)
        }
    };
    ($value:ty, $row:literal, $encode:ident, $decode:ident) => {
        impl $value {
            pub fn encode(&self) -> Result<Vec<u8>, super::RowError> {
                super::$encode($row, FORMAT, self)
            }

            pub fn decode(bytes: &[u8]) -> Result<Self, super::RowError> {
                super::$decode($row, FORMAT, bytes)
            }
        }
    };
}

pub mod about;
pub mod account;
mod any;
pub mod attempt;
pub mod candle;
pub mod claim;
pub mod claimed;
pub mod consumption;
pub mod cursor;
pub mod dead;
pub mod delivery;
pub mod deposit_tx;
pub mod entry;
pub mod event;
pub mod evidence;
pub mod facts;
pub mod halt;
pub mod history;
pub mod integrator;
pub mod large;
pub mod lease;
pub mod listed;
pub mod mark;
pub mod open;
pub mod order;
pub mod outlay;
pub mod parked;
pub mod pause;
pub mod quote;
pub mod request;
pub mod reservation;
pub mod settlement;
pub mod signature;
pub mod slot;
pub mod summary;
#[cfg(test)]
mod tests;
pub mod transaction;
pub mod tx_details;
pub mod version;
pub mod void;
pub mod watch;

use alloy::primitives::B256;
use serde::{Serialize, de::DeserializeOwned};

use super::Kind;

pub use any::{KINDS, Kept, Room, Row, RowKind, is_journal, kind};

/// Every kind by its number on disk. The backends use zero.
pub const ENTRY: Kind = Kind(1);
pub const SIGNATURE: Kind = Kind(2);
pub const CONSUMPTION: Kind = Kind(3);
pub const SLOT: Kind = Kind(4);
pub const WATCH: Kind = Kind(5);
pub const VOID: Kind = Kind(6);
pub const HALT: Kind = Kind(7);
pub const REQUEST: Kind = Kind(8);
pub const ORDER: Kind = Kind(9);
pub const FACTS: Kind = Kind(10);
pub const CURSOR: Kind = Kind(11);
pub const SIGHTING: Kind = Kind(12);
pub const TRANSACTION: Kind = Kind(13);
pub const OPEN: Kind = Kind(14);
pub const CLAIM: Kind = Kind(15);
pub const LANE: Kind = Kind(16);
pub const RESERVATION: Kind = Kind(17);
pub const LEASE: Kind = Kind(18);
pub const SETTLEMENT: Kind = Kind(19);
pub const EVENT: Kind = Kind(20);
pub const INTEGRATOR: Kind = Kind(21);
pub const DELIVERY: Kind = Kind(22);
pub const DEAD: Kind = Kind(23);
pub const WITNESS: Kind = Kind(24);
pub const SUMMARY: Kind = Kind(25);
pub const LISTED: Kind = Kind(26);
pub const MARK: Kind = Kind(27);
pub const PARKED: Kind = Kind(28);
pub const PAUSE: Kind = Kind(29);
pub const OUTLAY: Kind = Kind(30);
pub const HISTORY: Kind = Kind(40);
pub const VERSION: Kind = Kind(41);
pub const QUOTE: Kind = Kind(42);
pub const LARGE: Kind = Kind(43);
pub const CANDLE: Kind = Kind(44);
pub const EVIDENCE: Kind = Kind(45);
pub const CLAIMED: Kind = Kind(46);
pub const ABOUT: Kind = Kind(47);
pub const ATTEMPT: Kind = Kind(50);
pub const RESOURCE: Kind = Kind(51);

/// A value that is no row of its kind, or has an unknown format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unreadable {row} row: {why}")]
pub struct RowError {
    pub row: &'static str,
    pub why: String,
}

impl RowError {
    pub(super) fn new(row: &'static str, why: impl ToString) -> Self {
        Self {
            row,
            why: why.to_string(),
        }
    }

    fn foreign(row: &'static str, format: u8) -> Self {
        Self::new(row, format!("format {format} is not known to this version"))
    }
}

/// Splits a name of two 32-byte words.
fn words(name: &[u8]) -> Option<(B256, B256)> {
    let (first, second) = name.split_at_checked(32)?;
    Some((B256::try_from(first).ok()?, B256::try_from(second).ok()?))
}

fn encode(row: &'static str, format: u8, fields: &impl Serialize) -> Result<Vec<u8>, RowError> {
    postcard::to_extend(fields, vec![format]).map_err(|e| RowError::new(row, e))
}

/// The bytes behind the format byte.
fn fields<'a>(row: &'static str, format: u8, bytes: &'a [u8]) -> Result<&'a [u8], RowError> {
    match bytes.split_first() {
        Some((found, fields)) if *found == format => Ok(fields),
        Some((found, _)) => Err(RowError::foreign(row, *found)),
        None => Err(RowError::new(row, "empty")),
    }
}

/// As [`fields`], of a row that is these bytes as they are.
fn plain<'a>(row: &'static str, format: u8, bytes: &'a [u8]) -> Result<&'a [u8], RowError> {
    fields(row, format, bytes).map_err(|_| RowError::new(row, "unknown format"))
}

/// As [`plain`], where the bytes are a text.
fn plain_text(row: &'static str, format: u8, bytes: &[u8]) -> Result<String, RowError> {
    let text = plain(row, format, bytes)?.to_vec();
    String::from_utf8(text).map_err(|e| RowError::new(row, e))
}

/// As [`plain`], where the bytes are a number, 8 bytes big endian.
fn plain_number(row: &'static str, format: u8, bytes: &[u8]) -> Result<u64, RowError> {
    let number = super::number(plain(row, format, bytes)?);
    number.ok_or_else(|| RowError::new(row, "not 8 bytes"))
}

/// The prefix of the names that begin with `name` and a zero byte.
fn prefix(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

pub(super) fn decode<T: DeserializeOwned>(
    row: &'static str,
    format: u8,
    bytes: &[u8],
) -> Result<T, RowError> {
    let fields = fields(row, format, bytes)?;
    match postcard::take_from_bytes(fields).map_err(|e| RowError::new(row, e))? {
        (fields, []) => Ok(fields),
        _ => Err(RowError::new(row, "trailing bytes")),
    }
}

fn encode_json(
    row: &'static str,
    format: u8,
    fields: &impl Serialize,
) -> Result<Vec<u8>, RowError> {
    let mut bytes = vec![format];
    serde_json::to_writer(&mut bytes, fields).map_err(|e| RowError::new(row, e))?;
    Ok(bytes)
}

pub(super) fn decode_json<T: DeserializeOwned>(
    row: &'static str,
    format: u8,
    bytes: &[u8],
) -> Result<T, RowError> {
    let fields = fields(row, format, bytes)?;
    serde_json::from_slice(fields).map_err(|e| RowError::new(row, e))
}
