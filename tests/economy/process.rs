//! The process: the engine of the integrator API, the oracle, its watchers; and beside it the oracle
//! of somebody else, which signs for the same hub.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use intentd::{
    api::intents,
    attest::journal::Journal,
    chains::{Chains, Loaded},
    http::{KeyLabel, Router},
    run::{Trading, engine::Engine},
    sign::{FormerKey, KeyRing},
    solver::{account::SolverAccount, admin::AdminHandle},
    store::Store,
};
use serde_json::{Value, json};

use crate::{
    chain::{ledger_provider::LedgerProvider, provider::Provider},
    clock,
    engine::{self, Inside, Tasks, ask, attesting},
    market::{self, CHAINS},
    world::{FORCER, PEER, SIGNER, World, key},
};

/// What dies in a crash.
pub struct Process {
    api: Router,
    oracle: Arc<Router>,
    peer: Router,
    handle: AdminHandle,
    accounts: Vec<Arc<SolverAccount>>,
    tasks: Tasks,
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
        let chains = self.opened();
        let store: Arc<dyn Store> = self.store.clone();
        let journal = Arc::new(Journal::new(store.clone(), key(SIGNER)));
        let mut tasks = Tasks::watching(&chains, &journal);
        // The peer of the solver's oracle has its own key and memory.
        let elsewhere: Arc<dyn Store> = self.peer.clone();
        let signed = Arc::new(Journal::new(elsewhere.clone(), key(PEER)));
        let peer = attesting(&chains, (signed, elsewhere), &[]);
        let oracle = Arc::new(attesting(&chains, (journal, store.clone()), &[FORCER]));
        let inside = Inside {
            oracle: oracle.clone(),
            asked: self.asked.clone(),
        };
        let Engine {
            state,
            solver,
            tasks: parts,
            accounts,
            ..
        } = tasks
            .engine(&self.trading(), &chains, (store, inside))
            .await;
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
        });
    }

    /// The process dies: what was in memory is gone.
    pub async fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.tasks.stop().await;
        }
    }

    /// Whether any part of the process has died by itself.
    pub fn is_broken(&mut self) -> Option<String> {
        self.process.as_mut()?.tasks.is_broken()
    }

    fn trading(&self) -> Trading {
        let keys = KeyRing::of_secp256k1(self.signer.clone());
        let former = self.former.iter().cloned();
        Trading {
            former: former.map(FormerKey::Secp256k1).collect(),
            ..engine::trading(self.market.clone(), keys, "alpha")
        }
    }

    /// The chains as the process opens them.
    pub fn opened(&self) -> Chains {
        let mut opened = self
            .chains
            .iter()
            .zip(&self.providers)
            .map(|(chain, providers)| Provider::open(chain, providers));
        let (alpha, beta) = (opened.next().unwrap(), opened.next().unwrap());
        let hub = opened.next().unwrap();
        let evm = [alpha, beta].map(|opened| Loaded {
            id: opened.chain.spec.id.to_string(),
            vm_type: vm::SETTLEMENT.name.into(),
            hub_chain_id: None,
            depository: Some(market::DEPOSITORY.to_string()),
            chain: Ok(opened),
            keys: None,
            served: true,
        });
        let each = self.ledgers.iter().zip(&self.ledger_providers);
        let others =
            each.map(|(ledger, ledger_providers)| LedgerProvider::load(ledger, ledger_providers));
        let list = evm.into_iter().chain(others).collect();
        let (name, number, _) = CHAINS[2];
        let entry = json!({
            "id": name, "evmChainId": number.to_string(), "oracleVersion": "2",
            "oracleAddress": market::ORACLE, "genericMappingAddress": market::MAPPING,
        });
        Chains::of(list, hub, entry.as_object().cloned().unwrap())
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
