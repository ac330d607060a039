//! Requests as they were quoted. Written once, never changed.
//!
//! Key: the request's id, 32 bytes. Value, format 2: [`Request`] in JSON (it holds JSON itself), as one
//! zstd frame; a quote names each currency a dozen times. Format 1, still read: the JSON as it is.

use alloy::primitives::B256;
use zstd::bulk::{compress, decompress};

use super::{REQUEST, RowError, decode_json, encode_json};
use crate::{request::Request, store::Key};

const PLAIN: u8 = 1;
const FORMAT: u8 = 2;
/// Quick, and hardly larger than what the higher levels make of it.
const LEVEL: i32 = 1;
/// Bytes that a frame may hold: far beyond what a quote's body can become.
const MOST: usize = 64 << 20;

pub fn key(id: &B256) -> Key {
    Key::new(REQUEST, id.as_slice())
}

pub fn encode(request: &Request) -> Result<Vec<u8>, RowError> {
    let mut bytes = encode_json("request", FORMAT, request)?;
    let frame = compress(&bytes[1..], LEVEL).map_err(|e| RowError::new("request", e))?;
    bytes.truncate(1);
    bytes.extend(frame);
    Ok(bytes)
}

pub fn decode(bytes: &[u8]) -> Result<Request, RowError> {
    let Some((&FORMAT, frame)) = bytes.split_first() else {
        return decode_json("request", PLAIN, bytes);
    };
    let json = decompress(frame, MOST).map_err(|e| RowError::new("request", e))?;
    serde_json::from_slice(&json).map_err(|e| RowError::new("request", e))
}
