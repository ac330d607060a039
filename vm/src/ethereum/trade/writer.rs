//! Sends and follows transactions through one node.

use std::sync::Arc;

use alloy::primitives::keccak256;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use crate::{
    ReadError,
    ethereum::{
        decode::Mined,
        raw::{Quantity, RawHeader, RawReceipt, RawTransaction},
        rpc::{self, Answer, Rpc, doubt, expect},
        rpc_error,
    },
    trade::{self, Broadcast, Fate, FeeRate},
    types::{B256, Block, Bytes, U256},
};

/// Sends transactions through one node, and says what became of them there.
pub struct Writer(pub Arc<Rpc>);

#[async_trait]
impl trade::Writer for Writer {
    async fn rate(&self) -> Result<FeeRate, ReadError> {
        let calls = vec![
            rpc::call("eth_feeHistory", json!(["0x5", "latest", [50]])),
            rpc::call("eth_maxPriorityFeePerGas", json!([])),
            rpc::call("eth_getBlockByNumber", json!(["latest", false])),
        ];
        let [history, priority, latest] = <[Answer; 3]>::try_from(self.0.round(calls).await?)
            .map_err(|_| doubt("an answer is missing"))?;
        let history: Option<History> = known("eth_feeHistory", history)?;
        let priority: Option<Quantity> = known("eth_maxPriorityFeePerGas", priority)?;
        let latest: Option<FeeHeader> = expect("eth_getBlockByNumber", latest)?;
        let next = history.as_ref().and_then(History::next);
        let base = next.or_else(|| Some(risen(latest?.base_fee_per_gas?.0)));
        let tip = priority.map(|tip| tip.0).or_else(|| history?.tip());
        Ok(FeeRate::new(
            wei(base, "the chain has no base fee")?,
            wei(tip, "the node says nothing about tips")?,
        ))
    }

    async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError> {
        let call = rpc::call("eth_sendRawTransaction", json!([raw]));
        match self.0.one(call).await? {
            Err(refused) => Ok(rpc_error::broadcast(&refused)),
            answer => {
                let hash: B256 = expect("eth_sendRawTransaction", answer)?;
                if hash != keccak256(raw) {
                    return Err(doubt("the node took another transaction"));
                }
                Ok(Broadcast::Accepted)
            }
        }
    }

    async fn fate(&self, id: &Bytes) -> Result<Fate, ReadError> {
        let transaction = &B256::try_from(id.as_ref())
            .map_err(|_| ReadError::Unavailable("not a transaction id".into()))?;
        let calls = vec![
            rpc::call("eth_getTransactionReceipt", json!([transaction])),
            rpc::call("eth_getTransactionByHash", json!([transaction])),
        ];
        let [receipt, found] = <[Answer; 2]>::try_from(self.0.round(calls).await?)
            .map_err(|_| doubt("an answer is missing"))?;
        let receipt: Option<RawReceipt> = expect("eth_getTransactionReceipt", receipt)?;
        let found: Option<RawTransaction> = expect("eth_getTransactionByHash", found)?;
        let waits = found.is_some();
        let success = receipt.as_ref().and_then(|receipt| receipt.status?.small()) == Some(1);
        let spent = receipt.as_ref().and_then(RawReceipt::spent);
        let Some(mined) = Mined::join(transaction, receipt, found)? else {
            return Ok(if waits { Fate::Waiting } else { Fate::Unknown });
        };
        let (block, depth) = self.place(&mined).await?;
        Ok(Fate::Included {
            block,
            depth,
            success,
            spent,
        })
    }
}

impl Writer {
    /// The block that a receipt names, if it is on the chain that the head belongs to.
    async fn place(&self, mined: &Mined) -> Result<(Block, u64), ReadError> {
        let at = |tag: &str| rpc::call("eth_getBlockByNumber", json!([tag, false]));
        let calls = vec![at(&format!("{:#x}", mined.number)), at("latest")];
        let [block, head] = <[Answer; 2]>::try_from(self.0.round(calls).await?)
            .map_err(|_| doubt("an answer is missing"))?;
        let read = |answer| -> Result<Block, ReadError> {
            let header: Option<RawHeader> = expect("eth_getBlockByNumber", answer)?;
            header
                .and_then(|header| header.block())
                .ok_or_else(|| doubt("a receipt's block is not there"))
        };
        let (block, head) = (read(block)?, read(head)?);
        if block.number != mined.number || block.hash != mined.hash {
            return Err(doubt("the receipt is of another fork"));
        }
        let depth = head.number.checked_sub(block.number);
        Ok((
            block,
            depth.ok_or_else(|| doubt("a receipt above the head"))?,
        ))
    }
}

/// `eth_feeHistory`: the last base fee is that of the next block.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct History {
    #[serde(default)]
    base_fee_per_gas: Vec<Quantity>,
    #[serde(default)]
    reward: Option<Vec<Vec<Quantity>>>,
}

impl History {
    fn next(&self) -> Option<U256> {
        self.base_fee_per_gas.last().map(|base| base.0)
    }

    /// The largest of the blocks' median tips.
    fn tip(&self) -> Option<U256> {
        let medians = self.reward.iter().flatten().flatten();
        medians.map(|tip| tip.0).max()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FeeHeader {
    base_fee_per_gas: Option<Quantity>,
}

/// The answer to a method that not every node has.
fn known<T: serde::de::DeserializeOwned>(
    what: &str,
    answer: Answer,
) -> Result<Option<T>, ReadError> {
    match answer {
        Err(_) => Ok(None),
        answer => expect(what, answer).map(Some),
    }
}

/// The most that a base fee rises from one block to the next (EIP-1559).
fn risen(base: U256) -> U256 {
    base.saturating_add(base.div_ceil(U256::from(8)))
}

fn wei(found: Option<U256>, missing: &str) -> Result<u128, ReadError> {
    let found = found.ok_or_else(|| ReadError::Unavailable(missing.into()))?;
    u128::try_from(found).map_err(|_| doubt("a fee out of range"))
}
