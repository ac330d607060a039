//! Transactions in full, through one node, for people who look at them.

mod decode;
mod trace;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use serde_json::json;
use tokio::time::Instant;

use self::{decode::Cost, trace::Frame};
use crate::{
    ChainSpec, Endpoint, ReadError,
    ethereum::{
        decode::{Mined, Rules},
        raw::RawHeader,
        rpc::{self, Answer, Rpc, doubt, expect},
    },
    protocol::limits::STRANGERS_ANSWER,
    trade::{self, TxDetails},
    types::{B256, Block, TxRef},
};

/// How long a node is not asked for traces that refused one: most cannot.
const PAUSE: Duration = Duration::from_secs(3_600);

/// Shows transactions of one node in full, with the calls within them where the node traces them.
pub struct TxInspector {
    rpc: Arc<Rpc>,
    /// A line of their own for traces: how long they are, and how long the node wants to hear of no more of them,
    /// is nothing to those who move money over the other.
    traces: Rpc,
    rules: Rules,
    /// Until when the node is not asked for traces.
    untraced: Mutex<Option<Instant>>,
}

#[async_trait]
impl trade::TxInspector for TxInspector {
    async fn inspect(&self, transaction: &TxRef) -> Result<Option<TxDetails>, ReadError> {
        let Ok(hash) = B256::try_from(transaction.bytes.as_ref()) else {
            return Ok(None);
        };
        let Some((mined, cost)) = self.mined(&hash).await? else {
            return Ok(None);
        };
        let block = self.block(mined.number).await?;
        let trace = self.trace(&hash, &mined).await;
        let details = decode::inspect(&self.rules, mined, cost, &block, trace.as_ref());
        details.map(Some).map_err(doubt)
    }
}

impl TxInspector {
    /// Over `rpc`, the line to `endpoint` that all share.
    pub fn new(rpc: Arc<Rpc>, rules: Rules, spec: &ChainSpec, endpoint: &Endpoint) -> Self {
        let traces = Endpoint {
            longest: endpoint.longest.min(STRANGERS_ANSWER),
            ..endpoint.clone()
        };
        Self {
            rpc,
            traces: Rpc::new(&spec.id, spec.hub_chain_id, &traces),
            rules,
            untraced: Mutex::default(),
        }
    }

    /// The calls within the transaction, where it made some and the node tells them now. Without them what it
    /// moved is told as its value and its logs have it.
    async fn trace(&self, hash: &B256, mined: &Mined) -> Option<Frame> {
        // There all native currency moves by logs of its own.
        let logs_native = self.rules.ignored.is_some();
        if logs_native || !mined.succeeded || !decode::ran(mined) || self.is_untraced() {
            return None;
        }
        let options = json!({"tracer": "callTracer", "timeout": "5s"});
        let calls = vec![rpc::call("debug_traceTransaction", json!([hash, options]))];
        let answer = self.traces.round(calls).await.ok()?.pop()?;
        // What fails otherwise is one answer's fault, or a moment's.
        if answer.is_err() {
            *self.untraced() = Some(Instant::now() + PAUSE);
        }
        expect("debug_traceTransaction", answer).ok()
    }

    fn is_untraced(&self) -> bool {
        self.untraced().is_some_and(|until| Instant::now() < until)
    }

    fn untraced(&self) -> MutexGuard<'_, Option<Instant>> {
        self.untraced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn mined(&self, hash: &B256) -> Result<Option<(Mined, Cost)>, ReadError> {
        let calls = vec![
            rpc::call("eth_getTransactionReceipt", json!([hash])),
            rpc::call("eth_getTransactionByHash", json!([hash])),
        ];
        let [receipt, found] = <[Answer; 2]>::try_from(self.rpc.round(calls).await?)
            .map_err(|_| doubt("an answer is missing"))?;
        let paid = expect("eth_getTransactionReceipt", receipt.clone())?;
        let offered = expect("eth_getTransactionByHash", found.clone())?;
        let receipt = expect("eth_getTransactionReceipt", receipt)?;
        let found = expect("eth_getTransactionByHash", found)?;
        let Some(mined) = Mined::join(hash, receipt, found)? else {
            return Ok(None);
        };
        let cost = Cost::new(paid, offered).map_err(doubt)?;
        Ok(Some((mined, cost)))
    }

    /// The block at a height, by number: a node may still know blocks by their hash that left its
    /// chain.
    async fn block(&self, number: u64) -> Result<Block, ReadError> {
        let at = json!([format!("{number:#x}"), false]);
        let answer = self.rpc.one(rpc::call("eth_getBlockByNumber", at)).await?;
        let header: Option<RawHeader> = expect("eth_getBlockByNumber", answer)?;
        header
            .and_then(|header| header.block())
            .ok_or_else(|| doubt("a receipt's block is not there"))
    }
}
