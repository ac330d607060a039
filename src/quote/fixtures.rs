//! Two chains, a solver, prices and a swap source, all scripted.

mod chain;
mod exchange;
mod market;
mod peer;
mod steps;

use std::{
    collections::HashMap,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use alloy::primitives::{B256, U256};
use serde_json::{Value, json};
use vm::{
    Address, ChainEntry, ChainSpec, Family, ReadError,
    trade::{
        Authorization, Call, Failover, FailoverContext, Limits, Revert, SwapVenues, TradingProvider,
    },
};

use super::{
    body::Body,
    code::Refused,
    context::Deps,
    pricing_chain::{Admission, Hands, PricingChain},
    reprice::Repricer,
    service::Quoter,
    swaps::Swaps,
};
use crate::{
    market::Market,
    sign::raw::RawKey,
    store::{memory::MemoryStore, requests::Requests, reserve::Reserve},
};

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
/// Gas of every estimate, unless a test says otherwise.
pub const GAS: u64 = 40_000;

pub fn address(text: &str) -> Address {
    vm::SETTLEMENT.address(text).unwrap()
}

/// The settlement family with scripted steps.
fn family() -> &'static Family {
    static FAMILY: LazyLock<Family> = LazyLock::new(|| Family {
        steps: Some(&steps::Steps),
        trade: None,
        transactions: None,
        ..*vm::SETTLEMENT
    });
    &FAMILY
}

pub fn spec(name: &str) -> Option<Arc<ChainSpec>> {
    let entry = ChainEntry {
        id: name.into(),
        hub_chain_id: Some("1".into()),
        depository: Some(DEPOSITORY.into()),
        ..ChainEntry::default()
    };
    (name != "nowhere").then(|| entry.spec(family(), false).unwrap())
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
    parsed(&market_file())
}

fn parsed(file: &Value) -> Market {
    Market::parse(&file.to_string(), |_| Some(family())).unwrap()
}

/// 100 USDC from `origin` to `destination`.
pub fn body() -> Value {
    json!({
        "user": USER, "originChainId": 31_001, "destinationChainId": 31_002,
        "originCurrency": USDC, "destinationCurrency": USDC, "amount": "100000000",
        "tradeType": "EXACT_INPUT",
    })
}

/// What tests change.
pub struct World {
    pub allowance: U256,
    /// Code lives at every address.
    pub code: bool,
    /// What the solver has allowed the proxy.
    pub allowed: U256,
    pub balance: U256,
    pub available: Option<U256>,
    pub admission: Admission,
    /// Usd e18 that may be paid within an hour.
    pub hourly: U256,
    /// What hands over so waits.
    pub held: Option<Hands>,
    /// What the solver has of it beyond what it keeps.
    pub native: U256,
    /// Units of every estimate that does not revert.
    pub gas: u64,
    /// Wei per unit.
    pub fee: u128,
    /// Wei that the destination charges for any transaction's bytes; unset where it charges nothing.
    pub data_fee: Option<u64>,
    /// What providers but the first say of fees; unset where there is only the first.
    pub others: Option<u128>,
    /// The first provider lies about accounts, where there are others.
    pub lies: bool,
    /// A network whose market file is not what its chain says.
    pub unsound: Option<String>,
    /// The network that makes no blocks.
    pub stalled: Option<String>,
    /// Units of estimates that pay more than one unit of a currency.
    pub gas_of_more: Option<u64>,
    /// No node estimates.
    pub mute: bool,
    pub market: fn() -> Value,
    pub revert: Option<Revert>,
    /// The market file says that transactions carry authorizations.
    pub authorizations: bool,
    /// The authorizations of each estimate.
    pub carried: Vec<Vec<Authorization>>,
    /// Of each exchange that was built.
    pub deadlines: Vec<u64>,
    /// What fails when it is tried behind other calls.
    pub fails: fn(&[Call]) -> bool,
    /// No provider answers.
    pub down: bool,
    pub prices: fn(&str) -> Result<u64, bool>,
    /// Usd e18 of every settlement.
    pub settlement: U256,
    /// Basis points that the swap source loses; `None`: it has no way.
    pub loss: Option<u64>,
    /// Pools on that way.
    pub pools: u64,
    /// The loss of the second choice.
    pub second_loss: Option<u64>,
    pub store: Arc<MemoryStore>,
    pub reserve: Arc<Reserve>,
    /// Instead of new ones over `store`.
    pub requests: Option<Requests>,
    /// How often the first exchange was asked for its best way.
    pub searches: u64,
}

#[derive(Clone)]
pub struct Fixture(Arc<Mutex<World>>);

/// Cents of a coin.
fn cents(symbol: &str) -> Result<u64, bool> {
    Ok(match symbol {
        "USDC" => 100,
        "TOKEN" => 200,
        _ => 250_000,
    })
}

impl Default for Fixture {
    fn default() -> Self {
        let most = U256::from(10).pow(U256::from(30));
        Self(Arc::new(Mutex::new(World {
            allowance: U256::ZERO,
            code: false,
            allowed: U256::MAX,
            balance: most,
            available: Some(most),
            admission: Admission::Open,
            hourly: U256::MAX,
            held: None,
            native: U256::MAX,
            gas: GAS,
            fee: 1_000_000_000,
            data_fee: None,
            others: None,
            lies: false,
            unsound: None,
            stalled: None,
            gas_of_more: None,
            mute: false,
            market: market_file,
            revert: None,
            authorizations: true,
            carried: Vec::new(),
            deadlines: Vec::new(),
            fails: |_| false,
            down: false,
            prices: cents,
            settlement: U256::ZERO,
            loss: Some(0),
            pools: 1,
            second_loss: None,
            store: Arc::new(MemoryStore::default()),
            reserve: Arc::default(),
            requests: None,
            searches: 0,
        })))
    }
}

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

    fn market(&self) -> Arc<Market> {
        let file = self.with(|world| world.market)();
        Arc::new(parsed(&file))
    }

    pub fn repricer(&self) -> Repricer {
        Repricer {
            market: self.market(),
            venues: self.venues(),
            prices: Arc::new(self.clone()),
            settlement: Arc::new(self.clone()),
        }
    }

    fn venues(&self) -> HashMap<String, PricingChain> {
        let trade = TradingProvider {
            scanner: Arc::new(self.clone()),
            accounts: Arc::new(self.clone()),
            writer: Arc::new(self.clone()),
            simulator: Arc::new(self.clone()),
            inspector: Arc::new(vm::testing::Unseen),
        };
        let charges = self.with(|world| world.data_fee.is_some());
        let peers = match self.with(|world| world.others) {
            None => Vec::new(),
            Some(_) => vec![
                TradingProvider {
                    writer: Arc::new(peer::Peer(self.clone())),
                    ..trade.clone()
                };
                2
            ],
        };
        let first = match self.with(|world| world.lies) {
            true => TradingProvider {
                accounts: Arc::new(peer::Liar(self.clone())),
                ..trade.clone()
            },
            false => trade,
        };
        let venues = ["origin", "destination", "off"].map(|name| {
            let context = FailoverContext {
                name: name.into(),
                number: if name == "origin" { 31_001 } else { 31_002 },
                codec: vm::SETTLEMENT.transactions.unwrap(),
                limits: Limits {
                    authorizations: self.with(|world| world.authorizations),
                    data_fees: charges.then(|| address(DATA_FEES)),
                    ..Limits::default()
                },
                required: 1 + peers.len() / 2,
            };
            let asked = std::iter::once(&first).chain(&peers).cloned();
            let venue = PricingChain {
                spec: spec(name).unwrap(),
                trades: vec![first.clone()],
                providers: Failover::new(context, asked.collect()).unwrap(),
            };
            (name.to_owned(), venue)
        });
        venues.into()
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
            venues: self.venues(),
            prices: Arc::new(self.clone()),
            settlement: Arc::new(self.clone()),
            swaps: self.swaps(),
            capacity: Arc::new(self.clone()),
            signer: Arc::new(RawKey::parse(KEY).unwrap()),
            solver_chain: "destination".into(),
            requests: self.requests(),
            validity: 60,
            clock: || NOW,
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
