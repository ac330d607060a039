//! Transactions in full, for people who look at them. One provider's word, and decoded for display:
//! nothing that moves money, signs or decides may rest on it.

use async_trait::async_trait;

use crate::{
    oracle::ReadError,
    types::{Address, Amount, Block, Bytes, TxRef},
};

/// Shows transactions in full, on one provider's word. Nothing that moves money, signs or decides may rest on it.
#[async_trait]
pub trait TxInspector: Send + Sync {
    /// A transaction that is in a block; `None` when the provider's chain has it in none.
    async fn inspect(&self, transaction: &TxRef) -> Result<Option<TxDetails>, ReadError>;
}

/// One transaction in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxDetails {
    pub from: Address,
    /// `None` where it created a contract.
    pub to: Option<Address>,
    /// The calldata; `None` when it is longer than [`TxDetails::MOST_DATA`].
    pub data: Option<Bytes>,
    /// Of the native currency, as the transaction carried it.
    pub value: Amount,
    /// What was paid for its inclusion, in the native currency's smallest unit; where the chain
    /// settles on another, with that one's part as the receipt tells it.
    pub fee: Amount,
    pub block: Block,
    pub success: bool,
    /// By how much holdings differ because of it, fees apart, as its value and its tokens' own logs
    /// tell: in the order in which they first moved, at most [`TxDetails::MOST_CHANGES`]. Native
    /// currency that contracts passed on is seen only where the provider shows the calls within. None where
    /// it failed.
    pub changes: Vec<Change>,
}

impl TxDetails {
    /// Bytes of calldata that are kept.
    pub const MOST_DATA: usize = 8 << 10;
    /// Changes that are kept: the first ones.
    pub const MOST_CHANGES: usize = 256;
}

/// How much more or less of a currency an account holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub address: Address,
    pub currency: Address,
    pub diff: Diff,
}

/// An amount that is not zero, with its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diff {
    pub negative: bool,
    pub amount: Amount,
}
