//! Who holds what may have one holder only. Every commit of a holder demands its own row, so that a
//! process that was taken for dead changes nothing any more.
//!
//! Key: what is held, text (`lane/` or `tail/`, and the network's name). Value, format 1: [`Lease`] in postcard.
//!
//! One for each lane; it stays.

use serde::{Deserialize, Serialize};

use super::LEASE;
use crate::store::Key;

const FORMAT: u8 = 1;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Grows by one with every holder.
    pub fence: u64,
    /// Unix milliseconds since when.
    pub since: u64,
}

pub fn key(what: &str) -> Key {
    Key::new(LEASE, what)
}

stored!(Lease, "lease", encode, decode);
