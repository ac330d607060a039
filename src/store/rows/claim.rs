//! The solver's decisions about a request, and the attempts that pay for it. Changed by compare-and-set only: one row
//! per request makes a fill and a refund exclude each other.
//!
//! Key: the request's id, 32 bytes. Value, format 2: [`Claim`] in JSON.
//!
//! The row lives as long as its request, and for ever once it has a payment: what was paid must never be paid again.
//! Some 500 bytes per leg.

use alloy::primitives::{B256, Bytes, U256};
use serde::{Deserialize, Serialize};

use super::CLAIM;
use crate::{
    request::{
        fact::Purpose,
        reason::{FailReason, RefundFailReason},
    },
    store::Key,
};

const FORMAT: u8 = 2;

/// All decisions about one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Why the order will never be filled; never unset.
    pub failure: Option<FailReason>,
    /// The payments, in the order of their decisions.
    pub legs: Vec<Leg>,
    /// Deposits (onchain ids) that the solver handles no more: the operator sees them listed.
    pub parked: Vec<B256>,
    /// Those of them whose payment succeeded and paid nobody: somebody may have got it. Until the operator releases
    /// one, this daemon's oracle does not let it be recovered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpaid: Vec<B256>,
    /// Deposits whose refund, or whose excess, is retried later.
    pub pauses: Vec<Pause>,
    /// Unix seconds since which the order could be decided and waits.
    pub waits: Option<u64>,
    /// The deposits for which the order could be decided; each has a waiting time of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Waiting>,
    /// Deposits that did not come from the user and that the order is not filled for; each has its own outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// Deposits that the operator took off the list, once per release.
    pub released: Vec<B256>,
}

/// A deposit for which the order could be decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The deposit's onchain id.
    pub deposit: B256,
    /// Unix seconds.
    pub since: u64,
}

/// A deposit for which the order is not filled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The deposit's onchain id.
    pub deposit: B256,
    pub why: FailReason,
}

/// A deposit whose refund failed and is retried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// The deposit's onchain id.
    pub deposit: B256,
    /// The number of tries.
    pub tries: u32,
    /// Unix seconds of the next try.
    pub until: u64,
    pub why: RefundFailReason,
}

/// One payment of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    pub purpose: Purpose,
    /// The onchain id of the deposit that it uses up.
    pub deposit: B256,
    /// Why the deposit is refunded.
    pub reason: Option<FailReason>,
    pub network: String,
    /// The lane of the payment's attempt.
    pub lane: String,
    /// The attempt's id.
    pub attempt: Bytes,
    pub currency: String,
    pub amount: U256,
    /// For a fill: the amount of each payment of the order's output.
    pub payments: Vec<U256>,
    /// The attempt's transaction that is in a block, in the chain's spelling.
    pub transaction: Option<String>,
    pub stage: Stage,
    /// The cost of failed transactions, in the native currency of the network.
    pub wasted: U256,
    /// Unix seconds at which it was begun; 0 in rows that were written before this was kept.
    #[serde(default)]
    pub begun: u64,
}

/// The state of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Any of its transactions may land.
    Open,
    /// Paid, and as deep as the network's fills are reported; a reorg reopens it.
    Confirmed,
    /// Paid, and final by the chain's rule.
    Final,
    /// None of its transactions can land any more.
    Failed,
}

impl Claim {
    /// The payments that have paid or may still.
    pub fn live(&self) -> impl Iterator<Item = &Leg> {
        self.legs.iter().filter(|leg| leg.is_live())
    }
}

impl Leg {
    /// Whether it has paid, or any of its transactions may still land.
    pub fn is_live(&self) -> bool {
        self.stage != Stage::Failed
    }
}

pub fn key(id: &B256) -> Key {
    Key::new(CLAIM, id.as_slice())
}

stored!(Claim, "claim", encode_json, decode_json);
