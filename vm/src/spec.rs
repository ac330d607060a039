//! A chain's entry in the chains file → [`ChainSpec`] (guide: protocol 10.4). Pure: variables are resolved
//! by the caller, nothing is opened here.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use crate::{
    Address, ChainId, ChainSpec, Family, FillRouters, Finality, FinalityTag, SpecError, U256,
};

/// One entry of the chains file, variables resolved.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainEntry {
    pub id: String,
    pub vm_type: Option<String>,
    /// One URL or a comma list.
    pub http_rpc_url: Option<String>,
    /// Used while the operator names no provider.
    pub public_rpc_url: Option<String>,
    pub depository: Option<String>,
    #[serde(default)]
    pub additional_depositories: Vec<String>,
    pub hub_chain_id: Option<String>,
    /// See [`FillRouters`]; without it, any that an order names.
    pub fill_routers: Option<Vec<String>>,
    #[serde(default)]
    pub additional_data: Map<String, Value>,
}

/// What a family waits for where an entry is silent.
#[derive(Clone, Copy, Debug)]
pub struct FinalityDefaults {
    /// `finalizationBlocks`, counted as [`FinalityDefaults::counts_own_block`] says.
    pub blocks: u64,
    /// `finalizationTime` in seconds.
    pub seconds: u64,
    /// Whether the statement's own block counts (Bitcoin's confirmations do).
    pub counts_own_block: bool,
    /// Blocks for which a signed fact stays watched.
    pub watch_blocks: u64,
    /// Whether the family's chains say themselves which block is final.
    pub has_tags: bool,
    /// Seconds between blocks, rounded up, where the market file is silent.
    pub block_seconds: u64,
    /// Seconds until a block is shown, on chains of which nothing is read but finalized blocks. Nothing waits for
    /// it: estimates of time add it.
    pub lag_seconds: u64,
}

/// Reads something in the `additionalData` of a chain's entry.
type EntryReader<T> = fn(&Map<String, Value>) -> Result<T, SpecError>;

/// What a family reads in the `additionalData` of a chain's entry before anything is opened.
#[derive(Clone, Copy)]
pub struct EntryRules {
    /// The family as it is on the network that the entry names: of the same name, with addresses of its own.
    pub network: EntryReader<&'static Family>,
    /// The providers that the entry names besides its `httpRpcUrl`: they vote like those.
    pub providers: EntryReader<Vec<Url>>,
}

impl ChainSpec {
    /// The providers that the chain's entry names besides its `httpRpcUrl`.
    pub fn further_providers(&self) -> Result<Vec<Url>, SpecError> {
        let rules = self.family.entry;
        rules.map_or(Ok(Vec::new()), |rules| (rules.providers)(&self.additional))
    }
}

/// A text of an entry's `additionalData`; an empty one counts as none.
pub(crate) fn setting<'a>(
    additional: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<&'a str>, SpecError> {
    match additional.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(SpecError(format!("additionalData.{name}: expected a text"))),
    }
}

/// What the public chain of an id is known by: the id, a field of `additionalData`, its value.
const PUBLIC: &[(&str, &str, &str)] = &[
    (
        "bitcoin",
        "genesisHash",
        "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f",
    ),
    (
        "solana",
        "genesisHash",
        "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d",
    ),
    (
        "eclipse",
        "genesisHash",
        "EAQLJCV2mh23BsK2P9oYpV5CHVLDNHTxYss3URrNmg3s",
    ),
    (
        "ton",
        "genesisHash",
        "F6OpKZKqvqeFp6CQmFomXNMfMj2EnaUSOXN+Mh+wVWk=",
    ),
    (
        "lighter",
        "contractAddress",
        "0x3B4D794a66304F130a4Db8F2551B0070dfCf5ca7",
    ),
];

impl ChainEntry {
    /// The entry as production reads it: its id means the public chain of that name, also where it
    /// does not say what that chain is known by.
    #[must_use]
    pub fn public(mut self) -> Self {
        for (_, field, value) in PUBLIC.iter().filter(|(id, ..)| *id == self.id) {
            let silent = self.additional_data.get(*field).is_none_or(Value::is_null);
            if silent {
                self.additional_data
                    .insert((*field).into(), (*value).into());
            }
        }
        self
    }

    /// The spec of this entry in `family`, as it is on the network that the entry names; `strict` demands the
    /// `finalized` tag on top.
    pub fn spec(&self, family: &'static Family, strict: bool) -> Result<Arc<ChainSpec>, SpecError> {
        let family = match family.entry {
            Some(rules) => (rules.network)(&self.additional_data)?,
            None => family,
        };
        let hub_chain_id = self.hub_chain_id.as_deref().unwrap_or_default();
        let hub_chain_id = U256::from_str_radix(hub_chain_id, 10)
            .ok()
            .filter(|_| !hub_chain_id.is_empty())
            .ok_or_else(|| SpecError("hubChainId: expected a decimal number".into()))?;
        let additional = self
            .additional_depositories
            .iter()
            .map(|text| depository(family, "additionalDepositories", text))
            .collect::<Result<_, _>>()?;
        let router = |text: &String| contract(family, "fillRouters", text);
        let routers = self.fill_routers.as_ref();
        let routers = routers.map(|texts| texts.iter().map(router).collect::<Result<_, _>>());
        Ok(Arc::new(ChainSpec {
            id: ChainId::new(&self.id),
            family,
            hub_chain_id,
            depository: self
                .depository
                .as_deref()
                .map(|text| depository(family, "depository", text))
                .transpose()?,
            additional_depositories: additional,
            finality: self.finality(&family.finality, strict)?,
            watch_blocks: self
                .number("watchBlocks")?
                .unwrap_or(family.finality.watch_blocks),
            fill_routers: routers
                .transpose()?
                .map_or(FillRouters::Any, FillRouters::Listed),
            additional: self.additional_data.clone(),
        }))
    }

    fn finality(&self, defaults: &FinalityDefaults, strict: bool) -> Result<Finality, SpecError> {
        let blocks = self
            .number("finalizationBlocks")?
            .unwrap_or(defaults.blocks);
        let tag = match self.additional_data.get("finalityTag").map(Value::as_str) {
            Some(_) if !defaults.has_tags => {
                let what = "additionalData.finalityTag: chains of this family have no tags";
                return Err(SpecError(what.into()));
            }
            _ if strict && defaults.has_tags => Some(FinalityTag::Finalized),
            None => None,
            Some(Some("finalized")) => Some(FinalityTag::Finalized),
            Some(Some("safe")) => Some(FinalityTag::Safe),
            Some(_) => {
                let what = "additionalData.finalityTag: expected finalized or safe";
                return Err(SpecError(what.into()));
            }
        };
        Ok(Finality {
            blocks: blocks.saturating_sub(u64::from(defaults.counts_own_block)),
            seconds: self.number("finalizationTime")?.unwrap_or(defaults.seconds),
            tag,
        })
    }

    fn number(&self, field: &str) -> Result<Option<u64>, SpecError> {
        match self.additional_data.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value
                .as_u64()
                .or_else(|| value.as_str()?.parse().ok())
                .map(Some)
                .ok_or_else(|| {
                    SpecError(format!("additionalData.{field}: expected a whole number"))
                }),
        }
    }
}

fn contract(family: &Family, field: &str, text: &str) -> Result<Address, SpecError> {
    family.address(text).map_err(|error| {
        SpecError(format!(
            "{field}: {text} is no {} address: {error}",
            family.name
        ))
    })
}

fn depository(family: &Family, field: &str, text: &str) -> Result<Address, SpecError> {
    let address = contract(family, field, text)?;
    if address.bytes().iter().all(|byte| *byte == 0) {
        return Err(SpecError(format!(
            "{field}: the zero address holds no deposits"
        )));
    }
    Ok(address)
}
