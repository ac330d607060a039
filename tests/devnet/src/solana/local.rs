//! What a daemon has to know of a Solana chain, and what is asked of it.

use alloy::primitives::B256;
use anyhow::Result;
use serde_json::{Value, json};
use solana_keypair::Keypair;
use solana_signature::Signature;
use solana_signer::Signer as _;
use vm::protocol::id::deterministic;

use super::{Cluster, Front, Lag, Listed, PROGRAM, Request, keypair};
use crate::world::{Files, Identity};

/// The chain's name in orders and in the chains file.
pub const ID: &str = "cluster";
/// The chain's number at the hub.
const HUB_CHAIN_ID: &str = "31004";
/// The variable that names the chain's providers.
pub const PROVIDERS: &str = "CLUSTER_RPC_URL";

/// A Solana chain where users deposit and solvers pay, with one honest provider.
#[derive(Debug)]
pub struct LocalChain {
    pub cluster: Cluster,
    pub front: Front,
    /// Who lets the depository pay.
    pub allocator: Keypair,
    /// What is traded besides the native currency.
    pub tokens: Vec<Listed>,
    reserve: u64,
}

impl LocalChain {
    pub async fn start(lag: Lag) -> Result<Self> {
        Self::aged(lag, 0).await
    }

    /// The same, so many slots after its first block.
    pub async fn aged(lag: Lag, slots: u64) -> Result<Self> {
        let allocator = keypair("allocator")?;
        let cluster = Cluster::aged(&allocator.pubkey(), lag, slots)?;
        Ok(Self {
            front: cluster.provider().await?,
            reserve: cluster.balance(&cluster.depository.vault()),
            tokens: Vec::new(),
            cluster,
            allocator,
        })
    }

    /// The chain's entry in the chains file.
    pub fn entry(&self) -> Value {
        json!({
            "id": ID,
            "vmType": "solana-vm",
            "httpRpcUrl": format!("${PROVIDERS}"),
            "hubChainId": HUB_CHAIN_ID,
            "depository": PROGRAM.to_string(),
        })
    }

    /// How the protocol names it.
    pub fn identity(&self) -> Result<Identity> {
        Identity::of(&self.entry())
    }

    /// Adds the chain to what a daemon is told, with the front as its provider.
    pub fn tell(&self, files: &mut Files) {
        if let Some(chains) = files.chains.as_array_mut() {
            chains.push(self.entry());
        }
        let provider = (PROVIDERS.to_owned(), self.front.url.to_string());
        files.environment.push(provider);
    }

    /// The depository pays what the allocator asks for, in a block of its own.
    pub fn execute(&self, request: &Request) -> Result<Signature> {
        let depository = self.cluster.depository;
        let named = (&request.encode(&depository)[..], &request.id(&depository));
        let paying = depository.execute_transfer(request, self.allocator.pubkey(), named);
        self.cluster.execute(&[paying], &[&self.allocator])
    }

    /// What the vault holds besides what its account has to hold.
    pub fn deposited(&self) -> u64 {
        let held = self.cluster.balance(&self.cluster.depository.vault());
        held.saturating_sub(self.reserve)
    }

    /// Body of `depository-deposits/v1`.
    pub fn claim(transaction: &Signature) -> Value {
        json!({ "chainId": ID, "transactionId": transaction.to_string() })
    }

    /// How a claim calls the deposit that the instruction at `index` of `transaction` makes.
    pub fn onchain_id(transaction: &Signature, index: u32) -> B256 {
        deterministic(&[ID, &transaction.to_string(), &index.to_string()])
    }
}
