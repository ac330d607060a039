//! Finding deposits in ranges of heights, and what accounts hold piece by piece, through one provider.

use std::ops::RangeInclusive;

use async_trait::async_trait;

use crate::{
    oracle::ReadError,
    types::{Address, Amount, B256, Block, Bytes, Deposit, Refusal, TxRef},
};

/// Finds deposits in ranges of heights. A chain may skip heights; its family knows whether it does. The parent of a
/// block is the newest block below it, however many heights are between them.
#[async_trait]
pub trait Scanner: Send + Sync {
    /// The newest block.
    async fn head(&self) -> Result<Block, ReadError>;
    /// The block that stands at a height: the newest one at or below it. Its own number is lower than `height` only
    /// where the chain skipped the height. `None` above the head. An error where the provider does not know whether
    /// the height was skipped; `Doubtful` where the chain skips no height and the provider shows another block.
    async fn block(&self, height: u64) -> Result<Option<Block>, ReadError>;
    /// Every transaction in the blocks of these heights that put something into a configured depository, in block
    /// order; nothing where all of the heights were skipped. A reverted transaction is never among them.
    async fn deposits(&self, heights: RangeInclusive<u64>) -> Result<Vec<DepositTx>, ScanError>;
    /// What the chain itself says that `shown` leaves out of the blocks from height `from` to `end`, where the
    /// family's blocks say what is in them; nothing where `end` is below `from`. An error where the provider shows
    /// something else than its own blocks. A family whose chains skip heights also checks here that those were
    /// skipped. This stands in for a second provider where there is none: what a provider forgets is found, what it
    /// forges with care is not.
    async fn omitted(
        &self,
        from: u64,
        end: &Block,
        shown: &[DepositTx],
    ) -> Result<Vec<DepositTx>, ScanError>;
}

/// A transaction with deposits, as one provider shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepositTx {
    pub transaction: TxRef,
    /// The own number of its block.
    pub number: u64,
    pub hash: B256,
    /// Never empty.
    pub deposits: Vec<Deposit>,
    /// Why no quorum will attest them. They are shown as the transaction's records have them, so that an operator
    /// looks at them.
    pub doubt: Option<Refusal>,
}

/// Why a range was not scanned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// The provider refuses so many blocks or results at once, or does not get done in time: ask
    /// for fewer. Never said of a single block.
    #[error("range too large: {0}")]
    TooLarge(String),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// What accounts hold, piece by piece, on chains that keep no balances.
#[async_trait]
pub trait Outputs: Send + Sync {
    /// The account's unspent outputs in blocks, at the provider's tip. What cannot be spent yet is not among them.
    async fn unspent(&self, owner: &Address) -> Result<Vec<Unspent>, ReadError>;
    /// The account is our own from now on: its outputs have to be shown whatever strangers pay it.
    fn watch(&self, _owner: &Address) {}
    /// What is in a block and spends each of these outputs, at the provider's tip; as many answers in the same order.
    async fn spenders(&self, outputs: &[Bytes]) -> Result<Vec<SpentBy>, ReadError>;
    /// The raw bytes of a transaction; `None` where the provider does not know it. The id is as
    /// [`Codec::encode_transaction_id`](crate::Codec::encode_transaction_id) has it.
    async fn transaction(&self, id: &Bytes) -> Result<Option<Bytes>, ReadError>;
}

/// An unspent output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unspent {
    /// As the family writes it.
    pub output: Bytes,
    pub amount: Amount,
    /// The number of its block.
    pub height: u64,
}

/// What in a block spends an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpentBy {
    Nobody,
    /// The id is as [`Codec::encode_transaction_id`](crate::Codec::encode_transaction_id) has it.
    Transaction(Bytes),
    /// Something that this provider cannot name.
    Somebody,
}
