//! Transactions in full, and the ones that the index still wants in full.
//!
//! Seen: key 1, the network's name, a zero byte, the transaction's text, hex in lower case. Value, format 1:
//! [`TxDetails`] in JSON.
//!
//! Wanted: key 0, the network's name, a zero byte, the unix milliseconds (8 bytes) of the next read, the same text.
//! Value, format 1: [`Wanted`] in postcard. The due rows of a network are the start of one range.
//!
//! A wanted row lives until the transaction is seen or given up, a seen row as long as the requests that it belongs
//! to; some 1 KB.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};

use super::{RowError, WITNESS, decode, decode_json, encode, encode_json};
use crate::{
    request::{
        fact::Facts,
        tx_details::{TxDetails, news},
    },
    store::{Batch, Key, Range, Store, requests::RequestsError},
};

const FORMAT: u8 = 1;
const WANTED: u8 = 0;
const SEEN: u8 = 1;

/// Why the index wants a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The request whose facts have the transaction in a block.
    pub request: B256,
    /// That block's hash.
    pub block: B256,
    /// The reads so far that did not show it in that block.
    pub tries: u32,
}

/// A row of a wanted transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub network: String,
    /// Unix milliseconds.
    pub next: u64,
    /// As [`spelled`].
    pub transaction: String,
    pub wanted: Wanted,
}

impl Row {
    pub fn key(&self) -> Key {
        let next = self.next.to_be_bytes();
        let text = spelled(&self.transaction);
        let name = [&*network(WANTED, &self.network), &next, text.as_bytes()];
        Key::new(WITNESS, name.concat())
    }

    pub fn value(&self) -> Result<Vec<u8>, RowError> {
        encode("witness", FORMAT, &self.wanted)
    }
}

/// Adds to `batch` the transactions of `request` that `after` has in another block than `before`, wanted from `now`
/// (unix milliseconds) on.
pub fn wanted(
    mut batch: Batch,
    request: &B256,
    (before, after): (&Facts, &Facts),
    now: u64,
) -> Result<Batch, RowError> {
    for one in news(before, after) {
        let row = Row {
            network: one.network.to_owned(),
            next: now,
            transaction: one.transaction.to_owned(),
            wanted: Wanted {
                request: *request,
                block: one.block,
                tries: 0,
            },
        };
        batch = batch.put(row.key(), row.value()?);
    }
    Ok(batch)
}

/// A transaction in full, if it was seen; the facts may have moved to another block since ([`TxDetails::is_of`]).
pub async fn of(
    store: &dyn Store,
    network: &str,
    transaction: &str,
) -> Result<Option<TxDetails>, RequestsError> {
    let found = store.read(&seen(network, transaction)).await?;
    Ok(found.map(|bytes| decode_seen(&bytes)).transpose()?)
}

/// A transaction's text in keys: hex has no case, every other form of ids has.
pub fn spelled(transaction: &str) -> String {
    let hex = transaction.bytes().all(|byte| byte.is_ascii_hexdigit());
    match hex || transaction.starts_with("0x") {
        true => transaction.to_ascii_lowercase(),
        false => transaction.to_owned(),
    }
}

/// The key of a transaction in full.
pub fn seen(name: &str, transaction: &str) -> Key {
    let text = spelled(transaction);
    Key::new(WITNESS, [&*network(SEEN, name), text.as_bytes()].concat())
}

fn network(state: u8, name: &str) -> Vec<u8> {
    [&[state], name.as_bytes(), &[0]].concat()
}

/// The first wanted transactions of a network, those due first at the front.
pub fn range(name: &str, limit: usize) -> Range {
    Range::new(WITNESS, &network(WANTED, name), None, limit)
}

pub fn encode_seen(tx_details: &TxDetails) -> Result<Vec<u8>, RowError> {
    encode_json("witness", FORMAT, tx_details)
}

pub fn decode_seen(bytes: &[u8]) -> Result<TxDetails, RowError> {
    decode_json("witness", FORMAT, bytes)
}

/// A row in either state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Either {
    Wanted(Row),
    Seen {
        network: String,
        transaction: String,
        tx_details: TxDetails,
    },
}

/// Decodes the row under `key`, in either state.
pub fn either(key: &Key, value: &[u8]) -> Result<Either, RowError> {
    let wrong = || RowError::new("witness", "not a witness's key");
    let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(wrong()),
    };
    let (state, name) = key.name.split_first().ok_or_else(wrong)?;
    let zero = name.iter().position(|byte| *byte == 0).ok_or_else(wrong)?;
    let (network, rest) = (text(&name[..zero])?, &name[zero + 1..]);
    match *state {
        WANTED => {
            let (next, transaction) = rest.split_first_chunk::<8>().ok_or_else(wrong)?;
            Ok(Either::Wanted(Row {
                network,
                next: u64::from_be_bytes(*next),
                transaction: text(transaction)?,
                wanted: decode("witness", FORMAT, value)?,
            }))
        }
        SEEN => Ok(Either::Seen {
            network,
            transaction: text(rest)?,
            tx_details: decode_seen(value)?,
        }),
        _ => Err(wrong()),
    }
}

/// Decodes a row of [`range`].
pub fn row(key: &Key, value: &[u8]) -> Result<Row, RowError> {
    match either(key, value)? {
        Either::Wanted(row) => Ok(row),
        Either::Seen { .. } => Err(RowError::new("witness", "it is not wanted")),
    }
}
