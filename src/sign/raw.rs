//! A private key from the configuration, in memory until it is dropped, and wiped then. It can not be
//! printed: it has neither `Debug` nor `Display`.

use std::fmt;

use async_trait::async_trait;
use k256::{ecdsa::SigningKey, schnorr};
use secp256k1::{Message, SECP256K1, SecretKey};
use vm::protocol::signature::Signature;
use vm::types::{B256, EvmAddress};
use zeroize::{ZeroizeOnDrop, Zeroizing};

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

/// Signs deterministically: ECDSA by RFC 6979 with low s, BIP-340 with auxiliary bytes of zeros.
#[derive(ZeroizeOnDrop)]
pub struct RawKey {
    key: SigningKey,
    #[zeroize(skip)]
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

    /// The key that is 1. Everybody has it: what it signs is worth nothing.
    pub fn nobody() -> Result<Self, KeyError> {
        Self::parse(&format!("0x{:064x}", 1))
    }
}

#[async_trait]
impl Signer for RawKey {
    fn address(&self) -> EvmAddress {
        self.address
    }

    fn public_key(&self) -> [u8; 33] {
        let point = self.key.verifying_key().to_encoded_point(true);
        let mut bytes = [0; 33];
        bytes.copy_from_slice(point.as_bytes());
        bytes
    }

    fn deterministic(&self) -> bool {
        true
    }

    async fn sign(&self, digest: &B256) -> Result<Signature, SignError> {
        let unavailable = |e: &dyn fmt::Display| SignError::Unavailable(e.to_string());
        let bytes = Zeroizing::new(<[u8; 32]>::from(self.key.to_bytes()));
        // libsecp256k1 takes half the time of k256; both follow RFC 6979.
        let mut key = SecretKey::from_slice(&bytes[..]).map_err(|e| unavailable(&e))?;
        let signature = SECP256K1.sign_ecdsa_recoverable(&Message::from_digest(digest.0), &key);
        key.non_secure_erase();
        let (id, scalars) = signature.serialize_compact();
        let (r, s) = scalars.split_at(32);
        let (r, s) = (B256::from_slice(r), B256::from_slice(s));
        Signature::from_scalars(r, s, id.to_i32() & 1 == 1).map_err(|e| unavailable(&e))
    }

    async fn sign_schnorr(&self, digest: &B256) -> Result<[u8; 64], SignError> {
        let key = schnorr::SigningKey::from(*self.key.as_nonzero_scalar());
        let signature = key
            .sign_raw(&digest[..], &[0; 32])
            .map_err(|error| SignError::Unavailable(error.to_string()))?;
        Ok(signature.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use vm::protocol::message::{Domain, Execution, TypedMessage};

    use super::*;

    const TEXT: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
    const ORDER: &str = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
    const VECTORS: &str = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/vm/fixtures/vectors/sign_execution.json"
    ));

    #[tokio::test]
    async fn executions_are_signed_byte_for_byte_as_recorded() {
        let key = RawKey::parse(TEXT).unwrap();
        let vectors: Value = serde_json::from_str(VECTORS).unwrap();
        let cases = vectors["cases"].as_array().unwrap();
        assert!(cases.len() > 50);
        for case in cases {
            let text = |field: &Value| field.as_str().unwrap().to_owned();
            let (input, expected) = (&case["input"], &case["expected"]);
            let chain = text(&expected["oracleChainId"]).parse().unwrap();
            let contract = text(&expected["oracleContract"]).parse().unwrap();
            let execution = Execution {
                idempotency_key: text(&input["idempotencyKey"]).parse().unwrap(),
                actions: input["actions"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|action| text(action).parse().unwrap())
                    .collect(),
            };
            let digest = execution.digest(&Domain::oracle("2", chain, contract));
            let signature = key.sign(&digest).await.unwrap();
            assert_eq!(
                signature.to_string(),
                text(&expected["signature"]),
                "{}",
                case["id"]
            );
            assert_eq!(signature.recover(&digest), Ok(key.address()));
            let signer = text(&expected["oracleSigner"]);
            assert_eq!(format!("{:?}", key.address()), signer);
        }
    }

    /// k256 implements RFC 6979 by itself.
    #[tokio::test]
    async fn every_digest_is_signed_as_k256_signs_it() {
        let digests = (0..200_u8).map(|byte| alloy::primitives::keccak256([byte]));
        let last = format!("0x{}0", &ORDER[..63]);
        for text in [TEXT, &format!("0x{:064x}", 1), &last] {
            let key = RawKey::parse(text).unwrap();
            for digest in digests.clone().chain([B256::ZERO]) {
                let (signature, id) = key.key.sign_prehash_recoverable(&digest[..]).unwrap();
                let (r, s) = signature.split_bytes();
                let (r, s) = (B256::from_slice(&r), B256::from_slice(&s));
                let expected = Signature::from_scalars(r, s, id.is_y_odd()).unwrap();
                assert_eq!(key.sign(&digest).await.unwrap(), expected, "{digest}");
                assert_eq!(expected.recover(&digest), Ok(key.address()));
            }
            // Of a digest above the order, which one hash in 2^128 is, libsecp256k1 makes the nonce without a reduction.
            let above = B256::repeat_byte(0xff);
            let signature = key.sign(&above).await.unwrap();
            assert_eq!(signature.recover(&above), Ok(key.address()));
        }
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_repeated() {
        let above = format!("0x{}2", &ORDER[..63]);
        let table = [
            (String::new(), KeyError::Prefix),
            (TEXT[2..].to_owned(), KeyError::Prefix),
            (format!("0X{}", &TEXT[2..]), KeyError::Prefix),
            ("0x".to_owned(), KeyError::Length(0)),
            (TEXT[..65].to_owned(), KeyError::Length(63)),
            (format!("{TEXT}0"), KeyError::Length(65)),
            (format!("{TEXT}\n"), KeyError::Length(65)),
            (format!("0xé{}", &TEXT[3..]), KeyError::Hex),
            (format!("0xg{}", &TEXT[3..]), KeyError::Hex),
            (format!("0x{}", "0".repeat(64)), KeyError::Range),
            (format!("0x{ORDER}"), KeyError::Range),
            (above, KeyError::Range),
            (format!("0x{}", "f".repeat(64)), KeyError::Range),
        ];
        for (text, expected) in table {
            let error = RawKey::parse(&text).err().unwrap();
            assert_eq!(error, expected, "{text:?}");
            let shown = format!("{error} {error:?}");
            assert!(text.len() < 16 || !shown.contains(&text[4..16]), "{shown}");
        }
        let highest = format!("0x{}0", &ORDER[..63]);
        assert!(RawKey::parse(&highest).is_ok());
        assert!(RawKey::parse(&format!("0x{}1", "0".repeat(63))).is_ok());
    }

    #[test]
    fn a_key_is_wiped_when_it_is_dropped() {
        fn wiped<T: ZeroizeOnDrop>() {}
        wiped::<SigningKey>();
        wiped::<RawKey>();
    }

    #[tokio::test]
    async fn one_digest_has_one_signature() {
        let key = RawKey::parse(TEXT).unwrap();
        assert!(key.deterministic());
        for byte in 0..64 {
            let digest = B256::repeat_byte(byte);
            let signature = key.sign(&digest).await.unwrap();
            assert_eq!(signature, key.sign(&digest).await.unwrap());
            assert_eq!(signature.recover(&digest), Ok(key.address()));
            let schnorr = key.sign_schnorr(&digest).await.unwrap();
            assert_eq!(key.sign_schnorr(&digest).await, Ok(schnorr));
        }
    }

    #[test]
    fn the_public_key_is_that_of_the_account() {
        let key = RawKey::parse(TEXT).unwrap();
        let public = k256::ecdsa::VerifyingKey::from_sec1_bytes(&key.public_key()).unwrap();
        assert_eq!(EvmAddress::from_public_key(&public), key.address());
    }
}
