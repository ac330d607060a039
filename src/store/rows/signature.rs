//! The first signature over a digest, by signer; the journal returns it for every later request. Deterministic
//! signers have no rows.
//!
//! Key: the digest's 32 bytes and the signer's 20. Value, format 1: the 65 bytes `r || s || v`.
//!
//! The row lives for ever, with its entry; some 150 bytes.

use alloy::primitives::{Address, B256};

use super::{RowError, SIGNATURE, plain};
use crate::store::Key;

const FORMAT: u8 = 1;

pub fn key(digest: &B256, signer: &Address) -> Key {
    Key::new(SIGNATURE, [digest.as_slice(), signer.as_slice()].concat())
}

pub fn encode(signature: &[u8; 65]) -> Vec<u8> {
    [&[FORMAT], &signature[..]].concat()
}

pub fn decode(bytes: &[u8]) -> Result<[u8; 65], RowError> {
    let signature = <[u8; 65]>::try_from(plain("signature", FORMAT, bytes)?);
    signature.map_err(|_| RowError::new("signature", "not 65 bytes"))
}
