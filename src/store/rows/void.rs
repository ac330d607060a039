//! Signed entries whose facts no longer hold. Kept for ever, because their signatures may be in use.
//!
//! Key: the statement's key, a zero byte, 4 bytes big endian that count the voids of that key. Value, format 1:
//! [`Void`] in postcard.
//!
//! The row lives for ever and is as large as its entry.

use serde::{Deserialize, Serialize};

use super::{VOID, entry::Entry, prefix};
use crate::store::{Key, Range};

const FORMAT: u8 = 1;

/// A void entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Void {
    pub entry: Entry,
    pub why: String,
    /// Unix seconds.
    pub at: u64,
}

pub fn key(statement: &str, count: u32) -> Key {
    let name = [&*prefix(statement), &count.to_be_bytes()].concat();
    Key::new(VOID, name)
}

/// All voids of a statement key.
pub fn range(statement: &str) -> Range {
    Range::new(VOID, &prefix(statement), None, usize::MAX)
}

stored!(Void, "void", encode, decode);
