//! An ed25519 key from the configuration, in memory until it is dropped, and wiped then. It can not be printed: it has
//! neither `Debug` nor `Display`.

use async_trait::async_trait;
use ed25519_dalek::{Signer as _, SigningKey};
use vm::{
    trade::{Message, Scheme, Signer, Unsigned},
    types::Bytes,
};
use zeroize::{ZeroizeOnDrop, Zeroizing};

/// A text that is not an ed25519 key. No variant repeats any part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error(
        "the ed25519 key must be 0x and 64 hex digits, or a keypair of 64 bytes in base58 or as a JSON array"
    )]
    Form,
    #[error("the ed25519 key must have 64 hex digits after 0x, it has {0}")]
    Length(usize),
    #[error("the two halves of the ed25519 keypair do not belong together")]
    Pair,
}

/// Signs deterministically (RFC 8032).
#[derive(ZeroizeOnDrop)]
pub struct Ed25519Key(SigningKey);

impl Ed25519Key {
    /// Reads `0x` and the 64 hex digits of a seed, or a keypair (the seed, then the public key) as Solana's tools
    /// write it: in base58 or as a JSON array of bytes.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let Some(digits) = text.strip_prefix("0x") else {
            let pair = match text.strip_prefix('[') {
                Some(rest) => array(rest.strip_suffix(']').ok_or(KeyError::Form)?)?,
                None => base58(text)?,
            };
            let key = SigningKey::from_keypair_bytes(&pair).map_err(|_| KeyError::Pair)?;
            return Ok(Self(key));
        };
        let count = digits.chars().count();
        if count != 64 {
            return Err(KeyError::Length(count));
        }
        let mut seed = Zeroizing::new([0; 32]);
        alloy::hex::decode_to_slice(digits, seed.as_mut_slice()).map_err(|_| KeyError::Form)?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }
}

fn base58(text: &str) -> Result<Zeroizing<[u8; 64]>, KeyError> {
    let mut pair = Zeroizing::new([0; 64]);
    match bs58::decode(text).onto(pair.as_mut_slice()) {
        Ok(64) => Ok(pair),
        _ => Err(KeyError::Form),
    }
}

/// What stands between the brackets of a JSON array. It is read into a buffer that is wiped and never moved.
fn array(text: &str) -> Result<Zeroizing<[u8; 64]>, KeyError> {
    let mut pair = Zeroizing::new([0; 64]);
    let mut entries = text.split(',');
    for byte in pair.iter_mut() {
        let entry = entries.next().ok_or(KeyError::Form)?;
        *byte = entry.trim().parse().map_err(|_| KeyError::Form)?;
    }
    match entries.next() {
        None => Ok(pair),
        Some(_) => Err(KeyError::Form),
    }
}

/// What an ed25519 key signs; an error for a message of another scheme.
pub(super) fn message(message: Message<'_>) -> Result<&[u8], Unsigned> {
    match message {
        Message::Ed25519(text) => Ok(text),
        Message::Ecdsa(_) | Message::Schnorr(_) => {
            let what = "an ed25519 key makes no secp256k1 signatures";
            Err(Unsigned(what.to_owned()))
        }
    }
}

#[async_trait]
impl Signer for Ed25519Key {
    fn scheme(&self) -> Scheme {
        Scheme::Ed25519
    }

    fn public_key(&self) -> Bytes {
        Bytes::copy_from_slice(self.0.verifying_key().as_bytes())
    }

    async fn sign(&self, message: Message<'_>) -> Result<Bytes, Unsigned> {
        let text = self::message(message)?;
        let unsigned = |error: ed25519_dalek::SignatureError| Unsigned(error.to_string());
        let signature = self.0.try_sign(text).map_err(unsigned)?;
        let own = self.0.verifying_key();
        own.verify_strict(text, &signature).map_err(unsigned)?;
        Ok(Bytes::copy_from_slice(&signature.to_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use vm::types::B256;

    use super::*;

    // RFC 8032, 7.1: tests 1 and 3.
    const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    const PUBLIC: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    const VECTORS: [[&str; 4]; 2] = [
        [
            SEED,
            PUBLIC,
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ],
        [
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ],
    ];

    fn pair() -> Vec<u8> {
        alloy::hex::decode(format!("{SEED}{PUBLIC}")).unwrap()
    }

    fn json(bytes: &[u8]) -> String {
        serde_json::to_string(bytes).unwrap()
    }

    #[tokio::test]
    async fn signatures_are_those_of_the_standard() {
        for [seed, public, text, expected] in VECTORS {
            let key = Ed25519Key::parse(&format!("0x{seed}")).unwrap();
            assert_eq!(key.scheme(), Scheme::Ed25519);
            assert_eq!(alloy::hex::encode(key.public_key()), public);
            let text = alloy::hex::decode(text).unwrap();
            let signature = key.sign(Message::Ed25519(&text)).await.unwrap();
            assert_eq!(alloy::hex::encode(signature), expected);
        }
    }

    #[test]
    fn a_key_has_three_forms() {
        let pair = pair();
        let spaced = json(&pair).replace(',', ", ");
        for text in [
            format!("0x{SEED}"),
            bs58::encode(&pair).into_string(),
            json(&pair),
            spaced,
        ] {
            let key = Ed25519Key::parse(&text).unwrap();
            assert_eq!(alloy::hex::encode(key.public_key()), PUBLIC, "{text}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_repeated() {
        let mut other = pair();
        other[63] ^= 1;
        let table = [
            (String::new(), KeyError::Form),
            (SEED.to_owned(), KeyError::Form),
            (format!("0x{}", &SEED[1..]), KeyError::Length(63)),
            (format!("0x{SEED}0"), KeyError::Length(65)),
            (format!("0xg{}", &SEED[1..]), KeyError::Form),
            (format!("0xé{}", &SEED[1..]), KeyError::Form),
            (bs58::encode(&pair()[..32]).into_string(), KeyError::Form),
            (bs58::encode(&pair()[..63]).into_string(), KeyError::Form),
            (
                bs58::encode([&pair()[..], &[1]].concat()).into_string(),
                KeyError::Form,
            ),
            (json(&pair()[..63]), KeyError::Form),
            (json(&[&pair()[..], &[1]].concat()), KeyError::Form),
            (json(&pair()).replace("[157", "[257"), KeyError::Form),
            (json(&pair()).replace(']', ""), KeyError::Form),
            (json(&other), KeyError::Pair),
            (bs58::encode(&other).into_string(), KeyError::Pair),
        ];
        for (text, expected) in table {
            let error = Ed25519Key::parse(&text).err().unwrap();
            assert_eq!(error, expected, "{text:?}");
            let shown = format!("{error} {error:?}");
            assert!(text.len() < 16 || !shown.contains(&text[4..16]), "{shown}");
        }
    }

    #[tokio::test]
    async fn messages_of_other_schemes_are_refused() {
        let key = Ed25519Key::parse(&format!("0x{SEED}")).unwrap();
        let digest = B256::repeat_byte(1);
        for message in [Message::Ecdsa(&digest), Message::Schnorr(&digest)] {
            let refused = key.sign(message).await.unwrap_err();
            assert!(refused.0.contains("secp256k1"), "{refused}");
        }
    }

    #[test]
    fn a_key_is_wiped_when_it_is_dropped() {
        fn wiped<T: ZeroizeOnDrop>() {}
        wiped::<SigningKey>();
        wiped::<Ed25519Key>();
    }
}
