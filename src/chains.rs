//! The loaded chains: the chains file (or the bundled list of an environment) with the operator's
//! providers, opened. Everything below knows chains by their name only.
//!
//! Opening makes no network traffic: a provider's chain id is checked before its first vote.

pub mod asking;
mod files;
mod head_calls;
mod opened;
mod opening;
pub mod permits;
mod providers;
mod rules;
mod settlement;
mod unasked;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::{Map, Value};
use vm::{ChainEntry, ChainSpec, Endpoint, U256};

use self::{
    opened::SettlementChain,
    opening::By,
    providers::{Source, World},
};
use crate::config::{Config, Mistakes};

pub use self::opened::{Closed, Loaded, Opened};
pub use vm::trade::HeadCalls;

/// What the allocator's chain is called among the chains: its variables are `AURORA_RPC_URL` and
/// `AURORA_RPC_QUORUM`.
pub const ALLOCATOR: &str = "aurora";

/// All configured chains in the order of the file, and those that the hub file names.
pub struct Chains {
    list: Vec<Loaded>,
    /// What each of the list is judged by, in its order; `None` for one that nobody can judge.
    specs: Vec<Option<Arc<ChainSpec>>>,
    by_id: HashMap<String, usize>,
    hub: SettlementChain,
    allocator: SettlementChain,
    hub_entry: Map<String, Value>,
}

impl Chains {
    /// Reads the lists and opens what has a provider. Fails on what could make the daemon judge by
    /// other rules than the operator meant; a chain without a provider is only unavailable.
    pub fn load(config: &Config) -> Result<Self, Mistakes> {
        let mut mistakes = Mistakes::default();
        let chains = Self::gather(config, &mut mistakes);
        mistakes.or(chains)
    }

    /// As [`Self::load`], for those who look for more mistakes before they give up.
    pub fn gather(config: &Config, mistakes: &mut Mistakes) -> Option<Self> {
        let client = Endpoint::client()
            .map_err(|error| mistakes.add("TLS", error.to_string()))
            .ok()?;
        let world = World { config, client };
        let (chains, hub) = files::texts(config, mistakes);
        let (list, specs): (Vec<_>, Vec<_>) = files::entries(&chains, config, mistakes)
            .into_iter()
            .map(|(entry, source)| Self::loaded(&entry, &source, &world, mistakes))
            .unzip();
        let (mut by_id, mut names) = (HashMap::new(), HashSet::new());
        for (at, loaded) in list.iter().enumerate() {
            by_id.insert(loaded.id.clone(), at);
            // Ids of deposits and statements are of names in lower case.
            if !names.insert(loaded.id.to_lowercase()) {
                mistakes.add(
                    "CHAINS_FILE",
                    format!("chain {} stands there twice", loaded.id),
                );
            }
        }
        if config.is_production() {
            check_numbers(&list, mistakes);
        }
        for name in config.chains.iter().flatten() {
            if !by_id.contains_key(name) {
                mistakes.add(
                    "CHAINS",
                    format!("{name} is not a chain of the chains file"),
                );
            }
        }
        let settlement = settlement::read(&hub, &world, mistakes);
        Some(Self {
            list,
            specs,
            by_id,
            hub: settlement.hub,
            allocator: settlement.allocator,
            hub_entry: settlement.entry,
        })
    }

    /// Chains that were opened elsewhere, without an allocator. `hub_entry` is the hub file's object.
    pub fn of(list: Vec<Loaded>, hub: Opened, hub_entry: Map<String, Value>) -> Self {
        let by_id = list.iter().enumerate();
        Self {
            by_id: by_id.map(|(at, loaded)| (loaded.id.clone(), at)).collect(),
            specs: list.iter().map(Loaded::spec).collect(),
            list,
            hub: SettlementChain::of(hub),
            allocator: SettlementChain::closed("nobody said where it is"),
            hub_entry,
        }
    }

    /// A chain of the list, and what it is judged by.
    fn loaded(
        entry: &ChainEntry,
        source: &Source,
        world: &World<'_>,
        mistakes: &mut Mistakes,
    ) -> (Loaded, Option<Arc<ChainSpec>>) {
        let vm_type = entry.vm_type.clone().unwrap_or_default();
        let number = entry
            .hub_chain_id
            .as_deref()
            .filter(|text| !text.is_empty());
        let spec = opening::spec(entry, world.config);
        let opened = |by: By| match &spec {
            Ok(Ok(spec)) => opening::open(spec, (entry, source), world, by),
            Ok(Err(closed)) => Ok(Err(closed.clone())),
            Err(what) => Err(what.clone()),
        };
        let has_keys = vm::family(&vm_type).is_some_and(|family| family.owner_keys.is_some());
        let both = opened(|family| family.open).and_then(|chain| {
            let keys = has_keys.then(|| opened(|family| family.owner_keys));
            Ok((chain, keys.transpose()?))
        });
        let (chain, keys) = both.unwrap_or_else(|what| {
            mistakes.add(&source.name, format!("chain {}: {what}", entry.id));
            (Err(Closed::Unreadable(what)), None)
        });
        let served = match &world.config.chains {
            Some(named) => named.contains(&entry.id),
            None => chain.as_ref().is_ok_and(|opened| opened.named),
        };
        let loaded = Loaded {
            id: entry.id.clone(),
            served,
            vm_type,
            hub_chain_id: number.and_then(|text| U256::from_str_radix(text, 10).ok()),
            depository: entry.depository.clone(),
            chain,
            keys,
        };
        (loaded, spec.ok().and_then(Result::ok))
    }

    /// Has `router` of the chain called `id` count among those that are listed: the operator's own solver
    /// fills through it.
    pub fn accept_router(&mut self, id: &str, router: &str) {
        let Some(at) = self.by_id.get(id).copied() else {
            return;
        };
        if let Some(spec) = &mut self.specs[at]
            && let Ok(router) = spec.family.address(router)
        {
            Arc::make_mut(spec).fill_routers.add(router);
            if let Ok(opened) = &mut self.list[at].chain {
                opened.chain.spec = spec.clone();
            }
        }
    }

    /// Every configured chain in the order of the file.
    pub fn list(&self) -> &[Loaded] {
        &self.list
    }

    /// Each of [`Self::list`] with what it is judged by, whether anybody is asked about it or not; `None` for one that
    /// nobody can judge.
    pub fn judged(&self) -> impl Iterator<Item = (&Loaded, Option<&Arc<ChainSpec>>)> {
        self.list.iter().zip(self.specs.iter().map(Option::as_ref))
    }

    /// The chain called `id`.
    pub fn get(&self, id: &str) -> Option<&Loaded> {
        self.by_id.get(id).map(|at| &self.list[*at])
    }

    /// The settlement chain, or why it cannot be read.
    pub fn hub(&self) -> Result<&Opened, &Closed> {
        self.hub.opened.as_ref()
    }

    /// The settlement chain, or why nothing is attested that rests on it.
    pub fn attested_hub(&self) -> Result<&Opened, Closed> {
        opened::attested(&self.hub.opened)
    }

    /// The chain of the allocator that withdrawals are asked of, or why nothing is attested that rests
    /// on it.
    pub fn allocator(&self) -> Result<&Opened, Closed> {
        opened::attested(&self.allocator.opened)
    }

    /// Whether the operator named who is asked about the allocator.
    pub fn allocator_named(&self) -> bool {
        let opened = self.allocator.opened.as_ref();
        opened.is_ok_and(|opened| opened.named)
    }

    /// Every chain that can be read, those of settlement last.
    pub fn opened(&self) -> impl Iterator<Item = &Opened> {
        let listed = self.list.iter().flat_map(|loaded| &loaded.chain);
        listed.chain(&self.hub.opened).chain(&self.allocator.opened)
    }

    /// Every chain of which keys of owners can be read.
    pub fn keys(&self) -> impl Iterator<Item = &Opened> {
        let keys = self.list.iter().filter_map(|loaded| loaded.keys.as_ref());
        keys.flatten()
    }

    /// How many providers may be asked.
    pub fn providers(&self) -> usize {
        let asked = self.opened().chain(self.keys());
        asked.map(|opened| opened.providers).sum()
    }

    /// What each chain is judged by, whether anybody is asked about it or not, those of settlement last. Chains that
    /// nobody can judge are left out.
    pub fn specs(&self) -> impl Iterator<Item = &ChainSpec> {
        let listed = self.specs.iter().flatten();
        let all = listed.chain(&self.hub.spec).chain(&self.allocator.spec);
        all.map(|spec| &**spec)
    }

    /// How many equal answers count of the providers that the operator named for the chain called `id`: 0 where he
    /// named none, `None` for a chain that nobody can judge.
    pub fn required(&self, id: &str) -> Option<usize> {
        self.specs().find(|spec| spec.id.as_str() == id)?;
        let mut asked = self.opened().chain(self.keys());
        let found = asked.find(|opened| opened.named && opened.chain.spec.id.as_str() == id);
        Some(found.map_or(0, |opened| opened.required))
    }

    /// What nobody can be attested anything without: in production the settlement chain's providers,
    /// whether a claim reads that chain or not.
    pub fn foundation(&self) -> Result<(), Closed> {
        match self.attested_hub() {
            Err(few @ Closed::FewProviders { .. }) => Err(few),
            _ => Ok(()),
        }
    }

    /// The hub file's object, variables resolved, without its providers: they may hold credentials.
    pub fn hub_entry(&self) -> &Map<String, Value> {
        &self.hub_entry
    }
}

/// Refuses two chains of a family with one number at the hub: one deposit would be minted under both names. Worlds of
/// tests share numbers.
fn check_numbers(list: &[Loaded], mistakes: &mut Mistakes) {
    let mut known = HashMap::new();
    for loaded in list {
        let Some(number) = loaded.hub_chain_id else {
            continue;
        };
        let (family, id) = (loaded.vm_type.as_str(), loaded.id.as_str());
        let first = *known.entry((family, number)).or_insert(id);
        if first != id {
            let what = format!("chains {first} and {id} have one hubChainId, {number}");
            mistakes.add("CHAINS_FILE", what);
        }
    }
}

#[cfg(test)]
mod tests;
