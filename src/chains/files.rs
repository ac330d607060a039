//! The lists of chains: the operator's files, or those of an environment that come with the daemon.

use std::path::Path;

use serde_json::{Map, Value};
use vm::ChainEntry;

use super::providers::Source;
use crate::config::{Config, Mistakes, Variables};

/// `(environment, chains file, hub file)` of the lists that come with the daemon.
pub const BUNDLED: &[(&str, &str, &str)] = &[
    (
        "mainnets.prod",
        include_str!("mainnets.prod.json"),
        include_str!("hub.mainnets.prod.json"),
    ),
    (
        "testnets.prod",
        include_str!("testnets.prod.json"),
        include_str!("hub.testnets.prod.json"),
    ),
];

/// The chains file and the hub file.
pub fn texts(config: &Config, mistakes: &mut Mistakes) -> (String, String) {
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

/// The entries of a chains file, variables resolved, each with where its providers come from.
pub fn entries(text: &str, config: &Config, mistakes: &mut Mistakes) -> Vec<(ChainEntry, Source)> {
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
pub fn resolve(entry: &mut Map<String, Value>, variables: &Variables) {
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
