//! A Bitcoin chain with a deposit for each request, as Bitcoin Core shows them.

use alloy::primitives::{hex, keccak256};
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::prepared::Prepared;

#[path = "../../vm/tests/families/bitcoin/ledger.rs"]
#[allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a file of tests"
)]
mod ledger;

use self::ledger::{Ledger, note, output, transaction};

/// What a node is asked to see how long a round trip takes.
pub const PROBE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"getblockcount","params":[]}"#;

/// Blocks with deposits, and those on top of them that make them final.
const RECENT: u64 = 16;
const BURIED: u64 = 6;
/// The depository and its script.
const DEPOSITORY: &str = "1MviEDGCTgEKEJ6cmfL9pBQa5GG4hujXnF";
const DEPOSITORY_SCRIPT: &str = "76a914e58afa142f57509ee9a930810e33592581ad9b3188ac";
/// Satoshis.
const AMOUNT: u64 = 50_000;
const CHANGE: u64 = 949_000;
const FEE: u64 = 1_000;

/// A chain with `count` deposits in its newest final blocks.
pub fn chain(count: u32) -> Result<Prepared> {
    let mut ledger = Ledger::new();
    ledger.bury(RECENT + BURIED);
    let mut blocks = Vec::new();
    for height in 0..=ledger.height() {
        let hash = ledger.hash_at(&json!(height));
        blocks.push(hash.context("no block at a height")?);
    }
    let mut chain = Prepared::new(json!({
        "id": "bitcoin",
        "vmType": "bitcoin-vm",
        "httpRpcUrl": "$BITCOIN_RPC_URL",
        "hubChainId": "900003",
        "depository": DEPOSITORY,
        "additionalData": { "finalizationBlocks": 2, "genesisHash": blocks[0] },
    }));
    chain.say("getblockcount", "", &json!(ledger.height()));
    for (height, hash) in blocks.iter().enumerate() {
        let header = ledger.rpc("getblockheader", &json!([hash]));
        let hash_text = hash.as_str().context("no hash")?;
        chain.say("getblockhash", height, hash);
        chain.say("getblockheader", hash_text, &header.context("no header")?);
    }
    let recent = &blocks[1..=usize::try_from(RECENT)?];
    for (number, block) in (0..count).zip(recent.iter().cycle()) {
        let id = hex::encode(keccak256(format!("bitcoin transaction {number}")));
        chain.say("getrawtransaction", &id, &deposit(number, &id, block));
        chain.request(&id);
    }
    Ok(chain)
}

/// A user's deposit for an order, with change, in `block`.
fn deposit(number: u32, id: &str, block: &Value) -> Value {
    let owner = format!("0014{}", hex::encode([5_u8; 20]));
    let spent = hex::encode(keccak256(format!("bitcoin output {number}")));
    let order = keccak256(number.to_string()).to_string();
    let outputs = vec![
        output(DEPOSITORY_SCRIPT, AMOUNT),
        note(&order),
        output(&owner, CHANGE),
    ];
    let mut shown = transaction(id, &[(spent.as_str(), 1)], outputs);
    // In DER form, over all inputs and outputs.
    let part = |byte: &str| format!("0220{}", byte.repeat(32));
    let signature = format!("3044{}{}01", part("11"), part("22"));
    let input = &mut shown["vin"][0];
    input["txinwitness"] = json!([signature, format!("02{}", hex::encode([7_u8; 32]))]);
    input["prevout"] = output(&owner, AMOUNT + CHANGE + FEE);
    shown["blockhash"] = block.clone();
    shown["hash"] = json!(spent);
    shown["confirmations"] = json!(BURIED);
    shown["fee"] = ledger::bitcoins(FEE);
    // As long as the transaction itself.
    shown["hex"] = json!("00".repeat(320));
    shown
}
