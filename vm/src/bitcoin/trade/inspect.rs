//! Transactions in full, through one provider, for people who look at them.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use async_trait::async_trait;
use bitcoin::{Script, Transaction, TxOut, Txid};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::scan_source::Blocks;
use crate::{
    ChainSpec, ReadError, SpecError,
    bitcoin::{
        network::Network,
        source::{MAX_PREVIOUS, moved, txid},
    },
    trade::{self, Change, Diff, TxDetails},
    types::{Address, Amount, B256, Block, Bytes, TxRef},
};

/// Previous transactions that are asked for at once.
const AT_ONCE: usize = 8;

/// Shows transactions in full.
pub struct Inspector<S> {
    network: &'static Network,
    native: Address,
    source: Arc<S>,
}

impl<S: Blocks> Inspector<S> {
    pub fn new(spec: &ChainSpec, source: Arc<S>) -> Result<Self, SpecError> {
        let native = spec.family.native();
        Ok(Self {
            network: Network::of(&spec.additional)?,
            native: native.map_err(|error| SpecError(error.to_string()))?,
            source,
        })
    }

    async fn transaction(&self, id: Txid) -> Result<Transaction, ReadError> {
        let found = self.source.raw(id).await?.ok_or_else(moved)?;
        match found.compute_txid() == id {
            true => Ok(found),
            false => Err(doubt("another transaction")),
        }
    }

    /// The outputs that the inputs spend.
    async fn spent(&self, transaction: &Transaction) -> Result<Vec<TxOut>, ReadError> {
        if transaction.is_coinbase() {
            return Ok(Vec::new());
        }
        let inputs = || transaction.input.iter().map(|input| input.previous_output);
        let ids: BTreeSet<Txid> = inputs().map(|output| output.txid).collect();
        if ids.len() > MAX_PREVIOUS {
            let what = "it spends outputs of too many transactions";
            return Err(ReadError::Unavailable(what.into()));
        }
        let each: Vec<_> = ids.into_iter().map(|id| self.previous(id)).collect();
        let each = stream::iter(each).buffered(AT_ONCE);
        let all: HashMap<Txid, Transaction> = each.try_collect().await?;
        let spent = inputs().map(|output| {
            let place = usize::try_from(output.vout).ok();
            let found = all.get(&output.txid).zip(place);
            let found = found.and_then(|(it, place)| it.output.get(place));
            found
                .cloned()
                .ok_or_else(|| doubt("an input spends an output that does not exist"))
        });
        spent.collect()
    }

    async fn previous(&self, id: Txid) -> Result<(Txid, Transaction), ReadError> {
        Ok((id, self.transaction(id).await?))
    }
}

#[async_trait]
impl<S: Blocks> trade::TxInspector for Inspector<S> {
    async fn inspect(&self, transaction: &TxRef) -> Result<Option<TxDetails>, ReadError> {
        let Ok(id) = B256::try_from(transaction.bytes.as_ref()) else {
            return Ok(None);
        };
        let head = self.source.tip().await?;
        let Some(found) = self.source.look(txid(&id), &head).await? else {
            return Ok(None);
        };
        let transaction = self.transaction(txid(&id)).await?;
        let seen = Seen {
            network: self.network,
            native: &self.native,
            spent: self.spent(&transaction).await?,
            transaction,
        };
        Ok(Some(seen.details(found.block)))
    }
}

/// A transaction with what it spends.
struct Seen<'a> {
    network: &'static Network,
    native: &'a Address,
    spent: Vec<TxOut>,
    transaction: Transaction,
}

impl Seen<'_> {
    fn details(&self, block: Block) -> TxDetails {
        let outputs = &self.transaction.output;
        let payer = self.spent.first().map(|spent| &spent.script_pubkey);
        let other = |output: &&TxOut| {
            let mut spent = self.spent.iter();
            spent.all(|it| it.script_pubkey != output.script_pubkey)
        };
        let paid = || outputs.iter().filter(other);
        let to = paid().find_map(|output| self.account(&output.script_pubkey));
        // A coinbase has no payer: the first that it pays stands for one.
        let from = payer.and_then(|script| self.account(script));
        let from = from.or_else(|| to.clone());
        let fee = sum(&self.spent).saturating_sub(sum(outputs));
        let value = paid().map(|output| output.value.to_sat());
        let value = value.fold(0, u64::saturating_add);
        let mut notes = outputs.iter().map(|output| &output.script_pubkey);
        let note = notes.find(|script| script.is_op_return());
        let data = note.map(|script| Bytes::copy_from_slice(script.as_bytes()));
        TxDetails {
            from: from.unwrap_or_else(|| self.native.clone()),
            to,
            data: data
                .or_else(|| Some(Bytes::new()))
                .filter(|data| data.len() <= TxDetails::MOST_DATA),
            value: Amount::from(value),
            fee: Amount::from(fee),
            block,
            success: true,
            changes: self.changes(fee),
        }
    }

    fn account(&self, script: &Script) -> Option<Address> {
        self.network.address(script)
    }

    /// By how much the holdings of each account differ, in the order of inputs and outputs. The first payer pays the
    /// fee, which does not count.
    fn changes(&self, fee: u64) -> Vec<Change> {
        let mut order: Vec<&Script> = Vec::new();
        let mut held: HashMap<&Script, i128> = HashMap::new();
        let spent = self.spent.iter().map(|spent| (spent, -1));
        let made = self.transaction.output.iter().map(|output| (output, 1));
        for (output, sign) in spent.chain(made) {
            let script = output.script_pubkey.as_script();
            let change = held.entry(script).or_insert_with(|| {
                order.push(script);
                0
            });
            *change += sign * i128::from(output.value.to_sat());
        }
        if let Some(payer) = self.spent.first() {
            *held.entry(payer.script_pubkey.as_script()).or_default() += i128::from(fee);
        }
        let changes = order.into_iter().filter_map(|script| {
            let change = held.get(script).copied().filter(|change| *change != 0)?;
            Some(Change {
                address: self.account(script)?,
                currency: self.native.clone(),
                diff: Diff {
                    negative: change < 0,
                    amount: Amount::from(change.unsigned_abs()),
                },
            })
        });
        changes.take(TxDetails::MOST_CHANGES).collect()
    }
}

fn sum(outputs: &[TxOut]) -> u64 {
    let values = outputs.iter().map(|output| output.value.to_sat());
    values.fold(0, u64::saturating_add)
}

fn doubt(what: &str) -> ReadError {
    ReadError::Doubtful(what.into())
}

#[cfg(test)]
mod tests;
