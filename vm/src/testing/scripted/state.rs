//! The state of a chain: its blocks with the balances after each, and the transactions that wait.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    testing::Manners,
    trade::{CurrencyInfo, FeeRate},
    types::{Amount, B256, Block, Bytes},
};

use super::transaction::Transaction;

/// Balances by account and currency.
pub type Ledger = BTreeMap<(B256, B256), Amount>;

/// A transaction in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    pub transaction: Transaction,
    /// The transfers happened; otherwise the payer paid only the fee.
    pub success: bool,
    /// The fee for its bytes in the native currency's smallest unit.
    pub fee: Amount,
    /// The fee besides, in the same unit.
    pub rent: Amount,
}

/// A transaction with its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Included {
    pub block: Block,
    pub done: Done,
}

/// Everything about a chain that changes.
#[derive(Default)]
pub struct State {
    /// Oldest first; never empty.
    pub blocks: Vec<Mined>,
    /// The newest height, with a block or without.
    pub height: u64,
    pub forks: u64,
    /// Seconds in which no height passed.
    pub stood: u64,
    /// Transactions that wait for a block, oldest first.
    pub pool: Vec<Transaction>,
    /// All transactions that nodes ever took, by id.
    pub known: BTreeMap<Bytes, Transaction>,
    pub rate: FeeRate,
    pub rent: Amount,
    pub currencies: BTreeMap<B256, CurrencyInfo>,
    /// Accounts that take no payments: a transaction that pays one of them fails.
    pub closed: BTreeSet<B256>,
    /// Accounts whose transactions no block includes.
    pub held: BTreeSet<B256>,
    pub manners: BTreeMap<String, Manners>,
}

/// A block with its transactions and the balances after it.
pub struct Mined {
    pub block: Block,
    pub done: Vec<Done>,
    pub after: Ledger,
}

impl State {
    pub fn last(&self) -> Option<&Mined> {
        self.blocks.last()
    }

    pub fn waits(&self, id: &[u8]) -> bool {
        self.pool.iter().any(|one| one.signature[..] == *id)
    }

    /// The newest height of a provider that is `lag` heights behind.
    pub fn height_behind(&self, lag: u64) -> u64 {
        self.height.saturating_sub(lag)
    }

    /// The newest block at or below a height.
    pub fn block(&self, height: u64) -> Option<Block> {
        self.at(height).map(|mined| mined.block.clone())
    }

    /// A balance at the block that stands at a height.
    pub fn balance(&self, height: u64, key: (B256, B256)) -> Amount {
        self.at(height)
            .map_or(Amount::ZERO, |mined| held(&mined.after, key))
    }

    pub fn find(&self, id: &[u8]) -> Option<Included> {
        let mut all = self.within(0, u64::MAX).into_iter();
        all.find(|one| one.done.transaction.signature[..] == *id)
    }

    /// The transactions in the blocks from one height to another, oldest first.
    pub fn within(&self, from: u64, to: u64) -> Vec<Included> {
        let blocks = self.blocks.iter();
        let blocks = blocks.filter(|mined| (from..=to).contains(&mined.block.number));
        let done = blocks.flat_map(|mined| {
            mined.done.iter().map(|done| Included {
                block: mined.block.clone(),
                done: done.clone(),
            })
        });
        done.collect()
    }

    fn at(&self, height: u64) -> Option<&Mined> {
        let above = self
            .blocks
            .partition_point(|mined| mined.block.number <= height);
        self.blocks.get(above.checked_sub(1)?)
    }

    /// The fee of a transaction: for its bytes, and besides.
    pub fn price(&self, transaction: &Transaction) -> (Amount, Amount) {
        let work = transaction.raw().map_or(u64::MAX, |raw| raw.len() as u64);
        (self.rate.of(work), self.rent)
    }

    /// Includes a transaction in the block after whose transactions the balances are `after`. `None` where the payer
    /// cannot pay the fee, or where a block has the transaction already: it is dropped.
    pub fn include(&self, after: &mut Ledger, transaction: Transaction) -> Option<Done> {
        if self.find(&transaction.signature).is_some() {
            return None;
        }
        let payer = transaction.unsigned.payer;
        let (fee, rent) = self.price(&transaction);
        take(after, (payer, B256::ZERO), fee + rent)?;
        let mut paid = after.clone();
        let transfers = &transaction.unsigned.payments.transfers;
        let success = transfers.iter().all(|one| {
            let taken = take(&mut paid, (payer, one.currency), one.amount);
            give(&mut paid, (one.to, one.currency), one.amount);
            taken.is_some() && !self.closed.contains(&one.to)
        });
        if success {
            *after = paid;
        }
        Some(Done {
            transaction,
            success,
            fee,
            rent,
        })
    }
}

pub fn held(ledger: &Ledger, key: (B256, B256)) -> Amount {
    ledger.get(&key).copied().unwrap_or_default()
}

pub fn give(ledger: &mut Ledger, key: (B256, B256), amount: Amount) {
    let before = held(ledger, key);
    ledger.insert(key, before.saturating_add(amount));
}

pub fn take(ledger: &mut Ledger, key: (B256, B256), amount: Amount) -> Option<()> {
    let left = held(ledger, key).checked_sub(amount)?;
    ledger.insert(key, left);
    Some(())
}

pub fn change(set: &mut BTreeSet<B256>, account: B256, there: bool) {
    match there {
        true => set.insert(account),
        false => set.remove(&account),
    };
}
