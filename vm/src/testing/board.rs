//! What is on a scripted chain, and what its providers say of accounts and transactions.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ops::RangeInclusive,
};

use super::block;
use crate::{
    ReadError,
    trade::{Broadcast, DepositTx, Fate, FeeRate, Revert, ScanError, TxDetails},
    types::{Amount, Block, Bytes, Head, Transaction, TxRef, WithdrawalStatus},
};

/// What a script's providers say of every account, call and transaction alike.
#[derive(Clone, Debug)]
pub struct Says {
    /// Nothing is answered.
    pub hangs: bool,
    /// What anybody has of anything.
    pub balance: Amount,
    /// What anybody may take of another's.
    pub allowance: Amount,
    pub is_contract: bool,
    /// What a read-only call returns.
    pub returned: Bytes,
    /// The number of anybody's transactions: in blocks, and with those that wait.
    pub nonce: (u64, u64),
    /// The work of anything that is tried.
    pub estimate: Result<u64, Revert>,
    pub rate: FeeRate,
    pub broadcast: Broadcast,
    pub fate: Fate,
}

impl Default for Says {
    fn default() -> Self {
        Self {
            hangs: false,
            balance: Amount::ZERO,
            allowance: Amount::ZERO,
            is_contract: false,
            returned: Bytes::new(),
            nonce: (0, 0),
            estimate: Ok(0),
            rate: FeeRate::new(0, 0),
            broadcast: Broadcast::Accepted,
            fate: Fate::Unknown,
        }
    }
}

/// The state of a script.
#[derive(Default)]
pub(super) struct Board {
    pub head: u64,
    pub tagged: Option<u64>,
    pub settled: Option<u64>,
    /// From which height on blocks are of which fork, rising.
    pub forks: Vec<(u64, u8)>,
    /// Heights without a block.
    pub skipped: BTreeSet<u64>,
    /// Heights that are skipped before the next block.
    pub gap: u64,
    pub reorgs: u8,
    pub transactions: HashMap<Bytes, Transaction>,
    pub deposits: Vec<DepositTx>,
    pub views: HashMap<(Vec<u8>, Bytes), Bytes>,
    pub withdrawals: HashMap<Bytes, WithdrawalStatus>,
    /// What is said of outputs and is so.
    pub outputs: HashSet<Bytes>,
    pub says: Says,
    pub failure: Option<ReadError>,
    /// Heights that one scan may be about.
    pub most: Option<u64>,
    /// Scans show no deposits.
    pub deaf: bool,
    /// Scans contradict the blocks.
    pub forges: bool,
    pub asked: u64,
    pub scanned: Vec<RangeInclusive<u64>>,
    pub inspected: usize,
}

impl Board {
    /// The block that stands at a height; of one above the head, the block that would be there.
    pub fn block(&self, height: u64) -> Block {
        let number = self.standing(height);
        let mut found = block(number, self.name(number));
        if let Some(below) = number.checked_sub(1) {
            let below = self.standing(below);
            found.parent = block(below, self.name(below)).hash;
        }
        found
    }

    fn standing(&self, height: u64) -> u64 {
        let mut below = (0..=height).rev();
        let standing = below.find(|height| !self.skipped.contains(height));
        standing.unwrap_or_default()
    }

    /// The fork of a block.
    fn name(&self, number: u64) -> u8 {
        let at = self.forks.partition_point(|(height, _)| *height <= number);
        let fork = at.checked_sub(1).and_then(|at| self.forks.get(at));
        fork.map_or(0, |(_, name)| *name)
    }

    pub fn head(&self) -> Head {
        Head {
            block: self.block(self.head),
            tagged: self.tagged,
        }
    }

    pub fn mine(&mut self) {
        let next = self.head + 1;
        self.head = next + std::mem::take(&mut self.gap);
        self.skipped.extend(next..self.head);
    }

    /// Takes the newest `depth` blocks away; those that come are of another fork.
    pub fn reorg(&mut self, depth: usize) {
        for _ in 0..depth {
            self.head = self.standing(self.head.saturating_sub(1));
        }
        let head = self.head;
        self.skipped.retain(|height| *height < head);
        self.deposits.retain(|one| one.number <= head);
        self.reorgs += 1;
        self.forks.retain(|(height, _)| *height <= head);
        self.forks.push((head + 1, self.reorgs));
    }

    pub fn contains(&self, block: &Block) -> bool {
        let found = self.block(block.number);
        block.number <= self.head && (found.hash, found.time) == (block.hash, block.time)
    }

    pub fn anchor(&self, block: &Block) -> Result<(), ReadError> {
        if block.number > self.head {
            return Err(ReadError::Unavailable("behind the agreed head".into()));
        }
        if !self.contains(block) {
            return Err(ReadError::Doubtful("the head is on another fork".into()));
        }
        Ok(())
    }

    pub fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError> {
        self.anchor(&head.block)?;
        let found = self.transactions.get(&tx.bytes).cloned();
        let found = found.unwrap_or(Transaction::Missing);
        let number = match &found {
            Transaction::Succeeded(receipt) => receipt.block.number,
            Transaction::Failed(failure) => failure.block.number,
            Transaction::Missing => 0,
        };
        Ok(match number > head.block.number {
            true => Transaction::Missing,
            false => found,
        })
    }

    pub fn within(&self, heights: &RangeInclusive<u64>) -> Vec<DepositTx> {
        let there = |one: &&DepositTx| heights.contains(&one.number) && !self.deaf;
        self.deposits.iter().filter(there).cloned().collect()
    }

    pub fn omitted(
        &self,
        heights: &RangeInclusive<u64>,
        shown: &[DepositTx],
    ) -> Result<Vec<DepositTx>, ScanError> {
        if self.forges {
            return Err(ReadError::Doubtful("not its bloom".into()).into());
        }
        let missing = |one: &&DepositTx| heights.contains(&one.number) && !shown.contains(one);
        Ok(self.deposits.iter().filter(missing).cloned().collect())
    }

    /// A transaction with deposits in full.
    pub fn inspect(&self, tx: &TxRef) -> Option<TxDetails> {
        let mut deposits = self.deposits.iter();
        let found = deposits.find(|one| one.transaction == *tx)?;
        let deposit = found.deposits.first()?;
        Some(TxDetails {
            from: deposit.depositor.clone(),
            to: Some(deposit.depository.clone()),
            data: None,
            value: Amount::ZERO,
            fee: Amount::from(21_000),
            block: self.block(found.number),
            success: true,
            changes: Vec::new(),
        })
    }
}
