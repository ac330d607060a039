//! Blocks that signed statements rest on and that can still be reorged away.
//!
//! Key: the chain's name, a zero byte, the block number as 8 bytes big endian, the statement's key.
//! Value, format 1: block hash and parent hash, 32 bytes each, and the block's unix time as 8 bytes
//! big endian. Format 2 is the same of a block that was not final by its chain's own rule when it was
//! signed. Names hold no zero byte, so a chain's rows are one range.
//!
//! It lives until its block is past its chain's `watchBlocks`; some 200 bytes for each block of a statement.

use alloy::primitives::B256;

use super::{RowError, WATCH, entry::Fact};
use crate::store::{Key, Range};

const FORMAT: u8 = 1;
const EARLY: u8 = 2;

/// One row: the statement, and the block that it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    pub statement: String,
    pub number: u64,
    pub hash: B256,
    pub parent: B256,
    pub time: u64,
    /// Signed before the block was final by its chain's own rule.
    pub early: bool,
}

pub fn key(fact: &Fact, statement: &str) -> Key {
    place(&fact.chain, fact.number, statement)
}

/// Where the row of `statement` about block `number` of `chain` lives.
pub fn place(chain: &str, number: u64, statement: &str) -> Key {
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

/// The same row of a block that is final by now; `None` if it was from the start.
pub fn settled(row: &[u8]) -> Option<Vec<u8>> {
    let (&EARLY, fields) = row.split_first()? else {
        return None;
    };
    Some([&[FORMAT], fields].concat())
}

/// The row of `chain` under `key`.
pub fn decode(chain: &str, key: &Key, value: &[u8]) -> Result<Watch, RowError> {
    let wrong = || RowError::new("watch", "not of format 1 or 2");
    let place = key.name.get(chain.len() + 1..).ok_or_else(wrong)?;
    let (number, statement) = place.split_first_chunk().ok_or_else(wrong)?;
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

fn prefix(chain: &str) -> Vec<u8> {
    [chain.as_bytes(), &[0]].concat()
}
