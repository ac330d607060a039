//! Owner signatures of `lighter-vm`: personal_sign by the account's address on Ethereum, which the
//! caller reads from the chain (guide: protocol 6.3).

use crate::{
    OwnerClaim, OwnerVerifier, Refusal,
    protocol::signature::{SignatureError, eip191, recover_wallet, signature_hex, verify_personal},
};

/// Verifies owner signatures of `lighter-vm`. The claim's key is that address.
pub struct Owners;

impl OwnerVerifier for Owners {
    fn check(&self, claim: &OwnerClaim<'_>) -> Result<(), Refusal> {
        let refused = |error: SignatureError| Refusal(error.to_string());
        let bytes = signature_hex(claim.signature).map_err(|_| refused(SignatureError::Length))?;
        let signer = recover_wallet(&bytes, &eip191(&claim.digest));
        signer.map(|_| ()).map_err(refused)
    }

    fn verify(&self, claim: &OwnerClaim<'_>) -> Result<(), Refusal> {
        let signer = claim
            .key
            .filter(|key| key.len() == 20)
            .ok_or_else(|| Refusal(format!("Lighter account {} has no l1_address", claim.owner)))?;
        verify_personal(&signer.to_string(), &claim.digest, claim.signature)
            .map_err(|error| Refusal(error.to_string()))
    }
}
