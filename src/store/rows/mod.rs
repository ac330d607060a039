//! Row kinds, one file each: the key of a row, and the layout of its value.
//!
//! A value is one byte, the kind's `FORMAT`, and then the fields in postcard's encoding, unless the kind's file says
//! otherwise. A reader refuses an unknown format: nobody guesses what was signed.
//!
//! Every kind with its name and its value after the format byte. `text` is UTF-8 to the end, `‖0` a zero byte;
//! numbers are big endian, ids and hashes have 32 bytes. Formats are 1 unless another is named:
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
//! | 12 sighting | network ‖0, block (8), onchain id | `deposit_tx::Seen` |
//! | 13 transaction | 0 looked for, 1 settled; network ‖0, transaction bytes | `transaction::Tracked` |
//! | 14 open | request id | unix milliseconds (8), cause (32) |
//! | 15 claim | request id | format 2: `claim::Claim` in JSON |
//! | 16 lane | lane text | format 2: `account::Account` |
//! | 17 reservation | lane ‖0, currency in hex ‖0, attempt's id | amount (32) |
//! | 18 lease | what is held, text | `lease::Lease` |
//! | 19 settlement | request id, onchain id | format 2: `settlement::Settlement` in JSON |
//! | 20 event | number (8) | `request::event::Event` |
//! | 21 integrator | label text | `integrator::Integrator` in JSON |
//! | 22 delivery | label ‖0, event's number (8) | `delivery::Delivery` |
//! | 23 dead | label ‖0, event's number (8) | `dead::Dead` |
//! | 24 witness | 0; network ‖0, unix milliseconds (8), transaction text | `tx_details::Wanted` |
//! | 24 witness | 1; network ‖0, transaction text | `request::tx_details::TxDetails` in JSON |
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
//! Each kind's file says how long its rows live and roughly what one costs on the disk; the guide operate.md has the
//! table for operators. A stranger can create only quotes and transactions for the index to look for, free of charge;
//! [`super::retention`] deletes both.
//!
//! [`KINDS`] lists each kind once, for code that reads whole stores; [`Row`] is a row of any kind. The layout of the
//! whole store is [`super::FORMAT`].

/// Declares the encoding of a value with its row's format byte: the row's name, the encoder and the decoder.
macro_rules! stored {
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

pub mod account;
mod any;
pub mod attempt;
pub mod candle;
pub mod claim;
pub mod consumption;
pub mod cursor;
pub mod dead;
pub mod delivery;
pub mod deposit_tx;
pub mod entry;
pub mod event;
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

use super::{Key, Kind};

pub use any::Row;

use self::{
    Kept::{Done, Good, Swept, With},
    Room::{Events, Journal, Other, Requests, Solver},
    any::Name,
};

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
pub const ATTEMPT: Kind = Kind(50);
pub const RESOURCE: Kind = Kind(51);

/// One kind of row.
#[derive(Debug)]
pub struct RowKind {
    pub kind: Kind,
    /// The name for people.
    pub name: &'static str,
    pub room: Room,
    pub kept: Kept,
    /// The kinds of the rows that such a row refers to, or is checked against.
    pub refers: &'static [Kind],
    /// Decodes a row.
    decode: fn(Name<'_>, &Key, &[u8]) -> Result<Row, RowError>,
}

/// The part of the daemon that owns the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The journal's rows: they have a store with its own committer and directory.
    Journal,
    /// Rows of requests, of the index and of listings.
    Requests,
    Solver,
    /// Rows of events and their followers.
    Events,
    Other,
}

/// How long a row lives; the guide operate.md has it in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// For ever.
    Good,
    /// Until its owner has done its work.
    Done,
    /// As long as a row of this kind.
    With(Kind),
    /// Until retention deletes it for its age.
    Swept,
}

/// All kinds in the order of their numbers.
#[rustfmt::skip]
pub const KINDS: [RowKind; 37] = [
    RowKind { kind: ENTRY, name: "entry", room: Journal, kept: Good, refers: &[SLOT, CONSUMPTION],
        decode: |name, _, value| Ok(Row::Entry(name.text()?, entry::Entry::decode(value)?.into())) },
    RowKind { kind: SIGNATURE, name: "signature", room: Journal, kept: Good, refers: &[],
        decode: |name, _, value| name.signature(value) },
    RowKind { kind: CONSUMPTION, name: "consumption", room: Journal, kept: Good, refers: &[],
        decode: |name, _, value| Ok(Row::Consumption { what: name.text()?, by: consumption::decode(value)? }) },
    RowKind { kind: SLOT, name: "slot", room: Journal, kept: Good, refers: &[ENTRY],
        decode: |name, _, value| Ok(Row::Slot { slot: name.text()?, holder: slot::decode(value)? }) },
    RowKind { kind: WATCH, name: "watch", room: Journal, kept: Done, refers: &[ENTRY],
        decode: |name, key, value| name.watch(key, value) },
    RowKind { kind: VOID, name: "void", room: Journal, kept: Good, refers: &[VOID],
        decode: |name, _, value| name.void(value) },
    RowKind { kind: HALT, name: "halt", room: Journal, kept: Done, refers: &[],
        decode: |name, _, value| Ok(Row::Halt(name.text()?, halt::Halt::decode(value)?)) },
    RowKind { kind: REQUEST, name: "request", room: Requests, kept: Swept, refers: &[ORDER, SUMMARY],
        decode: |name, _, value| Ok(Row::Request(name.word()?, request::decode(value)?.into())) },
    RowKind { kind: ORDER, name: "order", room: Requests, kept: With(REQUEST), refers: &[REQUEST, QUOTE],
        decode: |name, _, value| Ok(Row::Order { order: name.word()?, request: order::decode(value)? }) },
    RowKind { kind: FACTS, name: "facts", room: Requests, kept: With(REQUEST), refers: &[REQUEST],
        decode: |name, _, value| Ok(Row::Facts(name.word()?, facts::decode(value)?.into())) },
    RowKind { kind: CURSOR, name: "cursor", room: Requests, kept: Good, refers: &[],
        decode: |name, _, value| Ok(Row::Cursor(name.text()?, cursor::Cursor::decode(value)?)) },
    RowKind { kind: SIGHTING, name: "sighting", room: Requests, kept: Done, refers: &[FACTS],
        decode: |name, key, value| name.deposit_tx(key, value) },
    RowKind { kind: TRANSACTION, name: "transaction", room: Requests, kept: Swept, refers: &[],
        decode: |_, key, value| Ok(Row::Transaction(transaction::row(key, value)?)) },
    RowKind { kind: OPEN, name: "open", room: Requests, kept: Done, refers: &[REQUEST],
        decode: |_, key, value| Ok(Row::Open(open::decode(key, value)?)) },
    RowKind { kind: CLAIM, name: "claim", room: Solver, kept: With(REQUEST), refers: &[REQUEST, FACTS, ATTEMPT],
        decode: |name, _, value| Ok(Row::Claim(name.word()?, claim::Claim::decode(value)?.into())) },
    RowKind { kind: LANE, name: "lane", room: Solver, kept: Good, refers: &[],
        decode: |name, _, value| Ok(Row::Account(name.text()?, account::Account::decode(value)?)) },
    RowKind { kind: RESERVATION, name: "reservation", room: Solver, kept: Done, refers: &[ATTEMPT],
        decode: |name, _, value| name.reservation(value) },
    RowKind { kind: LEASE, name: "lease", room: Solver, kept: Good, refers: &[],
        decode: |name, _, value| Ok(Row::Lease(name.text()?, lease::Lease::decode(value)?)) },
    RowKind { kind: SETTLEMENT, name: "settlement", room: Solver, kept: Done, refers: &[CLAIM],
        decode: |name, _, value| name.settlement(value) },
    RowKind { kind: EVENT, name: "event", room: Events, kept: Swept, refers: &[REQUEST, HISTORY],
        decode: |_, key, value| event::row(key, value).map(|(number, event)| Row::Event(number, event.into())) },
    RowKind { kind: INTEGRATOR, name: "integrator", room: Events, kept: Good, refers: &[],
        decode: |name, _, value| Ok(Row::Integrator(name.text()?, integrator::decode(value)?.into())) },
    RowKind { kind: DELIVERY, name: "delivery", room: Events, kept: Done, refers: &[EVENT, INTEGRATOR],
        decode: |name, _, value| name.delivery(value) },
    RowKind { kind: DEAD, name: "dead", room: Events, kept: Swept, refers: &[EVENT, INTEGRATOR],
        decode: |name, _, value| name.dead(value) },
    RowKind { kind: WITNESS, name: "witness", room: Requests, kept: With(REQUEST), refers: &[REQUEST],
        decode: |_, key, value| Ok(Row::TxDetails(tx_details::either(key, value)?.into())) },
    RowKind { kind: SUMMARY, name: "summary", room: Requests, kept: With(REQUEST), refers: &[REQUEST, FACTS, LISTED],
        decode: |name, _, value| Ok(Row::Summary(name.word()?, summary::decode(value)?.into())) },
    RowKind { kind: LISTED, name: "listed", room: Requests, kept: With(REQUEST), refers: &[SUMMARY, FACTS],
        decode: |_, key, value| Ok(Row::Listed(listed::decode(key, value)?)) },
    RowKind { kind: MARK, name: "mark", room: Events, kept: Good, refers: &[],
        decode: |name, _, value| Ok(Row::Mark(name.text()?, mark::decode(value)?)) },
    RowKind { kind: PARKED, name: "parked", room: Solver, kept: Done, refers: &[CLAIM],
        decode: |name, _, value| name.parked(value) },
    RowKind { kind: PAUSE, name: "pause", room: Solver, kept: Done, refers: &[],
        decode: |name, _, value| Ok(Row::Paused(name.text()?, pause::Paused::decode(value)?)) },
    RowKind { kind: OUTLAY, name: "outlay", room: Solver, kept: Done, refers: &[],
        decode: |name, _, value| Ok(Row::Outlay(name.word()?, outlay::Outlay::decode(value)?)) },
    RowKind { kind: HISTORY, name: "history", room: Events, kept: With(EVENT), refers: &[EVENT],
        decode: |_, key, value| history::row(key, value).map(|(request, number)| Row::History { request, number }) },
    RowKind { kind: VERSION, name: "version", room: Other, kept: Good, refers: &[],
        decode: |name, _, value| Ok(Row::Version(name.text()?, version::decode(value)?)) },
    RowKind { kind: QUOTE, name: "quote", room: Requests, kept: Swept, refers: &[ORDER, REQUEST, FACTS],
        decode: |name, _, value| Ok(Row::Quote(name.word()?, quote::decode(value)?.into())) },
    RowKind { kind: LARGE, name: "large", room: Requests, kept: With(QUOTE), refers: &[QUOTE],
        decode: |name, _, value| Ok(Row::Large(name.word()?, large::Large::decode(value)?)) },
    RowKind { kind: CANDLE, name: "candle", room: Other, kept: Swept, refers: &[],
        decode: |_, key, value| Ok(Row::Candles(candle::page(key)?, candle::decode(value)?)) },
    RowKind { kind: ATTEMPT, name: "attempt", room: Solver, kept: Done, refers: &[LANE, CLAIM, REQUEST, RESOURCE],
        decode: |name, _, value| name.attempt(value) },
    RowKind { kind: RESOURCE, name: "resource", room: Solver, kept: With(ATTEMPT), refers: &[ATTEMPT],
        decode: |name, _, value| name.resource(value) },
];

/// The entry of a kind.
pub fn kind(kind: Kind) -> Option<&'static RowKind> {
    static TABLE: &[RowKind] = &KINDS;
    TABLE.iter().find(|one| one.kind == kind)
}

/// Whether rows of `kind` belong to the journal.
pub fn is_journal(of: Kind) -> bool {
    kind(of).is_some_and(|one| one.room == Room::Journal)
}

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
