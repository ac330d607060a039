//! The process: the engine of the integrator API with the oracle that its solver asks, and beside it that oracle's peer.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use hyper::{Method, StatusCode};
use intentd::{
    api::intents,
    attest::journal::Journal,
    chains::{Chains, Opened},
    http::Router,
    market::Market,
    run::engine::Engine,
    sign::{KeyRing, Signer},
    solver::admin::AdminHandle,
    store::Store,
};
use reqwest::Client;
use serde_json::Value;
use vm::{ChainSpec, Endpoint};

use crate::{
    clock,
    engine::{self, Asked, Inside, Tasks},
};

/// Everything that a crash ends.
pub struct Process {
    api: Router,
    /// The solver's, and its peer.
    oracles: [Arc<Router>; 2],
    operator: AdminHandle,
    tasks: Tasks,
}

/// What a process is started with, and what is there after it.
pub struct ProcessContext {
    pub store: Arc<dyn Store>,
    pub market: Arc<Market>,
    pub keys: KeyRing,
    /// The key that signs the oracle's attestations.
    pub attester: Arc<dyn Signer>,
    /// The key of the oracle's peer, and what the peer has signed.
    pub peer: (Arc<dyn Signer>, Arc<dyn Store>),
    /// What the solver has asked its oracle.
    pub asked: Asked,
    /// The network on which orders name their solver.
    pub solver_chain: &'static str,
}

impl Process {
    /// Starts a process on the rows of the store.
    pub async fn start(context: &ProcessContext, chains: &Chains) -> Self {
        let store = context.store.clone();
        let journal = Arc::new(Journal::new(store.clone(), context.attester.clone()));
        let mut tasks = Tasks::watching(chains, &journal);
        let oracle = Arc::new(engine::attesting(chains, (journal, store.clone()), &[]));
        let (key, elsewhere) = context.peer.clone();
        let signed = Arc::new(Journal::new(elsewhere.clone(), key));
        let peer = Arc::new(engine::attesting(chains, (signed, elsewhere), &[]));
        let inside = Inside {
            oracle: oracle.clone(),
            asked: context.asked.clone(),
        };
        let (market, keys) = (context.market.clone(), context.keys.clone());
        let trading = engine::trading(market, keys, context.solver_chain);
        let Engine {
            state,
            solver,
            tasks: parts,
            ..
        } = tasks.engine(&trading, chains, (store, inside)).await;
        for (_, part) in parts {
            tasks.spawn(part);
        }
        Self {
            api: Router::default().with(&state, intents::ROUTES).unwrap(),
            oracles: [oracle, peer],
            operator: AdminHandle {
                requests: solver.requests.clone(),
                reconciliation: solver.reconciliation.subscribe(),
                clock: clock::millis,
            },
            tasks,
        }
    }

    /// What the operator asks the running solver through.
    pub fn operator(&self) -> &AdminHandle {
        &self.operator
    }

    /// Ends it.
    pub async fn stop(mut self) {
        self.tasks.stop().await;
    }

    /// The end of a task that should still run.
    pub fn is_broken(&mut self) -> Option<String> {
        self.tasks.is_broken()
    }

    /// Sends a request to the integrator API.
    pub async fn api(&self, method: Method, target: &str, body: &Value) -> (StatusCode, Value) {
        engine::ask(&self.api, (method, target, body), None).await
    }

    /// Sends a claim to the solver's oracle, or to its peer.
    pub async fn claim(&self, elsewhere: bool, path: &str, body: &Value) -> (StatusCode, Value) {
        let oracle = &self.oracles[usize::from(elsewhere)];
        engine::ask(oracle, (Method::POST, path, body), None).await
    }
}

/// A chain over providers in this process, at these URLs.
pub fn opened(spec: &Arc<ChainSpec>, urls: [String; 3]) -> Opened {
    let endpoints = (1..).zip(&urls).map(|(position, url)| Endpoint {
        position,
        url: url.parse().unwrap(),
        timeout: Duration::from_secs(1),
        longest: 1 << 22,
        allows: None,
        client: endpoint_client(),
    });
    let endpoints: Vec<_> = endpoints.collect();
    let (open, trade) = (spec.family.open.unwrap(), spec.family.trade.unwrap());
    let providers = (1..).zip(&endpoints).map(|(number, one)| {
        let mut provider = open(spec, one).unwrap();
        // All have one host.
        provider.name = format!("{} {number}", provider.name).into();
        provider
    });
    let trading = endpoints.iter().map(|one| trade(spec, one).unwrap());
    engine::opened(spec, providers.collect(), trading.collect())
}

/// The HTTP client of all endpoints: making one takes long, and no scripted chain uses it.
fn endpoint_client() -> Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    let made = || Endpoint::client().unwrap();
    CLIENT.get_or_init(made).clone()
}
