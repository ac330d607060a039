//! Opens one node of an EVM chain for trading ([`crate::Family::trade`]), and how payments land there:
//! `queue` (nonces) and `versions` (what is signed for one) are pure, `submit` asks the chain.

mod carried;
mod landing;
mod queue;
mod submit;
mod versions;

use std::sync::Arc;

use super::{
    accounts::Accounts, decode::Rules, inspect::TxInspector, rpc::Rpc, scan::Scan,
    simulate::Simulator, writer::Writer,
};
use crate::{ChainSpec, Endpoint, SpecError, trade::TradingProvider};

#[cfg(any(test, feature = "testing"))]
pub use self::versions::{Priced, priced};
pub use self::{
    carried::{Carried, CarriedTx, carried_account, carried_id},
    landing::Landing,
};

/// All of them share one line to the node, and what is known of its manners; but for traces, see [`TxInspector`].
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
        simulator: Arc::new(Simulator(rpc.clone())),
        inspector: Arc::new(TxInspector::new(rpc, rules, spec, endpoint)),
    })
}
