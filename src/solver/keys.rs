//! The solver's keys: the one that promises now, and those that it promised with before.
//!
//! What was promised with a former key is kept with the present one's money: fills count for whoever
//! sends them, the hub pays whom the order names, and a claim about anything else carries the former
//! key's signature. So a former account needs no money but for what it was paying when it was followed.

use std::sync::Arc;

use vm::{Family, protocol::signature::eip191};

use alloy::primitives::B256;

use crate::sign::{SignError, Signer};

/// See the module.
#[derive(Clone)]
pub struct Keys {
    pub current: Arc<dyn Signer>,
    pub former: Arc<[Arc<dyn Signer>]>,
}

impl Keys {
    /// The key that an order's solver has, if it is one of ours.
    pub fn of(&self, family: &Family, solver: &str) -> Option<&Arc<dyn Signer>> {
        let named = family.address(solver).ok()?;
        let same = |key: &&Arc<dyn Signer>| named.bytes() == key.address().as_slice();
        std::iter::once(&self.current)
            .chain(&*self.former)
            .find(same)
    }

    /// Whether a key is one that was followed by another.
    pub fn is_former(&self, key: &Arc<dyn Signer>) -> bool {
        key.address() != self.current.address()
    }
}

/// An order's solver vouches for a claim.
pub async fn vouch(key: &Arc<dyn Signer>, claim: &B256) -> Result<String, SignError> {
    let signature = key.sign(&eip191(claim.as_slice())).await?;
    Ok(alloy::hex::encode_prefixed(signature.as_bytes()))
}
