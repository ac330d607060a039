//! How many statuses are read a second.
//!
//! `cargo bench --bench status` quotes requests into a store on the disk, gives each a final deposit
//! and a confirmed fill, and reads their statuses in no order: in the `room` (rows, status, answer's
//! bytes) and over `http`, where the clients share the machine's cores with the listener. The last
//! rows are read while quotes are being written beside them.

#![expect(clippy::print_stdout, reason = "a table for people")]
#![allow(clippy::float_arithmetic, reason = "a table for people")]

mod listen;
mod quoted;
mod stub;

use std::{sync::Arc, time::Duration};

use alloy::primitives::{B256, U256};
use anyhow::{Context, Result};
use bytes::Bytes;
use clap::Parser;
use futures::stream::{self, StreamExt, TryStreamExt};
use http_body_util::Full;
use hyper::Request;
use intentd::{
    quote::service::Quoter,
    request::{
        fact::{Attempt, Facts, Purpose, State},
        render,
    },
    store::{Batch, requests::Requests, sled::SledStore},
};
use serde_json::Value;
use tempfile::TempDir;

use self::{
    listen::Measured,
    quoted::{deposit, quote},
    stub::Stub,
};

/// Measures status reads per second.
#[derive(Debug, Parser)]
struct Arguments {
    /// Given by cargo; without it (as under `cargo test --benches`) nothing is measured.
    #[arg(long, hide = true)]
    bench: bool,
    /// How long a row is measured.
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Requests in the store.
    #[arg(long, default_value_t = 10_000)]
    requests: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.bench {
        return Ok(());
    }
    let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
    let requests = Requests::new(Arc::new(SledStore::open(directory.path())?));
    let stub = Arc::new(Stub::default());
    let quoter = Arc::new(stub.quoter(requests.clone())?);
    let ids = filled(&quoter, &requests, arguments.requests).await?;
    let limit = Duration::from_secs(arguments.seconds);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{} requests, {cores} cores for all", ids.len());
    println!("way   beside   at once    reads    per s   p50 ms   p99 ms");
    for at_once in [1, 32] {
        let (requests, ids) = (requests.clone(), ids.clone());
        let work = move |number| status(requests.clone(), id(&ids, number));
        print_row(
            "room",
            "nothing",
            at_once,
            &listen::repeat(at_once, limit, work).await?,
        );
    }
    let address = listen::listen(&stub, &requests).await?;
    for beside in ["nothing", "quotes"] {
        let ids = ids.clone();
        let get = move |number| {
            let id = id(&ids, number);
            let request = Request::get(format!("/intents/status/v3?requestId={id}"));
            Ok(request.body(Full::new(Bytes::new()))?)
        };
        let quotes = (beside == "quotes").then(|| tokio::spawn(quoting(quoter.clone())));
        print_row(
            "http",
            beside,
            32,
            &listen::ask(address, 32, limit, get).await?,
        );
        if let Some(quotes) = quotes {
            quotes.abort();
        }
    }
    requests.store().close().await;
    Ok(())
}

/// One of them, as if at random.
fn id(ids: &[B256], number: usize) -> B256 {
    ids.get(number.wrapping_mul(7_919) % ids.len())
        .copied()
        .unwrap_or_default()
}

async fn quoting(quoter: Arc<Quoter>) {
    while quote(&quoter).await.is_ok() {}
}

/// Requests that were quoted, deposited and filled.
async fn filled(quoter: &Quoter, requests: &Requests, count: usize) -> Result<Arc<[B256]>> {
    let one = |_| async {
        let id = quote(quoter).await?;
        let change = |facts: &mut Facts| seen(facts, id);
        requests
            .record(&id, stub::now(), Batch::new(), change)
            .await?;
        Ok::<_, anyhow::Error>(id)
    };
    let ids = stream::iter(0..count).map(one).buffer_unordered(256);
    Ok(ids.try_collect::<Vec<_>>().await?.into())
}

fn seen(facts: &mut Facts, id: B256) {
    let deposit = deposit(id);
    let place = deposit.place.clone();
    facts.deposits.push(deposit);
    facts.attempts.push(Attempt {
        purpose: Purpose::Fill,
        deposit: None,
        network: "destination".into(),
        transaction: id.to_string(),
        currency: stub::NATIVE.into(),
        amount: U256::from(5),
        state: State::Confirmed(place),
    });
}

/// From the id to the answer's bytes.
async fn status(requests: Requests, id: B256) -> Result<()> {
    let request = requests.by_id(&id).await?.context("unknown")?;
    let facts = requests.facts(&id).await?;
    let written = serde_json::to_vec(&render::v3(&request, &facts))?;
    let said: Value = serde_json::from_slice(&written)?;
    anyhow::ensure!(said["status"] == "success", "{said}");
    Ok(())
}

fn print_row(way: &str, beside: &str, at_once: usize, measured: &Measured) {
    let (rate, middle, most) = measured.figures();
    let count = measured.count();
    println!("{way:<5} {beside:<8} {at_once:>7} {count:>8} {rate:>8.0} {middle:>8.3} {most:>8.3}");
}
