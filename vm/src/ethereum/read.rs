//! Reads of one EVM node: transactions pinned to a head, contract state at a block.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use alloy::{
    primitives::keccak256,
    sol,
    sol_types::{SolStruct, SolValue},
};
use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::Instant};

use super::{
    address::account,
    decode::{self, Doubt, Mined, Rules},
    head::Tip,
    raw::{Quantity, RawHeader, RawReceipt, RawTransaction},
    rpc::{Answer, Rpc, call, doubt, expect},
};
use crate::{
    ChainReader, ChainSpec, Endpoint, Finality, LARGE_EVENTS, Provider, ReadError, SpecError,
    StateReader, aside,
    oracle::first_final,
    types::{
        Address, B256, Block, Bytes, EvmAddress, Head, Transaction, TxRef, U256, WithdrawalStatus,
    },
};

sol! {
    /// A withdrawal, as its depository hashes it (guide: protocol 8.1).
    struct Call { address to; bytes data; uint256 value; bool allowFailure; }
    struct CallRequest { Call[] calls; uint256 nonce; uint256 expiration; }
}

/// Opens one node of an EVM chain, without network traffic.
pub fn open(spec: &Arc<ChainSpec>, endpoint: &Endpoint) -> Result<Provider, SpecError> {
    let rpc = Arc::new(Rpc::new(&spec.id, spec.hub_chain_id, endpoint));
    let node = Arc::new(Node {
        rules: Rules::new(spec)?,
        finality: spec.finality.clone(),
        tip: Arc::new(Tip::new(rpc.clone(), spec.finality.tag)),
        rpc,
        tracking: Mutex::new(None),
        by_number: Mutex::new(None),
    });
    Ok(Provider {
        name: endpoint.name().into(),
        reader: node.clone(),
        state: Some(node),
        keys: None,
        checks_network: true,
    })
}

struct Node {
    rules: Rules,
    finality: Finality,
    rpc: Arc<Rpc>,
    tip: Arc<Tip>,
    tracking: Mutex<Option<JoinHandle<()>>>,
    /// When the node last refused a block hash in `eth_call` and answered without one.
    by_number: Mutex<Option<Instant>>,
}

impl Drop for Node {
    fn drop(&mut self) {
        let tracking = self
            .tracking
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = tracking.take() {
            task.abort();
        }
    }
}

#[async_trait]
impl ChainReader for Node {
    async fn head(&self) -> Result<Head, ReadError> {
        self.tip.head().await
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        self.tip.fresh_head().await
    }

    async fn contains(&self, block: &Block) -> Result<bool, ReadError> {
        self.head().await?;
        if self.tip.knows(block) {
            return Ok(true);
        }
        self.tip.fresh_head().await?;
        let found = self.tip.block(block.number).await?;
        Ok(found.is_some_and(|found| found == *block))
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError> {
        // No chain has a transaction whose id is of another length.
        let Ok(hash) = B256::try_from(tx.bytes.as_ref()) else {
            return Ok(Transaction::Missing);
        };
        self.track();
        if let Ok(found) = self.look(&hash, head).await? {
            return Ok(found);
        }
        // An honest node's chain moves between two of its answers, and a block gets into its parts
        // one after the other: answers that do not fit are asked for once more, from a new head.
        self.tip.fresh_head().await?;
        self.look(&hash, head).await?.map_err(ReadError::from)
    }
}

impl Node {
    /// Only reads of transactions and state keep the head tracked: a look at the head alone, as
    /// readiness takes it on every chain, does not.
    fn track(&self) {
        self.tip.touch();
        let mut tracking = self.tracking.lock().unwrap_or_else(PoisonError::into_inner);
        if tracking.as_ref().is_none_or(JoinHandle::is_finished) {
            *tracking = Some(tokio::spawn(self.tip.clone().track()));
        }
    }

    /// What the node says about a transaction, in one round; a [`Doubt`] when it contradicts itself.
    async fn mined(&self, hash: &B256) -> Result<Result<Option<Mined>, Doubt>, ReadError> {
        let calls = vec![
            call("eth_getTransactionReceipt", json!([hash])),
            call("eth_getTransactionByHash", json!([hash])),
        ];
        let [receipt, transaction] =
            <[Answer; 2]>::try_from(self.rpc.round_about_one(calls).await?)
                .map_err(|_| doubt("an answer is missing"))?;
        let receipt: Option<RawReceipt> = expect("eth_getTransactionReceipt", receipt)?;
        let transaction: Option<RawTransaction> = expect("eth_getTransactionByHash", transaction)?;
        let logs = receipt.as_ref().map_or(0, |receipt| receipt.logs.len());
        let join = || Mined::join(hash, receipt, transaction);
        Ok(aside(logs > LARGE_EVENTS, join))
    }

    /// Makes sure that `block` is on this node's chain.
    async fn anchor(&self, block: &Block) -> Result<(), ReadError> {
        if self.contains(block).await? {
            return Ok(());
        }
        match self.tip.block(block.number).await? {
            None => Err(ReadError::Unavailable("behind the agreed head".into())),
            Some(_) => Err(doubt("the block is not on this provider's chain")),
        }
    }

    /// The transaction as seen from `head`; a [`Doubt`] when the node's answers do not fit each other.
    async fn look(
        &self,
        hash: &B256,
        head: &Head,
    ) -> Result<Result<Transaction, Doubt>, ReadError> {
        let (answer, anchor) = futures::join!(self.mined(hash), self.anchor(&head.block));
        anchor?;
        let mined = match answer? {
            Ok(Some(mined)) if mined.number <= head.block.number => mined,
            Ok(_) => return Ok(Ok(Transaction::Missing)),
            Err(doubt) => return Ok(Err(doubt)),
        };
        let block = self.tip.block(mined.number).await?;
        let Some(block) = block.filter(|block| block.hash == mined.hash) else {
            return Ok(Err(Doubt("the receipt is of another fork than the head")));
        };
        let long = mined.logs.len() > LARGE_EVENTS;
        // What was read goes there, too: to let go of as many logs takes its time.
        Ok(aside(long, move || {
            decode::decode(&self.rules, &mined, &block)
        }))
    }
}

#[async_trait]
impl StateReader for Node {
    async fn settled(&self, head: &Head) -> Result<Option<Block>, ReadError> {
        self.track();
        self.anchor(&head.block).await?;
        let at = |height: u64| async move {
            let block = self.tip.block(height).await?;
            block.ok_or_else(|| doubt("no block below the head"))
        };
        let found = first_final(&self.finality, head, self.deepest(head)?, at).await?;
        // The node may have moved to another fork meanwhile.
        self.anchor(&head.block).await?;
        Ok(found)
    }

    async fn withdrawal(
        &self,
        encoded: &Bytes,
        _: Option<&TxRef>,
        block: &Block,
    ) -> Result<WithdrawalStatus, ReadError> {
        let request = CallRequest::abi_decode_validate(encoded)
            .map_err(|_| ReadError::Unavailable("not a withdrawal of this family".into()))?;
        let depository = self
            .rules
            .depository
            .ok_or_else(|| ReadError::Unavailable("the chain has no depository".into()))?;
        self.track();
        self.anchor(block).await?;
        let id = request.eip712_hash_struct();
        let mut data = keccak256("callRequests(bytes32)")[..4].to_vec();
        data.extend(id);
        let answer = self.call_at(&depository, &data.into(), block).await?;
        let executed = bool::abi_decode_validate(&answer)
            .map_err(|_| doubt("callRequests answered no boolean"))?;
        if executed {
            return Ok(WithdrawalStatus::Executed);
        }
        if U256::from(block.time) > request.expiration {
            return Ok(WithdrawalStatus::Expired);
        }
        Ok(WithdrawalStatus::Pending)
    }

    async fn sequence(&self, owner: &Address, block: &Block) -> Result<u64, ReadError> {
        let owner = account(owner)?;
        self.track();
        self.anchor(block).await?;
        let asked = ("eth_getTransactionCount", json!(owner));
        let count: Quantity = self.state_at(asked, block).await?;
        count.small().ok_or_else(|| doubt("nonce out of range"))
    }

    async fn view(&self, to: &Address, data: &Bytes, block: &Block) -> Result<Bytes, ReadError> {
        let to = EvmAddress::try_from(to.bytes()).map_err(|_| {
            ReadError::Unavailable("a contract address of 20 bytes expected".into())
        })?;
        self.track();
        self.anchor(block).await?;
        self.call_at(&to, data, block).await
    }
}

impl Node {
    /// The newest height that is deep enough from `head`, whatever its age; `None` when there is
    /// none yet.
    fn deepest(&self, head: &Head) -> Result<Option<u64>, ReadError> {
        let deep = head.block.number.checked_sub(self.finality.blocks);
        if self.finality.tag.is_none() {
            return Ok(deep);
        }
        let tagged = head
            .tagged
            .ok_or_else(|| ReadError::Unavailable("the chain names no final block".into()))?;
        Ok(deep.map(|deep| deep.min(tagged)))
    }

    async fn call_at(
        &self,
        to: &EvmAddress,
        data: &Bytes,
        block: &Block,
    ) -> Result<Bytes, ReadError> {
        let request = json!({"to": to, "data": data});
        self.state_at(("eth_call", request), block).await
    }

    /// State at a block hash; where the node takes none, at its height between two looks at that
    /// height's header.
    async fn state_at<T: DeserializeOwned>(
        &self,
        (method, of): (&'static str, Value),
        block: &Block,
    ) -> Result<T, ReadError> {
        let by_hash = !self.refuses_hashes();
        if by_hash {
            let at = json!({"blockHash": block.hash, "requireCanonical": true});
            match self.rpc.one(call(method, json!([of, at]))).await? {
                Err(refused) if refused.code == INVALID_PARAMS => {}
                answer => return expect(method, answer),
            }
        }
        // One after the other: calls of one round may be answered in any order.
        let height = format!("{:#x}", block.number);
        self.still(block).await?;
        let answer = self.rpc.one(call(method, json!([of, height]))).await?;
        self.still(block).await?;
        let answer = expect(method, answer)?;
        if by_hash {
            *self.refused_at() = Some(Instant::now());
        }
        Ok(answer)
    }

    /// Asks the node whether `block` stands at its height now, whatever is known about it.
    async fn still(&self, block: &Block) -> Result<(), ReadError> {
        let height = format!("{:#x}", block.number);
        let look = call("eth_getBlockByNumber", json!([height, false]));
        let answer = self.rpc.one(look).await?;
        let found: Option<RawHeader> = expect("eth_getBlockByNumber", answer)?;
        if found.is_some_and(|found| found.hash == block.hash) {
            return Ok(());
        }
        Err(doubt("the chain changed between two reads"))
    }

    fn refuses_hashes(&self) -> bool {
        self.refused_at().is_some_and(|at| at.elapsed() < BY_NUMBER)
    }

    fn refused_at(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.by_number
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// How nodes refuse a block parameter that they do not know.
const INVALID_PARAMS: i64 = -32602;
/// How long a node that refused block hashes is not asked with one again: it may be another
/// machine behind the same address by then.
const BY_NUMBER: Duration = Duration::from_secs(600);
