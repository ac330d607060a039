//! The request of an order.
//!
//! Key: the order's id, 32 bytes. Value, format 1: the request's id, 32 bytes as they are.
//!
//! The row lives as long as its quote or request; some 100 bytes.

use alloy::primitives::B256;

use super::{ORDER, RowError};
use crate::store::Key;

const FORMAT: u8 = 1;

pub fn key(order: &B256) -> Key {
    Key::new(ORDER, order.as_slice())
}

pub fn encode(request: &B256) -> Vec<u8> {
    [&[FORMAT], request.as_slice()].concat()
}

pub fn decode(bytes: &[u8]) -> Result<B256, RowError> {
    match bytes.split_first() {
        Some((&FORMAT, id)) => B256::try_from(id).map_err(|e| RowError::new("order", e)),
        _ => Err(RowError::new("order", "unknown format")),
    }
}
