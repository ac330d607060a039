//! Quotes that nobody has acted on and that are large: what they take of the disk, and by whose wish, so
//! that a start knows it without reading all quotes ([`super::super::large`]).
//!
//! Key: the request's id, 32 bytes. Value, format 1: [`Large`].
//!
//! It lives as long as its quote; some 100 bytes.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};

use super::{LARGE, RowError};
use crate::store::Key;

const FORMAT: u8 = 1;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Large {
    /// Of the quote's row.
    pub bytes: u64,
    /// Stands for who asked.
    pub by: u64,
    /// Whether that was somebody with a key.
    pub keyed: bool,
    /// Where the deposit is to be made.
    pub network: String,
    /// Unix seconds until which the quote's price holds.
    pub valid_until: u64,
}

pub fn key(request: &B256) -> Key {
    Key::new(LARGE, request.as_slice())
}

/// The request that a key is about.
pub fn request(key: &Key) -> Result<B256, RowError> {
    B256::try_from(key.name.as_slice()).map_err(|e| RowError::new("large", e))
}

stored!(Large, "large", encode, decode);
