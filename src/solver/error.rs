//! Why the solver could do nothing now.

use vm::{
    Amount, CodecError, ReadError,
    trade::{Jump, Unsigned},
};

use super::claim::ClaimError;
use crate::{
    price::PriceError,
    store::{StoreError, requests::RequestsError, rows::RowError},
};

/// Why nothing could be done now. The worker tries again after any of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SolverError {
    #[error(transparent)]
    Requests(#[from] RequestsError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Row(#[from] RowError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error(transparent)]
    Unsigned(#[from] Unsigned),
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error(transparent)]
    Price(#[from] PriceError),
    /// Another process holds the account, or another commit came first.
    #[error("the account has another holder, or changed meanwhile")]
    Fenced,
    #[error("{network}: {available} of {currency} are available, {needed} are needed")]
    Short {
        network: String,
        currency: String,
        available: Amount,
        needed: Amount,
    },
    /// The chain counts more of the account's transactions than anybody here has made.
    #[error("{network}: {jump}: intentd lane heal {network}")]
    Jumped { network: String, jump: Jump },
    /// The same when the process starts, or a payment that it began with is lost: the store may be an older copy.
    #[error("{0}: the chain has transactions that the store has not: is DATA_DIR an old copy?")]
    Behind(String),
    /// The market file does not match the chain, or no quorum has answered yet.
    #[error("{network}: nothing is traded: {why}")]
    Unsound { network: String, why: String },
    #[error("{0}: no block for {1} seconds; nothing is quoted there until the next one")]
    Stalled(String, u64),
    #[error("{0}: inclusion costs more than the operator's limit")]
    Dear(String),
    #[error("{0}: {1} is charged besides a payment's work, at most {2} may be")]
    Dearer(String, Amount, Amount),
    #[error("{0}: enough is being given back to who may refuse it: this waits for its turn")]
    Crowded(String),
    #[error("the solver does not work on {0}")]
    Elsewhere(String),
}
