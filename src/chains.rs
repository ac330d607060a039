//! The loaded chains: the chains file (or the bundled list of an environment) with the operator's
//! providers, opened. Everything below knows chains by their name only.
//!
//! Opening makes no network traffic: a provider's chain id is checked before its first vote.

pub mod asking;
mod files;
mod head_calls;
mod opened;
mod providers;
mod rules;
mod settlement;

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value};
use vm::{
    Chain, ChainEntry, ChainSpec, Endpoint, Family, OpenProvider, Provider, U256, quorum::Quorum,
    trade::TradingProvider,
};

use self::providers::{Source, World, endpoints, for_strangers, named, required};
use crate::config::{Config, FinalityProfile, Mistakes};

pub use self::opened::{Closed, Loaded, Opened};
pub use vm::trade::HeadCalls;

/// What the allocator's chain is called among the chains: its variables are `AURORA_RPC_URL` and
/// `AURORA_RPC_QUORUM`.
pub const ALLOCATOR: &str = "aurora";

/// All configured chains in the order of the file, and those that the hub file names.
pub struct Chains {
    list: Vec<Loaded>,
    by_id: HashMap<String, usize>,
    hub: Result<Opened, Closed>,
    allocator: Result<Opened, Closed>,
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
        let list = files::entries(&chains, config, mistakes)
            .into_iter()
            .map(|(entry, source)| Self::loaded(&entry, &source, &world, mistakes))
            .collect::<Vec<_>>();
        let mut by_id = HashMap::new();
        for (at, loaded) in list.iter().enumerate() {
            if by_id.insert(loaded.id.clone(), at).is_some() {
                mistakes.add(
                    "CHAINS_FILE",
                    format!("chain {} stands there twice", loaded.id),
                );
            }
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
            list,
            hub: Ok(hub),
            allocator: Err("nobody said where it is".into()),
            hub_entry,
        }
    }

    fn loaded(
        entry: &ChainEntry,
        source: &Source,
        world: &World<'_>,
        mistakes: &mut Mistakes,
    ) -> Loaded {
        let vm_type = entry.vm_type.clone().unwrap_or_default();
        let number = entry
            .hub_chain_id
            .as_deref()
            .filter(|text| !text.is_empty());
        let opened = |by: fn(&Family) -> Option<OpenProvider>| open(entry, source, world, by);
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
        Loaded {
            id: entry.id.clone(),
            served,
            vm_type,
            hub_chain_id: number.and_then(|text| U256::from_str_radix(text, 10).ok()),
            depository: entry.depository.clone(),
            chain,
            keys,
        }
    }

    /// Has `router` of the chain called `id` count among those that are listed: the operator's own solver
    /// fills through it.
    pub fn accept_router(&mut self, id: &str, router: &str) {
        let loaded = self.by_id.get(id).map(|at| &mut self.list[*at]);
        if let Some(opened) = loaded.and_then(|loaded| loaded.chain.as_mut().ok())
            && let Ok(router) = opened.chain.spec.family.address(router)
        {
            Arc::make_mut(&mut opened.chain.spec)
                .fill_routers
                .add(router);
        }
    }

    /// Every configured chain in the order of the file.
    pub fn list(&self) -> &[Loaded] {
        &self.list
    }

    /// The chain called `id`.
    pub fn get(&self, id: &str) -> Option<&Loaded> {
        self.by_id.get(id).map(|at| &self.list[*at])
    }

    /// The settlement chain, or why it cannot be read.
    pub fn hub(&self) -> Result<&Opened, &Closed> {
        self.hub.as_ref()
    }

    /// The settlement chain, or why nothing is attested that rests on it.
    pub fn attested_hub(&self) -> Result<&Opened, Closed> {
        opened::attested(&self.hub)
    }

    /// The chain of the allocator that withdrawals are asked of, or why nothing is attested that rests
    /// on it.
    pub fn allocator(&self) -> Result<&Opened, Closed> {
        opened::attested(&self.allocator)
    }

    /// Whether the operator named who is asked about the allocator.
    pub fn allocator_named(&self) -> bool {
        self.allocator.as_ref().is_ok_and(|opened| opened.named)
    }

    /// Every chain that can be read, those of settlement last.
    pub fn opened(&self) -> impl Iterator<Item = &Opened> {
        let listed = self.list.iter().flat_map(|loaded| &loaded.chain);
        listed.chain(&self.hub).chain(&self.allocator)
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

    /// How many equal answers count of whoever is asked about the chain called `id`; `None` where nobody is.
    pub fn required(&self, id: &str) -> Option<usize> {
        let mut asked = self.opened().chain(self.keys());
        let found = asked.find(|opened| opened.chain.spec.id.as_str() == id);
        found.map(|opened| opened.required)
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

/// `by`: what opens a provider. `Err`: a mistake of the operator's. `Ok(Err)`: the chain is listed but cannot be read.
fn open(
    entry: &ChainEntry,
    source: &Source,
    world: &World<'_>,
    by: fn(&Family) -> Option<OpenProvider>,
) -> Result<Result<Opened, Closed>, String> {
    let config = world.config;
    let unreadable = |why| Ok(Err(Closed::Unreadable(why)));
    let Some(family) = entry.vm_type.as_deref().and_then(vm::family) else {
        let vm_type = entry.vm_type.as_deref().unwrap_or("an unnamed family");
        return unreadable(format!("{vm_type} is not a family that can be read"));
    };
    let strict = config.finality_profile == FinalityProfile::Strict;
    let spec = as_meant(entry, config)
        .spec(family, strict)
        .map_err(|error| error.to_string())?;
    let Some(open) = by(family) else {
        let name = family.name;
        return unreadable(format!("this version does not read {name} chains"));
    };
    let named = named(entry, source, world, &spec)?;
    let urls = match urls(entry, named.as_deref(), source, config) {
        Ok(urls) => urls,
        Err(nobody) => return Ok(Err(nobody)),
    };
    let endpoints = endpoints(urls, world)?;
    let required = required(endpoints.len(), source, &config.variables)?;
    let chosen = source
        .quorum(&config.variables)
        .is_some_and(|text| text == "1");
    let few = config.moves_real_money() && required < 2 && !chosen;
    let strangers = for_strangers(&endpoints, config.listen.quote_calls);
    // A key is read for whoever claims to be its owner.
    let asked = if family.open.is_some() {
        &endpoints
    } else {
        &strangers
    };
    let providers = oracle_providers(open, &spec, asked)?;
    let asking = trading_providers(family, &spec, &strangers)?;
    let trading_providers = trading_providers(family, &spec, &endpoints)?;
    let has_state = providers.iter().all(|provider| provider.state.is_some());
    let quorum = Quorum::new(&spec.id, providers, required).map_err(|error| error.to_string())?;
    let quorum = Arc::new(quorum);
    let chain = Chain {
        spec,
        reader: quorum.clone(),
        state: has_state.then(|| quorum.clone() as Arc<dyn vm::StateReader>),
    };
    Ok(Ok(Opened {
        chain,
        quorum,
        providers: endpoints.len(),
        required,
        named: named.is_some(),
        few: few.then(|| source.few(endpoints.len())),
        trading_providers,
        asking,
    }))
}

/// The entry as it is read in production: its id means the public chain of that name, and where real money
/// is at stake only the fill routers count that are listed.
fn as_meant(entry: &ChainEntry, config: &Config) -> ChainEntry {
    let mut entry = match config.is_production() {
        true => entry.clone().public(),
        false => entry.clone(),
    };
    if config.moves_real_money() {
        entry.fill_routers.get_or_insert_default();
    }
    entry
}

/// Whom to ask: the operator's providers, or, where no real money is at stake, the public endpoint of
/// which nobody knows who answers there.
fn urls<'a>(
    entry: &'a ChainEntry,
    named: Option<&'a str>,
    source: &Source,
    config: &Config,
) -> Result<&'a str, Closed> {
    let public = entry.public_rpc_url.as_deref();
    let public = public.filter(|_| !config.moves_real_money());
    named
        .or(public)
        .ok_or_else(|| match config.moves_real_money() {
            true => source.few(0),
            false => Closed::Unreadable(format!("no provider: set {}", source.name)),
        })
}

fn oracle_providers(
    open: OpenProvider,
    spec: &Arc<ChainSpec>,
    endpoints: &[Endpoint],
) -> Result<Vec<Provider>, String> {
    let opened = endpoints.iter().map(|endpoint| open(spec, endpoint));
    let opened: Result<Vec<_>, _> = opened.collect();
    opened.map_err(|error| error.to_string())
}

fn trading_providers(
    family: &Family,
    spec: &Arc<ChainSpec>,
    endpoints: &[Endpoint],
) -> Result<Vec<TradingProvider>, String> {
    let Some(open) = family.trade else {
        return Ok(Vec::new());
    };
    let opened: Result<Vec<_>, _> = endpoints
        .iter()
        .map(|endpoint| open(spec, endpoint))
        .collect();
    opened.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
