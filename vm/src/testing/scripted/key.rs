//! Ed25519 keys of the solver and of users, in memory.

use async_trait::async_trait;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

use crate::{
    Address, B256, Bytes,
    trade::{Message, Scheme, Signer, Unsigned},
};

use super::codec;

/// An ed25519 key.
#[derive(Clone)]
pub struct Key(SigningKey);

impl Key {
    /// The key whose 32 secret bytes are all `seed`.
    pub fn of(seed: u8) -> Self {
        Self(SigningKey::from_bytes(&[seed; 32]))
    }

    /// The key's account.
    pub fn account(&self) -> Address {
        codec::spelled(self.bytes())
    }

    /// The bytes of the key's account.
    pub fn bytes(&self) -> B256 {
        B256::new(self.0.verifying_key().to_bytes())
    }

    pub(crate) fn signature(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

#[async_trait]
impl Signer for Key {
    fn scheme(&self) -> Scheme {
        Scheme::Ed25519
    }

    fn public_key(&self) -> Bytes {
        self.bytes().into()
    }

    async fn sign(&self, message: Message<'_>) -> Result<Bytes, Unsigned> {
        match message {
            Message::Ed25519(bytes) => Ok(self.signature(bytes).to_vec().into()),
            Message::Ecdsa(_) | Message::Schnorr(_) => {
                Err(Unsigned("an ed25519 key signs in no other scheme".into()))
            }
        }
    }
}

/// Whether `signature` is a signature of the account over `message`.
pub fn is_signed(account: &B256, message: &[u8], signature: &[u8]) -> bool {
    let signature = Signature::from_slice(signature);
    let key = VerifyingKey::from_bytes(&account.0);
    match (key, signature) {
        (Ok(key), Ok(signature)) => key.verify_strict(message, &signature).is_ok(),
        _ => false,
    }
}
