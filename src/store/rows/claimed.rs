//! Which statement a request was first signed for. Written once, with the statement's evidence, never changed.
//!
//! Key: the digest of the request, 32 bytes. Value, format 1: [`Claimed`] in postcard.
//!
//! The row lives for ever. Some 150 bytes.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};

use super::CLAIMED;
use crate::store::Key;

const FORMAT: u8 = 1;

/// A signed statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// Its key.
    pub statement: String,
    /// The second in which its entry was recorded.
    pub at: u64,
}

pub fn key(request: &B256) -> Key {
    Key::new(CLAIMED, request.as_slice())
}

stored!(Claimed, "claimed", encode, decode);
