//! One provider of a chain without contracts, with the manners that a history gives it for a while.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use alloy::primitives::keccak256;
use async_trait::async_trait;
use intentd::chains::{Loaded, Opened};
use vm::{Block, ChainReader, Head, Provider, ReadError, Transaction, TxRef};

use super::{
    ledger::Ledger,
    provider::{Manners, forged},
};
use crate::engine;

/// What a provider that shows no state, no logs and no prices can do.
pub const MANNERS: [Manners; 6] = [
    Manners::Down,
    Manners::Hangs,
    Manners::Late,
    Manners::LiesAboutHeads,
    Manners::InventsDeposits,
    Manners::LiesAboutReceipts,
];

/// A provider of a chain; it answers as its manners are.
pub struct LedgerProvider {
    ledger: Arc<Ledger>,
    manners: Mutex<Manners>,
}

impl LedgerProvider {
    pub fn new(ledger: &Arc<Ledger>) -> Arc<Self> {
        Arc::new(Self {
            ledger: ledger.clone(),
            manners: Mutex::default(),
        })
    }

    pub fn set(&self, manners: Manners) {
        *self.manners.lock().unwrap() = manners;
    }

    fn lies(&self, about: Manners) -> bool {
        *self.manners.lock().unwrap() == about
    }

    /// The chain through three of them.
    pub fn load(ledger: &Ledger, providers: &[Arc<Self>; 3]) -> Loaded {
        let readers = providers.iter().zip(["one", "two", "three"]);
        let readers = readers.map(|(provider, name)| Provider {
            name: name.into(),
            reader: provider.clone(),
            state: None,
            keys: None,
            checks_network: true,
        });
        let opened: Opened = engine::opened(&ledger.spec, readers.collect(), Vec::new());
        Loaded {
            id: ledger.habits.name.into(),
            vm_type: ledger.habits.family.into(),
            hub_chain_id: None,
            depository: Some(ledger.habits.depository.into()),
            chain: Ok(opened),
            keys: None,
            served: true,
        }
    }

    /// Every answer begins here.
    async fn up(&self) -> Result<(), ReadError> {
        if self.lies(Manners::Down) {
            return Err(ReadError::Unavailable("down".into()));
        }
        if self.lies(Manners::Hangs) {
            tokio::time::sleep(Duration::from_secs(30)).await;
            return Err(ReadError::Unavailable("timed out".into()));
        }
        Ok(())
    }

    fn late(&self) -> u64 {
        match self.lies(Manners::Late) {
            true => 1 + self.ledger.habits.lag / 4,
            false => 0,
        }
    }
}

#[async_trait]
impl ChainReader for LedgerProvider {
    async fn head(&self) -> Result<Head, ReadError> {
        self.up().await?;
        let tip = self.ledger.head(self.late());
        let block = match self.lies(Manners::LiesAboutHeads) {
            true => Block {
                number: tip.number + 50,
                hash: !tip.hash,
                parent: tip.hash,
                time: tip.time + 50 * self.ledger.habits.pace,
            },
            false => tip,
        };
        let tagged = None;
        Ok(Head { block, tagged })
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        self.head().await
    }

    async fn contains(&self, block: &Block) -> Result<bool, ReadError> {
        self.up().await?;
        let found = self.ledger.block(block.number, self.late());
        Ok(found.is_some_and(|found| found.hash == block.hash))
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError> {
        self.up().await?;
        let ledger = &self.ledger;
        match ledger.block(head.block.number, self.late()) {
            None => return Err(ReadError::Unavailable("behind the agreed head".into())),
            Some(block) if block.hash != head.block.hash => {
                return Err(ReadError::Doubtful("the head is on another fork".into()));
            }
            Some(_) => {}
        }
        let codec = ledger.spec.family.codec;
        let id = codec.decode_transaction_id(&tx.bytes).unwrap_or_default();
        let found = ledger.transaction(&id, head.block.number);
        let found = found.map_err(|why| ReadError::Unavailable(why.into()))?;
        if self.lies(Manners::InventsDeposits) && found == Transaction::Missing {
            // What only waits is said to be as old as can be.
            let block = ledger.block(0, 0).unwrap();
            return Ok(ledger.waiting(&id, &block).unwrap_or(found));
        }
        Ok(match self.lies(Manners::LiesAboutReceipts) {
            true => forged(found, keccak256(&tx.bytes)),
            false => found,
        })
    }
}
