//! Requests as they were quoted. Written once, never changed.
//!
//! Key: the request's id, 32 bytes. Value, format 3: [`Request`] in JSON (it holds JSON itself), as one
//! zstd frame with `request.dict` as its dictionary: requests as they usually are, so that only what is
//! unlike them takes room. The file is part of the format: another one is another format. Still read:
//! format 2, a frame without a dictionary, and format 1, the JSON as it is.
//!
//! It lives for good, from the first thing that is seen of it; one for which nothing but dust was deposited
//! until 30 days after its order's last deadline ([`retention`](crate::store::retention)). Some 500 bytes. Before that it is a [`quote`](super::quote).

use std::cell::RefCell;

use alloy::primitives::B256;
use zstd::{
    DEFAULT_COMPRESSION_LEVEL,
    bulk::{Compressor, Decompressor},
};

use super::{REQUEST, RowError, decode_json, encode_json};
use crate::{request::Request, store::Key};

const PLAIN: u8 = 1;
const BARE: u8 = 2;
const FORMAT: u8 = 3;
const USUAL: &[u8] = include_bytes!("request.dict");
/// Bytes that a frame may hold: far beyond what a quote's body can become.
const MOST: usize = 64 << 20;

thread_local! {
    // Making one takes longer than using it. One without a dictionary writes frames that all can read,
    // and refuses those that it cannot.
    static PACK: RefCell<Compressor<'static>> = RefCell::new(packer());
    static UNPACK: RefCell<Decompressor<'static>> =
        RefCell::new(Decompressor::with_dictionary(USUAL).unwrap_or_default());
}

fn packer() -> Compressor<'static> {
    let mut packer =
        Compressor::with_dictionary(DEFAULT_COMPRESSION_LEVEL, USUAL).unwrap_or_default();
    // A frame that is read with another dictionary must not be taken for a request.
    if packer.include_checksum(true).is_err() {
        tracing::warn!("packed requests have no checksums");
    }
    packer
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
    let Some((&(BARE | FORMAT), frame)) = bytes.split_first() else {
        return decode_json("request", PLAIN, bytes);
    };
    let json = UNPACK.with_borrow_mut(|unpack| unpack.decompress(frame, MOST));
    let json = json.map_err(|e| RowError::new("request", e))?;
    serde_json::from_slice(&json).map_err(|e| RowError::new("request", e))
}
