//! The request of an order.
//!
//! Key: the order's id, 32 bytes. Value, format 1: the request's id, 32 bytes as they are.
//!
//! The row lives as long as its quote or request; some 100 bytes.

use alloy::primitives::B256;

use super::{ORDER, RowError, plain};
use crate::store::Key;

const FORMAT: u8 = 1;

pub fn key(order: &B256) -> Key {
    Key::new(ORDER, order.as_slice())
}

pub fn encode(request: &B256) -> Vec<u8> {
    [&[FORMAT], request.as_slice()].concat()
}

pub fn decode(bytes: &[u8]) -> Result<B256, RowError> {
    let id = plain("order", FORMAT, bytes)?;
    B256::try_from(id).map_err(|e| RowError::new("order", e))
}
