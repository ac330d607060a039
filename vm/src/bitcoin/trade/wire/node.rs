//! Sending through a Bitcoin Core node.

use async_trait::async_trait;
use bitcoin::{Amount, Transaction, Txid, consensus};
use bitcoincore_rpc::{Client, RpcApi, jsonrpc};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;

use super::{
    Wire,
    said::{by_byte, verdict},
};
use crate::{
    ReadError,
    bitcoin::{
        node::Node,
        question::{Fault, known},
        raw,
    },
    trade::Broadcast,
};

/// Blocks within which a transaction is to be included.
const TARGET: u64 = 2;

/// Bitcoins per 1000 virtual bytes.
#[derive(Deserialize)]
struct PerKilo(#[serde(deserialize_with = "raw::bitcoins")] Amount);

#[derive(Deserialize)]
struct Estimate {
    /// Absent while the node has seen too few blocks.
    feerate: Option<PerKilo>,
}

#[derive(Deserialize)]
struct Pool {
    mempoolminfee: PerKilo,
}

#[async_trait]
impl Wire for Node {
    async fn rate(&self) -> Result<u64, ReadError> {
        let kilo = |client: &Client| -> Result<u64, Fault> {
            let estimate: Estimate = client.call("estimatesmartfee", &[json!(TARGET)])?;
            let pool: Pool = client.call("getmempoolinfo", &[])?;
            let least = pool.mempoolminfee.0;
            let asked = estimate.feerate.map_or(least, |rate| rate.0.max(least));
            Ok(asked.to_sat())
        };
        self.ask(kilo).await.map(by_byte)
    }

    async fn push(&self, transaction: &Transaction) -> Result<Broadcast, ReadError> {
        let own = transaction.compute_txid();
        let raw = consensus::encode::serialize_hex(transaction);
        let send = move |client: &Client| -> Result<Broadcast, Fault> {
            match client.call::<Txid>("sendrawtransaction", &[json!(raw)]) {
                Ok(taken) if own == taken => Ok(Broadcast::Accepted),
                Ok(_) => Err(Fault::Doubtful("the node took another transaction")),
                Err(bitcoincore_rpc::Error::JsonRpc(jsonrpc::Error::Rpc(refused))) => {
                    Ok(verdict(&refused.message))
                }
                Err(error) => Err(error.into()),
            }
        };
        self.ask(send).await
    }

    async fn waits(&self, txid: Txid) -> Result<bool, ReadError> {
        let look = move |client: &Client| -> Result<bool, Fault> {
            let asked = client.call::<IgnoredAny>("getmempoolentry", &[json!(txid)]);
            Ok(known(asked)?.is_some())
        };
        self.ask(look).await
    }
}
