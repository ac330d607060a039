//! The solver's account on one chain, as its family knows it; its attempts are [`attempt`](super::attempt).
//!
//! Key: the lane's name (see [`further`]). Value, format 2: [`Account`] in postcard.
//!
//! It stays: a row for each account.

use alloy::primitives::Bytes;
use serde::{Deserialize, Serialize};

use super::{LANE, RowError, decode, encode};
use crate::store::Key;

const FORMAT: u8 = 2;

/// A chain's lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Whose it is, as the family spells it.
    pub account: String,
    /// The family's name.
    pub family: String,
    /// What the family knows of the account; its first byte says how it is written.
    pub own: Bytes,
}

/// What the lane of a further account on a network is called; the first one has the network's name.
pub fn further(network: &str, account: &str) -> String {
    format!("{network}/{account}")
}

pub fn key(network: &str) -> Key {
    Key::new(LANE, network)
}

impl Account {
    pub fn encode(&self) -> Result<Vec<u8>, RowError> {
        encode("lane", FORMAT, self)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, RowError> {
        decode("lane", FORMAT, bytes)
    }
}
