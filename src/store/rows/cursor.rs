//! How far a network has been indexed, and which blocks it was then made of.
//!
//! Key: the network's name, text. Value, format 1: [`Cursor`] in postcard.
//!
//! One for each network, of at most 12 KB; it stays.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};

use super::CURSOR;
use crate::store::Key;

const FORMAT: u8 = 1;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The lowest block that has not been indexed.
    pub next: u64,
    /// Blocks that indexing has stopped at, oldest first, the older ones thinned out; the last is `next - 1`.
    pub marks: Vec<Mark>,
    pub again: Again,
}

/// What is to be read again, because a deposit was shown there that is not on the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    /// The lowest such block.
    pub block: Option<u64>,
    /// Unix milliseconds before which it is not read again.
    pub next: u64,
    /// Milliseconds between the last two times.
    pub pause: u64,
}

/// A block that was on the chain when it was indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub number: u64,
    pub hash: B256,
}

pub fn key(network: &str) -> Key {
    Key::new(CURSOR, network)
}

stored!(Cursor, "cursor", encode, decode);
