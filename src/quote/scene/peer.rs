//! A provider that says other fees than the first.

use alloy::primitives::{B256, Bytes};
use async_trait::async_trait;
use vm::{
    Address, ReadError,
    trade::{Broadcast, Fate, Fees, Intended, Revert, Writer},
};

use super::Scene;

/// See the module.
pub struct Peer(pub Scene);

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
