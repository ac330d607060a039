//! `POST /currencies/v1` and `/v2` (guide: protocol 11.14), and what is said of a currency that is not listed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Shared, State, chains::families};
use crate::{
    http::{ApiError, Flag, Number, Request, Response, Text},
    json,
    market::{Currency, Market, Network},
};

/// How many currencies a flat list has unless the caller says otherwise, and any list at most.
pub(super) const LIMIT: usize = 20;
pub(super) const MOST: usize = 1_000;
const _: () = assert!(LIMIT == 20 && MOST == 1_000, "the description says so");

/// Which currencies to list; every part is optional and all of them must hold.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(as = CurrencyFilter)]
pub struct Filter {
    /// Those that the service itself holds.
    default_list: Option<Flag>,
    chain_ids: Option<Vec<Number>>,
    /// Part of a symbol or name, or an address.
    term: Option<Text>,
    address: Option<String>,
    currency_id: Option<String>,
    /// `chainId:address`.
    tokens: Option<Vec<String>>,
    verified: Option<Flag>,
    /// How many currencies at most, never more than 1,000. Unless it is sent, `/currencies/v2` lists 20, and
    /// `/currencies/v1` all groups whole, up to 1,000 currencies.
    limit: Option<Number>,
    /// With `address`: that currency's whole group, whatever chain it is on.
    include_all_chains: Option<Flag>,
    deposit_address_only: Option<Flag>,
    /// Where nothing listed has `address` on the one chain of `chainIds`: what the contract says of itself.
    use_external_search: Option<Flag>,
}

/// A currency.
#[derive(Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ListedCurrency)]
pub struct Listed {
    #[serde(rename = "groupID", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    group_id: Option<String>,
    pub(super) chain_id: u64,
    pub(super) address: String,
    pub(super) symbol: String,
    pub(super) name: String,
    pub(super) decimals: u8,
    /// Left out where the chain is not loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = families)]
    pub(super) vm_type: Option<&'static str>,
    pub(super) metadata: Metadata,
}

/// See [`Listed`].
#[derive(Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ListedMetadata)]
pub struct Metadata {
    /// Empty where there is none.
    #[serde(rename = "logoURI")]
    logo_uri: String,
    verified: bool,
    is_native: bool,
}

/// The answer of `/currencies/v1`: a list per asset.
#[derive(Serialize, ToSchema)]
#[serde(transparent)]
#[schema(as = CurrencyGroups)]
pub struct Groups(Vec<Vec<Listed>>);

/// The answer of `/currencies/v2`.
#[derive(Serialize, ToSchema)]
#[serde(transparent)]
#[schema(as = Currencies)]
pub struct Flat(Vec<Listed>);

/// The network of a number as a caller sent it.
pub(super) fn network(market: &Market, number: u64) -> Result<&Network, ApiError> {
    let missing = || {
        let what = format!("chainId: {number} is not a chain of GET /chains");
        ApiError::refused("UNSUPPORTED_CHAIN", what)
    };
    market.by_number(number).ok_or_else(missing)
}

/// The currency of an address as a caller sent it.
pub(super) fn currency<'n>(network: &'n Network, address: &str) -> Result<&'n Currency, ApiError> {
    network.currency(address).ok_or_else(|| {
        let what = format!("address: {address} is not listed on this chain");
        ApiError::refused("UNSUPPORTED_CURRENCY", what)
    })
}

impl Listed {
    /// A currency of the market file, with the asset's name as its group. `vm_type` is what clients call the
    /// network's family.
    pub(super) fn of(
        network: &Network,
        currency: &Currency,
        vm_type: Option<&'static str>,
    ) -> Self {
        let native = network.native();
        Self {
            group_id: Some(currency.group.clone()),
            chain_id: network.chain_id,
            address: currency.address.clone(),
            symbol: currency.symbol.clone(),
            name: currency.name.clone(),
            decimals: currency.decimals,
            vm_type,
            metadata: Metadata {
                logo_uri: currency.logo_uri.clone().unwrap_or_default(),
                verified: true,
                is_native: native.is_some_and(|native| native.address == currency.address),
            },
        }
    }

    /// The same as one of a flat list.
    pub(super) fn plain(self) -> Self {
        Self {
            group_id: None,
            ..self
        }
    }
}

impl Groups {
    /// How many currencies it has unless the caller says otherwise: fewer would cut groups in two.
    const USUAL: usize = MOST;

    fn of(found: Vec<Listed>) -> Self {
        let mut groups = BTreeMap::<_, Vec<Listed>>::new();
        for listed in found {
            let group = listed.group_id.clone().unwrap_or_default();
            groups.entry(group).or_default().push(listed);
        }
        Self(groups.into_values().collect())
    }
}

impl Flat {
    /// See [`Groups::USUAL`].
    const USUAL: usize = LIMIT;

    fn of(found: Vec<Listed>) -> Self {
        Self(found.into_iter().map(Listed::plain).collect())
    }
}

/// `POST /currencies/v2`: a flat list.
pub async fn flat(state: Shared, request: Request) -> Result<Response, ApiError> {
    let filter = filter(&request)?;
    let found = searched(&state, &filter, Flat::USUAL).await?;
    Response::json(&Flat::of(found))
}

/// `POST /currencies/v1`: a list per asset.
pub async fn grouped(state: Shared, request: Request) -> Result<Response, ApiError> {
    let filter = filter(&request)?;
    let found = searched(&state, &filter, Groups::USUAL).await?;
    Response::json(&Groups::of(found))
}

fn filter(request: &Request) -> Result<Filter, ApiError> {
    if request.body.is_empty() {
        return Ok(Filter::default());
    }
    request.json()
}

/// What is listed, `usual` many unless the caller says otherwise, or else what a contract that nobody listed says of
/// itself.
async fn searched(state: &State, filter: &Filter, usual: usize) -> Result<Vec<Listed>, ApiError> {
    let family = |network: &Network| state.spec(network).map(|spec| spec.family.short);
    let listed = filter.found(&state.market, usual, family);
    let (Some(address), Some(&[Number(chain)])) = (&filter.address, filter.chain_ids.as_deref())
    else {
        return Ok(listed);
    };
    if !listed.is_empty()
        || filter.use_external_search != Some(Flag(true))
        || filter.verified == Some(Flag(true))
    {
        return Ok(listed);
    }
    let network = state.network(chain)?;
    let chain = state.chains.get(&network.name);
    let known = network.currency(address).is_some();
    let Some(chain) = chain.filter(|_| !known) else {
        return Ok(listed);
    };
    let Ok(contract) = chain.spec.family.address(address) else {
        return Ok(listed);
    };
    let contract = &contract;
    let failover = &chain.providers.failover;
    let info = failover
        .first(|provider| async move { provider.accounts.currency(contract).await })
        .await?;
    Ok(info
        .map(|info| Listed {
            group_id: None,
            chain_id: network.chain_id,
            address: contract.text().to_owned(),
            symbol: info.symbol,
            name: info.name,
            decimals: info.decimals,
            vm_type: Some(chain.spec.family.short),
            metadata: Metadata {
                logo_uri: String::new(),
                verified: false,
                is_native: false,
            },
        })
        .into_iter()
        .collect())
}

/// The currencies of all networks that are shown.
fn shown(market: &Market) -> impl Iterator<Item = (&Network, &Currency)> {
    let networks = market.networks().iter().filter(|network| !network.private);
    networks.flat_map(|network| {
        let currencies = network.currencies.iter();
        currencies.map(move |currency| (network, currency))
    })
}

impl Filter {
    /// What is listed: as many as the caller wants, or else `usual`. `family` is what clients call a network's.
    fn found(
        &self,
        market: &Market,
        usual: usize,
        family: impl Fn(&Network) -> Option<&'static str>,
    ) -> Vec<Listed> {
        let limit = self.limit.map_or(usual, |limit| {
            usize::try_from(limit.0).unwrap_or(MOST).min(MOST)
        });
        let wanted = self.wanted(market).into_iter().take(limit);
        wanted
            .map(|(network, currency)| Listed::of(network, currency, family(network)))
            .collect()
    }

    /// The currencies of which all parts hold.
    fn wanted<'m>(&self, market: &'m Market) -> Vec<(&'m Network, &'m Currency)> {
        let is_there =
            |(network, currency): &(&Network, &Currency)| self.is_there(network, currency);
        let everywhere = self.include_all_chains == Some(Flag(true)) && self.address.is_some();
        let named = shown(market).filter(|_| everywhere).filter(is_there);
        let groups: BTreeSet<&str> = named.map(|(_, named)| named.group.as_str()).collect();
        let found = shown(market).filter(|(network, currency)| {
            let there = match everywhere {
                true => groups.contains(currency.group.as_str()),
                false => self.is_there(network, currency),
            };
            there && self.takes(network, currency)
        });
        found.collect()
    }

    /// Whether it stands at the address and on the chains that are asked for.
    fn is_there(&self, network: &Network, currency: &Currency) -> bool {
        let number = Number(network.chain_id);
        let chain = self.chain_ids.as_ref();
        let chain = chain.is_none_or(|ids| ids.is_empty() || ids.contains(&number));
        let address = self.address.as_deref();
        chain && address.is_none_or(|address| is_at(network, currency, address))
    }

    /// Whether all other parts hold.
    fn takes(&self, network: &Network, currency: &Currency) -> bool {
        let token = |token: &String| {
            let (chain, address) = token.split_once(':').unwrap_or_default();
            json::number(chain) == Some(network.chain_id) && is_at(network, currency, address)
        };
        let list = self.default_list != Some(Flag(true)) || currency.solver;
        let id = self.currency_id.as_deref();
        let id = id.is_none_or(|id| id.eq_ignore_ascii_case(&currency.group));
        let tokens = self.tokens.as_ref();
        let tokens = tokens.is_none_or(|all| all.is_empty() || all.iter().any(token));
        // Everything listed is verified, and no currency has deposit addresses yet.
        let verified =
            self.verified != Some(Flag(false)) && self.deposit_address_only != Some(Flag(true));
        verified && list && id && tokens && self.names(network, currency)
    }

    fn names(&self, network: &Network, currency: &Currency) -> bool {
        let Some(term) = self.term.as_deref().filter(|term| !term.is_empty()) else {
            return true;
        };
        let lower = term.to_lowercase();
        let within = |text: &str| text.to_lowercase().contains(&lower);
        // An address as it was sent: case tells addresses of some families apart.
        within(&currency.symbol) || within(&currency.name) || is_at(network, currency, term)
    }
}

fn is_at(network: &Network, currency: &Currency, address: &str) -> bool {
    let found = network.currency(address);
    found.is_some_and(|found| found.address == currency.address)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::quote::fixtures::{USDC, family, market_file, other, parsed};

    /// Four chains with the same currencies, the last one private.
    fn market() -> Market {
        let mut file = market_file();
        file[3]["private"] = json!(true);
        parsed(&file, |_| family())
    }

    /// The chains and symbols of what is listed.
    fn wanted(filter: Value) -> Vec<(u64, String)> {
        wanted_of(&market(), filter)
    }

    fn wanted_of(market: &Market, filter: Value) -> Vec<(u64, String)> {
        let filter: Filter = serde_json::from_value(filter).unwrap();
        let found = filter.wanted(market).into_iter();
        found
            .map(|(network, currency)| (network.chain_id, currency.symbol.clone()))
            .collect()
    }

    #[test]
    fn a_currency_of_one_chain_is_listed_on_all_that_are_shown() {
        let usdc = |chains: &[u64]| -> Vec<_> {
            let each = chains.iter().map(|chain| (*chain, "USDC".to_owned()));
            each.collect()
        };
        let asked =
            |all: bool| json!({"chainIds": [31_001], "address": USDC, "includeAllChains": all});
        assert_eq!(wanted(asked(false)), usdc(&[31_001]));
        assert_eq!(wanted(asked(true)), usdc(&[31_001, 31_002, 31_003]));
        // The other parts hold all the same.
        let mut named = asked(true);
        named["term"] = json!("ETH");
        assert!(wanted(named).is_empty());
        // Without an address no currency is meant, and a chain that is not shown has none.
        let chain = wanted(json!({"chainIds": [31_001], "includeAllChains": true}));
        assert_eq!(chain.len(), 4);
        assert!(chain.iter().all(|(chain, _)| *chain == 31_001));
        let hidden = json!({"chainIds": [31_004], "address": USDC, "includeAllChains": true});
        assert!(wanted(hidden).is_empty());
    }

    #[test]
    fn groups_are_whole_and_a_flat_list_is_short_unless_a_limit_is_sent() {
        let mut file = market_file();
        for network in file.as_array_mut().unwrap() {
            let more = (1..=30).map(|at| {
                json!({"address": format!("0x{:040x}", 4_096 + at), "symbol": "MORE",
                       "name": "More", "decimals": 18, "group": format!("more{at}")})
            });
            network["currencies"].as_array_mut().unwrap().extend(more);
        }
        let market = parsed(&file, |_| family());
        let listed = |filter: Value, usual: usize| {
            let filter: Filter = serde_json::from_value(filter).unwrap();
            filter.found(&market, usual, |_| None)
        };
        let sizes = |filter: Value| -> Vec<usize> {
            let groups = Groups::of(listed(filter, Groups::USUAL));
            groups.0.iter().map(Vec::len).collect()
        };
        // Each on four chains, ETH beside its wrapped form.
        let mut whole = vec![4; 33];
        whole[0] = 8;
        assert_eq!(sizes(json!({})), whole);
        let flat = |filter: Value| Flat::of(listed(filter, Flat::USUAL)).0.len();
        assert_eq!(flat(json!({})), 20);
        let all: usize = whole.iter().sum();
        assert_eq!(flat(json!({"limit": 5_000})), all);
        for limit in [0, 5] {
            let limited = json!({ "limit": limit });
            assert_eq!(sizes(limited.clone()).iter().sum::<usize>(), limit);
            assert_eq!(flat(limited), limit);
        }
    }

    #[test]
    fn a_term_is_an_address_as_it_is_spelled_or_part_of_a_name_in_any_case() {
        let file = other::market(market_file(), 0);
        let market = parsed(&file, |name| match name {
            "origin" => other::family(),
            _ => family(),
        });
        let chains = |term: &str| -> Vec<u64> {
            let found = wanted_of(&market, json!({"term": term})).into_iter();
            found.map(|(chain, _)| chain).collect()
        };
        let hex = USDC.to_uppercase().replace("0X", "0x");
        assert_eq!(chains(other::USDC), [31_001]);
        assert_eq!(chains(&hex), [31_002, 31_003, 31_004]);
        assert_eq!(chains("uSd"), [31_001, 31_002, 31_003, 31_004]);
        // Without case it is another address, or none.
        assert!(chains(&other::USDC.to_lowercase()).is_empty());
        assert!(chains(&other::USDC[1..]).is_empty());
    }
}
