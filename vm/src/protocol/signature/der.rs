//! The answers of key-management services: DER signatures and DER public keys (guide: protocol 6.4).

use k256::elliptic_curve::sec1::ToEncodedPoint;
use k256::pkcs8::DecodePublicKey;
use secp256k1::{PublicKey, ecdsa};

use super::{Signature, SignatureError, account};
use crate::types::{B256, EvmAddress};

impl Signature {
    /// Converts the DER answer of the service that holds `signer`'s key: low s, and the v that recovers `signer` from
    /// `digest`. [`Unrecoverable`](SignatureError::Unrecoverable) for another key's signature.
    pub fn from_der(der: &[u8], digest: &B256, signer: EvmAddress) -> Result<Self, SignatureError> {
        let signature = ecdsa::Signature::from_der(der).map_err(|_| SignatureError::Malformed)?;
        let compact = signature.serialize_compact();
        let (r, s) = (
            B256::from_slice(&compact[..32]),
            B256::from_slice(&compact[32..]),
        );
        for odd in [false, true] {
            let candidate = Self::from_scalars(r, s, odd)?;
            if candidate.recover(digest) == Ok(signer) {
                return Ok(candidate);
            }
        }
        Err(SignatureError::Unrecoverable)
    }
}

/// The account of a DER SubjectPublicKeyInfo with a secp256k1 key; `None` for any other bytes or key.
pub fn account_of_spki(spki: &[u8]) -> Option<EvmAddress> {
    let key = k256::PublicKey::from_public_key_der(spki).ok()?;
    let point = key.to_encoded_point(false);
    Some(account(&PublicKey::from_slice(point.as_bytes()).ok()?))
}

#[cfg(test)]
mod tests {
    use alloy::primitives::b256;
    use k256::{ecdsa::SigningKey, pkcs8::EncodePublicKey};
    use proptest::prelude::*;

    use super::*;

    const DIGEST: B256 = b256!("222ac80a04e4eb01770acbd6f201b32a2fc4e2150c3d46a5ea9380edd5db7bc1");

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_slice(&[seed; 32]).unwrap()
    }

    fn signer(seed: u8) -> EvmAddress {
        account_of_spki(&spki(seed)).unwrap()
    }

    fn spki(seed: u8) -> Vec<u8> {
        let public = k256::PublicKey::from(key(seed).verifying_key());
        public.to_public_key_der().unwrap().into_vec()
    }

    fn signed(seed: u8) -> k256::ecdsa::Signature {
        key(seed).sign_prehash_recoverable(&DIGEST[..]).unwrap().0
    }

    fn integer(bytes: &[u8]) -> Vec<u8> {
        [&[2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    fn sequence(r: &[u8], s: &[u8]) -> Vec<u8> {
        let body = [integer(r), integer(s)].concat();
        [&[0x30, u8::try_from(body.len()).unwrap()], &body[..]].concat()
    }

    #[test]
    fn low_and_high_s_give_one_signature() {
        let low = signed(7);
        let (r, s) = low.split_scalars();
        let high = k256::ecdsa::Signature::from_scalars(*r, -*s).unwrap();
        let from = |signature: &k256::ecdsa::Signature| {
            Signature::from_der(signature.to_der().as_bytes(), &DIGEST, signer(7)).unwrap()
        };
        assert_eq!(from(&low), from(&high));
        assert_eq!(from(&low).recover(&DIGEST), Ok(signer(7)));
    }

    #[test]
    fn short_scalars_are_padded() {
        // A scalar with leading zero bytes is shorter in DER; look for a signature that has one.
        let short = (0u32..).map(|n| alloy::primitives::keccak256(n.to_be_bytes()));
        let (digest, signature) = short
            .map(|digest| {
                (
                    digest,
                    key(7).sign_prehash_recoverable(&digest[..]).unwrap().0,
                )
            })
            .find(|(_, signature)| signature.split_bytes().0[0] == 0)
            .unwrap();
        let der = signature.to_der();
        let ours = Signature::from_der(der.as_bytes(), &digest, signer(7)).unwrap();
        assert_eq!(ours.as_bytes()[..64], signature.to_bytes()[..]);
    }

    #[test]
    fn another_keys_signature_is_refused() {
        let der = signed(8).to_der();
        let answer = Signature::from_der(der.as_bytes(), &DIGEST, signer(7));
        assert_eq!(answer, Err(SignatureError::Unrecoverable));
        let other = Signature::from_der(signed(7).to_der().as_bytes(), &B256::ZERO, signer(7));
        assert_eq!(other, Err(SignatureError::Unrecoverable));
    }

    #[test]
    fn what_is_no_signature_is_refused() {
        let good = signed(7).to_der().as_bytes().to_vec();
        let order = [&[0][..], &super::super::ORDER[..]].concat();
        let below = [&[0][..], &[0xff; 32]].concat();
        let (r, s) = signed(7).split_bytes();
        let table = [
            ("empty", vec![]),
            ("truncated", good[..good.len() - 1].to_vec()),
            ("trailing byte", [&good[..], &[0]].concat()),
            ("raw", [&r[..], &s[..]].concat()),
            ("r 0", sequence(&[0], &[1])),
            ("s 0", sequence(&[1], &[0])),
            ("r n", sequence(&order, &[1])),
            ("s n", sequence(&[1], &order)),
            ("r above n", sequence(&below, &[1])),
            ("negative r", sequence(&[0xff], &[1])),
            (
                "excess zeros",
                sequence(&[&[0, 0][..], &[1]].concat(), &[1]),
            ),
            ("33 bytes", sequence(&[1; 33], &[1])),
            ("no integers", vec![0x30, 0]),
            ("endless length", vec![0x30, 0x84, 0xff, 0xff, 0xff, 0xff]),
        ];
        for (name, der) in table {
            assert!(
                Signature::from_der(&der, &DIGEST, signer(7)).is_err(),
                "{name}"
            );
        }
    }

    #[test]
    fn keys_of_other_curves_and_broken_ones_have_no_account() {
        let good = spki(7);
        let mut other_curve = good.clone();
        let oid = good
            .windows(5)
            .position(|w| w == [0x2b, 0x81, 0x04, 0x00, 0x0a])
            .unwrap();
        other_curve[oid + 4] = 0x22;
        let mut off_curve = good.clone();
        *off_curve.last_mut().unwrap() ^= 1;
        let trailing = [&good[..], &[0]].concat();
        for wrong in [
            &[][..],
            &good[..40],
            &good[23..],
            &other_curve,
            &off_curve,
            &trailing,
        ] {
            assert_eq!(account_of_spki(wrong), None);
        }
        assert_ne!(signer(7), signer(8));
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes: Vec<u8>, at in 0usize..70, to: u8) {
            let _ = Signature::from_der(&bytes, &DIGEST, EvmAddress::ZERO);
            let _ = account_of_spki(&bytes);
            let mut der = signed(7).to_der().as_bytes().to_vec();
            let mut key = spki(7);
            if let Some(byte) = der.get_mut(at) {
                *byte = to;
            }
            if let Some(byte) = key.get_mut(at) {
                *byte = to;
            }
            let _ = Signature::from_der(&der, &DIGEST, EvmAddress::ZERO);
            let _ = account_of_spki(&key);
        }
    }
}
