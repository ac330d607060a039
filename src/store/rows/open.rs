//! Requests that still need work. Every commit of a fact with work writes the row, and so does the operator's release of
//! a parked deposit; the solver deletes it when nothing is left to do.
//!
//! The deleting commit expects this row and the claim's as they were read before the facts, and the facts: work that
//! came in between is not lost. A request with a deposit that is not final keeps its row, because the index finds here
//! what it must confirm.
//!
//! Key: the request's id, 32 bytes. Value, format 1: unix milliseconds as 8 bytes big endian, then 32 bytes that name
//! the cause.
//!
//! The row lives while there is work; some 100 bytes.

use alloy::primitives::B256;

use super::{OPEN, RowError};
use crate::store::Key;

const FORMAT: u8 = 1;

pub fn key(request: &B256) -> Key {
    Key::new(OPEN, request.as_slice())
}

/// The value for work from `cause` at `now` (unix milliseconds).
pub fn encode(now: u64, cause: &B256) -> Vec<u8> {
    [&[FORMAT], &now.to_be_bytes()[..], cause.as_slice()].concat()
}

/// The request of the row under `key`.
pub fn decode(key: &Key, value: &[u8]) -> Result<B256, RowError> {
    match value {
        [FORMAT, rest @ ..] if rest.len() == 40 => {
            B256::try_from(key.name.as_slice()).map_err(|e| RowError::new("open", e))
        }
        _ => Err(RowError::new("open", "unknown format")),
    }
}
