//! What a provider of a Bitcoin chain shows: blocks, transactions and what spends an output.

use async_trait::async_trait;
use bitcoin::{BlockHash, OutPoint, ScriptBuf, Transaction, Txid, hashes::Hash};

use super::raw::RawTransaction;
use crate::{
    ReadError,
    types::{B256, Block},
};

/// The most transactions whose outputs a transaction may spend to be read as a deposit: more would take longer than a
/// request has. What nodes pass on has at most 100,000 virtual bytes: some 1,740 of the smallest signed inputs, but some
/// 2,400 that need no signature (pay-to-anchor).
pub const MAX_PREVIOUS: usize = 2_000;

/// A transaction, the scripts that it spends, and its block.
pub struct Found {
    pub transaction: RawTransaction,
    /// The script of each input's previous output, `None` for a coinbase. The whole is `None` where the inputs spend
    /// outputs of more than [`MAX_PREVIOUS`] transactions: all providers must decide alike.
    pub spent: Option<Vec<Option<ScriptBuf>>>,
    pub block: Block,
}

/// What is in a block of the chain and spends an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spender {
    Nobody,
    By(Txid),
    /// Something that this provider cannot name.
    Somebody,
}

/// One provider. Every answer that names a head or block is pinned to it: the block is on the provider's chain before
/// and after the read, else there is no answer.
#[async_trait]
pub trait Source: Send + Sync + 'static {
    /// The newest block.
    async fn tip(&self) -> Result<Block, ReadError>;
    /// The hash at a height, in the usual reversed byte order; `None` above the tip.
    async fn hash_at(&self, height: u64) -> Result<Option<B256>, ReadError>;
    /// The block with that hash.
    async fn block(&self, hash: B256) -> Result<Block, ReadError>;
    /// The transaction, if it is in a block at or below `head`.
    async fn look(&self, txid: Txid, head: &Block) -> Result<Option<Found>, ReadError>;
    /// What spends each output, at the provider's tip.
    async fn spenders(&self, outputs: &[OutPoint]) -> Result<Vec<Spender>, ReadError>;
}

/// One provider's transactions as they are. Nothing of them is checked here.
#[async_trait]
pub trait Transactions: Send + Sync + 'static {
    /// A transaction, wherever it is; `None` where the provider does not know it.
    async fn raw(&self, txid: Txid) -> Result<Option<Transaction>, ReadError>;
}

/// A hash in the usual reversed byte order.
pub fn shown(hash: &BlockHash) -> B256 {
    reversed(&B256::from(hash.to_byte_array()))
}

/// The hash of those bytes in the usual reversed order.
pub fn block_hash(shown: &B256) -> BlockHash {
    BlockHash::from_byte_array(reversed(shown).0)
}

/// A transaction id in the usual reversed byte order.
pub fn shown_txid(txid: &Txid) -> B256 {
    reversed(&B256::from(txid.to_byte_array()))
}

/// The transaction id of those bytes in the usual reversed order.
pub fn txid(shown: &B256) -> Txid {
    Txid::from_byte_array(reversed(shown).0)
}

fn reversed(bytes: &B256) -> B256 {
    let mut bytes = *bytes;
    bytes.0.reverse();
    bytes
}

pub fn moved() -> ReadError {
    ReadError::Unavailable("the chain changed between two reads".into())
}

/// Refuses a provider that does not have `block`.
pub fn anchored(found: Option<B256>, block: &Block) -> Result<(), ReadError> {
    match found {
        None => Err(ReadError::Unavailable("behind the agreed head".into())),
        Some(hash) if hash != block.hash => Err(ReadError::Doubtful(
            "the head is not on this provider's chain".into(),
        )),
        Some(_) => Ok(()),
    }
}
