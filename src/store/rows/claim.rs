//! What the solver decided about a request, and which attempt of which lane pays for it. Changed by
//! compare-and-set only: that there is one row per request is what makes a fill and a refund
//! exclude each other.
//!
//! Key: the request's id, 32 bytes. Value, format 2: [`Claim`] in JSON.
//!
//! It lives as long as its request, with a payment for good: what was paid must never be paid again. Some 500 bytes a leg.

use alloy::primitives::{B256, Bytes, U256};
use serde::{Deserialize, Serialize};

use super::{CLAIM, RowError, decode_json, encode_json};
use crate::{
    request::{
        fact::Purpose,
        reason::{FailReason, RefundFailReason},
    },
    store::Key,
};

const FORMAT: u8 = 2;

/// Everything decided about one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Why the order will never be filled; once set it stays.
    pub failure: Option<FailReason>,
    /// Payments in the order in which they were decided.
    pub legs: Vec<Leg>,
    /// Deposits (onchain ids) that nothing is done about any more: the operator has them listed.
    pub parked: Vec<B256>,
    /// Deposits whose refund, or whose excess, is tried again later.
    pub pauses: Vec<Pause>,
    /// Unix seconds since which the order could be decided, and waits.
    pub waits: Option<u64>,
    /// The deposits that it could be decided for: every one has a wait of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Waiting>,
    /// Deposits that the user did not give and that the order is not filled for: each ends by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// Deposits that the operator took from the list again, each time.
    pub released: Vec<B256>,
}

/// A deposit that the order could be decided for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The deposit's onchain id.
    pub deposit: B256,
    /// Unix seconds.
    pub since: u64,
}

/// A deposit that the order is not filled for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The deposit's onchain id.
    pub deposit: B256,
    pub why: FailReason,
}

/// A deposit that could not be given back yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// The deposit's onchain id.
    pub deposit: B256,
    /// How often it was tried.
    pub tries: u32,
    /// Unix seconds before which it is not tried again.
    pub until: u64,
    pub why: RefundFailReason,
}

/// One payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    pub purpose: Purpose,
    /// The onchain id of the deposit that it uses up.
    pub deposit: B256,
    /// Why it is given back.
    pub reason: Option<FailReason>,
    pub network: String,
    /// The name of the lane that it is an attempt of.
    pub lane: String,
    /// The attempt's id.
    pub attempt: Bytes,
    pub currency: String,
    pub amount: U256,
    /// Of a fill: what each payment of the order's output is paid.
    pub payments: Vec<U256>,
    /// Which of the attempt's transactions is in a block, as the chain spells it.
    pub transaction: Option<String>,
    pub stage: Stage,
    /// What it cost although it paid nobody, in the native currency of its network.
    pub wasted: U256,
}

/// How far a payment has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Any of its transactions may land.
    Open,
    /// Paid, as deep as the network's fills are told; a reorg opens it again.
    Confirmed,
    /// Paid, as deep as the chain's finality asks.
    Final,
    /// None of its transactions can ever pay.
    Failed,
}

pub fn key(id: &B256) -> Key {
    Key::new(CLAIM, id.as_slice())
}

impl Claim {
    pub fn encode(&self) -> Result<Vec<u8>, RowError> {
        encode_json("claim", FORMAT, self)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, RowError> {
        decode_json("claim", FORMAT, bytes)
    }
}
