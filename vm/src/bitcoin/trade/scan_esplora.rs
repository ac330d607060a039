//! What an Esplora-compatible index shows to those who trade on its chain (`/block/…/raw`, `/tx/…/raw`,
//! `/address/…/utxo`, `/address/…/txs/mempool`).

use std::sync::Arc;

use async_trait::async_trait;
use bitcoin::{Amount, Block, OutPoint, Transaction, Txid, consensus::deserialize};
use serde::Deserialize;

use super::{
    coin::Coin,
    scan_source::{Blocks, Payee, Seen, Waits},
};
use crate::{
    ReadError,
    bitcoin::{
        esplora::{self, Esplora},
        raw::{IndexedTransaction, RawTransaction},
        source::{block_hash, moved},
    },
    types::B256,
};

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

    async fn raw(&self, txid: Txid) -> Result<Option<Transaction>, ReadError> {
        let path = format!("tx/{txid}/raw");
        let body = self.ask(self.get(&path)).await?;
        let read = body.map(|body| deserialize(&body));
        read.transpose().map_err(|_| doubt("no transaction"))
    }

    /// The index does not tell which outputs are a coinbase's.
    async fn unspent(&self, payee: &Payee) -> Result<Vec<Coin>, ReadError> {
        let path = format!("address/{}/utxo", payee.address);
        let found: Option<Vec<Unspent>> = self.ask(self.json(&path)).await?;
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
        coins.collect()
    }

    async fn waiting(&self, payees: &[Payee], _: Seen) -> Result<Seen, ReadError> {
        let mut seen = Seen::new();
        for payee in payees {
            let path = format!("address/{}/txs/mempool", payee.address);
            let found: Option<Vec<IndexedTransaction>> = self.ask(self.json(&path)).await?;
            for indexed in found.unwrap_or_default() {
                let transaction = RawTransaction::try_from(indexed).map_err(doubt)?;
                if transaction.blockhash.is_none() {
                    let spent = esplora::spent(&transaction);
                    let waits = Waits { transaction, spent };
                    seen.insert(waits.transaction.txid, Some(Arc::new(waits)));
                }
            }
        }
        Ok(seen)
    }
}

fn doubt(what: &str) -> ReadError {
    ReadError::Doubtful(what.into())
}
