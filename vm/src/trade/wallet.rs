//! Accounts: what they hold, by one provider's word.

use std::any::Any;

use async_trait::async_trait;

use crate::{
    oracle::ReadError,
    types::{Address, Amount},
};

/// Balances and currencies at the head. A family finds its own kind of provider behind it, for what only that one is
/// asked.
#[async_trait]
pub trait Accounts: Any + Send + Sync {
    /// What `owner` holds of a currency.
    async fn balance(&self, owner: &Address, currency: &Address) -> Result<Amount, ReadError>;
    /// What a currency says of itself; `None` when there is no currency at the address. A native
    /// currency says nothing.
    async fn currency(&self, address: &Address) -> Result<Option<CurrencyInfo>, ReadError>;
}

/// What a currency says of itself at its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrencyInfo {
    pub symbol: String,
    pub name: String,
    pub decimals: u8,
    /// Wallets show other amounts of it than its accounts have, by a multiplier or with interest.
    pub scaled: bool,
}
