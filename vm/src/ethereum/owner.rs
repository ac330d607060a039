//! Owner signatures of `ethereum-vm`: personal_sign over the digest's raw bytes (guide: protocol 6.3).

use crate::{OwnerClaim, OwnerVerifier, Refusal, protocol::signature::verify_personal};

/// Verifies owner signatures: `personal_sign` over the raw bytes of the digest.
pub struct Owners;

impl OwnerVerifier for Owners {
    fn verify(&self, claim: &OwnerClaim<'_>) -> Result<(), Refusal> {
        verify_personal(claim.owner, &claim.digest, claim.signature)
            .map_err(|error| Refusal(error.to_string()))
    }
}
