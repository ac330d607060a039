//! How soon the program answers on an empty store.
//!
//! `cargo bench --bench start` starts the release binary again and again, each time on a directory of its own with
//! both listeners, and prints the time from its start until `GET /lives` is answered by each, half of the starts and
//! all of them:
//!
//! - `refused`: nobody listens where its providers should be;
//! - `silent`: they take every connection and never say anything.
//!
//! Neither may keep a listener: 0.2 s at most.

#![expect(clippy::print_stdout, reason = "a table for people")]

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Any contract.
const CONTRACT: &str = "0xcf7ed3acca5a467e9e704c703e8d87f634fb0fc9";
/// A well-known key of tests.
const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";

/// Measures how soon the program answers.
#[derive(Debug, Parser)]
struct Arguments {
    /// Given by cargo; without it (as under `cargo test --benches`) nothing is measured.
    #[arg(long, hide = true)]
    bench: bool,
    /// How often it is started for each row.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.bench {
        return Ok(());
    }
    // Never accepted from: the system takes the connections.
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let silent_url = format!("http://{}/", silent.local_addr()?);
    println!("| providers | oracle, half | all | integrator API, half | all |");
    println!("|---|---|---|---|---|");
    for (name, url) in [
        ("refused", "http://127.0.0.1:1/"),
        ("silent", silent_url.as_str()),
    ] {
        let (mut oracle, mut integrator) = (Vec::new(), Vec::new());
        for _ in 0..arguments.rounds {
            let [first, second] = started(url)?;
            oracle.push(first);
            integrator.push(second);
        }
        let [oracle, integrator] = [oracle, integrator].map(figures);
        println!("| {name} | {oracle} | {integrator} |");
    }
    Ok(())
}

/// The time that half of them did not exceed, and the longest.
fn figures(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |place: usize| times.get(place).copied().unwrap_or_default().as_millis();
    let last = times.len().saturating_sub(1);
    format!("{} ms | {} ms", at(last / 2), at(last))
}

/// How long after its start each listener of a new program answered.
fn started(url: &str) -> Result<[Duration; 2]> {
    let place = TempDir::new()?;
    let variables = configured(place.path(), url)?;
    let begun = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_intentd"))
        .env_clear()
        .envs(variables)
        .stderr(Stdio::piped())
        .spawn()?;
    let stderr = child.stderr.take().context("nothing is told")?;
    let times = answered(BufReader::new(stderr).lines(), begun);
    child.kill()?;
    child.wait()?;
    times
}

fn answered(
    mut lines: impl Iterator<Item = io::Result<String>>,
    begun: Instant,
) -> Result<[Duration; 2]> {
    let mut of = |message: &str| -> Result<Duration> {
        loop {
            let line = lines.next().context("the program ended")??;
            let line: Value = serde_json::from_str(&line).unwrap_or_default();
            if line["message"] == message {
                lives(line["address"].as_str().context("no address")?)?;
                return Ok(begun.elapsed());
            }
        }
    };
    Ok([of("oracle listening")?, of("integrator API listening")?])
}

/// Asks until it is answered.
fn lives(address: &str) -> Result<()> {
    let mut client = TcpStream::connect(address)?;
    client.write_all(b"GET /lives/v1 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    client.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(())
}

/// An environment with files in `place`: one chain behind `url`, where it is traded, and the settlement chain.
fn configured(place: &Path, url: &str) -> Result<Vec<(&'static str, String)>> {
    let native = "0x0000000000000000000000000000000000000000";
    let chains = json!([{
        "id": "one", "vmType": "ethereum-vm", "httpRpcUrl": url, "hubChainId": "7", "depository": CONTRACT,
    }]);
    let hub = json!({
        "id": "relay", "evmChainId": "31337", "oracleVersion": "2", "oracleAddress": CONTRACT,
        "httpRpcUrl": url, "auroraAllocatorAddress": CONTRACT, "auroraEvmChainId": "2",
        "auroraHttpRpcUrl": url,
    });
    let market = json!([{
        "name": "one", "chainId": 7, "displayName": "One", "fillRouter": CONTRACT, "approvalProxy": CONTRACT,
        "fillConfirmations": 1, "blockSeconds": 1,
        "currencies": [{
            "address": native, "symbol": "ETH", "name": "Ether", "decimals": 18, "group": "eth",
            "class": "major", "solver": true, "prices": [{"kind": "peg", "usd": "1000"}],
        }],
    }]);
    let file = |name: &str, content: &Value| -> Result<String> {
        let path = place.join(name);
        fs::write(&path, content.to_string())?;
        Ok(path.display().to_string())
    };
    Ok(vec![
        ("ENVIRONMENT", "test".to_owned()),
        ("ECDSA_PRIVATE_KEY", KEY.to_owned()),
        ("SOLVER_PRIVATE_KEY", KEY.to_owned()),
        ("DATA_DIR", place.join("data").display().to_string()),
        ("CHAINS_FILE", file("chains.json", &chains)?),
        ("HUB_FILE", file("hub.json", &hub)?),
        ("MARKET_FILE", file("market.json", &market)?),
        ("HTTP_HOST", "127.0.0.1".to_owned()),
        ("HTTP_PORT", "0".to_owned()),
        ("OPS_HTTP_PORT", "0".to_owned()),
        ("INTEGRATOR_HTTP_PORT", "0".to_owned()),
        ("LOG_FORMAT", "json".to_owned()),
    ])
}
