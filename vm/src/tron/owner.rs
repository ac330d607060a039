//! Owner signatures of `tron-vm`: TIP-191 over the digest's hex text (guide: protocol 6.3).

use alloy::{hex, primitives::keccak256};

use crate::{
    Codec, OwnerClaim, OwnerVerifier, Refusal,
    protocol::signature::{SignatureError, recover_wallet, signature_hex},
    types::B256,
};

/// Verifies owner signatures of `tron-vm`.
pub struct Owners;

impl OwnerVerifier for Owners {
    fn verify(&self, claim: &OwnerClaim<'_>) -> Result<(), Refusal> {
        if signed(claim).is_ok_and(|signed| signed) {
            return Ok(());
        }
        Err(Refusal("Invalid signature".into()))
    }
}

fn signed(claim: &OwnerClaim<'_>) -> Result<bool, SignatureError> {
    let bytes = signature_hex(claim.signature)?;
    let recovered = recover_wallet(&bytes, &tip191(&hex::encode(claim.digest)))?;
    // The bytes are the prefix 41 and the account.
    Ok(super::address::Addresses
        .encode_address(claim.owner)
        .is_ok_and(|owner| owner.strip_prefix(&[0x41]) == Some(&recovered[..])))
}

/// The hash of TronLink's signMessageV2.
fn tip191(message: &str) -> B256 {
    keccak256(format!(
        "\x19TRON Signed Message:\n{}{message}",
        message.len()
    ))
}
