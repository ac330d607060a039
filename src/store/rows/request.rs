//! Requests as they were quoted. Written once, never changed.
//!
//! Key: the request's id, 32 bytes. Value, format 2: [`Request`] in JSON (it holds JSON itself), as one
//! zstd frame; a quote names each currency a dozen times. Format 1, still read: the JSON as it is.
//!
//! It lives for good, from the first thing that is seen of it, which costs whoever causes it a
//! transaction; some 1 KB. Before that it is a [`quote`](super::quote).

use std::cell::RefCell;

use alloy::primitives::B256;
use zstd::bulk::{Compressor, Decompressor};

use super::{REQUEST, RowError, decode_json, encode_json};
use crate::{request::Request, store::Key};

const PLAIN: u8 = 1;
const FORMAT: u8 = 2;
/// Bytes that a frame may hold: far beyond what a quote's body can become.
const MOST: usize = 64 << 20;

thread_local! {
    // Making one takes longer than using it.
    static PACK: RefCell<Compressor<'static>> = RefCell::default();
    static UNPACK: RefCell<Decompressor<'static>> = RefCell::default();
}

pub fn key(id: &B256) -> Key {
    Key::new(REQUEST, id.as_slice())
}

pub fn encode(request: &Request) -> Result<Vec<u8>, RowError> {
    let mut bytes = encode_json("request", FORMAT, request)?;
    let frame = PACK.with_borrow_mut(|pack| pack.compress(&bytes[1..]));
    let frame = frame.map_err(|e| RowError::new("request", e))?;
    bytes.truncate(1);
    bytes.extend(frame);
    Ok(bytes)
}

pub fn decode(bytes: &[u8]) -> Result<Request, RowError> {
    let Some((&FORMAT, frame)) = bytes.split_first() else {
        return decode_json("request", PLAIN, bytes);
    };
    let json = UNPACK.with_borrow_mut(|unpack| unpack.decompress(frame, MOST));
    let json = json.map_err(|e| RowError::new("request", e))?;
    serde_json::from_slice(&json).map_err(|e| RowError::new("request", e))
}
