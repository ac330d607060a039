//! Chains for which nothing is signed until an operator says so.
//!
//! Key: the chain's name, text. Value, format 1: [`Halt`] in postcard.
//!
//! It lives until an operator clears it; one for each chain at most.

use serde::{Deserialize, Serialize};

use super::{HALT, RowError, decode, encode};
use crate::store::Key;

const FORMAT: u8 = 1;

/// Why and since when (unix seconds) a chain is halted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halt {
    pub why: String,
    pub at: u64,
}

pub fn key(chain: &str) -> Key {
    Key::new(HALT, chain)
}

impl Halt {
    pub fn encode(&self) -> Result<Vec<u8>, RowError> {
        encode("halt", FORMAT, self)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, RowError> {
        decode("halt", FORMAT, bytes)
    }
}
