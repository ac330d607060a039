//! Deposits that the index has seen in blocks that a reorg can still remove.
//!
//! Key: the network's name, a zero byte, the block number as 8 bytes big endian, the deposit's
//! onchain id (32 bytes). Value, format 1: [`Seen`] in postcard. Names hold no zero byte, so a
//! network's rows are one range, lowest block first.
//!
//! The row lives until its block is too deep for a reorg; some 150 bytes.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};

use super::{RowError, SIGHTING, decode as decode_fields, encode as encode_fields, prefix};
use crate::store::{Key, Range};

const FORMAT: u8 = 1;

/// The block and the request of a seen deposit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The block's hash.
    pub hash: B256,
    /// The request whose facts contain it; `None` where no request has the order that it names.
    pub request: Option<B256>,
}

/// A row with the parts of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub number: u64,
    pub onchain_id: B256,
    pub seen: Seen,
}

pub fn key(network: &str, number: u64, onchain_id: &B256) -> Key {
    let name = [
        &prefix(network),
        &number.to_be_bytes()[..],
        onchain_id.as_slice(),
    ];
    Key::new(SIGHTING, name.concat())
}

pub fn encode(seen: &Seen) -> Result<Vec<u8>, RowError> {
    encode_fields("sighting", FORMAT, seen)
}

/// Decodes the row of `network` under `key`.
pub fn decode(network: &str, key: &Key, value: &[u8]) -> Result<Row, RowError> {
    let wrong = || RowError::new("sighting", "not of format 1");
    let rest = key.name.get(network.len() + 1..).ok_or_else(wrong)?;
    let (number, id) = rest.split_first_chunk().ok_or_else(wrong)?;
    Ok(Row {
        number: u64::from_be_bytes(*number),
        onchain_id: B256::try_from(id).map_err(|_| wrong())?,
        seen: decode_fields("sighting", FORMAT, value)?,
    })
}

/// A network's rows from block `from` on, lowest first.
pub fn range(network: &str, from: u64, limit: usize) -> Range {
    // The greatest name below the block's rows, which are all longer than the number alone.
    let before = from
        .checked_sub(1)
        .map(|below| key(network, below, &B256::repeat_byte(0xff)).name);
    Range::new(SIGHTING, &prefix(network), before, limit)
}
