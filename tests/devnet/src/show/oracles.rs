//! Three oracles in this process: the first is asked, the others are its peers.

use std::{net::Ipv4Addr, path::Path};

use anyhow::{Context, Result, bail};
use devnet::world::Devnet;
use intentd::{
    config::Config,
    run::{Daemon, Listeners},
};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;
use url::Url;

/// The key that opens the oracles' routes, for callers and among peers.
pub const API_KEY: &str = "devnet";

/// Running oracles, in the order of the signer set.
pub struct Oracles {
    pub urls: Vec<Url>,
    client: reqwest::Client,
    tasks: JoinSet<Result<()>>,
    shutdown: CancellationToken,
}

impl Oracles {
    /// Starts one per key of the world, with its store and files below `directory`.
    pub async fn start(world: &Devnet, directory: &Path) -> Result<Self> {
        let mut listeners = Vec::new();
        for _ in &world.oracles {
            listeners.push(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?);
        }
        let urls = listeners
            .iter()
            .map(|listener| Ok(Url::parse(&format!("http://{}", listener.local_addr()?))?))
            .collect::<Result<Vec<_>>>()?;
        let shutdown = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for (number, listener) in listeners.into_iter().enumerate() {
            let variables = variables(world, number, &urls, directory)?;
            let config = Config::from_variables(variables)?;
            let daemon = Daemon::open(&config)
                .with_context(|| format!("oracle {} does not start", number + 1))?;
            let listeners = Listeners {
                oracle: listener,
                integrator: None,
            };
            tasks.spawn(daemon.serve(listeners, shutdown.clone()));
        }
        Ok(Self {
            urls,
            client: reqwest::Client::new(),
            tasks,
            shutdown,
        })
    }

    /// Asks the first oracle and returns its answer; anything but 200 is an error with its body.
    pub async fn ask(&self, route: &str, body: &Value) -> Result<Value> {
        let url = self.urls[0].join(route)?;
        let request = self.client.post(url).header("x-api-key", API_KEY);
        let response = request.json(body).send().await?;
        let status = response.status();
        let text = response.text().await?;
        if !status.is_success() {
            bail!("{route} answered {status}: {text}");
        }
        Ok(serde_json::from_str(&text)?)
    }

    /// Resolves when an oracle ends although nobody asked it to.
    pub async fn ended(&mut self) -> Result<()> {
        match self.tasks.join_next().await {
            Some(end) => end?.context("an oracle ended"),
            None => bail!("there are no oracles"),
        }
    }

    /// Lets every oracle finish what it is doing.
    pub async fn stop(mut self) -> Result<()> {
        self.shutdown.cancel();
        while let Some(end) = self.tasks.join_next().await {
            end??;
        }
        Ok(())
    }
}

/// The whole environment of oracle `number`: what an operator would set.
fn variables(
    world: &Devnet,
    number: usize,
    urls: &[Url],
    directory: &Path,
) -> Result<Vec<(String, String)>> {
    let directory = directory.join(format!("oracle-{}", number + 1));
    std::fs::create_dir_all(&directory)?;
    let files = world.files();
    let write = |name: &str, content: &Value| -> Result<String> {
        let path = directory.join(name);
        std::fs::write(&path, serde_json::to_string_pretty(content)?)?;
        Ok(path.display().to_string())
    };
    // Only the asked oracle has peers: nobody asks the others to ask around.
    let peers = urls
        .iter()
        .skip(1)
        .map(|url| format!("{}|{API_KEY}", url.as_str().trim_end_matches('/')));
    let peers = if number == 0 {
        peers.collect()
    } else {
        Vec::new()
    };
    let signers = world
        .oracles
        .iter()
        .map(|oracle| format!("{:#x}", oracle.address()));
    let own = [
        ("ENVIRONMENT", "devnet".to_owned()),
        ("CHAINS_FILE", write("chains.json", &files.chains)?),
        ("HUB_FILE", write("hub.json", &files.hub)?),
        ("DATA_DIR", directory.join("data").display().to_string()),
        ("ECDSA_PRIVATE_KEY", world.oracles[number].key()),
        ("API_KEYS", format!("{API_KEY}:devnet")),
        ("PEERS", peers.join(";")),
        ("ORACLE_SIGNERS", signers.collect::<Vec<_>>().join(";")),
        (
            "ORACLE_SIGNERS_THRESHOLD",
            world.options.threshold.to_string(),
        ),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    Ok(files.environment.into_iter().chain(own).collect())
}
