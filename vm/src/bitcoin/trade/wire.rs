//! How transactions reach the network through a provider, and what it says of fees.

use async_trait::async_trait;
use bitcoin::{Transaction, Txid};

use crate::{
    ReadError,
    bitcoin::source::{self, Source},
    trade::{self, Broadcast, Fate, FeeRate},
    types::{B256, Bytes},
};

mod index;
mod node;
mod said;

/// A provider that transactions are sent through.
#[async_trait]
pub trait Wire: Send + Sync + 'static {
    /// What inclusion within two blocks costs, in satoshis per virtual byte: rounded up, and at least what the provider's
    /// memory pool asks.
    async fn rate(&self) -> Result<u64, ReadError>;
    async fn push(&self, transaction: &Transaction) -> Result<Broadcast, ReadError>;
    /// Whether the provider's memory pool has the transaction.
    async fn waits(&self, txid: Txid) -> Result<bool, ReadError>;
}

/// The least that most nodes take for a virtual byte, in satoshis (their `minRelayTxFee`).
const RELAY: u64 = 1;

/// Sends transactions through one provider, and says what became of them there.
pub struct Writer<S>(pub std::sync::Arc<S>);

#[async_trait]
impl<S: Source + Wire> trade::Writer for Writer<S> {
    /// All of it is the base rate, on which a quorum must roughly agree. A bid need not be near the others: of two the
    /// lower one counts, so one provider could keep everything from landing.
    async fn rate(&self) -> Result<FeeRate, ReadError> {
        let rate = Wire::rate(&*self.0).await?;
        Ok(FeeRate::new(rate.into(), 0))
    }

    async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError> {
        match bitcoin::consensus::deserialize(raw) {
            Ok(transaction) => self.0.push(&transaction).await,
            Err(error) => Ok(Broadcast::Refused(error.to_string())),
        }
    }

    async fn fate(&self, id: &Bytes) -> Result<Fate, ReadError> {
        let id = B256::try_from(id.as_ref());
        let id = id.map_err(|_| ReadError::Unavailable("not a transaction id".into()))?;
        let txid = source::txid(&id);
        let tip = self.0.tip().await?;
        if let Some(found) = self.0.look(txid, &tip).await? {
            return Ok(Fate::Included {
                depth: tip.number.saturating_sub(found.block.number),
                block: found.block,
                success: true,
                spent: None,
            });
        }
        Ok(match self.0.waits(txid).await? {
            true => Fate::Waiting,
            false => Fate::Unknown,
        })
    }
}
