//! That the solver begins no fills. There is one row, while it is so.
//!
//! Key: `solver`. Value, format 1: [`Paused`] in JSON.
//!
//! It lives until the operator resumes; one.

use serde::{Deserialize, Serialize};

use super::{PAUSE, RowError, decode_json, encode_json};
use crate::store::Key;

const FORMAT: u8 = 1;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    pub why: String,
    /// Unix milliseconds.
    pub since: u64,
}

pub fn key() -> Key {
    Key::new(PAUSE, "solver")
}

impl Paused {
    pub fn encode(&self) -> Result<Vec<u8>, RowError> {
        encode_json("pause", FORMAT, self)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, RowError> {
        decode_json("pause", FORMAT, bytes)
    }
}
