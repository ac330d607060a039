//! Requests that still need work: put in the commit of every fact that gives some, deleted by the
//! solver when nothing is left to do.
//!
//! Who deletes expects the value that was read before the facts: every put writes another one, so
//! that work which came in between is not lost. A request with a deposit that is not final yet
//! stays, since the index finds here what it has to confirm.
//!
//! Key: the request's id, 32 bytes. Value, format 1: unix milliseconds as 8 bytes big endian, then
//! 32 bytes that name the cause.
//!
//! It lives while there is work; some 100 bytes.

use alloy::primitives::B256;

use super::{OPEN, RowError};
use crate::store::{Key, Range};

const FORMAT: u8 = 1;

pub fn key(request: &B256) -> Key {
    Key::new(OPEN, request.as_slice())
}

/// A value for work that `cause` made at `now` (unix milliseconds).
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

/// Open requests after the row `after`.
pub fn range(after: Option<&Key>, limit: usize) -> Range {
    Range::new(OPEN, &[], after.map(|key| key.name.clone()), limit)
}
