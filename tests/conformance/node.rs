//! A node of any family in this process: JSON-RPC over HTTP from a [`Ledger`], honestly or not. It is the family's
//! index, too, for whoever asks with GET.

use std::{
    convert::Infallible,
    io::Read,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use futures::StreamExt;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Method, Request, Response,
    body::{Bytes, Frame, Incoming},
};
use serde_json::{Value, json};

use crate::{
    family::Script,
    ledger::Ledger,
    server::{Server, serve},
    tls::{Front, Tls},
};

/// What the paths of a node's index begin with.
const INDEX: &str = "/index/";

/// How a node answers, whatever it is asked.
#[derive(Clone, Debug)]
pub enum Manner {
    Plain,
    /// Status and `Retry-After`.
    Status(u16, Option<&'static str>),
    /// Half of the answer.
    Truncated,
    /// The answer, and spaces up to 200 MB behind it.
    Flood,
    /// The answer and 100 MB of spaces, compressed.
    Bomb,
    /// The answer with one of its fields twice.
    Doubled,
    /// One byte, then nothing.
    Drip,
    Hang,
    /// Closes the connection.
    Drop,
    /// To another node.
    Redirect(String),
}

struct State {
    script: &'static dyn Script,
    ledger: Mutex<Ledger>,
    /// After so many calls the node has this ledger.
    later: Mutex<Option<(usize, Ledger)>>,
    manner: Mutex<Manner>,
    calls: AtomicUsize,
}

/// Ends when dropped.
pub struct Node {
    state: Arc<State>,
    server: Server,
    /// Where the node is asked: over TLS or not.
    scheme: &'static str,
    front: Option<Front>,
}

impl Node {
    pub async fn start(script: &'static dyn Script, ledger: Ledger) -> Self {
        let state = Arc::new(State {
            script,
            ledger: Mutex::new(ledger),
            later: Mutex::default(),
            manner: Mutex::new(Manner::Plain),
            calls: AtomicUsize::new(0),
        });
        let shared = state.clone();
        let server = serve(move |request| answer(shared.clone(), request)).await;
        Self {
            state,
            server,
            scheme: "http",
            front: None,
        }
    }

    /// From now on the node is asked over TLS.
    pub async fn secure(&mut self, tls: Tls) {
        self.scheme = "https";
        self.front = Front::start(self.server.port, tls).await;
    }

    /// Where the node is.
    pub fn url(&self) -> String {
        let port = self.front.as_ref().map_or(self.server.port, |it| it.port);
        format!("{}://127.0.0.1:{port}/", self.scheme)
    }

    /// Host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.server.port)
    }

    /// Where its index is.
    pub fn index_url(&self) -> String {
        format!("http://{}{}", self.address(), INDEX.trim_end_matches('/'))
    }

    pub fn behave(&self, manner: Manner) {
        *self.state.manner.lock().unwrap() = manner;
    }

    /// Changes what the node has; returns what `edit` does.
    pub fn edit<T>(&self, edit: impl FnOnce(&mut Ledger) -> T) -> T {
        edit(&mut self.state.ledger.lock().unwrap())
    }

    pub fn ledger(&self) -> Ledger {
        self.state.ledger.lock().unwrap().clone()
    }

    /// After `calls` more calls the node has another ledger.
    pub fn switch(&self, calls: usize, ledger: Ledger) {
        let after = self.state.calls.load(SeqCst) + calls;
        *self.state.later.lock().unwrap() = Some((after, ledger));
    }
}

/// What a node is asked: a call or several, or a path of its index.
enum Question {
    Calls(Value),
    Path(String),
}

impl State {
    /// The text of the answer; `None` where the index has no such path.
    fn reply(&self, question: &Question) -> Option<Vec<u8>> {
        let answer = match question {
            Question::Path(path) => {
                let ledger = self.called();
                return self.script.page(&ledger, path).map(String::into_bytes);
            }
            Question::Calls(Value::Array(all)) => all.iter().map(|one| self.one(one)).collect(),
            Question::Calls(one) => self.one(one),
        };
        Some(serde_json::to_vec(&answer).unwrap())
    }

    /// The ledger for one more call.
    fn called(&self) -> MutexGuard<'_, Ledger> {
        let number = self.calls.fetch_add(1, SeqCst);
        let mut later = self.later.lock().unwrap();
        let mut ledger = self.ledger.lock().unwrap();
        if let Some((_, other)) = later.take_if(|(after, _)| number >= *after) {
            *ledger = other;
        }
        ledger
    }

    fn one(&self, question: &Value) -> Value {
        let ledger = self.called();
        let method = question["method"].as_str().unwrap_or_default();
        let answer = self.script.answer(&ledger, method, &question["params"]);
        let id = &question["id"];
        match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, message)) => {
                let error = json!({"code": code, "message": message});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        }
    }
}

type Body = BoxBody<Bytes, Infallible>;

fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed()
}

/// An error closes the connection.
async fn answer(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Body>, std::io::Error> {
    let manner = state.manner.lock().unwrap().clone();
    let path = request.uri().path().strip_prefix(INDEX).map(str::to_owned);
    let path = path.filter(|_| request.method() == Method::GET);
    let body = request.into_body().collect().await;
    let body = body.map_or_else(|_| Bytes::new(), |body| body.to_bytes());
    let question = match path {
        Some(path) => Question::Path(path),
        None => Question::Calls(serde_json::from_slice(&body).unwrap_or_default()),
    };
    let response = Response::builder().header("content-type", "application/json");
    let honest = || state.reply(&question).unwrap_or_default();
    let (response, body) = match manner {
        Manner::Plain => match state.reply(&question) {
            Some(text) => (response, full(text)),
            None => (response.status(404), full("")),
        },
        Manner::Status(status, delay) => {
            let response = response.status(status);
            let response = match delay {
                Some(delay) => response.header("retry-after", delay),
                None => response,
            };
            (response, full("busy"))
        }
        Manner::Truncated => {
            let mut text = honest();
            text.truncate(text.len() / 2);
            (response, full(text))
        }
        Manner::Flood => (response, flood(honest())),
        Manner::Bomb => {
            let response = response.header("content-encoding", "zstd");
            (response, full(compressed(&honest())))
        }
        Manner::Doubled => {
            let text = String::from_utf8(honest()).unwrap();
            let twice = doubled(&text, state.script.once());
            (response, full(twice))
        }
        Manner::Drip => {
            let first = futures::stream::iter([Ok(Frame::data(Bytes::from_static(b"{")))]);
            let stream = StreamBody::new(first.chain(futures::stream::pending()));
            (response, BoxBody::new(stream))
        }
        Manner::Hang => std::future::pending().await,
        Manner::Drop => return Err(std::io::Error::other("dropped on purpose")),
        Manner::Redirect(to) => (response.status(307).header("location", to), full("")),
    };
    Ok(response.body(body).unwrap())
}

/// An answer that is valid JSON to its end, which is never in memory as a whole.
fn flood(honest: Vec<u8>) -> Body {
    let spaces = Bytes::from(vec![b' '; 1 << 20]);
    let first = std::iter::once(Bytes::from(honest));
    let chunks = first.chain(std::iter::repeat_n(spaces, 200));
    let stream = futures::stream::iter(chunks.map(|chunk| Ok(Frame::data(chunk))));
    BodyExt::boxed(StreamBody::new(stream))
}

/// An answer that is honest for whoever unpacks it.
fn compressed(honest: &[u8]) -> Vec<u8> {
    let all = honest.chain(std::io::repeat(b' ').take(100 << 20));
    let mut packed = Vec::new();
    let mut encoder = zstd::stream::read::Encoder::new(all, 1).unwrap();
    encoder.read_to_end(&mut packed).unwrap();
    assert!(packed.len() < 1 << 20, "{} bytes", packed.len());
    packed
}

/// The text, in which the first of these members that it has stands twice: its value has to be a text.
fn doubled(text: &str, keys: &[&str]) -> String {
    let mut names = keys.iter().map(|key| format!("\"{key}\":\""));
    let found = names.find_map(|name| Some((text.find(&name)?, name.len())));
    let Some((begin, length)) = found else {
        return text.to_owned();
    };
    let end = begin + length + text[begin + length..].find('"').unwrap() + 1;
    let member = &text[begin..end];
    format!("{}{member},{}", &text[..begin], &text[begin..])
}

#[test]
fn a_field_stands_twice() {
    assert_eq!(
        doubled(r#"{"a":1,"b":"x","c":2}"#, &["d", "b"]),
        r#"{"a":1,"b":"x","b":"x","c":2}"#
    );
    assert_eq!(doubled(r#"{"a":1}"#, &["b"]), r#"{"a":1}"#);
}
