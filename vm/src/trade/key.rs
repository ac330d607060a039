//! Keys of accounts, by scheme. A signer signs what a family hands it.

use async_trait::async_trait;

use crate::types::{B256, Bytes};

/// Which keys the accounts of a family have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// ECDSA and BIP-340 over secp256k1. A public key has 33 bytes: SEC 1, compressed.
    Secp256k1,
    /// RFC 8032. A public key has 32 bytes.
    Ed25519,
}

/// What a family wants signed, in the scheme of its accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// ECDSA over secp256k1 of 32 bytes as they are; the signature is `r || s || v`, 65 bytes.
    Ecdsa(&'a B256),
    /// BIP-340 over secp256k1 of 32 bytes as they are; 64 bytes.
    Schnorr(&'a B256),
    /// Ed25519 of any bytes; 64 bytes.
    Ed25519(&'a [u8]),
}

/// Why there is no signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsigned(pub String);

/// A key, here or in a key service.
#[async_trait]
pub trait Signer: Send + Sync {
    fn scheme(&self) -> Scheme;
    /// As [`Scheme`] says.
    fn public_key(&self) -> Bytes;
    /// A signature that is checked to be the key's own; an error where the key is of another scheme.
    async fn sign(&self, message: Message<'_>) -> Result<Bytes, Unsigned>;
}
