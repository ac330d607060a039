//! Row kinds, one file each: where a row of the kind lives and what its bytes are.
//!
//! A value is one byte, the kind's `FORMAT`, and then the fields in postcard's encoding, unless the
//! kind's file says otherwise. A reader refuses a format that it does not know: nobody guesses what was signed.
//!
//! Every kind with the name it lives under and its value behind the format byte. `text` is UTF-8 to
//! its end, `‖0` a zero byte, numbers are big endian, an id or hash has 32 bytes; all formats are 1
//! but where another is named:
//!
//! | kind | name | value |
//! |---|---|---|
//! | 1 entry | statement text | `entry::Entry` |
//! | 2 signature | digest, signer (20) | `r ‖ s ‖ v`, 65 bytes |
//! | 3 consumption | what is consumed, text | what it serves, text |
//! | 4 slot | slot text | the holder's statement, text |
//! | 5 watch | chain ‖0, block (8), statement text | block hash, parent hash, unix time (8); format 2: not final when signed |
//! | 6 void | statement ‖0, count (4) | `void::Void` |
//! | 7 halt | chain text | `halt::Halt` |
//! | 8 request | request id | format 3: `request::Request` in JSON, a zstd frame with a dictionary; 2: without the dictionary; 1: without the frame |
//! | 9 order | order id | request id |
//! | 10 facts | request id | `request::fact::Facts` in JSON |
//! | 11 cursor | network text | `cursor::Cursor` |
//! | 12 sighting | network ‖0, block (8), onchain id | `sighting::Seen` |
//! | 13 transaction | 0 looked for, 1 settled; network ‖0, transaction bytes | `transaction::Tracked` |
//! | 14 open | request id | unix milliseconds (8), cause (32) |
//! | 15 claim | request id | format 2: `claim::Claim` in JSON |
//! | 16 lane | lane text | format 2: `lane::Lane` |
//! | 17 reservation | lane ‖0, currency in hex ‖0, attempt's id | amount (32) |
//! | 18 lease | what is held, text | `lease::Lease` |
//! | 19 settlement | request id, onchain id | format 2: `settlement::Settlement` in JSON |
//! | 20 event | number (8) | `request::event::Event` |
//! | 21 integrator | label text | `integrator::Integrator` in JSON |
//! | 22 delivery | label ‖0, event's number (8) | `delivery::Delivery` |
//! | 23 dead | label ‖0, event's number (8) | `dead::Dead` |
//! | 24 witness | 0; network ‖0, unix milliseconds (8), transaction text | `witness::Wanted` |
//! | 24 witness | 1; network ‖0, transaction text | `request::witness::Witness` in JSON |
//! | 25 summary | request id | `request::summary::Summary` |
//! | 26 listed | order, name and position, see `listed` | `request::summary::Summary`, or what leads to it |
//! | 27 mark | follower's name, text | number of an event (8) |
//! | 28 parked | request id, onchain id | `parked::Parked` in JSON |
//! | 29 pause | `solver` | `pause::Paused` in JSON |
//! | 30 outlay | request id | `outlay::Outlay` |
//! | 40 history | request id, event's number (8) | nothing |
//! | 41 version | what, text | version (8) |
//! | 42 quote | request id | unix seconds (8), value of a request row |
//! | 43 large | request id | `large::Large` |
//! | 44 candle | step (1), network ‖0, currency, unix seconds (8) | `candle::Candle`s |
//! | 50 attempt | lane ‖0, attempt's id | `attempt::Attempt` |
//! | 51 resource | lane ‖0, resource | attempt's id |
//!
//! Each kind's file says how long its rows live, and roughly what one costs on the disk; for operators that
//! is a table in the guide operate.md. What a stranger
//! makes for nothing is a quote, a transaction that is looked for, and nothing else; both are forgotten
//! ([`super::retention`]).
//!
//! [`Row`] reads a row of any kind. The layout of the store as a whole is [`super::FORMAT`].

mod any;
pub mod attempt;
pub mod candle;
pub mod claim;
pub mod consumption;
pub mod cursor;
pub mod dead;
pub mod delivery;
pub mod entry;
pub mod event;
pub mod facts;
pub mod halt;
pub mod history;
pub mod integrator;
pub mod lane;
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
pub mod sighting;
pub mod signature;
pub mod slot;
pub mod summary;
#[cfg(test)]
mod tests;
pub mod transaction;
pub mod version;
pub mod void;
pub mod watch;
pub mod witness;

use alloy::primitives::B256;
use serde::{Serialize, de::DeserializeOwned};

use super::Kind;

pub use any::Row;

/// Every kind, by its number on disk. Zero is the backends' own.
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
pub const ATTEMPT: Kind = Kind(50);
pub const RESOURCE: Kind = Kind(51);

/// The kinds by name.
pub const KINDS: [(Kind, &str); 37] = [
    (ENTRY, "entry"),
    (SIGNATURE, "signature"),
    (CONSUMPTION, "consumption"),
    (SLOT, "slot"),
    (WATCH, "watch"),
    (VOID, "void"),
    (HALT, "halt"),
    (REQUEST, "request"),
    (ORDER, "order"),
    (FACTS, "facts"),
    (CURSOR, "cursor"),
    (SIGHTING, "sighting"),
    (TRANSACTION, "transaction"),
    (OPEN, "open"),
    (CLAIM, "claim"),
    (LANE, "lane"),
    (RESERVATION, "reservation"),
    (LEASE, "lease"),
    (SETTLEMENT, "settlement"),
    (EVENT, "event"),
    (INTEGRATOR, "integrator"),
    (DELIVERY, "delivery"),
    (DEAD, "dead"),
    (WITNESS, "witness"),
    (SUMMARY, "summary"),
    (LISTED, "listed"),
    (MARK, "mark"),
    (PARKED, "parked"),
    (PAUSE, "pause"),
    (OUTLAY, "outlay"),
    (HISTORY, "history"),
    (VERSION, "version"),
    (QUOTE, "quote"),
    (LARGE, "large"),
    (CANDLE, "candle"),
    (ATTEMPT, "attempt"),
    (RESOURCE, "resource"),
];

/// Whether rows of `kind` are the journal's: they have a store of their own, with a committer and a
/// directory of its own.
pub fn is_journal(kind: Kind) -> bool {
    let own = [ENTRY, SIGNATURE, CONSUMPTION, SLOT, WATCH, VOID, HALT];
    own.contains(&kind)
}

/// Bytes that are not a row of their kind, or of a format that this version does not know.
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

/// A name that is two words of 32 bytes.
fn words(name: &[u8]) -> Option<(B256, B256)> {
    let (first, second) = name.split_at_checked(32)?;
    Some((B256::try_from(first).ok()?, B256::try_from(second).ok()?))
}

fn encode(row: &'static str, format: u8, fields: &impl Serialize) -> Result<Vec<u8>, RowError> {
    postcard::to_extend(fields, vec![format]).map_err(|e| RowError::new(row, e))
}

pub(super) fn decode<T: DeserializeOwned>(
    row: &'static str,
    format: u8,
    bytes: &[u8],
) -> Result<T, RowError> {
    let (found, fields) = bytes
        .split_first()
        .ok_or_else(|| RowError::new(row, "empty"))?;
    if *found != format {
        return Err(RowError::foreign(row, *found));
    }
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
    match bytes.split_first() {
        Some((found, fields)) if *found == format => {
            serde_json::from_slice(fields).map_err(|e| RowError::new(row, e))
        }
        Some((found, _)) => Err(RowError::foreign(row, *found)),
        None => Err(RowError::new(row, "empty")),
    }
}
