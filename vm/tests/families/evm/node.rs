//! A node in this process that serves the recorded chain over HTTP, honestly or not.

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use alloy::primitives::keccak256;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Request, Response,
    body::{Bytes, Frame, Incoming},
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use vm::{Endpoint, Provider};

use super::chain::{self, WORLD};
use crate::server::{Server, serve};

/// Changes an answer: method, parameters, result.
pub type Lie = Arc<dyn Fn(&str, &Value, &mut Value) + Send + Sync>;

/// How the node answers at all.
#[derive(Clone, Debug)]
pub enum Manner {
    Plain,
    /// Status and `Retry-After`.
    Status(u16, Option<&'static str>),
    /// These bytes instead of an answer.
    Bytes(&'static [u8]),
    /// 200 MB.
    Flood,
    /// One byte, then nothing.
    Drip,
    Hang,
    Redirect(String),
    Compressed,
}

pub struct State {
    pub manner: Mutex<Manner>,
    pub lie: Mutex<Option<Lie>>,
    pub latest: AtomicU64,
    /// From this height on the node is on another fork.
    pub fork: AtomicU64,
    pub batches: AtomicBool,
    /// `eth_call` takes block hashes.
    pub hashes: AtomicBool,
    pub posts: AtomicU64,
    pub asked: Notify,
    pub calls: Mutex<Vec<String>>,
    pub authorization: Mutex<Option<String>>,
    pub path: Mutex<String>,
}

pub struct Node {
    pub state: Arc<State>,
    server: Server,
}

pub async fn node() -> Node {
    let state = Arc::new(State {
        manner: Mutex::new(Manner::Plain),
        lie: Mutex::new(None),
        latest: AtomicU64::new(150),
        fork: AtomicU64::new(u64::MAX),
        batches: AtomicBool::new(true),
        hashes: AtomicBool::new(true),
        posts: AtomicU64::new(0),
        asked: Notify::new(),
        calls: Mutex::new(Vec::new()),
        authorization: Mutex::new(None),
        path: Mutex::new(String::new()),
    });
    let shared = state.clone();
    let server = serve(move |request| answer(shared.clone(), request)).await;
    Node { state, server }
}

impl Node {
    pub fn port(&self) -> u16 {
        self.server.port
    }

    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            position: 1,
            url: format!("http://127.0.0.1:{}", self.port()).parse().unwrap(),
            timeout: Duration::from_secs(2),
            longest: vm::protocol::limits::PROVIDER_ANSWER,
            allows: None,
            client: Endpoint::client().unwrap(),
        }
    }

    pub fn open(&self) -> Provider {
        let open = vm::ethereum::FAMILY.open.unwrap();
        open(&chain::shared_spec(), &self.endpoint()).unwrap()
    }

    pub fn behave(&self, manner: Manner) {
        *self.state.manner.lock().unwrap() = manner;
    }

    pub fn lie(&self, lie: impl Fn(&str, &Value, &mut Value) + Send + Sync + 'static) {
        *self.state.lie.lock().unwrap() = Some(Arc::new(lie));
    }

    pub fn be_honest(&self) {
        *self.state.lie.lock().unwrap() = None;
        self.behave(Manner::Plain);
    }

    pub fn posts(&self) -> u64 {
        self.state.posts.load(SeqCst)
    }
}

type Body = BoxBody<Bytes, Infallible>;

fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed()
}

async fn answer(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    state.posts.fetch_add(1, SeqCst);
    state.asked.notify_one();
    let authorization = request.headers().get("authorization");
    *state.authorization.lock().unwrap() =
        authorization.map(|value| value.to_str().unwrap().to_owned());
    *state.path.lock().unwrap() = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let question: Value = serde_json::from_slice(&body).unwrap();
    let manner = state.manner.lock().unwrap().clone();
    let response = Response::builder();
    Ok(match manner {
        Manner::Plain => response.body(full(state.reply(&question))).unwrap(),
        Manner::Status(status, retry_after) => {
            let response = response.status(status);
            let response = match retry_after {
                Some(delay) => response.header("retry-after", delay),
                None => response,
            };
            response.body(full("busy")).unwrap()
        }
        Manner::Bytes(bytes) => response.body(full(bytes)).unwrap(),
        Manner::Flood => {
            let chunk = Bytes::from(vec![b' '; 1 << 20]);
            let chunks = (0..200).map(move |_| Ok(Frame::data(chunk.clone())));
            let stream = StreamBody::new(futures::stream::iter(chunks));
            response.body(BodyExt::boxed(stream)).unwrap()
        }
        Manner::Drip => {
            use futures::StreamExt;
            let first = futures::stream::iter([Ok(Frame::data(Bytes::from_static(b"[")))]);
            let stream = StreamBody::new(first.chain(futures::stream::pending()));
            response.body(BoxBody::new(stream)).unwrap()
        }
        Manner::Hang => std::future::pending().await,
        Manner::Redirect(to) => response
            .status(307)
            .header("location", to)
            .body(full(""))
            .unwrap(),
        Manner::Compressed => response
            .header("content-encoding", "gzip")
            .body(full(state.reply(&question)))
            .unwrap(),
    })
}

impl State {
    fn reply(&self, question: &Value) -> Vec<u8> {
        let answer = match question {
            Value::Array(_) if !self.batches.load(SeqCst) => {
                json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no batches"}})
            }
            Value::Array(questions) => questions.iter().map(|one| self.one(one)).collect(),
            one => self.one(one),
        };
        serde_json::to_vec(&answer).unwrap()
    }

    fn one(&self, question: &Value) -> Value {
        let method = question["method"].as_str().unwrap();
        let params = &question["params"];
        self.calls.lock().unwrap().push(method.to_owned());
        let mut result = match self.truth(method, params) {
            Ok(result) => result,
            Err((code, message)) => {
                let error = json!({"code": code, "message": message});
                return json!({"jsonrpc": "2.0", "id": question["id"], "error": error});
            }
        };
        if let Some(lie) = self.lie.lock().unwrap().clone() {
            lie(method, params, &mut result);
        }
        json!({"jsonrpc": "2.0", "id": question["id"], "result": result})
    }

    fn truth(&self, method: &str, params: &Value) -> Result<Value, (i64, &'static str)> {
        Ok(match method {
            "eth_chainId" => WORLD["chainId"].clone(),
            "eth_getBlockByNumber" => {
                let number = self.height(&params[0]);
                number.and_then(|n| self.header(n)).unwrap_or_default()
            }
            "eth_getTransactionReceipt" | "eth_getTransactionByHash" => {
                let part = if method.ends_with("Receipt") {
                    "receipt"
                } else {
                    "transaction"
                };
                self.entry(&params[0], part)
            }
            "eth_call" => return self.call(params),
            other => panic!("{other}"),
        })
    }

    fn height(&self, at: &Value) -> Option<u64> {
        let latest = self.latest.load(SeqCst);
        match at.as_str().unwrap() {
            "latest" => Some(latest),
            tag @ ("safe" | "finalized") => WORLD["tags"][tag].as_u64(),
            hex => u64::from_str_radix(&hex[2..], 16)
                .ok()
                .filter(|n| *n <= latest),
        }
    }

    /// The recorded header, or that of the node's own fork.
    fn header(&self, number: u64) -> Option<Value> {
        let mut header = chain::header(number)?;
        for (field, height) in [
            ("hash", Some(number)),
            ("parentHash", number.checked_sub(1)),
        ] {
            let fork = self.fork.load(SeqCst);
            if height.is_some_and(|height| height >= fork) {
                let forked = format!("{} {fork}", header[field]);
                header[field] = json!(keccak256(forked));
            }
        }
        Some(header)
    }

    fn entry(&self, hash: &Value, part: &str) -> Value {
        let entries = WORLD["transactions"].as_array().unwrap();
        let found = entries
            .iter()
            .find(|entry| entry["transaction"]["hash"] == *hash);
        let Some(found) = found else {
            return Value::Null;
        };
        let number =
            u64::from_str_radix(&found["receipt"]["blockNumber"].as_str().unwrap()[2..], 16);
        let number = number.unwrap();
        if number > self.latest.load(SeqCst) {
            return Value::Null;
        }
        let mut found = found[part].clone();
        let block = self.header(number).unwrap()["hash"].clone();
        found["blockHash"] = block.clone();
        for log in found["logs"].as_array_mut().into_iter().flatten() {
            log["blockHash"] = block.clone();
        }
        found
    }

    fn call(&self, params: &Value) -> Result<Value, (i64, &'static str)> {
        let at = &params[1];
        if !at.is_string() && !self.hashes.load(SeqCst) {
            return Err((-32602, "a block number expected"));
        }
        let number = match at["blockHash"].as_str() {
            Some(hash) => {
                let latest = self.latest.load(SeqCst);
                let same = |n: &u64| self.header(*n).is_some_and(|h| h["hash"] == *hash);
                (0..=latest).find(same).ok_or((-32001, "block not found"))?
            }
            None => self.height(at).ok_or((-32001, "block not found"))?,
        };
        let (to, data) = (&params[0]["to"], params[0]["data"].as_str().unwrap());
        let calls = WORLD["calls"].as_array().unwrap();
        let recorded = calls
            .iter()
            .find(|call| call["to"] == *to && call["data"] == *data);
        let step = recorded.and_then(|call| {
            let history = call["history"].as_array().unwrap();
            history
                .iter()
                .rfind(|step| step["from"].as_u64().unwrap() <= number)
        });
        step.map(|step| step["result"].clone())
            .ok_or((-32000, "call not recorded"))
    }
}
