//! Trading on Bitcoin chains.
//!
//! Landing, what the solver pays: `coin` (unspent outputs), `choice` (which of them), `version` (transactions and their
//! replacements), `attempt` (what is stored), `signature`, `submit`. `wallet` is all providers together, `wire` sends
//! through one, `accounts` reads balances through one. `body` is a draft's bytes, `build` makes drafts.
//!
//! What users pay: `scan` finds deposits in blocks and `pool` those that wait, over `scan_source`; `unspent` reads what
//! accounts can spend (`watched` in a node, `crowded` in an index), `purse` chooses of a user's, by `select` and `spend_kind`, for the PSBT of `psbt_step`; `steps`
//! shows it. `inspect` shows transactions in full.

mod accounts;
mod attempt;
mod body;
mod build;
mod choice;
mod coin;
mod crowded;
mod inspect;
mod pool;
mod psbt_step;
mod purse;
mod scan;
mod scan_esplora;
mod scan_node;
mod scan_source;
mod select;
mod signature;
mod spend_kind;
mod steps;
mod submit;
mod unspent;
mod version;
mod wallet;
mod watched;
mod wire;

use std::sync::Arc;

use self::{
    accounts::Accounts,
    scan_source::Blocks,
    wire::{Wire, Writer},
};
use super::{
    read::{Opened, opened},
    source::Source,
};
use crate::{ChainSpec, Endpoint, SpecError, trade::TradingProvider};

pub use self::{
    attempt::Landing,
    crowded::AccountHistory,
    wallet::{keys, limits, providers},
};

/// Bytes of an answer that are read at least: an account with 10,000 unspent outputs has some four million.
const LONGEST: usize = 8 << 20;

/// See [`crate::Family::trade`].
pub fn trade(spec: &Arc<ChainSpec>, endpoint: &Endpoint) -> Result<TradingProvider, SpecError> {
    let endpoint = Endpoint {
        longest: endpoint.longest.max(LONGEST),
        ..endpoint.clone()
    };
    match opened(spec, &endpoint)? {
        Opened::Node(node) => {
            if !node.shows_anybody() {
                let chain = &spec.id;
                let provider = endpoint.position;
                tracing::warn!(%chain, provider, "no index: this node shows no outputs of users, and makes no quotes");
            }
            provider(spec, Arc::new(*node))
        }
        Opened::Index(index) => provider(spec, Arc::new(*index)),
    }
}

fn provider<S: Source + Wire + Blocks>(
    spec: &Arc<ChainSpec>,
    source: Arc<S>,
) -> Result<TradingProvider, SpecError> {
    let native = spec.family.native();
    let outputs = Arc::new(unspent::Unspents::new(spec, source.clone())?);
    Ok(TradingProvider {
        scanner: Arc::new(scan::Scan::new(spec, source.clone())?),
        accounts: Arc::new(Accounts {
            outputs: outputs.clone(),
            native: native.map_err(|error| SpecError(error.to_string()))?,
        }),
        inspector: Arc::new(inspect::Inspector::new(spec, source.clone())?),
        mempool: Some(Arc::new(pool::Pool::new(spec, source.clone())?)),
        writer: Arc::new(Writer(source)),
        outputs: Some(outputs),
        simulator: None,
        contracts: None,
    })
}
