//! The providers: JSON-RPC over HTTP/1.1 for every chain of a family, as cheap as possible, since
//! it takes its time from the daemon's cores. A URL's path is `/<chain>/<delay in ms>/<provider>`.

use std::{
    borrow::Cow,
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use alloy::primitives::B256;
use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{net::TcpListener, task::JoinHandle};

use super::world::{Chain, World};

/// The providers of all chains, served in this process. Ends when dropped.
pub struct Node {
    address: SocketAddr,
    posts: Arc<AtomicU64>,
    serving: JoinHandle<()>,
}

/// What the nodes of some chains answer.
pub trait Answers: Send + Sync + 'static {
    /// The result of a call to a node of `chain`, as JSON; `None`: null.
    fn result(&self, chain: &str, call: &Call<'_>) -> Option<Cow<'_, str>>;
    /// Whether such calls read heads, so that no attestation makes them.
    fn is_of_head(&self, call: &Call<'_>) -> bool;
}

/// One JSON-RPC call.
#[derive(Deserialize)]
pub struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    pub method: &'a str,
    #[serde(borrow)]
    pub params: &'a RawValue,
}

impl Node {
    pub async fn start(answers: impl Answers) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let posts = Arc::new(AtomicU64::new(0));
        let serving = tokio::spawn(serve(listener, Arc::new(answers), posts.clone()));
        Ok(Self {
            address,
            posts,
            serving,
        })
    }

    /// The URLs of `count` providers of a chain that answer after `delay`.
    pub fn urls(&self, chain: &str, delay: Duration, count: usize) -> Vec<String> {
        let (address, delay) = (self.address, delay.as_millis());
        (1..=count)
            .map(|provider| format!("http://{address}/{chain}/{delay}/{provider}"))
            .collect()
    }

    /// Requests so far, without those that read heads.
    pub fn posts(&self) -> u64 {
        self.posts.load(Relaxed)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve<A: Answers>(listener: TcpListener, answers: Arc<A>, posts: Arc<AtomicU64>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (answers, posts) = (answers.clone(), posts.clone());
        let service = service_fn(move |request| {
            let (answers, posts) = (answers.clone(), posts.clone());
            async move {
                let answer = answer(&*answers, &posts, request).await;
                // An empty answer is unreadable: the daemon's log says so.
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(
                    answer.unwrap_or_default(),
                )))
            }
        });
        tokio::spawn(async move {
            let _nodelay = stream.set_nodelay(true);
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            let _ended = connection.await;
        });
    }
}

async fn answer<A: Answers>(
    answers: &A,
    posts: &AtomicU64,
    request: Request<Incoming>,
) -> Result<Bytes> {
    let (parts, body) = request.into_parts();
    let mut path = parts.uri.path().split('/').skip(1);
    let chain = path.next().context("no chain")?;
    let delay: u64 = path.next().context("no delay")?.parse()?;
    let body = body.collect().await?.to_bytes();
    let count = |first: Option<&Call<'_>>| {
        if first.is_some_and(|call| !answers.is_of_head(call)) {
            posts.fetch_add(1, Relaxed);
        }
    };
    let answer = if body.starts_with(b"[") {
        let calls: Vec<Call<'_>> = serde_json::from_slice(&body)?;
        count(calls.first());
        let all: Vec<_> = calls
            .iter()
            .map(|call| reply(answers, chain, call))
            .collect();
        format!("[{}]", all.join(","))
    } else {
        let call: Call<'_> = serde_json::from_slice(&body)?;
        count(Some(&call));
        reply(answers, chain, &call)
    };
    if delay > 0 {
        tokio::time::sleep(Duration::from_millis(delay)).await;
    }
    Ok(answer.into())
}

fn reply<A: Answers>(answers: &A, chain: &str, call: &Call<'_>) -> String {
    let result = answers.result(chain, call);
    let result = result.as_deref().unwrap_or("null");
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#,
        call.id.get()
    )
}

impl Answers for Arc<World> {
    fn result(&self, chain: &str, call: &Call<'_>) -> Option<Cow<'_, str>> {
        self.chain(chain)?.result(call)
    }

    fn is_of_head(&self, call: &Call<'_>) -> bool {
        call.params.get().contains("latest")
    }
}

impl Chain {
    fn result(&self, call: &Call<'_>) -> Option<Cow<'_, str>> {
        let first = call.params.get().split('"').nth(1);
        let mined = || self.mined(&first?.parse::<B256>().ok()?);
        Some(match call.method {
            "eth_getTransactionReceipt" => mined()?.receipt.as_str().into(),
            "eth_getTransactionByHash" => mined()?.transaction.as_str().into(),
            "eth_getBlockByNumber" => {
                let digits = first?.strip_prefix("0x");
                let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
                self.header(number).into()
            }
            "eth_chainId" => format!(r#""{:#x}""#, self.id).into(),
            _ => return None,
        })
    }
}
