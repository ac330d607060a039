//! Requests as they were quoted. Written once, never changed.
//!
//! Key: the request's id, 32 bytes. Value, format 1: [`Request`] in JSON (it holds JSON itself).

use alloy::primitives::B256;

use super::{REQUEST, RowError, decode_json, encode_json};
use crate::{request::Request, store::Key};

const FORMAT: u8 = 1;

pub fn key(id: &B256) -> Key {
    Key::new(REQUEST, id.as_slice())
}

pub fn encode(request: &Request) -> Result<Vec<u8>, RowError> {
    encode_json("request", FORMAT, request)
}

pub fn decode(bytes: &[u8]) -> Result<Request, RowError> {
    decode_json("request", FORMAT, bytes)
}
