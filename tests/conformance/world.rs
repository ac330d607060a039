//! Two chains of one family with three nodes each, and an oracle in this process that reads them through its quorums.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use alloy::{primitives::keccak256, sol_types::SolValue};
use intentd::{
    attest::{
        backing::Tolerance,
        journal::Journal,
        peers::Peers,
        service::{Attestor, Reachable},
        statement::Mode,
        watch::Watcher,
    },
    hub::{Hub, Settings},
    sign::raw::RawKey,
    store::{
        Making, Store,
        memory::MemoryStore,
        pair::{Directories, Pair},
        requests::Requests,
    },
};
use serde_json::json;
use tempfile::TempDir;
use vm::{
    Address, B256, Block as Read, Bytes, Chain, ChainEntry, ChainId, ChainReader, ChainSpec,
    Endpoint, EvmAddress, Transaction, U256,
    quorum::Quorum,
    testing::{Answer, Answers, Script as Scripted, said},
};

use crate::{
    cells::{Played, Stop, ensure},
    family::{Offered, Script},
    ledger::{Block, Ledger, Tx},
    node::{Manner, Node},
    tls::{self, Tls},
    verdict::Verdict,
};

/// The key of the oracle.
const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
/// The chain that the cells are about, another one, and the chain of the solver's account, which nobody reads.
pub const HOME: &str = "home";
pub const AWAY: &str = "away";
pub const SOLVER: &str = "solver";
/// The chain of the allocator.
const ALLOCATOR: &str = "allocator";
/// The settlement chain, its oracle contract, and the contract that knows what accounts have.
pub const HUB: &str = "hub";
const ORACLE: &str = "0xcf7ed3acca5a467e9e704c703e8d87f634fb0fc9";
const BALANCES: EvmAddress = EvmAddress::repeat_byte(0x48);
/// Blocks below the first transaction.
const PAST: u64 = 120;
/// What the oracle's clock says.
const NOW: u64 = 1_800_000_000;
/// How long something may take that is not there at once: readers keep a head for seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Who is asked about the chain that the cells are about. An index is the last of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Seats {
    /// Three nodes, of which two have to agree.
    Nodes,
    /// An index alone.
    Index,
    /// A node and an index, which have to agree.
    Pair,
    /// Two nodes and an index, of which two have to agree.
    Beside,
}

impl Seats {
    const fn count(self) -> usize {
        match self {
            Self::Nodes | Self::Beside => 3,
            Self::Pair => 2,
            Self::Index => 1,
        }
    }

    fn has_index(self) -> bool {
        self != Self::Nodes
    }
}

/// What a world is started with.
#[derive(Clone, Copy)]
pub struct Setup {
    pub seats: Seats,
    /// How long a node may take.
    pub timeout: Duration,
    /// Whether the chains' own word for final counts.
    pub tagged: bool,
    /// So many nodes of the chain are asked over TLS, where they have this.
    pub secured: usize,
    pub tls: Tls,
    /// Whether the journal is on a disk.
    pub durable: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            seats: Seats::Nodes,
            timeout: Duration::from_secs(10),
            tagged: false,
            secured: 0,
            tls: Tls::Absent,
            durable: false,
        }
    }
}

/// A node's timeout where a cell waits for it.
pub const SHORT: Duration = Duration::from_secs(1);

/// One chain with its nodes.
pub struct Side {
    pub nodes: Vec<Node>,
    pub spec: Arc<ChainSpec>,
    pub quorum: Arc<Quorum>,
    setup: Setup,
}

/// What the allocator answers to a call.
#[derive(Default)]
pub struct Records(Mutex<HashMap<Bytes, Bytes>>);

impl Records {
    /// Has the allocator record a withdrawal under this id.
    pub fn record(&self, id: B256, withdrawal: &[u8]) {
        let call = [&keccak256("payloads(bytes32)")[..4], id.as_slice()].concat();
        let withdrawal = Bytes::copy_from_slice(withdrawal);
        self.0.lock().unwrap().insert(call.into(), withdrawal);
    }

    fn found(&self, call: &Bytes) -> Bytes {
        let records = self.0.lock().unwrap();
        let found = records.get(call).cloned().unwrap_or_default();
        found.abi_encode().into()
    }
}

/// The allocator's contract: it has state, and its chain is always well.
type Allocator = Arc<Scripted<Records>>;

fn allocator() -> Allocator {
    fn view<'a>(
        own: &'a Scripted<Records>,
        _: &'a Address,
        call: &'a Bytes,
        _: &'a Read,
    ) -> Answer<'a, Bytes> {
        said(Ok(own.found(call)))
    }
    let chain = Scripted::at(1_000);
    chain.set_settled(Some(990));
    chain.answering(
        Records::default(),
        Answers {
            view: Some(view),
            ..Answers::default()
        },
    )
}

/// The settlement chain: it is always well, and knows what [`World::give`] tells it.
fn hub() -> Arc<Scripted> {
    let chain = Scripted::at(1_000);
    chain.set_settled(Some(990));
    let call = Bytes::copy_from_slice(&keccak256("HUB()")[..4]);
    let oracle = vm::SETTLEMENT.account(ORACLE).unwrap();
    chain.put_view(&oracle, &call, BALANCES.abi_encode().into());
    chain
}

pub struct World {
    pub script: &'static dyn Script,
    pub home: Side,
    pub away: Side,
    pub oracle: Attestor,
    pub allocator: Allocator,
    hub: Arc<Scripted>,
    stores: Stores,
}

/// Where the journal and the rest are.
struct Stores {
    journal: Arc<dyn Store>,
    rest: Arc<dyn Store>,
    directory: Option<TempDir>,
}

impl Stores {
    fn open(directory: Option<TempDir>) -> Self {
        let Some(directory) = directory else {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
            return Self {
                journal: store.clone(),
                rest: store,
                directory: None,
            };
        };
        // The stores make it for themselves alone.
        let directories = Directories::new(directory.path().join("data"), None);
        let pair = Pair::open(&directories, Making::Allowed).unwrap();
        Self {
            journal: pair.journal,
            rest: pair.store,
            directory: Some(directory),
        }
    }
}

impl World {
    pub async fn start(script: &'static dyn Script) -> Result<Self, Stop> {
        Self::with(script, Setup::default()).await
    }

    pub async fn with(script: &'static dyn Script, setup: Setup) -> Result<Self, Stop> {
        let home = Side::start(script, (HOME, 1), setup).await?;
        let plain = Setup {
            seats: Seats::Nodes,
            secured: 0,
            ..setup
        };
        let away = Side::start(script, (AWAY, 2), plain).await?;
        let directory = setup.durable.then(|| TempDir::new().unwrap());
        let (stores, allocator, hub) = (Stores::open(directory), allocator(), hub());
        Ok(Self {
            oracle: oracle([&home, &away], &stores, (&allocator, &hub)),
            script,
            home,
            away,
            allocator,
            hub,
            stores,
        })
    }

    /// The process ends and begins again over the same journal: nothing that was read is remembered.
    pub async fn reopen(self) -> Result<Self, Stop> {
        let Self {
            script,
            mut home,
            mut away,
            oracle: ended,
            allocator,
            hub,
            stores,
        } = self;
        drop(ended);
        let stores = match stores.directory {
            None => stores,
            Some(directory) => {
                stores.journal.close().await;
                stores.rest.close().await;
                drop((stores.journal, stores.rest));
                Stores::open(Some(directory))
            }
        };
        for side in [&mut home, &mut away] {
            side.quorum = opened(&side.spec, &side.nodes, side.setup);
        }
        Ok(Self {
            oracle: oracle([&home, &away], &stores, (&allocator, &hub)),
            script,
            home,
            away,
            allocator,
            hub,
            stores,
        })
    }

    /// What is signed about the deposits of a transaction.
    pub async fn deposit_on(&self, chain: &str, tx: &str) -> Verdict {
        let claim = intentd::attest::service::DepositClaim {
            chain: chain.to_owned(),
            transaction: tx.to_owned(),
            mode: Mode::Slow,
            keyed: true,
            hints: None,
        };
        Verdict::deposit(&self.oracle, self.oracle.deposit(&claim, None).await)
    }

    /// The same on the chain that the cells are about.
    pub async fn deposit(&self, tx: &str) -> Verdict {
        self.deposit_on(HOME, tx).await
    }

    /// The same, asked for again while it may still change by itself.
    pub async fn deposit_in_time(&self, tx: &str) -> Verdict {
        let again =
            |verdict: &Verdict| verdict.is_passing() || verdict.is_missing(self.script).is_ok();
        asked(async || self.deposit(tx).await, again).await
    }

    /// Has the settlement chain say that the account has so much of a token.
    pub fn give(&self, account: EvmAddress, token: U256, amount: u64) {
        let mut call = keccak256("balanceOf(address,uint256)")[..4].to_vec();
        call.extend((account, token).abi_encode());
        let contract = format!("{BALANCES:#x}");
        let contract = vm::SETTLEMENT.account(&contract).unwrap();
        let balance = U256::from(amount).abi_encode();
        self.hub
            .put_view(&contract, &Bytes::from(call), balance.into());
    }

    /// The keys of the signed statements that rest on the chain.
    pub async fn statements(&self) -> Vec<String> {
        self.statements_on(HOME).await
    }

    /// The same of another chain.
    pub async fn statements_on(&self, chain: &str) -> Vec<String> {
        let chain = ChainId::new(chain);
        let watched = self.oracle.journal.watched(&chain, None, 1_000).await;
        let watched = watched.unwrap().into_iter();
        watched.map(|watched| watched.statement).collect()
    }

    /// Wrong when the journal has a statement that rests on the chain.
    pub async fn is_unsigned(&self) -> Played {
        let statements = self.statements().await;
        ensure(statements.is_empty(), || format!("signed: {statements:?}"))
    }

    /// Looks at the signed facts of the chain until signing about it is halted.
    pub async fn is_halted(&self) -> Played {
        let (home, quorum) = (ChainId::new(HOME), self.home.quorum.clone());
        let chain = Chain {
            spec: self.home.spec.clone(),
            reader: quorum.clone(),
            state: None,
        };
        let mut watcher = Watcher::new(self.oracle.journal.clone(), chain);
        let (begun, mut now) = (Instant::now(), NOW);
        while begun.elapsed() < PATIENCE {
            // Providers that have not seen the reorg yet may differ for a moment.
            let _look = watcher.look(now).await;
            if self.oracle.journal.halted(&home).await.unwrap().is_some() {
                return Ok(());
            }
            now += 10;
            pause().await;
        }
        Err(Stop::from("the watcher halts nothing".to_owned()))
    }

    /// The operator clears the halt.
    pub async fn clear(&self) -> Played {
        let home = ChainId::new(HOME);
        let halt = self.oracle.journal.halted(&home).await.unwrap();
        let id = halt.map(|halt| halt.id());
        let id = id.ok_or_else(|| Stop::from("the chain is not halted".to_owned()))?;
        let cleared = self.oracle.journal.clear(&home, &id).await.unwrap();
        ensure(cleared, || "the halt is not cleared".into())
    }
}

impl Side {
    async fn start(
        script: &'static dyn Script,
        (id, identity): (&str, u8),
        setup: Setup,
    ) -> Result<Self, Stop> {
        let ledger = Ledger::new(identity, script.pace(), PAST);
        let mut nodes = Vec::new();
        for at in 0..setup.seats.count() {
            let mut node = Node::start(script, ledger.clone()).await;
            if at < setup.secured {
                node.secure(setup.tls).await;
            }
            nodes.push(node);
        }
        let mut entry = script.entry(id, identity);
        entry["additionalData"]["watchBlocks"] = json!(80);
        if setup.tagged {
            script.tag(&mut entry)?;
        }
        if let Some(index) = nodes.last().filter(|_| setup.seats.has_index()) {
            script.indexed(&mut entry, &index.index_url())?;
        }
        let entry: ChainEntry = serde_json::from_value(entry).unwrap();
        let spec = entry.spec(script.family(), false).unwrap();
        Ok(Self {
            quorum: opened(&spec, &nodes, setup),
            spec,
            nodes,
            setup,
        })
    }

    /// Changes what all nodes have.
    pub fn all<T>(&self, edit: impl Fn(&mut Ledger) -> T) -> T {
        let mut done = self.nodes.iter().map(|node| node.edit(&edit));
        let first = done.next().unwrap();
        done.for_each(drop);
        first
    }

    /// What the first node has.
    pub fn ledger(&self) -> Ledger {
        self.nodes[0].ledger()
    }

    /// The block of a transaction.
    pub fn block_of(&self, tx: &str) -> Block {
        self.ledger().find(tx).unwrap().0.clone()
    }

    /// All nodes have this transaction in a block of its own, with `more` blocks on it.
    pub fn put(&self, tx: &Tx, more: u64) {
        self.all(|ledger| {
            ledger.put(tx.clone());
            ledger.grow(more);
        });
    }

    pub fn behave(&self, manner: &Manner) {
        for node in &self.nodes {
            node.behave(manner.clone());
        }
    }

    /// The quorum knows the transaction, or does not agree about it.
    pub async fn knows(&self, tx: &str) -> Played {
        let id = self.spec.family.tx(tx, None).unwrap();
        let head = self.quorum.fresh_head().await;
        let head = head.map_err(|error| error.to_string())?;
        let found = self.quorum.transaction(&id, &head).await;
        let missing = matches!(found, Ok(Transaction::Missing));
        ensure(!missing, || format!("{tx} is missing"))
    }

    /// Changes what one node has, as `edit` can.
    pub fn spoil(&self, at: usize, edit: impl FnOnce(&mut Ledger) -> Offered<()>) -> Played {
        self.nodes[at].edit(edit).map_err(Stop::from)
    }

    /// The provider is disputed, is set aside if `aside` says so, and no other provider is.
    pub async fn is_disputed(&self, at: usize, aside: bool) -> Played {
        let begun = Instant::now();
        loop {
            let health = self.quorum.health();
            let others = health.iter().enumerate().filter(|(other, _)| *other != at);
            for (other, honest) in others {
                let fine = honest.disputes == 0 && !honest.set_aside;
                ensure(fine, || format!("honest provider {other}: {honest:?}"))?;
            }
            let liar = &health[at];
            if liar.disputes > 0 && liar.set_aside == aside {
                return Ok(());
            }
            ensure(begun.elapsed() < PATIENCE, || {
                format!("provider {at} is not disputed: {liar:?}")
            })?;
            pause().await;
        }
    }

    /// The provider's answers were none, which is counted.
    pub async fn is_failing(&self, at: usize) -> Played {
        let begun = Instant::now();
        while self.quorum.health()[at].errors == 0 {
            ensure(begun.elapsed() < PATIENCE, || {
                format!("provider {at} has no errors")
            })?;
            pause().await;
        }
        Ok(())
    }
}

/// Asks again while the answer may change by itself.
pub async fn in_time(ask: impl AsyncFn() -> Verdict) -> Verdict {
    asked(ask, Verdict::is_passing).await
}

/// Asks again while providers may be in doubt, as they are for seconds after a reorg.
pub async fn settled(ask: impl AsyncFn() -> Verdict) -> Verdict {
    asked(ask, Verdict::is_doubt).await
}

/// Asks again while `again` says so, within a limit.
pub async fn asked(ask: impl AsyncFn() -> Verdict, again: impl Fn(&Verdict) -> bool) -> Verdict {
    let begun = Instant::now();
    loop {
        let verdict = ask().await;
        if !again(&verdict) || begun.elapsed() > PATIENCE {
            return verdict;
        }
        pause().await;
    }
}

/// Asks again while nothing is signed yet.
pub async fn ended(ask: impl AsyncFn() -> Verdict) -> Verdict {
    asked(ask, |verdict| verdict.is_pending().is_ok()).await
}

pub async fn pause() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

fn opened(spec: &Arc<ChainSpec>, nodes: &[Node], setup: Setup) -> Arc<Quorum> {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    let client = CLIENT.get_or_init(|| {
        let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
        vm::http::client_trusting(tls::authority()).unwrap()
    });
    let open = spec.family.open.unwrap();
    let providers = nodes.iter().enumerate().map(|(at, node)| {
        let url = match setup.seats.has_index() && at + 1 == nodes.len() {
            true => node.index_url(),
            false => node.url(),
        };
        let endpoint = Endpoint {
            position: at + 1,
            url: url.parse().unwrap(),
            timeout: setup.timeout,
            longest: vm::protocol::limits::PROVIDER_ANSWER,
            allows: None,
            client: client.clone(),
        };
        open(spec, &endpoint).unwrap()
    });
    let required = nodes.len().min(2);
    Arc::new(Quorum::new(&spec.id, providers.collect(), required).unwrap())
}

/// A scripted chain, as the oracle has it.
fn scripted<C: Send + Sync + 'static>(id: &str, chain: &Arc<Scripted<C>>) -> Chain {
    let entry = json!({"id": id, "vmType": "ethereum-vm", "hubChainId": "1"});
    let entry: ChainEntry = serde_json::from_value(entry).unwrap();
    let provider = chain.provider(id);
    Chain {
        spec: entry.spec(vm::SETTLEMENT, false).unwrap(),
        reader: provider.reader,
        state: provider.state,
    }
}

fn oracle(
    sides: [&Side; 2],
    stores: &Stores,
    (allocator, hub): (&Allocator, &Arc<Scripted>),
) -> Attestor {
    let reachable = |side: &Side| Reachable {
        family: Some(side.spec.family),
        hub_chain_id: Some(side.spec.hub_chain_id),
        spec: None,
        chain: Ok(Chain {
            spec: side.spec.clone(),
            reader: side.quorum.clone(),
            state: Some(side.quorum.clone()),
        }),
        keys: None,
    };
    let solver = Reachable {
        family: vm::family("ethereum-vm"),
        hub_chain_id: None,
        spec: None,
        chain: Err("nobody reads it".into()),
        keys: None,
    };
    let file = json!({
        "id": HUB, "evmChainId": "31337", "oracleVersion": "2", "oracleAddress": ORACLE,
        "auroraAllocatorAddress": "0x7eda04920f22ba6a2b9f2573fd9a6f6f1946ff9f",
    });
    let settings = Settings::parse(file.as_object().unwrap()).unwrap();
    let signer = Arc::new(RawKey::parse(KEY).unwrap());
    let [home, away] = sides;
    Attestor {
        chains: HashMap::from([
            (HOME.to_owned(), reachable(home)),
            (AWAY.to_owned(), reachable(away)),
            (SOLVER.to_owned(), solver),
        ]),
        hub: Hub::new(settings, Ok(scripted(HUB, hub)))
            .with_allocator(Ok(scripted(ALLOCATOR, allocator))),
        journal: Arc::new(Journal::new(stores.journal.clone(), signer)),
        peers: nobody(),
        requests: Requests::new(stores.rest.clone()),
        tolerance: Tolerance::default(),
        bound_nonces: false,
        shown_recoveries: false,
        clock: || NOW,
    }
}

/// No peers; they would be asked through one client.
fn nobody() -> Peers {
    static PEERS: OnceLock<Peers> = OnceLock::new();
    let made = || Peers::new(Vec::new(), Duration::from_secs(1), None).unwrap();
    PEERS.get_or_init(made).clone()
}
