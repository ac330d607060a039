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
use vm::EvmAddress;

/// What a call is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// The key's signature, another one each time.
    Good,
    /// The same with s above half of the order.
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
    /// No DER signature.
    Malformed,
    /// A key of another kind.
    OtherKind,
}

/// The key of a fake.
pub struct Vault {
    key: SigningKey,
    /// What the next calls are answered with; then as usual.
    next: Mutex<VecDeque<Mood>>,
    usual: Mutex<Mood>,
    signed: AtomicUsize,
}

impl Vault {
    /// With a key as `0x` and hex.
    pub fn of(key: &str) -> Self {
        let key = alloy::hex::decode(key).unwrap();
        Self {
            key: SigningKey::from_slice(&key).unwrap(),
            next: Mutex::default(),
            usual: Mutex::new(Mood::Good),
            signed: AtomicUsize::new(0),
        }
    }

    pub fn address(&self) -> EvmAddress {
        EvmAddress::from_public_key(self.key.verifying_key())
    }

    /// The DER SubjectPublicKeyInfo.
    pub fn spki(&self) -> Vec<u8> {
        let public = k256::PublicKey::from(self.key.verifying_key());
        public.to_public_key_der().unwrap().into_vec()
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

    /// What a call for a signature is answered with, and a DER signature in its mood.
    pub fn sign(&self, digest: &[u8]) -> (Mood, Vec<u8>) {
        self.signed.fetch_add(1, Ordering::SeqCst);
        let mood = self.mood();
        let der = match mood {
            Mood::Malformed => vec![0x30, 2, 1, 1],
            Mood::OtherSignature => der(&SigningKey::from_slice(&[9; 32]).unwrap(), digest, mood),
            _ => der(&self.key, digest, mood),
        };
        (mood, der)
    }
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
