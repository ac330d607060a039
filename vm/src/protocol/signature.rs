//! secp256k1 signatures over digests: parse, recover, EIP-191 (guide: protocol 6.2).
//!
//! Pure. This module makes no signatures.

mod der;
#[cfg(test)]
mod tests;

use std::{fmt, str::FromStr};

use alloy::primitives::{b256, keccak256};
use secp256k1::{
    Message, PublicKey, SECP256K1,
    ecdsa::{RecoverableSignature, RecoveryId},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

pub use der::account_of_spki;

use super::text;
use crate::types::{B256, Bytes, EvmAddress};

/// The order of the curve's group: r and s are below it.
const ORDER: B256 = b256!("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
/// Half of the order: for a greater s there is a smaller s of the same signature.
const HALF_ORDER: B256 = b256!("7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0");

/// Why bytes are not a valid signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("invalid signature length")]
    Length,
    /// Not `0x` hex, an unknown v, r or s outside the group, or a high s where a low one is required.
    #[error("Invalid signature")]
    Malformed,
    /// No key made it, or another key than the claimed one.
    #[error("Invalid signature")]
    Unrecoverable,
}

/// A signature as oracles exchange it: 65 bytes `r || s || v` with v 27 or 28 and low s; its text is `0x` and 130
/// lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature([u8; 65]);

impl Signature {
    /// Parses 65 bytes strictly.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SignatureError> {
        let bytes: [u8; 65] = bytes.try_into().map_err(|_| SignatureError::Length)?;
        let (r, s) = scalars(&bytes);
        let sound = in_group(r) && in_group(s) && s <= HALF_ORDER && matches!(bytes[64], 27 | 28);
        sound
            .then_some(Self(bytes))
            .ok_or(SignatureError::Malformed)
    }

    /// Joins r and s; `odd` is the parity of the curve point of r. Replaces a high s by its low twin, and flips the
    /// parity.
    pub fn from_scalars(r: B256, s: B256, odd: bool) -> Result<Self, SignatureError> {
        let high = s > HALF_ORDER && s < ORDER;
        let s = if high { negate(s) } else { s };
        let mut bytes = [0; 65];
        bytes[..32].copy_from_slice(&r[..]);
        bytes[32..64].copy_from_slice(&s[..]);
        bytes[64] = 27 + u8::from(odd != high);
        Self::from_bytes(&bytes)
    }

    pub fn as_bytes(&self) -> &[u8; 65] {
        &self.0
    }

    /// The account whose key made this signature over `digest`.
    pub fn recover(&self, digest: &B256) -> Result<EvmAddress, SignatureError> {
        recover_compact(&self.0[..64], self.0[64] - 27, digest)
    }
}

impl FromStr for Signature {
    type Err = SignatureError;

    fn from_str(text: &str) -> Result<Self, SignatureError> {
        Self::from_bytes(&signature_hex(text)?)
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&alloy::hex::encode_prefixed(self.0))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Signature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// The account that signed `digest`, with the rules of wallet signatures: v 0, 1, 27 or 28, any s. Only 65 bytes;
/// refuses the 64-byte form of EIP-2098.
pub fn recover_wallet(signature: &[u8], digest: &B256) -> Result<EvmAddress, SignatureError> {
    let bytes: &[u8; 65] = signature.try_into().map_err(|_| SignatureError::Length)?;
    let odd = match bytes[64] {
        0 | 27 => 0,
        1 | 28 => 1,
        _ => return Err(SignatureError::Malformed),
    };
    let (r, s) = scalars(bytes);
    if !in_group(r) || !in_group(s) {
        return Err(SignatureError::Malformed);
    }
    recover_compact(&bytes[..64], odd, digest)
}

/// Parses the text of a signature: `0x` and whole bytes of hex, in any case.
pub fn signature_hex(text: &str) -> Result<Bytes, SignatureError> {
    // No signature of any family is this long; BIP-322 witnesses are the longest.
    if text.len() > 16_384 {
        return Err(SignatureError::Length);
    }
    text::bytes(text).map_err(|_| SignatureError::Malformed)
}

/// Checks that the account `signer` (`0x` and 40 hex digits in any case) made `signature` over `message` with a
/// wallet's personal_sign: for order ids of solvers and digests of owners.
pub fn verify_personal(
    signer: &str,
    message: &[u8],
    signature: &str,
) -> Result<(), SignatureError> {
    let bytes = signature_hex(signature).map_err(|_| SignatureError::Length)?;
    let recovered = recover_wallet(&bytes, &eip191(message))?;
    let same = text::bytes(signer).is_ok_and(|account| account == recovered[..]);
    same.then_some(()).ok_or(SignatureError::Unrecoverable)
}

/// The hash of personal_sign: over `"\x19Ethereum Signed Message:\n"`, the decimal length, and the bytes.
pub fn eip191(message: &[u8]) -> B256 {
    alloy::primitives::eip191_hash_message(message)
}

/// The account of a public key: the last 20 bytes of the keccak of its point.
pub fn account(key: &PublicKey) -> EvmAddress {
    EvmAddress::from_slice(&keccak256(&key.serialize_uncompressed()[1..])[12..])
}

fn recover_compact(rs: &[u8], odd: u8, digest: &B256) -> Result<EvmAddress, SignatureError> {
    let id = RecoveryId::from_i32(i32::from(odd)).map_err(|_| SignatureError::Malformed)?;
    let signature =
        RecoverableSignature::from_compact(rs, id).map_err(|_| SignatureError::Malformed)?;
    let key = SECP256K1
        .recover_ecdsa(&Message::from_digest(digest.0), &signature)
        .map_err(|_| SignatureError::Unrecoverable)?;
    Ok(account(&key))
}

fn scalars(bytes: &[u8; 65]) -> (B256, B256) {
    (
        B256::from_slice(&bytes[..32]),
        B256::from_slice(&bytes[32..64]),
    )
}

fn in_group(scalar: B256) -> bool {
    !scalar.is_zero() && scalar < ORDER
}

/// `n - s` for `s < n`.
fn negate(s: B256) -> B256 {
    let order = alloy::primitives::U256::from_be_bytes(ORDER.0);
    let s = alloy::primitives::U256::from_be_bytes(s.0);
    order.wrapping_sub(s).into()
}
