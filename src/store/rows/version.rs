//! The version in which rows derived from other rows exist for all of them.
//!
//! Key: the name of the derived rows, text. Value, format 1: the version, 8 bytes big endian. The row stays; a few of
//! some 20 bytes.

use super::{RowError, VERSION, plain_number};
use crate::store::Key;

const FORMAT: u8 = 1;

pub fn key(what: &str) -> Key {
    Key::new(VERSION, what)
}

pub fn encode(version: u64) -> Vec<u8> {
    [&[FORMAT], version.to_be_bytes().as_slice()].concat()
}

pub fn decode(bytes: &[u8]) -> Result<u64, RowError> {
    plain_number("version", FORMAT, bytes)
}
