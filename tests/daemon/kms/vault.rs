//! What both fakes of key services have in common: a key, and what is done instead of signing with it.

use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use k256::{
    ecdsa::{Signature, SigningKey, signature::hazmat::RandomizedPrehashSigner},
    elliptic_curve::rand_core::OsRng,
    pkcs8::EncodePublicKey,
};
use vm::{EvmAddress, trade::Scheme};

/// What a call is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// The key's signature, another one each time.
    Good,
    /// The same with s above half of the order; of an ed25519 key, above the order.
    HighS,
    /// The same with a leading zero byte in r or s, so that its DER is shorter.
    LeadingZeros,
    Throttled,
    Denied,
    /// No answer.
    Slow,
    /// Another key's signature, as if it were this key's.
    OtherSignature,
    /// Another key, and it says so.
    OtherKey,
    /// An answer that was damaged on its way.
    Corrupted,
    /// An answer without its checksum. Google alone has checksums.
    Unchecked,
    /// A signature of a digest whose checksum was not verified. Google alone verifies it.
    Unverified,
    /// No signature.
    Malformed,
    /// A key of another kind.
    OtherKind,
}

enum Key {
    Secp256k1(SigningKey),
    Ed25519(ed25519_dalek::SigningKey),
}

/// The key of a fake.
pub struct Vault {
    key: Key,
    /// What the next calls are answered with; then as usual.
    next: Mutex<VecDeque<Mood>>,
    usual: Mutex<Mood>,
    signed: AtomicUsize,
}

impl Vault {
    /// With a key as `0x` and hex.
    pub fn of(key: &str) -> Self {
        let key = alloy::hex::decode(key).unwrap();
        Self::with(Key::Secp256k1(SigningKey::from_slice(&key).unwrap()))
    }

    /// With an ed25519 key of this seed.
    pub fn of_seed(seed: [u8; 32]) -> Self {
        let key = ed25519_dalek::SigningKey::from_bytes(&seed);
        Self::with(Key::Ed25519(key))
    }

    fn with(key: Key) -> Self {
        Self {
            key,
            next: Mutex::default(),
            usual: Mutex::new(Mood::Good),
            signed: AtomicUsize::new(0),
        }
    }

    pub fn scheme(&self) -> Scheme {
        match &self.key {
            Key::Secp256k1(_) => Scheme::Secp256k1,
            Key::Ed25519(_) => Scheme::Ed25519,
        }
    }

    /// The account of a secp256k1 key.
    pub fn address(&self) -> EvmAddress {
        let Key::Secp256k1(key) = &self.key else {
            panic!("an ed25519 key has no such account");
        };
        EvmAddress::from_public_key(key.verifying_key())
    }

    /// The DER SubjectPublicKeyInfo.
    pub fn spki(&self) -> Vec<u8> {
        match &self.key {
            Key::Secp256k1(key) => {
                let public = k256::PublicKey::from(key.verifying_key());
                public.to_public_key_der().unwrap().into_vec()
            }
            Key::Ed25519(key) => {
                // RFC 8410, 4.
                let before = alloy::hex::decode("302a300506032b6570032100").unwrap();
                [&before[..], key.verifying_key().as_bytes()].concat()
            }
        }
    }

    /// How often a signature was asked for.
    pub fn signed(&self) -> usize {
        self.signed.load(Ordering::SeqCst)
    }

    pub fn usually(&self, mood: Mood) {
        *self.usual.lock().unwrap() = mood;
    }

    /// The next `times` calls.
    pub fn next(&self, mood: Mood, times: usize) {
        let moods = std::iter::repeat_n(mood, times);
        self.next.lock().unwrap().extend(moods);
    }

    pub fn mood(&self) -> Mood {
        let next = self.next.lock().unwrap().pop_front();
        next.unwrap_or_else(|| *self.usual.lock().unwrap())
    }

    /// What a call for a signature is answered with, and a signature in its mood: DER over a digest, or the 64 bytes of
    /// an ed25519 key over a message.
    pub fn sign(&self, message: &[u8]) -> (Mood, Vec<u8>) {
        self.signed.fetch_add(1, Ordering::SeqCst);
        let mood = self.mood();
        let other = mood == Mood::OtherSignature;
        let signature = match &self.key {
            _ if mood == Mood::Malformed => vec![0x30, 2, 1, 1],
            Key::Secp256k1(_) if other => {
                der(&SigningKey::from_slice(&[9; 32]).unwrap(), message, mood)
            }
            Key::Secp256k1(key) => der(key, message, mood),
            Key::Ed25519(_) if other => raw(
                &ed25519_dalek::SigningKey::from_bytes(&[9; 32]),
                message,
                mood,
            ),
            Key::Ed25519(key) => raw(key, message, mood),
        };
        (mood, signature)
    }
}

/// The order of edwards25519's group, little-endian (RFC 8032, 5.1).
const ORDER: &str = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";

fn raw(key: &ed25519_dalek::SigningKey, message: &[u8], mood: Mood) -> Vec<u8> {
    let mut signature = ed25519_dalek::Signer::sign(key, message).to_bytes();
    if mood == Mood::HighS {
        let order = alloy::hex::decode(ORDER).unwrap();
        let mut carry = 0;
        for (byte, of_order) in signature[32..].iter_mut().zip(order) {
            let sum = u16::from(*byte) + u16::from(of_order) + carry;
            (*byte, carry) = (sum as u8, sum >> 8);
        }
    }
    signature.to_vec()
}

fn der(key: &SigningKey, digest: &[u8], mood: Mood) -> Vec<u8> {
    let sign = || -> Signature { key.sign_prehash_with_rng(&mut OsRng, digest).unwrap() };
    let short = |signature: &Signature| {
        let (r, s) = signature.split_bytes();
        r[0] == 0 || s[0] == 0
    };
    let signature = match mood {
        Mood::LeadingZeros => std::iter::repeat_with(sign).find(short).unwrap(),
        _ => sign(),
    };
    let low = signature.normalize_s().unwrap_or(signature);
    let signature = match mood {
        Mood::HighS => {
            let (r, s) = low.split_scalars();
            Signature::from_scalars(*r, -*s).unwrap()
        }
        _ => low,
    };
    signature.to_der().as_bytes().to_vec()
}
