//! Charts over real sockets: from a sample of the daemon's clock to what a client reads.

use std::{collections::HashMap, net::SocketAddr, sync::Arc};

use async_trait::async_trait;
use intentd::{
    api::intents::{charts, error::ERRORS},
    chart::{History, Sampler, Trends},
    http::{Router, Surface, serve},
    market::{Currency, Market},
    price::{Price, PriceError, PriceSource},
    store::{memory::MemoryStore, requests::Requests},
};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use vm::U256;

use super::rig::{Answer, Client, roomy};

const NATIVE: &str = "0x0000000000000000000000000000000000000000";
/// Unix seconds.
const NOW: u64 = 1_700_000_100;

/// Worth a dollar for each minute since a quarter of an hour ago.
struct Rising;

#[async_trait]
impl PriceSource for Rising {
    async fn price(&self, _: &Currency, now: u64) -> Result<Price, PriceError> {
        let minutes = (now + 900 - NOW) / 60;
        let usd = U256::from(minutes) * U256::from(10).pow(U256::from(18));
        Ok(Price::exact(usd, now))
    }
}

fn market() -> Arc<Market> {
    let file = json!([{
        "name": "one", "chainId": 1, "displayName": "One",
        "currencies": [{
            "address": NATIVE, "symbol": "ETH", "name": "Ether", "decimals": 18, "group": "eth",
            "prices": [{"kind": "peg", "usd": "1"}],
        }],
    }]);
    Arc::new(Market::parse(&file.to_string(), |_| Some(vm::SETTLEMENT)).unwrap())
}

/// The routes on a listener of their own.
struct Listener {
    requests: Requests,
    address: SocketAddr,
    shutdown: CancellationToken,
    ended: JoinHandle<()>,
}

impl Listener {
    async fn start() -> Self {
        let requests = Requests::new(Arc::new(MemoryStore::new()));
        let state = Arc::new(charts::State {
            market: market(),
            families: HashMap::from([("one".to_owned(), "evm")]),
            prices: Arc::new(Rising),
            history: History::new(requests.store().clone()),
            trends: Arc::new(Trends::new(market(), &requests)),
            clock: || NOW * 1_000,
        });
        let router = Router::default().with(&state, &charts::ROUTES).unwrap();
        let surface = Surface {
            lenient: true,
            errors: ERRORS,
            limits: roomy(),
            ..Surface::new("figures", "Figures", router)
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (shutdown, app) = (CancellationToken::new(), Arc::new(surface.open().unwrap()));
        Self {
            requests,
            address,
            ended: tokio::spawn(serve(listener, app, shutdown.clone())),
            shutdown,
        }
    }

    async fn ask(&self, method: &str, path: &str) -> Answer {
        let mut client = Client(TcpStream::connect(self.address).await.unwrap());
        let request = format!("{method} {path} HTTP/1.1\r\nhost: a\r\n\r\n");
        client.write(request).await;
        client.answer(method == "HEAD").await.unwrap()
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.ask("GET", path).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        body(&answer)
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.ended.await.unwrap();
    }
}

fn body(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap()
}

#[tokio::test]
async fn what_is_sampled_is_charted_and_strangers_add_nothing() {
    let site = Listener::start().await;
    let currency = format!("/chains/1/currencies/{NATIVE}");
    let chart = format!("{currency}/chart?timeframe=1H");
    // However many ask, nothing is kept before the clock says so.
    let told = site.get(&currency).await;
    assert_eq!(told.get("priceChange"), None, "{told}");
    let empty = json!({"t": [], "o": [], "h": [], "l": [], "c": []});
    for _ in 0..3 {
        assert_eq!(site.get(&chart).await, empty);
    }
    let sampler = Sampler::new(market(), Arc::new(Rising), &site.requests);
    for at in [NOW - 600, NOW - 300, NOW] {
        assert_eq!(sampler.round(at).await, Ok(1));
    }
    let column = json!([5.0, 10.0, 15.0]);
    let times = [NOW - 600, NOW - 300, NOW];
    let wanted = json!({"t": times, "o": column, "h": column, "l": column, "c": column});
    assert_eq!(site.get(&chart).await, wanted);
    let told = site.get(&currency).await;
    assert_eq!(told["price"], 15.0);
    // From ten dollars to fifteen.
    assert_eq!(told["priceChange"], json!({"5m": "50.00"}));
    assert_eq!(site.get("/currencies/trending").await, json!([]));
    let head = site.ask("HEAD", &chart).await;
    let media = head.header("content-type");
    assert_eq!(
        (head.status, media),
        (200, Some("application/json; charset=utf-8"))
    );
    site.stop().await;
}

#[tokio::test]
async fn paths_that_name_no_currency_are_refused_with_their_codes() {
    let site = Listener::start().await;
    let currency = format!("/chains/1/currencies/{NATIVE}");
    for (method, path, status, code) in [
        (
            "GET",
            format!("{currency}/chart?timeframe=2H"),
            400,
            "INVALID_FIELD",
        ),
        (
            "GET",
            "/chains/one/currencies/0x12".into(),
            400,
            "INVALID_FIELD",
        ),
        (
            "GET",
            "/chains/2/currencies/0x12".into(),
            400,
            "UNSUPPORTED_CHAIN",
        ),
        (
            "GET",
            "/chains/1/currencies/0x12/chart".into(),
            400,
            "UNSUPPORTED_CURRENCY",
        ),
        (
            "GET",
            "/chains/1/currencies/".into(),
            404,
            "ROUTE_NOT_FOUND",
        ),
        ("GET", format!("{currency}/x"), 404, "ROUTE_NOT_FOUND"),
        (
            "PUT",
            format!("{currency}/chart"),
            405,
            "METHOD_NOT_ALLOWED",
        ),
    ] {
        let answer = site.ask(method, &path).await;
        let told = body(&answer)["errorCode"].clone();
        assert_eq!((answer.status, told), (status, json!(code)), "{path}");
    }
    site.stop().await;
}
