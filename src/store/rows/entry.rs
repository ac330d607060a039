//! Journal entries: the statements that were signed, or were about to be. Written once, never changed.
//!
//! Key: the statement's key, text. Value, format 1: [`Entry`] in postcard.
//!
//! The row lives for ever: nothing else records what was signed. Some 1 KB with its consumptions and watches.

use alloy::primitives::{B256, Bytes};
use serde::{Deserialize, Serialize};

use super::ENTRY;
use crate::store::Key;

const FORMAT: u8 = 1;

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The digest for the signer.
    pub digest: B256,
    /// Unix seconds of the first request.
    pub at: u64,
    /// The slot that it holds; `None` without one.
    pub slot: Option<String>,
    pub consumes: Vec<Consumed>,
    pub facts: Vec<Fact>,
    /// Whether the consumed payments are the solver's own.
    pub own: bool,
    /// Other payments that it was shown; any of these lists would serve it.
    pub shown: Vec<Shown>,
    /// The statement in its author's encoding, for later readers.
    pub payload: Bytes,
}

/// Payments that could serve a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    pub payments: Vec<String>,
    /// Whether the solver itself paid all of them.
    pub own: bool,
}

/// `what` may serve only `by`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumed {
    pub what: String,
    pub by: String,
}

/// A block on which a statement depends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    pub chain: String,
    /// Empty where the statement depends on the block's state.
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
