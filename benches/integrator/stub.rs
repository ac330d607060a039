//! A quoter over two chains whose providers, prices and solver answer at once, from memory.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

use alloy::primitives::{B256, U256};
use anyhow::{Context, Result};
use async_trait::async_trait;
use intentd::{
    market::{Currency, Market},
    price::{Price, PriceError, PriceSource, settlement::Free},
    quote::{
        context::Deps,
        pricing_chain::{Admission, Capacity, CapacityError, Payment, PricingChain},
        service::Quoter,
        swaps::Swaps,
    },
    sign::raw::RawKey,
    store::requests::Requests,
};
use serde_json::{Map, Value, json};
use vm::{
    Address, ChainEntry, ChainSpec, SETTLEMENT,
    testing::{Answers, Says, Script},
    trade::{FeeRate, ProvidersContext, TradingProvider},
};

pub const NATIVE: &str = "0x0000000000000000000000000000000000000000";
pub const USDC: &str = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913";
pub const USER: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const DEPOSITORY: &str = "0x3333333333333333333333333333333333333333";
const ROUTER: &str = "0x2222222222222222222222222222222222222222";
/// The account of [`KEY`].
const SOLVER: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

/// Answers everything; an estimate takes its time.
pub struct Stub {
    pub estimate: Duration,
    pub estimates: AtomicU64,
    pub chain: Arc<Script>,
}

impl Default for Stub {
    fn default() -> Self {
        let says = Says {
            balance: U256::from(10).pow(U256::from(30)),
            estimate: Ok(100_000),
            rate: FeeRate::new(1_000_000_000, 100_000_000),
            ..Says::default()
        };
        Self {
            estimate: Duration::ZERO,
            estimates: AtomicU64::default(),
            chain: Script::saying(says),
        }
    }
}

impl Stub {
    async fn estimate(&self) -> u64 {
        self.estimates.fetch_add(1, Relaxed);
        if !self.estimate.is_zero() {
            tokio::time::sleep(self.estimate).await;
        }
        40_000
    }

    /// A quoter over it that keeps its requests in `requests`.
    pub fn quoter(self: &Arc<Self>, requests: Requests) -> Result<Quoter> {
        let chains = ["origin", "destination"].map(|name| self.chain(name));
        let chains = chains.into_iter().collect::<Result<Vec<_>>>()?;
        self.quoter_of(requests, (market()?, chains, Swaps::default()))
    }

    /// A chain of the settlement's family by its name.
    pub fn chain(self: &Arc<Self>, name: &str) -> Result<(String, PricingChain)> {
        let answers = Answers {
            estimate: Some(|own: &Script<Arc<Self>>, _| {
                Box::pin(async move { Ok(Ok(own.estimate().await)) })
            }),
            ..Answers::default()
        };
        let provider = self.chain.answering(self.clone(), answers).trading();
        let entry = ChainEntry {
            id: name.into(),
            hub_chain_id: Some("1".into()),
            depository: Some(DEPOSITORY.into()),
            ..ChainEntry::default()
        };
        let spec = entry.spec(SETTLEMENT, false)?;
        opened(spec, provider, SETTLEMENT.account(SOLVER)?)
    }

    /// A quoter of other chains, markets and exchanges.
    pub fn quoter_of(
        self: &Arc<Self>,
        requests: Requests,
        (market, chains, swaps): (Market, Vec<(String, PricingChain)>, Swaps),
    ) -> Result<Quoter> {
        Ok(Quoter::new(Deps {
            market: Arc::new(market),
            chains: chains.into_iter().collect(),
            prices: self.clone(),
            settlement: Arc::new(Free),
            swaps,
            capacity: self.clone(),
            signer: Arc::new(RawKey::parse(KEY)?),
            solver_chain: "destination".into(),
            requests,
            validity: 60,
            clock: now,
            entropy,
        }))
    }
}

/// A chain of one provider on which the solver has `account`.
pub fn opened(
    spec: Arc<ChainSpec>,
    provider: TradingProvider,
    account: Address,
) -> Result<(String, PricingChain)> {
    let context = ProvidersContext {
        spec: spec.clone(),
        number: 1,
        required: 1,
        limits: Some(Map::new()),
    };
    let open = spec.family.providers.context("no trading")?;
    let providers = open(context, vec![provider])?.context("no provider")?;
    let chain = PricingChain {
        spec: spec.clone(),
        providers,
        account,
    };
    Ok((spec.id.to_string(), chain))
}

pub fn market() -> Result<Market> {
    let currency = |address: &str, symbol: &str, decimals: u8, class: &str| {
        json!({"address": address, "symbol": symbol, "name": symbol, "decimals": decimals,
               "group": symbol.to_lowercase(), "class": class, "solver": true})
    };
    let network = |name: &str, number: u64| {
        json!({"name": name, "chainId": number, "displayName": name, "fillRouter": ROUTER,
               "currencies": [currency(NATIVE, "ETH", 18, "major"), currency(USDC, "USDC", 6, "stable")]})
    };
    let file = json!([network("origin", 31_001), network("destination", 31_002)]);
    Ok(Market::parse(&file.to_string(), |_| Some(SETTLEMENT))?)
}

/// Bodies of `POST /quote/v2` by what is measured with them.
pub fn bodies() -> [(&'static str, Value); 3] {
    let body = |currency: &str, amount: &str| {
        json!({"user": USER, "originChainId": 31_001, "destinationChainId": 31_002,
               "originCurrency": currency, "destinationCurrency": currency,
               "amount": amount, "tradeType": "EXACT_INPUT"})
    };
    let mut call = body(NATIVE, "1000000000000000000");
    call["tradeType"] = "EXACT_OUTPUT".into();
    call["txs"] = json!([{"to": ROUTER, "value": "1000000000000000000", "data": "0x12345678"}]);
    [
        ("native", body(NATIVE, "1000000000000000000")),
        ("erc20", body(USDC, "100000000")),
        ("call", call),
    ]
}

/// Unix milliseconds.
#[expect(clippy::disallowed_methods, reason = "this is the composition root")]
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}

fn entropy() -> Option<B256> {
    let mut bytes = B256::ZERO;
    getrandom::fill(bytes.as_mut_slice()).ok().map(|()| bytes)
}

#[async_trait]
impl PriceSource for Stub {
    async fn price(&self, currency: &Currency, at: u64) -> Result<Price, PriceError> {
        let dollars = match currency.symbol.as_str() {
            "USDC" => 1,
            "SOL" => 194,
            _ => 2_500,
        };
        let usd = U256::from(dollars) * U256::from(10).pow(U256::from(18));
        Ok(Price::exact(usd, at))
    }
}

#[async_trait]
impl Capacity for Stub {
    async fn sound(&self, _: &str) -> Result<(), CapacityError> {
        Ok(())
    }

    async fn available(&self, _: &str, _: &Address) -> Result<Option<U256>, CapacityError> {
        Ok(Some(U256::from(10).pow(U256::from(30))))
    }

    async fn admits(&self, _: Payment<'_>) -> Result<Admission, CapacityError> {
        Ok(Admission::Open)
    }
}
