//! Keys of accounts, by scheme. A signer signs what a family hands it.

use async_trait::async_trait;

use crate::types::{B256, Bytes};

/// What a family wants signed, in the scheme of its accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// ECDSA over secp256k1 of 32 bytes as they are; the signature is `r || s || v`.
    Secp256k1(&'a B256),
}

/// Why there is no signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsigned(pub String);

/// A key, here or in a key service.
#[async_trait]
pub trait Signer: Send + Sync {
    /// What the key's scheme calls it by: of secp256k1, the last 20 bytes of its public point's keccak256.
    fn account(&self) -> Bytes;
    /// A signature that is checked to be the key's own; an error where the key is of another scheme.
    async fn sign(&self, message: Message<'_>) -> Result<Bytes, Unsigned>;
}
