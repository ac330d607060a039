//! `GET /chains`, `/chains/liquidity`, `/chains/health` (guide: protocol 11.14).

use std::{sync::Arc, time::Duration};

use futures::{
    FutureExt,
    future::{self, BoxFuture, join_all},
};
use moka::sync::Cache;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::{
    IntoParams, ToSchema,
    openapi::{RefOr, Schema},
};
use vm::trade::SwapContracts;

use super::{Shared, State};
use crate::{
    http::{ApiError, Request, Response},
    json,
    market::{self, Currency, Network},
    quote::pricing_chain::{Capacity, CapacityError},
};

/// How long the list waits for a chain's newest block.
const PATIENCE: Duration = Duration::from_secs(1);
/// How old what is told of it may be; also how long one look may take.
const KEPT: Duration = Duration::from_secs(10);
/// Chains that are looked at.
const MOST: u64 = 1_024;
/// Only currencies of the market file are quoted, also where an exchange trades others.
const LIMITED: &str = "Limited";

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
    #[schema(schema_with = token_support)]
    token_support: &'static str,
    disabled: bool,
    partial_disable_limit: u64,
    /// The chain's newest block is so old that nothing is quoted there (`stalledAfter` of the market file).
    block_production_lagging: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
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
    /// Left out where the chain is not loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = families)]
    vm_type: Option<&'static str>,
    #[schema(value_type = Option<Object>)]
    explorer_query_params: Option<serde_json::Map<String, serde_json::Value>>,
    base_chain_id: Option<u64>,
    status_message: Option<String>,
    solver_addresses: Vec<String>,
    tags: Vec<String>,
    protocol: Protocol,
}

/// The families of chains.
pub fn families() -> RefOr<Schema> {
    let known = vm::FAMILIES.iter().map(|family| family.short);
    json::schema::one_of("The chain's family.", known)
}

fn token_support() -> RefOr<Schema> {
    let what = "Which tokens can be traded: only those in `erc20Currencies`, and `currency`.";
    json::schema::one_of(what, [LIMITED])
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
    /// Empty where there is none.
    #[serde(rename = "logoURI")]
    logo_uri: String,
}

/// The contracts of a chain that the market file names.
#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contracts {
    #[schema(nullable = false)]
    multicall3: Option<String>,
    /// Makes the calls of fills.
    #[schema(nullable = false)]
    erc20_router: Option<String>,
    /// Takes the solver's tokens for fills through the router.
    #[schema(nullable = false)]
    approval_proxy: Option<String>,
    v3: Routers,
    /// Those before `erc20Router`: fills may have gone through them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    previous_erc20_routers: Vec<String>,
    /// The wrapped form of the native currency.
    #[schema(nullable = false)]
    wrapped_native: Option<String>,
    /// Where the user's own exchanges are made.
    #[schema(nullable = false)]
    uniswap_v3: Option<Exchange>,
    /// Exchanges with the same contracts, for requests with `useFallbacks`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fallback_exchanges: Vec<Exchange>,
}

/// See [`Contracts`].
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ChainRouters)]
pub struct Routers {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    erc20_router: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    approval_proxy: Option<String>,
}

/// An exchange's contracts.
#[derive(Serialize, ToSchema)]
#[schema(as = ChainExchange)]
pub struct Exchange {
    quoter: String,
    router: String,
}

impl Exchange {
    fn of(exchange: &SwapContracts) -> Self {
        Self {
            quoter: exchange.quoter.clone(),
            router: exchange.router.clone(),
        }
    }
}

impl Contracts {
    fn of(network: &Network) -> Self {
        Self {
            multicall3: network.multicall3.clone(),
            erc20_router: network.fill_router.clone(),
            approval_proxy: network.approval_proxy.clone(),
            v3: Routers {
                erc20_router: network.fill_router.clone(),
                approval_proxy: network.approval_proxy.clone(),
            },
            previous_erc20_routers: network.previous_fill_routers.clone(),
            wrapped_native: network.wrapped_native.clone(),
            uniswap_v3: network.uniswap_v3.as_ref().map(Exchange::of),
            fallback_exchanges: network
                .fallback_exchanges
                .iter()
                .map(Exchange::of)
                .collect(),
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
        names.any(|name| json::number(name) == Some(network.chain_id))
    };
    let networks = state.market.networks().iter();
    let shown = networks.filter(|network| !network.private || asked(network));
    let shown: Vec<&Network> = shown.collect();
    let mut lagging = Vec::with_capacity(shown.len());
    for network in &shown {
        lagging.push(state.looks.is_lagging(&state.capacity, &network.name));
    }
    let lagging = join_all(lagging).await;
    let chains = shown.into_iter().zip(lagging);
    Response::json(&Chains {
        chains: chains
            .map(|(network, lagging)| Chain::of(&state, network, lagging))
            .collect(),
    })
}

/// A look at whether a chain lags, which many wait for.
type Look = future::Shared<BoxFuture<'static, bool>>;

/// Which chains lag, by their networks' names, as looks of a moment ago told, also those that failed: however many
/// ask, there is one look at a time, and it goes on when nobody waits for it any more.
pub struct Looks(Cache<String, Look>);

impl Default for Looks {
    fn default() -> Self {
        Self::kept(KEPT)
    }
}

impl Looks {
    fn kept(time: Duration) -> Self {
        let cache = Cache::builder().max_capacity(MOST).time_to_live(time);
        Self(cache.build())
    }

    /// Whether no block has been made for so long that nothing is quoted; not where nobody tells in time.
    async fn is_lagging(&self, capacity: &Arc<dyn Capacity>, network: &str) -> bool {
        let begin = || look(capacity.clone(), network.to_owned());
        let look = self.0.get_with(network.to_owned(), begin);
        let lagging = tokio::time::timeout(PATIENCE, look).await;
        lagging.unwrap_or_default()
    }
}

fn look(capacity: Arc<dyn Capacity>, network: String) -> Look {
    let task = tokio::spawn(async move {
        let sound = tokio::time::timeout(KEPT, capacity.sound(&network)).await;
        matches!(sound, Ok(Err(CapacityError::Stalled(_))))
    });
    task.map(Result::unwrap_or_default).boxed().shared()
}

impl Chain {
    fn of(state: &State, network: &Network, lagging: bool) -> Self {
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
            token_support: LIMITED,
            disabled: !usable,
            partial_disable_limit: 0,
            block_production_lagging: lagging,
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
            vm_type: spec.map(|spec| spec.family.short),
            explorer_query_params: None,
            base_chain_id: None,
            status_message: network.status_message.clone(),
            solver_addresses: vec![state.solver(network).to_owned()],
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
                logo_uri: currency.logo_uri.clone().unwrap_or_default(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use alloy::primitives::U256;
    use async_trait::async_trait;
    use serde_json::{Value, json};
    use tokio::time::sleep;
    use vm::Address;

    use super::*;
    use crate::quote::{
        fixtures::Fixture,
        pricing_chain::{Admission, Payment},
    };

    fn contracts(more: &Value) -> Value {
        let mut file = json!({
            "name": "base", "chainId": 8453, "displayName": "Base", "currencies": [],
        });
        let fields = file.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        let network: Network = serde_json::from_value(file).unwrap();
        serde_json::to_value(Contracts::of(&network)).unwrap()
    }

    #[test]
    fn every_contract_of_the_market_file_is_shown_and_none_is_null() {
        assert_eq!(contracts(&json!({})), json!({"v3": {}}));
        let exchange = |name: &str| {
            json!({"quoter": format!("{name}-quoter"), "router": format!("{name}-router"),
                   "fees": [500]})
        };
        let shown = |name: &str| json!({"quoter": format!("{name}-quoter"), "router": format!("{name}-router")});
        let all = contracts(&json!({
            "multicall3": "0x1", "fillRouter": "0x2", "previousFillRouters": ["0x3"],
            "approvalProxy": "0x4", "wrappedNative": "0x5", "uniswapV3": exchange("first"),
            "fallbackExchanges": [exchange("second")],
        }));
        let wanted = json!({
            "multicall3": "0x1", "erc20Router": "0x2", "approvalProxy": "0x4",
            "v3": {"erc20Router": "0x2", "approvalProxy": "0x4"}, "previousErc20Routers": ["0x3"],
            "wrappedNative": "0x5", "uniswapV3": shown("first"),
            "fallbackExchanges": [shown("second")],
        });
        assert_eq!(all, wanted);
    }

    #[test]
    fn a_currency_without_a_picture_has_an_empty_one() {
        let mut file = json!({
            "address": "0x0", "symbol": "ETH", "name": "Ether", "decimals": 18, "group": "eth",
        });
        let logo = |file: &Value| {
            let currency: Currency = serde_json::from_value(file.clone()).unwrap();
            let shown = serde_json::to_value(ChainCurrency::of(&currency)).unwrap();
            shown["metadata"]["logoURI"].clone()
        };
        assert_eq!(logo(&file), "");
        file["logoURI"] = json!("https://x/eth.png");
        assert_eq!(logo(&file), "https://x/eth.png");
    }

    #[tokio::test]
    async fn a_chain_lags_whose_newest_block_is_old() {
        let fixture = Arc::new(Fixture::default());
        let capacity: Arc<dyn Capacity> = fixture.clone();
        let is_lagging =
            async |network: &str| Looks::default().is_lagging(&capacity, network).await;
        assert!(!is_lagging("origin").await);
        fixture.with(|world| world.stalled = Some("origin".into()));
        assert!(is_lagging("origin").await);
        assert!(!is_lagging("destination").await);
        // What is not traded for another reason makes its blocks.
        fixture.with(|world| world.unsound = Some("destination".into()));
        assert!(!is_lagging("destination").await);
    }

    /// Says what it is to say after a while, and counts how often it was asked.
    struct Slow {
        after: Duration,
        says: fn() -> Result<(), CapacityError>,
        asked: AtomicUsize,
    }

    impl Slow {
        fn new(after: u64, says: fn() -> Result<(), CapacityError>) -> Arc<Self> {
            Arc::new(Self {
                after: Duration::from_millis(after),
                says,
                asked: AtomicUsize::new(0),
            })
        }
    }

    #[async_trait]
    impl Capacity for Slow {
        async fn sound(&self, _: &str) -> Result<(), CapacityError> {
            self.asked.fetch_add(1, Relaxed);
            sleep(self.after).await;
            (self.says)()
        }

        async fn available(&self, _: &str, _: &Address) -> Result<Option<U256>, CapacityError> {
            Ok(None)
        }

        async fn admits(&self, _: Payment<'_>) -> Result<Admission, CapacityError> {
            Ok(Admission::Open)
        }
    }

    #[tokio::test]
    async fn many_who_ask_together_cost_one_look_whatever_it_tells() {
        let stalled = || Err(CapacityError::Stalled("old".into()));
        let unknown = || Err(CapacityError::Unknown("down".into()));
        type Says = fn() -> Result<(), CapacityError>;
        let cases: [(Says, bool); 3] = [(|| Ok(()), false), (stalled, true), (unknown, false)];
        for (says, wanted) in cases {
            let slow = Slow::new(20, says);
            let capacity: Arc<dyn Capacity> = slow.clone();
            let looks = Looks::kept(Duration::from_secs(60));
            let ask = || looks.is_lagging(&capacity, "origin");
            for answer in join_all((0..50).map(|_| ask())).await {
                assert_eq!(answer, wanted);
            }
            assert_eq!((ask().await, slow.asked.load(Relaxed)), (wanted, 1));
            // Another chain is another question, and so is what was told long ago.
            looks.is_lagging(&capacity, "destination").await;
            assert_eq!(slow.asked.load(Relaxed), 2);
            let looks = Looks::kept(Duration::from_millis(1));
            for asked in [3, 4] {
                let lagging = looks.is_lagging(&capacity, "origin").await;
                assert_eq!((lagging, slow.asked.load(Relaxed)), (wanted, asked));
                sleep(Duration::from_millis(10)).await;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_goes_on_when_nobody_waits_for_it() {
        let slow = Slow::new(3_000, || Err(CapacityError::Stalled("old".into())));
        let capacity: Arc<dyn Capacity> = slow.clone();
        let looks = Looks::default();
        assert!(!looks.is_lagging(&capacity, "origin").await);
        sleep(Duration::from_secs(3)).await;
        assert!(looks.is_lagging(&capacity, "origin").await);
        assert_eq!(slow.asked.load(Relaxed), 1);
    }

    /// Never says anything.
    struct Silent;

    #[async_trait]
    impl Capacity for Silent {
        async fn sound(&self, _: &str) -> Result<(), CapacityError> {
            std::future::pending().await
        }

        async fn available(&self, _: &str, _: &Address) -> Result<Option<U256>, CapacityError> {
            std::future::pending().await
        }

        async fn admits(&self, _: Payment<'_>) -> Result<Admission, CapacityError> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_list_does_not_wait_for_who_says_nothing() {
        let capacity: Arc<dyn Capacity> = Arc::new(Silent);
        assert!(!Looks::default().is_lagging(&capacity, "origin").await);
    }
}
