//! What a daemon has to know of a Bitcoin chain, and what is asked of it.

use alloy::primitives::B256;
use anyhow::{Context, Result};
use bitcoin::{Amount, Network, Psbt, ScriptBuf, TxOut, Txid};
use serde_json::{Value, json};
use vm::protocol::id::deterministic;

use super::{Key, Kind, Regtest, Spend, Wallets, address, note, pay, with_credentials};
use crate::world::{Files, Identity};

/// The chain's name in orders and in the chains file.
pub const ID: &str = "regtest";
/// The chain's number at the hub.
const HUB_CHAIN_ID: &str = "31003";
/// The variable that names the chain's providers.
pub const PROVIDERS: &str = "REGTEST_RPC_URL";

/// A Bitcoin chain where users deposit and solvers pay.
#[derive(Debug)]
pub struct LocalChain {
    pub node: Regtest,
    /// The account that deposits go to, and how its outputs are locked.
    pub depository: Key,
    pub kind: Kind,
}

impl LocalChain {
    pub async fn start() -> Result<Self> {
        Self::with(Wallets::Off).await
    }

    /// The same where the node may have wallets.
    pub async fn with(wallets: Wallets) -> Result<Self> {
        Ok(Self {
            node: Regtest::start(wallets).await?,
            depository: Key::named("depository")?,
            kind: Kind::P2wpkh,
        })
    }

    /// The script that deposits go to.
    pub fn script(&self) -> ScriptBuf {
        self.depository.script(self.kind)
    }

    /// The outputs of a deposit for the order `id`.
    pub fn deposit(&self, amount: Amount, id: &str) -> Result<Vec<TxOut>> {
        Ok(vec![pay(self.script(), amount), note(id)?])
    }

    /// A wallet signs what a step's item says with its key, and sends it. The transaction.
    pub async fn follow(&self, wallet: (Key, Kind), data: &Value) -> Result<String> {
        let psbt = data["psbt"].as_str().context("no PSBT")?;
        let psbt = Psbt::deserialize(&alloy::hex::decode(psbt)?)?;
        let spend = Spend::wanted(&psbt, wallet)?;
        let id = self.node.send(&spend.sign()?).await?;
        Ok(id.to_string())
    }

    /// The chain's entry in the chains file; `blocks` is how many confirmations are asked.
    pub fn entry(&self, blocks: u64) -> Result<Value> {
        Ok(json!({
            "id": ID,
            "vmType": "bitcoin-vm",
            "httpRpcUrl": format!("${PROVIDERS}"),
            "hubChainId": HUB_CHAIN_ID,
            "depository": address(&self.script())?,
            "additionalData": {
                "network": Network::Regtest.to_core_arg(),
                "finalizationBlocks": blocks,
            },
        }))
    }

    /// How the protocol names it.
    pub fn identity(&self) -> Result<Identity> {
        Identity::of(&self.entry(1)?)
    }

    /// Adds the chain to what a daemon is told, with the node as its provider.
    pub fn tell(&self, files: &mut Files, blocks: u64) -> Result<()> {
        if let Some(chains) = files.chains.as_array_mut() {
            chains.push(self.entry(blocks)?);
        }
        let provider = (PROVIDERS.to_owned(), with_credentials(&self.node.url));
        files.environment.push(provider);
        Ok(())
    }

    /// Body of `depository-deposits/v1`.
    pub fn claim(transaction: Txid) -> Value {
        json!({ "chainId": ID, "transactionId": transaction.to_string() })
    }

    /// How a claim calls the deposit of `transaction` whose id stands in the output `index`.
    pub fn onchain_id(transaction: Txid, index: u32) -> B256 {
        deterministic(&[ID, &transaction.to_string(), &index.to_string()])
    }
}
