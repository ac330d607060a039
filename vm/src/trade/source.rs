//! Finding deposits: from block to block, through one provider.

use std::ops::RangeInclusive;

use async_trait::async_trait;

use crate::{
    oracle::ReadError,
    types::{B256, Block, Deposit, Refusal, TxRef},
};

/// Finds deposits in ranges of blocks.
#[async_trait]
pub trait Scanner: Send + Sync {
    /// The newest block.
    async fn head(&self) -> Result<Block, ReadError>;
    /// The block at a height; `None` above the head.
    async fn block(&self, number: u64) -> Result<Option<Block>, ReadError>;
    /// Every transaction of the blocks that put something into a configured depository, in block
    /// order. A reverted transaction is never among them.
    async fn deposits(&self, blocks: RangeInclusive<u64>) -> Result<Vec<DepositTx>, ScanError>;
    /// What the chain itself says that `shown` leaves out of the blocks from `from` to `end`, where the
    /// family's blocks say what is in them; an error where the provider shows something else than its
    /// own blocks. It stands in for a second provider where there is none: what a provider forgets is
    /// found, what it forges with care is not.
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
    pub number: u64,
    pub hash: B256,
    /// Never empty.
    pub deposits: Vec<Deposit>,
    /// Why no quorum will attest them: they stand here as the transaction's records have them, so that
    /// somebody looks.
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
