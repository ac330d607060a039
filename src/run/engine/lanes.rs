//! The solver's nonces on each network, with the key of now and those of before.

use std::{collections::HashMap, sync::Arc};

use anyhow::Context;

use super::Ground;
use crate::solver::{
    keys::Keys,
    lane::{Gas, Lane},
    settle::Settler,
    site::Site,
};

fn gas(site: &Site) -> Gas {
    Gas {
        most: site.providers.limits().max_fee,
        ..Gas::default()
    }
}

/// Every lane there is, in order of their networks.
pub fn all(lanes: &HashMap<String, Arc<Lane>>, settler: Option<&Arc<Settler>>) -> Vec<Arc<Lane>> {
    let mut all: Vec<_> = lanes.values().cloned().collect();
    let settling = settler.map(|settler| settler.lane.clone());
    all.extend(settling.filter(|lane| !lanes.contains_key(&lane.site.name)));
    all.sort_by(|one, other| one.site.name.cmp(&other.site.name));
    all
}

impl Ground<'_> {
    pub(super) async fn lanes(&self) -> anyhow::Result<HashMap<String, Arc<Lane>>> {
        let mut lanes = HashMap::new();
        for place in &self.places {
            let chain = place.opened.chain.clone();
            let site = Site::traded(place.network, chain, place.providers.clone())?;
            let lane = self.lane(site).await?;
            lanes.insert(place.network.name.clone(), Arc::new(lane));
        }
        Ok(lanes)
    }

    /// The lanes of keys that the solver had before, where it has one now.
    pub(super) async fn former(&self, present: &[Arc<Lane>]) -> anyhow::Result<Vec<Arc<Lane>>> {
        let mut former = Vec::new();
        for site in present.iter().map(|lane| &lane.site) {
            for key in &self.trading.previous {
                let (store, gas) = (self.requests.store().clone(), gas(site));
                let now = (self.outside.clock)();
                let lane = Lane::former(site.clone(), store, key.clone(), gas, now).await?;
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

    pub(super) async fn lane(&self, site: Site) -> anyhow::Result<Lane> {
        let (store, signer) = (self.requests.store().clone(), self.signer.clone());
        let name = site.name.clone();
        let now = (self.outside.clock)();
        let gas = gas(&site);
        let lane = Lane::open(Arc::new(site), store, signer, gas, now).await;
        lane.with_context(|| format!("the solver cannot work on {name}"))
    }
}
