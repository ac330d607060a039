//! Attempts of an account to land something, and what they hold. The family that made an attempt knows why at
//! most one of its transactions can land; here it is enough that no two attempts hold one resource.
//!
//! Attempts have the lane's name, a zero byte and their id; a value of format 1 is an [`Attempt`] in postcard.
//! Resources have the lane's name, a zero byte and the resource; a value of format 1 is the id of the attempt
//! that holds it. Names hold no zero byte.
//!
//! Both live until what became of the attempt is final. Some 1 KB for each payment on its way.

use alloy::primitives::{B256, Bytes, U256};
use serde::{Deserialize, Serialize};

use super::{ATTEMPT, RESOURCE, RowError, decode, encode};
use crate::store::{Key, Kind, Range};

const FORMAT: u8 = 1;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub owner: Owner,
    /// What it holds.
    pub resources: Vec<Bytes>,
    /// The most that it takes of each currency (its text), the native one first.
    pub spends: Vec<(String, U256)>,
    /// What was signed for it, oldest first; any may land.
    pub signed: Vec<Signed>,
    /// The family's own; its first byte says how it is written.
    pub own: Bytes,
    /// Unix seconds of the newest transaction.
    pub sent_at: u64,
    /// How often nodes refused it since one took it.
    pub refused: u32,
}

/// What an attempt is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// A payment of this request's claim.
    Request(B256),
    /// What `spender` may take of a currency.
    Allowance { spender: String, currency: String },
    /// An execution at the settlement contract for this request.
    Settlement(B256),
    /// Nobody: what it holds only has to be used up.
    Gap,
}

/// One signed transaction; its bytes are the family's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// As the chain spells it.
    pub id: String,
    /// It pays nobody: it only uses up what the attempt holds.
    pub cancels: bool,
}

pub fn key(lane: &str, id: &[u8]) -> Key {
    named(ATTEMPT, lane, id)
}

/// Where it stands who holds a resource.
pub fn resource(lane: &str, resource: &[u8]) -> Key {
    named(RESOURCE, lane, resource)
}

fn named(kind: Kind, lane: &str, rest: &[u8]) -> Key {
    Key::new(kind, [prefix(lane).as_slice(), rest].concat())
}

/// The id of a lane's attempt by its key.
pub fn id(lane: &str, key: &Key) -> Result<Bytes, RowError> {
    let id = key.name.strip_prefix(prefix(lane).as_slice());
    let id = id.filter(|id| key.kind == ATTEMPT && !id.is_empty());
    id.map(Bytes::copy_from_slice)
        .ok_or_else(|| RowError::new("attempt", "not an attempt of the lane"))
}

/// A lane's attempts, lowest id first.
pub fn range(lane: &str, limit: usize) -> Range {
    Range {
        kind: ATTEMPT,
        prefix: prefix(lane),
        after: None,
        limit,
        reverse: false,
    }
}

fn prefix(lane: &str) -> Vec<u8> {
    [lane.as_bytes(), &[0]].concat()
}

/// The value of a resource that `attempt` holds.
pub fn holder(attempt: &[u8]) -> Vec<u8> {
    [&[FORMAT], attempt].concat()
}

/// Who holds a resource.
pub fn held_by(value: &[u8]) -> Result<Bytes, RowError> {
    match value.split_first() {
        Some((&FORMAT, id)) if !id.is_empty() => Ok(Bytes::copy_from_slice(id)),
        _ => Err(RowError::new("resource", "not of format 1")),
    }
}

impl Attempt {
    pub fn encode(&self) -> Result<Vec<u8>, RowError> {
        encode("attempt", FORMAT, self)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, RowError> {
        decode("attempt", FORMAT, bytes)
    }
}
