//! The text of a key. Pure.

use std::fmt;

use alloy::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The prefix of every key, for people and for scanners of leaked secrets.
const PREFIX: &str = "ik_";

/// A key as its holder has it: `ik_`, 64 random hex digits, and the first 6 hex digits of the SHA-256 of both. It is
/// longer than 64 bytes on purpose: see [`crate::integrator`]. The operator sees it once; `Debug` prints nothing of
/// it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub struct ApiKey(String);

impl ApiKey {
    /// `random`: 32 bytes from a secure source.
    pub fn new(random: &[u8; 32]) -> Self {
        let mut text = format!("{PREFIX}{}", hex::encode(random));
        let sum = digest(text.as_bytes());
        text.push_str(&hex::encode(&sum[..3]));
        Self(text)
    }

    /// The text of the key.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The SHA-256 of the key; the store keeps nothing else.
    pub fn digest(&self) -> [u8; 32] {
        digest(self.0.as_bytes())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey")
    }
}

/// SHA-256.
fn digest(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_long_printable_and_ends_with_its_checksum() {
        let key = ApiKey::new(&[0xab; 32]);
        let text = key.expose();
        assert_eq!(&text[..67], format!("ik_{}", "ab".repeat(32)));
        // `printf %s ik_abab… | sha256sum`.
        assert_eq!(&text[67..], "b4d3a1");
        assert!(text.len() > 64 && text.bytes().all(|byte| byte.is_ascii_graphic()));
        assert_ne!(ApiKey::new(&[0xac; 32]).digest(), key.digest());
        assert_eq!(format!("{key:?}"), "ApiKey");
    }

    /// RFC 2104: a key above the block size is hashed first.
    #[test]
    fn the_digest_signs_what_the_key_verifies() {
        let hmac = |key: &[u8]| {
            let mut block = [0; 64];
            match key.len() {
                ..=64 => block[..key.len()].copy_from_slice(key),
                _ => block[..32].copy_from_slice(&digest(key)),
            }
            let pad = |byte: u8| block.map(|b| b ^ byte);
            let inner = digest(&[&pad(0x36)[..], b"1.{}"].concat());
            digest(&[&pad(0x5c)[..], &inner].concat())
        };
        let key = ApiKey::new(&[7; 32]);
        assert_eq!(hmac(key.expose().as_bytes()), hmac(&key.digest()));
        assert_ne!(
            hmac(&key.expose().as_bytes()[..64]),
            hmac(&digest(&key.expose().as_bytes()[..64]))
        );
    }
}
