//! What a request can be found and sorted by; written with the request and with every change of its
//! facts.
//!
//! Key: the request's id, 32 bytes. Value, format 1: [`Summary`].
//!
//! It lives as long as its request; below 2 KB, however much is seen of it.

use alloy::primitives::B256;

use super::{RowError, SUMMARY, decode as decode_row, encode as encode_row};
use crate::{request::summary::Summary, store::Key};

const FORMAT: u8 = 1;

pub fn key(id: &B256) -> Key {
    Key::new(SUMMARY, id.as_slice())
}

pub fn encode(summary: &Summary) -> Result<Vec<u8>, RowError> {
    encode_row("summary", FORMAT, summary)
}

pub fn decode(bytes: &[u8]) -> Result<Summary, RowError> {
    decode_row("summary", FORMAT, bytes)
}
