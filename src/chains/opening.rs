//! How a chain of the files is opened: with whom the operator names, or with nobody, where evidence answers.

use std::sync::Arc;

use vm::{
    Chain, ChainEntry, ChainSpec, Endpoint, Family, OpenProvider, Provider, quorum::Quorum,
    trade::TradingProvider,
};

use super::{
    Closed, Opened,
    providers::{Source, World, endpoints, for_strangers, named, nobody, required},
};
use crate::config::{Config, FinalityProfile};

/// What opens a provider of a family's chains; `None` where this version does not read them.
pub type By = fn(&Family) -> Option<OpenProvider>;

/// What a chain is judged by. `Err`: a mistake of the operator's. `Ok(Err)`: the chain is listed but cannot be judged.
pub fn spec(entry: &ChainEntry, config: &Config) -> Result<Result<Arc<ChainSpec>, Closed>, String> {
    let Some(family) = entry.vm_type.as_deref().and_then(vm::family) else {
        let vm_type = entry.vm_type.as_deref().unwrap_or("an unnamed family");
        let why = format!("{vm_type} is not a family that can be read");
        return Ok(Err(Closed::Unreadable(why)));
    };
    let strict = config.finality_profile == FinalityProfile::Strict;
    let spec = as_meant(entry, config).spec(family, strict);
    spec.map(Ok).map_err(|error| error.to_string())
}

/// `Err`: a mistake of the operator's. `Ok(Err)`: the chain is listed but cannot be read.
pub fn open(
    spec: &Arc<ChainSpec>,
    (entry, source): (&ChainEntry, &Source),
    world: &World<'_>,
    by: By,
) -> Result<Result<Opened, Closed>, String> {
    let (config, family) = (world.config, spec.family);
    let Some(open) = by(family) else {
        return Ok(Err(unread(family)));
    };
    let named = named(entry, source, world, spec)?;
    let urls = match urls(entry, named.as_deref(), source, config) {
        Ok(urls) => urls,
        Err(closed) => return Ok(Err(closed)),
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
    let providers = oracle_providers(open, spec, asked)?;
    let asking = trading_providers(family, spec, &strangers)?;
    let trading_providers = trading_providers(family, spec, &endpoints)?;
    let checks_network = providers.iter().all(|provider| provider.checks_network);
    let (chain, quorum) = agreeing(spec, providers, required)?;
    Ok(Ok(Opened {
        chain,
        quorum,
        providers: endpoints.len(),
        required,
        named: named.is_some(),
        checks_network,
        few: few.then(|| source.few(endpoints.len())),
        trading_providers,
        asking,
    }))
}

/// A chain of which nobody is asked: whatever is read of it is answered from evidence ([`vm::evidence::Replay`]).
pub fn unasked(spec: &Arc<ChainSpec>, client: &reqwest::Client, by: By) -> Result<Opened, Closed> {
    let open = by(spec.family).ok_or_else(|| unread(spec.family))?;
    let opened = || {
        let providers = oracle_providers(open, spec, &[nobody(client)?])?;
        agreeing(spec, providers, 1)
    };
    let (chain, quorum) = opened().map_err(Closed::Unreadable)?;
    Ok(Opened {
        chain,
        quorum,
        providers: 0,
        required: 0,
        named: false,
        checks_network: true,
        few: None,
        trading_providers: Vec::new(),
        asking: Vec::new(),
    })
}

/// The chain as `required` of `providers` agree about it.
fn agreeing(
    spec: &Arc<ChainSpec>,
    providers: Vec<Provider>,
    required: usize,
) -> Result<(Chain, Arc<Quorum>), String> {
    let has_state = providers.iter().all(|provider| provider.state.is_some());
    let quorum = Quorum::new(&spec.id, providers, required).map_err(|error| error.to_string())?;
    let quorum = Arc::new(quorum);
    let chain = Chain {
        spec: spec.clone(),
        reader: quorum.clone(),
        state: has_state.then(|| quorum.clone() as Arc<dyn vm::StateReader>),
    };
    Ok((chain, quorum))
}

fn unread(family: &Family) -> Closed {
    let name = family.name;
    Closed::Unreadable(format!("this version does not read {name} chains"))
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
