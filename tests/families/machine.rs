//! Two chains, the settlement chain, and a process that trades between the two.

use std::{sync::Arc, time::Duration};

use alloy::primitives::{Address, U256};
use hyper::{Method, StatusCode};
use intentd::{
    chains::{Chains, Loaded, Opened},
    market::Market,
    sign::{KeyRing, Signer, raw::RawKey},
    solver::admin::AdminHandle,
    store::memory::MemoryStore,
};
use serde_json::{Value, json};

use crate::{
    Pair,
    bitcoin::Bitcoin,
    clock,
    deal::{Answer, Asset},
    engine::Asked,
    evm::{Evm, Shared},
    fuse::{Death, Mortal},
    market::{self, Prices},
    process::{Process, ProcessContext},
    scripted::{self, Scripted},
    side::{About, Act, Kind, Named, Side},
    solana::Solana,
};

/// The solver's key of secp256k1.
pub const SOLVER: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
const ATTESTER: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
/// The key of the oracle's peer.
const PEER: &str = "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a";
/// Origin, destination and settlement chain.
pub const CHAINS: [Named; 3] = market::CHAINS;
/// The symbols in [`Prices`] of what the native currencies of origin and destination are worth.
pub const COINS: [&str; 2] = market::COINS;
/// The same of the settlement chain.
const HUB_COIN: &str = "ETH";
/// Dollars' cents up to which deposits of native currency are acted on in their first block.
pub const ACTED_ON_SOON: u64 = 5_000;
/// Dollars that the solver pays on a network within an hour and has not been paid for.
const CAP: u64 = 2_500;
/// Seconds between two rounds of making blocks.
const TICK: u64 = 2;

/// The chains and the process of one scenario.
pub struct Machine {
    pub origin: Box<dyn Side>,
    pub destination: Box<dyn Side>,
    hub: Evm,
    pub store: Arc<Mortal>,
    pub prices: Arc<Prices>,
    context: ProcessContext,
    process: Option<Process>,
    /// How often the process has died.
    pub deaths: usize,
    log: Vec<(u64, String)>,
}

/// A key as its holder has it.
pub fn key(text: &str) -> Arc<dyn Signer> {
    Arc::new(RawKey::parse(text).unwrap())
}

/// What the chains of one machine have in common.
pub fn shared() -> Shared {
    Shared {
        solver: key(SOLVER).address(),
        signers: [key(ATTESTER).address(), Address::ZERO],
        prices: Prices::new(),
    }
}

/// A chain of a machine; blocks of Bitcoin's are final at `depth`.
fn side(kind: Kind, (shared, machine, depth): (&Shared, &str, u64), named: Named) -> Box<dyn Side> {
    match kind {
        Kind::Evm => Box::new(Evm::traded(shared, named)),
        Kind::Scripted => Box::new(Scripted::new(machine, named)),
        Kind::Solana => Box::new(Solana::new(machine, named)),
        Kind::Bitcoin => Box::new(Bitcoin::new(machine, named, depth)),
    }
}

impl Machine {
    /// A machine whose process runs. `name` is unique among the machines of a pair; blocks of Bitcoin's are final at
    /// `depth`.
    pub async fn new(pair: Pair, name: &str, depth: u64) -> Self {
        let shared = shared();
        let name = format!("{}-{name}", crate::name(pair)).replace(' ', "-");
        let of = (&shared, name.as_str(), depth);
        let ends = [side(pair.0, of, CHAINS[0]), side(pair.1, of, CHAINS[1])];
        Self::between(ends, &shared).await
    }

    /// The same between an origin and a destination.
    pub async fn between([origin, destination]: [Box<dyn Side>; 2], shared: &Shared) -> Self {
        let hub = Evm::hub(shared, CHAINS[2]);
        let store = Mortal::new();
        let context = ProcessContext {
            store: store.clone(),
            market: market(&[&*origin, &*destination, &hub]),
            keys: KeyRing {
                secp256k1: key(SOLVER),
                ed25519: Some(Arc::new(scripted::solver())),
            },
            attester: key(ATTESTER),
            peer: (key(PEER), Arc::new(MemoryStore::new())),
            asked: Asked::default(),
            solver_chain: CHAINS[2].0,
        };
        let mut machine = Self {
            origin,
            destination,
            hub,
            store,
            prices: shared.prices.clone(),
            context,
            process: None,
            deaths: 0,
            log: Vec::new(),
        };
        machine.start().await;
        // The solver makes its approvals ahead of orders.
        machine.pass(60).await;
        machine
    }

    fn sides(&self) -> [&dyn Side; 3] {
        [&*self.origin, &*self.destination, &self.hub]
    }

    async fn start(&mut self) {
        self.store.heal();
        let opened = self.sides().map(Side::open);
        let chains = chains(self.sides(), opened);
        self.process = Some(Process::start(&self.context, &chains).await);
    }

    /// Ends the process; what it had in memory is gone.
    pub async fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.stop().await;
        }
    }

    /// Ends the process and starts another one on the same store.
    pub async fn restart(&mut self) {
        self.note("the process dies".into());
        self.deaths += 1;
        self.stop().await;
        self.start().await;
    }

    /// Has the process die at the next commit that begins a payment: after it where `behind` is set, else before.
    pub fn dies_paying(&self, behind: bool) {
        self.store.set(Some(Death {
            commits: 1,
            paying: true,
            late: behind,
            down: 0,
        }));
    }

    pub fn note(&mut self, what: String) {
        self.log.push((clock::seconds(), what));
    }

    /// Lets time pass and blocks be made.
    pub async fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds.div_ceil(TICK) {
            self.tick().await;
        }
    }

    /// Moves the clock by `seconds` at once. No chain makes a block meanwhile.
    pub fn skip(&mut self, seconds: u64) {
        self.note(format!("the clock moves by {seconds} s"));
        clock::skip(seconds);
        for side in self.sides() {
            side.blocks().act(Act::Stand(seconds));
        }
    }

    async fn tick(&mut self) {
        let died = tokio::select! {
            biased;
            () = self.store.died() => true,
            () = tokio::time::sleep(Duration::from_secs(TICK)) => false,
        };
        if died || self.store.is_dead() {
            self.restart().await;
        }
        for side in self.sides() {
            side.blocks().mine_until(clock::seconds());
        }
        let broken = self.process.as_mut().and_then(Process::is_broken);
        assert_eq!(broken, None);
    }

    /// Lets time pass until `so` holds; `false` where it does not within `most` seconds.
    pub async fn until(&mut self, most: u64, mut so: impl AsyncFnMut(&Self) -> bool) -> bool {
        for _ in 0..most.div_ceil(TICK) {
            if so(self).await {
                return true;
            }
            self.tick().await;
        }
        so(self).await
    }

    /// Sends a request to the integrator API; `None` while the process is dead.
    pub async fn ask(
        &self,
        method: Method,
        target: &str,
        body: &Value,
    ) -> Option<(StatusCode, Value)> {
        let process = self.process.as_ref()?;
        if self.store.is_dead() {
            return None;
        }
        Some(process.api(method, target, body).await)
    }

    /// Claims something at the solver's oracle, or at its peer, without a key; `None` while the process is dead.
    pub async fn claim(&self, elsewhere: bool, path: &str, body: &Value) -> Option<Answer> {
        let process = self.process.as_ref()?;
        if self.store.is_dead() {
            return None;
        }
        Some(process.claim(elsewhere, path, body).await)
    }

    /// What the solver has claimed at its oracle: path and body, oldest first.
    pub fn claimed(&self) -> Vec<(String, Value)> {
        self.context.asked.lock().unwrap().clone()
    }

    /// What the operator asks the running solver through.
    pub fn operator(&self) -> &AdminHandle {
        self.process.as_ref().unwrap().operator()
    }

    /// Does something to the settlement chain.
    pub fn settlement(&mut self, act: Act) {
        self.note(format!("{}: {act:?}", CHAINS[2].0));
        self.hub.blocks().act(act);
    }

    /// One of [`COINS`] is worth so many parts of ten thousand of what it is worth now. The other one is worth what it was.
    pub fn move_price(&mut self, coin: &'static str, parts: u64) {
        let now = clock::seconds();
        self.prices.move_by(coin, parts, now);
        let price = self.prices.at(coin, now);
        self.note(format!("{coin} is worth {price} / 10^8 dollars"));
    }

    /// The log of the scenario and of all blocks, by time.
    pub fn told(&self) -> Vec<String> {
        let chains = self.sides().map(|side| side.blocks().told());
        let mut all: Vec<_> = chains
            .into_iter()
            .flatten()
            .chain(self.log.clone())
            .collect();
        all.sort();
        let since = |time: u64| time.saturating_sub(clock::GENESIS);
        let lines = all
            .into_iter()
            .map(|(time, what)| format!("{:>5} {what}", since(time)));
        lines.collect()
    }
}

fn chains(sides: [&dyn Side; 3], opened: [Opened; 3]) -> Chains {
    let hub = opened[2].clone();
    let list = sides.iter().zip(opened).map(|(side, opened)| {
        let depository = opened.chain.spec.depository.as_ref();
        Loaded {
            id: side.about().name.into(),
            vm_type: side.about().family.name.into(),
            hub_chain_id: Some(U256::from(side.about().number)),
            depository: depository.map(|address| address.text().to_owned()),
            chain: Ok(opened),
            keys: None,
            served: true,
        }
    });
    let list = list.collect();
    let (name, number, _) = CHAINS[2];
    let entry = json!({
        "id": name, "evmChainId": number.to_string(), "oracleVersion": "2",
        "oracleAddress": market::ORACLE, "genericMappingAddress": market::MAPPING,
    });
    Chains::of(list, hub, entry.as_object().cloned().unwrap())
}

/// The market file. Feeds of the settlement chain's tell what native currencies are worth, each by itself; tokens are worth a
/// dollar.
fn market(sides: &[&dyn Side]) -> Arc<Market> {
    let networks = sides.iter().map(|side| {
        let about = side.about();
        let is_hub = about.name == CHAINS[2].0;
        let mut network = if is_hub { json!({}) } else { side.network() };
        if network["currencies"].is_null() {
            network["currencies"] = json!(currencies(about, is_hub));
        }
        network["caps"] = json!({ "hourly": CAP.to_string() });
        network["name"] = json!(about.name);
        network["displayName"] = json!(about.name);
        network["chainId"] = json!(about.number);
        network["blockSeconds"] = json!(about.pace);
        network["fillConfirmations"] = json!(2);
        network
    });
    let file: Vec<_> = networks.collect();
    let family = |name: &str| {
        let mut sides = sides.iter();
        sides
            .find(|side| side.about().name == name)
            .map(|side| side.about().family)
    };
    Arc::new(Market::parse(&json!(file).to_string(), family).unwrap())
}

/// The native currency, and where there is trade, the token.
fn currencies(about: &About, is_hub: bool) -> Vec<Value> {
    let mut all = vec![coin(about)];
    if !is_hub && about.token != about.native {
        let token = (about.token.as_str(), 6);
        all.push(listed(token, "USDC", ("usdc", "stable", "1")));
    }
    all
}

/// The symbol in [`Prices`] of what a chain's native currency is worth.
pub fn symbol(about: &About) -> &'static str {
    let mut ends = CHAINS.into_iter().zip(COINS);
    let found = ends.find(|(named, _)| named.0 == about.name);
    found.map_or(HUB_COIN, |(_, symbol)| symbol)
}

/// A chain's native currency, as the market file has it. It is of no other chain's group.
pub fn coin(about: &About) -> Value {
    let (symbol, native) = (symbol(about), about.native.as_str());
    let native = (native, native_decimals(about.family));
    let mut coin = listed(native, symbol, (symbol, "major", "2000"));
    coin["prices"] = json!([market::feed(CHAINS[2].0, symbol)]);
    coin["oneBlockUpTo"] = Asset::Native.units(about, ACTED_ON_SOON).to_string().into();
    coin
}

fn native_decimals(family: &vm::Family) -> u8 {
    family.native_decimals.unwrap()
}

/// A currency that the solver keeps, as the market file has it.
pub fn listed(
    (address, decimals): (&str, u8),
    symbol: &str,
    (group, class, usd): (&str, &str, &str),
) -> Value {
    json!({
        "address": address, "symbol": symbol, "name": symbol, "decimals": decimals, "group": group,
        "class": class, "solver": true, "prices": [{"kind": "peg", "usd": usd}],
    })
}
