//! Owner signatures of `solana-vm`: ed25519 over the digest's hex text (guide: protocol 6.3).

use alloy::hex;
use ed25519_dalek::{Signature, VerifyingKey};

use crate::{Codec, OwnerClaim, OwnerVerifier, Refusal};

/// Verifies owner signatures of `solana-vm`: 64 bytes in hex, with or without `0x`.
pub struct Owners;

impl OwnerVerifier for Owners {
    fn verify(&self, claim: &OwnerClaim<'_>) -> Result<(), Refusal> {
        let refuse = |why: &str| Refusal(why.to_owned());
        let key: [u8; 32] = super::address::Addresses
            .encode_address(claim.owner)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| refuse("Invalid Solana owner address"))?;
        let signature: [u8; 64] = decode(claim.signature)
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| refuse("Invalid signature length"))?;
        VerifyingKey::from_bytes(&key)
            .and_then(|key| {
                let message = hex::encode(claim.digest);
                key.verify_strict(message.as_bytes(), &Signature::from_bytes(&signature))
            })
            .map_err(|_| refuse("Invalid signature"))
    }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    (digits.len() == 128).then(|| hex::decode(digits).ok())?
}
