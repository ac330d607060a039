//! The published TypeScript client, unmodified, against the daemon over real chains: what an
//! integrator does, seen from the integrator's side.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod support;

use std::{path::PathBuf, process::Stdio};

use alloy::primitives::U256;
use devnet::{
    tools,
    world::{Devnet, Options},
};
use serde_json::{Value, json};
use support::daemon::{Daemon, daemon};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, process::Command};

const PACKAGE: &str = include_str!("sdk/package.json");
const LOCK: &str = include_str!("sdk/package-lock.json");
const DRIVE: &str = include_str!("sdk/drive.mjs");

const ETH: &str = "0x0000000000000000000000000000000000000000";
const MILLI: u64 = 1_000_000_000_000_000;

/// Two chains that make blocks by themselves, and a daemon with its own solver.
struct App {
    world: Devnet,
    daemon: Daemon,
    directory: TempDir,
}

impl App {
    async fn start() -> Self {
        let world = Devnet::with(Options {
            block_time: Some(1),
            finality_blocks: 1,
            ..Options::default()
        })
        .await
        .unwrap();
        let daemon = daemon()
            .chains(&world.files())
            .signer(&world.oracles[0])
            .solver(&world.solver, "destination")
            .start()
            .await;
        let packages = tokio::task::spawn_blocking(install).await.unwrap();
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("drive.mjs"), DRIVE).unwrap();
        let modules = directory.path().join("node_modules");
        std::os::unix::fs::symlink(packages.join("node_modules"), modules).unwrap();
        Self {
            world,
            daemon,
            directory,
        }
    }

    /// What the client says to a job.
    async fn drive(&self, mut job: Value) -> Value {
        let site = |site: &devnet::world::Site| json!({"id": site.node.chain_id, "name": site.id, "rpc": site.node.url});
        job["base"] = self.daemon.integrator_url().into();
        job["chains"] = json!([site(&self.world.origin), site(&self.world.destination)]);
        job["key"] = self.world.user.key().into();
        let mut node = Command::new("node")
            .arg(self.directory.path().join("drive.mjs"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut stdin = node.stdin.take().unwrap();
        stdin.write_all(job.to_string().as_bytes()).await.unwrap();
        drop(stdin);
        let output = node.wait_with_output().await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let last = text.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|_| panic!("the client printed {text}"))
    }

    /// Executes `quote` and demands success.
    async fn execute(&self, quote: Value) -> Value {
        let done = self.drive(json!({"what": "execute", "quote": quote})).await;
        assert_eq!(done["ok"], true, "{done}");
        let steps = done["steps"].as_array().unwrap();
        let complete = |step: &Value| {
            let mut items = step["items"].as_array().unwrap().iter();
            items.all(|status| status == "complete")
        };
        assert!(steps.iter().all(complete), "{done}");
        done
    }

    /// From origin to destination, `currency` to `to`.
    fn quote(&self, currency: &str, to: &str, amount: u64) -> Value {
        let user = format!("{:#x}", self.world.user.address());
        json!({
            "chainId": self.world.origin.node.chain_id,
            "toChainId": self.world.destination.node.chain_id,
            "currency": currency, "toCurrency": to, "amount": amount.to_string(),
            "tradeType": "EXACT_INPUT", "user": user, "recipient": user,
        })
    }
}

fn install() -> PathBuf {
    tools::packages(
        "sdk",
        &[("package.json", PACKAGE), ("package-lock.json", LOCK)],
    )
    .unwrap()
}

fn step_ids(done: &Value) -> Vec<&str> {
    let steps = done["steps"].as_array().unwrap();
    steps
        .iter()
        .map(|step| step["id"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn client_lists_chains_and_quotes_both_trade_types() {
    let app = App::start().await;
    let listed = app.drive(json!({"what": "chains"})).await;
    let ids: Vec<_> = listed["chains"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["id"].clone())
        .collect();
    assert_eq!(ids, [31_001, 31_002]);

    let input = app
        .drive(json!({"what": "quote", "quote": app.quote(ETH, ETH, 100 * MILLI)}))
        .await;
    let details = &input["quote"]["details"];
    assert_eq!(
        details["currencyIn"]["amount"],
        (100 * MILLI).to_string(),
        "{input}"
    );
    let out: U256 = details["currencyOut"]["amount"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(
        out < U256::from(100 * MILLI) && out > U256::from(99 * MILLI),
        "{details}"
    );

    let mut body = app.quote(ETH, ETH, 100 * MILLI);
    body["tradeType"] = "EXACT_OUTPUT".into();
    let output = app.drive(json!({"what": "quote", "quote": body})).await;
    let details = &output["quote"]["details"];
    assert_eq!(
        details["currencyOut"]["amount"],
        (100 * MILLI).to_string(),
        "{output}"
    );
    assert_eq!(
        details["currencyOut"]["minimumAmount"],
        (100 * MILLI).to_string()
    );
    app.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn native_bridge_goes_from_quote_to_success() {
    let app = App::start().await;
    let before = app
        .world
        .destination
        .node
        .balance(app.world.user.address())
        .await
        .unwrap();
    let done = app.execute(app.quote(ETH, ETH, 100 * MILLI)).await;
    assert_eq!(step_ids(&done), ["deposit"]);
    let after = app
        .world
        .destination
        .node
        .balance(app.world.user.address())
        .await
        .unwrap();
    let promised = done["quote"]["details"]["currencyOut"]["amount"]
        .as_str()
        .unwrap();
    assert_eq!((after - before).to_string(), promised);
    app.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_bridge_approves_and_deposits() {
    let app = App::start().await;
    let (origin, destination) = (&app.world.origin, &app.world.destination);
    let user = app.world.user.address();
    let before = destination
        .token_balance(destination.token, user)
        .await
        .unwrap();
    let (from, to) = (
        format!("{:#x}", origin.token),
        format!("{:#x}", destination.token),
    );
    let done = app.execute(app.quote(&from, &to, 25_000_000)).await;
    assert_eq!(step_ids(&done), ["approve", "deposit"]);
    let after = destination
        .token_balance(destination.token, user)
        .await
        .unwrap();
    let promised = done["quote"]["details"]["currencyOut"]["amount"]
        .as_str()
        .unwrap();
    assert_eq!((after - before).to_string(), promised);
    app.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batching_wallet_tells_nobody_and_is_filled() {
    let app = App::start().await;
    let (from, to) = (
        format!("{:#x}", app.world.origin.token),
        format!("{:#x}", app.world.destination.token),
    );
    let job =
        json!({"what": "execute", "batching": true, "quote": app.quote(&from, &to, 25_000_000)});
    let done = app.drive(job).await;
    assert_eq!(done["ok"], true, "{done}");
    let told = done["requests"].as_array().unwrap();
    assert!(
        !told.contains(&"POST /transactions/index".into()),
        "{told:?}"
    );
    app.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forced_refund_is_told_as_refunded() {
    let app = App::start().await;
    let job = json!({
        "what": "execute", "source": "debug-force-refund", "quote": app.quote(ETH, ETH, 100 * MILLI),
    });
    let done = app.drive(job).await;
    assert_eq!(done["ok"], false, "{done}");
    assert_eq!(done["error"], "Transaction failed: Refunded");
    app.daemon.stop().await;
}
