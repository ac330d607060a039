//! A whole daemon in this process: its own directory, its own port, the chains it is given.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use devnet::{account::Account, world::Files};

use hyper::StatusCode;
use intentd::{
    admin::{
        self, Question,
        integrators::{Order, Outcome},
    },
    config::Config,
    integrator::{Integrator, Tier, change::usual_scopes},
    run::{self, Listeners},
    store::{
        Making, Store,
        integrators::{Integrators, IntegratorsError},
        pair::{Directories, Pair},
    },
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::http::Server;

/// The well-known test key of the oracle that the recorded answers are from.
pub const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";

/// What tests may ask: more without a key than usual, less with one than without.
const RATES: &str = "keyless.quotes=300/m,keyless.others=300/m,default.quotes=50/m";

/// What a daemon is started with.
#[derive(Clone, Default)]
pub struct Setup {
    variables: BTreeMap<String, String>,
    files: Option<Files>,
    integrators: Vec<Integrator>,
}

/// A daemon that signs with [`KEY`] on a port of its own and knows no chains yet.
pub fn daemon() -> Setup {
    let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Setup::default()
        .with("ENVIRONMENT", "test")
        .with("ECDSA_PRIVATE_KEY", KEY)
        .with("HTTP_HOST", "127.0.0.1")
        .with("HTTP_PORT", "0")
        .with("OPS_HTTP_PORT", "0")
        // All tests come from one address.
        .with("RATE_LIMITS", RATES)
        .with("QUOTE_CALLS_PER_SECOND", "100000")
        .with("CONNECTIONS_PER_ADDRESS", "10000")
}

impl Setup {
    /// With one more variable, or another value of one.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    /// Over the recorded world at `world`.
    pub fn recorded(self, world: &Server) -> Self {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/recorded");
        let rpc = |path: &str| format!("http://{}/{path}", world.address);
        self.with("CHAINS_FILE", format!("{fixtures}/chains.json"))
            .with("HUB_FILE", format!("{fixtures}/hub.json"))
            .with("ETHEREUM_RPC_URL", rpc("ethereum"))
            .with("BASE_RPC_URL", rpc("base"))
            .with("RELAY_RPC_URL", rpc("relay"))
            .with("BITCOIN_RPC_URL", rpc("bitcoin"))
            .with("SOLANA_RPC_URL", rpc("solana"))
    }

    /// Over real chains.
    pub fn chains(mut self, files: &Files) -> Self {
        self.variables.extend(files.environment.iter().cloned());
        self.files = Some(files.clone());
        self
    }

    /// Signs as `account`.
    pub fn signer(self, account: &Account) -> Self {
        self.with("ECDSA_PRIVATE_KEY", account.key())
    }

    /// With the integrator API on a port of its own, and `account` as its solver, paid at the hub as
    /// an account of `chain`.
    pub fn solver(self, account: &Account, chain: &str) -> Self {
        self.with("INTEGRATOR_HTTP_PORT", "0")
            .with("SOLVER_PRIVATE_KEY", account.key())
            .with("SOLVER_CHAIN", chain)
    }

    /// Demands `key` of callers.
    pub fn key(self, key: &str) -> Self {
        self.with("API_KEYS", format!("{key}:caller"))
    }

    /// With `integrator` in its store.
    pub fn integrator(mut self, integrator: Integrator) -> Self {
        self.integrators.push(integrator);
        self
    }

    /// Asks `peer`, which demands `key` (empty for none), behind the peers named before.
    pub fn peer(self, peer: &Daemon, key: &str) -> Self {
        let before = self.variables.get("PEERS").map(|list| format!("{list};"));
        let list = format!("{}{}|{key}", before.unwrap_or_default(), peer.url);
        self.with("PEERS", list)
    }

    /// Puts its files into `directory` and returns the whole environment.
    pub fn environment(&self, directory: &Path) -> BTreeMap<String, String> {
        let mut variables = self.variables.clone();
        let mut path = |variable: &str, name: &str| {
            let path = directory.join(name);
            variables.insert(variable.to_owned(), path.display().to_string());
            path
        };
        path("DATA_DIR", "data");
        if let Some(files) = &self.files {
            fs::write(path("CHAINS_FILE", "chains.json"), files.chains.to_string()).unwrap();
            fs::write(path("HUB_FILE", "hub.json"), files.hub.to_string()).unwrap();
            fs::write(path("MARKET_FILE", "market.json"), files.market.to_string()).unwrap();
        }
        variables
    }

    pub async fn start(&self) -> Daemon {
        self.start_in(TempDir::new().unwrap()).await
    }

    /// Over a directory that [`Daemon::end`] gave back.
    pub async fn start_in(&self, directory: TempDir) -> Daemon {
        let config = Config::from_variables(self.environment(directory.path())).unwrap();
        self.write(&config.data_dir).await;
        let listeners = Listeners::bind(&config).await.unwrap();
        let address = listeners.oracle.local_addr().unwrap();
        let ops = listeners.ops.local_addr().unwrap();
        let integrator = listeners.integrator.as_ref();
        let integrator = integrator.map(|listener| listener.local_addr().unwrap());
        let daemon = run::Daemon::open(&config).await.unwrap();
        let shutdown = CancellationToken::new();
        let ended = shutdown.clone();
        let task = tokio::spawn(async move { daemon.serve(listeners, ended).await.unwrap() });
        Daemon {
            url: format!("http://{address}"),
            ops: format!("http://{ops}"),
            integrator: integrator.map(|address| format!("http://{address}")),
            client: reqwest::Client::new(),
            shutdown,
            task,
            directory,
            setup: self.clone(),
        }
    }

    /// Puts its integrators into the store in `data_dir`.
    async fn write(&self, data_dir: &Path) {
        if self.integrators.is_empty() {
            return;
        }
        let directories = Directories::new(data_dir, None);
        let pair = Pair::open(&directories, Making::Allowed).unwrap();
        let integrators = Integrators::open(pair.store.clone()).await.unwrap();
        for one in &self.integrators {
            let put = |_| Ok::<_, IntegratorsError>(one.clone());
            integrators.change(&one.label, put).await.unwrap();
        }
        drop(integrators);
        pair.close().await;
    }
}

/// A running daemon.
pub struct Daemon {
    pub url: String,
    /// Where metrics and readiness are.
    pub ops: String,
    integrator: Option<String>,
    client: reqwest::Client,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
    directory: TempDir,
    setup: Setup,
}

/// An answer of the daemon.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub signers: Option<String>,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The stable code of a refusal.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The signers of the execution, in their order.
    pub fn signed_by(&self) -> Vec<String> {
        let json = self.json();
        let signatures = json["execution"]["signatures"].as_array().cloned();
        let signer = |s: &Value| s["oracleSigner"].as_str().unwrap_or_default().to_owned();
        signatures.unwrap_or_default().iter().map(signer).collect()
    }
}

impl Daemon {
    /// Any request.
    pub async fn ask(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> Answer {
        let url = format!("{}{target}", self.url);
        self.send(method, url, headers, body).await
    }

    /// What the operator's listener answers.
    pub async fn ops(&self, target: &str) -> Answer {
        let url = format!("{}{target}", self.ops);
        self.send("GET", url, &[], None).await
    }

    async fn send(
        &self,
        method: &str,
        url: String,
        headers: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> Answer {
        let mut request = self.client.request(method.parse().unwrap(), url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await.unwrap();
        let signers = response.headers().get("x-oracle-signers");
        Answer {
            status: response.status(),
            signers: signers.map(|value| value.to_str().unwrap().to_owned()),
            body: response.text().await.unwrap(),
        }
    }

    /// Its `DATA_DIR`.
    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Where the integrator API is; it must have been asked for.
    pub fn integrator_url(&self) -> &str {
        self.integrator.as_deref().unwrap()
    }

    /// POST of JSON with a key.
    pub async fn post(&self, target: &str, key: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/json"), ("x-api-key", key)];
        self.ask(
            "POST",
            target,
            &headers,
            Some(body.to_string().into_bytes()),
        )
        .await
    }

    /// POST of JSON without a key.
    pub async fn attest(&self, route: &str, body: &Value) -> Answer {
        self.post(route, "", body).await
    }

    /// The text of `/metrics`: of the daemons of this test.
    pub async fn metrics(&self) -> String {
        self.ops("/metrics").await.body
    }

    /// What the daemon says to its operator.
    pub async fn operator(&self, question: &Question) -> admin::Answer {
        let data_dir = self.directory.path().join("data");
        admin::ask(&data_dir, question).await.unwrap()
    }

    /// The operator lets signing for `chain` go on; whether it was halted.
    pub async fn clear_halt(&self, chain: &str) -> bool {
        let admin::Answer::Halts { halts } = self.operator(&Question::Halts {}).await else {
            panic!("no halts");
        };
        let Some(halted) = halts.into_iter().find(|halted| halted.chain == chain) else {
            return false;
        };
        let question = Question::ClearHalt {
            chain: halted.chain,
            id: halted.id,
        };
        match self.operator(&question).await {
            admin::Answer::Cleared { cleared } => cleared,
            other => panic!("{other:?}"),
        }
    }

    /// What came of an order about integrators.
    pub async fn order(&self, order: Order) -> Outcome {
        // Who answers over HTTP has its socket open.
        self.ask("GET", "/lives/v1", &[], None).await;
        let answer = admin::ask(&self.data_dir(), &Question::Integrators(order)).await;
        match answer.unwrap() {
            admin::Answer::Integrators(outcome) => outcome,
            other => panic!("{other:?}"),
        }
    }

    /// The key of a new integrator that may ask as often as it likes.
    pub async fn integrator(&self, label: &str) -> String {
        self.integrator_of(label, Tier::Unlimited).await
    }

    /// The key of a new integrator.
    pub async fn integrator_of(&self, label: &str, tier: Tier) -> String {
        let order = Order::Add {
            label: label.to_owned(),
            scopes: usual_scopes(),
            tier,
        };
        match self.order(order).await {
            Outcome::Key { key } => key.expose().to_owned(),
            other => panic!("{other:?}"),
        }
    }

    /// Ends the daemon; its directory is gone afterwards.
    pub async fn stop(self) {
        drop(self.end().await);
    }

    /// Ends the daemon and starts it again over the same directory, on another port.
    pub async fn restart(self) -> Self {
        let setup = self.setup.clone();
        setup.start_in(self.end().await).await
    }

    /// Ends the daemon; its directory, with the store in `data`.
    pub async fn end(self) -> TempDir {
        self.shutdown.cancel();
        self.task.await.unwrap();
        self.directory
    }
}
