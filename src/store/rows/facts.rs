//! The facts of a request; changed by compare-and-set only.
//!
//! Key: the request's id, 32 bytes. Value, format 1: [`Facts`] in JSON.
//!
//! The row lives as long as its request; some 550 bytes for each deposit and attempt, all rewritten with each change.
//! A request keeps at most 512 deposits of the full amount, 16 for each halving of the amount, 64 others in the
//! user's name, and 64 of the rest (see `index::apply`).

use alloy::primitives::B256;

use super::FACTS;
use crate::{request::fact::Facts, store::Key};

const FORMAT: u8 = 1;

pub fn key(id: &B256) -> Key {
    Key::new(FACTS, id.as_slice())
}

stored!(foreign Facts, "facts", encode_json, decode_json);
