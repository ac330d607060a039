//! Owner signatures of `hyperliquid-vm`, whose accounts are EVM accounts: personal_sign over the
//! digest's raw bytes (guide: protocol 6.3).

use crate::{OwnerClaim, OwnerVerifier, Refusal, protocol::signature::verify_personal};

/// Verifies owner signatures of `hyperliquid-vm`.
pub struct Owners;

impl OwnerVerifier for Owners {
    fn verify(&self, claim: &OwnerClaim<'_>) -> Result<(), Refusal> {
        verify_personal(claim.owner, &claim.digest, claim.signature)
            .map_err(|error| Refusal(error.to_string()))
    }
}
