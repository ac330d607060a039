//! What is traded on the scripted chains, where contracts stand, and what things are worth when.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use alloy::primitives::{Address, U256, address};
use intentd::market::Market;
use serde_json::{Value, json};

pub const NATIVE: Address = Address::ZERO;
pub const USDC: Address = address!("0xa100000000000000000000000000000000000001");
/// A bridge's token, of the same group as [`USDC`]; on the first chain only.
pub const BRIDGED: Address = address!("0xa200000000000000000000000000000000000002");
/// A token that nobody lists.
pub const JUNK: Address = address!("0xa300000000000000000000000000000000000003");
pub const DEPOSITORY: Address = address!("0xd000000000000000000000000000000000000001");
pub const ROUTER: Address = address!("0xd100000000000000000000000000000000000001");
pub const PROXY: Address = address!("0xd200000000000000000000000000000000000001");
/// Sells for little gas.
pub const TILL: Address = address!("0xd300000000000000000000000000000000000001");
/// Burns gas whenever it is paid for.
pub const BURNER: Address = address!("0xd400000000000000000000000000000000000001");
pub const ORACLE: Address = address!("0xe000000000000000000000000000000000000001");
pub const HUB: Address = address!("0xe100000000000000000000000000000000000001");

/// Where solvers leave their word at the hub.
pub const MAPPING: Address = address!("0xe200000000000000000000000000000000000001");

/// Where users come from, where they go, and where executions are applied.
pub const CHAINS: [(&str, u64, u64); 3] = [
    ("alpha", 31_001, 4),
    ("beta", 31_002, 2),
    ("relay", 31_337, 4),
];

/// Symbols with their feeds and first prices, in 10^-8 dollars.
const FEEDS: [(&str, Address, u64); 5] = [
    (
        "ETH",
        address!("0xf000000000000000000000000000000000000001"),
        200_000_000_000,
    ),
    (
        "USDC",
        address!("0xf000000000000000000000000000000000000002"),
        100_000_000,
    ),
    (
        "USDCb",
        address!("0xf000000000000000000000000000000000000003"),
        100_000_000,
    ),
    (
        COINS[0],
        address!("0xf000000000000000000000000000000000000004"),
        200_000_000_000,
    ),
    (
        COINS[1],
        address!("0xf000000000000000000000000000000000000005"),
        200_000_000_000,
    ),
];

/// The native currencies of both ends where each has its own (`tests/families`).
pub const COINS: [&str; 2] = ["COINa", "COINb"];

/// Prices as they were, and what feeds make of them: parts of ten thousand by chain and symbol.
pub struct Prices(
    Mutex<BTreeMap<&'static str, Vec<(u64, u64)>>>,
    Mutex<BTreeMap<(&'static str, &'static str), u64>>,
);

impl Prices {
    pub fn new() -> Arc<Self> {
        let first = FEEDS
            .iter()
            .map(|(symbol, _, price)| (*symbol, vec![(0, *price)]));
        Arc::new(Self(Mutex::new(first.collect()), Mutex::default()))
    }

    /// The price of a symbol from `at` on, in parts of ten thousand of what it is.
    pub fn move_by(&self, symbol: &'static str, parts: u64, at: u64) {
        let mut prices = self.0.lock().unwrap();
        if let Some(list) = prices.get_mut(symbol) {
            let last = list.last().map_or(0, |(_, price)| *price);
            list.push((at, last * parts / 10_000));
        }
    }

    /// The price at a time (unix seconds), in 10^-8 dollars.
    pub fn at(&self, symbol: &str, time: u64) -> u64 {
        let prices = self.0.lock().unwrap();
        let list = prices.get(symbol).map(Vec::as_slice).unwrap_or_default();
        let known = list.iter().rev().find(|(at, _)| *at <= time);
        known.map_or(0, |(_, price)| *price)
    }

    /// The least and the greatest price between two times.
    pub fn between(&self, symbol: &str, from: u64, to: u64) -> (u64, u64) {
        let mut found = (self.at(symbol, from), self.at(symbol, from));
        let prices = self.0.lock().unwrap();
        for (at, price) in prices.get(symbol).into_iter().flatten() {
            if (from..=to).contains(at) {
                found = (found.0.min(*price), found.1.max(*price));
            }
        }
        found
    }

    /// A chain's feed of a symbol tells so many parts of ten thousand of the price.
    pub fn lie(&self, chain: &'static str, symbol: &'static str, parts: u64) {
        self.1.lock().unwrap().insert((chain, symbol), parts);
    }

    /// Whether any feed lies now.
    pub fn are_doubtful(&self) -> bool {
        let lies = self.1.lock().unwrap();
        lies.values().any(|parts| *parts != 10_000)
    }

    /// What a chain's feed tells: the price, and since when it stands.
    pub fn answer(&self, chain: &'static str, feed: Address, now: u64) -> Option<(U256, u64)> {
        let (symbol, ..) = FEEDS.iter().find(|(_, at, _)| *at == feed)?;
        let lies = self.1.lock().unwrap();
        let parts = lies.get(&(chain, *symbol)).copied().unwrap_or(10_000);
        let price = self.at(symbol, now) * parts / 10_000;
        Some((U256::from(price), now - now % 10))
    }
}

/// Symbol and decimals of a currency of a chain.
pub fn currency(chain: &str, address: Address) -> Option<(&'static str, u8)> {
    match address {
        NATIVE => Some(("ETH", 18)),
        USDC => Some(("USDC", 6)),
        BRIDGED if chain == "alpha" => Some(("USDCb", 6)),
        _ => None,
    }
}

/// The market file, with so many dollars an hour on each network.
pub fn market(cap: Option<u64>) -> Arc<Market> {
    changed(|network| {
        if let Some(cap) = cap {
            network["caps"] = json!({ "hourly": cap.to_string() });
        }
    })
}

/// The market file, each network as `change` leaves it.
pub fn changed(change: impl Fn(&mut Value)) -> Arc<Market> {
    let [alpha, beta, _] = CHAINS;
    let mut file = json!([network(alpha), network(beta)]);
    file.as_array_mut().into_iter().flatten().for_each(change);
    Arc::new(Market::parse(&file.to_string(), |_| Some(vm::SETTLEMENT)).unwrap())
}

fn network((name, number, pace): (&str, u64, u64)) -> Value {
    let mut currencies = vec![
        listed(NATIVE, "ETH", 18, ("eth", "major")),
        listed(USDC, "USDC", 6, ("usdc", "stable")),
    ];
    if name == "alpha" {
        currencies.push(listed(BRIDGED, "USDCb", 6, ("usdc", "stable")));
    }
    json!({
        "name": name, "chainId": number, "displayName": name, "blockSeconds": 8,
        "fillRouter": ROUTER, "approvalProxy": PROXY, "fillConfirmations": 8 / pace / 2,
        "currencies": currencies,
    })
}

/// A chain's feed of a symbol, as the market file has it.
pub fn feed(chain: &str, symbol: &str) -> Value {
    let feed = FEEDS.iter().find(|(known, ..)| *known == symbol).unwrap().1;
    json!({"kind": "chainlink", "network": chain, "address": feed, "maxAge": 120})
}

fn listed(address: Address, symbol: &str, decimals: u8, (group, class): (&str, &str)) -> Value {
    let prices = ["alpha", "beta"].map(|chain| feed(chain, symbol));
    json!({
        "address": address, "symbol": symbol, "name": symbol, "decimals": decimals,
        "group": group, "class": class, "solver": true, "prices": prices,
    })
}
