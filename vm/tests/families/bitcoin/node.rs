//! A node in this process that serves the recorded chain over HTTP, honestly or not.

use std::{
    convert::Infallible,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use vm::{ChainEntry, ChainSpec, Endpoint, Provider};

pub static WORLD: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../fixtures/recorded/bitcoin.json")).unwrap()
});

pub const LEGACY: &str = "1MviEDGCTgEKEJ6cmfL9pBQa5GG4hujXnF";
pub const SEGWIT: &str = "bc1q82jn90vgkwvknrhxpla797tu050fj0jaaaznne";

pub fn spec(additional: Value) -> Arc<ChainSpec> {
    let entry: ChainEntry = serde_json::from_value(json!({
        "id": "bitcoin", "vmType": "bitcoin-vm", "hubChainId": "7", "depository": LEGACY,
        "additionalDepositories": [SEGWIT], "additionalData": additional,
    }))
    .unwrap();
    entry
        .spec(vm::family("bitcoin-vm").unwrap(), false)
        .unwrap()
}

/// Changes an answer: method, parameters, `result` or `error`.
type Lie = Arc<dyn Fn(&str, &Value, &mut Value) + Send + Sync>;

#[derive(Default)]
pub struct State {
    lie: Mutex<Option<Lie>>,
    pub calls: Mutex<Vec<String>>,
    /// Requests that arrive get no answer.
    pub hanging: AtomicBool,
    pub hung: AtomicU64,
    /// Status 503 for all.
    pub down: AtomicBool,
}

pub struct Node {
    port: u16,
    pub state: Arc<State>,
    task: JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub async fn node() -> Node {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let state: Arc<State> = Arc::default();
    let shared = state.clone();
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let state = shared.clone();
            let service = service_fn(move |request| answer(state.clone(), request));
            tokio::spawn(async move {
                let connection = hyper::server::conn::http1::Builder::new();
                let _ = connection
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    Node { port, state, task }
}

impl Node {
    pub fn open(&self, spec: &Arc<ChainSpec>) -> Provider {
        self.open_within(spec, Duration::from_secs(2))
    }

    pub fn open_within(&self, spec: &Arc<ChainSpec>, timeout: Duration) -> Provider {
        let endpoint = Endpoint {
            position: 1,
            url: format!("http://user:secret@127.0.0.1:{}/", self.port)
                .parse()
                .unwrap(),
            timeout,
            longest: vm::protocol::limits::PROVIDER_ANSWER,
            allows: None,
            client: Endpoint::client().unwrap(),
        };
        (spec.family.open.unwrap())(spec, &endpoint).unwrap()
    }

    pub fn lie(&self, lie: impl Fn(&str, &Value, &mut Value) + Send + Sync + 'static) {
        *self.state.lie.lock().unwrap() = Some(Arc::new(lie));
    }
}

async fn answer(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if state.hanging.load(SeqCst) {
        state.hung.fetch_add(1, SeqCst);
        return std::future::pending().await;
    }
    if state.down.load(SeqCst) {
        let down = Response::builder().status(503);
        return Ok(down.body(Full::default()).unwrap());
    }
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let question: Value = serde_json::from_slice(&body).unwrap();
    let one = |question: &Value| {
        let method = question["method"].as_str().unwrap();
        state.calls.lock().unwrap().push(method.to_owned());
        let mut answer = honest(method, &question["params"]);
        if let Some(lie) = &*state.lie.lock().unwrap() {
            lie(method, &question["params"], &mut answer);
        }
        answer["id"] = question["id"].clone();
        answer
    };
    let answer = match &question {
        Value::Array(questions) => questions.iter().map(one).collect(),
        question => one(question),
    };
    // Bitcoin Core answers errors with a status of their own.
    let status = if answer["error"].is_object() {
        500
    } else {
        200
    };
    let body = Full::new(Bytes::from(answer.to_string()));
    Ok(Response::builder().status(status).body(body).unwrap())
}

fn honest(method: &str, params: &Value) -> Value {
    let blocks = WORLD["blocks"].as_object().unwrap();
    let found = match method {
        "getblockcount" => Some(WORLD["height"].clone()),
        "getblockhash" => blocks
            .values()
            .find(|block| block["height"] == params[0])
            .map(|b| b["hash"].clone()),
        "getblockheader" => params[0]
            .as_str()
            .and_then(|hash| blocks.get(hash))
            .cloned(),
        "getrawtransaction" => params[0]
            .as_str()
            .and_then(|id| WORLD["transactions"].get(id))
            .cloned(),
        _ => None,
    };
    match found {
        Some(result) => json!({"result": result, "error": null}),
        None => json!({"result": null, "error": {"code": -5, "message": "unknown"}}),
    }
}
