//! Shows transactions in full, through one node. See [`trade::Witnesses`].

mod decode;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use self::decode::Cost;
use super::{
    decode::{Mined, Rules},
    raw::RawHeader,
    rpc::{self, Answer, Rpc, doubt, expect},
};
use crate::{
    ReadError,
    trade::{self, Witness},
    types::{B256, Block, TxRef},
};

/// See the module.
pub struct Witnesses {
    pub rpc: Arc<Rpc>,
    pub rules: Rules,
}

#[async_trait]
impl trade::Witnesses for Witnesses {
    async fn witness(&self, transaction: &TxRef) -> Result<Option<Witness>, ReadError> {
        let Ok(hash) = B256::try_from(transaction.bytes.as_ref()) else {
            return Ok(None);
        };
        let Some((mined, cost)) = self.mined(&hash).await? else {
            return Ok(None);
        };
        let block = self.block(mined.number).await?;
        let witness = decode::witness(&self.rules, mined, cost, &block);
        witness.map(Some).map_err(doubt)
    }
}

impl Witnesses {
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
        let calls = vec![rpc::call("eth_getBlockByNumber", at)];
        let answer = self.rpc.round(calls).await?.pop();
        let answer = answer.ok_or_else(|| doubt("an answer is missing"))?;
        let header: Option<RawHeader> = expect("eth_getBlockByNumber", answer)?;
        header
            .and_then(|header| header.block())
            .ok_or_else(|| doubt("a receipt's block is not there"))
    }
}
