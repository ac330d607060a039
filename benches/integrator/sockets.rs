//! What many open sockets cost, and how soon they hear.
//!
//! `cargo bench --bench sockets` quotes as many requests as there shall be sockets, opens a WebSocket
//! for each from a process of its own, lets all of them idle, and then changes statuses at a steady rate,
//! each the request of one socket. It prints what the serving process holds for a socket, and how long
//! an event takes: `commit`, from its being durable to its being read from the socket by the other
//! process, and `whole`, from before the write. Both processes share the machine's cores.

#![expect(clippy::print_stdout, reason = "a table for people")]
#![allow(clippy::float_arithmetic, reason = "a table for people")]

mod quoted;
mod stub;

use std::{
    collections::HashMap,
    net::SocketAddr,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use alloy::primitives::B256;
use anyhow::{Context, Result, bail};
use clap::Parser;
use futures::{
    SinkExt,
    stream::{self, StreamExt, TryStreamExt},
};
use intentd::{
    api::intents::{error::ERRORS, events::ROUTES},
    http::{Router, Surface, serve},
    request::fact::Facts,
    store::{Batch, requests::Requests, sled::SledStore},
    stream::Fanout,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    process::Command,
    task::JoinSet,
    time::MissedTickBehavior,
};
use tokio_tungstenite::{
    client_async_with_config,
    tungstenite::{Message, protocol::WebSocketConfig},
};
use tokio_util::sync::CancellationToken;

use self::{
    quoted::{deposit, quote},
    stub::Stub,
};

/// Measures sockets: what they hold, and how soon they hear.
#[derive(Debug, Parser)]
struct Arguments {
    /// Given by cargo; without it (as under `cargo test --benches`) nothing is measured.
    #[arg(long, hide = true)]
    bench: bool,
    /// Open sockets, each with one subscription.
    #[arg(long, default_value_t = 10_000)]
    sockets: usize,
    /// Events a second.
    #[arg(long, default_value_t = 1_000)]
    events: u64,
    /// How long events happen.
    #[arg(long, default_value_t = 15)]
    seconds: u64,
    /// Opens sockets to this address; the ids of their requests come on standard input.
    #[arg(long, hide = true)]
    client: Option<SocketAddr>,
}

/// When an event was durable, and when it was begun, by its `publishedAt`.
type Committed = Arc<Mutex<HashMap<u64, u64>>>;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let files = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: files.maximum,
        ..files
    };
    setrlimit(Resource::Nofile, all)?;
    if let Some(address) = arguments.client {
        return client(address).await;
    }
    if !arguments.bench {
        return Ok(());
    }
    let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
    let requests = Requests::open(Arc::new(SledStore::open(directory.path())?)).await?;
    let ids = quoted(&requests, arguments.sockets).await?;
    let address = listen(&requests).await?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "{} sockets, {} events/s, {cores} cores for all",
        ids.len(),
        arguments.events
    );

    let before = resident()?;
    let mut others = Others::open(address, &ids).await?;
    let held = resident()?.saturating_sub(before) as f64 / ids.len() as f64;
    println!("held for an idle socket: {held:.1} KiB");
    let committed = Committed::default();
    happen(&requests, &ids, &arguments, &committed).await?;
    let heard = others.heard().await?;
    print_row(&heard, &committed)?;
    let held = resident()?.saturating_sub(before) as f64 / ids.len() as f64;
    println!("held for a socket after that: {held:.1} KiB");
    requests.store().close().await;
    Ok(())
}

/// The process at the other end of the sockets.
struct Others {
    child: tokio::process::Child,
    lines: BufReader<tokio::process::ChildStdout>,
}

impl Others {
    async fn open(address: SocketAddr, ids: &[B256]) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--client", &address.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.as_mut().context("no pipe")?;
        let list: String = ids.iter().map(|id| format!("{id}\n")).collect();
        stdin
            .write_all(format!("{}\n{list}", ids.len()).as_bytes())
            .await?;
        let mut lines = BufReader::new(child.stdout.take().context("no pipe")?);
        let mut ready = String::new();
        lines.read_line(&mut ready).await?;
        if ready != "ready\n" {
            bail!("the sockets were not opened: {ready}");
        }
        // What it took to open them is given back.
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(Self { child, lines })
    }

    /// `publishedAt` and the time of arrival of everything that was heard.
    async fn heard(&mut self) -> Result<Vec<(u64, u64)>> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.lines.read_to_string(&mut text).await?;
        let pair = |line: &str| {
            let (at, came) = line.split_once(' ').context("no pair")?;
            Ok((at.parse()?, came.parse()?))
        };
        text.lines().map(pair).collect()
    }
}

async fn listen(requests: &Requests) -> Result<SocketAddr> {
    let fanout = Fanout::new(requests.clone());
    tokio::spawn(fanout.clone().run(CancellationToken::new()));
    let router = Router::default().with(&fanout, &ROUTES)?;
    let surface = Surface {
        errors: ERRORS,
        ..Surface::new("integrator", "intentd integrator API", router)
    };
    let app = Arc::new(surface.open()?);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(serve(listener, app, CancellationToken::new()));
    Ok(address)
}

async fn quoted(requests: &Requests, count: usize) -> Result<Vec<B256>> {
    let quoter = Arc::new(Stub::default()).quoter(requests.clone())?;
    let one = |_| quote(&quoter);
    stream::iter(0..count)
        .map(one)
        .buffer_unordered(256)
        .try_collect()
        .await
}

/// Changes statuses at the rate that was asked for.
async fn happen(
    requests: &Requests,
    ids: &[B256],
    arguments: &Arguments,
    committed: &Committed,
) -> Result<()> {
    let mut pace = tokio::time::interval(Duration::from_micros(1_000_000 / arguments.events));
    pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut writing = JoinSet::new();
    let mut last = 0;
    for number in 0..usize::try_from(arguments.events * arguments.seconds)? {
        pace.tick().await;
        let id = ids[number.wrapping_mul(7_919) % ids.len()];
        // Microseconds, where the daemon has milliseconds; no two events have the same.
        let at = micros().max(last + 1);
        last = at;
        let (requests, committed) = (requests.clone(), committed.clone());
        writing.spawn(async move {
            let done = requests.record(&id, at, Batch::new(), |facts| step(facts, id));
            done.await?;
            let mut committed = committed.lock().unwrap_or_else(PoisonError::into_inner);
            committed.insert(at, micros());
            Ok::<_, anyhow::Error>(())
        });
        while let Some(written) = writing.try_join_next() {
            written??;
        }
    }
    while let Some(written) = writing.join_next().await {
        written??;
    }
    Ok(())
}

/// The status goes back and forth.
fn step(facts: &mut Facts, id: B256) {
    if facts.deposits.pop().is_some() {
        return;
    }
    facts.deposits.push(deposit(id));
}

fn print_row(heard: &[(u64, u64)], committed: &Committed) -> Result<()> {
    let committed = committed.lock().unwrap_or_else(PoisonError::into_inner);
    let known = heard.iter().filter_map(|(at, came)| {
        let durable = committed.get(at)?;
        Some((came.saturating_sub(*durable), came.saturating_sub(*at)))
    });
    let (mut commit, mut whole): (Vec<u64>, Vec<u64>) = known.unzip();
    if commit.len() != committed.len() {
        bail!("{} events, {} of them heard", committed.len(), commit.len());
    }
    println!("events {}", commit.len());
    println!("from      p50 ms   p99 ms   max ms");
    for (from, times) in [("commit", &mut commit), ("whole", &mut whole)] {
        times.sort_unstable();
        let at = |share: usize| {
            let last = times.len().saturating_sub(1);
            times
                .get(last * share / 100)
                .map_or(0.0, |time| *time as f64 / 1e3)
        };
        println!("{from:<7} {:>8.3} {:>8.3} {:>8.3}", at(50), at(99), at(100));
    }
    Ok(())
}

/// What this process holds in memory, in KiB.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"));
    let text = line.context("no VmRSS")?.trim().trim_end_matches(" kB");
    Ok(text.parse()?)
}

/// Unix microseconds.
#[expect(clippy::disallowed_methods, reason = "this is the composition root")]
fn micros() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(0))
}

/// Opens a socket for each id on standard input, says so, and says at the end what was heard.
async fn client(address: SocketAddr) -> Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let count: usize = lines.next_line().await?.context("no count")?.parse()?;
    let mut ids = Vec::with_capacity(count);
    for _ in 0..count {
        ids.push(lines.next_line().await?.context("too few ids")?);
    }
    let heard = Arc::new(Mutex::new(Vec::new()));
    let opened = stream::iter(ids)
        .map(|id| follow(address, id, heard.clone()))
        .buffer_unordered(64);
    opened.try_collect::<Vec<()>>().await?;
    println!("ready");
    while lines.next_line().await?.is_some() {}
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    for (at, came) in heard.iter() {
        println!("{at} {came}");
    }
    Ok(())
}

/// Returns when the socket was shown where its request stands, and listens on.
async fn follow(address: SocketAddr, id: String, heard: Arc<Mutex<Vec<(u64, u64)>>>) -> Result<()> {
    let stream = TcpStream::connect(address).await?;
    let config = WebSocketConfig::default().read_buffer_size(4096);
    let url = format!("ws://{address}/");
    let (mut socket, _) = client_async_with_config(url, stream, Some(config)).await?;
    let asked = format!(
        r#"{{"type":"subscribe","event":"request.status.updated","filters":{{"id":"{id}"}}}}"#
    );
    socket.send(Message::text(asked)).await?;
    for _ in 0..3 {
        socket.next().await.context("closed")??;
    }
    tokio::spawn(async move {
        while let Some(Ok(message)) = socket.next().await {
            let came = micros();
            let Message::Text(text) = message else {
                continue;
            };
            let at = text
                .rsplit_once(":")
                .and_then(|(_, at)| at.strip_suffix('}')?.parse().ok());
            if let Some(at) = at {
                heard
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push((at, came));
            }
        }
    });
    Ok(())
}
