//! Accounts: what they hold, what others may take of it, and what contracts answer. One provider's word.

use async_trait::async_trait;

use super::{Call, Revert};
use crate::{
    oracle::ReadError,
    types::{Address, Amount, Bytes},
};

/// Balances, allowances and currencies at the head.
#[async_trait]
pub trait Accounts: Send + Sync {
    /// What `owner` holds of a currency.
    async fn balance(&self, owner: &Address, currency: &Address) -> Result<Amount, ReadError>;
    /// What `spender` may take of `owner`'s; without end for a native currency.
    async fn allowance(
        &self,
        owner: &Address,
        spender: &Address,
        currency: &Address,
    ) -> Result<Amount, ReadError>;
    /// What a currency says of itself; `None` when there is no currency at the address. A native
    /// currency says nothing.
    async fn currency(&self, address: &Address) -> Result<Option<CurrencyInfo>, ReadError>;
    /// Whether code lives at an address: it is no plain account. An EIP-7702 delegation is code.
    async fn is_contract(&self, address: &Address) -> Result<bool, ReadError>;
    /// Read-only calls at the head, each by itself, in as few round trips as the node lets; as many
    /// answers in the same order.
    async fn calls(&self, calls: &[Call]) -> Vec<Called>;
}

/// What a read-only call answered. `Err` inside: it reverted.
pub type Called = Result<Result<Bytes, Revert>, ReadError>;

impl dyn Accounts {
    /// One read-only call at the head.
    pub async fn call(&self, call: &Call) -> Called {
        let answer = self.calls(std::slice::from_ref(call)).await.pop();
        answer.unwrap_or_else(|| Err(ReadError::Doubtful("an answer is missing".into())))
    }
}

/// See [`Accounts::currency`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrencyInfo {
    pub symbol: String,
    pub name: String,
    pub decimals: u8,
}
