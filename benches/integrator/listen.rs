//! The integrator's listener over a stub, in this process, and clients that keep a connection each.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use intentd::{
    api::intents::{
        ROUTES, State,
        error::ERRORS,
        retirement::{Retirement, Throttle},
    },
    http::{Each, Gate, KeyLabel, Keys, Known, Limits, Router, Surface, auth::Table, serve},
    index::submitted::Transactions,
    quote::swaps::Swaps,
    store::{listing::Listing, requests::Requests},
};
use sha2::{Digest, Sha256};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::stub::{self, Stub};

/// Opens what needs a key.
pub const KEY: &str = "bench";
/// Never.
const RETIREMENT: Retirement = Retirement {
    deprecated_at: u64::MAX,
    throttled_from: u64::MAX,
    sunset_at: u64::MAX,
};

/// Opens it on a port of its own; it lives as long as the process.
pub async fn listen(stub: &Arc<Stub>, requests: &Requests) -> Result<SocketAddr> {
    let market = Arc::new(stub::market()?);
    let transactions = Transactions::new(market.clone(), HashMap::new(), requests.clone());
    let state = Arc::new(State {
        market,
        chains: HashMap::new(),
        prices: stub.clone(),
        swaps: Swaps::default(),
        capacity: stub.clone(),
        quoter: stub.quoter(requests.clone())?,
        requests: requests.clone(),
        listing: Listing::open(requests.store().clone()).await?,
        retiring: Throttle::new(RETIREMENT),
        recent: Default::default(),
        looks: Default::default(),
        tail_states: Default::default(),
        transactions: Arc::new(transactions),
        solver: stub::USER.to_owned(),
        clock: stub::now,
    });
    let router = Router::default().with(&state, ROUTES)?;
    let known = Known {
        label: KeyLabel::new("bench"),
        scopes: ["quote", "requests:read"].into(),
        plan: Default::default(),
        expires_at: None,
    };
    let table = Table::new([(Sha256::digest(KEY).into(), known)]);
    let keys = Keys::looked_up(move |digest| table.find(digest, 0));
    let surface = Surface {
        gate: Gate::new(Some(keys), None).or_bearer(),
        errors: ERRORS,
        limits: roomy(),
        ..Surface::new("integrator", "intentd integrator API", router)
    };
    let app = Arc::new(surface.open()?);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(serve(listener, app, CancellationToken::new()));
    Ok(address)
}

/// How long every request of a row took.
pub struct Measured {
    times: Vec<Duration>,
    whole: Duration,
}

impl Measured {
    pub fn new(mut times: Vec<Duration>, whole: Duration) -> Self {
        times.sort_unstable();
        Self { times, whole }
    }

    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// Answers per second, and the times that half and 99 of 100 did not exceed, in milliseconds.
    pub fn figures(&self) -> (f64, f64, f64) {
        let at = |share: usize| {
            let last = self.times.len().saturating_sub(1);
            let time = self.times.get(last * share / 100);
            time.copied().unwrap_or_default().as_secs_f64() * 1e3
        };
        let rate = self.times.len() as f64 / self.whole.as_secs_f64();
        (rate, at(50), at(99))
    }
}

/// Does `work` again and again, `at_once` times at the same time, until `limit` is over.
pub async fn repeat<F: Future<Output = Result<()>> + Send>(
    at_once: usize,
    limit: Duration,
    work: impl Fn(usize) -> F + Clone + Send + 'static,
) -> Result<Measured> {
    let (begun, next) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let mut workers = JoinSet::new();
    for _ in 0..at_once {
        let (work, next) = (work.clone(), next.clone());
        workers.spawn(async move {
            let mut times = Vec::new();
            while begun.elapsed() < limit {
                let number = next.fetch_add(1, Relaxed);
                let sent = Instant::now();
                work(number).await?;
                times.push(sent.elapsed());
                // Work that never waits would keep the others waiting.
                tokio::task::yield_now().await;
            }
            Ok::<_, anyhow::Error>(times)
        });
    }
    let mut times = Vec::new();
    while let Some(worker) = workers.join_next().await {
        times.extend(worker??);
    }
    Ok(Measured::new(times, begun.elapsed()))
}

/// Asks over `connections` connections until `limit` is over; any answer but a 200 is an error.
pub async fn ask(
    address: SocketAddr,
    connections: usize,
    limit: Duration,
    request: impl Fn(usize) -> Result<Request<Full<Bytes>>> + Clone + Send + 'static,
) -> Result<Measured> {
    let (begun, next) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let mut clients = JoinSet::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let (request, next) = (request.clone(), next.clone());
        clients.spawn(async move {
            let mut times = Vec::new();
            while begun.elapsed() < limit {
                let mut request = request(next.fetch_add(1, Relaxed))?;
                let host = address.to_string().parse()?;
                request.headers_mut().insert(header::HOST, host);
                let sent = Instant::now();
                sender.ready().await?;
                let response = sender.send_request(request).await?;
                let status = response.status();
                let body = response.into_body().collect().await?.to_bytes();
                times.push(sent.elapsed());
                if !status.is_success() {
                    bail!("{status}: {}", String::from_utf8_lossy(&body));
                }
            }
            Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(client) = clients.join_next().await {
        times.extend(client??);
    }
    Ok(Measured::new(times, begun.elapsed()))
}

/// Everybody comes from one address here.
fn roomy() -> Limits {
    let each = Each {
        connections: 20_000,
        requests: 20_000,
        sockets: 20_000,
        ..Each::default()
    };
    Limits {
        each,
        ..Limits::default()
    }
}
