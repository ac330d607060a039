//! The recorded chain: blocks, transactions and call results of `fixtures/recorded/evm.json`.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};
use vm::{
    Address, B256, Block, ChainId, ChainSpec, EvmAddress, Finality, FinalityTag, Transaction,
    TxRef, U256,
    ethereum::{
        decode::{self, Mined, Rules},
        raw::RawHeader,
    },
};

pub const DEPOSITORY: &str = "0x5fbdb2315678afecb367f032d93f642f64180aa3";
pub const ROUTER: &str = "0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0";
pub const TOKEN: &str = "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512";

pub static WORLD: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../fixtures/recorded/evm.json")).unwrap()
});

pub fn address(text: &str) -> Address {
    let evm: EvmAddress = text.parse().unwrap();
    Address::from_parts(text, evm.0)
}

pub fn spec(tag: Option<FinalityTag>) -> ChainSpec {
    ChainSpec {
        id: ChainId::new("ethereum"),
        family: &vm::ethereum::FAMILY,
        hub_chain_id: U256::from(31337),
        depository: Some(address(DEPOSITORY)),
        additional_depositories: vec![address("0x00000000000000000000000000000000000000dd")],
        finality: Finality {
            blocks: 3,
            seconds: 30,
            tag,
        },
        watch_blocks: 128,
        fill_routers: vm::FillRouters::Any,
        additional: Map::new(),
    }
}

pub fn rules() -> Rules {
    Rules::new(&spec(None)).unwrap()
}

/// The recorded receipt and transaction.
pub fn entry(hash: &str) -> &'static Value {
    WORLD["transactions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["transaction"]["hash"] == hash)
        .unwrap()
}

/// The header at `number` as a node writes it.
pub fn header(number: u64) -> Option<Value> {
    let blocks = WORLD["blocks"].as_array().unwrap();
    let mut header = blocks.get(number as usize)?.clone();
    header["number"] = json!(format!("{number:#x}"));
    header["parentHash"] = match number.checked_sub(1) {
        Some(parent) => blocks[parent as usize]["hash"].clone(),
        None => json!(B256::ZERO),
    };
    Some(header)
}

pub fn block(number: u64) -> Block {
    let raw: RawHeader = serde_json::from_value(header(number).unwrap()).unwrap();
    raw.block().unwrap()
}

pub fn tx(hash: &str) -> TxRef {
    let bytes: B256 = hash.parse().unwrap();
    TxRef {
        text: hash.into(),
        bytes: bytes.to_vec().into(),
        hint: None,
    }
}

/// What the decoder makes of a receipt and a transaction as a node writes them.
pub fn decode_json(rules: &Rules, entry: &Value) -> Result<Transaction, String> {
    let [receipt, transaction] = ["receipt", "transaction"].map(|part| entry[part].to_string());
    let receipt = serde_json::from_str(&receipt).map_err(|e| e.to_string())?;
    let transaction = serde_json::from_str(&transaction).map_err(|e| e.to_string())?;
    let hash = entry["transaction"]["hash"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let Some(mined) = Mined::join(&hash, receipt, transaction).map_err(|e| e.to_string())? else {
        return Ok(Transaction::Missing);
    };
    decode::decode(rules, &mined, &block(mined.number)).map_err(|e| e.to_string())
}

pub fn decode(hash: &str) -> vm::Receipt {
    match decode_json(&rules(), entry(hash)) {
        Ok(Transaction::Succeeded(receipt)) => receipt,
        other => panic!("{hash}: {other:?}"),
    }
}

pub fn shared_spec() -> Arc<ChainSpec> {
    Arc::new(spec(None))
}
