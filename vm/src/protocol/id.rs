//! Deterministic ids: sha256 of joined texts (guide: protocol 2.3).

use sha2::{Digest, Sha256};

use crate::{B256, U256};

/// `sha256(lower case of the values joined with ":")`, for onchain ids and idempotency keys.
pub fn deterministic(values: &[&str]) -> B256 {
    let joined = values.join(":").to_lowercase();
    B256::from_slice(&Sha256::digest(joined))
}

/// The id that an order's solver signs (personal_sign over the raw bytes) for one claim about how the order ended.
/// `outcome` is `fill` or `refund`; the onchain ids are those of the claim's deposits.
pub fn claim(outcome: &str, onchain_ids: &[B256], order: B256) -> B256 {
    let ended = self::outcome(onchain_ids, order).to_string();
    deterministic(&["claim", outcome, &ended])
}

/// The idempotency key of an order's outcome; the order of the ids does not matter.
pub fn outcome(onchain_ids: &[B256], order: B256) -> B256 {
    let mut ids = onchain_ids.to_vec();
    ids.sort_unstable_by_key(|id| U256::from_be_bytes(id.0));
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let deposits = deterministic(&ids).to_string();
    deterministic(&[&deposits, &order.to_string()])
}
