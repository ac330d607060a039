//! Keys that sign for this oracle. A signer signs any digest that it is given: what may be signed is
//! the journal's decision, and only the journal calls a signer.

pub mod raw;

use async_trait::async_trait;
use vm::protocol::signature::Signature;
use vm::types::{B256, EvmAddress};

/// A secp256k1 key, here or in a key service.
#[async_trait]
pub trait Signer: Send + Sync {
    /// The account of the key.
    fn address(&self) -> EvmAddress;
    /// Whether one digest always gives the same bytes.
    fn deterministic(&self) -> bool;
    /// Signs the 32 bytes as they are.
    async fn sign(&self, digest: &B256) -> Result<Signature, SignError>;
}

/// Why there is no signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    #[error("signer unavailable: {0}")]
    Unavailable(String),
    /// The signature is not by the signer's own address over this digest.
    #[error("the signer answered with a signature that is not its own")]
    Foreign,
}
