//! The fields by which a request is found and sorted; every commit that changes its facts rewrites them.
//!
//! Key: the request's id, 32 bytes. Value, format 1: [`Summary`].
//!
//! The row lives as long as its request; less than 2 KB, whatever the number of facts.

use alloy::primitives::B256;

use super::SUMMARY;
use crate::{request::summary::Summary, store::Key};

const FORMAT: u8 = 1;

pub fn key(id: &B256) -> Key {
    Key::new(SUMMARY, id.as_slice())
}

stored!(foreign Summary, "summary", encode, decode);
