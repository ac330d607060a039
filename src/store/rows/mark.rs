//! How far a follower has processed the event log.
//!
//! Key: the follower's name, text. Value, format 1: the number of the last processed event, 8 bytes big endian. The
//! row stays; one of some 20 bytes for each of [`FOLLOWERS`]. Retention keeps the events above their lowest mark.

use super::{MARK, RowError, plain_number};
use crate::store::Key;

const FORMAT: u8 = 1;

/// The name of webhooks' mark.
pub const WEBHOOKS: &str = "webhooks";
/// All durable followers of the log; only these keep events from deletion.
pub const FOLLOWERS: [&str; 1] = [WEBHOOKS];

pub fn key(follower: &str) -> Key {
    Key::new(MARK, follower)
}

pub fn encode(done: u64) -> Vec<u8> {
    [&[FORMAT], done.to_be_bytes().as_slice()].concat()
}

pub fn decode(bytes: &[u8]) -> Result<u64, RowError> {
    plain_number("mark", FORMAT, bytes)
}
