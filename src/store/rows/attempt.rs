//! Attempts of an account to land something, and the resources that they hold. The family knows why at most one
//! transaction of an attempt can land; the store ensures that no two attempts hold one resource.
//!
//! An attempt's name: the lane's name, a zero byte, the id; its value, format 1: [`Attempt`] in postcard. A
//! resource's name: the lane's name, a zero byte, the resource; its value, format 1: the id of the attempt that holds
//! it. Lane names have no zero byte.
//!
//! Both live until the attempt's outcome is final. Some 1 KB per running payment.

use alloy::primitives::{B256, Bytes, U256};
use serde::{Deserialize, Serialize};

use super::{ATTEMPT, RESOURCE, RowError, prefix};
use crate::store::{Key, Kind, Range};

const FORMAT: u8 = 1;

/// An attempt with its owner, resources and signed transactions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub owner: Owner,
    /// The resources that it holds.
    pub resources: Vec<Bytes>,
    /// The most that it spends of each currency (its text), the native one first.
    pub spends: Vec<(String, U256)>,
    /// The signed transactions, oldest first; any of them may land.
    pub signed: Vec<Signed>,
    /// The family's own data; the first byte is its format.
    pub own: Bytes,
    /// Unix seconds of the newest transaction.
    pub sent_at: u64,
    /// How often nodes have refused it since one accepted it.
    pub refused: u32,
}

/// What an attempt is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// A payment of this request's claim.
    Request(B256),
    /// The approval of `spender` for a currency.
    Approval { spender: String, currency: String },
    /// An execution at the settlement contract for this request.
    Settlement(B256),
    /// Nothing: it only uses up its resources.
    Gap,
}

/// A signed transaction in the family's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// The id in the chain's spelling.
    pub id: String,
    /// Whether it pays nobody and only uses up the attempt's resources.
    pub cancels: bool,
}

pub fn key(lane: &str, id: &[u8]) -> Key {
    named(ATTEMPT, lane, id)
}

/// The key of the row that names a resource's holder.
pub fn resource(lane: &str, resource: &[u8]) -> Key {
    named(RESOURCE, lane, resource)
}

fn named(kind: Kind, lane: &str, rest: &[u8]) -> Key {
    Key::new(kind, [prefix(lane).as_slice(), rest].concat())
}

/// The id of a lane's attempt in its key.
pub fn id(lane: &str, key: &Key) -> Result<Bytes, RowError> {
    let id = key.name.strip_prefix(prefix(lane).as_slice());
    let id = id.filter(|id| key.kind == ATTEMPT && !id.is_empty());
    id.map(Bytes::copy_from_slice)
        .ok_or_else(|| RowError::new("attempt", "not an attempt of the lane"))
}

/// A lane's attempts, lowest id first.
pub fn range(lane: &str, limit: usize) -> Range {
    Range::new(ATTEMPT, &prefix(lane), None, limit)
}

/// The value of a resource that `attempt` holds.
pub fn holder(attempt: &[u8]) -> Vec<u8> {
    [&[FORMAT], attempt].concat()
}

/// The attempt that holds a resource.
pub fn held_by(value: &[u8]) -> Result<Bytes, RowError> {
    match value.split_first() {
        Some((&FORMAT, id)) if !id.is_empty() => Ok(Bytes::copy_from_slice(id)),
        _ => Err(RowError::new("resource", "not of format 1")),
    }
}

stored!(Attempt, "attempt", encode, decode);
