//! How long the listing takes over many requests, and how long the daemon's store takes to start.
//!
//! `cargo bench --bench listing` writes a million requests to the disk, one in ten of them filled, opens
//! them in a fresh process and asks `/requests/v3` over http: each of twenty queries alone, then all
//! of them mixed, over one connection and over eight. The clients share the machine's cores with the
//! listener. `--directory` keeps the store and uses it again.

#![expect(
    clippy::print_stdout,
    clippy::float_arithmetic,
    reason = "a table for people"
)]

mod listen;
mod stub;

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use alloy::primitives::{B256, U256};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use clap::Parser;
use futures::stream::{self, TryStreamExt};
use http_body_util::Full;
use hyper::Request;
use intentd::{
    quote::body::Body,
    request::{
        self,
        fact::{Attempt, Deposit, Facts, Inclusion, Purpose, Standing, State},
        filter::{Asked, Caller, Edition},
    },
    store::{
        Batch,
        listing::{Cut, Listing},
        memory::MemoryStore,
        requests::Requests,
        sled::SledStore,
    },
};
use serde_json::Value;
use tempfile::TempDir;

use self::stub::Stub;

/// Measures listings.
#[derive(Debug, Parser)]
struct Arguments {
    /// Given by cargo; without it (as under `cargo test --benches`) nothing is measured.
    #[arg(long, hide = true)]
    bench: bool,
    /// Requests in the store.
    #[arg(long, default_value_t = 1_000_000)]
    requests: u64,
    /// How long a row is measured.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Where the store is, and stays.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// The store is there already.
    #[arg(long, hide = true)]
    filled: bool,
}

/// Requests that are written at a time.
const AT_ONCE: usize = 512;
const USERS: u64 = 5_000;
const HOUR: u64 = 3_600;
const BEGUN: u64 = 1_700_000_000;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.bench {
        return Ok(());
    }
    if arguments.filled {
        let directory = arguments.directory.clone().context("no directory")?;
        return measure(&arguments, &directory).await;
    }
    let own = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
    let directory = arguments.directory.as_deref().unwrap_or(own.path());
    fill(directory, arguments.requests).await?;
    let mut again = Command::new(std::env::current_exe()?);
    again
        .args(["--bench", "--filled", "--directory"])
        .arg(directory);
    again.args(["--requests", &arguments.requests.to_string()]);
    again.args(["--seconds", &arguments.seconds.to_string()]);
    let status = tokio::task::spawn_blocking(move || again.status()).await??;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// As if at random, and always the same.
fn mixed(number: u64) -> u64 {
    let mut n = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

fn word(kind: u8, number: u64) -> B256 {
    let mut word = B256::left_padding_from(&number.to_be_bytes());
    word.0[0] = kind;
    let n = mixed(number).to_be_bytes();
    word.0[1..9].copy_from_slice(&n);
    word
}

fn user(number: u64) -> String {
    format!("0x{:040x}", mixed(number % USERS))
}

/// As a quote made then would name it.
fn id(number: u64, all: u64) -> B256 {
    request::id(created(number, all) * 1000, word(1, number))
}

/// Seconds of the creation: a year of requests.
fn created(number: u64, all: u64) -> u64 {
    BEGUN + number * (365 * 24 * HOUR) / all.max(1)
}

async fn fill(directory: &Path, all: u64) -> Result<()> {
    let begun = Instant::now();
    let store = Arc::new(SledStore::open(directory)?);
    let requests = Requests::new(store.clone());
    let listing = Listing::open(store).await?;
    listing.complete().await?;
    let kept = Requests::new(Arc::new(MemoryStore::new()));
    let quoter = Arc::new(Stub::default()).quoter(kept.clone())?;
    let (_, body) = stub::bodies().into_iter().nth(1).context("no body")?;
    let refused = |refused| anyhow::anyhow!("{refused:?}");
    let body = Body::read(body).map_err(refused)?;
    let answer = quoter.quote(&body, None).await.map_err(refused)?;
    let id: B256 = answer.steps[0].request_id.parse()?;
    let model = &kept.by_id(&id).await?.context("nothing was stored")?;
    stream::iter((0..all).map(Ok::<_, anyhow::Error>))
        .try_for_each_concurrent(AT_ONCE, |number| {
            let requests = requests.clone();
            async move { one(&requests, model, (number, all)).await }
        })
        .await?;
    println!(
        "{all} requests written in {:.0} s",
        begun.elapsed().as_secs_f64()
    );
    requests.store().close().await;
    Ok(())
}

async fn one(
    requests: &Requests,
    model: &request::Request,
    (number, all): (u64, u64),
) -> Result<()> {
    let mut request = model.clone();
    let n = mixed(number);
    request.id = id(number, all);
    request.order_id = word(2, number);
    request.user = user(n);
    request.recipient = user(n >> 8);
    request.created_at = created(number, all) * 1000;
    request.api_key = Some(format!("app{}", n % 7));
    if n.is_multiple_of(3) {
        request.origin.chain = 31_003;
    }
    let dollars = format!("{}.{:06}", n % 10_000, n % 1_000_000);
    let mut quoted: Value = serde_json::from_str(request.quoted.json())?;
    quoted["details"]["currencyIn"]["amountUsd"] = dollars.into();
    request.quoted = quoted.into();
    requests.insert(&request, Batch::new()).await?;
    if number.is_multiple_of(10) {
        let now = request.created_at + 20_000 + n % 60_000;
        let change = |facts: &mut Facts| filled(facts, &request, number);
        requests
            .record(&request.id, now, Batch::new(), change)
            .await?;
    }
    Ok(())
}

fn filled(facts: &mut Facts, request: &request::Request, number: u64) {
    let place = |after: u64| Inclusion {
        number: number + after,
        hash: word(3, number + after),
        time: request.created_at / 1000 + after,
    };
    facts.deposits.push(Deposit {
        onchain_id: word(4, number),
        network: request.origin.network.clone(),
        transaction: word(5, number).to_string(),
        depository: stub::USER.to_owned(),
        depositor: request.user.clone(),
        currency: request.origin.currency.clone(),
        amount: request.origin.amount,
        place: place(5),
        standing: Standing::Final,
        together: 1,
        own: true,
        named_by_other: false,
    });
    let purpose = if number.is_multiple_of(100) {
        Purpose::Refund
    } else {
        Purpose::Fill
    };
    facts.attempts.push(Attempt {
        purpose,
        deposit: None,
        network: request.destination.network.clone(),
        transaction: word(6, number).to_string(),
        currency: request.destination.currency.clone(),
        amount: U256::from(1),
        state: State::Confirmed(place(5 + number % 60)),
    });
}

/// Twenty questions.
fn queries(all: u64) -> Vec<String> {
    let middle = all / 2 / 10 * 10;
    let (name, deposit, fill) = (id(middle, all), word(5, middle), word(6, middle + 10));
    let (someone, order) = (user(mixed(middle)), word(2, middle));
    let (from, to) = (created(middle, all), created(middle, all) + 24 * HOUR);
    let groups =
        |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let both = groups(r#"[{"status":"refund"},{"originChainId":31003,"status":"success"}]"#);
    let ids: Vec<_> = (0..10).map(|n| id(n * 7, all).to_string()).collect();
    let ids = groups(&serde_json::json!([{ "id": ids }]).to_string());
    vec![
        String::new(),
        "limit=50".into(),
        format!("id={name}"),
        format!("orderId={order}"),
        format!("depositTxHash={deposit}"),
        format!("term={fill}"),
        format!("user={someone}"),
        format!("user={someone}&status=success&sortBy=updatedAt"),
        format!("recipient={someone}&sortBy=amountUsd"),
        "status=success&limit=50".into(),
        "status=success&sortBy=updatedAt&sortDirection=asc".into(),
        "status=refund".into(),
        "chainId=31003".into(),
        "originChainId=31003&status=refund&sortBy=amountUsd&sortDirection=desc".into(),
        format!("startTimestamp={from}&endTimestamp={to}&sortDirection=asc"),
        format!("startTimestamp={from}&endTimestamp={to}&requestType=Call"),
        "amountUsdMin=5000&amountUsdMax=5001&sortBy=amountUsd".into(),
        "fillTimeMin=50&features=app_fees,fast_fill".into(),
        format!("filters={both}&limit=50"),
        format!("filters={ids}"),
    ]
}

fn ask(query: &str) -> Result<Request<Full<Bytes>>> {
    let request = Request::get(format!("/requests/v3?{query}"));
    Ok(request
        .header("x-api-key", listen::KEY)
        .body(Full::new(Bytes::new()))?)
}

async fn measure(arguments: &Arguments, directory: &Path) -> Result<()> {
    let begun = Instant::now();
    let store = Arc::new(SledStore::open(directory)?);
    println!("opened in {:.2} s", begun.elapsed().as_secs_f64());
    let requests = Requests::open(store.clone()).await?;
    let stub = Arc::new(Stub::default());
    let address = listen::listen(&stub, &requests).await?;
    let queries = queries(arguments.requests);
    let first = queries[..1].to_vec();
    let get = move |_| ask(&first[0]);
    listen::ask(address, 1, Duration::ZERO, get).await?;
    println!(
        "ready in {:.2} s, resident {}",
        begun.elapsed().as_secs_f64(),
        resident()?
    );
    println!("connections    asked    per s   p50 ms   p99 ms   query");
    let limit = Duration::from_secs(arguments.seconds);
    for query in &queries {
        let own = query.clone();
        let measured = listen::ask(address, 1, limit, move |_| ask(&own)).await?;
        print_row(1, &measured, &query.chars().take(90).collect::<String>());
    }
    for connections in [1, 8] {
        let queries = queries.clone();
        let get = move |n: usize| ask(&queries[n % queries.len()]);
        let limit = limit.saturating_mul(5);
        print_row(
            connections,
            &listen::ask(address, connections, limit, get).await?,
            "all of them",
        );
    }
    let listing = Listing::open(store).await?;
    let room = move |n: usize| look(listing.clone(), queries[n % queries.len()].clone());
    print_row(
        0,
        &listen::repeat(1, limit, room).await?,
        "all of them, without http and records",
    );
    println!("resident {}", resident()?);
    requests.store().close().await;
    Ok(())
}

/// A page as the listing finds it.
async fn look(listing: Listing, query: String) -> Result<()> {
    let pairs = url::form_urlencoded::parse(query.as_bytes()).into_owned();
    let asked = Asked::parse(Edition::V3, pairs, &Caller::default(), &[])?;
    let cut = Cut {
        limit: asked.limit,
        continuation: None,
        total: false,
    };
    let page = listing.page(&asked.query, cut).await?;
    std::hint::black_box(page);
    Ok(())
}

fn print_row(connections: usize, measured: &listen::Measured, query: &str) {
    let (rate, middle, most) = measured.figures();
    let count = measured.count();
    println!("{connections:>11} {count:>8} {rate:>8.0} {middle:>8.3} {most:>8.3}   {query}");
}

fn resident() -> Result<String> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    Ok(line.context("no VmRSS")?.trim().to_owned())
}
