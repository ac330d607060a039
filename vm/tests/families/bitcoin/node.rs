//! A node and an index in this process, which serve a [`Ledger`] over HTTP, honestly or not.

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
    HeaderMap, Request, Response, StatusCode,
    body::{Bytes, Incoming},
};
use serde_json::{Value, json};
use vm::{ChainEntry, ChainSpec, Endpoint, Provider, trade::TradingProvider};

use super::ledger::Ledger;
use crate::server::{self, Server};

pub static WORLD: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../fixtures/recorded/bitcoin.json")).unwrap()
});

pub const LEGACY: &str = "1MviEDGCTgEKEJ6cmfL9pBQa5GG4hujXnF";
pub const SEGWIT: &str = "bc1q82jn90vgkwvknrhxpla797tu050fj0jaaaznne";

pub fn spec(additional: Value) -> Arc<ChainSpec> {
    owned_by(LEGACY, additional)
}

/// The same with another first depository.
pub fn owned_by(depository: &str, additional: Value) -> Arc<ChainSpec> {
    let entry: ChainEntry = serde_json::from_value(json!({
        "id": "bitcoin", "vmType": "bitcoin-vm", "hubChainId": "7", "depository": depository,
        "additionalDepositories": [SEGWIT], "additionalData": additional,
    }))
    .unwrap();
    entry
        .spec(vm::family("bitcoin-vm").unwrap(), false)
        .unwrap()
}

/// Changes an answer: method, parameters, `result` or `error`.
type Lie = Arc<dyn Fn(&str, &Value, &mut Value) + Send + Sync>;
/// Changes the text of an answer: the method or path, the text.
type Garble = Arc<dyn Fn(&str, &mut String) + Send + Sync>;

pub struct State {
    pub ledger: Mutex<Ledger>,
    lie: Mutex<Option<Lie>>,
    garble: Mutex<Option<Garble>>,
    pub calls: Mutex<Vec<String>>,
    /// Round trips to the node, each of one question or several.
    pub posts: AtomicU64,
    /// The headers of what the index was asked.
    pub headers: Mutex<Vec<HeaderMap>>,
    /// The index wants this in `authorization`.
    pub token: Mutex<Option<String>>,
    /// Requests that arrive get no answer.
    pub hanging: AtomicBool,
    pub hung: AtomicU64,
    /// Status 503 for all.
    pub down: AtomicBool,
}

pub struct Node {
    pub state: Arc<State>,
    server: Server,
}

/// Serves the recorded world.
pub async fn node() -> Node {
    serve(Ledger::recorded(&WORLD)).await
}

pub async fn serve(ledger: Ledger) -> Node {
    let state = Arc::new(State {
        ledger: Mutex::new(ledger),
        lie: Mutex::default(),
        garble: Mutex::default(),
        calls: Mutex::default(),
        posts: AtomicU64::default(),
        headers: Mutex::default(),
        token: Mutex::default(),
        hanging: AtomicBool::default(),
        hung: AtomicU64::default(),
        down: AtomicBool::default(),
    });
    let shared = state.clone();
    let server = server::serve(move |request| answer(shared.clone(), request)).await;
    Node { state, server }
}

impl Node {
    pub fn open(&self, spec: &Arc<ChainSpec>) -> Provider {
        self.open_within(spec, Duration::from_secs(2))
    }

    pub fn open_within(&self, spec: &Arc<ChainSpec>, timeout: Duration) -> Provider {
        let longest = vm::protocol::limits::PROVIDER_ANSWER;
        self.open_limited(spec, (timeout, longest))
    }

    /// Opens the node with so much time, and so many bytes of an answer.
    pub fn open_limited(
        &self,
        spec: &Arc<ChainSpec>,
        (timeout, longest): (Duration, usize),
    ) -> Provider {
        let endpoint = Endpoint {
            timeout,
            longest,
            ..self.endpoint()
        };
        (spec.family.open.unwrap())(spec, &endpoint).unwrap()
    }

    /// Where the node is, with what it takes at most.
    fn endpoint(&self) -> Endpoint {
        Endpoint {
            position: 1,
            url: format!("http://user:secret@127.0.0.1:{}/", self.server.port)
                .parse()
                .unwrap(),
            timeout: Duration::from_secs(2),
            longest: vm::protocol::limits::PROVIDER_ANSWER,
            allows: None,
            client: Endpoint::client().unwrap(),
        }
    }

    /// Opens the node for trading.
    pub fn trade(&self, spec: &Arc<ChainSpec>) -> TradingProvider {
        (spec.family.trade.unwrap())(spec, &self.endpoint()).unwrap()
    }

    /// Opens the index that the entry names for trading.
    pub fn trade_index(&self, spec: &Arc<ChainSpec>) -> TradingProvider {
        let endpoint = Endpoint {
            position: 2,
            url: spec.further_providers().unwrap().pop().unwrap(),
            ..self.endpoint()
        };
        (spec.family.trade.unwrap())(spec, &endpoint).unwrap()
    }

    /// Where the index is.
    pub fn index_url(&self) -> String {
        format!("http://127.0.0.1:{}/index", self.server.port)
    }

    /// Where the index' customers get their tokens.
    pub fn token_url(&self) -> String {
        format!("http://127.0.0.1:{}/token", self.server.port)
    }

    /// Opens the index that the entry names.
    pub fn open_index(&self, spec: &Arc<ChainSpec>) -> Provider {
        let endpoint = Endpoint {
            position: 2,
            url: spec.further_providers().unwrap().pop().unwrap(),
            timeout: Duration::from_secs(2),
            longest: vm::protocol::limits::PROVIDER_ANSWER,
            allows: None,
            client: Endpoint::client().unwrap(),
        };
        (spec.family.open.unwrap())(spec, &endpoint).unwrap()
    }

    pub fn lie(&self, lie: impl Fn(&str, &Value, &mut Value) + Send + Sync + 'static) {
        *self.state.lie.lock().unwrap() = Some(Arc::new(lie));
    }

    pub fn garble(&self, garble: impl Fn(&str, &mut String) + Send + Sync + 'static) {
        *self.state.garble.lock().unwrap() = Some(Arc::new(garble));
    }

    pub fn ledger<T>(&self, with: impl FnOnce(&mut Ledger) -> T) -> T {
        with(&mut self.state.ledger.lock().unwrap())
    }

    /// How often this was asked.
    pub fn count(&self, what: &str) -> usize {
        let calls = self.state.calls.lock().unwrap();
        calls.iter().filter(|call| call.starts_with(what)).count()
    }
}

impl State {
    fn text(&self, what: &str, mut text: String) -> Full<Bytes> {
        if let Some(garble) = &*self.garble.lock().unwrap() {
            garble(what, &mut text);
        }
        Full::new(Bytes::from(text))
    }

    fn called(&self, what: &str) {
        self.calls.lock().unwrap().push(what.to_owned());
    }
}

type Answer = Response<Full<Bytes>>;

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    if state.hanging.load(SeqCst) {
        state.hung.fetch_add(1, SeqCst);
        return std::future::pending().await;
    }
    if state.down.load(SeqCst) {
        return Ok(with_status(
            StatusCode::SERVICE_UNAVAILABLE,
            Full::default(),
        ));
    }
    let path = request.uri().path().to_owned();
    if let Some(path) = path.strip_prefix("/index/") {
        return Ok(indexed(&state, path, request.headers().clone()));
    }
    let body = request.into_body().collect().await.unwrap().to_bytes();
    if path == "/token" {
        state.called(&format!("token {}", String::from_utf8_lossy(&body)));
        let token = state.token.lock().unwrap().clone();
        let given = json!({"access_token": token.unwrap_or_default(), "expires_in": 300});
        return Ok(with_status(
            StatusCode::OK,
            state.text("token", given.to_string()),
        ));
    }
    state.posts.fetch_add(1, SeqCst);
    let question: Value = serde_json::from_slice(&body).unwrap();
    let one = |question: &Value| {
        let method = question["method"].as_str().unwrap();
        state.called(method);
        let mut answer = state.ledger.lock().unwrap().answer(question);
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
    let status = match answer["error"].is_object() {
        true => StatusCode::INTERNAL_SERVER_ERROR,
        false => StatusCode::OK,
    };
    let method = question["method"].as_str().unwrap_or("batch");
    Ok(with_status(status, state.text(method, answer.to_string())))
}

fn indexed(state: &State, path: &str, headers: HeaderMap) -> Answer {
    state.called(&format!("GET {path}"));
    let token = state.token.lock().unwrap().clone();
    let wanted = token.map(|token| format!("Bearer {token}"));
    let shown = headers.get("authorization").cloned();
    state.headers.lock().unwrap().push(headers);
    if wanted.is_some_and(|wanted| shown.is_none_or(|shown| shown != *wanted)) {
        return with_status(StatusCode::UNAUTHORIZED, Full::default());
    }
    match state.ledger.lock().unwrap().index(path) {
        Some(text) => with_status(StatusCode::OK, state.text(path, text)),
        None => with_status(StatusCode::NOT_FOUND, Full::default()),
    }
}

fn with_status(status: StatusCode, body: Full<Bytes>) -> Answer {
    Response::builder().status(status).body(body).unwrap()
}
