//! Worlds by name: the daemon opens a provider by its URL, `http://<world>.scripted/<provider>`.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use crate::{ChainSpec, Endpoint, Provider, SpecError, trade::TradingProvider};

use super::{provider::Node, world::World};

/// The end of a provider's host, after the world's name.
pub const HOST: &str = ".scripted";

static WORLDS: Mutex<Option<HashMap<String, Weak<World>>>> = Mutex::new(None);

fn worlds() -> MutexGuard<'static, Option<HashMap<String, Weak<World>>>> {
    WORLDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a world known by its name, which must be lower case, until it is dropped.
pub fn register(world: &Arc<World>) {
    let mut worlds = worlds();
    let worlds = worlds.get_or_insert_default();
    worlds.insert(world.name.clone(), Arc::downgrade(world));
}

/// The URL of a provider.
pub fn url(world: &str, provider: &str) -> String {
    format!("http://{world}{HOST}/{provider}")
}

/// See [`crate::Family::open`].
pub fn open(spec: &Arc<ChainSpec>, endpoint: &Endpoint) -> Result<Provider, SpecError> {
    let node = Arc::new(node(spec, endpoint)?);
    Ok(Provider {
        name: node.name().into(),
        reader: node,
        state: None,
        keys: None,
        checks_network: true,
    })
}

/// See [`crate::Family::trade`].
pub fn trade(spec: &Arc<ChainSpec>, endpoint: &Endpoint) -> Result<TradingProvider, SpecError> {
    let node = Arc::new(node(spec, endpoint)?);
    Ok(TradingProvider {
        scanner: node.clone(),
        accounts: node.clone(),
        writer: node.clone(),
        inspector: node,
        simulator: None,
        contracts: None,
        mempool: None,
        outputs: None,
    })
}

fn node(spec: &Arc<ChainSpec>, endpoint: &Endpoint) -> Result<Node, SpecError> {
    let host = endpoint.url.host_str().unwrap_or_default();
    let wrong = || SpecError(format!("httpRpcUrl: no scripted chain at {host}"));
    let name = host.strip_suffix(HOST).ok_or_else(wrong)?;
    let mut worlds = worlds();
    let world = worlds
        .get_or_insert_default()
        .get(name)
        .and_then(Weak::upgrade);
    Ok(Node {
        world: world.ok_or_else(wrong)?,
        spec: spec.clone(),
        provider: endpoint.url.path().trim_matches('/').to_owned(),
    })
}
