//! A private key from the configuration, in memory until it is dropped, and wiped then.

use std::fmt;

use async_trait::async_trait;
use k256::{ecdsa::SigningKey, elliptic_curve::zeroize::Zeroizing};
use vm::protocol::signature::Signature;
use vm::types::{B256, EvmAddress};

use super::{SignError, Signer};

/// A text that is not a private key. No variant repeats any part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the private key must start with 0x")]
    Prefix,
    #[error("the private key must have 64 hex digits after 0x, it has {0}")]
    Length(usize),
    #[error("the private key must be hex")]
    Hex,
    #[error("the private key must be above zero and below the order of secp256k1")]
    Range,
}

/// Signs deterministically (RFC 6979) with low s.
pub struct RawKey {
    key: SigningKey,
    address: EvmAddress,
}

impl RawKey {
    /// Reads `0x` and 64 hex digits.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let digits = text.strip_prefix("0x").ok_or(KeyError::Prefix)?;
        let count = digits.chars().count();
        if count != 64 {
            return Err(KeyError::Length(count));
        }
        let mut bytes = Zeroizing::new([0; 32]);
        alloy::hex::decode_to_slice(digits, bytes.as_mut_slice()).map_err(|_| KeyError::Hex)?;
        let key = SigningKey::from_slice(bytes.as_slice()).map_err(|_| KeyError::Range)?;
        let address = EvmAddress::from_public_key(key.verifying_key());
        Ok(Self { key, address })
    }
}

impl fmt::Debug for RawKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawKey({}, key redacted)", self.address)
    }
}

#[async_trait]
impl Signer for RawKey {
    fn address(&self) -> EvmAddress {
        self.address
    }

    fn deterministic(&self) -> bool {
        true
    }

    async fn sign(&self, digest: &B256) -> Result<Signature, SignError> {
        let unavailable = |e: &dyn fmt::Display| SignError::Unavailable(e.to_string());
        let (signature, id) = self
            .key
            .sign_prehash_recoverable(&digest[..])
            .map_err(|e| unavailable(&e))?;
        let (r, s) = signature.split_bytes();
        let (r, s) = (B256::from_slice(&r), B256::from_slice(&s));
        Signature::from_scalars(r, s, id.is_y_odd()).map_err(|e| unavailable(&e))
    }
}
