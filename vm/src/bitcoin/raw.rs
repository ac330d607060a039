//! The parts of a Bitcoin node's answers that the family reads (Bitcoin Core's RPC, `getrawtransaction` with
//! verbosity 2 and `getblockheader`).

use bitcoin::{Amount, BlockHash, ScriptBuf, Txid};
use serde::{Deserialize, Deserializer, de::Error};

use crate::types::Bytes;

/// A transaction as its node decoded it.
#[derive(Clone, Debug, Deserialize)]
pub struct RawTransaction {
    pub txid: Txid,
    pub vin: Vec<RawInput>,
    pub vout: Vec<RawOutput>,
    /// Absent while the transaction is in no block.
    pub blockhash: Option<BlockHash>,
}

/// An input; a coinbase spends nothing and has no `txid`.
#[derive(Clone, Debug, Deserialize)]
pub struct RawInput {
    pub txid: Option<Txid>,
    #[serde(default)]
    pub vout: u32,
    /// The spent output, where the node still has its undo record.
    pub prevout: Option<RawPrevout>,
    #[serde(rename = "scriptSig")]
    pub script_sig: Option<RawScript>,
    #[serde(rename = "txinwitness", default)]
    pub witness: Vec<Hex>,
}

/// Bytes as hex without a prefix.
#[derive(Clone, Debug)]
pub struct Hex(pub Bytes);

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = alloy::hex::decode(text).map_err(D::Error::custom)?;
        Ok(Self(bytes.into()))
    }
}

/// A spent output in its spender's answer.
#[derive(Clone, Debug, Deserialize)]
pub struct RawPrevout {
    #[serde(rename = "scriptPubKey")]
    pub script: RawScript,
}

/// An output.
#[derive(Clone, Debug, Deserialize)]
pub struct RawOutput {
    /// In satoshis; nodes write bitcoins with 8 decimals.
    #[serde(with = "bitcoin::amount::serde::as_btc")]
    pub value: Amount,
    pub n: u32,
    #[serde(rename = "scriptPubKey")]
    pub script: RawScript,
}

/// An output script.
#[derive(Clone, Debug, Deserialize)]
pub struct RawScript {
    #[serde(deserialize_with = "script")]
    pub hex: ScriptBuf,
}

/// A block header.
#[derive(Clone, Debug, Deserialize)]
pub struct RawHeader {
    pub hash: BlockHash,
    pub height: u64,
    /// Unix seconds.
    pub time: u64,
    /// Absent in the genesis block.
    pub previousblockhash: Option<BlockHash>,
}

fn script<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ScriptBuf, D::Error> {
    let text = String::deserialize(deserializer)?;
    ScriptBuf::from_hex(&text).map_err(D::Error::custom)
}
