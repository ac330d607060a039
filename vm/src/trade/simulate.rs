//! What one provider says would happen.

use async_trait::async_trait;

use super::{Call, Trial};
use crate::{
    oracle::ReadError,
    types::{Address, Amount, Bytes},
};

/// Contracts through one provider, at the head.
#[async_trait]
pub trait Contracts: Send + Sync {
    /// What `spender` may take of `owner`'s; without end for a native currency.
    async fn allowance(
        &self,
        owner: &Address,
        spender: &Address,
        currency: &Address,
    ) -> Result<Amount, ReadError>;
    /// Whether code lives at an address: it is no plain account. An EIP-7702 delegation is code.
    async fn is_contract(&self, address: &Address) -> Result<bool, ReadError>;
    /// Read-only calls, each by itself, in as few round trips as the node lets; as many answers in the
    /// same order.
    async fn calls(&self, calls: &[Call]) -> Vec<Called>;
    /// The number of `owner`'s transactions in blocks, or with those that wait.
    async fn nonce(&self, owner: &Address, waiting: bool) -> Result<u64, ReadError>;
}

/// What a read-only call answered. `Err` inside: it reverted.
pub type Called = Result<Result<Bytes, Revert>, ReadError>;

impl dyn Contracts {
    /// One read-only call at the head.
    pub async fn call(&self, call: &Call) -> Called {
        let answer = self.calls(std::slice::from_ref(call)).await.pop();
        answer.unwrap_or_else(|| Err(ReadError::Doubtful("an answer is missing".into())))
    }
}

/// Tries transactions at one provider. Nothing is sent.
#[async_trait]
pub trait Simulator: Send + Sync {
    /// The work that a transaction would take now, by the provider's estimate. `Err` inside: it would
    /// fail. The state of the pending block counts where the provider has it.
    async fn estimate(&self, trial: &Trial<'_>) -> Result<Result<u64, Revert>, ReadError>;
    /// The work that one transaction of the first call's sender would take at the head which makes all
    /// of `calls`, in order, each as its own sender. `Err` inside: one of them reverts, and this is what
    /// it says.
    async fn simulate(&self, calls: &[Call]) -> Result<Result<u64, Revert>, ReadError>;
}

/// Why a transaction did not do what it was for (guide: protocol 11.17).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revert {
    /// What the chain said, readable: an error string, `Panic(0x11)`, an error's selector; empty
    /// when it said nothing.
    pub reason: String,
    pub data: Bytes,
}
