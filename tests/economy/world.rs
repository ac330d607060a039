//! The chains with three providers each, and what survives the process.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use alloy::primitives::{Address, U256};
use intentd::{
    market::Market,
    sign::{Signer, raw::RawKey},
    store::memory::MemoryStore,
};
use serde_json::json;
use vm::{ChainEntry, protocol::message::Domain};

use crate::{
    chain::{
        self, Chain,
        ledger::{HABITS, Ledger},
        ledger_provider::LedgerProvider,
        provider::{Manners, Provider},
        state::{Contract, State},
    },
    engine::Asked,
    fuse::Mortal,
    market::{self, CHAINS, Prices},
    process::Process,
};

pub const SOLVER: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
pub const SIGNER: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
pub const PEER: &str = "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a";
/// What the solver has of each currency on each chain, in whole units.
const ETH: u64 = 1_000;
const TOKENS: u64 = 5_000_000;
/// Wei per gas unit at first.
const GAS: u128 = 20_000_000_000;

/// Labels of the keys of whoever may force at the solver's oracle, and of its peers.
pub const FORCER: &str = "operator";
pub const PEERS: &str = "peer";

/// The chains with their providers, the store, and the keys: all that a restarted process finds again.
pub struct World {
    pub chains: [Arc<Chain>; 3],
    pub providers: [[Arc<Provider>; 3]; 3],
    /// Chains without contracts, which only the oracle reads, with their providers.
    pub ledgers: Vec<Arc<Ledger>>,
    pub ledger_providers: Vec<[Arc<LedgerProvider>; 3]>,
    pub prices: Arc<Prices>,
    pub store: Arc<Mortal>,
    pub solver: Address,
    /// The solver's key, and those that it had before.
    pub signer: Arc<dyn Signer>,
    pub former: Vec<Arc<dyn Signer>>,
    pub market: Arc<Market>,
    /// What the peer of the solver's oracle has signed.
    pub peer: Arc<MemoryStore>,
    pub process: Option<Process>,
    pub asked: Asked,
}

/// A key as its holder has it.
pub fn key(text: &'static str) -> Arc<dyn Signer> {
    static KEYS: Mutex<BTreeMap<&str, Arc<dyn Signer>>> = Mutex::new(BTreeMap::new());
    let made = || -> Arc<dyn Signer> { Arc::new(RawKey::parse(text).unwrap()) };
    let mut keys = KEYS.lock().unwrap();
    keys.entry(text).or_insert_with(made).clone()
}

impl World {
    /// `accounts` have plenty of everything; the solver may pay `cap` dollars an hour on a network.
    pub fn new(accounts: &[Address], cap: Option<u64>) -> Self {
        let (solver, signers) = (
            key(SOLVER).address(),
            [SIGNER, PEER].map(|one| key(one).address()),
        );
        let prices = Prices::new();
        let chains = CHAINS.map(|place| chain(place, (solver, signers), accounts));
        let providers = chains
            .each_ref()
            .map(|chain| [(); 3].map(|()| Provider::new(chain, &prices)));
        Self {
            chains,
            providers,
            ledgers: Vec::new(),
            ledger_providers: Vec::new(),
            prices,
            store: Mortal::new(),
            solver,
            signer: key(SOLVER),
            former: Vec::new(),
            market: market::market(cap),
            peer: Arc::default(),
            process: None,
            asked: Asked::default(),
        }
    }

    /// There are chains without contracts, too; `accounts` act there, and last in each block of the others.
    #[must_use]
    pub fn with_ledgers(mut self, names: &[&str], accounts: &[Address]) -> Self {
        let ledgers = names.iter().filter_map(|name| Ledger::new(name, accounts));
        self.ledgers = ledgers.collect();
        let three = |ledger: &Arc<Ledger>| [(); 3].map(|()| LedgerProvider::new(ledger));
        self.ledger_providers = self.ledgers.iter().map(three).collect();
        for chain in &self.chains {
            chain.lock().last = accounts.iter().copied().collect();
        }
        self
    }

    /// The chain without contracts that weather calls so: they are counted behind the others.
    pub fn ledger_at(&self, chain: usize) -> Option<&Arc<Ledger>> {
        let habits = HABITS.get(chain.checked_sub(CHAINS.len())?)?;
        self.ledger(habits.name)
    }

    /// A provider of any chain behaves so from now on.
    pub fn behave(&self, chain: usize, provider: usize, manners: Manners) {
        if let Some(providers) = self.providers.get(chain) {
            return providers[provider].set(manners);
        }
        let name = self.ledger_at(chain).map(|ledger| ledger.habits.name);
        let at = |ledger: &Arc<Ledger>| Some(ledger.habits.name) == name;
        if let Some(at) = self.ledgers.iter().position(at) {
            self.ledger_providers[at][provider].set(manners);
        }
    }

    /// Makes the blocks that are due at `now` (unix seconds).
    pub fn mine_until(&self, now: u64) {
        for chain in &self.chains {
            chain.mine_until(now);
        }
        for ledger in &self.ledgers {
            ledger.mine_until(now);
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
}

fn chain(
    (name, number, pace): (&'static str, u64, u64),
    (solver, signers): (Address, [Address; 2]),
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
        state: genesis(name, (solver, signers), accounts),
        domain: Domain::oracle("2", U256::from(CHAINS[2].1), market::ORACLE),
        signer: solver,
        gas: if name == "relay" { GAS / 100 } else { GAS },
    };
    Chain::new(spec, name, pace, base)
}

fn genesis(name: &str, (solver, signers): (Address, [Address; 2]), accounts: &[Address]) -> State {
    let router = market::ROUTER;
    let mut state = State::default();
    let ether = U256::from(10).pow(U256::from(18));
    state.give(solver, market::NATIVE, U256::from(ETH) * ether);
    for account in accounts {
        state.give(*account, market::NATIVE, U256::from(ETH) * ether);
    }
    if name == "relay" {
        let oracle = Contract::Oracle { signers };
        let mapping = Contract::Mapping { solver };
        state.contracts.insert(market::ORACLE, oracle);
        state.contracts.insert(market::MAPPING, mapping);
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
