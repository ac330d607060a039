//! Journal entries: what has been, or was about to be, signed. Written once, never changed.
//!
//! Key: the statement's key, text. Value, format 1: [`Entry`] in postcard.
//!
//! It lives for good: nothing else says what was signed. Some 1 KB with its consumptions and watches.

use alloy::primitives::{B256, Bytes};
use serde::{Deserialize, Serialize};

use super::ENTRY;
use crate::store::Key;

const FORMAT: u8 = 1;

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What the signer was asked to sign.
    pub digest: B256,
    /// Unix seconds of the first request.
    pub at: u64,
    /// The slot that it holds, and everything that it consumes.
    pub slot: Option<String>,
    pub consumes: Vec<Consumed>,
    pub facts: Vec<Fact>,
    /// The payments that it consumes are the solver's own.
    pub own: bool,
    /// Payments that it was shown besides those that it consumes: any of these lists would do.
    pub shown: Vec<Shown>,
    /// The statement in its author's own encoding, kept for those who ask again.
    pub payload: Bytes,
}

/// Payments that would serve a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    pub payments: Vec<String>,
    /// The solver itself paid all of them.
    pub own: bool,
}

/// `what` serves only `by`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumed {
    pub what: String,
    pub by: String,
}

/// A block that a statement rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    pub chain: String,
    /// Empty where it is the block's state that counts.
    pub transaction: String,
    pub number: u64,
    pub hash: B256,
    pub parent: B256,
    /// Unix seconds.
    pub time: u64,
}

pub fn key(statement: &str) -> Key {
    Key::new(ENTRY, statement)
}

stored!(Entry, "entry", encode, decode);
