//! The chains of somebody who asks nobody about them: what was read of them is in evidence.

use std::sync::Arc;

use vm::{ChainSpec, Endpoint, SpecError};

use super::{
    Chains, Closed, Loaded, Opened,
    opened::SettlementChain,
    opening::{self, By},
};

impl Chains {
    /// These chains for claims that are judged over evidence ([`vm::evidence::Replay`]): each one that this version
    /// can judge is open and served, whoever is named for it, and nobody is asked.
    pub fn unasked(&self) -> Result<Self, SpecError> {
        let client = Endpoint::client()?;
        let listed = self.list.iter().zip(&self.specs);
        let list = listed.map(|(loaded, spec)| Loaded {
            id: loaded.id.clone(),
            served: true,
            vm_type: loaded.vm_type.clone(),
            hub_chain_id: loaded.hub_chain_id,
            depository: loaded.depository.clone(),
            chain: over(spec.as_ref(), &loaded.chain, &client, |family| family.open),
            keys: loaded
                .keys
                .as_ref()
                .map(|keys| over(spec.as_ref(), keys, &client, |family| family.owner_keys)),
        });
        let settlement = |chain: &SettlementChain| SettlementChain {
            spec: chain.spec.clone(),
            opened: over(chain.spec.as_ref(), &chain.opened, &client, |family| {
                family.open
            }),
        };
        Ok(Self {
            list: list.collect(),
            specs: self.specs.clone(),
            by_id: self.by_id.clone(),
            hub: settlement(&self.hub),
            allocator: settlement(&self.allocator),
            hub_entry: self.hub_entry.clone(),
        })
    }
}

/// The chain with nobody to ask; where nobody can judge it, why that is.
fn over(
    spec: Option<&Arc<ChainSpec>>,
    was: &Result<Opened, Closed>,
    client: &reqwest::Client,
    by: By,
) -> Result<Opened, Closed> {
    match spec {
        Some(spec) => opening::unasked(spec, client, by),
        None => was.clone(),
    }
}
