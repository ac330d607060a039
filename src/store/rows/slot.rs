//! Slots that only one non-void statement can hold, for example a transaction's deposits.
//!
//! Key: the slot, text. Value, format 1: the holder's statement key as text.
//!
//! The row lives for ever, or until its statement is void; some 150 bytes.

use super::{RowError, SLOT, plain_text};
use crate::store::Key;

const FORMAT: u8 = 1;

pub fn key(slot: &str) -> Key {
    Key::new(SLOT, slot)
}

pub fn encode(text: &str) -> Vec<u8> {
    [&[FORMAT], text.as_bytes()].concat()
}

pub fn decode(bytes: &[u8]) -> Result<String, RowError> {
    plain_text("slot", FORMAT, bytes)
}
