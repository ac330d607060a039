//! That the solver begins no fills. There is one row, while it is so.
//!
//! Key: `solver`. Value, format 1: [`Paused`] in JSON.
//!
//! It lives until the operator resumes; one.

use serde::{Deserialize, Serialize};

use super::PAUSE;
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

stored!(Paused, "pause", encode_json, decode_json);
