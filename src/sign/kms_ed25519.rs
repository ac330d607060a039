//! An ed25519 key in a key service, as VM families ask for it. A service signs a message as it is and answers with the
//! 64 bytes of RFC 8032.

use async_trait::async_trait;
use ed25519_dalek::{Signature, VerifyingKey};
use vm::{
    trade::{Message, Scheme, Signer, Unsigned},
    types::Bytes,
};

use super::{
    SignError, ed25519,
    kms::{KeyService, Patience, foreign, repeated},
};

/// What stands before the 32 bytes of the key in a DER SubjectPublicKeyInfo (RFC 8410, sections 4 and 10.1).
const SPKI: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// An ed25519 key in a key service. Its public key is asked for once.
pub struct KmsEd25519<S> {
    service: S,
    patience: Patience,
    key: VerifyingKey,
}

impl<S: KeyService> KmsEd25519<S> {
    /// Asks the service for the public key, and logs it in base58. An error where there is none in time, or none of
    /// ed25519.
    pub async fn open(service: S, patience: Patience) -> Result<Self, SignError> {
        let name = service.name();
        let spki = repeated(name, patience, || service.public_key()).await?;
        let key = verifying(&spki).ok_or_else(|| {
            SignError::Unavailable(format!("{name}: the key is not an ed25519 key"))
        })?;
        let address = bs58::encode(key.as_bytes()).into_string();
        tracing::info!(service = name, %address, "ed25519 key loaded");
        Ok(Self {
            service,
            patience,
            key,
        })
    }

    /// The 64 bytes, checked to be the key's own over the message.
    async fn signature(&self, message: &[u8]) -> Result<Bytes, SignError> {
        let name = self.service.name();
        let bytes = repeated(name, self.patience, || self.service.sign(message)).await?;
        let signature = Signature::from_slice(&bytes).map_err(|_| {
            SignError::Unavailable(format!("{name}: the answer is not a signature"))
        })?;
        let own = self.key.verify_strict(message, &signature);
        own.map_err(|_| foreign(name, &"a signature that is not the key's"))?;
        Ok(bytes.into())
    }
}

/// The key of a DER SubjectPublicKeyInfo.
fn verifying(spki: &[u8]) -> Option<VerifyingKey> {
    let key = spki.strip_prefix(&SPKI[..])?.try_into().ok()?;
    VerifyingKey::from_bytes(key).ok()
}

#[async_trait]
impl<S: KeyService> Signer for KmsEd25519<S> {
    fn scheme(&self) -> Scheme {
        Scheme::Ed25519
    }

    fn public_key(&self) -> Bytes {
        Bytes::copy_from_slice(self.key.as_bytes())
    }

    async fn sign(&self, message: Message<'_>) -> Result<Bytes, Unsigned> {
        let signed = self.signature(ed25519::message(message)?).await;
        signed.map_err(|error| Unsigned(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 8410, 10.1: the example's public key.
    const EXAMPLE: &str =
        "302a300506032b657003210019bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";

    #[test]
    fn the_standards_example_is_a_key_and_nothing_else_is() {
        let spki = alloy::hex::decode(EXAMPLE).unwrap();
        let key = verifying(&spki).unwrap();
        assert_eq!(key.as_bytes()[..], spki[12..]);
        let longer = [&spki[..], &[0]].concat();
        let mut x25519 = spki.clone();
        // The same form with the OID of X25519.
        x25519[8] = 0x6e;
        for wrong in [&spki[..0], &spki[1..], &spki[..43], &longer, &x25519] {
            assert_eq!(verifying(wrong), None, "{wrong:?}");
        }
    }
}
