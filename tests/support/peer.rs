//! A fake peer oracle in many moods. The first path segment picks the mood, so that one server
//! plays several peers; it answers what an honest peer was recorded to answer, spoilt by its mood.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::http::{self, Asked, Server};

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
    received: Arc<Mutex<Vec<Received>>>,
}

impl Peers {
    pub async fn start() -> Self {
        let received = Arc::new(Mutex::new(Vec::new()));
        let seen = received.clone();
        let answers = Arc::new(super::fixture("recorded/peer-answers.json"));
        let server = http::serve(move |asked| answer(seen.clone(), answers.clone(), asked)).await;
        Self { server, received }
    }

    /// The address of the peer in `mood`.
    pub fn url(&self, mood: &str) -> String {
        format!("http://{}/{mood}", self.server.address)
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
        "nosigner" => drop(signature.as_object_mut().unwrap().remove("oracleSigner")),
        "extra" => signature["foo"] = 1.into(),
        "noexecution" => drop(answer.as_object_mut().unwrap().remove("execution")),
        "empty" => *answer = json!({}),
        "array" => *answer = json!([1, 2]),
        other => panic!("no mood {other}"),
    }
}
