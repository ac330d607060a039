//! A secp256k1 key as VM families ask for it.

use std::sync::Arc;

use async_trait::async_trait;
use k256::schnorr;
use vm::{
    trade::{Message, Scheme, Unsigned},
    types::{B256, Bytes},
};

use super::{SignError, Signer};

/// Signs what families hand it. Every signature is checked to be the key's own before it is given out.
pub(super) struct Secp256k1(pub Arc<dyn Signer>);

#[async_trait]
impl vm::trade::Signer for Secp256k1 {
    fn scheme(&self) -> Scheme {
        Scheme::Secp256k1
    }

    fn public_key(&self) -> Bytes {
        Bytes::copy_from_slice(&self.0.public_key())
    }

    async fn sign(&self, message: Message<'_>) -> Result<Bytes, Unsigned> {
        let signature = match message {
            Message::Ecdsa(digest) => self.ecdsa(digest).await,
            Message::Schnorr(digest) => self.schnorr(digest).await,
            Message::Ed25519(_) => {
                let what = "a secp256k1 key makes no Ed25519 signatures";
                return Err(Unsigned(what.to_owned()));
            }
        };
        signature.map_err(|error| Unsigned(error.to_string()))
    }
}

impl Secp256k1 {
    async fn ecdsa(&self, digest: &B256) -> Result<Bytes, SignError> {
        let signature = self.0.sign(digest).await?;
        match signature.recover(digest) {
            Ok(signer) if signer == self.0.address() => {
                Ok(Bytes::copy_from_slice(signature.as_bytes()))
            }
            _ => Err(SignError::Foreign),
        }
    }

    async fn schnorr(&self, digest: &B256) -> Result<Bytes, SignError> {
        let bytes = self.0.sign_schnorr(digest).await?;
        let foreign = |_| SignError::Foreign;
        // A key's BIP-340 form is its horizontal coordinate.
        let key = schnorr::VerifyingKey::from_bytes(&self.0.public_key()[1..]).map_err(foreign)?;
        let signature = schnorr::Signature::try_from(&bytes[..]).map_err(foreign)?;
        key.verify_raw(&digest[..], &signature).map_err(foreign)?;
        Ok(Bytes::copy_from_slice(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use vm::{protocol::signature::Signature, trade::Signer as _, types::EvmAddress};

    use super::*;
    use crate::sign::raw::RawKey;

    const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";

    fn raw(text: &str) -> RawKey {
        RawKey::parse(text).unwrap()
    }

    /// A key service: it has one key, signs with another, and makes no BIP-340 signatures.
    struct Service(RawKey, RawKey);

    #[async_trait]
    impl Signer for Service {
        fn address(&self) -> EvmAddress {
            self.0.address()
        }

        fn public_key(&self) -> [u8; 33] {
            self.0.public_key()
        }

        fn deterministic(&self) -> bool {
            true
        }

        async fn sign(&self, digest: &B256) -> Result<Signature, SignError> {
            self.1.sign(digest).await
        }
    }

    /// The same, with BIP-340 signatures.
    struct Impostor(Service);

    #[async_trait]
    impl Signer for Impostor {
        fn address(&self) -> EvmAddress {
            self.0.address()
        }

        fn public_key(&self) -> [u8; 33] {
            self.0.public_key()
        }

        fn deterministic(&self) -> bool {
            true
        }

        async fn sign(&self, digest: &B256) -> Result<Signature, SignError> {
            self.0.sign(digest).await
        }

        async fn sign_schnorr(&self, digest: &B256) -> Result<[u8; 64], SignError> {
            self.0.1.sign_schnorr(digest).await
        }
    }

    fn scalar(number: u8) -> String {
        format!("0x{number:064x}")
    }

    #[tokio::test]
    async fn bip_340_signatures_are_those_of_its_first_vector() {
        let key = Secp256k1(Arc::new(raw(&scalar(3))));
        let public = "02f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9";
        assert_eq!(alloy::hex::encode(key.public_key()), public);
        let signature = key.sign(Message::Schnorr(&B256::ZERO)).await.unwrap();
        let expected = "e907831f80848d1069a5371b402410364bdf1c5f8307b0084c55f1ce2dca8215\
                        25f66a4a85ea8b71e482a74f382d2ce5ebeee8fdb2172f477df4900d310536c0";
        assert_eq!(alloy::hex::encode(signature), expected);
    }

    #[tokio::test]
    async fn both_kinds_of_signature_are_made_with_every_key() {
        // Public keys of both parities.
        for number in 1..=8 {
            let key = Secp256k1(Arc::new(raw(&scalar(number))));
            assert_eq!(key.scheme(), Scheme::Secp256k1);
            let digest = B256::repeat_byte(number);
            let ecdsa = key.sign(Message::Ecdsa(&digest)).await.unwrap();
            let signed = key.0.sign(&digest).await.unwrap();
            assert_eq!(ecdsa[..], signed.as_bytes()[..]);
            let schnorr = key.sign(Message::Schnorr(&digest)).await.unwrap();
            assert_eq!(schnorr.len(), 64);
        }
    }

    #[tokio::test]
    async fn a_signature_of_another_key_is_not_given_out() {
        let foreign = Unsigned(SignError::Foreign.to_string());
        let digest = B256::repeat_byte(1);
        let service = Service(raw(KEY), raw(&scalar(3)));
        let key = Secp256k1(Arc::new(Impostor(service)));
        for message in [Message::Ecdsa(&digest), Message::Schnorr(&digest)] {
            assert_eq!(key.sign(message).await, Err(foreign.clone()));
        }
    }

    #[tokio::test]
    async fn what_a_key_cannot_sign_is_said() {
        let digest = B256::repeat_byte(1);
        let key = Secp256k1(Arc::new(Service(raw(KEY), raw(KEY))));
        assert!(key.sign(Message::Ecdsa(&digest)).await.is_ok());
        let unable = key.sign(Message::Schnorr(&digest)).await.unwrap_err();
        assert!(unable.0.contains("BIP-340"), "{unable}");
        let key = Secp256k1(Arc::new(raw(KEY)));
        let foreign = key.sign(Message::Ed25519(&digest[..])).await.unwrap_err();
        assert!(foreign.0.contains("Ed25519"), "{foreign}");
    }
}
