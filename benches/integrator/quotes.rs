//! How many quotes a second, and how long each takes on our side.
//!
//! `cargo bench --bench quotes`: providers, prices and the solver's balances answer at once, from
//! memory ([`stub`]), so that what is left is ours. One row:
//!
//! - **store**: `memory`, or `disk`, where the request is durable before the answer is given and a
//!   row with one quote at a time is the disk's own time for a sync.
//! - **way**: `room` is everything from the body's bytes to the answer's bytes without a socket;
//!   `http` is the listener with its clients, which share the machine's cores with it.
//! - **quote**: `native` and `erc20` are plain payments, `call` a destination call that is simulated
//!   and encoded for the router.
//! - **estimate**: what a gas estimate, which is also the simulation, takes at the provider: the
//!   rows with 20 ms show what a quote waits for it. **reads** and **estimates** are per quote.
//!
//! `-- --kept 100000` measures what so many quotes that nobody acts on take of the disk instead, and
//! fails above 2 KB each.
//!
//! `-- --families` measures quotes of users of every family that trades instead, side by side: [`families`].
//!
//! Figures of a busy machine are the machine's: compare rows of one run.

#![expect(
    clippy::print_stdout,
    clippy::float_arithmetic,
    reason = "a table for people"
)]

mod families;
mod listen;
mod stub;

use std::{
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Result, anyhow};
use bytes::Bytes;
use clap::Parser;
use http_body_util::Full;
use hyper::Request;
use intentd::{
    quote::{body::Body, service::Quoter},
    store::{Store, memory::MemoryStore, requests::Requests, sled::SledStore},
};
use tempfile::TempDir;

use self::{listen::Measured, stub::Stub};

/// Measures quotes per second and their latency.
#[derive(Debug, Parser)]
struct Arguments {
    /// Given by cargo; without it (as under `cargo test --benches`) nothing is measured.
    #[arg(long, hide = true)]
    bench: bool,
    /// How long a row is measured.
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Only rows of this store: memory or disk.
    #[arg(long)]
    store: Option<String>,
    /// Measure the disk that so many quotes take instead.
    #[arg(long)]
    kept: Option<u64>,
    /// Measure quotes of users of every family that trades instead.
    #[arg(long)]
    families: bool,
}

/// Bytes on the disk that a quote may take.
const KEPT: u64 = 2_048;

struct Row {
    store: &'static str,
    way: &'static str,
    at_once: usize,
    estimate: Duration,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.bench {
        return Ok(());
    }
    if let Some(count) = arguments.kept {
        return kept(count).await;
    }
    if arguments.families {
        return families::rows(Duration::from_secs(arguments.seconds)).await;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{} s a row, {cores} cores for all", arguments.seconds);
    println!(
        "store   way   quote   at once  estimate ms    per s   p50 ms   p99 ms  reads  estimates"
    );
    let (none, slow) = (Duration::ZERO, Duration::from_millis(20));
    for store in ["memory", "disk"] {
        if arguments.store.as_deref().is_some_and(|only| only != store) {
            continue;
        }
        for (way, at_once, estimate) in [
            ("room", 1, none),
            ("room", 32, none),
            ("http", 32, none),
            ("room", 32, slow),
        ] {
            let row = Row {
                store,
                way,
                at_once,
                estimate,
            };
            rows(&arguments, &row).await?;
        }
    }
    Ok(())
}

async fn rows(arguments: &Arguments, row: &Row) -> Result<()> {
    let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
    let store: Arc<dyn Store> = match row.store {
        "disk" => Arc::new(SledStore::open(directory.path())?),
        _ => Arc::new(MemoryStore::new()),
    };
    let requests = Requests::new(store.clone());
    let limit = Duration::from_secs(arguments.seconds);
    for (name, body) in stub::bodies() {
        let stub = Arc::new(Stub {
            estimate: row.estimate,
            ..Stub::default()
        });
        let body = Bytes::from(body.to_string());
        let measured = if row.way == "http" {
            let address = listen::listen(&stub, &requests).await?;
            let post = move |_| {
                let request = Request::post("/quote/v2");
                let request = request.header("content-type", "application/json");
                Ok(request.body(Full::new(body.clone()))?)
            };
            listen::ask(address, row.at_once, limit, post).await?
        } else {
            let quoter = Arc::new(stub.quoter(requests.clone())?);
            let work = move |_| quote(quoter.clone(), body.clone());
            listen::repeat(row.at_once, limit, work).await?
        };
        print_row(row, name, (&stub, &measured));
    }
    store.close().await;
    Ok(())
}

/// Takes `count` quotes of every sort in turn, each of a user of its own, and looks at the disk.
async fn kept(count: u64) -> Result<()> {
    let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
    let store = Arc::new(SledStore::open(directory.path())?);
    let quoter = Arc::new(Arc::new(Stub::default()).quoter(Requests::new(store.clone()))?);
    let bodies: Vec<_> = stub::bodies().into_iter().map(|(_, body)| body).collect();
    for first in (0..count).step_by(256) {
        let some = (first..count.min(first + 256)).map(|number| {
            let mut body =
                bodies[usize::try_from(number).unwrap_or_default() % bodies.len()].clone();
            let user = alloy::primitives::keccak256(number.to_be_bytes());
            body["user"] = format!("{:#x}", alloy::primitives::Address::from_word(user)).into();
            quote(quoter.clone(), Bytes::from(body.to_string()))
        });
        futures::future::try_join_all(some).await?;
    }
    store.close().await;
    let each = size(directory.path())? / count;
    println!("{each} bytes on the disk for each of {count} quotes");
    anyhow::ensure!(each <= KEPT, "more than {KEPT}");
    Ok(())
}

/// Bytes that the files of a directory take.
fn size(path: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => size(&entry.path())?,
            false => entry.metadata()?.blocks() * 512,
        };
    }
    Ok(bytes)
}

/// From bytes to bytes.
async fn quote(quoter: Arc<Quoter>, body: Bytes) -> Result<()> {
    let refused = |refused| anyhow!("{refused:?}");
    let body = Body::read(serde_json::from_slice(&body)?).map_err(refused)?;
    let answer = quoter.quote(&body, None).await.map_err(refused)?;
    let written = serde_json::to_vec(&answer)?;
    std::hint::black_box(written);
    Ok(())
}

fn print_row(row: &Row, name: &str, (stub, measured): (&Stub, &Measured)) {
    let Row {
        store,
        way,
        at_once,
        estimate,
    } = row;
    let each = |count: u64| count as f64 / measured.count() as f64;
    let estimates = stub.estimates.load(Relaxed);
    let reads = stub.chain.asked() - estimates;
    let (rate, middle, most) = measured.figures();
    println!(
        "{store:<7} {way:<5} {name:<7} {at_once:>7} {:>12} {rate:>8.0} {middle:>8.3} {most:>8.3} {:>6.1} {:>10.1}",
        estimate.as_millis(),
        each(reads),
        each(estimates),
    );
}
