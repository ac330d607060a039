//! What a process over scripted chains is made of: the engine of the integrator API, the oracle that its solver asks, and
//! their tasks. Its program has a `clock` and a `market`.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use hyper::{HeaderMap, Method, StatusCode, Version, header};
use intentd::{
    api::{intents, oracle},
    attest::{journal::Journal, peers::Peers, service::Attestor},
    chains::{Chains, Opened},
    http::{KeyLabel, Request, Router},
    hub::Settings,
    market::Market,
    run::{
        self, Trading,
        engine::{Base, Engine, Outside},
    },
    sign::KeyRing,
    solver::{account::SolverAccount, settle::oracle::OracleTransport, worker::Pace},
    store::Store,
    webhook::guard::Reach,
};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use vm::{ChainSpec, Provider, quorum::Quorum, trade::TradingProvider};

use crate::{clock, market};

/// How long a start waits for chains to confirm the market file.
const SURVEY: Duration = Duration::from_secs(5);

/// What the solver has asked its oracle: path and body.
pub type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// An oracle's journal and its store.
pub type Memory = (Arc<Journal>, Arc<dyn Store>);

/// The tasks of a process.
pub struct Tasks {
    set: JoinSet<()>,
    shutdown: CancellationToken,
}

impl Tasks {
    /// The watchers of what the journal has signed.
    pub fn watching(chains: &Chains, journal: &Arc<Journal>) -> Self {
        let (mut set, shutdown) = (JoinSet::new(), CancellationToken::new());
        for watcher in run::watchers(chains, journal) {
            set.spawn(watcher.run(clock::seconds, shutdown.clone()));
        }
        Self { set, shutdown }
    }

    /// An engine over `store` whose solver asks `oracle`. The worker would compare the market file with the chains as soon;
    /// here nothing happens before it, as far as the chains answer in time.
    pub async fn engine(
        &self,
        trading: &Trading,
        chains: &Chains,
        (store, oracle): (Arc<dyn Store>, Inside),
    ) -> Engine {
        let base = Base {
            store,
            reserve: Arc::default(),
            contract: market::ORACLE,
            outside: outside(oracle),
            tail_states: Arc::default(),
            shutdown: self.shutdown.clone(),
        };
        let engine = run::engine::engine(trading, chains, base).await.unwrap();
        surveyed(&engine.accounts).await;
        engine
    }

    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.set.spawn(task);
    }

    /// The process dies: what was in memory is gone.
    pub async fn stop(&mut self) {
        self.shutdown.cancel();
        self.set.shutdown().await;
    }

    /// The end of a task that should still run.
    pub fn is_broken(&mut self) -> Option<String> {
        let ended = self.set.try_join_next()?;
        Some(format!("a task ended: {ended:?}"))
    }
}

async fn surveyed(accounts: &[Arc<SolverAccount>]) {
    let surveys = accounts.iter().map(|account| async {
        let _late = tokio::time::timeout(SURVEY, account.chain.survey()).await;
    });
    futures::future::join_all(surveys).await;
}

fn outside(oracle: Inside) -> Outside {
    // Clients take long to make.
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    Outside {
        clock: clock::millis,
        entropy: clock::entropy,
        client: CLIENT.get_or_init(reqwest::Client::new).clone(),
        oracle: Some(Arc::new(oracle)),
        pace: Pace {
            poll: Duration::from_secs(4),
            ..Pace::default()
        },
    }
}

/// A chain of three providers, of which two must agree.
pub fn opened(
    spec: &Arc<ChainSpec>,
    readers: Vec<Provider>,
    trading_providers: Vec<TradingProvider>,
) -> Opened {
    let has_state = readers.iter().all(|one| one.state.is_some());
    let quorum = Arc::new(Quorum::new(&spec.id, readers, 2).unwrap());
    Opened {
        chain: vm::Chain {
            spec: spec.clone(),
            reader: quorum.clone(),
            state: has_state.then(|| quorum.clone() as _),
        },
        quorum,
        providers: 3,
        required: 2,
        named: true,
        checks_network: true,
        few: None,
        asking: trading_providers.clone(),
        trading_providers,
    }
}

/// What a solver trades on that names `solver_chain` in its orders.
pub fn trading(market: Arc<Market>, keys: KeyRing, solver_chain: &str) -> Trading {
    Trading {
        market,
        keys,
        former: Vec::new(),
        solver_chain: solver_chain.into(),
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

/// Brings the settler's questions to the oracle of the same process.
pub struct Inside {
    pub oracle: Arc<Router>,
    pub asked: Asked,
}

#[async_trait]
impl OracleTransport for Inside {
    async fn post(&self, path: &str, body: &Value) -> Result<(StatusCode, Vec<u8>), String> {
        let asked = (path.to_owned(), body.clone());
        self.asked.lock().unwrap().push(asked);
        let (status, answer) = ask(&self.oracle, (Method::POST, path, body), None).await;
        Ok((status, answer.to_string().into_bytes()))
    }
}

/// An oracle; the keys of these labels may force. Nobody else is asked.
pub fn attesting(chains: &Chains, (journal, store): Memory, force: &[&str]) -> Router {
    static PEERS: OnceLock<Peers> = OnceLock::new();
    let nobody = || Peers::new(Vec::new(), Duration::from_secs(1), None).unwrap();
    let peers = PEERS.get_or_init(nobody).clone();
    let settings = Settings::parse(chains.hub_entry()).unwrap();
    let state = Arc::new(oracle::State {
        listed: chains.list().iter().map(run::listed).collect(),
        oracle: Attestor {
            clock: clock::seconds,
            ..run::oracle(chains, settings, journal, store, peers)
        },
        force: force.iter().map(|label| (*label).to_owned()).collect(),
        repeated: oracle::Repeated::default(),
        shadow: None,
    });
    Router::default().with(&state, oracle::ROUTES).unwrap()
}

/// A request, with the key of a label or none.
pub async fn ask(
    router: &Router,
    (method, target, body): (Method, &str, &Value),
    key: Option<KeyLabel>,
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
        key,
        scopes: Arc::new([]),
        params,
    };
    let answer = (endpoint.call)(request).await;
    let answer = answer.unwrap_or_else(|error| error.into_response());
    let whole = answer.body.bytes().cloned().unwrap_or_default();
    let body = serde_json::from_slice(&whole).unwrap_or(Value::Null);
    (answer.status, body)
}
