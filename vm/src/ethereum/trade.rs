//! The trading half of the family.
//!
//! - One node: `scan` (with `block_logs`, `bloom` and the pure `deposit_tx`), `accounts`, `writer`, `simulate` and
//!   `inspect`; [`open`] opens them.
//! - All nodes of a chain: `wallet`. The limits that the operator sets: `codec`.
//! - Landing: `submit` asks the chain; `landing`, `queue` (nonces) and `versions` (what is signed for one) are pure.
//! - What is signed: `steps` and `transaction`, pure. `swap` has the exchanges.

mod accounts;
mod block_logs;
mod bloom;
mod carried;
mod codec;
mod deposit_tx;
mod inspect;
mod landing;
mod queue;
mod scan;
mod simulate;
mod steps;
mod submit;
mod swap;
mod transaction;
mod versions;
mod wallet;
mod writer;

use std::sync::Arc;

use self::{
    accounts::Accounts, inspect::TxInspector, scan::Scan, simulate::Simulator, writer::Writer,
};
use super::{decode::Rules, rpc::Rpc};
use crate::{ChainSpec, Endpoint, SpecError, trade::TradingProvider};

#[cfg(any(test, feature = "testing"))]
pub use self::versions::{Priced, priced};
pub use self::{
    carried::{
        Carried, CarriedAccount, CarriedAuthorization, CarriedTx, carried_family, carried_id,
    },
    codec::{Limits, TransactionCodec, Unsealed},
    landing::Landing,
    steps::Steps,
    swap::open as open_swaps,
    transaction::Transactions,
    wallet::{limits, parts, providers, wallet},
};

/// Opens one node: all share one line to it, and what is known of its manners; but for traces, see [`TxInspector`].
pub fn open(spec: &Arc<ChainSpec>, endpoint: &Endpoint) -> Result<TradingProvider, SpecError> {
    let rpc = Arc::new(Rpc::new(&spec.id, spec.hub_chain_id, endpoint));
    let rules = Rules::new(spec)?;
    Ok(TradingProvider {
        scanner: Arc::new(Scan {
            rpc: rpc.clone(),
            rules: rules.clone(),
        }),
        accounts: Arc::new(Accounts(rpc.clone())),
        writer: Arc::new(Writer(rpc.clone())),
        simulator: Some(Arc::new(Simulator(rpc.clone()))),
        contracts: Some(Arc::new(Accounts(rpc.clone()))),
        inspector: Arc::new(TxInspector::new(rpc, rules, spec, endpoint)),
        mempool: None,
        outputs: None,
    })
}
