//! `GET /chains`, `/chains/liquidity`, `/chains/health` (integrator-api.md 13, Appendix A).

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Shared, State};
use crate::{
    http::{ApiError, Request, Response},
    market::{self, Currency, Network},
};

/// Query of `/chains`.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct Filter {
    /// Private chains to list too, by number: a comma list.
    include_chains: Option<String>,
}

/// The answer of `/chains`.
#[derive(Serialize, ToSchema)]
#[schema(as = Chains)]
pub struct Chains {
    chains: Vec<Chain>,
}

/// One chain, as clients build their own configuration from it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = IntegratorChain)]
pub struct Chain {
    id: u64,
    name: String,
    display_name: String,
    http_rpc_url: String,
    ws_rpc_url: String,
    explorer_url: String,
    explorer_name: String,
    explorer_paths: Option<ExplorerPaths>,
    deposit_enabled: bool,
    token_support: &'static str,
    disabled: bool,
    partial_disable_limit: u64,
    block_production_lagging: bool,
    currency: Option<ChainCurrency>,
    withdrawal_fee: u64,
    deposit_fee: u64,
    surge_enabled: bool,
    featured_tokens: Vec<ChainCurrency>,
    erc20_currencies: Vec<ChainCurrency>,
    solver_currencies: Vec<ChainCurrency>,
    icon_url: Option<String>,
    logo_url: Option<String>,
    brand_color: Option<String>,
    contracts: Contracts,
    vm_type: &'static str,
    #[schema(value_type = Option<Object>)]
    explorer_query_params: Option<serde_json::Map<String, serde_json::Value>>,
    base_chain_id: Option<u64>,
    status_message: Option<String>,
    solver_addresses: Vec<String>,
    tags: Vec<String>,
    protocol: Protocol,
}

/// A currency in a chain's entry.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChainCurrency {
    /// The asset's name over all chains (`usdc`).
    id: String,
    symbol: String,
    name: String,
    address: String,
    decimals: u8,
    supports_bridging: bool,
    supports_permit: bool,
    /// Units of the currency that a withdrawal costs besides what a quote says.
    withdrawal_fee: u64,
    /// The same of a deposit.
    deposit_fee: u64,
    surge_enabled: bool,
    metadata: Logo,
}

/// Where a currency's picture is.
#[derive(Serialize, ToSchema)]
pub struct Logo {
    #[serde(rename = "logoURI")]
    logo_uri: Option<String>,
}

/// Contracts that clients may call.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contracts {
    #[serde(skip_serializing_if = "Option::is_none")]
    multicall3: Option<String>,
    /// Makes the calls of fills.
    #[serde(skip_serializing_if = "Option::is_none")]
    erc20_router: Option<String>,
    v3: Routers,
}

/// See [`Contracts`].
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ChainRouters)]
pub struct Routers {
    #[serde(skip_serializing_if = "Option::is_none")]
    erc20_router: Option<String>,
}

impl Contracts {
    fn of(network: &Network) -> Self {
        Self {
            multicall3: network.multicall3.clone(),
            erc20_router: network.fill_router.clone(),
            v3: Routers {
                erc20_router: network.fill_router.clone(),
            },
        }
    }
}

/// What stands behind the explorer's address before an id.
#[derive(Serialize, ToSchema)]
pub struct ExplorerPaths {
    transaction: String,
    address: String,
    token: String,
}

impl ExplorerPaths {
    fn of(paths: &market::ExplorerPaths) -> Self {
        Self {
            transaction: paths.transaction.clone(),
            address: paths.address.clone(),
            token: paths.token.clone(),
        }
    }
}

/// Where deposits go.
#[derive(Serialize, ToSchema)]
pub struct Protocol {
    v2: ProtocolV2,
}

/// See [`Protocol`].
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ChainProtocolV2)]
pub struct ProtocolV2 {
    /// The chain's name in orders.
    chain_id: String,
    depository: Option<String>,
    depository_vault: Option<String>,
}

pub async fn list(state: Shared, request: Request) -> Result<Response, ApiError> {
    let filter: Filter = request.query()?;
    let included = filter.include_chains.unwrap_or_default();
    let asked = |network: &Network| {
        let mut names = included.split(',').map(str::trim);
        names.any(|name| name.parse() == Ok(network.chain_id))
    };
    let networks = state.market.networks().iter();
    let shown = networks.filter(|network| !network.private || asked(network));
    Response::json(&Chains {
        chains: shown.map(|network| Chain::of(&state, network)).collect(),
    })
}

impl Chain {
    fn of(state: &State, network: &Network) -> Self {
        let spec = state.spec(network);
        let depository = spec.and_then(|spec| spec.depository.as_ref());
        let all = |wanted: fn(&Currency) -> bool| {
            let chosen = network.currencies.iter().filter(|one| wanted(one));
            chosen.map(ChainCurrency::of).collect::<Vec<_>>()
        };
        let usable = !network.disabled && depository.is_some();
        Self {
            id: network.chain_id,
            name: network.name.clone(),
            display_name: network.display_name.clone(),
            http_rpc_url: network.public_rpc_url.clone(),
            ws_rpc_url: network.public_ws_url.clone(),
            explorer_url: network.explorer_url.clone(),
            explorer_name: network.explorer_name.clone(),
            explorer_paths: network.explorer_paths.as_ref().map(ExplorerPaths::of),
            deposit_enabled: usable,
            token_support: if network.uniswap_v3.is_some() {
                "All"
            } else {
                "Limited"
            },
            disabled: !usable,
            partial_disable_limit: 0,
            block_production_lagging: false,
            currency: network.native().map(ChainCurrency::of),
            withdrawal_fee: 0,
            deposit_fee: 0,
            surge_enabled: false,
            featured_tokens: all(|currency| currency.solver),
            erc20_currencies: network
                .currencies
                .iter()
                .skip(1)
                .map(ChainCurrency::of)
                .collect(),
            solver_currencies: all(|currency| currency.solver),
            icon_url: network.icon_url.clone(),
            logo_url: network.icon_url.clone(),
            brand_color: network.brand_color.clone(),
            contracts: Contracts::of(network),
            vm_type: spec.map_or("", |spec| spec.family.short),
            explorer_query_params: None,
            base_chain_id: None,
            status_message: network.status_message.clone(),
            solver_addresses: vec![state.solver.clone()],
            tags: network.tags.clone(),
            protocol: Protocol {
                v2: ProtocolV2 {
                    chain_id: network.name.clone(),
                    depository: depository.map(|depository| depository.text().to_owned()),
                    depository_vault: None,
                },
            },
        }
    }
}

impl ChainCurrency {
    fn of(currency: &Currency) -> Self {
        Self {
            id: currency.group.clone(),
            symbol: currency.symbol.clone(),
            name: currency.name.clone(),
            address: currency.address.clone(),
            decimals: currency.decimals,
            supports_bridging: currency.solver,
            supports_permit: false,
            withdrawal_fee: 0,
            deposit_fee: 0,
            surge_enabled: false,
            metadata: Logo {
                logo_uri: currency.logo_uri.clone(),
            },
        }
    }
}
