//! Keys, the oracle's and the solver's. A signer signs any digest that it is given. Only the journal calls the
//! oracle's: it decides what may be signed. The solver's signs orders (`quote`), claims and transactions (`solver`).

pub mod raw;

use std::sync::Arc;

use async_trait::async_trait;
use vm::protocol::signature::Signature;
use vm::{
    trade::{Message, Unsigned},
    types::{B256, Bytes, EvmAddress},
};

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

/// A signer as VM families ask for it: it signs what they hand it.
pub struct ForFamilies(pub Arc<dyn Signer>);

#[async_trait]
impl vm::trade::Signer for ForFamilies {
    fn account(&self) -> Bytes {
        Bytes::copy_from_slice(self.0.address().as_slice())
    }

    async fn sign(&self, message: Message<'_>) -> Result<Bytes, Unsigned> {
        let Message::Secp256k1(digest) = message;
        let refused = |error: SignError| Unsigned(error.to_string());
        let signature = self.0.sign(digest).await.map_err(refused)?;
        if signature.recover(digest) != Ok(self.0.address()) {
            return Err(refused(SignError::Foreign));
        }
        Ok(Bytes::copy_from_slice(signature.as_bytes()))
    }
}
