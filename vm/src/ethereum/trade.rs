//! Opens one node of an EVM chain for trading. See [`crate::Family::trade`].

use std::sync::Arc;

use super::{
    accounts::Accounts, decode::Rules, rehearsal::Rehearsal, rpc::Rpc, scan::Scan,
    witness::Witnesses, writer::Writer,
};
use crate::{ChainSpec, Endpoint, SpecError, trade::Trade};

/// All of them share one line to the node, and what is known of its manners; but for traces, see [`Witnesses`].
pub fn open(spec: &Arc<ChainSpec>, endpoint: &Endpoint) -> Result<Trade, SpecError> {
    let rpc = Arc::new(Rpc::new(&spec.id, spec.hub_chain_id, endpoint));
    let rules = Rules::new(spec)?;
    Ok(Trade {
        scanner: Arc::new(Scan {
            rpc: rpc.clone(),
            rules: rules.clone(),
        }),
        accounts: Arc::new(Accounts(rpc.clone())),
        writer: Arc::new(Writer(rpc.clone())),
        rehearsal: Arc::new(Rehearsal(rpc.clone())),
        witnesses: Arc::new(Witnesses::new(rpc, rules, spec, endpoint)),
    })
}
