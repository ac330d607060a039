//! The kinds of rows: one table of what is known of each, for code that reads whole stores, and a row of any kind.

use alloy::primitives::{Address, B256, Bytes, U256};

use super::{
    ABOUT, ATTEMPT, CANDLE, CLAIM, CLAIMED, CONSUMPTION, CURSOR, DEAD, DELIVERY, ENTRY, EVENT,
    EVIDENCE, FACTS, HALT, HISTORY, INTEGRATOR, LANE, LARGE, LEASE, LISTED, MARK, OPEN, ORDER,
    OUTLAY, PARKED, PAUSE, QUOTE, REQUEST, RESERVATION, RESOURCE, RowError, SETTLEMENT, SIGHTING,
    SIGNATURE, SLOT, SUMMARY, TRANSACTION, VERSION, VOID, WATCH, WITNESS, about, account, attempt,
    candle, claim, claimed, consumption, cursor, dead, delivery, deposit_tx, entry, event,
    evidence, facts, halt, history, integrator, large, lease, listed, mark, open, order, outlay,
    parked, pause, quote, request, reservation, settlement, signature, slot, summary, transaction,
    tx_details, version, void, watch, words,
};
use crate::{
    integrator::Integrator,
    request::{Request, event::Event, fact::Facts, summary::Summary},
    store::{Key, Kind},
};

use self::{
    Kept::{Done, Good, Swept, With},
    Room::{Events, Journal, Other, Requests, Solver},
};

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
pub const KINDS: [RowKind; 40] = [
    RowKind { kind: ENTRY, name: "entry", room: Journal, kept: Good, refers: &[SLOT, CONSUMPTION],
        decode: |name, _, value| Ok(Row::Entry(name.text()?, entry::Entry::decode(value)?.into())) },
    RowKind { kind: SIGNATURE, name: "signature", room: Journal, kept: Good, refers: &[],
        decode: |name, _, value| name.signature(value) },
    RowKind { kind: CONSUMPTION, name: "consumption", room: Journal, kept: Good, refers: &[],
        decode: |name, _, value| Ok(Row::Consumption { what: name.text()?, by: consumption::decode(value)? }) },
    RowKind { kind: SLOT, name: "slot", room: Journal, kept: Good, refers: &[ENTRY],
        decode: |name, _, value| Ok(Row::Slot { slot: name.text()?, holder: slot::decode(value)? }) },
    RowKind { kind: WATCH, name: "watch", room: Journal, kept: Done, refers: &[ENTRY],
        decode: |name, key, value| {
            let (chain, _) = name.split()?;
            watch::decode(&chain, key, value).map(|watch| Row::Watch(chain, watch))
        } },
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
        decode: |name, key, value| {
            let (network, _) = name.split()?;
            deposit_tx::decode(&network, key, value).map(|row| Row::DepositTx(network, row))
        } },
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
        decode: |name, _, value| {
            let (request, deposit) = name.deposit()?;
            Ok(Row::Settlement { request, deposit, settlement: settlement::Settlement::decode(value)?.into() })
        } },
    RowKind { kind: EVENT, name: "event", room: Events, kept: Swept, refers: &[REQUEST, HISTORY],
        decode: |_, key, value| event::row(key, value).map(|(number, event)| Row::Event(number, event.into())) },
    RowKind { kind: INTEGRATOR, name: "integrator", room: Events, kept: Good, refers: &[],
        decode: |name, _, value| Ok(Row::Integrator(name.text()?, integrator::decode(value)?.into())) },
    RowKind { kind: DELIVERY, name: "delivery", room: Events, kept: Done, refers: &[EVENT, INTEGRATOR],
        decode: |name, _, value| {
            let (label, number) = name.event()?;
            Ok(Row::Delivery { label, number, delivery: delivery::Delivery::decode(value)? })
        } },
    RowKind { kind: DEAD, name: "dead", room: Events, kept: Swept, refers: &[EVENT, INTEGRATOR],
        decode: |name, _, value| {
            let (label, number) = name.event()?;
            Ok(Row::Dead { label, number, dead: dead::Dead::decode(value)? })
        } },
    RowKind { kind: WITNESS, name: "witness", room: Requests, kept: With(REQUEST), refers: &[REQUEST],
        decode: |_, key, value| Ok(Row::TxDetails(tx_details::either(key, value)?.into())) },
    RowKind { kind: SUMMARY, name: "summary", room: Requests, kept: With(REQUEST), refers: &[REQUEST, FACTS, LISTED],
        decode: |name, _, value| Ok(Row::Summary(name.word()?, summary::decode(value)?.into())) },
    RowKind { kind: LISTED, name: "listed", room: Requests, kept: With(REQUEST), refers: &[SUMMARY, FACTS],
        decode: |_, key, value| Ok(Row::Listed(listed::decode(key, value)?)) },
    RowKind { kind: MARK, name: "mark", room: Events, kept: Good, refers: &[],
        decode: |name, _, value| Ok(Row::Mark(name.text()?, mark::decode(value)?)) },
    RowKind { kind: PARKED, name: "parked", room: Solver, kept: Done, refers: &[CLAIM],
        decode: |name, _, value| {
            let (request, deposit) = name.deposit()?;
            Ok(Row::Parked { request, deposit, parked: parked::Parked::decode(value)?.into() })
        } },
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
    RowKind { kind: EVIDENCE, name: "evidence", room: Journal, kept: Good, refers: &[],
        decode: |name, _, value| name.evidence(value) },
    RowKind { kind: CLAIMED, name: "claimed", room: Journal, kept: Good, refers: &[EVIDENCE],
        decode: |name, _, value| Ok(Row::Claimed(name.word()?, claimed::Claimed::decode(value)?)) },
    RowKind { kind: ABOUT, name: "about", room: Journal, kept: Good, refers: &[ENTRY, VOID],
        decode: |_, key, value| Ok(Row::About(about::decode(key, value)?)) },
    RowKind { kind: ATTEMPT, name: "attempt", room: Solver, kept: Done, refers: &[LANE, CLAIM, REQUEST, RESOURCE],
        decode: |name, _, value| {
            let (lane, id) = name.of_lane()?;
            Ok(Row::Attempt { lane, id, attempt: attempt::Attempt::decode(value)?.into() })
        } },
    RowKind { kind: RESOURCE, name: "resource", room: Solver, kept: With(ATTEMPT), refers: &[ATTEMPT],
        decode: |name, _, value| {
            let (lane, resource) = name.of_lane()?;
            Ok(Row::Resource { lane, resource, holder: attempt::held_by(value)? })
        } },
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

/// A decoded row. Names are without the kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Row {
    Entry(String, Box<entry::Entry>),
    Signature {
        digest: B256,
        signer: Address,
        signature: [u8; 65],
    },
    Consumption {
        what: String,
        by: String,
    },
    Slot {
        slot: String,
        holder: String,
    },
    Watch(String, watch::Watch),
    Void {
        statement: String,
        count: u32,
        void: Box<void::Void>,
    },
    /// The statement, the second of its entry, and its evidence.
    Evidence(String, u64, Box<evidence::Evidence>),
    /// The digest of the request, and its statement.
    Claimed(B256, claimed::Claimed),
    About(about::About),
    Halt(String, halt::Halt),
    Request(B256, Box<Request>),
    Order {
        order: B256,
        request: B256,
    },
    Facts(B256, Box<Facts>),
    Cursor(String, cursor::Cursor),
    DepositTx(String, deposit_tx::Row),
    Transaction(transaction::Row),
    Open(B256),
    Claim(B256, Box<claim::Claim>),
    Account(String, account::Account),
    Attempt {
        lane: String,
        id: Bytes,
        attempt: Box<attempt::Attempt>,
    },
    Resource {
        lane: String,
        resource: Bytes,
        holder: Bytes,
    },
    Reservation {
        lane: String,
        attempt: Bytes,
        amount: U256,
    },
    Lease(String, lease::Lease),
    Settlement {
        request: B256,
        deposit: B256,
        settlement: Box<settlement::Settlement>,
    },
    Parked {
        request: B256,
        deposit: B256,
        parked: Box<parked::Parked>,
    },
    Paused(String, pause::Paused),
    Outlay(B256, outlay::Outlay),
    Candles(candle::Page, Vec<candle::Candle>),
    Event(u64, Box<Event>),
    Integrator(String, Box<Integrator>),
    TxDetails(Box<tx_details::Either>),
    Summary(B256, Box<Summary>),
    Listed(listed::Listed),
    Quote(B256, Box<Request>),
    Large(B256, large::Large),
    Delivery {
        label: String,
        number: u64,
        delivery: delivery::Delivery,
    },
    Dead {
        label: String,
        number: u64,
        dead: dead::Dead,
    },
    Mark(String, u64),
    History {
        request: B256,
        number: u64,
    },
    Version(String, u64),
}

impl Row {
    /// Decodes the row under `key` with the decoder of its kind.
    pub fn decode(key: &Key, value: &[u8]) -> Result<Self, RowError> {
        let known = kind(key.kind).ok_or_else(|| RowError::new("foreign", "unknown kind"))?;
        (known.decode)(Name(known.name, &key.name), key, value)
    }
}

/// The name of a row, and the name of its kind.
#[derive(Clone, Copy)]
struct Name<'a>(&'static str, &'a [u8]);

impl<'a> Name<'a> {
    fn wrong(self) -> RowError {
        RowError::new(self.0, "its name is not one of this kind")
    }

    fn utf8(self, bytes: &[u8]) -> Result<String, RowError> {
        let text = std::str::from_utf8(bytes).map_err(|_| self.wrong())?;
        (!text.is_empty())
            .then(|| text.to_owned())
            .ok_or_else(|| self.wrong())
    }

    fn text(self) -> Result<String, RowError> {
        self.utf8(self.1)
    }

    fn word(self) -> Result<B256, RowError> {
        B256::try_from(self.1).map_err(|_| self.wrong())
    }

    /// The text before the first zero byte, and the bytes after it.
    fn split(self) -> Result<(String, &'a [u8]), RowError> {
        let zero = self.1.iter().position(|byte| *byte == 0);
        let zero = zero.ok_or_else(|| self.wrong())?;
        Ok((self.utf8(&self.1[..zero])?, &self.1[zero + 1..]))
    }

    /// A request and a deposit.
    fn deposit(self) -> Result<(B256, B256), RowError> {
        words(self.1).ok_or_else(|| self.wrong())
    }

    /// A label and the number of an event.
    fn event(self) -> Result<(String, u64), RowError> {
        let (label, number) = delivery::parts(self.1).ok_or_else(|| self.wrong())?;
        Ok((label.to_owned(), number))
    }

    fn signature(self, value: &[u8]) -> Result<Row, RowError> {
        let (digest, signer) = self.1.split_first_chunk::<32>().ok_or(self.wrong())?;
        Ok(Row::Signature {
            digest: B256::from(*digest),
            signer: Address::try_from(signer).map_err(|_| self.wrong())?,
            signature: signature::decode(value)?,
        })
    }

    fn void(self, value: &[u8]) -> Result<Row, RowError> {
        let (statement, count) = self.1.split_last_chunk::<4>().ok_or(self.wrong())?;
        let statement = statement.strip_suffix(&[0]).ok_or(self.wrong())?;
        Ok(Row::Void {
            statement: self.utf8(statement)?,
            count: u32::from_be_bytes(*count),
            void: void::Void::decode(value)?.into(),
        })
    }

    fn evidence(self, value: &[u8]) -> Result<Row, RowError> {
        let (statement, at) = self.1.split_last_chunk::<8>().ok_or(self.wrong())?;
        let statement = statement.strip_suffix(&[0]).ok_or(self.wrong())?;
        let evidence = evidence::Evidence::decode(value)?;
        Ok(Row::Evidence(
            self.utf8(statement)?,
            u64::from_be_bytes(*at),
            evidence.into(),
        ))
    }

    /// A lane's name, and the bytes after its zero byte.
    fn of_lane(self) -> Result<(String, Bytes), RowError> {
        let (lane, rest) = self.split()?;
        match rest.is_empty() {
            true => Err(self.wrong()),
            false => Ok((lane, Bytes::copy_from_slice(rest))),
        }
    }

    fn reservation(self, value: &[u8]) -> Result<Row, RowError> {
        let (lane, rest) = self.split()?;
        // The hex of a currency has no zero byte; an id may have some.
        let (_, attempt) = Name(self.0, rest).of_lane()?;
        Ok(Row::Reservation {
            lane,
            attempt,
            amount: reservation::decode(value)?,
        })
    }
}
