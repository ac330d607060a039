//! A whole daemon in this process: its own directory, its own port, the recorded chains.

use std::collections::BTreeMap;

use hyper::StatusCode;
use intentd::{
    config::Config,
    run::{self, Listeners},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::http::Server;

/// The well-known test key of the oracle that the recorded answers are from.
pub const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";

/// What a daemon is started with.
pub struct Setup {
    variables: BTreeMap<String, String>,
}

/// A daemon over the recorded world at `world`.
pub fn daemon(world: &Server) -> Setup {
    let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/recorded");
    let rpc = |path: &str| format!("http://{}/{path}", world.address);
    let variables = [
        ("ENVIRONMENT", "recorded".to_owned()),
        ("SIGNING_MODULE", "raw-private-key".to_owned()),
        ("ECDSA_PRIVATE_KEY", KEY.to_owned()),
        ("HTTP_HOST", "127.0.0.1".to_owned()),
        ("HTTP_PORT", "0".to_owned()),
        ("CHAINS_FILE", format!("{fixtures}/chains.json")),
        ("HUB_FILE", format!("{fixtures}/hub.json")),
        ("ETHEREUM_RPC_URL", rpc("ethereum")),
        ("BASE_RPC_URL", rpc("base")),
        ("RELAY_RPC_URL", rpc("relay")),
        ("BITCOIN_RPC_URL", rpc("bitcoin")),
    ];
    Setup {
        variables: variables
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
    }
}

impl Setup {
    /// With one more variable, or another value of one.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    pub async fn start(&self) -> Daemon {
        let directory = TempDir::new().unwrap();
        let mut variables = self.variables.clone();
        variables.insert("DATA_DIR".into(), directory.path().display().to_string());
        let config = Config::from_variables(variables).unwrap();
        let listeners = Listeners::bind(&config).await.unwrap();
        let address = listeners.oracle.local_addr().unwrap();
        let daemon = run::Daemon::open(&config).unwrap();
        let shutdown = CancellationToken::new();
        let ended = shutdown.clone();
        let task = tokio::spawn(async move { daemon.serve(listeners, ended).await.unwrap() });
        Daemon {
            url: format!("http://{address}"),
            client: reqwest::Client::new(),
            shutdown,
            task,
            directory,
        }
    }
}

/// A running daemon.
pub struct Daemon {
    pub url: String,
    client: reqwest::Client,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
    directory: TempDir,
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

    /// Ends the daemon; its directory is gone afterwards.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap();
        drop(self.directory);
    }
}
