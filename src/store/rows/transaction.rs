//! Transactions that somebody told of, or that deposits were found in.
//!
//! Key: 0 while it is still looked for and 1 after that, the network's name, a zero byte, the
//! transaction's bytes. Value, format 1: [`Tracked`] in postcard. All that are looked for are one
//! range. While it is looked for it lives as long as that takes, after that 30 days from the first word
//! of it ([`retention`](crate::store::retention)); some 200 bytes.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};

use super::{RowError, TRANSACTION};
use crate::store::{Key, Range};

const FORMAT: u8 = 1;
const WATCHED: u8 = 0;
const SETTLED: u8 = 1;

/// The value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracked {
    /// As the network's explorers spell it.
    pub text: String,
    /// The requests that it was found to belong to, in a block.
    pub requests: Vec<B256>,
    /// The request that somebody said it belongs to: it is looked for longer, and that is all.
    pub claimed: Option<B256>,
    pub outcome: Outcome,
    /// Looks that have not settled it.
    pub tries: u32,
    /// Unix milliseconds of the first word of it.
    pub first: u64,
    /// Unix milliseconds before which it is not looked for again.
    pub next: u64,
}

/// What has become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// No block with it has been seen.
    Waiting,
    /// In a block.
    Included,
    /// In a block, without effects.
    Failed,
    /// Never seen in all the time that it was looked for.
    GivenUp,
}

/// One row of those that are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub network: String,
    pub id: Vec<u8>,
    pub tracked: Tracked,
}

/// Where a transaction is that is still looked for.
pub fn watched(network: &str, id: &[u8]) -> Key {
    key(WATCHED, network, id)
}

/// Where it is after that.
pub fn settled(network: &str, id: &[u8]) -> Key {
    key(SETTLED, network, id)
}

fn key(state: u8, network: &str, id: &[u8]) -> Key {
    let name = [&[state], network.as_bytes(), &[0], id].concat();
    Key::new(TRANSACTION, name)
}

stored!(Tracked, "transaction", encode, decode);

/// The row under `key`, whatever its state.
pub fn row(key: &Key, value: &[u8]) -> Result<Row, RowError> {
    let wrong = || RowError::new("transaction", "not a transaction's key");
    let (_, name) = key.name.split_first().ok_or_else(wrong)?;
    let zero = name.iter().position(|byte| *byte == 0).ok_or_else(wrong)?;
    let network = std::str::from_utf8(&name[..zero]).map_err(|_| wrong())?;
    Ok(Row {
        network: network.to_owned(),
        id: name[zero + 1..].to_vec(),
        tracked: Tracked::decode(value)?,
    })
}

/// All that are looked for, after the row `after`.
pub fn range(after: Option<&Key>, limit: usize) -> Range {
    Range::new(
        TRANSACTION,
        &[WATCHED],
        after.map(|key| key.name.clone()),
        limit,
    )
}

/// All that are not looked for any more, after the one named.
pub fn settled_range(after: Option<Vec<u8>>, limit: usize) -> Range {
    Range::new(TRANSACTION, &[SETTLED], after, limit)
}
