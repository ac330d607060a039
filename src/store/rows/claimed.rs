//! Which statement a request was signed for. Written with the statement's evidence and with evidence that replaces it,
//! where equal requests can be judged over that, and for each further spelling of a caller with a key; where equal
//! requests of callers with other rights are signed for several, the last one counts.
//!
//! Key: the digest of the request, 32 bytes; whoever sent it. Digests of before had the caller's label in them: their
//! rows are found by nobody. Value, format 1: [`Claimed`] in postcard.
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
