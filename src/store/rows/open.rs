//! Requests that still need work of the solver's: written with the fact that gives it work, deleted
//! when nothing is left to do.
//!
//! Key: the request's id, 32 bytes. Value, format 1: the unix milliseconds since when, 8 bytes big
//! endian.

use alloy::primitives::B256;

use super::{OPEN, RowError};
use crate::store::{Key, Range};

const FORMAT: u8 = 1;

pub fn key(id: &B256) -> Key {
    Key::new(OPEN, id.as_slice())
}

pub fn encode(since: u64) -> Vec<u8> {
    [&[FORMAT], &since.to_be_bytes()[..]].concat()
}

pub fn decode(bytes: &[u8]) -> Result<u64, RowError> {
    match bytes.split_first() {
        Some((&FORMAT, since)) => since
            .try_into()
            .map(u64::from_be_bytes)
            .map_err(|e| RowError::new("open", e)),
        _ => Err(RowError::new("open", "unknown format")),
    }
}

/// The request that the row under `key` is about.
pub fn id(key: &Key) -> Result<B256, RowError> {
    B256::try_from(key.name.as_slice()).map_err(|e| RowError::new("open", e))
}

/// Rows after the row `after`.
pub fn range(after: Option<&Key>, limit: usize) -> Range {
    Range {
        kind: OPEN,
        prefix: Vec::new(),
        after: after.map(|key| key.name.clone()),
        limit,
    }
}
