//! Orders whose executions the settlement contract has not taken yet.
//!
//! Key: the request's id, 32 bytes. Value, format 1: [`Settlement`] in JSON.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};

use super::{RowError, SETTLEMENT, decode_json, encode_json};
use crate::{
    request::fact::Purpose,
    store::{Key, Range},
};

const FORMAT: u8 = 1;

/// See the module. The deposit's execution comes first, then the outcome's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settlement {
    /// What became of the order.
    pub purpose: Purpose,
    /// The onchain id of the deposit.
    pub deposit: B256,
    /// The solver's transaction, as the chain spells it.
    pub transaction: String,
    /// Which refund option of the order's input was used.
    pub option: usize,
    pub deposited: Part,
    pub outcome: Part,
    /// Failed tries since the last success.
    pub tries: u32,
    /// Unix milliseconds before which nothing is tried.
    pub not_before: u64,
}

/// How far one execution has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    Pending,
    /// Attested, and on its way with this nonce of the settlement chain's lane.
    Sent {
        nonce: u64,
        execution: serde_json::Value,
    },
    /// The contract has taken it.
    Applied,
    /// It will not be attested or taken.
    Refused(String),
}

pub fn key(id: &B256) -> Key {
    Key::new(SETTLEMENT, id.as_slice())
}

/// The request that the row under `key` is about.
pub fn id(key: &Key) -> Result<B256, RowError> {
    B256::try_from(key.name.as_slice()).map_err(|e| RowError::new("settlement", e))
}

/// Rows after the row `after`.
pub fn range(after: Option<&Key>, limit: usize) -> Range {
    Range {
        kind: SETTLEMENT,
        prefix: Vec::new(),
        after: after.map(|key| key.name.clone()),
        limit,
        reverse: false,
    }
}

impl Settlement {
    pub fn encode(&self) -> Result<Vec<u8>, RowError> {
        encode_json("settlement", FORMAT, self)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, RowError> {
        decode_json("settlement", FORMAT, bytes)
    }
}
