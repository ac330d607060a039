//! What a provider of a Bitcoin chain shows to those who trade there, besides what attesting needs. Nothing of it is
//! checked here.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use bitcoin::{Block, ScriptBuf, Txid};

use super::coin::Coin;
use crate::{
    ReadError,
    bitcoin::{
        raw::RawTransaction,
        source::{Found, Source, Transactions},
    },
    types::{self, B256},
};

/// Blocks on top of a coinbase before its outputs can be spent.
pub const MATURITY: u64 = 100;

/// An account as providers are asked about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payee {
    pub address: String,
    pub script: ScriptBuf,
}

/// Whose an account is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Ours: the larger ones of its outputs are shown, however many there are.
    Own,
    /// Anybody's: `TooLarge` where it has more outputs than the provider lists.
    Others,
}

/// A waiting transaction, with the scripts of what it spends as [`Found::spent`]
/// has them.
#[derive(Clone, Debug)]
pub struct Waits {
    pub transaction: RawTransaction,
    pub spent: Option<Vec<Option<ScriptBuf>>>,
}

/// What a memory pool is looked through for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub payees: &'a [Payee],
    /// Transactions that wait by somebody's word: none of them is left out because of how many others wait.
    pub known: &'a [Txid],
}

/// What a look keeps of a waiting transaction: nothing where it pays nobody of interest, or is too large to be read.
pub type Looked = Option<Arc<Waits>>;

/// The waiting transactions that were looked at.
pub type Seen = HashMap<Txid, Looked>;

/// One provider.
#[async_trait]
pub trait Blocks: Source + Transactions {
    /// A block with all of its transactions, by its hash.
    async fn whole(&self, hash: &B256) -> Result<Block, ReadError>;
    /// The transaction, in a block that has it. An error where it does not, or the provider cannot tell. Unlike
    /// [`Source::look`], nothing is read of the chain: whoever asks looks whether it still has the block.
    async fn look_in(&self, txid: Txid, block: &types::Block) -> Result<Found, ReadError>;
    /// The account's outputs in blocks that can be spent in the next one, and that no waiting transaction spends.
    async fn unspent(&self, payee: &Payee, whose: Whose) -> Result<Vec<Coin>, ReadError>;
    /// Brings `seen` up to date: the waiting transactions that pay one of the payees, and what else was looked at. A
    /// provider that names them all is asked for new ones only, and for a part of those where they are many; one
    /// that does not, for known ones by turns, between which they stay. What was looked at before an error is in it, too.
    async fn waiting(&self, asked: Asked<'_>, seen: &mut Seen) -> Result<(), ReadError>;
}
