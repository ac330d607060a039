//! Which providers a chain has, and how many of them must agree: the operator's variables.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use serde_json::Value;
use url::Url;
use vm::{
    ChainEntry, ChainSpec, Endpoint,
    http::Allows,
    protocol::limits::{PROVIDER_ANSWER, STRANGERS_ANSWER},
};

use super::{Closed, asking};
use crate::config::{Config, Variables};

/// How long one provider may take for one read.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(10);

/// What every chain is opened with.
pub struct World<'a> {
    pub config: &'a Config,
    /// Shared by all providers: one pool of connections, one set of root certificates.
    pub client: reqwest::Client,
}

/// Where an entry's providers come from.
pub struct Source {
    /// The variable (or file) to name in a mistake.
    pub name: String,
    /// By the chain's id, and by the name of its URL's variable.
    quorum_variables: Vec<String>,
}

impl Source {
    pub fn of(id: &str, url: Option<&Value>) -> Self {
        let named = url
            .and_then(Value::as_str)
            .and_then(|text| text.strip_prefix('$'));
        let own = variable(id, "RPC_QUORUM");
        let of_url = named
            .and_then(|name| name.strip_suffix("_RPC_URL"))
            .map(|stem| format!("{stem}_RPC_QUORUM"));
        Self {
            name: named.map_or_else(|| variable(id, "RPC_URL"), str::to_owned),
            quorum_variables: [Some(own), of_url].into_iter().flatten().collect(),
        }
    }
}

impl Source {
    /// What is said where `named` providers are too few for an attestation.
    pub fn few(&self, named: usize) -> Closed {
        Closed::FewProviders {
            named,
            urls: self.name.clone(),
            quorum: self.quorum_variables.first().cloned().unwrap_or_default(),
        }
    }

    /// The quorum as the operator wrote it.
    pub fn quorum<'a>(&self, variables: &'a Variables) -> Option<&'a str> {
        let mut named = self.quorum_variables.iter();
        named.find_map(|name| variables.get(name)).map(str::trim)
    }
}

/// The providers that the operator named for a chain, those that its entry names besides last.
pub fn named(
    entry: &ChainEntry,
    source: &Source,
    world: &World<'_>,
    spec: &ChainSpec,
) -> Result<Option<String>, String> {
    let own = || world.config.variables.get(&source.name);
    let listed = entry.http_rpc_url.as_deref().or_else(own);
    let further = spec
        .further_providers()
        .map_err(|error| error.to_string())?;
    let further = further.iter().map(Url::as_str);
    let all: Vec<&str> = listed.into_iter().chain(further).collect();
    Ok((!all.is_empty()).then(|| all.join(",")))
}

/// The variable of a chain: its id in upper case, characters outside A–Z, 0–9 as `_`.
pub fn variable(id: &str, suffix: &str) -> String {
    let stem: String = id
        .to_uppercase()
        .chars()
        .map(|c| {
            if c.is_ascii_uppercase() || c.is_ascii_digit() {
                c
            } else {
                '_'
            }
        })
        .collect();
    format!("{stem}_{suffix}")
}

/// The providers of a comma list.
pub fn endpoints(urls: &str, world: &World<'_>) -> Result<Vec<Endpoint>, String> {
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for text in urls
        .split(',')
        .map(str::trim)
        .filter(|text| !text.is_empty())
    {
        // The text may hold credentials: the mistake does not repeat it.
        let at = endpoints.len() + 1;
        let url: Url = text
            .parse()
            .map_err(|_| format!("provider {at} is no URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("provider {at}: expected http or https"));
        }
        if endpoints.iter().any(|known| known.url == url) {
            return Err(format!("provider {at} stands there twice"));
        }
        if world.config.is_production()
            && endpoints.iter().any(|known| known.url.host() == url.host())
        {
            return Err(format!(
                "provider {at} has the host of another: they would fail together"
            ));
        }
        endpoints.push(endpoint(at, url, &world.client));
    }
    Ok(endpoints)
}

/// Where nobody is: no host has this name (RFC 6761 section 6.4). For chains that are not asked.
pub fn nobody(client: &reqwest::Client) -> Result<Endpoint, String> {
    let url: Result<Url, _> = "http://nobody.invalid/".parse();
    let url = url.map_err(|error| error.to_string())?;
    Ok(endpoint(1, url, client))
}

fn endpoint(position: usize, url: Url, client: &reqwest::Client) -> Endpoint {
    Endpoint {
        position,
        url,
        timeout: PROVIDER_TIMEOUT,
        longest: PROVIDER_ANSWER,
        allows: None,
        client: client.clone(),
    }
}

/// The same, for what strangers have asked: so many calls a second of each.
pub fn for_strangers(endpoints: &[Endpoint], calls: NonZeroU32) -> Vec<Endpoint> {
    let all = endpoints.iter().map(|endpoint| Endpoint {
        longest: STRANGERS_ANSWER,
        allows: Some(paced(calls)),
        ..endpoint.clone()
    });
    all.collect()
}

/// Half of the calls for those who have a key, who take of the other half as well when theirs is used up. One
/// round with more calls than a half counts as all of it.
pub(super) fn paced(calls: NonZeroU32) -> Allows {
    let half = NonZeroU32::new(calls.get() / 2).unwrap_or(NonZeroU32::MIN);
    let [strangers, keys] = [half; 2].map(|half| RateLimiter::direct(Quota::per_second(half)));
    let fits = move |budget: &DefaultDirectRateLimiter, calls: NonZeroU32| {
        budget.check_n(calls.min(half)).is_ok_and(|it| it.is_ok())
    };
    Arc::new(move |calls| {
        let Some(calls) = NonZeroU32::new(calls) else {
            return true;
        };
        asking::is_keyed() && fits(&keys, calls) || fits(&strangers, calls)
    })
}

/// A majority unless the operator says otherwise.
pub fn required(providers: usize, source: &Source, variables: &Variables) -> Result<usize, String> {
    let mut wanted = providers / 2 + 1;
    let mut said: Option<(&str, &str)> = None;
    for variable in &source.quorum_variables {
        let Some(text) = variables.get(variable).map(str::trim) else {
            continue;
        };
        if let Some((other, _)) = said.filter(|(_, other)| *other != text) {
            return Err(format!("{variable} and {other} contradict each other"));
        }
        said = Some((variable, text));
        wanted = text
            .parse()
            .ok()
            .filter(|required| (1..=providers).contains(required))
            .ok_or_else(|| format!("{variable}: expected a number from 1 to {providers}"))?;
    }
    Ok(wanted)
}
