//! Keys, the oracle's and the solver's. A signer signs any digest that it is given. Only the journal calls the
//! oracle's: it decides what may be signed. The solver's signs orders (`quote`), claims and transactions (`solver`).

pub mod aws_kms;
pub mod ed25519;
mod families;
pub mod gcp_kms;
pub mod kms;
pub mod kms_ed25519;
pub mod raw;
mod ring;

use async_trait::async_trait;
use vm::protocol::signature::Signature;
use vm::types::{B256, EvmAddress};

pub use self::ring::{FormerKey, KeyRing, variable};

/// A secp256k1 key, here or in a key service.
#[async_trait]
pub trait Signer: Send + Sync {
    /// The account of the key.
    fn address(&self) -> EvmAddress;
    /// The public key in SEC 1, compressed.
    fn public_key(&self) -> [u8; 33];
    /// Whether one digest always gives the same bytes.
    fn deterministic(&self) -> bool;
    /// Signs the 32 bytes as they are: ECDSA.
    async fn sign(&self, digest: &B256) -> Result<Signature, SignError>;
    /// Signs the 32 bytes as they are: BIP-340. [`SignError::Unable`] where the key service has no such signatures.
    async fn sign_schnorr(&self, _digest: &B256) -> Result<[u8; 64], SignError> {
        Err(SignError::Unable)
    }
}

/// Why there is no signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    #[error("signer unavailable: {0}")]
    Unavailable(String),
    #[error("the key service makes no BIP-340 signatures: this chain needs a raw key")]
    Unable,
    /// The signature is not by the signer's own key over this digest.
    #[error("the signer answered with a signature that is not its own")]
    Foreign,
}
