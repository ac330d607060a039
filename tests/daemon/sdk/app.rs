//! Chains, a daemon with its solver, and the client that is driven against it.

use std::{sync::Arc, time::Duration};

use alloy::{
    primitives::{Address, B256, U256},
    sol,
};
use devnet::{
    account::Account,
    claim, tools,
    world::{Abroad, DevChain, Devnet, Options},
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    scripts::Scripts,
    support::daemon::{Daemon, daemon},
};

const PACKAGE: &str = include_str!("package.json");
const LOCK: &str = include_str!("package-lock.json");
const DRIVE: &str = include_str!("drive.mjs");
const ABROAD: &str = include_str!("abroad.mjs");

pub const ETH: &str = "0x0000000000000000000000000000000000000000";
/// A thousandth of the native currency.
pub const MILLI: u64 = 1_000_000_000_000_000;
/// One of the sites' tokens.
pub const USD: u64 = 1_000_000;

const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// All customers have one address: however long a slow machine takes, none is told to come back later.
const RATES: &str =
    "keyless.quotes=300/m,keyless.others=6000/m,default.quotes=50/m,default.others=6000/m";
/// What of an error is told in a line.
const SHORT: usize = 300;

sol! {
    function allowance(address owner, address spender) view returns (uint256);
}

/// Two chains that make blocks by themselves, and a daemon with its own solver.
pub struct App {
    pub world: Devnet,
    pub daemon: Daemon,
    /// The client shows none to a host like ours; what tests ask beside it must not count as its
    /// questions.
    key: String,
    scripts: Scripts,
}

/// Which way a customer's money goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Across,
    /// Everything on the origin.
    Here,
}

impl App {
    pub async fn start() -> Self {
        Self::with(false, |_| ()).await
    }

    /// With an exchange on both chains, or without, and a changed market.
    pub async fn with(exchange: bool, change: fn(&mut Value)) -> Self {
        Self::among(&[], exchange, change).await
    }

    /// The same, which also trades on chains of other families.
    pub async fn among(abroad: &[Arc<Abroad>], exchange: bool, change: fn(&mut Value)) -> Self {
        let world = Devnet::with(Options {
            block_time: Some(1),
            finality_blocks: 1,
            exchange,
            customers: 6,
            ..Options::default()
        })
        .await
        .unwrap();
        let mut files = world.files();
        change(&mut files.market);
        for site in abroad {
            site.tell(&mut files).unwrap();
            site.trade(&mut files).unwrap();
            let solver = site.solver_account(&world.solver).unwrap();
            site.endow(&solver).await.unwrap();
        }
        let (name, key) = Abroad::solver_key();
        let daemon = daemon()
            .with(name, key)
            .chains(&files)
            .signer(&world.oracles[0])
            .solver(&world.solver, "destination")
            .with("RATE_LIMITS", RATES)
            .start()
            .await;
        let scripts = tokio::task::spawn_blocking(install).await.unwrap();
        let app = Self {
            world,
            key: daemon.integrator("beside").await,
            daemon,
            scripts,
        };
        app.prepared(&app.world.destination).await;
        app
    }

    /// The solver prepares for fills by itself; the chain needs a block for it, and makes one every second. Blocks
    /// made here would run ahead of everybody's clock, and be many where the machine is slow.
    async fn prepared(&self, site: &DevChain) {
        let question = allowanceCall {
            owner: self.world.solver.address(),
            spender: site.proxy,
        };
        while site
            .node
            .view(site.token, &question)
            .await
            .unwrap()
            .is_zero()
        {
            sleep(PAUSE).await;
        }
    }

    /// Somebody with money on both chains, of six: each makes one transaction at a time.
    pub fn customer(&self, number: usize) -> &Account {
        &self.world.customers[number]
    }

    /// The chains as a client is told of them.
    pub fn chains(&self) -> Value {
        let sites = [&self.world.origin, &self.world.destination];
        let told = sites
            .map(|site| json!({"id": site.node.chain_id, "name": site.id, "rpc": site.node.url}));
        json!(told)
    }

    /// What the client says to a job, as the world's user unless the job has a `key`.
    pub async fn drive(&self, mut job: Value) -> Value {
        job["base"] = self.daemon.integrator_url().into();
        job["chains"] = self.chains();
        if job["key"].is_null() {
            job["key"] = self.world.user.key().into();
        }
        self.scripts.node("drive.mjs", &job).await
    }

    /// Executes `quote` and demands success.
    pub async fn execute_as(&self, who: &Account, quote: Value) -> Value {
        let job = json!({"what": "execute", "key": who.key(), "quote": quote});
        let done = self.drive(job).await;
        self.succeeded(&done).await;
        let steps = done["steps"].as_array().unwrap();
        let complete = |step: &Value| {
            let mut items = step["items"].as_array().unwrap().iter();
            items.all(|status| status == "complete")
        };
        assert!(steps.iter().all(complete), "{done}");
        done
    }

    /// Demands that the client did what it was told; otherwise one short line has what it and the daemon say of it,
    /// as a log leaves out what is long.
    pub async fn succeeded(&self, done: &Value) {
        if done["ok"] == true {
            return;
        }
        let status = match done["request"].as_str() {
            Some(id) => self.status_of(id).await,
            None => Value::Null,
        };
        panic!("{}", failure(done, &status));
    }

    /// From origin to destination, `currency` to `to`, by the world's user.
    pub fn quote(&self, currency: &str, to: &str, amount: u64) -> Value {
        self.quote_for(&self.world.user, Way::Across, (currency, to), amount)
    }

    pub fn quote_for(
        &self,
        who: &Account,
        way: Way,
        (currency, to): (&str, &str),
        amount: u64,
    ) -> Value {
        let user = hex(who.address());
        let (origin, destination) = (&self.world.origin, &self.world.destination);
        let destination = if way == Way::Here {
            origin
        } else {
            destination
        };
        json!({
            "chainId": origin.node.chain_id, "toChainId": destination.node.chain_id,
            "currency": currency, "toCurrency": to, "amount": amount.to_string(),
            "tradeType": "EXACT_INPUT", "user": user, "recipient": user,
        })
    }

    /// Where the request of a quote stands, as the API says.
    pub async fn status(&self, quoted: &Value) -> Value {
        let id = quoted["steps"][0]["requestId"].as_str().unwrap();
        self.status_of(id).await
    }

    pub async fn status_of(&self, id: &str) -> Value {
        let url = self.daemon.integrator_url();
        let url = format!("{url}/intents/status/v3?requestId={id}");
        let asked = reqwest::Client::new()
            .get(url)
            .header("x-api-key", &self.key);
        let text = asked.send().await.unwrap().text().await.unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// As [`App::status`], once it is an end: the client believes its own receipt, which is sooner.
    pub async fn ended(&self, quoted: &Value) -> Value {
        let ended = async {
            loop {
                let status = self.status(quoted).await;
                if !["waiting", "pending"].contains(&status["status"].as_str().unwrap()) {
                    return status;
                }
                sleep(PAUSE).await;
            }
        };
        timeout(PATIENCE, ended).await.unwrap()
    }

    /// The oracle signs that the order of a quote, asked with `includeProtocolData`, was filled.
    pub async fn attested(&self, quoted: &Value) {
        let status = self.status(quoted).await;
        let (deposit, fill) = (&status["inTxHashes"][0], &status["txHashes"][0]);
        let body = json!({"chainId": self.world.origin.id, "transactionId": deposit});
        let seen = self
            .daemon
            .attest("/attestations/depository-deposits/v1", &body);
        let seen = seen.await.json();
        let onchain = seen.pointer("/messages/0/result/onchainId");
        let order = &quoted["protocol"]["v2"];
        let body = json!({
            "order": order["orderData"], "orderSignature": order["orderSignature"],
            "inputs": [{"transactionId": deposit, "onchainId": onchain, "inputIndex": 0}],
            "fill": {"transactionId": fill},
        });
        let read = |id: &Value| -> B256 { id.as_str().unwrap().parse().unwrap() };
        let ended = (read(&order["orderId"]), &[read(onchain.unwrap())][..]);
        let body = claim::vouched(("fill", body), ended, &self.world.solver).unwrap();
        let answer = self
            .daemon
            .attest("/attestations/solver-fills/v1", &body)
            .await;
        assert_eq!(
            answer.status.as_u16(),
            200,
            "{} {seen} {quoted}",
            answer.body
        );
    }

    /// What the router and the proxy hold: always nothing.
    pub async fn left_over(&self, currencies: &[Address]) -> U256 {
        let site = &self.world.destination;
        let mut sum = U256::ZERO;
        for currency in currencies.iter().chain([&Address::ZERO]) {
            for contract in [site.router, site.proxy] {
                sum += held(site, *currency, contract).await;
            }
        }
        sum
    }
}

/// What the client says, and the daemon, in a line.
fn failure(done: &Value, status: &Value) -> String {
    let error: String = done["error"].to_string().chars().take(SHORT).collect();
    let asked = done["requests"].as_array();
    let (count, last) = asked.map_or((0, None), |asked| (asked.len(), asked.last()));
    format!(
        "client: {} {error}, last of {count} requests {}; daemon: {} {} {}",
        done["name"],
        last.unwrap_or(&Value::Null),
        status["status"],
        status["failReason"],
        status["details"],
    )
}

/// What somebody has of a currency; zero is the native one.
pub async fn held(site: &DevChain, currency: Address, who: Address) -> U256 {
    match currency {
        Address::ZERO => site.node.balance(who).await.unwrap(),
        token => site.token_balance(token, who).await.unwrap(),
    }
}

pub fn hex(address: Address) -> String {
    format!("{address:#x}")
}

fn install() -> Scripts {
    let files = [("package.json", PACKAGE), ("package-lock.json", LOCK)];
    let packages = tools::packages("sdk", &files).unwrap();
    Scripts::beside(&packages, &[("drive.mjs", DRIVE), ("abroad.mjs", ABROAD)])
}

pub fn step_ids(done: &Value) -> Vec<&str> {
    let steps = done["steps"].as_array().unwrap();
    steps
        .iter()
        .map(|step| step["id"].as_str().unwrap())
        .collect()
}

/// What the quote promises the recipient, and at least.
pub fn promised(done: &Value) -> U256 {
    amount(done, "/details/currencyOut/amount")
}

/// An amount of the quote.
pub fn amount(done: &Value, pointer: &str) -> U256 {
    let found = done["quote"].pointer(pointer).and_then(Value::as_str);
    found
        .unwrap_or_else(|| panic!("{pointer} in {done}"))
        .parse()
        .unwrap()
}

#[test]
fn what_failed_is_told_in_a_short_line() {
    let done = json!({
        "ok": false, "error": format!("late\n{}", "x".repeat(9_000)), "name": "SolverStatusTimeoutError",
        "requests": ["POST /quote/v2", "GET /intents/status/v3"], "request": "0x12",
    });
    let status = json!({"status": "waiting", "failReason": "N/A"});
    let line = failure(&done, &status);
    assert!(line.len() < 500 && !line.contains('\n'), "{line}");
    for said in [
        "SolverStatusTimeoutError",
        "late",
        "of 2",
        "/status/v3",
        "waiting",
    ] {
        assert!(line.contains(said), "{said}: {line}");
    }
    let quoted = json!({"ok": false, "error": "no"});
    assert!(failure(&quoted, &Value::Null).starts_with("client: null \"no\""));
}
