//! Deposits that are neither filled nor refunded: listed until an operator handles them; their depositors can take
//! them back through the hub.
//!
//! Key: the request's id, then the deposit's onchain id, 32 bytes each. Value, format 1: [`Parked`] in
//! JSON.
//!
//! The row lives until an operator handles the deposit; some 300 bytes.

use alloy::primitives::{B256, U256};
use serde::{Deserialize, Serialize};

use super::{PARKED, RowError};
use crate::{
    request::{
        fact::Deposit,
        reason::{FailReason, RefundFailReason},
    },
    store::{Key, Range},
};

const FORMAT: u8 = 1;

/// How the note begins of a deposit whose payment succeeded and paid nobody.
pub const UNPAID: &str = "unpaid:";

/// A deposit that is neither filled nor refunded, with the reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    pub network: String,
    pub transaction: String,
    pub depositor: String,
    pub currency: String,
    pub amount: U256,
    /// Why it is not filled.
    pub reason: FailReason,
    /// Why it is not refunded.
    pub why: RefundFailReason,
    /// The details in words.
    pub note: String,
    /// Whether it is worth nothing, or its worth is unknown.
    pub minor: bool,
    /// Unix milliseconds.
    pub since: u64,
}

pub fn key(request: &B256, deposit: &B256) -> Key {
    Key::new(PARKED, [request.as_slice(), deposit.as_slice()].concat())
}

/// The request and the deposit of the row under `key`.
pub fn ids(key: &Key) -> Result<(B256, B256), RowError> {
    super::words(&key.name).ok_or_else(|| RowError::new("parked", "its name is not two ids"))
}

/// The rows of a request.
pub fn of(request: &B256, limit: usize) -> Range {
    Range {
        prefix: request.to_vec(),
        ..range(None, limit)
    }
}

/// Rows after the named one.
pub fn range(after: Option<Vec<u8>>, limit: usize) -> Range {
    Range::new(PARKED, &[], after, limit)
}

stored!(Parked, "parked", encode_json, decode_json);

/// Why a deposit is neither filled nor refunded.
#[derive(Clone, Copy, Debug)]
pub struct Reasons {
    pub fill: FailReason,
    pub refund: RefundFailReason,
}

impl Parked {
    /// A complete deposit that is neither filled nor refunded, for these reasons.
    pub fn new(
        deposit: &Deposit,
        Reasons { fill, refund }: Reasons,
        note: impl Into<String>,
        minor: bool,
        since: u64,
    ) -> Self {
        Self {
            network: deposit.network.clone(),
            transaction: deposit.transaction.clone(),
            depositor: deposit.depositor.clone(),
            currency: deposit.currency.clone(),
            amount: deposit.amount,
            reason: fill,
            why: refund,
            note: note.into(),
            minor,
            since,
        }
    }
}
