//! What a user's deposit is made of besides its terms, on chains where a transaction cannot be built without.

use async_trait::async_trait;

use super::{FeeRate, Unspent};
use crate::{
    oracle::ReadError,
    types::{Address, Amount, Bytes},
};

/// Reads what [`StepBuilder::deposit`](super::StepBuilder::deposit) builds a user's transaction of.
#[async_trait]
pub trait Funding: Send + Sync {
    /// What the account can spend, by one provider's word. `Err` inside: no provider lists all of it.
    async fn unspent(&self, user: &Address) -> Result<Result<Vec<Unspent>, Unfunded>, ReadError>;
    /// The bytes that [`DepositTerms::funds`](super::DepositTerms::funds) has; only the family reads them. `Err` inside:
    /// there is no such deposit.
    async fn fund(&self, need: &Need<'_>) -> Result<Result<Bytes, Unfunded>, ReadError>;
}

/// A deposit that somebody means to make.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    pub user: &'a Address,
    /// The user's public key as the caller spelled it, where the request has it.
    pub key: Option<&'a str>,
    pub depository: &'a Address,
    pub currency: &'a Address,
    pub amount: Amount,
    /// What its sender pays for a unit of work.
    pub rate: FeeRate,
    /// See [`Funding::unspent`].
    pub unspent: &'a [Unspent],
}

/// Why a deposit cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfunded {
    /// In the currency's smallest unit; the transaction's fee is counted.
    #[error("the account has too little: {missing} are missing with the fee")]
    Short { missing: Amount },
    /// The chain passes on no payment below `least`, in the currency's smallest unit.
    #[error("the chain takes no payment below {least}")]
    Small { least: Amount },
    /// The user's public key is missing, malformed or not the account's.
    #[error("{0}")]
    Key(String),
    /// Nobody can build transactions of such an account without its owner.
    #[error("{0}")]
    Unable(String),
}
