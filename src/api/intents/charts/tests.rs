//! What is told of currencies: what is known, and no more.

use std::{
    net::Ipv4Addr,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use alloy::primitives::U256;
use async_trait::async_trait;
use hyper::{HeaderMap, Method, Version};
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    chart::{Series, Step, candle},
    http::{Router, auth::Toll},
    price::{Price, PriceError},
    request::{
        Request as Record,
        fact::{Facts, Purpose, Standing, State as Sent},
        fixtures::{self, USDC, USER},
    },
    store::{Batch, memory::MemoryStore, requests::Requests, rows::candle as row},
};

const NATIVE: &str = "0x0000000000000000000000000000000000000000";
/// Unix seconds; 200 behind the beginning of five minutes, 800 behind that of an hour.
const NOW: u64 = 1_700_000_000;
const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
const ETHER: Series<'static> = Series {
    network: "origin",
    currency: NATIVE,
};
/// When the sample of now was taken.
const LAST: u64 = NOW - 200;

/// Ether is worth 2,500 dollars; nobody tells what else is worth.
struct Ether;

#[async_trait]
impl PriceSource for Ether {
    async fn price(&self, currency: &Currency, now: u64) -> Result<Price, PriceError> {
        match currency.symbol.as_str() {
            "ETH" => Ok(Price::exact(U256::from(dollars(2_500)), now)),
            symbol => Err(PriceError::Unknown(symbol.into())),
        }
    }
}

/// Tells the same three seconds later, and counts its answers.
#[derive(Default)]
struct Slow(AtomicU64);

#[async_trait]
impl PriceSource for Slow {
    async fn price(&self, currency: &Currency, now: u64) -> Result<Price, PriceError> {
        sleep(Duration::from_secs(3)).await;
        self.0.fetch_add(1, Ordering::Relaxed);
        Ether.price(currency, now).await
    }
}

fn dollars(whole: u64) -> u128 {
    u128::from(whole) * 10_u128.pow(18)
}

/// `origin` (31001), `destination` (31002) and `hidden` (31003, private), each with ETH and USDC.
fn market() -> Arc<Market> {
    let network = |name: &str, chain: u64| {
        json!({
            "name": name, "chainId": chain, "displayName": name, "private": name == "hidden",
            "currencies": [
                {"address": NATIVE, "symbol": "ETH", "name": "Ether", "decimals": 18, "group": "eth"},
                {"address": USDC, "symbol": "USDC", "name": "USD Coin", "decimals": 6,
                 "group": "usdc", "logoURI": "https://logo.example"},
            ],
        })
    };
    let names = [
        ("origin", 31_001),
        ("destination", 31_002),
        ("hidden", 31_003),
    ];
    let file = Value::from_iter(names.map(|(name, chain)| network(name, chain)));
    Arc::new(Market::parse(&file.to_string(), |_| Some(vm::SETTLEMENT)).unwrap())
}

struct Rig {
    router: Router,
    requests: Requests,
    history: History,
    trends: Arc<Trends>,
}

async fn rig() -> Rig {
    rig_of(Arc::new(Ether)).await
}

async fn rig_of(prices: Arc<dyn PriceSource>) -> Rig {
    let store = Arc::new(MemoryStore::new());
    let requests = Requests::open(store.clone()).await.unwrap();
    let history = History::new(store);
    let trends = Arc::new(Trends::new(market(), &requests));
    let families = market()
        .networks()
        .iter()
        .map(|network| (network.name.clone(), "evm"))
        .collect();
    let state = State {
        market: market(),
        families,
        prices,
        history: history.clone(),
        trends: trends.clone(),
        clock: || NOW * 1_000,
    };
    Rig {
        router: Router::default().with(&Arc::new(state), &ROUTES).unwrap(),
        requests,
        history,
        trends,
    }
}

impl Rig {
    async fn ask(&self, target: &str) -> Result<Value, ApiError> {
        let path = target.split('?').next().unwrap();
        let (endpoint, params) = self.router.find(&Method::GET, path).unwrap();
        let request = Request {
            method: Method::GET,
            version: Version::HTTP_11,
            target: target.into(),
            headers: HeaderMap::new(),
            body: "".into(),
            client: Ipv4Addr::LOCALHOST.into(),
            key: None,
            scopes: [].into(),
            params,
            toll: Toll::default(),
        };
        let response = (endpoint.call)(request).await?;
        Ok(serde_json::from_slice(response.body.bytes().unwrap()).unwrap())
    }

    /// Status and code of a refusal.
    async fn refused(&self, target: &str) -> (u16, &'static str) {
        let error = self.ask(target).await.unwrap_err();
        (error.status().as_u16(), error.text().code)
    }

    /// Ether on `origin`, sampled every five minutes in `from..=LAST`; a dollar more each time, `first` at first.
    async fn sampled(&self, from: u64, first: u64) {
        for (number, at) in (from..=LAST).step_by(300).enumerate() {
            let usd = dollars(first + number as u64);
            let rows = self.history.sampled(ETHER, candle::sampled(at, usd));
            let put = |batch: Batch, (key, value)| batch.put(key, value);
            let batch = rows.await.unwrap().into_iter().fold(Batch::new(), put);
            self.requests.store().commit(batch).await.unwrap();
        }
    }

    async fn chart(&self, timeframe: &str) -> Value {
        let target = format!("/chains/31001/currencies/{NATIVE}/chart{timeframe}");
        self.ask(&target).await.unwrap()
    }

    /// Has so many units of USDC given for a currency that is to be paid on a chain.
    async fn filled(&self, number: u8, (chain, currency): (u64, &str), units: u64) {
        let mut request: Record = fixtures::priced(fixtures::request(number));
        request.destination.chain = chain;
        request.destination.currency = currency.into();
        self.requests.insert(&request, Batch::new()).await.unwrap();
        let change = |facts: &mut Facts| {
            facts.deposits = vec![fixtures::deposit(1, Standing::Final)];
            let sent = Sent::Confirmed(fixtures::place(1));
            let mut fill = fixtures::attempt(Purpose::Fill, sent);
            fill.amount = U256::from(units);
            facts.attempts = vec![fill];
        };
        let recorded = self
            .requests
            .record(&request.id, NOW * 1_000, Batch::new(), change);
        recorded.await.unwrap();
    }

    async fn trending(&self, query: &str) -> Vec<(u64, String)> {
        let answer = self.ask(&format!("/currencies/trending{query}")).await;
        let answer = answer.unwrap();
        let symbol = |one: &Value| one["symbol"].as_str().unwrap().to_owned();
        let all = answer.as_array().unwrap().iter();
        all.map(|one| (one["chainId"].as_u64().unwrap(), symbol(one)))
            .collect()
    }
}

const FRAMES: [&str; 8] = [
    "",
    "?timeframe=5M",
    "?timeframe=1H",
    "?timeframe=4H",
    "?timeframe=24H",
    "?timeframe=7D",
    "?timeframe=30D",
    "?timeframe=MAX",
];

#[tokio::test]
async fn a_chart_without_history_is_empty() {
    let rig = rig().await;
    let nothing = json!({"t": [], "o": [], "h": [], "l": [], "c": []});
    for frame in FRAMES {
        assert_eq!(rig.chart(frame).await, nothing, "{frame}");
    }
}

#[tokio::test]
async fn a_chart_has_the_points_of_its_time() {
    let rig = rig().await;
    let samples = 26 * 12 + 1;
    rig.sampled(LAST - 26 * HOUR, 2_000).await;
    for (frame, count, step) in [
        ("?timeframe=5M", 2, 300),
        ("?timeframe=1H", 13, 300),
        ("?timeframe=4H", 49, 300),
        ("?timeframe=24H", 289, 300),
        ("", 289, 300),
        ("?timeframe=7D", 27, HOUR),
        ("?timeframe=30D", 27, HOUR),
        ("?timeframe=MAX", samples, 300),
    ] {
        let chart = rig.chart(frame).await;
        let column = |name: &str| chart[name].as_array().unwrap().clone();
        for name in ["t", "o", "h", "l", "c"] {
            assert_eq!(column(name).len(), count, "{frame} {name}");
        }
        let first = LAST - LAST % step - step * (count as u64 - 1);
        let times: Vec<_> = column("t").iter().map(|at| at.as_u64().unwrap()).collect();
        let wanted: Vec<_> = (0..count as u64)
            .map(|number| first + number * step)
            .collect();
        assert_eq!(times, wanted, "{frame}");
        // Prices rise by a dollar with each sample.
        assert_eq!(column("c").last(), Some(&json!(2_312.0)), "{frame}");
        assert_eq!((column("l"), column("h")), (column("o"), column("c")));
    }
    let chart = rig.chart("?timeframe=7D").await;
    // Of the first hour there are ten samples, of the second twelve.
    assert_eq!(
        (&chart["o"][0], &chart["c"][0]),
        (&json!(2_000.0), &json!(2_009.0))
    );
    assert_eq!(
        (&chart["o"][1], &chart["c"][1]),
        (&json!(2_010.0), &json!(2_021.0))
    );
}

#[tokio::test]
async fn what_cannot_be_read_or_is_not_listed_is_refused_with_its_code() {
    let rig = rig().await;
    for rest in ["", "/chart"] {
        let refused = async |chain: &str, currency: &str| {
            let target = format!("/chains/{chain}/currencies/{currency}{rest}");
            rig.refused(&target).await
        };
        assert_eq!(refused("x", NATIVE).await, (400, "INVALID_FIELD"));
        assert_eq!(refused("-1", NATIVE).await, (400, "INVALID_FIELD"));
        assert_eq!(refused("5", NATIVE).await, (400, "UNSUPPORTED_CHAIN"));
        for currency in [USER, "x", "0x", "%00"] {
            let error = refused("31001", currency).await;
            assert_eq!(error, (400, "UNSUPPORTED_CURRENCY"), "{currency}");
        }
    }
    for (target, code) in [
        ("timeframe=1D", "INVALID_FIELD"),
        ("timeframe=5m", "INVALID_FIELD"),
        ("timeframe=", "INVALID_FIELD"),
        ("timeframe=1H&timeframe=1H", "INVALID_FIELD"),
    ] {
        let target = format!("/chains/31001/currencies/{NATIVE}/chart?{target}");
        assert_eq!(rig.refused(&target).await, (400, code), "{target}");
    }
    for (target, code) in [
        ("chainId=5", "UNSUPPORTED_CHAIN"),
        ("chainId=x", "INVALID_FIELD"),
        ("limit=x", "INVALID_FIELD"),
        ("limit=-1", "INVALID_FIELD"),
        ("sortBy=coingecko6hTrending", "INVALID_FIELD"),
        ("sortBy=volume", "INVALID_FIELD"),
    ] {
        let target = format!("/currencies/trending?{target}");
        assert_eq!(rig.refused(&target).await, (400, code), "{target}");
    }
}

#[tokio::test]
async fn what_is_not_known_of_a_currency_is_left_out() {
    let rig = rig().await;
    let ether = json!({
        "chainId": 31_001, "address": NATIVE, "symbol": "ETH", "name": "Ether", "decimals": 18,
        "vmType": "evm", "metadata": {"logoURI": "", "verified": true, "isNative": true},
        "price": 2_500.0,
    });
    let target = format!("/chains/31001/currencies/{NATIVE}");
    assert_eq!(rig.ask(&target).await.unwrap(), ether);
    let dollar = json!({
        "chainId": 31_001, "address": USDC, "symbol": "USDC", "name": "USD Coin", "decimals": 6,
        "vmType": "evm",
        "metadata": {"logoURI": "https://logo.example", "verified": true, "isNative": false},
    });
    // However it is spelled, and however its chain is.
    let spelled = USDC.to_uppercase().replacen("0X", "0x", 1);
    for target in [
        format!("/chains/31001/currencies/{USDC}"),
        format!("/chains/0x7919/currencies/{spelled}"),
    ] {
        assert_eq!(rig.ask(&target).await.unwrap(), dollar);
    }
}

#[tokio::test]
async fn a_price_moved_since_there_are_samples() {
    let target = format!("/chains/31001/currencies/{NATIVE}");
    for (hours, wanted) in [
        // It was worth 2,023 and two thirds of a dollar five minutes ago, and 2,012 and two thirds an hour ago.
        (2, json!({"5m": "23.54", "1h": "24.21"})),
        (5, json!({"5m": "21.38", "1h": "22.03", "4h": "24.21"})),
    ] {
        let rig = rig().await;
        rig.sampled(LAST - hours * HOUR, 2_000).await;
        let answer = rig.ask(&target).await.unwrap();
        assert_eq!(answer["priceChange"], wanted, "{hours}");
        assert_eq!(answer["price"], 2_500.0);
    }
    let rig = rig().await;
    rig.sampled(LAST - 3 * DAY, 2_500).await;
    let change = rig.ask(&target).await.unwrap()["priceChange"].clone();
    // It fell from above 3,000 dollars.
    assert_eq!(change.as_object().unwrap().len(), 4, "{change}");
    for moved in change.as_object().unwrap().values() {
        assert!(moved.as_str().unwrap().starts_with('-'), "{change}");
    }
    // Samples of long ago tell nothing.
    let away = self::rig().await;
    away.sampled(LAST - DAY, 2_000).await;
    let gone = (LAST - 6 * HOUR..=NOW).step_by(300);
    let gone = gone.map(|at| row::key(Step::Minutes, ETHER, at));
    let gone = gone.fold(Batch::new(), Batch::delete);
    away.requests.store().commit(gone).await.unwrap();
    let change = away.ask(&target).await.unwrap()["priceChange"].clone();
    assert_eq!(
        change.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["24h"]
    );
}

#[tokio::test]
async fn a_price_is_told_although_prices_of_before_cannot_be_read() {
    let rig = rig().await;
    let broken = Batch::new().put(row::key(Step::Minutes, ETHER, NOW), vec![9]);
    rig.requests.store().commit(broken).await.unwrap();
    let target = format!("/chains/31001/currencies/{NATIVE}");
    let answer = rig.ask(&target).await.unwrap();
    assert_eq!(answer["price"], 2_500.0);
    assert_eq!(answer.get("priceChange"), None);
    let chart = format!("{target}/chart");
    assert_eq!(rig.refused(&chart).await, (503, "SERVICE_UNAVAILABLE"));
}

#[tokio::test(start_paused = true)]
async fn a_price_that_is_not_waited_for_any_more_is_asked_to_the_end() {
    let slow = Arc::new(Slow::default());
    let rig = rig_of(slow.clone()).await;
    let target = format!("/chains/31001/currencies/{NATIVE}");
    let answer = rig.ask(&target).await.unwrap();
    assert_eq!(answer["symbol"], "ETH");
    assert_eq!(answer.get("price"), None);
    assert_eq!(slow.0.load(Ordering::Relaxed), 0);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(slow.0.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_bought_most_comes_first() {
    let rig = rig().await;
    assert!(rig.trending("").await.is_empty());
    for (number, place, dollars) in [
        (1, (31_002, USDC), 99),
        (2, (31_002, NATIVE), 20),
        (3, (31_002, NATIVE), 20),
        (4, (31_001, NATIVE), 30),
        (5, (31_003, NATIVE), 90),
    ] {
        rig.filled(number, place, dollars * 1_000_000).await;
    }
    // Dust, however much of it.
    for number in 10..30 {
        rig.filled(number, (31_001, USDC), 999_999).await;
    }
    let shutdown = CancellationToken::new();
    let following = tokio::spawn(rig.trends.clone().run(|| NOW * 1_000, shutdown.clone()));
    sleep(Duration::from_secs(1)).await;
    let of = |all: &[(u64, &str)]| -> Vec<(u64, String)> {
        all.iter()
            .map(|(chain, symbol)| (*chain, (*symbol).to_owned()))
            .collect()
    };
    let by_value = [(31_002, "USDC"), (31_002, "ETH"), (31_001, "ETH")];
    let by_count = [(31_002, "ETH"), (31_002, "USDC"), (31_001, "ETH")];
    for (query, wanted) in [
        ("", &by_value[..]),
        ("?sortBy=relay24hBuyUsdVolume", &by_value[..]),
        ("?sortBy=relay24hBuyTxCount", &by_count[..]),
        ("?chainId=31002", &by_value[..2]),
        ("?chainId=0x7919", &by_value[2..]),
        ("?limit=1", &by_value[..1]),
        ("?limit=0", &[][..]),
        // A private chain is in no list.
        ("?chainId=31003", &[][..]),
    ] {
        assert_eq!(rig.trending(query).await, of(wanted), "{query}");
    }
    let first = rig.ask("/currencies/trending?limit=1").await.unwrap();
    let details = rig.ask(&format!("/chains/31002/currencies/{USDC}")).await;
    assert_eq!(first, json!([details.unwrap()]));
    shutdown.cancel();
    following.await.unwrap();
}
