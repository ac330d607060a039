//! How many webhooks a second reach 1,000 endpoints of which some are dead and some are slow.
//!
//! `cargo bench --bench webhooks` keeps requests in a store on the disk. Row `backlog`: events that
//! were there before the daemon. Row `live`: facts that are recorded one after the other, so many a
//! second; the latency is from the fact to the receiver and says what an integrator waits. Every
//! endpoint has an address of its own (127.0.x.y), with connections of its own; receivers share the
//! machine's cores with the sender. A dead one refuses connections, a slow one takes two seconds.

#![expect(clippy::print_stdout, reason = "a table for people")]
#![allow(clippy::float_arithmetic, reason = "a table for people")]

#[path = "../../tests/support/request.rs"]
mod request;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result};
use clap::Parser;
use futures::stream::{self, StreamExt, TryStreamExt};
use intentd::{
    integrator::{Integrator, Key, Tier, Webhook},
    store::{
        Batch, Store,
        integrators::{Integrators, IntegratorsError},
        requests::Requests,
        sled::SledStore,
    },
    webhook::{self, WebhookContext, guard::Reach, post::HttpSender},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

/// Measures webhooks per second.
#[derive(Clone, Debug, Parser)]
struct Arguments {
    /// Given by cargo; without it (as under `cargo test --benches`) nothing is measured.
    #[arg(long, hide = true)]
    bench: bool,
    #[arg(long, default_value_t = 1_000)]
    endpoints: u64,
    /// Dead endpoints of a hundred, and slow ones.
    #[arg(long, default_value_t = 5)]
    sick: u64,
    /// Events of the backlog.
    #[arg(long, default_value_t = 50_000)]
    events: u64,
    /// Facts a second of the live rows.
    #[arg(long, value_delimiter = ',', default_values_t = [500, 1_000, 2_000])]
    live: Vec<u64>,
    /// How long a live row takes.
    #[arg(long, default_value_t = 8)]
    seconds: u64,
}

/// What became of an endpoint's calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Healthy,
    Dead,
    Slow,
}

impl Arguments {
    fn health(&self, endpoint: u64) -> Health {
        match endpoint % 100 {
            n if n < self.sick => Health::Dead,
            n if n < 2 * self.sick => Health::Slow,
            _ => Health::Healthy,
        }
    }
}

/// Latencies of healthy endpoints in milliseconds.
#[derive(Default)]
struct Heard {
    healthy: AtomicU64,
    latencies: Mutex<Vec<u64>>,
}

#[expect(clippy::disallowed_methods, reason = "a bench has no composition root")]
fn millis() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.bench {
        return Ok(());
    }
    let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let heard = Arc::new(Heard::default());
    let (hearing, at) = std::sync::mpsc::channel();
    let counted = heard.clone();
    std::thread::spawn(move || -> Result<()> {
        let receivers = tokio::runtime::Builder::new_current_thread();
        let receivers = { receivers }.enable_all().build()?;
        receivers.block_on(async {
            let listener = TcpListener::bind("0.0.0.0:0").await?;
            hearing.send(listener.local_addr()?.port())?;
            loop {
                let (stream, _) = listener.accept().await?;
                tokio::spawn(receive(stream, counted.clone()));
            }
        })
    });
    let port = at.recv()?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(measure(arguments, port, heard))
}

/// Answers calls: at once, or on the path `/slow` after two seconds.
async fn receive(mut stream: TcpStream, heard: Arc<Heard>) -> Option<()> {
    let mut read = Vec::with_capacity(2_048);
    loop {
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
        let text = std::str::from_utf8(&read).ok()?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.split_once("content-length: ")?.1.lines().next()?;
        if body.len() < length.parse().ok()? {
            continue;
        }
        if head.starts_with("POST /slow") {
            tokio::time::sleep(Duration::from_secs(2)).await;
        } else {
            let happened = body.split_once("\"timestamp\":")?.1.split(',').next()?;
            let latency = millis().saturating_sub(happened.parse().ok()?);
            let latencies = heard.latencies.lock();
            latencies
                .unwrap_or_else(PoisonError::into_inner)
                .push(latency);
            heard.healthy.fetch_add(1, Relaxed);
        }
        read.clear();
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).await.ok()?;
    }
}

fn label(endpoint: u64) -> String {
    format!("app {endpoint}")
}

async fn add(
    integrators: &Integrators,
    arguments: &Arguments,
    endpoint: u64,
    port: u16,
) -> Result<()> {
    let host = format!("127.0.{}.{}", 1 + endpoint / 250, 1 + endpoint % 250);
    let url = match arguments.health(endpoint) {
        Health::Healthy => format!("http://{host}:{port}/hook"),
        Health::Slow => format!("http://{host}:{port}/slow"),
        Health::Dead => format!("http://{host}:1/"),
    };
    let webhook = Webhook {
        url: url.parse()?,
        headers: BTreeMap::from([("authorization".to_owned(), "Bearer x".to_owned())]),
    };
    let integrator = Integrator {
        label: label(endpoint),
        scopes: [].into(),
        tier: Tier::Default,
        keys: vec![Key {
            digest: [7; 32],
            created_at: 1,
            expires_at: None,
        }],
        webhook: Some(webhook),
        wallet: None,
        proved_at: 0,
        created_at: 1,
        revoked_at: None,
    };
    let put = |_| Ok::<_, IntegratorsError>(integrator.clone());
    integrators.change(&integrator.label, put).await?;
    Ok(())
}

async fn happen(requests: &Requests, number: u64) -> Result<()> {
    let id = alloy::primitives::B256::left_padding_from(&number.to_be_bytes());
    let change = |facts: &mut _| request::paid(facts, number);
    requests.record(&id, millis(), Batch::new(), change).await?;
    Ok(())
}

/// Endpoints, all requests, and the events of the backlog.
async fn prepare(
    arguments: &Arguments,
    port: u16,
    (requests, integrators): (&Requests, &Integrators),
) -> Result<()> {
    let adding = (0..arguments.endpoints).map(|n| add(integrators, arguments, n, port));
    stream::iter(adding)
        .buffer_unordered(256)
        .try_collect::<Vec<()>>()
        .await?;
    let live: u64 = arguments.live.iter().sum::<u64>() * arguments.seconds;
    let all = arguments.events + live;
    let making = (1..=all).map(|number| {
        let (requests, endpoints) = (requests, arguments.endpoints);
        async move {
            let request = request::request(number, &label(number % endpoints));
            requests.insert(&request, Batch::new()).await?;
            Ok::<_, anyhow::Error>(())
        }
    });
    stream::iter(making)
        .buffer_unordered(512)
        .try_collect::<Vec<()>>()
        .await?;
    let past = (1..=arguments.events).map(|number| happen(requests, number));
    stream::iter(past)
        .buffer_unordered(512)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

async fn measure(arguments: Arguments, port: u16, heard: Arc<Heard>) -> Result<()> {
    let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
    let store: Arc<dyn Store> = Arc::new(SledStore::open(directory.path())?);
    let requests = Requests::open(store.clone()).await?;
    let integrators = Integrators::open(store.clone()).await?;
    prepare(&arguments, port, (&requests, &integrators)).await?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (endpoints, sick) = (arguments.endpoints, arguments.sick);
    println!("{endpoints} endpoints, {sick} % dead, {sick} % slow, {cores} cores for all");
    println!("row            facts  told  seconds   per s   p50 ms   p99 ms   max ms");
    let (_desk, worker) = webhook::open(WebhookContext {
        requests: requests.clone(),
        integrators,
        post: Arc::new(HttpSender::new(Reach::Anywhere)?),
        reach: Reach::Anywhere,
        clock: Box::new(millis),
        random: || 200,
    });
    let shutdown = CancellationToken::new();
    let working = tokio::spawn(worker.run(shutdown.clone()));
    let begun = Instant::now();
    let wanted = healthy(&arguments, 1..=arguments.events);
    received(&heard, wanted).await;
    print_row("backlog", arguments.events, &heard, begun.elapsed());
    let mut next = arguments.events + 1;
    for rate in arguments.live.clone() {
        let last = next + rate * arguments.seconds - 1;
        let begun = Instant::now();
        live_row(&requests, next..=last, rate).await?;
        received(&heard, healthy(&arguments, next..=last)).await;
        print_row(
            &format!("live {rate}/s"),
            last + 1 - next,
            &heard,
            begun.elapsed(),
        );
        next = last + 1;
    }
    shutdown.cancel();
    working.await.context("the worker died")?;
    store.close().await;
    Ok(())
}

/// Events of healthy endpoints among these.
fn healthy(arguments: &Arguments, numbers: std::ops::RangeInclusive<u64>) -> u64 {
    let is = |number: &u64| arguments.health(number % arguments.endpoints) == Health::Healthy;
    numbers.filter(is).count() as u64
}

/// Facts at a steady rate, however long each takes.
async fn live_row(
    requests: &Requests,
    numbers: std::ops::RangeInclusive<u64>,
    rate: u64,
) -> Result<()> {
    const TICK: Duration = Duration::from_millis(10);
    let mut ticks = tokio::time::interval(TICK);
    let mut tasks = tokio::task::JoinSet::new();
    let mut numbers = numbers.peekable();
    while numbers.peek().is_some() {
        ticks.tick().await;
        for number in numbers.by_ref().take(usize::try_from(rate / 100)?) {
            let requests = requests.clone();
            tasks.spawn(async move { happen(&requests, number).await });
        }
    }
    while let Some(happened) = tasks.join_next().await {
        happened??;
    }
    Ok(())
}

async fn received(heard: &Heard, wanted: u64) {
    let mut looks = tokio::time::interval(Duration::from_millis(5));
    while heard.healthy.load(Relaxed) < wanted {
        looks.tick().await;
    }
}

fn print_row(row: &str, facts: u64, heard: &Heard, took: Duration) {
    let latencies = heard.latencies.lock();
    let mut latencies = std::mem::take(&mut *latencies.unwrap_or_else(PoisonError::into_inner));
    let received = heard.healthy.swap(0, Relaxed);
    latencies.sort_unstable();
    let at = |percent: usize| {
        latencies.get((latencies.len() * percent / 100).min(latencies.len().saturating_sub(1)))
    };
    let at = |percent| at(percent).copied().unwrap_or_default();
    let seconds = took.as_secs_f64();
    let rate = received as f64 / seconds;
    println!(
        "{row:<12} {facts:>7} {received:>6} {seconds:>7.2} {rate:>8.0} {:>8} {:>8} {:>8}",
        at(50),
        at(99),
        at(100)
    );
}
