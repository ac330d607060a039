//! Owner signatures of `lighter-vm`: personal_sign by the account's address on Ethereum, which the
//! caller reads from the chain (guide: protocol 6.3).

use serde_json::Value;

use crate::{OwnerClaim, OwnerVerifier, Refusal, protocol::signature::verify_personal};

/// Verifies owner signatures of `lighter-vm`. The claim's context has `l1Address`.
pub struct Owners;

impl OwnerVerifier for Owners {
    /// The account's address on Ethereum.
    fn needs_chain(&self) -> bool {
        true
    }

    fn verify(&self, claim: &OwnerClaim<'_>) -> Result<(), Refusal> {
        let signer = claim
            .context
            .and_then(|context| context.get("l1Address"))
            .and_then(Value::as_str)
            .filter(|address| !address.is_empty())
            .ok_or_else(|| Refusal(format!("Lighter account {} has no l1_address", claim.owner)))?;
        verify_personal(signer, &claim.digest, claim.signature)
            .map_err(|error| Refusal(error.to_string()))
    }
}
