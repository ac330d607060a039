//! A node of any family in this process: JSON-RPC over HTTP from a [`Ledger`], honestly or not.

use std::{
    convert::Infallible,
    io::Read,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use futures::StreamExt;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Request, Response,
    body::{Bytes, Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{family::Script, ledger::Ledger};

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
    port: u16,
    task: JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Node {
    pub async fn start(script: &'static dyn Script, ledger: Ledger) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            script,
            ledger: Mutex::new(ledger),
            later: Mutex::default(),
            manner: Mutex::new(Manner::Plain),
            calls: AtomicUsize::new(0),
        });
        let shared = state.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let state = shared.clone();
                connections.spawn(async move {
                    let service = service_fn(move |request| answer(state.clone(), request));
                    let _ended = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { state, port, task }
    }

    /// Host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
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

impl State {
    /// The text of the answer to a call, or to several.
    fn reply(&self, question: &Value) -> Vec<u8> {
        let answer = match question {
            Value::Array(all) => all.iter().map(|one| self.one(one)).collect(),
            one => self.one(one),
        };
        serde_json::to_vec(&answer).unwrap()
    }

    fn one(&self, question: &Value) -> Value {
        let number = self.calls.fetch_add(1, SeqCst);
        let mut later = self.later.lock().unwrap();
        let mut ledger = self.ledger.lock().unwrap();
        if let Some((_, other)) = later.take_if(|(after, _)| number >= *after) {
            *ledger = other;
        }
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

/// `None` closes the connection.
async fn answer(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Body>, std::io::Error> {
    let manner = state.manner.lock().unwrap().clone();
    let body = request.into_body().collect().await;
    let body = body.map_or_else(|_| Bytes::new(), |body| body.to_bytes());
    let question: Value = serde_json::from_slice(&body).unwrap_or_default();
    let response = Response::builder().header("content-type", "application/json");
    let honest = || state.reply(&question);
    let (response, body) = match manner {
        Manner::Plain => (response, full(honest())),
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
            (response, full(doubled(&text, state.script.once())))
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

/// The text with the first member called `key` twice: its value has to be a text.
fn doubled(text: &str, key: &str) -> String {
    let name = format!("\"{key}\":\"");
    let Some(begin) = text.find(&name) else {
        return text.to_owned();
    };
    let end = begin + name.len() + text[begin + name.len()..].find('"').unwrap() + 1;
    let member = &text[begin..end];
    format!("{}{member},{}", &text[..begin], &text[begin..])
}

#[test]
fn a_field_stands_twice() {
    assert_eq!(
        doubled(r#"{"a":1,"b":"x","c":2}"#, "b"),
        r#"{"a":1,"b":"x","b":"x","c":2}"#
    );
    assert_eq!(doubled(r#"{"a":1}"#, "b"), r#"{"a":1}"#);
}
