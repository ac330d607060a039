//! What an Esplora-compatible index shows to those who trade on its chain (`/block/…/raw`, `/tx/…/raw`,
//! `/address/…/utxo`, `/address/…/txs/mempool`; and in `crowded` `/address/…/txs/chain`).

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
    ops::Bound,
    sync::{Arc, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use bitcoin::{Amount, Block, OutPoint, Txid, consensus::deserialize};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Deserialize;

use super::{
    coin::Coin,
    scan_source::{Asked, Blocks, Looked, MATURITY, Payee, Seen, Waits, Whose},
};
use crate::{
    ReadError,
    bitcoin::{
        esplora::{self, Esplora},
        raw::{IndexedTransaction, RawTransaction},
        source::{Found, block_hash, moved},
    },
    types::{self, B256},
};

/// Transactions that one read looks at, to tell whether they are a coinbase.
const LOOKS: usize = 64;
/// Waiting transactions that one look asks for by their ids, where the list of an address, which is short, leaves them out.
/// Others have their turn with the next looks.
const MOST_KNOWN: usize = 256;
/// Questions at once.
const AT_ONCE: usize = 16;
/// Transactions that are known to be none; beyond, they are looked at anew.
const KNOWN: usize = 20_000;

#[derive(Deserialize)]
struct Unspent {
    txid: Txid,
    vout: u32,
    /// Satoshis.
    value: u64,
    status: Status,
}

#[derive(Deserialize)]
struct Status {
    confirmed: bool,
    block_height: Option<u64>,
}

#[async_trait]
impl Blocks for Esplora {
    async fn whole(&self, hash: &B256) -> Result<Block, ReadError> {
        let path = format!("block/{}/raw", block_hash(hash));
        let body = self.ask(self.get(&path)).await?.ok_or_else(moved)?;
        deserialize(&body).map_err(|_| doubt("no block"))
    }

    async fn look_in(&self, txid: Txid, block: &types::Block) -> Result<Found, ReadError> {
        self.ask(self.found_in(txid, block)).await
    }

    async fn unspent(&self, payee: &Payee, whose: Whose) -> Result<Vec<Coin>, ReadError> {
        self.ask(self.unspent_of(payee, whose)).await
    }

    async fn waiting(&self, asked: Asked<'_>, seen: &mut Seen) -> Result<(), ReadError> {
        let mut now = Seen::new();
        for payee in asked.payees {
            let path = format!("address/{}/txs/mempool", payee.address);
            let found: Option<Vec<IndexedTransaction>> = self.ask(self.json(&path)).await?;
            for indexed in found.unwrap_or_default() {
                now.extend(looked(indexed)?);
            }
        }
        let missing = asked.known.iter().filter(|txid| !now.contains_key(*txid));
        let mut missing: BTreeSet<Txid> = missing.copied().collect();
        let turn = self.turn(&missing);
        for txid in &turn {
            missing.remove(txid);
        }
        // The others are as they were at their last turn.
        let kept = missing.iter();
        now.extend(kept.filter_map(|txid| Some((*txid, seen.get(txid)?.clone()))));
        let each = stream::iter(turn).map(|txid| self.ask(self.waits(txid)));
        let found: Vec<_> = each.buffered(AT_ONCE).try_collect().await?;
        now.extend(found.into_iter().flatten());
        *seen = now;
        Ok(())
    }
}

/// A transaction as the index shows it, as one of [`Seen`]; `None` where it is in a block.
fn looked(indexed: IndexedTransaction) -> Result<Option<(Txid, Looked)>, ReadError> {
    let transaction = RawTransaction::try_from(indexed).map_err(doubt)?;
    if transaction.blockhash.is_some() {
        return Ok(None);
    }
    let spent = esplora::spent(&transaction);
    let waits = Waits { transaction, spent };
    Ok(Some((waits.transaction.txid, Some(Arc::new(waits)))))
}

impl Esplora {
    async fn waits(&self, txid: Txid) -> Result<Option<(Txid, Looked)>, ReadError> {
        let indexed: Option<IndexedTransaction> = self.json(&format!("tx/{txid}")).await?;
        let found = indexed.map(looked).transpose()?.flatten();
        match found.as_ref().is_none_or(|(shown, _)| *shown == txid) {
            true => Ok(found),
            false => Err(doubt("another transaction")),
        }
    }

    async fn unspent_of(&self, payee: &Payee, whose: Whose) -> Result<Vec<Coin>, ReadError> {
        let path = format!("address/{}/utxo", payee.address);
        let Ok(found) = self.unless_refused::<Vec<Unspent>>(&path).await? else {
            return match whose {
                Whose::Own => self.crowded(payee).await,
                Whose::Others => Err(ReadError::TooLarge),
            };
        };
        let found = found.unwrap_or_default().into_iter();
        let coins = found.filter(|it| it.status.confirmed).map(|it| {
            if it.value > Amount::MAX_MONEY.to_sat() {
                return Err(doubt("more bitcoin than there is"));
            }
            let height = it.status.block_height;
            Ok(Coin {
                outpoint: OutPoint::new(it.txid, it.vout),
                value: it.value,
                height: height.ok_or_else(|| doubt("a block without a height"))?,
            })
        });
        let coins = coins.collect::<Result<Vec<Coin>, ReadError>>()?;
        self.ripe(coins, whose).await
    }

    /// Those that can be spent in the next block. The index does not tell which are a coinbase's: the transactions of the
    /// largest young ones are looked at, of further ones with later calls. Until then those of our own are left out.
    async fn ripe(&self, mut coins: Vec<Coin>, whose: Whose) -> Result<Vec<Coin>, ReadError> {
        coins.sort_by_key(|coin| Reverse(coin.value));
        if self.unknown(coins.iter()).is_empty() {
            return Ok(coins);
        }
        let tip = self.text("blocks/tip/hash").await?.ok_or_else(moved)?;
        let tip = self.header(&tip).await?.number;
        let is_old = |coin: &Coin| coin.height.saturating_add(MATURITY) <= tip.saturating_add(1);
        let young = self.unknown(coins.iter().filter(|coin| !is_old(coin)));
        let each = stream::iter(young).map(|txid| self.is_coinbase(txid));
        let looked: HashMap<Txid, bool> = each.buffered(AT_ONCE).try_collect().await?;
        let mut plain = self.plain();
        if plain.len() > KNOWN {
            plain.clear();
        }
        let none = looked.iter().filter(|(_, coinbase)| !**coinbase);
        plain.extend(none.map(|(txid, _)| *txid));
        coins.retain(|coin| {
            let txid = &coin.outpoint.txid;
            let unlooked = whose == Whose::Others && !looked.contains_key(txid);
            is_old(coin) || plain.contains(txid) || unlooked
        });
        Ok(coins)
    }

    /// The next of these to be asked for: each has its turn, whatever ids others have.
    fn turn(&self, missing: &BTreeSet<Txid>) -> Vec<Txid> {
        let mut last = self
            .last_asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let since = last.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = missing.range((since, Bound::Unbounded));
        let turn = behind.chain(missing).copied();
        let turn: Vec<Txid> = turn.take(MOST_KNOWN.min(missing.len())).collect();
        *last = turn.last().copied();
        turn
    }

    /// The first transactions of these coins that nothing is known of.
    fn unknown<'a>(&self, coins: impl Iterator<Item = &'a Coin>) -> BTreeSet<Txid> {
        let plain = self.plain();
        let txids = coins.map(|coin| coin.outpoint.txid);
        txids
            .filter(|txid| !plain.contains(txid))
            .take(LOOKS)
            .collect()
    }

    async fn is_coinbase(&self, txid: Txid) -> Result<(Txid, bool), ReadError> {
        let indexed: Option<IndexedTransaction> = self.json(&format!("tx/{txid}")).await?;
        let transaction = RawTransaction::try_from(indexed.ok_or_else(moved)?).map_err(doubt)?;
        if transaction.txid != txid {
            return Err(doubt("another transaction"));
        }
        let coinbase = transaction.vin.iter().any(|input| input.txid.is_none());
        Ok((txid, coinbase))
    }

    fn plain(&self) -> MutexGuard<'_, HashSet<Txid>> {
        self.plain.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn doubt(what: &str) -> ReadError {
    ReadError::Doubtful(what.into())
}
