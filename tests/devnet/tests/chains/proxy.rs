//! The proxy lies as told, and only as told.

use std::time::{Duration, Instant};

use alloy::primitives::{Address, U256};
use devnet::{
    anvil::Options,
    node::{Node, Payload},
    proxy::{Lie, LyingProxy, on, rules},
};
use hyper::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

const FROM: Address = Address::repeat_byte(0xaa);

struct Fixture {
    node: Node,
    proxy: LyingProxy,
    client: reqwest::Client,
}

async fn fixture() -> Fixture {
    let options = Options {
        chain_id: 31_009,
        block_time: None,
    };
    let node = Node::start(&options).await.unwrap();
    let funds = U256::from(10).pow(U256::from(20));
    node.set_balance(FROM, funds).await.unwrap();
    node.mine(4, 1).await.unwrap();
    Fixture {
        proxy: LyingProxy::start(&node.url).await.unwrap(),
        client: reqwest::Client::new(),
        node,
    }
}

impl Fixture {
    async fn post(&self, body: Value) -> reqwest::Result<reqwest::Response> {
        let request = self.client.post(self.proxy.url.clone());
        request.body(body.to_string()).send().await
    }

    async fn call(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let answer = self.post(body).await.unwrap().text().await.unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    /// The receipt of a transaction that emits nothing, as the proxy tells it.
    async fn receipt(&self) -> Value {
        let paid = Payload::pay(Address::ZERO, U256::from(1));
        let sent = self.node.transact(FROM, paid).await.unwrap();
        let hash = json!([sent.transaction_hash]);
        self.call("eth_getTransactionReceipt", hash).await["result"].clone()
    }
}

#[tokio::test]
async fn honest_proxy_tells_the_truth_and_counts() {
    let fixture = fixture().await;
    assert_eq!(
        fixture.call("eth_chainId", json!([])).await["result"],
        "0x7921"
    );
    assert_eq!(
        fixture.call("eth_blockNumber", json!([])).await["result"],
        "0x4"
    );
    fixture.call("eth_blockNumber", json!([])).await;
    assert_eq!(fixture.proxy.count("eth_blockNumber"), 2);
    assert_eq!(fixture.proxy.count("eth_getLogs"), 0);
    assert_eq!(fixture.proxy.exchanges(), 3);
    fixture.proxy.reset();
    assert_eq!(
        (fixture.proxy.exchanges(), fixture.proxy.counts().len()),
        (0, 0)
    );
}

#[tokio::test]
async fn lie_inside_a_batch_touches_its_own_call_only() {
    let fixture = fixture().await;
    fixture.proxy.lie(rules::chain_id(5));
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": [] },
        { "jsonrpc": "2.0", "id": 2, "method": "eth_chainId", "params": [] },
        { "jsonrpc": "2.0", "id": 3, "method": "net_version", "params": [] },
    ]);
    let answer = fixture.post(batch).await.unwrap().text().await.unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let results: Vec<_> = (0..3).map(|at| &answer[at]["result"]).collect();
    assert_eq!(results, ["0x4", "0x5", "31009"]);
    assert_eq!(answer[2]["id"], 3);
    assert_eq!(fixture.proxy.exchanges(), 1);
}

#[tokio::test]
async fn tip_stands_still_at_a_real_older_block() {
    let fixture = fixture().await;
    fixture.proxy.lie(rules::stale_tip(2));
    assert_eq!(
        fixture.call("eth_blockNumber", json!([])).await["result"],
        "0x2"
    );
    let block = fixture
        .call("eth_getBlockByNumber", json!(["latest", false]))
        .await;
    let honest = fixture
        .call("eth_getBlockByNumber", json!(["0x2", false]))
        .await;
    assert_eq!(block["result"], honest["result"]);
    fixture.proxy.honest();
    assert_eq!(
        fixture.call("eth_blockNumber", json!([])).await["result"],
        "0x4"
    );
}

#[tokio::test]
async fn fields_of_receipts_can_be_forged() {
    let fixture = fixture().await;
    assert_eq!(fixture.receipt().await["status"], "0x1");
    fixture
        .proxy
        .lie(rules::receipt_field("/status", json!("0x0")));
    assert_eq!(fixture.receipt().await["status"], "0x0");
    let missing = json!([alloy::primitives::B256::ZERO]);
    let answer = fixture.call("eth_getTransactionReceipt", missing).await;
    assert!(answer["result"].is_null());
}

#[tokio::test]
async fn lie_may_begin_with_the_second_call() {
    let fixture = fixture().await;
    fixture.proxy.lie(rules::after(1, rules::chain_id(5)));
    assert_eq!(
        fixture.call("eth_chainId", json!([])).await["result"],
        "0x7921"
    );
    assert_eq!(
        fixture.call("eth_chainId", json!([])).await["result"],
        "0x5"
    );
}

#[tokio::test]
async fn first_rule_with_an_opinion_decides() {
    let fixture = fixture().await;
    fixture.proxy.lie(rules::chain_id(5));
    fixture.proxy.also(on("eth_chainId", |_| Lie::Drop));
    fixture
        .proxy
        .also(on("net_version", |_| Lie::Error(-32_005, "busy".into())));
    assert_eq!(
        fixture.call("eth_chainId", json!([])).await["result"],
        "0x5"
    );
    let error = &fixture.call("net_version", json!([])).await["error"];
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32_005), &json!("busy"))
    );
}

#[tokio::test]
async fn another_node_can_answer() {
    let (fixture, other) = (fixture().await, fixture().await);
    other.node.mine(3, 1).await.unwrap();
    fixture.proxy.lie(rules::other_fork(&other.node.url));
    assert_eq!(
        fixture.call("eth_blockNumber", json!([])).await["result"],
        "0x7"
    );
    fixture.proxy.honest();
    fixture.proxy.switch(&other.node.url);
    assert_eq!(
        fixture.call("eth_blockNumber", json!([])).await["result"],
        "0x7"
    );
}

#[tokio::test]
async fn connection_breaks_hangs_or_answers_with_any_status() {
    let fixture = fixture().await;
    let call = || fixture.post(json!({ "id": 1, "method": "eth_chainId" }));
    fixture.proxy.lie(rules::always(Lie::Drop));
    assert!(call().await.is_err());
    fixture.proxy.lie(rules::too_many_requests("3"));
    let refused = call().await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "3");
    let half = Lie::Answer(StatusCode::OK, HeaderMap::new(), r#"{"jsonrpc":"#.into());
    fixture.proxy.lie(rules::always(half));
    assert_eq!(
        call().await.unwrap().text().await.unwrap(),
        r#"{"jsonrpc":"#
    );
    fixture.proxy.lie(rules::always(Lie::Hang));
    let waited = tokio::time::timeout(Duration::from_millis(200), call()).await;
    assert!(waited.is_err(), "a hanging provider answered");
}

#[tokio::test]
async fn truth_comes_late_when_delayed() {
    let fixture = fixture().await;
    fixture
        .proxy
        .lie(rules::delayed(Duration::from_millis(150)));
    let start = Instant::now();
    assert_eq!(
        fixture.call("eth_chainId", json!([])).await["result"],
        "0x7921"
    );
    assert!(start.elapsed() >= Duration::from_millis(150));
}

#[tokio::test]
async fn dropped_proxy_refuses_connections() {
    let Fixture { proxy, client, .. } = fixture().await;
    let url = proxy.url.clone();
    drop(proxy);
    let gone = async {
        while client.post(url.clone()).body("{}").send().await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone)
        .await
        .unwrap();
}
