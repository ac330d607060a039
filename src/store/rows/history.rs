//! The events of a request, so that a reader of one request need not read all events.
//!
//! Key: the request's id, 32 bytes, and the event's number, 8 bytes big endian. Value, format 1: empty. The commit
//! that appends the event writes the row; it lives as long as the event.

use alloy::primitives::B256;

use super::{HISTORY, RowError};
use crate::store::{Key, Range, number};

const FORMAT: u8 = 1;

/// The prefix of the names of a request's rows; the event's number follows it.
pub fn lead(request: &B256) -> (Key, Vec<u8>) {
    (Key::new(HISTORY, request.as_slice()), vec![FORMAT])
}

pub fn key(request: &B256, number: u64) -> Key {
    let name = [request.as_slice(), &number.to_be_bytes()].concat();
    Key::new(HISTORY, name)
}

/// The events of `request` after number `after`, oldest first.
pub fn after(request: &B256, after: u64, limit: usize) -> Range {
    Range::new(
        HISTORY,
        request.as_slice(),
        Some(key(request, after).name),
        limit,
    )
}

/// The request and the event's number.
pub fn row(key: &Key, value: &[u8]) -> Result<(B256, u64), RowError> {
    let wrong = || RowError::new("history", "not of format 1");
    let (request, event) = key.name.split_first_chunk::<32>().ok_or_else(wrong)?;
    match (number(event), value) {
        (Some(number), [FORMAT]) => Ok((B256::from(*request), number)),
        _ => Err(wrong()),
    }
}
