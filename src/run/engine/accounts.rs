//! The solver's accounts on each network: of its present key and of its former ones.

use std::{collections::HashMap, sync::Arc};

use anyhow::Context;

use super::EngineContext;
use crate::solver::{
    account::{Gas, SolverAccount},
    chain::TradingChain,
    keys::Keys,
    settle::Settler,
};

fn gas(site: &TradingChain) -> Gas {
    Gas {
        most: site.providers.limits().max_fee,
        ..Gas::default()
    }
}

/// Every lane there is, in order of their networks.
pub fn all(
    lanes: &HashMap<String, Arc<SolverAccount>>,
    settler: Option<&Arc<Settler>>,
) -> Vec<Arc<SolverAccount>> {
    let mut all: Vec<_> = lanes.values().cloned().collect();
    let settling = settler.map(|settler| settler.lane.clone());
    all.extend(settling.filter(|lane| !lanes.contains_key(&lane.site.name)));
    all.sort_by(|one, other| one.site.name.cmp(&other.site.name));
    all
}

impl EngineContext<'_> {
    pub(super) async fn lanes(&self) -> anyhow::Result<HashMap<String, Arc<SolverAccount>>> {
        let mut lanes = HashMap::new();
        for place in &self.places {
            let chain = place.opened.chain.clone();
            let site = TradingChain::traded(place.network, chain, place.providers.clone())?;
            let lane = self.lane(site).await?;
            lanes.insert(place.network.name.clone(), Arc::new(lane));
        }
        Ok(lanes)
    }

    /// The lanes of keys that the solver had before, where it has one now.
    pub(super) async fn former(
        &self,
        present: &[Arc<SolverAccount>],
    ) -> anyhow::Result<Vec<Arc<SolverAccount>>> {
        let mut former = Vec::new();
        for site in present.iter().map(|lane| &lane.site) {
            for key in &self.trading.previous {
                let (store, gas) = (self.requests.store().clone(), gas(site));
                let now = (self.outside.clock)();
                let lane =
                    SolverAccount::former(site.clone(), store, key.clone(), gas, now).await?;
                former.extend(lane.map(Arc::new));
            }
        }
        Ok(former)
    }

    pub(super) fn keys(&self) -> Keys {
        Keys {
            current: self.signer.clone(),
            former: self.trading.previous.clone().into(),
            family: self.trading.solver_family,
        }
    }

    pub(super) async fn lane(&self, site: TradingChain) -> anyhow::Result<SolverAccount> {
        let (store, signer) = (self.requests.store().clone(), self.signer.clone());
        let name = site.name.clone();
        let now = (self.outside.clock)();
        let gas = gas(&site);
        let lane = SolverAccount::open(Arc::new(site), store, signer, gas, now).await;
        lane.with_context(|| format!("the solver cannot work on {name}"))
    }
}
