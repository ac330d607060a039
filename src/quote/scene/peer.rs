//! Providers beside the honest one: one that says other fees, and one that lies about accounts.

use alloy::primitives::{B256, Bytes, U256};
use async_trait::async_trait;
use vm::{
    Address, ReadError,
    trade::{
        Accounts, Broadcast, Call, Called, CurrencyInfo, Fate, Fees, Intended, Revert, Writer,
    },
};

use super::Scene;

pub struct Peer(pub Scene);

/// Everything is allowed to everybody, and who has code has none.
pub struct Liar(pub Scene);

#[async_trait]
impl Accounts for Liar {
    async fn balance(&self, owner: &Address, currency: &Address) -> Result<U256, ReadError> {
        self.0.balance(owner, currency).await
    }

    async fn allowance(&self, _: &Address, _: &Address, _: &Address) -> Result<U256, ReadError> {
        Ok(U256::MAX)
    }

    async fn currency(&self, address: &Address) -> Result<Option<CurrencyInfo>, ReadError> {
        self.0.currency(address).await
    }

    async fn is_contract(&self, address: &Address) -> Result<bool, ReadError> {
        Ok(!self.0.is_contract(address).await?)
    }

    async fn calls(&self, calls: &[Call]) -> Vec<Called> {
        self.0.calls(calls).await
    }
}

#[async_trait]
impl Writer for Peer {
    async fn fees(&self) -> Result<Fees, ReadError> {
        let said = self.0.with(|world| world.others);
        let fees = self.0.fees().await?;
        Ok(Fees {
            base: said.unwrap_or(fees.base),
            ..fees
        })
    }

    async fn estimate(&self, intended: &Intended<'_>) -> Result<Result<u64, Revert>, ReadError> {
        self.0.estimate(intended).await
    }

    async fn nonce(&self, owner: &Address, waiting: bool) -> Result<u64, ReadError> {
        self.0.nonce(owner, waiting).await
    }

    async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError> {
        self.0.broadcast(raw).await
    }

    async fn fate(&self, transaction: &B256) -> Result<Fate, ReadError> {
        self.0.fate(transaction).await
    }
}
