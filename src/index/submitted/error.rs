//! Refusals of submitted transactions, each with its HTTP status.

use vm::B256;

use crate::{
    index::IndexError,
    store::{StoreError, requests::RequestsError, rows::RowError},
};

/// Why a transaction is not looked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmittedError {
    /// 400.
    #[error("unknown chain {0}")]
    UnknownChain(String),
    /// 400.
    #[error("{0}")]
    BadHash(String),
    /// 400.
    #[error("{0}")]
    BadTransaction(String),
    /// 404.
    #[error("unknown request {0}")]
    UnknownRequest(B256),
    /// 404: a network on which only transactions in blocks count does not have it.
    #[error("transaction {0} is not in a block")]
    NotIncluded(String),
    /// 404.
    #[error("unknown transaction {0}")]
    UnknownTransaction(String),
    /// 503: too many transactions are looked for already.
    #[error("too many transactions are being looked for")]
    Busy,
    /// 503.
    #[error(transparent)]
    Index(#[from] IndexError),
}

impl From<StoreError> for SubmittedError {
    fn from(error: StoreError) -> Self {
        Self::Index(error.into())
    }
}

impl From<RowError> for SubmittedError {
    fn from(error: RowError) -> Self {
        Self::Index(error.into())
    }
}

impl From<RequestsError> for SubmittedError {
    fn from(error: RequestsError) -> Self {
        Self::Index(error.into())
    }
}
