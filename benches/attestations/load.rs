//! Clients that keep a connection each and ask for the next transaction as soon as they are
//! answered.

use std::{
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
use tokio::{net::TcpStream, task::JoinSet};

pub const DEPOSIT: &str = "/attestations/depository-deposits/v1";
pub const FILL: &str = "/attestations/solver-fills/v1";

/// Plain requests to the node whose median is one round trip.
const PROBES: usize = 25;

/// Who asks whom, for how long at most.
pub struct Load {
    pub address: SocketAddr,
    pub connections: usize,
    pub limit: Duration,
}

/// How long every request of a row took.
pub struct Measured {
    times: Vec<Duration>,
    whole: Duration,
}

impl Measured {
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// Answers per second.
    pub fn rate(&self) -> f64 {
        self.times.len() as f64 / self.whole.as_secs_f64()
    }

    /// The time that `share` of the requests did not exceed.
    pub fn quantile(&self, share: f64) -> Duration {
        let last = self.times.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count"
        )]
        let at = (last as f64 * share).round() as usize;
        self.times.get(at).copied().unwrap_or_default()
    }
}

impl Load {
    /// Posts each of `bodies` once, in their order, until they or the time are used up. Any answer
    /// that is not a signed attestation is an error.
    pub async fn run(&self, route: &'static str, bodies: &[Bytes]) -> Result<Measured> {
        let bodies: Arc<[Bytes]> = bodies.into();
        let next = Arc::new(AtomicUsize::new(0));
        let begun = Instant::now();
        let mut clients = JoinSet::new();
        for _ in 0..self.connections {
            let (bodies, next) = (bodies.clone(), next.clone());
            let (mut client, limit) = (Client::open(self.address).await?, self.limit);
            clients.spawn(async move {
                let mut times = Vec::new();
                while begun.elapsed() < limit {
                    let Some(body) = bodies.get(next.fetch_add(1, Relaxed)) else {
                        break;
                    };
                    let sent = Instant::now();
                    let answer = client.post(route, body.clone()).await?;
                    times.push(sent.elapsed());
                    if !answer.windows(12).any(|text| text == b"\"signatures\"") {
                        bail!("no attestation: {}", String::from_utf8_lossy(&answer));
                    }
                }
                Ok::<_, anyhow::Error>(times)
            });
        }
        let mut times = Vec::new();
        while let Some(client) = clients.join_next().await {
            times.extend(client??);
        }
        let whole = begun.elapsed();
        times.sort_unstable();
        Ok(Measured { times, whole })
    }
}

/// What one plain request to a provider takes while nothing else is asked of it: `call`.
pub async fn round_trip(url: &str, call: &'static str) -> Result<Duration> {
    let url: url::Url = url.parse()?;
    let address = url.socket_addrs(|| None)?[0];
    let mut client = Client::open(address).await?;
    let mut times = Vec::new();
    for _ in 0..PROBES {
        let sent = Instant::now();
        client
            .post(url.path(), Bytes::from_static(call.as_bytes()))
            .await?;
        times.push(sent.elapsed());
    }
    times.sort_unstable();
    let whole = times.iter().sum();
    Ok(Measured { times, whole }.quantile(0.5))
}

struct Client {
    sender: http1::SendRequest<Full<Bytes>>,
    host: String,
}

impl Client {
    async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self {
            sender,
            host: address.to_string(),
        })
    }

    async fn post(&mut self, path: &str, body: Bytes) -> Result<Bytes> {
        let request = Request::post(path)
            .header(header::HOST, &self.host)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            bail!("{status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }
}
