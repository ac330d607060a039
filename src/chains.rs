//! The loaded chains: the chains file (or the bundled list of an environment) with the operator's
//! providers, opened. Everything below knows chains by their name only.
//!
//! Opening makes no network traffic: a provider's chain id is checked before its first vote.

mod providers;
mod settlement;
mod views;

use std::{collections::HashMap, path::Path, sync::Arc};

use serde_json::{Map, Value};
use vm::{Chain, ChainEntry, ChainSpec, Endpoint, Family, Provider, quorum::Quorum, trade::Trade};

use self::providers::{Source, World, endpoints, required};
use crate::config::{Config, FinalityProfile, Mistakes, Variables};

pub use self::views::{Answer, Views};

/// `(environment, chains file, hub file)` of the lists that come with the daemon.
const BUNDLED: &[(&str, &str, &str)] = &[
    (
        "mainnets.prod",
        include_str!("chains/mainnets.prod.json"),
        include_str!("chains/hub.mainnets.prod.json"),
    ),
    (
        "testnets.prod",
        include_str!("chains/testnets.prod.json"),
        include_str!("chains/hub.testnets.prod.json"),
    ),
];

/// One configured chain.
pub struct Loaded {
    pub id: String,
    /// The family's name as written, also for families that this build does not have.
    pub vm_type: String,
    /// The primary depository as written.
    pub depository: Option<String>,
    /// The chain, or why it cannot be read.
    pub chain: Result<Opened, String>,
}

/// A chain that can be read.
#[derive(Clone)]
pub struct Opened {
    pub chain: Chain,
    pub quorum: Arc<Quorum>,
    /// Providers asked, and how many of them must agree.
    pub providers: usize,
    pub required: usize,
    /// Whether the operator named the providers; else it is the chain's public endpoint.
    pub named: bool,
    /// The same providers in the same order, for trading; empty where the family has no trading.
    pub trades: Vec<Trade>,
}

impl Opened {
    /// Whether one provider's answer is enough.
    pub fn single_decider(&self) -> bool {
        self.required == 1
    }

    /// Whether two groups of its providers could agree on opposite answers: the operator asks for
    /// no majority.
    pub fn minority_decides(&self) -> bool {
        self.required <= self.providers / 2
    }
}

/// What the allocator's chain is called among the chains: its variables are `AURORA_RPC_URL` and
/// `AURORA_RPC_QUORUM`.
pub const ALLOCATOR: &str = "aurora";

/// All configured chains in the order of the file, and those that the hub file names.
pub struct Chains {
    list: Vec<Loaded>,
    by_id: HashMap<String, usize>,
    hub: Result<Opened, String>,
    allocator: Result<Opened, String>,
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
        let (chains, hub) = texts(config, mistakes);
        let list = entries(&chains, config, mistakes)
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
            allocator: Err("nobody said where it is".to_owned()),
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
        let chain = open(entry, source, world).unwrap_or_else(|what| {
            mistakes.add(&source.name, format!("chain {}: {what}", entry.id));
            Err(what)
        });
        Loaded {
            id: entry.id.clone(),
            vm_type,
            depository: entry.depository.clone(),
            chain,
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
    pub fn hub(&self) -> Result<&Opened, &str> {
        self.hub.as_ref().map_err(String::as_str)
    }

    /// The chain of the allocator that withdrawals are asked of, or why it cannot be read.
    pub fn allocator(&self) -> Result<&Opened, &str> {
        self.allocator.as_ref().map_err(String::as_str)
    }

    /// The hub file's object, variables resolved, without its providers: they may hold credentials.
    pub fn hub_entry(&self) -> &Map<String, Value> {
        &self.hub_entry
    }
}

fn texts(config: &Config, mistakes: &mut Mistakes) -> (String, String) {
    let bundled = BUNDLED
        .iter()
        .find(|(name, ..)| *name == config.environment);
    let mut text = |file: Option<&Path>, variable: &str, own: Option<&str>| match (file, own) {
        (Some(path), _) => std::fs::read_to_string(path).unwrap_or_else(|error| {
            mistakes.add(variable, format!("{}: {error}", path.display()));
            String::new()
        }),
        (None, Some(own)) => own.to_owned(),
        // Without a name nobody knows what would be missing.
        (None, None) if config.environment.is_empty() => String::new(),
        (None, None) => {
            let known = BUNDLED
                .iter()
                .map(|(name, ..)| *name)
                .collect::<Vec<_>>()
                .join(", ");
            let what = format!("must be set: only {known} come with a list of their own");
            mistakes.add(variable, what);
            String::new()
        }
    };
    let chains = text(
        config.chains_file.as_deref(),
        "CHAINS_FILE",
        bundled.map(|b| b.1),
    );
    let hub = text(config.hub_file.as_deref(), "HUB_FILE", bundled.map(|b| b.2));
    (chains, hub)
}

fn entries(text: &str, config: &Config, mistakes: &mut Mistakes) -> Vec<(ChainEntry, Source)> {
    if text.is_empty() {
        return Vec::new();
    }
    let list: Vec<Map<String, Value>> = match serde_json::from_str(text) {
        Ok(list) => list,
        Err(error) => {
            mistakes.add(
                "CHAINS_FILE",
                format!("expected a JSON array of objects: {error}"),
            );
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    for (at, mut entry) in list.into_iter().enumerate() {
        let Some(id) = entry.get("id").and_then(Value::as_str).map(str::to_owned) else {
            tracing::warn!(
                entry = at,
                "chain without an id in the chains file: left out"
            );
            continue;
        };
        let source = Source::of(&id, entry.get("httpRpcUrl"));
        resolve(&mut entry, &config.variables);
        match serde_json::from_value(Value::Object(entry)) {
            Ok(entry) => found.push((entry, source)),
            Err(error) => mistakes.add("CHAINS_FILE", format!("chain {id}: {error}")),
        }
    }
    found
}

/// Replaces `$NAME` in top-level strings and in direct children of `additionalData`; an unset
/// variable removes the field.
fn resolve(entry: &mut Map<String, Value>, variables: &Variables) {
    let replace = |object: &mut Map<String, Value>| {
        object.retain(
            |_, value| match value.as_str().and_then(|text| text.strip_prefix('$')) {
                None => true,
                Some(name) => variables.get(name).is_some_and(|text| {
                    *value = text.into();
                    true
                }),
            },
        );
    };
    replace(entry);
    if let Some(Value::Object(additional)) = entry.get_mut("additionalData") {
        replace(additional);
    }
}

/// `Err`: a mistake of the operator's. `Ok(Err)`: the chain is listed but cannot be read.
fn open(
    entry: &ChainEntry,
    source: &Source,
    world: &World<'_>,
) -> Result<Result<Opened, String>, String> {
    let config = world.config;
    let Some(family) = entry.vm_type.as_deref().and_then(vm::family) else {
        let vm_type = entry.vm_type.as_deref().unwrap_or("an unnamed family");
        return Ok(Err(format!("{vm_type} is not a family that can be read")));
    };
    let strict = config.finality_profile == FinalityProfile::Strict;
    let public = config.is_production().then(|| entry.clone().public());
    let spec = public
        .as_ref()
        .unwrap_or(entry)
        .spec(family, strict)
        .map_err(|error| error.to_string())?;
    let named = entry
        .http_rpc_url
        .as_deref()
        .or_else(|| config.variables.get(&source.name));
    let Some(urls) = named.or(entry.public_rpc_url.as_deref()) else {
        return Ok(Err(format!("no provider: set {}", source.name)));
    };
    let Some(open) = family.open else {
        return Ok(Err(format!(
            "this version does not read {} chains",
            family.name
        )));
    };
    let endpoints = endpoints(urls, world)?;
    let required = required(endpoints.len(), source, &config.variables)?;
    let providers = endpoints
        .iter()
        .map(|endpoint| open(&spec, endpoint))
        .collect::<Result<Vec<Provider>, _>>()
        .map_err(|error| error.to_string())?;
    let trades = trades(family, &spec, &endpoints)?;
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
        trades,
    }))
}

fn trades(
    family: &Family,
    spec: &Arc<ChainSpec>,
    endpoints: &[Endpoint],
) -> Result<Vec<Trade>, String> {
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
