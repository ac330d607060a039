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

struct Scene {
    node: Node,
    proxy: LyingProxy,
    client: reqwest::Client,
}

async fn scene() -> Scene {
    let options = Options {
        chain_id: 31_009,
        block_time: None,
    };
    let node = Node::start(&options).await.unwrap();
    let funds = U256::from(10).pow(U256::from(20));
    node.set_balance(FROM, funds).await.unwrap();
    node.mine(4, 1).await.unwrap();
    Scene {
        proxy: LyingProxy::start(&node.url).await.unwrap(),
        client: reqwest::Client::new(),
        node,
    }
}

impl Scene {
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
    let scene = scene().await;
    assert_eq!(
        scene.call("eth_chainId", json!([])).await["result"],
        "0x7921"
    );
    assert_eq!(
        scene.call("eth_blockNumber", json!([])).await["result"],
        "0x4"
    );
    scene.call("eth_blockNumber", json!([])).await;
    assert_eq!(scene.proxy.count("eth_blockNumber"), 2);
    assert_eq!(scene.proxy.count("eth_getLogs"), 0);
    assert_eq!(scene.proxy.exchanges(), 3);
    scene.proxy.reset();
    assert_eq!(
        (scene.proxy.exchanges(), scene.proxy.counts().len()),
        (0, 0)
    );
}

#[tokio::test]
async fn lie_inside_a_batch_touches_its_own_call_only() {
    let scene = scene().await;
    scene.proxy.lie(rules::chain_id(5));
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": [] },
        { "jsonrpc": "2.0", "id": 2, "method": "eth_chainId", "params": [] },
        { "jsonrpc": "2.0", "id": 3, "method": "net_version", "params": [] },
    ]);
    let answer = scene.post(batch).await.unwrap().text().await.unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let results: Vec<_> = (0..3).map(|at| &answer[at]["result"]).collect();
    assert_eq!(results, ["0x4", "0x5", "31009"]);
    assert_eq!(answer[2]["id"], 3);
    assert_eq!(scene.proxy.exchanges(), 1);
}

#[tokio::test]
async fn tip_stands_still_at_a_real_older_block() {
    let scene = scene().await;
    scene.proxy.lie(rules::stale_tip(2));
    assert_eq!(
        scene.call("eth_blockNumber", json!([])).await["result"],
        "0x2"
    );
    let block = scene
        .call("eth_getBlockByNumber", json!(["latest", false]))
        .await;
    let honest = scene
        .call("eth_getBlockByNumber", json!(["0x2", false]))
        .await;
    assert_eq!(block["result"], honest["result"]);
    scene.proxy.honest();
    assert_eq!(
        scene.call("eth_blockNumber", json!([])).await["result"],
        "0x4"
    );
}

#[tokio::test]
async fn fields_of_receipts_can_be_forged() {
    let scene = scene().await;
    assert_eq!(scene.receipt().await["status"], "0x1");
    scene
        .proxy
        .lie(rules::receipt_field("/status", json!("0x0")));
    assert_eq!(scene.receipt().await["status"], "0x0");
    let missing = json!([alloy::primitives::B256::ZERO]);
    let answer = scene.call("eth_getTransactionReceipt", missing).await;
    assert!(answer["result"].is_null());
}

#[tokio::test]
async fn lie_may_begin_with_the_second_call() {
    let scene = scene().await;
    scene.proxy.lie(rules::after(1, rules::chain_id(5)));
    assert_eq!(
        scene.call("eth_chainId", json!([])).await["result"],
        "0x7921"
    );
    assert_eq!(scene.call("eth_chainId", json!([])).await["result"], "0x5");
}

#[tokio::test]
async fn first_rule_with_an_opinion_decides() {
    let scene = scene().await;
    scene.proxy.lie(rules::chain_id(5));
    scene.proxy.also(on("eth_chainId", |_| Lie::Drop));
    scene
        .proxy
        .also(on("net_version", |_| Lie::Error(-32_005, "busy".into())));
    assert_eq!(scene.call("eth_chainId", json!([])).await["result"], "0x5");
    let error = &scene.call("net_version", json!([])).await["error"];
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32_005), &json!("busy"))
    );
}

#[tokio::test]
async fn another_node_can_answer() {
    let (scene, other) = (scene().await, scene().await);
    other.node.mine(3, 1).await.unwrap();
    scene.proxy.lie(rules::other_fork(&other.node.url));
    assert_eq!(
        scene.call("eth_blockNumber", json!([])).await["result"],
        "0x7"
    );
    scene.proxy.honest();
    scene.proxy.switch(&other.node.url);
    assert_eq!(
        scene.call("eth_blockNumber", json!([])).await["result"],
        "0x7"
    );
}

#[tokio::test]
async fn connection_breaks_hangs_or_answers_with_any_status() {
    let scene = scene().await;
    let call = || scene.post(json!({ "id": 1, "method": "eth_chainId" }));
    scene.proxy.lie(rules::always(Lie::Drop));
    assert!(call().await.is_err());
    scene.proxy.lie(rules::too_many_requests("3"));
    let refused = call().await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "3");
    let half = Lie::Answer(StatusCode::OK, HeaderMap::new(), r#"{"jsonrpc":"#.into());
    scene.proxy.lie(rules::always(half));
    assert_eq!(
        call().await.unwrap().text().await.unwrap(),
        r#"{"jsonrpc":"#
    );
    scene.proxy.lie(rules::always(Lie::Hang));
    let waited = tokio::time::timeout(Duration::from_millis(200), call()).await;
    assert!(waited.is_err(), "a hanging provider answered");
}

#[tokio::test]
async fn truth_comes_late_when_delayed() {
    let scene = scene().await;
    scene.proxy.lie(rules::delayed(Duration::from_millis(150)));
    let start = Instant::now();
    assert_eq!(
        scene.call("eth_chainId", json!([])).await["result"],
        "0x7921"
    );
    assert!(start.elapsed() >= Duration::from_millis(150));
}

#[tokio::test]
async fn dropped_proxy_refuses_connections() {
    let Scene { proxy, client, .. } = scene().await;
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
