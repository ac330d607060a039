//! Quotes that nobody has acted on; the only other row of a quote leads to it from its order.
//!
//! Key: the request's id, 32 bytes. Value, format 1: the unix seconds of its deletion, 8 bytes big endian, and the
//! bytes of its [`request`](super::request) row. The row lives until then, a day after its order's last deadline, or
//! until a commit records a first fact and makes it a request. A quote costs less than 2 KB on the disk, with the
//! order's row (`cargo bench --bench quotes -- --kept 100000`). A large quote (through its caller's `txs`) also has a
//! [`large`](super::large) row, and lives until its origin is indexed for a day after its price held; a later deposit
//! returns through the hub.

use alloy::primitives::B256;

use super::{QUOTE, RowError, request};
use crate::{
    request::{Request, last_deadline},
    store::{Key, Range},
};

const FORMAT: u8 = 1;
/// Seconds for which a quote is kept after its order's last deadline.
pub const GRACE: u64 = 24 * 60 * 60;
/// The largest row of a quote that is not large, in bytes: a row with some hundred bytes of call data has half of
/// that. The rest of 2 KB is for the order's row.
const USUAL: usize = (2 << 10) - 128;

pub fn key(id: &B256) -> Key {
    Key::new(QUOTE, id.as_slice())
}

/// Whether the row is that of a large quote.
pub fn is_large(row: &[u8]) -> bool {
    row.len() > USUAL
}

pub fn encode(request: &Request) -> Result<Vec<u8>, RowError> {
    let row = request::encode(request)?;
    let until = last_deadline(&request.order).saturating_add(GRACE);
    Ok([&[FORMAT], &until.to_be_bytes()[..], &row].concat())
}

/// The unix seconds of its deletion, and the bytes of the request's row.
pub fn split(bytes: &[u8]) -> Result<(u64, &[u8]), RowError> {
    let wrong = || RowError::new("quote", "not of format 1");
    let (&[FORMAT], rest) = bytes.split_at_checked(1).ok_or_else(wrong)? else {
        return Err(wrong());
    };
    let (until, row) = rest.split_first_chunk().ok_or_else(wrong)?;
    Ok((u64::from_be_bytes(*until), row))
}

pub fn decode(bytes: &[u8]) -> Result<Request, RowError> {
    request::decode(split(bytes)?.1)
}

/// Quotes after the named one, oldest first.
pub fn range(after: Option<Vec<u8>>, limit: usize) -> Range {
    Range::new(QUOTE, &[], after, limit)
}
