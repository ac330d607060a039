//! The solver's accounts on each network: of its present keys and of its former ones.

use std::{collections::HashMap, sync::Arc};

use anyhow::Context;

use super::EngineContext;
use crate::solver::{
    account::{SendLimits, SolverAccount},
    chain::TradingChain,
    keys::Keys,
    settle::Settler,
};

fn limits(chain: &TradingChain) -> SendLimits {
    SendLimits {
        most_rate: chain.providers.limits.rate,
        ..SendLimits::default()
    }
}

/// The settler's account, unless it is one of those on networks of the market.
pub fn settling(
    accounts: &HashMap<String, Arc<SolverAccount>>,
    settler: Option<&Arc<Settler>>,
) -> Option<Arc<SolverAccount>> {
    let account = &settler?.account;
    (!accounts.contains_key(&account.chain.name)).then(|| account.clone())
}

/// All accounts, ordered by their networks: those on networks of the market and the settler's.
pub fn all(
    accounts: &HashMap<String, Arc<SolverAccount>>,
    settling: Option<&Arc<SolverAccount>>,
) -> Vec<Arc<SolverAccount>> {
    let mut all: Vec<_> = accounts.values().chain(settling).cloned().collect();
    all.sort_by(|one, other| one.chain.name.cmp(&other.chain.name));
    all
}

impl EngineContext<'_> {
    pub(super) async fn solver_accounts(
        &self,
    ) -> anyhow::Result<HashMap<String, Arc<SolverAccount>>> {
        let mut accounts = HashMap::new();
        for network in &self.networks {
            let chain = network.opened.chain.clone();
            let chain = TradingChain::traded(network.listed, chain, network.providers.clone())?;
            let account = self.solver_account(chain).await?;
            accounts.insert(network.name().to_owned(), Arc::new(account));
        }
        Ok(accounts)
    }

    /// The accounts of keys that the solver had before, on the chains where it has an account now.
    pub(super) async fn former(
        &self,
        present: &[Arc<SolverAccount>],
    ) -> anyhow::Result<Vec<Arc<SolverAccount>>> {
        let mut former = Vec::new();
        for chain in present.iter().map(|account| &account.chain) {
            for key in &self.trading.former {
                let (store, limits) = (self.requests.store().clone(), limits(chain));
                let now = (self.outside.clock)();
                let account = SolverAccount::former(chain.clone(), store, key, limits, now).await?;
                former.extend(account.map(Arc::new));
            }
        }
        Ok(former)
    }

    pub(super) fn keys(&self) -> Keys {
        let former = self.trading.former.iter();
        let former = former.filter_map(|key| key.promising().cloned());
        Keys {
            current: self.trading.keys.secp256k1.clone(),
            former: former.collect(),
            family: self.trading.solver_family,
        }
    }

    pub(super) async fn solver_account(
        &self,
        chain: TradingChain,
    ) -> anyhow::Result<SolverAccount> {
        let (store, now) = (self.requests.store().clone(), (self.outside.clock)());
        let (name, limits) = (chain.name.clone(), limits(&chain));
        let keys = &self.trading.keys;
        let account = SolverAccount::open(Arc::new(chain), store, keys, limits, now).await;
        account.with_context(|| format!("the solver cannot work on {name}"))
    }
}
