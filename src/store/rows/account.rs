//! The solver's account on one chain, in its family's form; its attempts are [`attempt`](super::attempt).
//!
//! Key: the lane's name (see [`further`]). Value, format 2: [`Account`] in postcard.
//!
//! The row stays; one per account.

use alloy::primitives::Bytes;
use serde::{Deserialize, Serialize};

use super::LANE;
use crate::store::Key;

const FORMAT: u8 = 2;

/// The account of a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The account in the family's spelling.
    pub account: String,
    /// The family's name.
    pub family: String,
    /// The family's own data; the first byte is its format.
    pub own: Bytes,
}

/// The name of the lane of a further account on a network; the first account's lane has the network's name.
pub fn further(network: &str, account: &str) -> String {
    format!("{network}/{account}")
}

pub fn key(network: &str) -> Key {
    Key::new(LANE, network)
}

stored!(Account, "lane", encode, decode);
