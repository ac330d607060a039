//! The process: the engine of the integrator API with the oracle that its solver asks.

use std::{
    net::Ipv4Addr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use hyper::{HeaderMap, Method, StatusCode, Version, header};
use intentd::{
    api::{intents, oracle},
    attest::{journal::Journal, peers::Peers},
    chains::Chains,
    http::{Request, Router},
    hub::Settings,
    market::Market,
    run::{
        self, Trading,
        engine::{Base, Engine, Outside},
    },
    sign::{KeyRing, Signer},
    solver::{account::SolverAccount, settle::oracle::Carrier, worker::Pace},
    store::Store,
    webhook::guard::Reach,
};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{clock, market};

/// How long a start waits for the comparison of the market file with the chains.
const SURVEY: Duration = Duration::from_secs(5);

/// Everything that a crash ends.
pub struct Process {
    api: Router,
    tasks: JoinSet<()>,
    shutdown: CancellationToken,
}

/// What a process is started with, and what is there after it.
pub struct ProcessContext {
    pub store: Arc<dyn Store>,
    pub market: Arc<Market>,
    pub keys: KeyRing,
    /// The key that signs the oracle's attestations.
    pub attester: Arc<dyn Signer>,
    /// The network on which orders name their solver.
    pub solver_chain: &'static str,
}

impl Process {
    /// Starts a process on the rows of the store.
    pub async fn start(context: &ProcessContext, chains: &Chains) -> Self {
        let shutdown = CancellationToken::new();
        let store = context.store.clone();
        let journal = Arc::new(Journal::new(store.clone(), context.attester.clone()));
        let mut tasks = JoinSet::new();
        for watcher in run::watchers(chains, &journal) {
            tasks.spawn(watcher.run(clock::seconds, shutdown.clone()));
        }
        let oracle = attesting(chains, (journal, store.clone()));
        let base = Base {
            store,
            reserve: Arc::default(),
            contract: market::ORACLE,
            outside: outside(oracle),
            troubles: Arc::default(),
            shutdown: shutdown.clone(),
        };
        let engine = run::engine::engine(&trading(context), chains, base).await;
        let Engine {
            state,
            tasks: parts,
            accounts,
            ..
        } = engine.unwrap();
        surveyed(&accounts).await;
        for (_, part) in parts {
            tasks.spawn(part);
        }
        Self {
            api: Router::default().with(&state, intents::ROUTES).unwrap(),
            tasks,
            shutdown,
        }
    }

    /// Ends it.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        self.tasks.shutdown().await;
    }

    /// The end of a task that should still run.
    pub fn is_broken(&mut self) -> Option<String> {
        let ended = self.tasks.try_join_next()?;
        Some(format!("a task ended: {ended:?}"))
    }

    /// Sends a request to the integrator API.
    pub async fn api(&self, method: Method, target: &str, body: &Value) -> (StatusCode, Value) {
        ask(&self.api, (method, target, body)).await
    }
}

fn outside(oracle: Router) -> Outside {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    Outside {
        clock: clock::millis,
        entropy: clock::entropy,
        client: CLIENT.get_or_init(reqwest::Client::new).clone(),
        oracle: Some(Arc::new(Inside(oracle))),
        pace: Pace {
            poll: Duration::from_secs(4),
            ..Pace::default()
        },
    }
}

fn trading(context: &ProcessContext) -> Trading {
    Trading {
        market: context.market.clone(),
        keys: context.keys.clone(),
        former: Vec::new(),
        solver_chain: context.solver_chain.into(),
        solver_family: vm::SETTLEMENT,
        oracle: None,
        production: false,
        quote_validity: 60,
        gap_limit: u64::MAX,
        retirement: intents::retirement::Retirement {
            deprecated_at: 0,
            throttled_from: u64::MAX,
            sunset_at: u64::MAX,
        },
        reach: Reach::Public,
    }
}

/// Compares the market file with the chains before anything else happens.
async fn surveyed(accounts: &[Arc<SolverAccount>]) {
    let surveys = accounts.iter().map(|account| async {
        let _late = tokio::time::timeout(SURVEY, account.chain.survey()).await;
    });
    futures::future::join_all(surveys).await;
}

/// Brings the settler's questions to the oracle of the same process.
struct Inside(Router);

#[async_trait]
impl Carrier for Inside {
    async fn post(&self, path: &str, body: &Value) -> Result<(StatusCode, Vec<u8>), String> {
        let (status, answer) = ask(&self.0, (Method::POST, path, body)).await;
        Ok((status, answer.to_string().into_bytes()))
    }
}

async fn ask(
    router: &Router,
    (method, target, body): (Method, &str, &Value),
) -> (StatusCode, Value) {
    let path = target.split('?').next().unwrap_or_default();
    let (endpoint, params) = router.find(&method, path).unwrap();
    let mut headers = HeaderMap::new();
    let json = header::HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    let request = Request {
        toll: intentd::http::auth::Toll::default(),
        method,
        version: Version::HTTP_11,
        target: target.into(),
        headers,
        body: body.to_string().into_bytes().into(),
        client: Ipv4Addr::LOCALHOST.into(),
        key: None,
        scopes: Arc::new([]),
        params,
    };
    let answer = match (endpoint.call)(request).await {
        Ok(answer) => answer,
        Err(error) => error.into_response(),
    };
    let whole = answer.body.bytes().cloned().unwrap_or_default();
    let body = serde_json::from_slice(&whole).unwrap_or(Value::Null);
    (answer.status, body)
}

fn attesting(chains: &Chains, (journal, store): (Arc<Journal>, Arc<dyn Store>)) -> Router {
    static PEERS: OnceLock<Peers> = OnceLock::new();
    let nobody = || Peers::new(Vec::new(), Duration::from_secs(1), None).unwrap();
    let peers = PEERS.get_or_init(nobody).clone();
    let settings = Settings::parse(chains.hub_entry()).unwrap();
    let state = Arc::new(oracle::State {
        listed: chains.list().iter().map(run::listed).collect(),
        oracle: run::oracle(chains, settings, (journal, store), peers, clock::seconds),
        force: Default::default(),
    });
    Router::default().with(&state, oracle::ROUTES).unwrap()
}

/// The HTTP client of all endpoints: making one takes long, and no scripted chain uses it.
pub fn endpoint_client() -> reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    let made = || vm::Endpoint::client().unwrap();
    CLIENT.get_or_init(made).clone()
}
