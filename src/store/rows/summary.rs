//! The fields by which a request is found and sorted; every commit that changes its facts rewrites them.
//!
//! Key: the request's id, 32 bytes. Value, format 1: [`Summary`].
//!
//! The row lives as long as its request; less than 2 KB, whatever the number of facts.

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
