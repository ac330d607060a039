//! What the index's tests share: deposits, a market, a store that fails and chains over scripts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::time::sleep;
pub use vm::testing::{Script, tx};
use vm::{
    Address, B256, ChainReader, Deposit, Head, Transaction, TxRef, U256,
    testing::{Answer, Answers},
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
        by_depositor: false,
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
pub fn chain(name: &str, script: &Arc<Script>) -> vm::Chain {
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

/// Reads a transaction as the script says, after a second.
pub fn read_slowly<'a>(
    script: &'a Script,
    tx: &'a TxRef,
    head: &'a Head,
) -> Answer<'a, Transaction> {
    Box::pin(async move {
        sleep(Duration::from_secs(1)).await;
        let plain = script.plain();
        plain.transaction(tx, head).await
    })
}

/// Another provider of the script's chain, which reads transactions slowly.
pub fn slow(script: &Script) -> Arc<Script> {
    let answers = Answers {
        transaction: Some(read_slowly),
        ..Answers::default()
    };
    script.answering((), answers)
}
