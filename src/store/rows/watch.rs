//! Blocks that signed statements rest on and that can still be reorged away.
//!
//! Key: the chain's name, a zero byte, the block number as 8 bytes big endian, the statement's key.
//! Value, format 1: the [`Fact`] as JSON. Names hold no zero byte, so a chain's rows are one range.

use super::{RowError, WATCH, decode, encode, entry::Fact};
use crate::store::{Key, Range};

const FORMAT: u8 = 1;

pub fn key(fact: &Fact, statement: &str) -> Key {
    let number = fact.number.to_be_bytes();
    let name = [&prefix(&fact.chain), &number[..], statement.as_bytes()].concat();
    Key::new(WATCH, name)
}

pub fn encode_fact(fact: &Fact) -> Result<Vec<u8>, RowError> {
    encode(FORMAT, fact)
}

/// The statement's key and the fact of one row.
pub fn decode_row(chain: &str, key: &Key, value: &[u8]) -> Result<(String, Fact), RowError> {
    let statement = key.name.get(chain.len() + 9..).unwrap_or_default();
    let statement = String::from_utf8(statement.to_vec()).map_err(|e| RowError::new("watch", e))?;
    Ok((statement, decode("watch", FORMAT, value)?))
}

/// A chain's rows, lowest block first, after the row `after`.
pub fn range(chain: &str, after: Option<&Key>, limit: usize) -> Range {
    let after = after.map(|key| key.name.clone());
    Range {
        kind: WATCH,
        prefix: prefix(chain),
        after,
        limit,
    }
}

fn prefix(chain: &str) -> Vec<u8> {
    [chain.as_bytes(), &[0]].concat()
}
