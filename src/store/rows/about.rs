//! Which statements are about a transaction: one row for each transaction that was read for a statement. Written with the
//! statement's entry. A statement that is void keeps its rows, because its signature may be in use.
//!
//! Key: the chain's name, a zero byte, the transaction as `0x` and the hex of its canonical bytes, a zero byte, the
//! statement's key, all text. Value, format 1: empty. Statements of older versions have no such row.
//!
//! The row lives for ever. Some 250 bytes for each transaction of a statement.

use super::{ABOUT, RowError, prefix};
use crate::store::{Key, Range};

const FORMAT: u8 = 1;

/// A transaction, and a statement about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    pub chain: String,
    pub transaction: String,
    /// The statement's key.
    pub statement: String,
}

pub fn key(chain: &str, transaction: &str, statement: &str) -> Key {
    let name = [&*prefix(chain), &*prefix(transaction), statement.as_bytes()].concat();
    Key::new(ABOUT, name)
}

pub fn encode() -> Vec<u8> {
    vec![FORMAT]
}

/// Everything about a transaction.
pub fn range(chain: &str, transaction: &str) -> Range {
    let names = [prefix(chain), prefix(transaction)].concat();
    Range::new(ABOUT, &names, None, usize::MAX)
}

pub fn decode(key: &Key, value: &[u8]) -> Result<About, RowError> {
    let wrong = || RowError::new("about", "not of format 1");
    let [FORMAT] = value else {
        return Err(wrong());
    };
    let name = std::str::from_utf8(&key.name).map_err(|e| RowError::new("about", e))?;
    let mut parts = name.splitn(3, '\0').filter(|part| !part.is_empty());
    let mut part = || parts.next().map(str::to_owned).ok_or_else(wrong);
    Ok(About {
        chain: part()?,
        transaction: part()?,
        statement: part()?,
    })
}
