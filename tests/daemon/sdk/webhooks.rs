//! An integrator's own receiver, in JavaScript, is told of a request from its deposit to its end.

use std::{collections::BTreeMap, process::Stdio, time::Duration};

use devnet::{
    node::Payload,
    world::{Devnet, Options},
};
use intentd::{
    admin::{Question, webhooks},
    integrator::{Integrator, Key, Tier, Webhook, change::usual_scopes},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use super::app::{ETH, MILLI};
use crate::support::daemon::{Daemon, daemon};

const RECEIVE: &str = include_str!("receive.mjs");
const GUIDE: &str = include_str!("../../../src/guide/integrate.md");
const PATIENCE: Duration = Duration::from_secs(60);

/// A key as they are given out.
fn key() -> String {
    format!("ik_{}0123", "5a".repeat(32))
}

/// The check that the guide shows.
fn documented() -> &'static str {
    let mut blocks = GUIDE.split("```js\n").skip(1);
    let check = blocks.find(|block| block.contains("function genuine"));
    check.unwrap().split("```").next().unwrap()
}

struct Receiver {
    _process: Child,
    _directory: TempDir,
    lines: Lines<BufReader<ChildStdout>>,
    url: String,
}

impl Receiver {
    async fn start(key: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let script = directory.path().join("receive.mjs");
        std::fs::write(&script, format!("{}{RECEIVE}", documented())).unwrap();
        let mut process = Command::new("node")
            .arg(script)
            .env("KEY", key)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.next_line().await.unwrap().unwrap();
        Self {
            _process: process,
            _directory: directory,
            lines,
            url: format!("http://127.0.0.1:{port}/hook"),
        }
    }

    /// What comes next.
    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap()
    }
}

fn integrator(label: &str, digest: [u8; 32], url: &str) -> Integrator {
    Integrator {
        label: label.into(),
        scopes: usual_scopes(),
        tier: Tier::Default,
        keys: vec![Key {
            digest,
            created_at: 1,
            expires_at: None,
        }],
        webhook: Some(Webhook {
            url: url.parse().unwrap(),
            headers: BTreeMap::from([("X-Tenant".into(), "seven".into())]),
        }),
        wallet: None,
        proved_at: 0,
        created_at: 1,
        revoked_at: None,
    }
}

async fn asked(daemon: &Daemon, question: webhooks::Question) -> webhooks::Answer {
    match daemon.operator(&Question::Webhooks(question)).await {
        intentd::admin::Answer::Webhooks(answer) => answer,
        other => panic!("{other:?}"),
    }
}

/// A quote with the key, and its deposit; the request's id.
async fn swapped(world: &Devnet, daemon: &Daemon) -> Value {
    let user = world.user.address();
    let body = json!({
        "user": user, "recipient": user, "originChainId": world.origin.node.chain_id,
        "destinationChainId": world.destination.node.chain_id, "originCurrency": ETH,
        "destinationCurrency": ETH, "amount": (100 * MILLI).to_string(),
        "tradeType": "EXACT_INPUT", "referrer": "zoë \"✓\" </script>",
    });
    let url = format!("{}/quote/v2", daemon.integrator_url());
    let request = reqwest::Client::new().post(url).header("x-api-key", key());
    let quote: Value = request
        .json(&body)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let item = &quote["steps"][0]["items"][0]["data"];
    let text = |name: &str| item[name].as_str().unwrap_or_else(|| panic!("{quote}"));
    let payload = Payload {
        to: Some(text("to").parse().unwrap()),
        data: alloy::hex::decode(text("data")).unwrap(),
        value: text("value").parse().unwrap(),
    };
    world.origin.node.transact(user, payload).await.unwrap();
    quote["steps"][0]["requestId"].clone()
}

/// An integrator in a rotation's grace: `older` still counts.
fn rotated(older: &str, url: &str) -> Integrator {
    let mut rotated = integrator("rotated", Sha256::digest(older).into(), url);
    rotated.keys[0].expires_at = Some(u64::MAX);
    rotated.keys.push(Key {
        digest: [8; 32],
        created_at: 2,
        expires_at: None,
    });
    rotated
}

async fn told_to_success(receiver: &mut Receiver, id: &Value) -> Vec<Value> {
    let mut statuses = Vec::new();
    while statuses.last() != Some(&json!("success")) {
        let told = receiver.next().await;
        assert_eq!(
            (&told["current"], &told["published"]),
            (&json!(true), &json!(true)),
            "{told}"
        );
        assert_eq!(told["replayed"], false, "{told}");
        let (headers, data) = (&told["headers"], &told["body"]["data"]);
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(headers["x-tenant"], "seven");
        assert_eq!(headers["x-event-id"], (statuses.len() + 1).to_string());
        assert_eq!(told["body"]["event"], "request.status.updated");
        assert_eq!(data["requestId"], *id, "{told}");
        assert_eq!(data["referrer"], "zoë \"✓\" </script>");
        statuses.push(data["status"].clone());
    }
    statuses
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_in_javascript_verifies_all_that_it_is_told() {
    let mut receiver = Receiver::start(&key()).await;
    let mut doubter = Receiver::start("another key").await;
    let options = Options {
        block_time: Some(1),
        finality_blocks: 1,
        ..Options::default()
    };
    let world = Devnet::with(options).await.unwrap();
    let older = key().replace("5a", "6b");
    let mut keeper = Receiver::start(&older).await;
    let rotated = rotated(&older, &keeper.url);
    let daemon = daemon()
        .chains(&world.files())
        .signer(&world.oracles[0])
        .solver(&world.solver, "destination")
        .with("WEBHOOK_ALLOW_PRIVATE", "true")
        .integrator(integrator(
            "app",
            Sha256::digest(key()).into(),
            &receiver.url,
        ))
        .integrator(integrator("other", [9; 32], &doubter.url))
        .integrator(rotated)
        .start()
        .await;
    let id = swapped(&world, &daemon).await;
    let statuses = told_to_success(&mut receiver, &id).await;
    assert_eq!(statuses[0], "pending", "{statuses:?}");
    let test = |label: &str| webhooks::Question::Test {
        label: label.into(),
    };
    let webhooks::Answer::Tested(tested) = asked(&daemon, test("app")).await else {
        panic!("no test");
    };
    assert!(tested.delivered, "{tested:?}");
    assert_eq!(receiver.next().await["headers"]["x-event-id"], "0");
    let webhooks::Answer::Tested(tested) = asked(&daemon, test("other")).await else {
        panic!("no test");
    };
    assert_eq!((tested.delivered, &*tested.said), (false, "status 401"));
    assert_eq!(doubter.next().await["current"], false);
    // In a rotation's grace the older key verifies, too.
    asked(&daemon, test("rotated")).await;
    let told = keeper.next().await;
    assert_eq!(
        (&told["current"], &told["published"]),
        (&json!(true), &json!(false))
    );
    let replay = webhooks::Question::Replay {
        event: 1,
        label: None,
    };
    asked(&daemon, replay).await;
    let again = receiver.next().await;
    assert_eq!(
        (&again["headers"]["x-event-id"], &again["current"]),
        (&json!("1"), &json!(true))
    );
    daemon.stop().await;
}
