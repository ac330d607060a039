//! Three oracles in this process: the first is asked, the others are its peers. The first is the
//! daemon of a solver, too, with the integrator API.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use devnet::world::{Devnet, Files};
use intentd::{
    admin::{
        self, Answer, AskError, Question,
        integrators::{Order, Outcome},
    },
    config::Config,
    integrator::{Tier, change::usual_scopes},
    run::{Daemon, Listeners},
};
use serde_json::Value;
use tokio::{
    net::TcpListener,
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::api::{self, Api};

/// The key that opens the oracles' routes, for callers and among peers.
pub const API_KEY: &str = "devnet";

/// How long a daemon may take to start.
const START: Duration = Duration::from_secs(30);

/// Running oracles, in the order of the signer set.
pub struct Oracles {
    pub urls: Vec<Url>,
    /// Where metrics and readiness of the first are.
    pub ops: Url,
    /// Where the integrator API is.
    pub api: Api,
    /// The directory of the first, where the operator asks.
    pub data_dir: PathBuf,
    client: reqwest::Client,
    tasks: JoinSet<Result<()>>,
    shutdown: CancellationToken,
}

/// What the first oracle is told of the world, and what else its operator sets. The others are told
/// the plain truth.
pub struct Setup {
    pub files: Files,
    pub more: Vec<(String, String)>,
}

impl Oracles {
    /// Starts one per key of the world, with its store and files below `directory`.
    pub async fn start(world: &Devnet, setup: &Setup, directory: &Path) -> Result<Self> {
        let mut listeners = Vec::new();
        for _ in &world.oracles {
            listeners.push(listen().await?);
        }
        let urls = listeners.iter().map(url).collect::<Result<Vec<_>>>()?;
        let mut operations = Vec::new();
        for _ in &world.oracles {
            operations.push(listen().await?);
        }
        let ops = operations.first().map(url).context("no oracle")??;
        let mut integrator = Some(listen().await?);
        let api = integrator.as_ref().map(url).context("no listener")??;
        let shutdown = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for (number, (oracle, ops)) in listeners.into_iter().zip(operations).enumerate() {
            let variables = variables(world, (setup, number), &urls, directory)?;
            let config = Config::from_variables(variables)?;
            let daemon = Daemon::open(&config)
                .await
                .with_context(|| format!("oracle {} does not start", number + 1))?;
            let listeners = Listeners {
                oracle,
                ops,
                integrator: integrator.take(),
            };
            tasks.spawn(daemon.serve(listeners, shutdown.clone()));
        }
        let data_dir = data_dir(directory, 0);
        let key = app_key(&data_dir).await?;
        Ok(Self {
            data_dir,
            urls,
            ops,
            api: Api::new(api, key),
            client: reqwest::Client::new(),
            tasks,
            shutdown,
        })
    }

    /// Asks the first oracle and returns its answer; anything but 200 is an error with its body.
    pub async fn ask(&self, route: &str, body: &Value) -> Result<Value> {
        let url = self.urls[0].join(route)?;
        let request = self.client.post(url).header("x-api-key", API_KEY);
        api::answer(request.json(body)).await
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

/// One of them that has ended, started again as an oracle only: to be asked why it signed.
pub struct Alone {
    pub data_dir: PathBuf,
    /// Its environment.
    pub variables: Vec<(String, String)>,
    task: JoinHandle<Result<()>>,
    shutdown: CancellationToken,
}

impl Alone {
    /// Starts oracle `number` over the store that it left below `directory`. `urls` are where all of them were.
    pub async fn start(
        world: &Devnet,
        (setup, number): (&Setup, usize),
        urls: &[Url],
        directory: &Path,
    ) -> Result<Self> {
        let mut variables = variables(world, (setup, number), urls, directory)?;
        variables.retain(|(name, _)| name != "INTEGRATOR_HTTP_PORT");
        let config = Config::from_variables(variables.clone())?;
        let daemon = Daemon::open(&config).await?;
        let listeners = Listeners {
            oracle: listen().await?,
            ops: listen().await?,
            integrator: None,
        };
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(daemon.serve(listeners, shutdown.clone()));
        let data_dir = data_dir(directory, number);
        asked(&data_dir, &Question::Halts {}).await?;
        Ok(Self {
            data_dir,
            variables,
            task,
            shutdown,
        })
    }

    pub async fn stop(self) -> Result<()> {
        self.shutdown.cancel();
        self.task.await?
    }
}

/// Where oracle `number` keeps its store.
pub fn data_dir(directory: &Path, number: usize) -> PathBuf {
    directory
        .join(format!("oracle-{}", number + 1))
        .join("data")
}

/// A new app's key, from the operator's socket of a daemon that is starting.
async fn app_key(data_dir: &Path) -> Result<String> {
    let question = Question::Integrators(Order::Add {
        label: "app".to_owned(),
        scopes: usual_scopes(),
        tier: Tier::Unlimited,
    });
    match asked(data_dir, &question).await? {
        Answer::Integrators(Outcome::Key { key }) => Ok(key.expose().to_owned()),
        other => bail!("no key, but {other:?}"),
    }
}

/// What a daemon that is starting answers to its operator.
async fn asked(data_dir: &Path, question: &Question) -> Result<Answer> {
    let asked = async {
        loop {
            match admin::ask(data_dir, question).await {
                Err(AskError::NoDaemon(_)) => sleep(Duration::from_millis(20)).await,
                asked => return asked,
            }
        }
    };
    Ok(timeout(START, asked).await.context("no daemon answers")??)
}

async fn listen() -> Result<TcpListener> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?)
}

fn url(listener: &TcpListener) -> Result<Url> {
    Ok(format!("http://{}", listener.local_addr()?).parse()?)
}

/// The whole environment of oracle `number`: what an operator would set.
fn variables(
    world: &Devnet,
    (setup, number): (&Setup, usize),
    urls: &[Url],
    directory: &Path,
) -> Result<Vec<(String, String)>> {
    let data = data_dir(directory, number);
    let directory = directory.join(format!("oracle-{}", number + 1));
    std::fs::create_dir_all(&directory)?;
    let files = &setup.files;
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
        ("DATA_DIR", data.display().to_string()),
        ("ECDSA_PRIVATE_KEY", world.oracles[number].key()),
        ("API_KEYS", format!("{API_KEY}:devnet")),
        ("PEERS", peers.join(";")),
        ("ORACLE_SIGNERS", signers.collect::<Vec<_>>().join(";")),
        (
            "ORACLE_SIGNERS_THRESHOLD",
            world.options.threshold.to_string(),
        ),
    ];
    let mut all = world.files().environment;
    // Chains that are not of this world are told to everybody alike.
    let foreign = files.environment.iter();
    let foreign: Vec<_> = foreign
        .filter(|(name, _)| all.iter().all(|(known, _)| known != name))
        .cloned()
        .collect();
    all.extend(foreign);
    all.extend(own.map(|(name, value)| (name.to_owned(), value)));
    if number == 0 {
        let market = write("market.json", &files.market)?;
        all.extend(files.environment.clone());
        all.extend(trading(world, &urls[0], market));
        all.extend(setup.more.clone());
    }
    Ok(all)
}

/// What makes an oracle's daemon a solver's, too: it asks that oracle for what it is paid with.
fn trading(world: &Devnet, oracle: &Url, market: String) -> impl Iterator<Item = (String, String)> {
    let own = [
        ("INTEGRATOR_HTTP_PORT", "0".to_owned()),
        ("MARKET_FILE", market),
        ("SOLVER_PRIVATE_KEY", world.solver.key()),
        ("SOLVER_CHAIN", world.destination.id.to_owned()),
        ("SOLVER_ORACLE_URL", oracle.to_string()),
        ("SOLVER_ORACLE_KEY", API_KEY.to_owned()),
    ];
    own.into_iter()
        .map(|(name, value)| (name.to_owned(), value))
}
