//! How many deposits a second are found in the past of a chain.
//!
//! `cargo bench --bench backfill` makes deposits on an anvil of its own, many in one transaction, and
//! reads them back through one provider:
//!
//! - `scan` reads ranges of 50 blocks and decodes them: nothing is kept.
//! - `index` is the daemon's tail from block 0 to the head: ranges that adapt, reorg checks, rows and
//!   cursor durable on the disk. Every deposit names another order: of `unknown` ones no request has
//!   it; in the rows with `1 %` every hundredth is ours, and its facts are durable before the next
//!   deposit is looked at.
//!
//! **node**: the share of the time that the node takes for the logs alone; it runs on the same cores.

#![expect(
    clippy::print_stdout,
    clippy::float_arithmetic,
    reason = "a table for people"
)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use alloy::{
    primitives::{B256, U256},
    sol_types::SolCall,
};
use anyhow::{Context, Result, anyhow, ensure};
use clap::Parser;
use devnet::{
    account::Account, artifact::Artifacts, contracts::Wallet, node::Payload, world::DevChain,
};
use intentd::{
    index::tail::{Step, Tail},
    market::Market,
    store::{Batch, Store, requests::Requests, sled::SledStore},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use vm::{ChainEntry, Endpoint, SETTLEMENT, trade::TradingProvider};

const CHAIN: u64 = 31_001;
const NAME: &str = "origin";
/// Blocks that are scanned at once: an answer with all of them would be refused as too large.
const RANGE: usize = 50;
/// One of so many deposits belongs to a request of ours.
const OURS: usize = 100;
const NOW: u64 = 1_800_000_000_000;

/// Measures deposits per second from a chain's past.
#[derive(Debug, Parser)]
struct Arguments {
    /// Given by cargo; without it (as under `cargo test --benches`) nothing is measured.
    #[arg(long, hide = true)]
    bench: bool,
    /// Blocks with one transaction each.
    #[arg(long, default_value_t = 200)]
    blocks: usize,
    /// Deposits of a transaction.
    #[arg(long, default_value_t = 100)]
    deposits: usize,
    /// How often each row is measured.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.bench {
        return Ok(());
    }
    let artifacts = Arc::new(tokio::task::spawn_blocking(Artifacts::load).await??);
    let allocator = Account::named("allocator")?;
    let site = DevChain::start(NAME, CHAIN, &allocator, artifacts).await?;
    deposit(&site, &arguments).await?;
    let provider = provider(&site)?;
    let events = arguments.blocks * arguments.deposits;
    let logs = logs(&site).await?;
    println!(
        "{events} deposits in {} blocks; the node takes {logs:?} for their logs",
        arguments.blocks
    );
    println!("way    deposits    per s   node");
    for _ in 0..arguments.rounds {
        print_row("scan", "-", events, (scan(&provider, events).await?, logs));
        for known in [false, true] {
            let (name, ours) = match known {
                true => ("1 %", events),
                false => ("unknown", 0),
            };
            let took = index(&provider, ours).await?;
            print_row("index", name, events, (took, logs));
        }
    }
    Ok(())
}

async fn deposit(site: &DevChain, arguments: &Arguments) -> Result<()> {
    let user = Account::named("user")?.address();
    let wei = U256::from(10).pow(U256::from(24));
    site.node.set_balance(user, wei).await?;
    let wallet = site.deploy("Wallet", &[]).await?;
    site.node.set_balance(wallet, wei).await?;
    for block in 0..arguments.blocks {
        let one = |at: usize| Wallet::Call {
            to: site.depository,
            data: site
                .native_deposit(order(block * arguments.deposits + at))
                .data
                .into(),
            value: U256::from(1),
            allowFailure: false,
        };
        let calls = (0..arguments.deposits).map(one).collect();
        let payload = Payload {
            to: Some(wallet),
            data: Wallet::runCall { calls }.abi_encode(),
            value: U256::ZERO,
        };
        site.node.transact(user, payload).await?;
    }
    Ok(())
}

fn provider(site: &DevChain) -> Result<TradingProvider> {
    let entry = ChainEntry {
        id: NAME.into(),
        depository: Some(site.depository.to_string()),
        hub_chain_id: Some(CHAIN.to_string()),
        ..ChainEntry::default()
    };
    let endpoint = Endpoint {
        position: 0,
        url: site.node.url.clone(),
        timeout: Duration::from_secs(30),
        longest: vm::protocol::limits::PROVIDER_ANSWER,
        allows: None,
        client: Endpoint::client()?,
    };
    let open = SETTLEMENT.trade.context("no trading")?;
    Ok(open(&entry.spec(SETTLEMENT, false)?, &endpoint)?)
}

/// What the node takes for the same logs when nobody decodes them.
async fn logs(site: &DevChain) -> Result<Duration> {
    let depository = site.depository.to_string();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getLogs",
        "params": [{"fromBlock": "0x0", "toBlock": "latest", "address": depository}]});
    let client = reqwest::Client::new();
    let mut least = Duration::MAX;
    for _ in 0..3 {
        let begun = Instant::now();
        let request = client.post(site.node.url.clone()).json(&call);
        let answer = request.send().await?.bytes().await?;
        ensure!(answer.len() > 1_000, "no logs");
        least = least.min(begun.elapsed());
    }
    Ok(least)
}

async fn scan(provider: &TradingProvider, events: usize) -> Result<Duration> {
    let head = provider.scanner.head().await?.number;
    let begun = Instant::now();
    let mut found = 0;
    for from in (1..=head).step_by(RANGE) {
        let to = head.min(from + RANGE as u64 - 1);
        let seen = provider.scanner.deposits(from..=to).await?;
        found += seen
            .iter()
            .map(|deposit_tx| deposit_tx.deposits.len())
            .sum::<usize>();
    }
    let took = begun.elapsed();
    ensure!(found == events, "{found} of {events} deposits");
    Ok(took)
}

/// The order that a deposit names.
fn order(number: usize) -> B256 {
    B256::from(U256::from(number + 1))
}

/// `ours`: among how many deposits every hundredth is.
async fn index(provider: &TradingProvider, ours: usize) -> Result<Duration> {
    let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
    let store: Arc<dyn Store> = Arc::new(SledStore::open(directory.path())?);
    let requests = Requests::new(store.clone());
    for number in (0..ours).step_by(OURS) {
        requests.insert(&request(number)?, Batch::new()).await?;
    }
    let market = Market::parse(&market().to_string(), |_| Some(SETTLEMENT))?;
    let network = market.by_name(NAME).context("no network")?.clone();
    let scanners = vec![provider.scanner.clone()];
    let mut tail = Tail::new(network, scanners, requests, Arc::default());
    let begun = Instant::now();
    loop {
        match tail.step(NOW).await? {
            Step::Moved { to, head } if to == head => break,
            Step::Idle => return Err(anyhow!("nothing was read")),
            _ => {}
        }
    }
    let took = begun.elapsed();
    store.close().await;
    Ok(took)
}

fn market() -> Value {
    json!([{"name": NAME, "chainId": CHAIN, "displayName": NAME, "indexFrom": 0,
        "currencies": [{"address": format!("0x{}", "00".repeat(20)), "symbol": "ETH",
            "name": "Ether", "decimals": 18, "group": "eth",
            "prices": [{"kind": "peg", "usd": "2500"}]}]}])
}

/// A request with an order's id; nothing but the ids is read.
fn request(number: usize) -> Result<intentd::request::Request> {
    let leg = json!({"chain": CHAIN, "network": NAME, "currency": "0x", "amount": "0x1", "minimum": "0x1"});
    let order = json!({
        "version": "v1", "solverChainId": NAME, "solver": "0x", "salt": "1", "inputs": [],
        "output": {"chainId": NAME, "payments": [], "calls": [], "deadline": 1, "extraData": "0x"},
        "fees": [],
    });
    Ok(serde_json::from_value(json!({
        "id": self::order(number), "order_id": self::order(number), "order": order, "order_signature": "0x",
        "operation": "bridge", "execution": "Solver", "trade_type": "EXACT_INPUT",
        "user": "0x", "recipient": "0x", "refund_to": "0x", "origin": leg, "destination": leg,
        "calls": [], "calls_gas": null, "authorizations": [], "late_slippage_bps": null,
        "true_exact_output": false, "fill_gas": 0, "fill_price": "0x0", "fill_data": "0x0", "referrer": null, "api_key": null,
        "created_at": 0, "valid_until": 0, "expires_at": null, "quoted": null,
    }))?)
}

fn print_row(way: &str, deposits: &str, events: usize, (took, logs): (Duration, Duration)) {
    let rate = events as f64 / took.as_secs_f64();
    let share = logs.as_secs_f64() / took.as_secs_f64() * 100.0;
    println!("{way:<6} {deposits:<8} {rate:>8.0} {share:>5.0}%");
}
