//! What a key-management service answers: DER signatures and DER public keys (oracle.md 6).

use k256::elliptic_curve::sec1::ToEncodedPoint;
use k256::pkcs8::DecodePublicKey;
use secp256k1::{PublicKey, ecdsa};

use super::{Signature, SignatureError, account};
use crate::types::{B256, EvmAddress};

impl Signature {
    /// The signature in the DER answer of the service that holds `signer`'s key: low s, and the v
    /// that recovers `signer` from `digest`. Another key's signature is
    /// [`Unrecoverable`](SignatureError::Unrecoverable).
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

/// The account of a DER SubjectPublicKeyInfo that holds a secp256k1 key; `None` for any other
/// bytes or key.
pub fn account_of_spki(spki: &[u8]) -> Option<EvmAddress> {
    let key = k256::PublicKey::from_public_key_der(spki).ok()?;
    let point = key.to_encoded_point(false);
    Some(account(&PublicKey::from_slice(point.as_bytes()).ok()?))
}
