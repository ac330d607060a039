//! The hub file: the settlement chain and the allocator's, as chains that are read like all others.

use serde_json::{Map, Value};
use vm::ChainEntry;

use super::{ALLOCATOR, Closed, Source, World, files::resolve, opened::SettlementChain, opening};
use crate::config::Mistakes;

/// What the hub file names.
pub(super) struct Settlement {
    pub entry: Map<String, Value>,
    pub hub: SettlementChain,
    pub allocator: SettlementChain,
}

/// The settlement chain and the allocator's are EVM chains of their own: not in the list, no
/// depository. Their finality is the family's, or what `additionalData` and `auroraAdditionalData`
/// of the hub file say as a chain's entry does.
pub(super) fn read(text: &str, world: &World<'_>, mistakes: &mut Mistakes) -> Settlement {
    let nothing = || Settlement {
        entry: Map::new(),
        hub: SettlementChain::closed("no hub file"),
        allocator: SettlementChain::closed("no hub file"),
    };
    if text.is_empty() {
        return nothing();
    }
    let mut entry: Map<String, Value> = match serde_json::from_str(text) {
        Ok(entry) => entry,
        Err(error) => {
            mistakes.add("HUB_FILE", format!("expected a JSON object: {error}"));
            return nothing();
        }
    };
    let id = field(&entry, "id").unwrap_or_default();
    let sources = (
        Source::of(&id, entry.get("httpRpcUrl")),
        Source::of(ALLOCATOR, entry.get("auroraHttpRpcUrl")),
    );
    resolve(&mut entry, &world.config.variables);
    let hub = ChainEntry {
        id,
        http_rpc_url: field(&entry, "httpRpcUrl"),
        hub_chain_id: field(&entry, "evmChainId"),
        additional_data: object(&entry, "additionalData"),
        ..ChainEntry::default()
    };
    let allocator = ChainEntry {
        id: ALLOCATOR.to_owned(),
        http_rpc_url: field(&entry, "auroraHttpRpcUrl"),
        public_rpc_url: field(&entry, "auroraPublicRpcUrl"),
        hub_chain_id: field(&entry, "auroraEvmChainId"),
        additional_data: object(&entry, "auroraAdditionalData"),
        ..ChainEntry::default()
    };
    let hub = evm(hub, "hub", (&sources.0, world), mistakes);
    let allocator = match entry.contains_key("auroraAllocatorAddress") {
        true => evm(allocator, "allocator", (&sources.1, world), mistakes),
        false => SettlementChain::closed("the hub file names no auroraAllocatorAddress"),
    };
    for providers in ["httpRpcUrl", "auroraHttpRpcUrl"] {
        entry.remove(providers);
    }
    Settlement {
        entry,
        hub,
        allocator,
    }
}

fn evm(
    entry: ChainEntry,
    what: &str,
    (source, world): (&Source, &World<'_>),
    mistakes: &mut Mistakes,
) -> SettlementChain {
    let entry = ChainEntry {
        vm_type: Some(vm::SETTLEMENT.name.to_owned()),
        ..entry
    };
    let spec = opening::spec(&entry, world.config);
    let opened = spec.clone().and_then(|spec| match spec {
        Ok(spec) => opening::open(&spec, (&entry, source), world, |family| family.open),
        Err(closed) => Ok(Err(closed)),
    });
    let opened = opened.unwrap_or_else(|why| {
        mistakes.add(&source.name, format!("{what}: {why}"));
        Err(Closed::Unreadable(why))
    });
    SettlementChain {
        spec: spec.ok().and_then(Result::ok),
        opened,
    }
}

fn field(entry: &Map<String, Value>, name: &str) -> Option<String> {
    entry.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn object(entry: &Map<String, Value>, name: &str) -> Map<String, Value> {
    let found = entry.get(name).and_then(Value::as_object);
    found.cloned().unwrap_or_default()
}
