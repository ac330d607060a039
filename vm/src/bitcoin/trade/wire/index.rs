//! Sending through an Esplora index (`/fee-estimates`, `POST /tx`, `/tx`).

use std::collections::HashMap;

use async_trait::async_trait;
use bitcoin::{Transaction, Txid, consensus};
use serde_json::value::RawValue;

use super::{
    RELAY, Wire,
    said::{rounded_up, verdict},
};
use crate::{
    ReadError,
    bitcoin::{esplora::Esplora, raw::IndexedTransaction, raw::RawTransaction},
    trade::Broadcast,
};

/// The targets, in blocks, of which the first is used that the index estimates.
const TARGETS: [&str; 3] = ["2", "1", "3"];

#[async_trait]
impl Wire for Esplora {
    async fn rate(&self) -> Result<u64, ReadError> {
        let asked = self.json::<HashMap<String, Box<RawValue>>>("fee-estimates");
        let estimates = self.ask(asked).await?.unwrap_or_default();
        let mut targets = TARGETS.iter().filter_map(|target| estimates.get(*target));
        // A chain without traffic has none.
        let Some(rate) = targets.next() else {
            return Ok(RELAY);
        };
        let wrong = || ReadError::Doubtful("a fee estimate that is no number".into());
        let rate = rounded_up(rate.get()).ok_or_else(wrong)?;
        Ok(rate.max(RELAY))
    }

    async fn push(&self, transaction: &Transaction) -> Result<Broadcast, ReadError> {
        let raw = consensus::encode::serialize_hex(transaction);
        let said = self.ask(self.post("tx", raw.into_bytes())).await?;
        match said {
            Ok(taken) if taken.trim() == transaction.compute_txid().to_string() => {
                Ok(Broadcast::Accepted)
            }
            Ok(_) => {
                let what = "the index took another transaction";
                Err(ReadError::Doubtful(what.into()))
            }
            Err(refused) => Ok(verdict(&refused)),
        }
    }

    async fn waits(&self, txid: Txid) -> Result<bool, ReadError> {
        let path = format!("tx/{txid}");
        let found = self.ask(self.json::<IndexedTransaction>(&path)).await?;
        let Some(found) = found else {
            return Ok(false);
        };
        let found = RawTransaction::try_from(found);
        let found = found.map_err(|what| ReadError::Doubtful(what.into()))?;
        Ok(found.blockhash.is_none())
    }
}
