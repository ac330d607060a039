//! Requests as they were quoted. Written once, never changed.
//!
//! Key: the request's id, 32 bytes. Value, format 3: [`Request`] in JSON, as one zstd frame with the dictionary
//! `request.dict` of typical requests, so that only the differences take space. The file is part of the format:
//! another dictionary needs another format. Readers also accept format 2, a frame without a dictionary, and format 1,
//! plain JSON.
//!
//! The row lives for ever from its first fact on; one whose order received only dust lives until 30 days after its
//! order's last deadline ([`retention`](crate::store::retention)). Some 500 bytes. Before its first fact it is a
//! [`quote`](super::quote).

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
/// The most bytes of a frame's content: far more than a quote's body can have.
const MOST: usize = 64 << 20;

thread_local! {
    // Making a compressor takes longer than using it. Without the dictionary it writes frames that every reader
    // accepts, and reading refuses frames that need it.
    static PACK: RefCell<Compressor<'static>> = RefCell::new(packer());
    static UNPACK: RefCell<Decompressor<'static>> =
        RefCell::new(Decompressor::with_dictionary(USUAL).unwrap_or_default());
}

fn packer() -> Compressor<'static> {
    let mut packer =
        Compressor::with_dictionary(DEFAULT_COMPRESSION_LEVEL, USUAL).unwrap_or_default();
    // The checksum detects a frame that was read with another dictionary.
    if packer.include_checksum(true).is_err() {
        tracing::warn!("the store writes requests without checksums");
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
