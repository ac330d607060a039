//! A chain in memory for the index's tests: blocks that fork, heights that it skips, deposits, and a provider that
//! shows them within limits.

use std::{
    ops::RangeInclusive,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use vm::{
    Address, B256, Block, Deposit, ReadError, TxRef, U256,
    trade::{DepositTx, ScanError, Scanner, TxDetails, TxInspector},
};

use crate::{
    market::Market,
    request::fixtures::{USDC, USER},
    store::{Batch, Key, Outcome, Range, Store, StoreError, memory::MemoryStore},
};

pub const DEPOSITORY: &str = "0x5fbdb2315678afecb367f032d93f642f64180aa3";

pub fn address(text: &str) -> Address {
    vm::SETTLEMENT.address(text).unwrap()
}

pub fn tx(number: u64) -> TxRef {
    vm::SETTLEMENT
        .tx(&format!("0x{number:064x}"), None)
        .unwrap()
}

/// A whole deposit for `order`, at `index` of its transaction.
pub fn deposit(order: B256, index: u32) -> Deposit {
    Deposit {
        index,
        depository: address(DEPOSITORY),
        depositor: address(USER),
        currency: address(USDC),
        amount: U256::from(100_000_000),
        id: order.to_string().into(),
        named_by_other: false,
    }
}

/// Two networks, `origin` (31001) and `destination` (31002).
pub fn market() -> Market {
    let network = |name: &str, chain: u64| {
        let zero = format!("0x{}", "00".repeat(20));
        serde_json::json!({
            "name": name, "chainId": chain, "displayName": name, "blockSeconds": 1,
            "currencies": [{"address": zero, "symbol": "ETH", "name": "Ether", "decimals": 18,
                "group": "eth", "prices": [{"kind": "peg", "usd": "2500"}]}],
        })
    };
    let file = serde_json::json!([network("origin", 31_001), network("destination", 31_002)]);
    Market::parse(&file.to_string(), |_| Some(vm::SETTLEMENT)).unwrap()
}

/// The chain.
#[derive(Default)]
pub struct World(Mutex<State>);

#[derive(Default)]
struct State {
    /// Rising.
    blocks: Vec<Block>,
    /// Heights that are skipped before the next block.
    skipped: u64,
    deposit_txs: Vec<DepositTx>,
    /// Blocks that one question may be about.
    most: Option<u64>,
    failure: Option<ReadError>,
    /// Told as long as it is set: the provider forgot these blocks' deposits.
    deaf: bool,
    /// The provider shows something else than its blocks contain.
    forges: bool,
    asked: Vec<RangeInclusive<u64>>,
    /// Transactions that were asked about one by one.
    looks: usize,
    forks: u8,
}

impl World {
    /// A chain whose head is block `head`.
    pub fn at(head: u64) -> Arc<Self> {
        let world = Arc::new(Self::default());
        world.mine(head + 1);
        world
    }

    fn with<T>(&self, with: impl FnOnce(&mut State) -> T) -> T {
        with(&mut self.0.lock().unwrap())
    }

    /// The next block is `count` heights above the one that would follow.
    pub fn skip(&self, count: u64) {
        self.with(|state| state.skipped += count);
    }

    /// Adds `count` blocks.
    pub fn mine(&self, count: u64) {
        self.with(|state| (0..count).for_each(|_| state.mine()));
    }

    /// A block with these deposits in one transaction; its number.
    pub fn deposit(&self, transaction: u64, deposits: Vec<Deposit>) -> u64 {
        self.with(|state| {
            state.mine();
            let block = state.blocks.last().unwrap();
            let (number, hash) = (block.number, block.hash);
            state.deposit_txs.push(DepositTx {
                transaction: tx(transaction),
                number,
                hash,
                deposits,
                doubt: None,
            });
            number
        })
    }

    /// From now on the newest transaction cannot be attributed.
    pub fn doubt(&self, why: &str) {
        self.with(|state| {
            let newest = state.deposit_txs.last_mut().unwrap();
            newest.doubt = Some(vm::Refusal(why.into()));
        });
    }

    /// Takes the newest `depth` blocks away; the next ones are of another fork.
    pub fn reorg(&self, depth: usize) {
        self.with(|state| {
            let kept = state.blocks.len() - depth;
            state.blocks.truncate(kept);
            let head = state.blocks.last().map(|block| block.number);
            state.deposit_txs.retain(|one| Some(one.number) <= head);
            state.forks += 1;
        });
    }

    /// The block that stands at `height`.
    pub fn block_at(&self, height: u64) -> Block {
        self.with(|state| state.standing(height).unwrap())
    }

    pub fn head_number(&self) -> u64 {
        self.with(|state| state.blocks.last().unwrap().number)
    }

    pub fn limit(&self, most: Option<u64>) {
        self.with(|state| state.most = most);
    }

    pub fn fail(&self, failure: Option<ReadError>) {
        self.with(|state| state.failure = failure);
    }

    pub fn deafen(&self, deaf: bool) {
        self.with(|state| state.deaf = deaf);
    }

    pub fn forge(&self, forges: bool) {
        self.with(|state| state.forges = forges);
    }

    /// How often a transaction was asked about.
    pub fn looks(&self) -> usize {
        self.with(|state| state.looks)
    }

    /// The ranges that were answered, oldest first.
    pub fn asked(&self) -> Vec<RangeInclusive<u64>> {
        self.with(|state| state.asked.clone())
    }
}

impl State {
    fn mine(&mut self) {
        let next = self.blocks.last().map_or(0, |block| block.number + 1);
        let number = next + std::mem::take(&mut self.skipped);
        let mut hash = [self.forks; 32];
        hash[24..].copy_from_slice(&number.to_be_bytes());
        self.blocks.push(Block {
            number,
            hash: B256::new(hash),
            parent: self.blocks.last().map_or(B256::ZERO, |block| block.hash),
            time: 1_700_000_000 + number * 12,
        });
    }

    fn standing(&self, height: u64) -> Option<Block> {
        self.blocks.last().filter(|head| height <= head.number)?;
        let above = self.blocks.partition_point(|block| block.number <= height);
        self.blocks.get(above.checked_sub(1)?).cloned()
    }

    fn answer<T>(&self, answer: T) -> Result<T, ReadError> {
        self.failure.clone().map_or(Ok(answer), Err)
    }
}

#[async_trait]
impl Scanner for World {
    async fn head(&self) -> Result<Block, ReadError> {
        self.with(|state| state.answer(state.blocks.last().unwrap().clone()))
    }

    async fn block(&self, height: u64) -> Result<Option<Block>, ReadError> {
        self.with(|state| state.answer(state.standing(height)))
    }

    async fn deposits(&self, blocks: RangeInclusive<u64>) -> Result<Vec<DepositTx>, ScanError> {
        self.with(|state| {
            let length = blocks.end() - blocks.start() + 1;
            if state.most.is_some_and(|most| length > most) {
                return Err(ScanError::TooLarge("ask for less".into()));
            }
            state.asked.push(blocks.clone());
            let there = |one: &&DepositTx| blocks.contains(&one.number) && !state.deaf;
            let found = state.deposit_txs.iter().filter(there).cloned().collect();
            Ok(state.answer(found)?)
        })
    }

    async fn omitted(
        &self,
        from: u64,
        end: &Block,
        shown: &[DepositTx],
    ) -> Result<Vec<DepositTx>, ScanError> {
        self.with(|state| {
            if state.forges {
                return Err(ReadError::Doubtful("not its bloom".into()).into());
            }
            let missing = |one: &&DepositTx| {
                (from..=end.number).contains(&one.number) && !shown.contains(one)
            };
            Ok(state.deposit_txs.iter().filter(missing).cloned().collect())
        })
    }
}

#[async_trait]
impl TxInspector for World {
    async fn inspect(&self, transaction: &TxRef) -> Result<Option<TxDetails>, ReadError> {
        self.with(|state| {
            state.looks += 1;
            let mut deposit_txs = state.deposit_txs.iter();
            let found = deposit_txs.find(|one| one.transaction == *transaction);
            let found = found.and_then(|one| state.blocks.iter().find(|b| b.hash == one.hash));
            state.answer(found.map(|block| TxDetails {
                from: address(USER),
                to: Some(address(DEPOSITORY)),
                data: None,
                value: U256::ZERO,
                fee: U256::from(21_000),
                block: block.clone(),
                success: true,
                changes: Vec::new(),
            }))
        })
    }
}

/// A store that fails at its n-th commit, before the commit is made or before its answer arrives.
pub struct Dying {
    rows: Arc<MemoryStore>,
    left: AtomicU64,
    late: bool,
}

impl Dying {
    pub fn after(rows: Arc<MemoryStore>, commits: u64, late: bool) -> Arc<Self> {
        let left = AtomicU64::new(commits);
        Arc::new(Self { rows, left, late })
    }

    /// Commits until it dies.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Store for Dying {
    async fn commit(&self, batch: Batch) -> Result<Outcome, StoreError> {
        let dead = || StoreError::Failed("killed".into());
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            if self.late {
                self.rows.commit(batch).await?;
            }
            return Err(dead());
        }
        self.left.store(left - 1, Ordering::Relaxed);
        self.rows.commit(batch).await
    }

    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.rows.read(key).await
    }

    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        self.rows.scan(range).await
    }

    async fn close(&self) {
        self.rows.close().await;
    }
}

/// The chain `name` over a script's reads, final after ten blocks.
pub fn chain(name: &str, script: &Arc<vm::testing::Script>) -> vm::Chain {
    let spec = vm::ChainSpec {
        id: vm::ChainId::new(name),
        family: vm::SETTLEMENT,
        hub_chain_id: U256::from(1),
        depository: Some(address(DEPOSITORY)),
        additional_depositories: Vec::new(),
        finality: vm::Finality {
            blocks: 10,
            seconds: 60,
            tag: None,
        },
        watch_blocks: 128,
        fill_routers: vm::FillRouters::Any,
        additional: serde_json::Map::new(),
    };
    vm::Chain {
        spec: Arc::new(spec),
        reader: script.clone(),
        state: None,
    }
}
