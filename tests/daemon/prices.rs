//! Prices from Pyth's HTTP service, as it answers on good and on bad days.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::support::http::{self, Server};
use hyper::StatusCode;
use intentd::{
    market::Market,
    price::{PriceError, PriceSource, Prices, Rules},
};
use serde_json::{Value, json};

const NOW: u64 = 1_760_000_000;
const ID: &str = "ff61491a931112ddf1bd8147cd1b641375f79f5825126d665480874634fd0ace";

fn market(url: &str) -> Market {
    let currency = |address: &str| {
        json!({
            "address": address, "symbol": "ETH", "name": "Ether", "decimals": 18, "group": "eth",
            "prices": [{ "kind": "pyth", "url": url, "id": format!("0x{ID}"), "maxAge": 60 }],
        })
    };
    let text = json!([{
        "name": "ethereum", "chainId": 1, "displayName": "Ethereum",
        "currencies": [
            currency("0x0000000000000000000000000000000000000000"),
            currency("0x0000000000000000000000000000000000000001"),
        ],
    }]);
    Market::parse(&text.to_string(), |_| vm::family("ethereum-vm")).unwrap()
}

fn prices(market: &Market) -> Prices {
    let client = vm::Endpoint::client().unwrap();
    Prices::new(market, &client, |_| None, Rules::default()).unwrap()
}

fn update(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut update = json!({
        "binary": { "encoding": "hex", "data": ["504e4155"] },
        "parsed": [{
            "id": ID,
            "price": {
                "price": "250012345678", "conf": "2500123456", "expo": -8, "publish_time": NOW - 1,
            },
            "ema_price": { "price": "1", "conf": "1", "expo": -8, "publish_time": NOW },
            "metadata": { "slot": 1, "proof_available_time": NOW, "prev_publish_time": NOW },
        }],
    });
    change(&mut update);
    update.to_string().into_bytes()
}

fn quoted(field: &str, value: Value) -> Vec<u8> {
    update(|update| update["parsed"][0]["price"][field] = value)
}

async fn hermes(status: StatusCode, body: Vec<u8>, asked: Arc<AtomicUsize>) -> Server {
    http::serve(move |question| {
        let target = format!("/v2/updates/price/latest?ids[]=0x{ID}&parsed=true");
        assert_eq!(question.target, target);
        asked.fetch_add(1, Ordering::SeqCst);
        let body = body.clone();
        async move { Some(http::json(status, body)) }
    })
    .await
}

async fn price_of(status: StatusCode, body: Vec<u8>) -> Result<String, String> {
    let server = hermes(status, body, Arc::default()).await;
    let market = market(&format!("http://{}/", server.address));
    let eth = market.networks()[0].native().unwrap();
    match prices(&market).price(eth, NOW).await {
        Ok(price) => Ok(format!("{} at {}", price.usd, price.at)),
        Err(PriceError::Unavailable { why, .. }) => Err(why),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn updates_that_are_prices_and_those_that_are_not() {
    let good = Ok("2500123456780000000000 at 1759999999".to_owned());
    let err = |what: &str| Err(what.to_owned());
    for (body, expected) in [
        (update(|_| ()), good.clone()),
        (
            update(|update| update["parsed"][0]["id"] = format!("0x{}", ID.to_uppercase()).into()),
            good.clone(),
        ),
        (
            quoted("expo", json!(-10)),
            Ok("25001234567800000000 at 1759999999".to_owned()),
        ),
        (quoted("conf", json!("2500123457")), err("uncertain")),
        (quoted("price", json!("0")), err("not a price")),
        (quoted("price", json!("-250012345678")), err("not a price")),
        (quoted("price", json!("2.5")), err("not a price")),
        (quoted("conf", json!("-1")), err("not a price")),
        (quoted("expo", json!(40)), err("not a price")),
        (quoted("expo", json!(-40)), err("not a price")),
        (
            quoted("publish_time", json!(NOW - 60)),
            Ok(format!("2500123456780000000000 at {}", NOW - 60)),
        ),
        (
            quoted("publish_time", json!(NOW - 61)),
            err("observed at 1759999939"),
        ),
        (
            quoted("publish_time", json!(NOW + 61)),
            err("observed at 1760000061"),
        ),
    ] {
        assert_eq!(price_of(StatusCode::OK, body).await, expected);
    }
}

#[tokio::test]
async fn answers_that_are_no_updates_of_the_feed() {
    for (body, expected) in [
        (quoted("publish_time", json!(-1)), "not its format"),
        (quoted("price", json!(250)), "not its format"),
        (
            update(|update| update["parsed"] = json!([])),
            "another feed's price",
        ),
        (
            update(|update| update["parsed"][0]["id"] = "00".repeat(32).into()),
            "another feed's price",
        ),
        (
            update(|update| update["parsed"] = Value::Null),
            "not its format",
        ),
        (b"Price ids not found".to_vec(), "not its format"),
        (
            update(|update| update["binary"] = "0".repeat(64 << 10).into()),
            "an answer that is too long",
        ),
    ] {
        let shown = String::from_utf8_lossy(&body[..body.len().min(400)]).into_owned();
        let refused = price_of(StatusCode::OK, body).await.unwrap_err();
        assert_eq!(refused, format!("no answer: {expected}"), "{shown}");
    }
}

#[tokio::test]
async fn service_that_does_not_answer() {
    let refused = price_of(StatusCode::TOO_MANY_REQUESTS, update(|_| ())).await;
    assert_eq!(refused.unwrap_err(), "no answer: an answer other than 200");
    let moved = price_of(StatusCode::FOUND, update(|_| ())).await;
    assert_eq!(moved.unwrap_err(), "no answer: an answer other than 200");
    let server = http::serve(|_| async { None }).await;
    let market = market(&format!("http://{}", server.address));
    let eth = market.networks()[0].native().unwrap();
    let error = prices(&market).price(eth, NOW).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no price of ETH: no answer: not reachable"
    );
}

#[tokio::test]
async fn currencies_with_one_feed_share_its_answers() {
    let asked = Arc::new(AtomicUsize::new(0));
    let server = hermes(StatusCode::OK, update(|_| ()), asked.clone()).await;
    let market = market(&format!("http://{}", server.address));
    let prices = prices(&market);
    for currency in &market.networks()[0].currencies {
        prices.price(currency, NOW).await.unwrap();
        prices.price(currency, NOW + 4).await.unwrap();
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}
