//! Why statements were signed: the request, what was read for it, which providers said so, and by which rules blocks
//! counted as final. Written with the statement's entry. A row that lacks a part is replaced by that of a later claim
//! that lacks less ([`Evidence::lacks`]) and was judged by the same rules; what lacks nothing never changes.
//!
//! Key: the statement's key, a zero byte, the second in which the entry was recorded in 8 bytes big endian: a statement
//! that was void and is signed again has two. Value, format 2: [`Evidence`] in postcard, as one zstd frame with a
//! checksum. Format 1 is the same without the last field, the rules.
//!
//! The row lives for ever. Some 1 KB for a deposit.

use std::cell::RefCell;

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};
use vm::evidence::{Answer, Read, Rule};
use zstd::bulk::{Compressor, Decompressor};

use super::{EVIDENCE, RowError, prefix};
use crate::store::Key;

const FORMAT: u8 = 2;
/// The format without rules.
const NO_RULES: u8 = 1;
/// Fast: what is recorded waits for it.
const LEVEL: i32 = 1;
/// The most bytes of a frame's content: far more than a claim and its reads can have.
const MOST: usize = 64 << 20;

thread_local! {
    // Making a compressor takes longer than using it.
    static PACK: RefCell<Option<Compressor<'static>>> = RefCell::new(packer());
    static UNPACK: RefCell<Option<Decompressor<'static>>> = RefCell::new(Decompressor::new().ok());
}

fn packer() -> Option<Compressor<'static>> {
    let mut packer = Compressor::new(LEVEL).ok()?;
    packer.include_checksum(true).ok()?;
    Some(packer)
}

/// The reasons of one statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Path and query of the request, as they were sent.
    pub target: String,
    /// The body of the request; empty where it was too large to keep.
    pub body: String,
    /// The label of the caller's key; `None` without one.
    pub key: Option<String>,
    /// The version of the daemon.
    pub version: String,
    /// The digest of the rules by which it judged.
    pub configuration: B256,
    pub reads: Vec<Read>,
    /// The rules by which blocks counted as final, by chain; empty where an earlier version signed.
    #[serde(default)]
    pub rules: Vec<Rule>,
}

/// `at` is the second of the statement's entry.
pub fn key(statement: &str, at: u64) -> Key {
    let name = [&*prefix(statement), &at.to_be_bytes()].concat();
    Key::new(EVIDENCE, name)
}

impl Evidence {
    /// How many of the two parts that may be too large to keep are left out: the request's own text, and what was
    /// found of transactions.
    pub fn lacks(&self) -> usize {
        let is_left_out = |read: &Read| matches!(read.answer, Answer::Large(_));
        let transactions = self.reads.iter().any(is_left_out);
        usize::from(self.body.is_empty()) + usize::from(transactions)
    }

    pub fn encode(&self) -> Result<Vec<u8>, RowError> {
        let fields = postcard::to_stdvec(self).map_err(wrong)?;
        let frame = PACK.with_borrow_mut(|pack| match pack {
            Some(pack) => pack.compress(&fields),
            None => zstd::bulk::compress(&fields, LEVEL),
        });
        Ok([&[FORMAT], &*frame.map_err(wrong)?].concat())
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, RowError> {
        let (frame, has_rules) = match bytes.split_first() {
            Some((&NO_RULES, frame)) => (frame, false),
            _ => (super::plain("evidence", FORMAT, bytes)?, true),
        };
        let fields = UNPACK.with_borrow_mut(|unpack| match unpack {
            Some(unpack) => unpack.decompress(frame, MOST),
            None => zstd::bulk::decompress(frame, MOST),
        });
        let mut fields = fields.map_err(wrong)?;
        if !has_rules {
            // The count of an empty list.
            fields.push(0);
        }
        match postcard::take_from_bytes(&fields).map_err(wrong)? {
            (evidence, []) => Ok(evidence),
            _ => Err(wrong("trailing bytes")),
        }
    }
}

fn wrong(why: impl ToString) -> RowError {
    RowError::new("evidence", why)
}
