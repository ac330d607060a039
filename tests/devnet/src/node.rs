//! A chain to write to: transactions from any account, blocks on demand, forks.

use std::time::Duration;

use alloy::{
    consensus::BlockHeader,
    eips::{BlockNumberOrTag, Encodable2718},
    network::{NetworkTransactionBuilder, TransactionBuilder},
    primitives::{Address, B256, Bytes, U256},
    providers::{DynProvider, Provider, ProviderBuilder},
    rpc::{
        json_rpc::{RpcRecv, RpcSend},
        types::{TransactionReceipt, TransactionRequest},
    },
    sol_types::{SolCall, SolConstructor},
};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::time::timeout;
use url::Url;

use crate::{
    account::Account,
    anvil::{Anvil, Options},
    artifact::Artifacts,
};

/// Enough for every transaction here, and given explicitly so that failing ones are mined too.
const GAS: u64 = 8_000_000;
/// The same for calls with much to do: just below what one transaction may have.
const MUCH_GAS: u64 = 16_000_000;
/// Bytes of calldata that say that a call has much to do.
const MUCH: usize = 8 << 10;

/// Wei per gas that every block accepts.
const FEE: u128 = 100_000_000_000;

/// How long a node may take to show everywhere what is in its newest block.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a transaction does; who sends it is told to [`Node::send`].
#[derive(Clone, Debug, Default)]
pub struct Payload {
    pub to: Option<Address>,
    pub data: Vec<u8>,
    pub value: U256,
}

impl Payload {
    /// A contract call.
    pub fn call(to: Address, call: &impl SolCall) -> Self {
        Self {
            to: Some(to),
            data: call.abi_encode(),
            value: U256::ZERO,
        }
    }

    /// A plain payment.
    pub fn pay(to: Address, value: U256) -> Self {
        Self {
            to: Some(to),
            data: Vec::new(),
            value,
        }
    }

    #[must_use]
    pub fn value(mut self, value: U256) -> Self {
        self.value = value;
        self
    }

    /// Appends bytes behind the call, for example an order id.
    #[must_use]
    pub fn suffix(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.data.extend_from_slice(bytes.as_ref());
        self
    }

    fn request(self, from: Address) -> TransactionRequest {
        let gas = if self.data.len() > MUCH {
            MUCH_GAS
        } else {
            GAS
        };
        let request = TransactionRequest::default()
            .with_from(from)
            .with_input(self.data)
            .with_value(self.value)
            .with_gas_limit(gas);
        match self.to {
            Some(to) => request.with_to(to),
            None => request.into_create(),
        }
    }
}

/// A block as the tests speak of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub number: u64,
    pub hash: B256,
    /// Unix seconds.
    pub time: u64,
}

/// A local chain.
#[derive(Debug)]
pub struct Node {
    pub chain_id: u64,
    pub url: Url,
    pub provider: DynProvider,
    _anvil: Anvil,
}

impl Node {
    pub async fn start(options: &Options) -> Result<Self> {
        let anvil = Anvil::start(options).await?;
        let provider = ProviderBuilder::new()
            .disable_recommended_fillers()
            .connect_http(anvil.url.clone())
            .erased();
        Ok(Self {
            chain_id: options.chain_id,
            url: anvil.url.clone(),
            provider,
            _anvil: anvil,
        })
    }

    /// Sends and waits for the block; a failed transaction is `Ok` with status false.
    pub async fn send(&self, from: Address, payload: Payload) -> Result<TransactionReceipt> {
        let receipt = self
            .rpc("eth_sendTransactionSync", (payload.request(from),))
            .await?;
        self.taken(receipt).await
    }

    /// Like [`Node::send`], but a failed transaction is an error.
    pub async fn transact(&self, from: Address, payload: Payload) -> Result<TransactionReceipt> {
        let receipt = self.send(from, payload).await?;
        ensure!(
            receipt.status(),
            "transaction {} failed",
            receipt.transaction_hash
        );
        Ok(receipt)
    }

    /// Hands a transaction to the pool and returns its hash without waiting for a block.
    pub async fn submit(&self, from: Address, payload: Payload) -> Result<B256> {
        self.rpc("eth_sendTransaction", (payload.request(from),))
            .await
    }

    /// A transaction as it goes over the wire: broadcast again after a reorg, it has the same hash.
    pub async fn signed(&self, from: &Account, payload: Payload) -> Result<Bytes> {
        let nonce = self
            .provider
            .get_transaction_count(from.address())
            .await
            .context("no nonce")?;
        let request = payload
            .request(from.address())
            .with_chain_id(self.chain_id)
            .with_nonce(nonce)
            .with_max_fee_per_gas(FEE)
            .with_max_priority_fee_per_gas(0);
        let transaction = request.build(&from.wallet()).await?;
        Ok(transaction.encoded_2718().into())
    }

    /// Sends what [`Node::signed`] made and waits for the block.
    pub async fn broadcast(&self, transaction: &Bytes) -> Result<TransactionReceipt> {
        let receipt = self
            .rpc("eth_sendRawTransactionSync", (transaction,))
            .await?;
        self.taken(receipt).await
    }

    /// The receipt, once the whole node shows its block: anvil's pool lets go of a transaction later
    /// than its receipt is there, and until then the transaction itself is said to be pending.
    async fn taken(&self, receipt: TransactionReceipt) -> Result<TransactionReceipt> {
        let hash = receipt.transaction_hash;
        let in_block = async {
            loop {
                let shown: Value = self.rpc("eth_getTransactionByHash", (hash,)).await?;
                if !shown["blockHash"].is_null() {
                    return Ok(receipt);
                }
            }
        };
        let taken = timeout(PATIENCE, in_block).await;
        taken.with_context(|| format!("{hash} stays in the pool"))?
    }

    /// Deploys `contract` and returns its address.
    pub async fn deploy(
        &self,
        from: Address,
        contract: &str,
        arguments: &[u8],
        artifacts: &Artifacts,
    ) -> Result<Address> {
        self.create(from, artifacts.bytecode(contract)?, arguments)
            .await
            .with_context(|| format!("cannot deploy {contract}"))
    }

    /// Deploys creation bytecode with encoded constructor arguments.
    pub async fn create(&self, from: Address, code: &[u8], arguments: &[u8]) -> Result<Address> {
        let creation = Payload {
            data: [code, arguments].concat(),
            ..Payload::default()
        };
        let receipt = self.transact(from, creation).await?;
        receipt.contract_address.context("no contract address")
    }

    /// A read at the latest block.
    pub async fn view<C: SolCall>(&self, to: Address, call: &C) -> Result<C::Return> {
        let answer = self
            .try_call(Address::ZERO, Payload::call(to, call))
            .await?;
        Ok(C::abi_decode_returns(&answer)?)
    }

    /// Runs a transaction without sending it, after the newest block: what waits for one does not count.
    /// A revert's data is in the error.
    pub async fn try_call(&self, from: Address, payload: Payload) -> Result<Bytes> {
        let call = self.provider.call(payload.request(from));
        Ok(call.latest().await?)
    }

    pub async fn receipt(&self, hash: B256) -> Result<Option<TransactionReceipt>> {
        Ok(self.provider.get_transaction_receipt(hash).await?)
    }

    pub async fn balance(&self, of: Address) -> Result<U256> {
        Ok(self.provider.get_balance(of).await?)
    }

    pub async fn set_balance(&self, of: Address, wei: U256) -> Result<()> {
        self.rpc("anvil_setBalance", (of, wei)).await
    }

    pub async fn tip(&self) -> Result<Block> {
        self.block(BlockNumberOrTag::Latest).await
    }

    pub async fn block(&self, at: BlockNumberOrTag) -> Result<Block> {
        let block = self.provider.get_block_by_number(at).await?;
        let header = block.with_context(|| format!("no block {at}"))?.header;
        Ok(Block {
            number: header.number(),
            hash: header.hash,
            time: header.timestamp(),
        })
    }

    /// Mines `blocks` empty blocks, `seconds` apart.
    pub async fn mine(&self, blocks: u64, seconds: u64) -> Result<()> {
        self.rpc("anvil_mine", (U256::from(blocks), U256::from(seconds)))
            .await
    }

    /// From now on a block every `seconds`, or with 0 only per transaction and on demand.
    pub async fn mine_every(&self, seconds: u64) -> Result<()> {
        self.rpc("evm_setIntervalMining", (seconds,)).await
    }

    /// Whether a transaction makes a block at once.
    pub async fn automine(&self, on: bool) -> Result<()> {
        self.rpc("evm_setAutomine", (on,)).await
    }

    /// Remembers the state of the whole chain, for [`Node::revert`].
    pub async fn snapshot(&self) -> Result<U256> {
        self.rpc("evm_snapshot", ()).await
    }

    /// Goes back to a snapshot, once.
    pub async fn revert(&self, snapshot: U256) -> Result<()> {
        let done: bool = self.rpc("evm_revert", (snapshot,)).await?;
        ensure!(done, "no snapshot {snapshot}");
        Ok(())
    }

    /// Replaces the last `depth` blocks by as many empty ones with other hashes.
    pub async fn reorg(&self, depth: u64) -> Result<()> {
        let nothing: [(); 0] = [];
        self.rpc("anvil_reorg", (depth, nothing)).await
    }

    /// Any other call.
    pub async fn rpc<P: RpcSend, R: RpcRecv>(&self, method: &'static str, params: P) -> Result<R> {
        let answer = self.provider.raw_request(method.into(), params).await;
        answer.with_context(|| format!("{method} failed"))
    }
}

/// Constructor arguments for [`Node::deploy`].
pub fn arguments(constructor: &impl SolConstructor) -> Vec<u8> {
    constructor.abi_encode()
}
