//! What has been seen of a request; changed by compare-and-set only.
//!
//! Key: the request's id, 32 bytes. Value, format 1: [`Facts`] in JSON.
//!
//! It lives as long as its request; some 550 bytes for each deposit and attempt, all of them written anew
//! with each change. Deposits have places: 512 for those that pay it all, 16 for each time the amount is
//! halved, 64 for what else is in the user's name, 64 for the rest (see `index::apply`).

use alloy::primitives::B256;

use super::{FACTS, RowError, decode_json, encode_json};
use crate::{request::fact::Facts, store::Key};

const FORMAT: u8 = 1;

pub fn key(id: &B256) -> Key {
    Key::new(FACTS, id.as_slice())
}

pub fn encode(facts: &Facts) -> Result<Vec<u8>, RowError> {
    encode_json("facts", FORMAT, facts)
}

pub fn decode(bytes: &[u8]) -> Result<Facts, RowError> {
    decode_json("facts", FORMAT, bytes)
}
