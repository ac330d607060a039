//! A deposit on the recorded Solana chain, through providers that lie, lag, or have it only confirmed.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use crate::support::{
    daemon::{Answer, Daemon, daemon},
    fixture,
    http::{self, Server},
    solana, world,
};
use hyper::StatusCode;
use serde_json::{Value, json};

/// Changes an answer: the question, and what is answered.
type Lie = Arc<dyn Fn(&Value, &mut Value) + Send + Sync>;

fn honest() -> Lie {
    Arc::new(|_, _| {})
}

/// Shows the transaction with `value` at `path`.
fn forged(path: &'static str, value: Value) -> Lie {
    Arc::new(move |question, answer| {
        if question["method"] == "getTransaction"
            && let Some(part) = answer.pointer_mut(path)
        {
            *part = value.clone();
        }
    })
}

async fn node(lie: Lie) -> Server {
    http::serve(move |asked| {
        let question: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
        let mut answer = solana::answer(&question);
        lie(&question, &mut answer);
        async move { Some(http::json(StatusCode::OK, answer.to_string().into_bytes())) }
    })
    .await
}

/// The recorded request for a deposit, and its recorded answer.
fn recorded() -> (Vec<u8>, String) {
    let cases = fixture("recorded/solana.json");
    let mut cases = cases.as_array().unwrap().iter();
    let case = cases
        .find(|case| case["name"] == "deposit sol_native")
        .unwrap();
    let answer = case["response"]["body"].as_str().unwrap();
    (case["body"].to_string().into_bytes(), answer.to_owned())
}

/// A daemon that reads Solana through three nodes, and all that it asks.
async fn over(lies: [Lie; 3]) -> (Daemon, Vec<Server>) {
    let world = world::world().await;
    let mut nodes = Vec::new();
    for lie in lies {
        nodes.push(node(lie).await);
    }
    let urls = nodes.iter().map(|node| format!("http://{}/", node.address));
    let urls = urls.collect::<Vec<_>>().join(",");
    let setup = daemon().recorded(&world).with("SOLANA_RPC_URL", urls);
    nodes.push(world);
    (setup.start().await, nodes)
}

async fn ask(daemon: &Daemon) -> Answer {
    ask_so(daemon, recorded().0).await
}

async fn ask_so(daemon: &Daemon, body: Vec<u8>) -> Answer {
    let headers = [("content-type", "application/json")];
    let path = "/attestations/depository-deposits/v1";
    daemon.ask("POST", path, &headers, Some(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_provider_of_three_may_lie() {
    for lie in [
        forged("/result", Value::Null),
        forged("/result/slot", json!(999)),
        forged(
            "/result/meta/err",
            json!({"InstructionError": [0, {"Custom": 1}]}),
        ),
        forged("/result/meta/postBalances/1", json!(9_000_000)),
        forged("/result/blockTime", json!(1_760_000_501)),
        forged(
            "/result/transaction/message/instructions/0/accounts",
            json!([4, 0, 0, 1, 2]),
        ),
    ] {
        let (daemon, _nodes) = over([honest(), lie, honest()]).await;
        let answer = ask(&daemon).await;
        assert_eq!(answer.body, recorded().1);
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_signed_where_no_two_agree() {
    let late = |time: u64| forged("/result/blockTime", json!(time));
    let lies = [late(1_760_000_400), honest(), late(1_760_000_401)];
    let (daemon, _nodes) = over(lies).await;
    let answer = ask(&daemon).await;
    assert_eq!(answer.status.as_u16(), 503, "{}", answer.body);
    assert_eq!(answer.code(), "QUORUM_UNAVAILABLE");
    daemon.stop().await;
}

/// A transaction that is only confirmed is shown to whoever asks for that. Finalized, it does not exist.
#[tokio::test(flavor = "multi_thread")]
async fn a_confirmed_deposit_is_attested_once_it_is_finalized() {
    let finalized = Arc::new(AtomicBool::new(false));
    let shown = finalized.clone();
    let lie: Lie = Arc::new(move |question, answer| {
        let asks = question["params"][1]["commitment"].as_str();
        let hidden = matches!(asks, None | Some("finalized")) && !shown.load(SeqCst);
        if question["method"] == "getTransaction" && hidden {
            answer["result"] = Value::Null;
        }
    });
    let (daemon, _nodes) = over([lie.clone(), lie.clone(), lie]).await;
    let answer = ask(&daemon).await;
    assert_eq!(answer.body, r#"{"messages":[]}"#);
    finalized.store(true, SeqCst);
    let answer = ask(&daemon).await;
    assert_eq!(answer.body, recorded().1);
    daemon.stop().await;
}

/// An unknown signature has no deposits; what cannot be a signature is a mistake of the caller's.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_another_length_is_refused() {
    let (daemon, _nodes) = over([honest(), honest(), honest()]).await;
    let about = async |id: &str| {
        let body = json!({"chainId": "solana", "transactionId": id});
        ask_so(&daemon, body.to_string().into_bytes()).await
    };
    let unknown = about(&"5".repeat(88)).await;
    assert_eq!(
        (unknown.status.as_u16(), &*unknown.body),
        (200, r#"{"messages":[]}"#)
    );
    for id in ["5", &"5".repeat(44), &"5".repeat(86), &"5".repeat(90)] {
        let answer = about(id).await;
        assert_eq!(answer.status.as_u16(), 400, "{id}: {}", answer.body);
        assert_eq!(answer.code(), "INVALID_REQUEST", "{id}");
    }
    daemon.stop().await;
}
