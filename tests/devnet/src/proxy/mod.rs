//! A JSON-RPC provider that lies on command.
//!
//! It stands between a daemon and a real node. Without rules it is honest and only counts; a rule
//! decides per call what goes wrong. Batches are understood: a lie about one call of a batch
//! touches that call only, except where the lie is about the connection.

mod exchange;
mod rule;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpListener, task::JoinHandle};
use url::Url;

pub use exchange::Gone;
pub use rule::{Call, Lie, Rule, on, rules};

/// A running proxy on a port of its own. Dropping it closes the port and every connection.
pub struct LyingProxy {
    pub url: Url,
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    upstream: Mutex<Url>,
    rules: Mutex<Vec<Rule>>,
    counts: Mutex<BTreeMap<String, usize>>,
    exchanges: AtomicUsize,
    client: reqwest::Client,
}

impl LyingProxy {
    /// Stands in front of `upstream`, honest until told otherwise.
    pub async fn start(upstream: &Url) -> Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let url = Url::parse(&format!("http://{}", listener.local_addr()?))?;
        let client = reqwest::Client::builder()
            .no_proxy()
            .build()
            .context("no HTTP client")?;
        let state = Arc::new(State {
            upstream: Mutex::new(upstream.clone()),
            rules: Mutex::default(),
            counts: Mutex::default(),
            exchanges: AtomicUsize::new(0),
            client,
        });
        let task = tokio::spawn(serve(listener, state.clone()));
        Ok(Self { url, state, task })
    }

    /// Replaces all rules by one.
    pub fn lie(&self, rule: Rule) {
        *lock(&self.state.rules) = vec![rule];
    }

    /// Adds a rule behind the others; the first that has an opinion about a call decides.
    pub fn also(&self, rule: Rule) {
        lock(&self.state.rules).push(rule);
    }

    /// Forgets all rules.
    pub fn honest(&self) {
        lock(&self.state.rules).clear();
    }

    /// From now on answers come from another node, for example one on another fork.
    pub fn switch(&self, upstream: &Url) {
        *lock(&self.state.upstream) = upstream.clone();
    }

    /// Calls of `method` seen so far, each call of a batch counted.
    pub fn count(&self, method: &str) -> usize {
        lock(&self.state.counts).get(method).copied().unwrap_or(0)
    }

    /// Calls by method.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        lock(&self.state.counts).clone()
    }

    /// HTTP requests seen so far: a batch is one.
    pub fn exchanges(&self) -> usize {
        self.state.exchanges.load(Ordering::SeqCst)
    }

    /// Starts counting from zero, also for [`Call::nth`].
    pub fn reset(&self) {
        lock(&self.state.counts).clear();
        self.state.exchanges.store(0, Ordering::SeqCst);
    }
}

impl Drop for LyingProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl std::fmt::Debug for LyingProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LyingProxy")
            .field("url", &self.url)
            .finish()
    }
}

/// A poisoned lock still holds sound data here: every critical section is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    // Ends with the task: connections must not outlive the proxy.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let state = state.clone();
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let state = state.clone();
            async move { exchange::answer(&state, request).await }
        });
        connections.spawn(async move {
            let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            // An error here is a connection that a rule dropped, or that the client closed.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
            Ok::<_, Infallible>(())
        });
        while connections.try_join_next().is_some() {}
    }
}
