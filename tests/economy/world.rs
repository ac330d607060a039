//! Three scripted chains with three providers each, a store that survives the process, and the
//! process: the engine of the integrator API, the oracle, its watchers.

use std::{
    net::Ipv4Addr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use alloy::primitives::{Address, U256};
use async_trait::async_trait;
use hyper::{HeaderMap, Method, StatusCode, Version, header};
use intentd::{
    api::{intents, oracle},
    attest::{journal::Journal, peers::Peers},
    chains::{Chains, Loaded, Opened},
    http::{Request, Router},
    hub::Settings,
    market::Market,
    run::{
        self, Trading,
        engine::{Base, Engine, Outside},
    },
    sign::{Signer, raw::RawKey},
    solver::{settle::oracle::Carrier, worker::Pace},
    store::Store,
    webhook::guard::Reach,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use vm::{ChainEntry, protocol::message::Domain, quorum::Quorum};

use crate::{
    chain::{
        self, Chain,
        provider::Provider,
        state::{Contract, State},
    },
    clock,
    fuse::Mortal,
    market::{self, CHAINS, Prices},
};

const SOLVER: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
const SIGNER: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
/// What the solver has of each currency on each chain, in whole units.
const ETH: u64 = 1_000;
const TOKENS: u64 = 5_000_000;
/// Wei per gas unit at first.
const GAS: u128 = 20_000_000_000;

/// See the module.
pub struct World {
    pub chains: [Arc<Chain>; 3],
    pub providers: [[Arc<Provider>; 3]; 3],
    pub prices: Arc<Prices>,
    pub store: Arc<Mortal>,
    pub solver: Address,
    pub market: Arc<Market>,
    process: Option<Process>,
}

/// What dies in a crash.
struct Process {
    api: Router,
    oracle: Arc<Router>,
    tasks: JoinSet<()>,
    shutdown: CancellationToken,
}

/// A key as its holder has it.
fn key(text: &str) -> Arc<dyn Signer> {
    Arc::new(RawKey::parse(text).unwrap())
}

impl World {
    /// `accounts` have plenty of everything.
    pub fn new(accounts: &[Address]) -> Self {
        let (solver, signer) = (key(SOLVER).address(), key(SIGNER).address());
        let prices = Prices::new();
        let chains = CHAINS.map(|place| chain(place, (solver, signer), accounts));
        let providers = chains
            .each_ref()
            .map(|chain| [(); 3].map(|()| Provider::new(chain, &prices)));
        Self {
            chains,
            providers,
            prices,
            store: Mortal::new(),
            solver,
            market: market::market(),
            process: None,
        }
    }

    /// By the API's number.
    pub fn by_number(&self, number: u64) -> &Arc<Chain> {
        let found = self.chains.iter().find(|chain| chain.number == number);
        found.unwrap()
    }

    pub fn chain(&self, name: &str) -> &Arc<Chain> {
        let found = self.chains.iter().find(|chain| chain.name == name);
        found.unwrap()
    }

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
        let state = Arc::new(oracle::State {
            listed: chains.list().iter().map(run::listed).collect(),
            oracle: run::oracle(
                &chains,
                settings,
                (journal, store.clone()),
                peers(),
                clock::seconds,
            ),
            force: Vec::new(),
        });
        let oracle = Arc::new(Router::default().with(&state, oracle::ROUTES).unwrap());
        let outside = Outside {
            clock: clock::millis,
            entropy: clock::entropy,
            client: client(),
            oracle: Some(Arc::new(Inside(oracle.clone()))),
            pace: Pace {
                poll: Duration::from_secs(4),
                ..Pace::default()
            },
        };
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
        let Engine {
            state,
            tasks: parts,
            ..
        } = engine.unwrap();
        for (name, part) in parts {
            // Transactions in full are for display.
            if !name.starts_with("witnesses") {
                tasks.spawn(part);
            }
        }
        self.process = Some(Process {
            api: Router::default().with(&state, intents::ROUTES).unwrap(),
            oracle,
            tasks,
            shutdown,
        });
    }

    /// The process dies: what was in memory is gone.
    pub async fn crash(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.shutdown.cancel();
            process.tasks.shutdown().await;
        }
        self.start().await;
    }

    /// Whether any part of the process has died by itself.
    pub fn is_broken(&mut self) -> Option<String> {
        let process = self.process.as_mut()?;
        let ended = process.tasks.try_join_next()?;
        Some(format!("a task ended: {ended:?}"))
    }

    fn trading(&self) -> Trading {
        Trading {
            market: self.market.clone(),
            signer: key(SOLVER),
            previous: Vec::new(),
            solver_chain: "alpha".into(),
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

    fn opened(&self) -> Chains {
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
            "oracleAddress": market::ORACLE,
        });
        Chains::of(list.into(), hub, entry.as_object().cloned().unwrap())
    }

    /// A request to the integrator API, as a stranger sends it.
    pub async fn api(&self, method: Method, target: &str, body: &Value) -> (StatusCode, Value) {
        let router = &self.process.as_ref().unwrap().api;
        ask(router, method, target, body).await
    }

    /// A request to the oracle.
    pub async fn oracle(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        let router = &self.process.as_ref().unwrap().oracle;
        ask(router, Method::POST, path, body).await
    }
}

/// The oracle of the same process.
struct Inside(Arc<Router>);

#[async_trait]
impl Carrier for Inside {
    async fn post(&self, path: &str, body: &Value) -> Result<(StatusCode, Vec<u8>), String> {
        let (status, answer) = ask(&self.0, Method::POST, path, body).await;
        Ok((status, answer.to_string().into_bytes()))
    }
}

async fn ask(router: &Router, method: Method, target: &str, body: &Value) -> (StatusCode, Value) {
    let path = target.split('?').next().unwrap_or_default();
    let (endpoint, params) = router.find(&method, path).unwrap();
    let mut headers = HeaderMap::new();
    let json = header::HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    let request = Request {
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
    match (endpoint.call)(request).await {
        Ok(answer) => {
            let whole = answer.body.whole().cloned().unwrap_or_default();
            let body = serde_json::from_slice(&whole).unwrap_or(Value::Null);
            (answer.status, body)
        }
        Err(error) => {
            let answer = error.into_response();
            let whole = answer.body.whole().cloned().unwrap_or_default();
            let body = serde_json::from_slice(&whole).unwrap_or(Value::Null);
            (answer.status, body)
        }
    }
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
        trades: providers.iter().map(Provider::trade).collect(),
    }
}

fn chain(
    (name, number, pace): (&'static str, u64, u64),
    (solver, signer): (Address, Address),
    accounts: &[Address],
) -> Arc<Chain> {
    let additional = json!({"finalizationBlocks": chain::FINAL, "finalizationTime": 0});
    let entry = ChainEntry {
        id: name.into(),
        hub_chain_id: Some(number.to_string()),
        depository: (name != "relay").then(|| market::DEPOSITORY.to_string()),
        additional_data: additional.as_object().cloned().unwrap(),
        ..ChainEntry::default()
    };
    let spec = entry.spec(vm::SETTLEMENT, false).unwrap();
    let base = chain::Base {
        state: genesis(name, (solver, signer), accounts),
        domain: Domain::oracle("2", U256::from(CHAINS[2].1), market::ORACLE),
        signer: solver,
        gas: if name == "relay" { GAS / 100 } else { GAS },
    };
    Chain::new(spec, name, pace, base)
}

fn genesis(name: &str, (solver, signer): (Address, Address), accounts: &[Address]) -> State {
    let router = market::ROUTER;
    let mut state = State::default();
    let ether = U256::from(10).pow(U256::from(18));
    state.give(solver, market::NATIVE, U256::from(ETH) * ether);
    for account in accounts {
        state.give(*account, market::NATIVE, U256::from(ETH) * ether);
    }
    if name == "relay" {
        let oracle = Contract::Oracle { signer };
        state.contracts.insert(market::ORACLE, oracle);
        return state;
    }
    for token in [market::USDC, market::BRIDGED, market::JUNK] {
        state.contracts.insert(token, Contract::Token);
        if market::currency(name, token).is_some() {
            let amount = U256::from(TOKENS) * U256::from(1_000_000);
            state.give(solver, token, amount);
        }
        for account in accounts {
            state.give(*account, token, U256::from(10).pow(U256::from(18)));
        }
    }
    state.contracts.extend([
        (market::DEPOSITORY, Contract::Depository),
        (market::ROUTER, Contract::Router),
        (market::PROXY, Contract::Proxy { router }),
        (market::TILL, Contract::Till { burns: 0 }),
        (market::BURNER, Contract::Till { burns: 6_000_000 }),
    ]);
    state
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
