//! The large quotes that nobody has acted on: their bytes and callers, so that the daemon need not read all quotes at
//! start ([`super::super::large`]).
//!
//! Key: the request's id, 32 bytes. Value, format 1: [`Large`].
//!
//! The row lives as long as its quote; some 100 bytes.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};

use super::{LARGE, RowError};
use crate::store::Key;

const FORMAT: u8 = 1;

/// A large quote's size and caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Large {
    /// The bytes of the quote's row.
    pub bytes: u64,
    /// A number that stands for the caller.
    pub by: u64,
    /// Whether the caller had a key.
    pub keyed: bool,
    /// The network of the deposit.
    pub network: String,
    /// The unix second until which the quote's price holds.
    pub valid_until: u64,
}

pub fn key(request: &B256) -> Key {
    Key::new(LARGE, request.as_slice())
}

/// The request of a key.
pub fn request(key: &Key) -> Result<B256, RowError> {
    B256::try_from(key.name.as_slice()).map_err(|e| RowError::new("large", e))
}

stored!(Large, "large", encode, decode);
