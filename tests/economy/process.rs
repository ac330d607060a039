//! The process: the engine of the integrator API, the oracle, its watchers; and beside it the oracle
//! of somebody else, which signs for the same hub.

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
    chains::{Chains, Loaded, Opened},
    http::{KeyLabel, Request, Router},
    hub::Settings,
    run::{
        self, Trading,
        engine::{Base, Engine, Outside},
    },
    sign::{FormerKey, KeyRing},
    solver::{account::SolverAccount, admin::AdminHandle, settle::oracle::Carrier, worker::Pace},
    store::Store,
    webhook::guard::Reach,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use vm::quorum::Quorum;

use crate::{
    chain::{Chain, provider::Provider},
    clock,
    market::{self, CHAINS},
    world::{Asked, FORCER, PEER, SIGNER, World, key},
};

/// How long a start waits for chains to confirm the market file.
const SURVEY: Duration = Duration::from_secs(5);

/// What dies in a crash.
pub struct Process {
    api: Router,
    oracle: Arc<Router>,
    peer: Router,
    handle: AdminHandle,
    accounts: Vec<Arc<SolverAccount>>,
    tasks: JoinSet<()>,
    shutdown: CancellationToken,
}

impl Process {
    pub fn handle(&self) -> &AdminHandle {
        &self.handle
    }
}

impl World {
    /// The process begins on what the store holds.
    pub async fn start(&mut self) {
        self.store.heal();
        let shutdown = CancellationToken::new();
        let chains = self.opened();
        let settings = Settings::parse(chains.hub_entry()).unwrap();
        let store: Arc<dyn Store> = self.store.clone();
        let journal = Arc::new(Journal::new(store.clone(), key(SIGNER)));
        let mut tasks = JoinSet::new();
        for watcher in run::watchers(&chains, &journal) {
            tasks.spawn(watcher.run(clock::seconds, shutdown.clone()));
        }
        let peer = attesting(&chains, settings.clone(), self.elsewhere(), &[]);
        let own = (journal, store.clone());
        let oracle = Arc::new(attesting(&chains, settings, own, &[FORCER]));
        let outside = self.outside(&oracle);
        let base = Base {
            store,
            reserve: Arc::default(),
            contract: market::ORACLE,
            outside,
            troubles: Arc::default(),
            shutdown: shutdown.clone(),
        };
        let trading = self.trading();
        let engine = run::engine::engine(&trading, &chains, base).await;
        let engine = engine.unwrap();
        surveyed(&engine).await;
        let Engine {
            state,
            solver,
            tasks: parts,
            accounts,
            ..
        } = engine;
        for (name, part) in parts {
            // Transactions in full are for display.
            if !name.starts_with("witnesses") {
                tasks.spawn(part);
            }
        }
        self.process = Some(Process {
            api: Router::default().with(&state, intents::ROUTES).unwrap(),
            oracle,
            peer,
            handle: AdminHandle {
                requests: solver.requests.clone(),
                reconciliation: solver.reconciliation.subscribe(),
                clock: clock::millis,
            },
            accounts,
            tasks,
            shutdown,
        });
    }

    /// What the engine needs of the world.
    fn outside(&self, oracle: &Arc<Router>) -> Outside {
        Outside {
            clock: clock::millis,
            entropy: clock::entropy,
            client: client(),
            oracle: Some(Arc::new(Inside {
                oracle: oracle.clone(),
                asked: self.asked.clone(),
            })),
            pace: Pace {
                poll: Duration::from_secs(4),
                ..Pace::default()
            },
        }
    }

    /// What the peer of the solver's oracle signs with and remembers.
    fn elsewhere(&self) -> (Arc<Journal>, Arc<dyn Store>) {
        let store: Arc<dyn Store> = self.peer.clone();
        (Arc::new(Journal::new(store.clone(), key(PEER))), store)
    }

    /// The process dies: what was in memory is gone.
    pub async fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.shutdown.cancel();
            process.tasks.shutdown().await;
        }
    }

    /// Whether any part of the process has died by itself.
    pub fn is_broken(&mut self) -> Option<String> {
        let process = self.process.as_mut()?;
        let ended = process.tasks.try_join_next()?;
        Some(format!("a task ended: {ended:?}"))
    }

    fn trading(&self) -> Trading {
        let former = self.former.iter().cloned();
        Trading {
            market: self.market.clone(),
            keys: KeyRing::of_secp256k1(self.signer.clone()),
            former: former.map(FormerKey::Secp256k1).collect(),
            solver_chain: "alpha".into(),
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

    /// The chains as the process opens them.
    pub fn opened(&self) -> Chains {
        let mut opened = self
            .chains
            .iter()
            .zip(&self.providers)
            .map(|(chain, providers)| open(chain, providers));
        let (alpha, beta) = (opened.next().unwrap(), opened.next().unwrap());
        let hub = opened.next().unwrap();
        let list = [alpha, beta].map(|opened| Loaded {
            id: opened.chain.spec.id.to_string(),
            vm_type: vm::SETTLEMENT.name.into(),
            depository: Some(market::DEPOSITORY.to_string()),
            chain: Ok(opened),
            served: true,
        });
        let (name, number, _) = CHAINS[2];
        let entry = json!({
            "id": name, "evmChainId": number.to_string(), "oracleVersion": "2",
            "oracleAddress": market::ORACLE, "genericMappingAddress": market::MAPPING,
        });
        Chains::of(list.into(), hub, entry.as_object().cloned().unwrap())
    }

    /// A request to the integrator API, as a stranger sends it.
    pub async fn api(&self, method: Method, target: &str, body: &Value) -> (StatusCode, Value) {
        self.api_by(None, (method, target, body)).await
    }

    /// The same, with the key of a label, or none.
    pub async fn api_by(
        &self,
        label: Option<&str>,
        asked: (Method, &str, &Value),
    ) -> (StatusCode, Value) {
        let router = &self.process.as_ref().unwrap().api;
        ask(router, asked, label.map(KeyLabel::new)).await
    }

    /// A request to the solver's oracle, or to its peer; with the key of a label, or none.
    pub async fn oracle(
        &self,
        (elsewhere, label): (bool, Option<&str>),
        path: &str,
        body: &Value,
    ) -> (StatusCode, Value) {
        let process = self.process.as_ref().unwrap();
        let router: &Router = if elsewhere {
            &process.peer
        } else {
            &process.oracle
        };
        let key = label.map(KeyLabel::new);
        ask(router, (Method::POST, path, body), key).await
    }

    pub fn handle(&self) -> &AdminHandle {
        self.process.as_ref().unwrap().handle()
    }

    pub fn accounts(&self) -> &[Arc<SolverAccount>] {
        &self.process.as_ref().unwrap().accounts
    }
}

/// The worker would do it as soon; here nothing happens before it, as far as the chains answer in time.
async fn surveyed(engine: &Engine) {
    let surveys = engine.accounts.iter().map(|account| async {
        let _late = tokio::time::timeout(SURVEY, account.chain.survey()).await;
    });
    futures::future::join_all(surveys).await;
}

/// The oracle of the same process.
struct Inside {
    oracle: Arc<Router>,
    asked: Asked,
}

#[async_trait]
impl Carrier for Inside {
    async fn post(&self, path: &str, body: &Value) -> Result<(StatusCode, Vec<u8>), String> {
        let asked = (path.to_owned(), body.clone());
        self.asked.lock().unwrap().push(asked);
        let (status, answer) = ask(&self.oracle, (Method::POST, path, body), None).await;
        Ok((status, answer.to_string().into_bytes()))
    }
}

async fn ask(
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
    match (endpoint.call)(request).await {
        Ok(answer) => {
            let whole = answer.body.bytes().cloned().unwrap_or_default();
            let body = serde_json::from_slice(&whole).unwrap_or(Value::Null);
            (answer.status, body)
        }
        Err(error) => {
            let answer = error.into_response();
            let whole = answer.body.bytes().cloned().unwrap_or_default();
            let body = serde_json::from_slice(&whole).unwrap_or(Value::Null);
            (answer.status, body)
        }
    }
}

/// An oracle with its journal; the keys of these labels may force.
fn attesting(
    chains: &Chains,
    settings: Settings,
    (journal, store): (Arc<Journal>, Arc<dyn Store>),
    force: &[&str],
) -> Router {
    let state = Arc::new(oracle::State {
        listed: chains.list().iter().map(run::listed).collect(),
        oracle: run::oracle(chains, settings, (journal, store), peers(), clock::seconds),
        force: force.iter().map(|label| (*label).to_owned()).collect(),
    });
    Router::default().with(&state, oracle::ROUTES).unwrap()
}

fn open(chain: &Arc<Chain>, providers: &[Arc<Provider>; 3]) -> Opened {
    let names = ["one", "two", "three"];
    let readers = providers.iter().zip(names);
    let readers = readers.map(|(provider, name)| provider.reader(name));
    let quorum = Quorum::new(&chain.spec.id, readers.collect(), 2).unwrap();
    let quorum = Arc::new(quorum);
    Opened {
        chain: vm::Chain {
            spec: chain.spec.clone(),
            reader: quorum.clone(),
            state: Some(quorum.clone()),
        },
        quorum,
        providers: 3,
        required: 2,
        named: true,
        few: None,
        trading_providers: providers.iter().map(Provider::trade).collect(),
        asking: providers.iter().map(Provider::trade).collect(),
    }
}

/// Nobody else is asked; clients take long to make.
fn peers() -> Peers {
    static PEERS: OnceLock<Peers> = OnceLock::new();
    let made = || Peers::new(Vec::new(), Duration::from_secs(1), None).unwrap();
    PEERS.get_or_init(made).clone()
}

fn client() -> reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    CLIENT.get_or_init(reqwest::Client::new).clone()
}
