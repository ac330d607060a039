use std::sync::{Arc, Mutex};

use alloy::{
    primitives::{Bytes, I256, U256},
    sol,
    sol_types::{SolCall, SolValue},
};
use serde_json::{Value, json};
use vm::{
    ReadError,
    testing::{Answers, Script, said},
    trade::{Call, Contracts, Revert},
};

use super::*;

const NOW: u64 = 1_000_000;
const FEED: &str = "0x00000000000000000000000000000000000000fe";

sol! {
    function latestRoundData();
    function decimals();
}

type Said = Result<Result<Bytes, Revert>, ReadError>;

/// A provider on which one aggregator lives.
type Provider = Script<Feed>;

struct Feed {
    round: Mutex<Said>,
    decimals: Mutex<Said>,
}

impl Feed {
    fn call(&self, call: &Call) -> Said {
        assert_eq!(call.to.text(), FEED);
        let answer = match call.data[..4].try_into().unwrap() {
            latestRoundDataCall::SELECTOR => &self.round,
            decimalsCall::SELECTOR => &self.decimals,
            other => panic!("{other:?}"),
        };
        answer.lock().unwrap().clone()
    }
}

/// `(roundId, answer, updatedAt, answeredInRound)`
type Round = (u64, i64, u64, u64);

fn words(words: &[U256]) -> Bytes {
    words
        .iter()
        .flat_map(U256::to_be_bytes::<32>)
        .collect::<Vec<_>>()
        .into()
}

fn answer((id, answer, at, answered): Round) -> Bytes {
    let answer = I256::try_from(answer).unwrap().into_raw();
    words(&[
        U256::from(id),
        answer,
        U256::ZERO,
        U256::from(at),
        U256::from(answered),
    ])
}

fn provider(round: Said, decimals: Said) -> Arc<Provider> {
    let feed = Feed {
        round: Mutex::new(round),
        decimals: Mutex::new(decimals),
    };
    let answers = Answers {
        calls: Some(|own: &Provider, calls| {
            said(calls.iter().map(|call| own.call(call)).collect())
        }),
        ..Answers::default()
    };
    Script::at(0).answering(feed, answers)
}

fn answering(usd: i64) -> Arc<Provider> {
    let round = answer((5, usd * 100_000_000, NOW, 5));
    provider(Ok(Ok(round)), Ok(Ok(8u64.abi_encode().into())))
}

fn silent() -> Arc<Provider> {
    let nothing = || Err(ReadError::Unavailable("down".to_owned()));
    provider(nothing(), nothing())
}

fn usd(dollars: u64) -> U256 {
    U256::from(dollars) * U256::from(10).pow(U256::from(18))
}

fn market(feeds: &Value) -> Market {
    let text = json!([{
        "name": "ethereum", "chainId": 1, "displayName": "Ethereum",
        "currencies": [{
            "address": "0x0000000000000000000000000000000000000000",
            "symbol": "ETH", "name": "Ether", "decimals": 18, "group": "eth", "prices": feeds,
        }],
    }]);
    Market::parse(&text.to_string(), |_| Some(&vm::ethereum::FAMILY)).unwrap()
}

fn chainlink() -> Value {
    json!({ "kind": "chainlink", "network": "ethereum", "address": FEED, "maxAge": 3600 })
}

fn peg(usd: &str) -> Value {
    json!({ "kind": "peg", "usd": usd })
}

async fn price(feeds: Value, providers: &[Arc<Provider>]) -> Result<Price, PriceError> {
    let (market, prices) = opened(&feeds, providers);
    prices
        .price(market.networks()[0].native().unwrap(), NOW)
        .await
}

fn opened(feeds: &Value, providers: &[Arc<Provider>]) -> (Market, Prices) {
    let market = market(feeds);
    let contracts: Vec<_> = providers
        .iter()
        .map(|provider| provider.clone() as Arc<dyn Contracts>)
        .collect();
    let head_calls = |network: &str| {
        (network == "ethereum" && !contracts.is_empty()).then(|| HeadCalls {
            family: &vm::ethereum::FAMILY,
            contracts: contracts.clone(),
        })
    };
    let client = vm::Endpoint::client().unwrap();
    let prices = Prices::new(&market, &client, head_calls, Rules::default()).unwrap();
    (market, prices)
}

async fn why(feeds: Value, providers: &[Arc<Provider>]) -> String {
    match price(feeds, providers).await {
        Err(PriceError::Unavailable { currency, why }) if currency == "ETH" => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn chainlink_rounds_that_are_prices_and_those_that_are_not() {
    for (round, observed) in [
        ((5, 250_012_345_678, NOW, 5), Ok("2500123456780000000000")),
        (
            (5, 250_000_000_000, NOW - 3600, 5),
            Ok("2500000000000000000000"),
        ),
        ((5, 250_000_000_000, NOW, 6), Ok("2500000000000000000000")),
        (
            (5, 250_000_000_000, NOW - 3601, 5),
            Err("observed at 996399"),
        ),
        ((5, 250_000_000_000, 0, 5), Err("observed at 0")),
        (
            (5, 250_000_000_000, NOW + 61, 5),
            Err("observed at 1000061"),
        ),
        (
            (5, 250_000_000_000, NOW, 4),
            Err("a round that is not answered yet"),
        ),
        ((5, 0, NOW, 5), Err("not a price")),
        ((5, -1, NOW, 5), Err("not a price")),
        ((5, i64::MIN, NOW, 5), Err("not a price")),
    ] {
        let provider = provider(Ok(Ok(answer(round))), Ok(Ok(8u64.abi_encode().into())));
        let answer = price(json!([chainlink()]), std::slice::from_ref(&provider)).await;
        match observed {
            Ok(usd) => {
                let price = answer.unwrap();
                assert_eq!((price.usd.to_string(), price.at), (usd.to_owned(), round.2));
            }
            Err(what) => assert_eq!(why(json!([chainlink()]), &[provider]).await, what),
        }
    }
}

#[tokio::test]
async fn aggregators_that_are_none() {
    let good = || Ok(Ok(answer((5, 100_000_000, NOW, 5))));
    let decimals = |count: u64| Ok(Ok(count.abi_encode().into()));
    let revert = || {
        Ok(Err(Revert {
            reason: "paused".to_owned(),
            data: Bytes::new(),
        }))
    };
    for (round, decimals, what) in [
        (revert(), decimals(8), "no answer: reverted: paused"),
        (good(), revert(), "no answer: reverted: paused"),
        (
            Ok(Ok(Bytes::new())),
            decimals(8),
            "no answer: latestRoundData answered something else",
        ),
        (
            Ok(Ok(vec![0xff; 160].into())),
            decimals(8),
            "no answer: latestRoundData answered something else",
        ),
        (
            good(),
            Ok(Ok(Bytes::new())),
            "no answer: decimals answered something else",
        ),
        (
            good(),
            decimals(256),
            "no answer: decimals answered something else",
        ),
        (good(), decimals(255), "not a price"),
    ] {
        let provider = provider(round, decimals);
        assert_eq!(why(json!([chainlink()]), &[provider]).await, what);
    }
    assert!(
        why(json!([chainlink()]), &[silent()])
            .await
            .contains("down")
    );
    assert!(
        why(json!([chainlink()]), &[])
            .await
            .contains("cannot be read")
    );
}

#[tokio::test]
async fn one_provider_may_be_dead_and_one_of_three_may_lie() {
    let feeds = || json!([chainlink()]);
    let observed = price(feeds(), &[silent(), answering(2500)]).await.unwrap();
    assert_eq!(observed.usd, usd(2500));
    let observed = price(feeds(), &[answering(2501), answering(2500)])
        .await
        .unwrap();
    assert_eq!(observed.usd, usd(2501));
    let observed = price(
        feeds(),
        &[answering(2600), answering(2500), answering(2500)],
    )
    .await
    .unwrap();
    assert_eq!(observed.usd, usd(2500));
    let disagree = why(feeds(), &[answering(2500), answering(2600)]).await;
    assert_eq!(disagree, "sources disagree");
}

#[tokio::test]
async fn feeds_fall_back_in_their_order_and_must_not_contradict_each_other() {
    let both = |peg_usd: &str| json!([chainlink(), peg(peg_usd)]);
    let observed = price(both("2451"), &[answering(2500)]).await.unwrap();
    assert_eq!(observed.usd, usd(2500));
    assert_eq!(
        why(both("2450"), &[answering(2500)]).await,
        "sources disagree"
    );
    let observed = price(both("2450"), &[silent()]).await.unwrap();
    assert_eq!((observed.usd, observed.at), (usd(2450), NOW));
    let observed = price(json!([peg("1"), peg("1.01")]), &[]).await.unwrap();
    assert_eq!(observed.usd, usd(1));
}

/// Within the seconds in which an answer serves everybody.
#[tokio::test(start_paused = true)]
async fn what_one_caller_heard_refuses_nobody_else() {
    let silent = Err(ReadError::Unavailable("down".to_owned()));
    let round = |usd: i64| Ok(Ok(answer((5, usd * 100_000_000, NOW, 5))));
    for (unsound, feeds) in [
        (round(5_000), json!([chainlink(), peg("2500")])),
        (round(-1), json!([chainlink()])),
        (silent, json!([chainlink()])),
    ] {
        let provider = answering(2_500);
        let (market, prices) = opened(&feeds, std::slice::from_ref(&provider));
        let eth = market.networks()[0].native().unwrap();
        let observed = std::mem::replace(&mut *provider.round.lock().unwrap(), unsound);
        assert!(prices.price(eth, NOW).await.is_err());
        *provider.round.lock().unwrap() = observed;
        assert_eq!(prices.price(eth, NOW).await.unwrap().usd, usd(2_500));
    }
}

#[tokio::test]
async fn currency_without_feeds_has_no_price() {
    let unknown = price(json!([]), &[]).await;
    assert_eq!(unknown, Err(PriceError::Unknown("ETH".to_owned())));
}

#[test]
fn feeds_that_cannot_work_are_told_with_their_currency() {
    let pyth = |url: &str, id: &str| json!({ "kind": "pyth", "url": url, "id": id, "maxAge": 60 });
    let id = "ff".repeat(32);
    for (feed, why) in [
        (peg("one"), "usd: not a decimal number: one"),
        (
            pyth("https://hermes.test", "ff"),
            "id: expected 32 bytes of hex",
        ),
        (
            pyth("https://hermes.test", &"gg".repeat(32)),
            "id: expected 32 bytes of hex",
        ),
        (pyth("hermes", &id), "url: expected an HTTP URL"),
        (pyth("file:///etc", &id), "url: expected an HTTP URL"),
        (
            json!({ "kind": "chainlink", "network": "ethereum", "address": "0x1", "maxAge": 60 }),
            "Not whole bytes of hex: 0x1",
        ),
    ] {
        let head_calls = |_: &str| {
            Some(HeadCalls {
                family: &vm::ethereum::FAMILY,
                contracts: Vec::new(),
            })
        };
        let client = vm::Endpoint::client().unwrap();
        let error = Prices::new(
            &market(&json!([feed])),
            &client,
            head_calls,
            Rules::default(),
        )
        .err()
        .unwrap();
        assert_eq!(error.to_string(), format!("ethereum: price of ETH: {why}"));
    }
}

/// One feed of two is off for a moment: nothing is sold by either then, and the price is as narrow as before
/// once they agree again.
#[tokio::test]
async fn a_feed_that_was_refused_widens_no_price_later() {
    let provider = answering(1);
    let (market, prices) = opened(
        &json!([chainlink(), peg("1")]),
        std::slice::from_ref(&provider),
    );
    let ether = market.networks()[0].native().unwrap();
    let says = |usd_cents: i64| {
        let round = answer((5, usd_cents * 1_000_000, NOW, 5));
        *provider.round.lock().unwrap() = Ok(Ok(round));
    };
    let before = prices.price(ether, NOW).await.unwrap();
    says(200);
    assert!(prices.price(ether, NOW + 10).await.is_err());
    says(100);
    let after = prices.price(ether, NOW + 20).await.unwrap();
    let aged = (before.most - after.most, after.least - before.least);
    assert!(
        after.most - after.least < usd(1) / U256::from(100),
        "{after:?} {aged:?}"
    );
    // What both say moves it.
    says(101);
    let moved = prices.price(ether, NOW + 30).await.unwrap();
    assert!(
        moved.most - moved.least > after.most - after.least,
        "{moved:?}"
    );
}
