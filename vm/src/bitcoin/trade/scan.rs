//! Finds deposits through one provider. A block's hash commits to all of its transactions, so a provider that leaves
//! one out, or adds one, is found out by the block itself. Every height has a block.

use std::{
    collections::HashMap,
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use bitcoin::{Transaction, Txid};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::scan_source::Blocks;
use crate::{
    ChainSpec, ReadError, SpecError,
    bitcoin::{
        decode::{self, Rules},
        raw::{RawInput, RawOutput, RawScript, RawTransaction},
        source::{Found, moved, shown, shown_txid},
    },
    trade::{DepositTx, ScanError, Scanner},
    types::{B256, Block, Deposit, Refusal, TxRef},
};

/// Blocks of one range: each is read whole.
const MOST: u64 = 4;
/// Transactions that are looked at together.
const AT_ONCE: usize = 12;
/// Transactions of which what was read is kept: those of several full blocks.
const KEPT: usize = 20_000;

/// What was read of transactions, by their blocks. A hash that commits to everything stands for it.
type Kept = HashMap<(B256, Txid), Option<DepositTx>>;

/// A [`Scanner`] of one provider.
pub struct Scan<S> {
    rules: Rules,
    source: Arc<S>,
    /// Heights are read again and again, and a reading that took too long goes on where it was.
    kept: Mutex<Kept>,
}

impl<S: Blocks> Scan<S> {
    pub fn new(spec: &ChainSpec, source: Arc<S>) -> Result<Self, SpecError> {
        let rules = Rules::new(spec)?;
        Ok(Self {
            rules,
            source,
            kept: Mutex::default(),
        })
    }

    /// The block at a height of the provider's chain.
    async fn at(&self, height: u64) -> Result<Option<Block>, ReadError> {
        let Some(hash) = self.source.hash_at(height).await? else {
            return Ok(None);
        };
        let block = self.source.block(hash).await?;
        match block.number == height && block.hash == hash {
            true => Ok(Some(block)),
            false => Err(doubt("a block of another height")),
        }
    }

    /// The deposits of a block, in its order.
    async fn held(&self, block: &Block) -> Result<Vec<DepositTx>, ReadError> {
        let whole = self.source.whole(&block.hash).await?;
        let paying = paying(&self.rules, whole, block)?;
        if paying.is_empty() {
            return Ok(Vec::new());
        }
        let looks = stream::iter(paying).map(|transaction| self.held_by(transaction, block));
        let held: Vec<Option<DepositTx>> = looks.buffered(AT_ONCE).try_collect().await?;
        match self.source.hash_at(block.number).await? {
            Some(hash) if hash == block.hash => Ok(held.into_iter().flatten().collect()),
            _ => Err(moved()),
        }
    }

    /// The deposits of a transaction of a block; `None` where there are none.
    async fn held_by(
        &self,
        transaction: Transaction,
        block: &Block,
    ) -> Result<Option<DepositTx>, ReadError> {
        let id = (block.hash, transaction.compute_txid());
        if let Some(known) = self.kept().get(&id) {
            return Ok(known.clone());
        }
        let found = match self.source.look_in(id.1, block).await {
            // No provider shows more of it than the block does, and no quorum reads it.
            Err(ReadError::TooLarge) => return Ok(unread(&self.rules, &transaction, block)),
            found => found?,
        };
        if found.block != *block {
            return Err(doubt("a transaction of two blocks"));
        }
        if !is_same(&transaction, &found.transaction) {
            return Err(doubt("a transaction with other outputs than its block's"));
        }
        let held = deposit_tx(&self.rules, &found);
        let mut kept = self.kept();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(id, held.clone());
        Ok(held)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl<S: Blocks> Scanner for Scan<S> {
    async fn head(&self) -> Result<Block, ReadError> {
        self.source.tip().await
    }

    async fn block(&self, height: u64) -> Result<Option<Block>, ReadError> {
        self.at(height).await
    }

    async fn deposits(&self, heights: RangeInclusive<u64>) -> Result<Vec<DepositTx>, ScanError> {
        fits(&heights)?;
        let mut deposits = Vec::new();
        let mut before: Option<Block> = None;
        for height in heights {
            let behind = || ReadError::Unavailable("behind the end of the range".into());
            let block = self.at(height).await?.ok_or_else(behind)?;
            if before.is_some_and(|before| before.hash != block.parent) {
                return Err(moved().into());
            }
            deposits.extend(self.held(&block).await?);
            before = Some(block);
        }
        Ok(deposits)
    }

    async fn omitted(
        &self,
        from: u64,
        end: &Block,
        shown: &[DepositTx],
    ) -> Result<Vec<DepositTx>, ScanError> {
        let heights = from..=end.number;
        fits(&heights)?;
        if heights.is_empty() {
            return Ok(Vec::new());
        }
        let last = self.at(end.number).await?;
        if last.is_none_or(|last| last.hash != end.hash) {
            return Err(moved().into());
        }
        let mut omitted = self.deposits(heights).await?;
        omitted.retain(|one| !shown.contains(one));
        Ok(omitted)
    }
}

fn fits(heights: &RangeInclusive<u64>) -> Result<(), ScanError> {
    let blocks = heights.end().saturating_sub(*heights.start());
    match blocks < MOST {
        true => Ok(()),
        false => Err(ScanError::TooLarge(format!("more than {MOST} blocks"))),
    }
}

/// The transactions of a block that pay a depository. An error unless it is the whole block of that hash.
fn paying(
    rules: &Rules,
    whole: bitcoin::Block,
    block: &Block,
) -> Result<Vec<Transaction>, ReadError> {
    if shown(&whole.block_hash()) != block.hash {
        return Err(doubt("another block"));
    }
    if shown(&whole.header.prev_blockhash) != block.parent {
        return Err(doubt("another parent than its header's"));
    }
    if !whole.check_merkle_root() || repeats(&whole.txdata) {
        return Err(doubt("not the transactions of the block"));
    }
    let pays = |transaction: &Transaction| {
        let mut outputs = transaction.output.iter();
        outputs.any(|output| rules.depository(&output.script_pubkey).is_some())
    };
    Ok(whole.txdata.into_iter().filter(pays).collect())
}

/// Whether the end of the list is there twice: such a list has the hash of the one without (CVE-2012-2459).
fn repeats(transactions: &[Transaction]) -> bool {
    let mut ids: Vec<Txid> = transactions.iter().map(Transaction::compute_txid).collect();
    ids.sort_unstable();
    ids.windows(2).any(|pair| pair[0] == pair[1])
}

/// Whether the provider shows the outputs that the block has.
fn is_same(transaction: &Transaction, shown: &RawTransaction) -> bool {
    let outputs = transaction.output.iter().zip(&shown.vout);
    let mut outputs = outputs
        .map(|(own, shown)| own.value == shown.value && own.script_pubkey == shown.script.hex);
    transaction.output.len() == shown.vout.len() && outputs.all(|same| same)
}

/// The deposits of a transaction; `None` where there are none.
fn deposit_tx(rules: &Rules, found: &Found) -> Option<DepositTx> {
    let Found {
        transaction,
        spent,
        block,
    } = found;
    let known = spent.as_deref().unwrap_or_default();
    let (deposits, doubt) = match decode::receipt(rules, found).deposits {
        Ok(deposits) => (deposits, None),
        Err(refusal) => (decode::outputs(rules, transaction, known), Some(refusal)),
    };
    shown_as(&transaction.txid, block, (deposits, doubt))
}

/// The same for a transaction that is too large to read, by its block's word: what it spends is not known.
fn unread(rules: &Rules, transaction: &Transaction, block: &Block) -> Option<DepositTx> {
    let transaction = raw(transaction);
    let deposits = decode::outputs(rules, &transaction, &[]);
    let doubt = Refusal("Transaction is too large to read".into());
    shown_as(&transaction.txid, block, (deposits, Some(doubt)))
}

/// The same transaction, of which nothing is known but itself.
fn raw(transaction: &Transaction) -> RawTransaction {
    let inputs = transaction.input.iter().map(|input| RawInput {
        txid: (!input.previous_output.is_null()).then_some(input.previous_output.txid),
        vout: input.previous_output.vout,
        prevout: None,
        script_sig: None,
        witness: Vec::new(),
    });
    let outputs = (0..).zip(&transaction.output).map(|(n, output)| RawOutput {
        value: output.value,
        n,
        script: RawScript {
            hex: output.script_pubkey.clone(),
        },
    });
    RawTransaction {
        txid: transaction.compute_txid(),
        vin: inputs.collect(),
        vout: outputs.collect(),
        blockhash: None,
    }
}

fn shown_as(
    txid: &Txid,
    block: &Block,
    (deposits, doubt): (Vec<Deposit>, Option<Refusal>),
) -> Option<DepositTx> {
    (!deposits.is_empty()).then(|| DepositTx {
        transaction: tx_ref(&shown_txid(txid)),
        number: block.number,
        hash: block.hash,
        deposits,
        doubt,
    })
}

/// A transaction as its id names it.
pub fn tx_ref(id: &B256) -> TxRef {
    TxRef {
        text: alloy::hex::encode(id).into(),
        bytes: (*id).into(),
        hint: None,
    }
}

fn doubt(what: &str) -> ReadError {
    ReadError::Doubtful(what.into())
}

#[cfg(test)]
pub(super) mod tests;
