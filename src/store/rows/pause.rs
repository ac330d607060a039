//! Whether the solver is paused. While the row exists, the solver starts no fills.
//!
//! Key: `solver`. Value, format 1: [`Paused`] in JSON.
//!
//! The row lives until the operator resumes the solver; there is at most one.

use serde::{Deserialize, Serialize};

use super::PAUSE;
use crate::store::Key;

const FORMAT: u8 = 1;

/// The reason and time of a pause.
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
