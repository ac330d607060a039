//! How far a network has been indexed, and which blocks stood there then.
//!
//! Key: the network's name, text. Value, format 1: [`Cursor`] in postcard.
//!
//! One for each network, of at most 12 KB; it stays.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};

use super::CURSOR;
use crate::store::Key;

const FORMAT: u8 = 1;

/// Where the index of one network stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The lowest height that has not been indexed.
    pub next: u64,
    /// Heights that indexing has stopped at, oldest first, the older ones thinned out; the last is `next - 1`. None
    /// where the operator took the index back.
    pub marks: Vec<Mark>,
    pub again: Again,
}

/// What is to be read again, because a deposit was shown in a block that is not on the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    /// The number of the lowest such block.
    pub block: Option<u64>,
    /// Unix milliseconds before which nothing is read again.
    pub next: u64,
    /// Milliseconds between the last two times that something was read again.
    pub pause: u64,
}

/// The block that stood at a height when the height was indexed: the newest one at or below it. A block that comes
/// into a skipped height later is noticed, because it stands at the height then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The height; above the block's own number where the chain skipped the height.
    pub number: u64,
    /// The block's hash.
    pub hash: B256,
}

pub fn key(network: &str) -> Key {
    Key::new(CURSOR, network)
}

stored!(Cursor, "cursor", encode, decode);
