//! What a provider of a Bitcoin chain shows to those who trade there, besides what attesting needs. Nothing of it is
//! checked here.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use bitcoin::{Block, ScriptBuf, Transaction, Txid};

use super::coin::Coin;
use crate::{
    ReadError,
    bitcoin::{raw::RawTransaction, source::Source},
    types::B256,
};

/// An account as providers are asked about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payee {
    pub address: String,
    pub script: ScriptBuf,
}

/// A waiting transaction, with the scripts of what it spends as [`Found::spent`](crate::bitcoin::source::Found::spent)
/// has them.
#[derive(Clone, Debug)]
pub struct Waits {
    pub transaction: RawTransaction,
    pub spent: Option<Vec<Option<ScriptBuf>>>,
}

/// The waiting transactions that were looked at; `None` for those that pay nobody of interest.
pub type Seen = HashMap<Txid, Option<Arc<Waits>>>;

/// One provider.
#[async_trait]
pub trait Blocks: Source {
    /// A block with all of its transactions, by its hash.
    async fn whole(&self, hash: &B256) -> Result<Block, ReadError>;
    /// A transaction, wherever it is; `None` where the provider does not know it.
    async fn raw(&self, txid: Txid) -> Result<Option<Transaction>, ReadError>;
    /// The account's outputs in blocks that can be spent in the next one, and that no waiting transaction spends.
    async fn unspent(&self, payee: &Payee) -> Result<Vec<Coin>, ReadError>;
    /// The waiting transactions that pay one of `payees`, and what else was looked at. `seen` is the last answer: a
    /// provider that names them all is asked for new ones only, and for a part of those where they are many.
    async fn waiting(&self, payees: &[Payee], seen: Seen) -> Result<Seen, ReadError>;
}
