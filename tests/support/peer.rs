//! A fake peer oracle in many moods. The first path segment picks the mood, so that one server
//! plays several peers, all but the one that drips; it answers what an honest peer was recorded to
//! answer, spoilt by its mood.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use alloy::{
    primitives::{Address, B256, U256},
    signers::{SignerSync, local::PrivateKeySigner},
};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use vm::{
    ChainId,
    protocol::{
        hub::OrderAccount,
        message::{Domain, Execution, TypedMessage},
    },
};

use super::http::{self, Asked, Server};

/// Between two bytes of the answer that drips: it takes half a minute.
const DROP: Duration = Duration::from_millis(20);
/// The key of the recorded peer, and the version of the domain in which it signs executions.
const KEY: &str = "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a";
const VERSION: &str = "2";
/// Seconds.
const HOUR: i64 = 3_600;

/// What a peer was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    pub mood: String,
    pub path: String,
    pub key: Option<String>,
    pub body: Value,
}

/// A server full of peers.
pub struct Peers {
    pub server: Server,
    drip: Server,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Peers {
    pub async fn start() -> Self {
        let received = Arc::new(Mutex::new(Vec::new()));
        let seen = received.clone();
        let answers = Arc::new(super::fixture("recorded/peer-answers.json"));
        let dripped = answers[0]["answer"].to_string().into_bytes();
        let drip = http::dripping(dripped, DROP).await;
        let server = http::serve(move |asked| answer(seen.clone(), answers.clone(), asked)).await;
        Self {
            server,
            drip,
            received,
        }
    }

    /// The address of the peer in `mood`.
    pub fn url(&self, mood: &str) -> String {
        let server = match mood {
            "drip" => &self.drip,
            _ => &self.server,
        };
        format!("http://{}/{mood}", server.address)
    }

    /// What the peers were asked, in the order of their moods' names.
    pub fn received(&self) -> Vec<Received> {
        let mut received = self.received.lock().unwrap().clone();
        received.sort_by(|a, b| a.mood.cmp(&b.mood));
        received
    }
}

async fn answer(
    received: Arc<Mutex<Vec<Received>>>,
    answers: Arc<Value>,
    asked: Asked,
) -> Option<Response<Full<Bytes>>> {
    let (mood, path) = asked.target[1..].split_once('/').unwrap_or_default();
    let (mood, path) = (mood.to_owned(), format!("/{path}"));
    let body: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
    let key = asked
        .headers
        .get("x-api-key")
        .and_then(|key| key.to_str().ok());
    received.lock().unwrap().push(Received {
        mood: mood.clone(),
        path: path.clone(),
        key: key.map(str::to_owned),
        body: body.clone(),
    });
    let route = path.split('?').next().unwrap_or_default();
    let known = answers.as_array().into_iter().flatten().find(|recorded| {
        let (mut theirs, mut ours) = (recorded["body"].clone(), body.clone());
        for side in [&mut theirs, &mut ours] {
            side.as_object_mut()
                .map(|fields| fields.remove("requestPeerSignatures"));
        }
        recorded["path"] == route && theirs == ours
    });
    let Some(known) = known else {
        return Some(http::json(StatusCode::NOT_FOUND, b"{}".to_vec()));
    };
    let mut answer = known["answer"].clone();
    let mut status = StatusCode::OK;
    match mood.as_str() {
        "ok" => {}
        "err500" => status = StatusCode::INTERNAL_SERVER_ERROR,
        "garbage" => return Some(http::json(status, b"not json".to_vec())),
        "truncated" => return Some(http::json(status, b"{\"execution\":{\"sig".to_vec())),
        "huge" => answer["padding"] = "x".repeat(32 << 20).into(),
        "drop" => return None,
        "hang" => std::future::pending().await,
        "slow" => tokio::time::sleep(Duration::from_millis(2500)).await,
        "redirect" => {
            let response = Response::builder()
                .status(307)
                .header("location", format!("/ok{path}"));
            return Some(response.body(Full::default()).unwrap());
        }
        other => spoil(other, &mut answer),
    }
    Some(http::json(status, answer.to_string().into_bytes()))
}

fn spoil(mood: &str, answer: &mut Value) {
    let signatures = &mut answer["execution"]["signatures"];
    let honest = signatures[0].clone();
    let signature = &mut signatures[0];
    match mood {
        "dup" => signatures.as_array_mut().unwrap().push(honest),
        "mismatch" => {
            answer["execution"]["idempotencyKey"] = format!("0x{}", "00".repeat(32)).into();
        }
        "wrongdomain" => signature["oracleContract"] = format!("0x{}", "11".repeat(20)).into(),
        "wrongchain" => signature["oracleChainId"] = "1".into(),
        "uppercase" => {
            let text = honest["oracleContract"].as_str().unwrap()[2..].to_uppercase();
            signature["oracleContract"] = format!("0x{text}").into();
        }
        "numericchain" => signature["oracleChainId"] = 31337.into(),
        "forged" => {
            signature["oracleSigner"] = format!("0x{}", "99".repeat(20)).into();
            signature["signature"] = format!("0x{}", "ab".repeat(65)).into();
        }
        // A true signature under another name.
        "renamed" => signature["oracleSigner"] = format!("0x{}", "99".repeat(20)).into(),
        // A true signature over something else.
        "otherdigest" => {
            let text = honest["signature"].as_str().unwrap();
            let last = if text.ends_with("1b") { "1c" } else { "1b" };
            signature["signature"] = format!("{}{last}", &text[..130]).into();
        }
        "ontime" => shifted(answer, 0),
        "hourahead" => shifted(answer, HOUR),
        "hourbehind" => shifted(answer, -HOUR),
        "nosigner" => drop(signature.as_object_mut().unwrap().remove("oracleSigner")),
        "extra" => signature["foo"] = 1.into(),
        "noexecution" => drop(answer.as_object_mut().unwrap().remove("execution")),
        "empty" => *answer = json!({}),
        "array" => *answer = json!([1, 2]),
        other => panic!("no mood {other}"),
    }
}

/// Says that the deposit's block came so many seconds later, and signs that: an order's account at the hub depends on
/// the time. For answers about deposits.
fn shifted(answer: &mut Value, seconds: i64) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let message = &mut answer["messages"][0];
    let said = &message["result"];
    let chain = ChainId::new(&text(&message["data"]["chainId"]));
    let family = vm::family("ethereum-vm").unwrap();
    let depositor = family.account(&text(&said["depositor"])).unwrap();
    let deposit: B256 = text(&said["depositId"]).parse().unwrap();
    let account = |time: i64| {
        let account = OrderAccount {
            chain: &chain,
            depositor: &depositor,
            timestamp: U256::from(time.unsigned_abs()),
            deposit,
        };
        alloy::hex::encode(account.address())
    };
    let time: i64 = text(&message["extraData"]["timestamp"]).parse().unwrap();
    let (own, other) = (account(time), account(time + seconds));
    message["extraData"]["timestamp"] = (time + seconds).to_string().into();
    let execution = &mut answer["execution"];
    let action = text(&execution["actions"][0]).replace(&own, &other);
    execution["actions"][0] = action.as_str().into();
    let signed = &execution["signatures"][0];
    let contract: Address = text(&signed["oracleContract"]).parse().unwrap();
    let chain: U256 = text(&signed["oracleChainId"]).parse().unwrap();
    let domain = Domain::oracle(VERSION, chain, contract);
    let message = Execution {
        idempotency_key: text(&execution["idempotencyKey"]).parse().unwrap(),
        actions: vec![action.parse().unwrap()],
    };
    let key: PrivateKeySigner = KEY.parse().unwrap();
    let signature = key.sign_hash_sync(&message.digest(&domain)).unwrap();
    let signature = alloy::hex::encode_prefixed(signature.as_bytes());
    execution["signatures"][0]["signature"] = signature.into();
}
