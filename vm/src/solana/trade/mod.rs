//! The trading half of the family.
//!
//! - One node: `node`, with what it is asked in `asked`; `scan`, `inspect`, `accounts`, `writer`, `simulate` and
//!   `lookup` are what it does. [`open`] opens it.
//! - All nodes of a chain: `wallet`. The limits that the operator sets: `limits`.
//! - Landing: `submit` asks the chain, `history` whether a payment never landed; `attempt` (what the store keeps) and `pay` (payments as instructions) are pure.
//! - What is signed: `body`, `steps`, `message` and `size`, pure; `own` tells what a user was quoted by its transaction. `mint`
//!   says what a currency is, and `memory` keeps what providers said of it. `swap` has the aggregators.

mod accounts;
mod asked;
mod attempt;
mod body;
#[cfg(test)]
mod fixtures;
mod history;
mod inspect;
mod limits;
mod lookup;
mod memory;
mod message;
mod mint;
mod node;
pub(super) mod own;
mod pay;
mod scan;
mod simulate;
mod size;
mod steps;
mod submit;
mod swap;
mod wallet;
mod writer;

use std::sync::Arc;

use solana_pubkey::Pubkey;

use self::node::Node;
use crate::{ChainSpec, CodecError, Endpoint, SpecError, trade::TradingProvider, types::Address};

pub use self::{
    attempt::Landing, limits::limits, own::own_call, steps::Steps, swap::open as open_swaps,
    wallet::providers,
};

/// Compute units of a unit of work: a rate is in whole lamports, and a compute unit costs far less than one.
pub const UNIT: u64 = 1_000;

/// See [`crate::Family::trade`]. Opens one node: all share one line to it.
pub fn open(spec: &Arc<ChainSpec>, endpoint: &Endpoint) -> Result<TradingProvider, SpecError> {
    scan::check(spec)?;
    let node = Arc::new(Node::new(spec, endpoint)?);
    Ok(TradingProvider {
        scanner: node.clone(),
        accounts: node.clone(),
        writer: node.clone(),
        inspector: node.clone(),
        mempool: None,
        outputs: None,
        simulator: Some(node),
        contracts: None,
    })
}

/// The account of a public key, which is the key itself. An error for bytes that are no ed25519 key.
pub fn account(public_key: &[u8]) -> Result<Address, CodecError> {
    let key = Pubkey::try_from(public_key).ok();
    let key = key.filter(Pubkey::is_on_curve);
    let key = key.ok_or_else(|| CodecError("not an ed25519 public key of 32 bytes".into()))?;
    Ok(body::address(&key))
}
