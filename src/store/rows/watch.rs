//! Blocks on which signed statements depend and that a reorg can still remove.
//!
//! Key: the chain's name, a zero byte, the block number as 8 bytes big endian, the statement's key. Value, format 1:
//! block hash and parent hash, 32 bytes each, and the block's unix time as 8 bytes big endian. Format 2 has the same
//! fields and marks a block that was not final by its chain's own rule when the statement was signed. Names have no
//! zero byte, so a chain's rows are one range.
//!
//! The row lives until its block is deeper than its chain's `watchBlocks`; some 200 bytes per block of a statement.

use alloy::primitives::B256;

use super::{RowError, WATCH, entry::Fact, prefix};
use crate::store::{Key, Range};

const FORMAT: u8 = 1;
const EARLY: u8 = 2;

/// A row: a statement, and a block on which it depends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    pub statement: String,
    pub number: u64,
    pub hash: B256,
    pub parent: B256,
    pub time: u64,
    /// Whether it was signed before the block was final by its chain's own rule.
    pub early: bool,
}

pub fn key(fact: &Fact, statement: &str) -> Key {
    key_of(&fact.chain, fact.number, statement)
}

/// The key of the row of `statement` about block `number` of `chain`.
pub fn key_of(chain: &str, number: u64, statement: &str) -> Key {
    let number = number.to_be_bytes();
    let name = [&prefix(chain), &number[..], statement.as_bytes()].concat();
    Key::new(WATCH, name)
}

pub fn encode(fact: &Fact, early: bool) -> Vec<u8> {
    let time = fact.time.to_be_bytes();
    [
        &[if early { EARLY } else { FORMAT }],
        fact.hash.as_slice(),
        fact.parent.as_slice(),
        &time,
    ]
    .concat()
}

/// The row in format 1 for a block that is final now; `None` if it already is.
pub fn settled(row: &[u8]) -> Option<Vec<u8>> {
    let (&EARLY, fields) = row.split_first()? else {
        return None;
    };
    Some([&[FORMAT], fields].concat())
}

/// Decodes the row of `chain` under `key`.
pub fn decode(chain: &str, key: &Key, value: &[u8]) -> Result<Watch, RowError> {
    let wrong = || RowError::new("watch", "not of format 1 or 2");
    let rest = key.name.get(chain.len() + 1..).ok_or_else(wrong)?;
    let (number, statement) = rest.split_first_chunk().ok_or_else(wrong)?;
    let statement = String::from_utf8(statement.to_vec()).map_err(|e| RowError::new("watch", e))?;
    let fields: &[u8; 73] = value.try_into().map_err(|_| wrong())?;
    let (&[format @ (FORMAT | EARLY)], fields) = fields.split_at(1) else {
        return Err(wrong());
    };
    let (hash, fields) = fields.split_at(32);
    let (parent, time) = fields.split_at(32);
    let time = u64::from_be_bytes(time.try_into().map_err(|_| wrong())?);
    let (hash, parent) = (B256::from_slice(hash), B256::from_slice(parent));
    Ok(Watch {
        statement,
        number: u64::from_be_bytes(*number),
        hash,
        parent,
        time,
        early: format == EARLY,
    })
}

/// A chain's rows, lowest block first, after the row `after`.
pub fn range(chain: &str, after: Option<&Key>, limit: usize) -> Range {
    let after = after.map(|key| key.name.clone());
    Range::new(WATCH, &prefix(chain), after, limit)
}
