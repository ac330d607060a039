//! Deposits on their way into a block, by one provider's word.

use async_trait::async_trait;

use crate::{
    oracle::ReadError,
    types::{Deposit, TxRef},
};

/// Shows deposits that wait for a block. Any of them may be replaced or dropped: nothing that moves money rests on it.
#[async_trait]
pub trait Mempool: Send + Sync {
    /// Waiting transactions that would put something into a configured depository. A provider that has many of them may
    /// leave some out, or show them only when it is asked again; not those of `known`, which others have shown.
    async fn waiting(&self, known: &[TxRef]) -> Result<Vec<WaitingTx>, ReadError>;
}

/// A transaction in no block that would make deposits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTx {
    pub transaction: TxRef,
    /// Never empty.
    pub deposits: Vec<Deposit>,
}
