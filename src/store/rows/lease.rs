//! The holder of something that may have only one. Every commit of a holder expects its own row, so a process that
//! was replaced can change nothing more.
//!
//! Key: what is held, text (`lane/` or `tail/`, and the network's name). Value, format 1: [`Lease`] in postcard.
//!
//! One row per lane or tail; it stays.

use serde::{Deserialize, Serialize};

use super::LEASE;
use crate::store::Key;

const FORMAT: u8 = 1;

/// The current holder of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Increases by one with every holder.
    pub fence: u64,
    /// Unix milliseconds since when.
    pub since: u64,
}

pub fn key(what: &str) -> Key {
    Key::new(LEASE, what)
}

stored!(Lease, "lease", encode, decode);
