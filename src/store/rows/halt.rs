//! Chains about which the oracle signs nothing until an operator clears the halt.
//!
//! Key: the chain's name, text. Value, format 1: [`Halt`] in postcard.
//!
//! The row lives until an operator clears it; at most one per chain.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::HALT;
use crate::store::Key;

const FORMAT: u8 = 1;

/// The most further reasons that a halt keeps.
const ALSO: usize = 16;

/// Why and since when (unix seconds) a chain is halted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halt {
    pub why: String,
    pub at: u64,
    /// Further reasons, found during the halt.
    pub also: Vec<String>,
    /// The number of reasons beyond those.
    pub more: u64,
}

pub fn key(chain: &str) -> Key {
    Key::new(HALT, chain)
}

stored!(Halt, "halt", encode, decode);

impl Halt {
    /// Adds a reason; `None` if the halt already has it.
    #[must_use]
    pub fn with(&self, why: &str) -> Option<Self> {
        if self.why == why || self.also.iter().any(|known| known == why) {
            return None;
        }
        let mut halt = self.clone();
        match halt.also.len() < ALSO {
            true => halt.also.push(why.to_owned()),
            false => halt.more = halt.more.saturating_add(1),
        }
        Some(halt)
    }

    /// Eight hex digits that change with every new reason.
    pub fn id(&self) -> String {
        let Self {
            why,
            at,
            also,
            more,
        } = self;
        let digest = Sha256::digest(format!("{why}\0{at}\0{also:?}\0{more}"));
        alloy::hex::encode(&digest[..4])
    }
}
