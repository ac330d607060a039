//! Two chains, a solver, prices and a swap source, all scripted.

mod chain;
mod exchange;
mod market;
pub mod other;
mod steps;
mod world;

use std::{
    cell::Cell,
    collections::HashMap,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use alloy::primitives::B256;
use serde_json::{Value, json};
use vm::{
    Address, ChainEntry, ChainSpec, Family, ReadError,
    trade::{Providers, ProvidersContext, SwapVenues, TradingProvider},
};

pub use self::world::World;
use super::{
    body::Body, code::Refused, context::Deps, intent::Traded, pricing_chain::PricingChain,
    reprice::Repricer, service::Quoter, swaps::Swaps,
};
use crate::{market::Market, sign::raw::RawKey, store::requests::Requests};

pub const NATIVE: &str = "0x0000000000000000000000000000000000000000";
pub const USDC: &str = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913";
pub const WETH: &str = "0x4200000000000000000000000000000000000006";
/// A currency that the solver does not hold.
pub const TOKEN: &str = "0x1111111111111111111111111111111111111111";
pub const USER: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
pub const OTHER: &str = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";
pub const PROXY: &str = "0x2323232323232323232323232323232323232323";
pub const ROUTER: &str = "0x2222222222222222222222222222222222222222";
pub const DEPOSITORY: &str = "0x3333333333333333333333333333333333333333";
/// The account of [`KEY`].
pub const SOLVER: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
/// Says what transactions' bytes cost.
pub const DATA_FEES: &str = "0x5555555555555555555555555555555555555555";
pub const EXCHANGE: &str = "0x4444444444444444444444444444444444444444";
pub const NOW: u64 = 1_700_000_000_123;
thread_local! {
    /// Seconds that have passed in this thread's test since [`NOW`].
    pub static PASSED: Cell<u64> = const { Cell::new(0) };
}

/// Seconds for which the solver signs versions of a fill that is in no block.
const PATIENCE: u64 = 425;
/// Gas of every estimate, unless a test says otherwise.
pub const GAS: u64 = 40_000;

pub fn address(text: &str) -> Address {
    vm::SETTLEMENT.address(text).unwrap()
}

/// The settlement family with scripted steps.
pub fn family() -> &'static Family {
    static FAMILY: LazyLock<Family> = LazyLock::new(|| Family {
        steps: Some(&steps::Steps),
        approvals: Some(&steps::Steps),
        trade: None,
        ..*vm::SETTLEMENT
    });
    &FAMILY
}

/// For as long as the tests run.
pub fn kept(family: Family) -> &'static Family {
    Box::leak(Box::new(family))
}

fn spec(name: &str, family: &'static Family) -> Option<Arc<ChainSpec>> {
    let depository = match family.name == other::family().name {
        true => other::DEPOSITORY,
        false => DEPOSITORY,
    };
    let entry = ChainEntry {
        id: name.into(),
        hub_chain_id: Some("1".into()),
        depository: Some(depository.into()),
        ..ChainEntry::default()
    };
    (name != "nowhere").then(|| entry.spec(family, false).unwrap())
}

/// A chain of `family` with the solver's account.
pub fn traded(name: &str, family: &'static Family) -> Option<Traded> {
    let solver = match family.name == other::family().name {
        true => other::SOLVER,
        false => SOLVER,
    };
    Some(Traded {
        spec: spec(name, family)?,
        solver: family.account(solver).unwrap(),
    })
}

pub fn market_file() -> Value {
    let currency = |address: &str, symbol: &str, decimals: u8, group: &str, class: &str| {
        let solver = ["ETH", "USDC"].contains(&symbol);
        json!({"address": address, "symbol": symbol, "name": symbol, "decimals": decimals,
               "group": group, "class": class, "solver": solver})
    };
    let network = |name: &str, number: u64| {
        json!({"name": name, "chainId": number, "displayName": name, "wrappedNative": WETH,
        "currencies": [
            currency(NATIVE, "ETH", 18, "eth", "major"),
            currency(USDC, "USDC", 6, "usdc", "stable"),
            currency(WETH, "WETH", 18, "eth", "major"),
            currency(TOKEN, "TOKEN", 18, "token", "other"),
        ]})
    };
    let mut file = json!([
        network("origin", 31_001),
        network("destination", 31_002),
        network("off", 31_003),
        network("nowhere", 31_004),
    ]);
    file[1]["fillRouter"] = json!(ROUTER);
    file[1]["approvalProxy"] = json!(PROXY);
    file[2]["disabled"] = json!(true);
    file
}

pub fn market() -> Market {
    parsed(&market_file(), |_| family())
}

pub fn parsed(file: &Value, family: impl Fn(&str) -> &'static Family) -> Market {
    Market::parse(&file.to_string(), |name| Some(family(name))).unwrap()
}

/// 100 USDC from `origin` to `destination`.
pub fn body() -> Value {
    json!({
        "user": USER, "originChainId": 31_001, "destinationChainId": 31_002,
        "originCurrency": USDC, "destinationCurrency": USDC, "amount": "100000000",
        "tradeType": "EXACT_INPUT",
    })
}

#[derive(Clone, Default)]
pub struct Fixture(Arc<Mutex<World>>);

impl Fixture {
    pub fn with<T>(&self, with: impl FnOnce(&mut World) -> T) -> T {
        with(&mut self.0.lock().unwrap())
    }

    pub fn requests(&self) -> Requests {
        if let Some(requests) = self.with(|world| world.requests.clone()) {
            return requests;
        }
        let (store, reserve) = self.with(|world| (world.store.clone(), world.reserve.clone()));
        Requests::new(store).with_reserve(reserve)
    }

    fn family(&self, network: &str) -> &'static Family {
        let own = self.with(|world| world.families.get(network).copied());
        own.unwrap_or_else(family)
    }

    fn market(&self) -> Arc<Market> {
        let file = self.with(|world| world.market)();
        Arc::new(parsed(&file, |network| self.family(network)))
    }

    pub fn repricer(&self) -> Repricer {
        Repricer {
            market: self.market(),
            chains: self.chains(),
            prices: Arc::new(self.clone()),
            settlement: Arc::new(self.clone()),
            patience: PATIENCE,
        }
    }

    fn providers(&self, name: &str, nodes: Vec<TradingProvider>) -> Providers {
        if self.family(name).name == other::family().name {
            return other::providers(self, name);
        }
        let (authorizations, data_fee) = self.with(|world| (world.authorizations, world.data_fee));
        let mut limits = json!({"authorizations": authorizations});
        if data_fee.is_some() {
            limits["dataFees"] = json!(DATA_FEES);
        }
        let context = ProvidersContext {
            spec: spec(name, family()).unwrap(),
            number: if name == "origin" { 31_001 } else { 31_002 },
            required: 1 + nodes.len() / 2,
            limits: limits.as_object().cloned(),
        };
        let open = vm::SETTLEMENT.providers.unwrap();
        open(context, nodes).unwrap().unwrap()
    }

    fn chains(&self) -> HashMap<String, PricingChain> {
        let nodes = self.nodes();
        let chains = ["origin", "destination", "off"].map(|name| {
            let Traded { spec, solver } = traded(name, self.family(name)).unwrap();
            let chain = PricingChain {
                spec,
                providers: self.providers(name, nodes.clone()),
                account: solver,
            };
            (name.to_owned(), chain)
        });
        chains.into()
    }

    fn swaps(&self) -> Swaps {
        let venues = SwapVenues {
            first: vec![Arc::new(self.clone())],
            second: vec![Arc::new(exchange::Second(self.clone()))],
        };
        let networks = ["origin", "destination", "off"];
        Swaps::new(
            networks
                .map(|name| (name.to_owned(), venues.clone()))
                .into(),
        )
    }

    pub fn quoter(&self) -> Quoter {
        Quoter::new(Deps {
            market: self.market(),
            chains: self.chains(),
            prices: Arc::new(self.clone()),
            settlement: Arc::new(self.clone()),
            swaps: self.swaps(),
            capacity: Arc::new(self.clone()),
            signer: Arc::new(RawKey::parse(KEY).unwrap()),
            solver_chain: "destination".into(),
            requests: self.requests(),
            validity: 60,
            clock: || NOW + PASSED.get() * 1_000,
            entropy,
        })
    }

    /// Quotes [`body`] with changes.
    pub async fn quote(&self, changes: Value) -> Result<Value, Refused> {
        let answer = self.quoter().quote(&changed(changes), None).await?;
        Ok(serde_json::to_value(answer).unwrap())
    }

    fn read<T>(&self, read: impl FnOnce(&mut World) -> T) -> Result<T, ReadError> {
        self.with(|world| {
            if world.down {
                return Err(ReadError::Unavailable("down".into()));
            }
            Ok(read(world))
        })
    }
}

pub fn changed(changes: Value) -> Body {
    let mut body = body();
    for (field, value) in changes.as_object().unwrap() {
        body[field] = value.clone();
    }
    Body::read(body).unwrap()
}

fn entropy() -> Option<B256> {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    Some(alloy::primitives::keccak256(count.to_be_bytes()))
}
