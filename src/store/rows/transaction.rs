//! Transactions that somebody submitted, or in which deposits were found.
//!
//! Key: 0 while the index looks for it and 1 after that, the network's name, a zero byte, the transaction's bytes.
//! Value, format 1: [`Tracked`] in postcard. The transactions that the index looks for are one range. The row lives
//! while the index looks for it, then until 30 days after its submission ([`retention`](crate::store::retention));
//! some 200 bytes.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};

use super::{RowError, TRANSACTION};
use crate::store::{Key, Range};

const FORMAT: u8 = 1;
/// What the names of the transactions begin with that the index looks for.
pub const LOOKED_FOR: u8 = 0;
const SETTLED: u8 = 1;

/// A transaction that the index tracks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracked {
    /// The id in the spelling of the network's explorers.
    pub text: String,
    /// The requests that it pays for or belongs to: of a waiting deposit since it was seen, else since a block has it.
    pub requests: Vec<B256>,
    /// The request that the submitter named; it only makes the index look longer.
    pub claimed: Option<B256>,
    pub outcome: Outcome,
    /// The looks so far that did not settle it.
    pub tries: u32,
    /// Unix milliseconds of its submission.
    pub first: u64,
    /// Unix milliseconds of the next look.
    pub next: u64,
}

/// The state of a tracked transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Not yet seen in a block.
    Waiting,
    /// In a block.
    Included,
    /// In a block, but failed.
    Failed,
    /// Not seen in the whole time of the search.
    GivenUp,
}

/// A row of a transaction that the index looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub network: String,
    pub id: Vec<u8>,
    pub tracked: Tracked,
    /// The value as it was read.
    pub stored: Vec<u8>,
}

/// The key of a transaction that the index looks for.
pub fn looked_for(network: &str, id: &[u8]) -> Key {
    key(LOOKED_FOR, network, id)
}

/// The key of a settled transaction.
pub fn settled(network: &str, id: &[u8]) -> Key {
    key(SETTLED, network, id)
}

fn key(state: u8, network: &str, id: &[u8]) -> Key {
    let name = [&[state], network.as_bytes(), &[0], id].concat();
    Key::new(TRANSACTION, name)
}

stored!(Tracked, "transaction", encode, decode);

/// Decodes the row under `key`, in either state.
pub fn row(key: &Key, value: &[u8]) -> Result<Row, RowError> {
    let wrong = || RowError::new("transaction", "not a transaction's key");
    let (_, name) = key.name.split_first().ok_or_else(wrong)?;
    let zero = name.iter().position(|byte| *byte == 0).ok_or_else(wrong)?;
    let network = std::str::from_utf8(&name[..zero]).map_err(|_| wrong())?;
    Ok(Row {
        network: network.to_owned(),
        id: name[zero + 1..].to_vec(),
        tracked: Tracked::decode(value)?,
        stored: value.to_vec(),
    })
}

/// All settled transactions, after the named one.
pub fn settled_range(after: Option<Vec<u8>>, limit: usize) -> Range {
    Range::new(TRANSACTION, &[SETTLED], after, limit)
}
