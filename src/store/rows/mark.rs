//! How far somebody has followed the log of events.
//!
//! Key: the follower's name, text. Value, format 1: the number of the last event that is done with,
//! 8 bytes big endian. It stays; one of some 20 bytes for each of [`FOLLOWERS`]. Events above the lowest
//! mark of those are kept.

use super::{MARK, RowError};
use crate::store::{Key, number};

const FORMAT: u8 = 1;

/// Webhooks' name.
pub const WEBHOOKS: &str = "webhooks";
/// All that follow the log durably. Whoever is not named here keeps no event from being forgotten.
pub const FOLLOWERS: [&str; 1] = [WEBHOOKS];

pub fn key(follower: &str) -> Key {
    Key::new(MARK, follower)
}

pub fn encode(done: u64) -> Vec<u8> {
    [&[FORMAT], done.to_be_bytes().as_slice()].concat()
}

pub fn decode(bytes: &[u8]) -> Result<u64, RowError> {
    match bytes.split_first() {
        Some((&FORMAT, done)) => number(done).ok_or_else(|| RowError::new("mark", "not 8 bytes")),
        _ => Err(RowError::new("mark", "unknown format")),
    }
}
