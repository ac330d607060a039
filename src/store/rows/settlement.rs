//! The solver's payments whose executions the settlement contract has not yet applied: one row per fill and per
//! refund. The excess over an order's amount is settled with its fill.
//!
//! Key: the request's id, then the onchain id of the deposit that the payment uses up, 32 bytes each.
//! Value, format 2: [`Settlement`] in JSON.
//!
//! The row lives until the hub has applied both executions; some 300 bytes.

use alloy::primitives::{B256, Bytes};
use serde::{Deserialize, Serialize};

use super::{RowError, SETTLEMENT};
use crate::{request::fact::Purpose, store::Key};

const FORMAT: u8 = 2;

/// A payment to be settled: first the deposit's execution, then the outcome's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settlement {
    pub purpose: Purpose,
    /// The onchain id of the deposit.
    pub deposit: B256,
    /// The solver's transaction in the chain's spelling.
    pub transaction: String,
    /// The index of the refund option of the order's input.
    pub option: usize,
    /// Whether the request's facts contain this settlement.
    #[serde(rename = "told")]
    pub recorded: bool,
    pub deposited: Part,
    pub outcome: Part,
    /// Unix milliseconds since when the payment is final.
    pub since: u64,
    /// The failed tries since the last success.
    pub tries: u32,
    /// Unix milliseconds of the next try.
    pub not_before: u64,
    /// Why the last try failed.
    pub why: Option<String>,
    /// Whether the oracle refused for good. The settler still asks it now and then.
    pub refused: bool,
}

/// The state of one execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    Pending,
    /// Attested, and sent with this attempt of this lane of the settlement chain.
    Sent {
        lane: String,
        attempt: Bytes,
        execution: serde_json::Value,
    },
    /// The contract has applied it.
    Applied,
}

pub fn key(request: &B256, deposit: &B256) -> Key {
    Key::new(
        SETTLEMENT,
        [request.as_slice(), deposit.as_slice()].concat(),
    )
}

/// The request and the deposit of the row under `key`.
pub fn ids(key: &Key) -> Result<(B256, B256), RowError> {
    super::words(&key.name).ok_or_else(|| RowError::new("settlement", "its name is not two ids"))
}

stored!(Settlement, "settlement", encode_json, decode_json);
