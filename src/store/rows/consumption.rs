//! What a statement consumes, such as an onchain id, a payment or a withdrawal address, and the one statement that it
//! serves.
//!
//! Key: what is consumed, text. Value, format 1: the statement's key as text.
//!
//! The row lives for ever, of a deposit or a payment until its statement is void; some 150 bytes.

use super::{CONSUMPTION, RowError, plain_text};
use crate::store::Key;

const FORMAT: u8 = 1;

pub fn key(what: &str) -> Key {
    Key::new(CONSUMPTION, what)
}

pub fn encode(text: &str) -> Vec<u8> {
    [&[FORMAT], text.as_bytes()].concat()
}

pub fn decode(bytes: &[u8]) -> Result<String, RowError> {
    plain_text("consumption", FORMAT, bytes)
}
