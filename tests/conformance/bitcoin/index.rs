//! What an Esplora index shows of a ledger.

use serde_json::{Value, json};

use super::{by_hash, hash_of, spender, transaction};
use crate::ledger::{Block, Ledger};

/// The text at a path; `None` for 404.
pub fn page(ledger: &Ledger, path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["blocks", "tip", "hash"] => Some(hash_of(ledger, ledger.tip())),
        ["block-height", height] => {
            let block = ledger.at(height.parse().ok()?)?;
            Some(hash_of(ledger, block))
        }
        ["block", hash] => {
            let block = by_hash(ledger, &hash.parse().ok()?)?;
            Some(header(ledger, block).to_string())
        }
        ["tx", id] => Some(shown(ledger, &transaction(ledger, id)?).to_string()),
        ["tx", id, "outspend", place] => {
            transaction(ledger, id)?;
            let place = json!(place.parse::<u64>().ok()?);
            Some(spent(ledger, id, &place).to_string())
        }
        _ => None,
    }
}

fn header(ledger: &Ledger, block: &Block) -> Value {
    let mut header = json!({
        "id": hash_of(ledger, block), "height": block.number, "timestamp": block.time,
        "tx_count": block.txs.len() + 1,
    });
    if block.number > 0 {
        header["previousblockhash"] = json!(super::digits(&block.parent));
    }
    header
}

/// Where a transaction stands, as its node shows it.
fn status(of: &Value) -> Value {
    match of.get("blockhash") {
        Some(hash) => json!({"confirmed": true, "block_hash": hash}),
        None => json!({"confirmed": false}),
    }
}

fn spent(ledger: &Ledger, id: &str, place: &Value) -> Value {
    let by = spender(ledger, id, place).and_then(|tx| transaction(ledger, &tx.id));
    match by {
        Some(by) => json!({
            "spent": true, "txid": by["txid"], "vin": 0, "status": status(&by),
        }),
        None => json!({"spent": false}),
    }
}

/// A transaction as its node shows it, in the index' words.
fn shown(ledger: &Ledger, of: &Value) -> Value {
    let list = |name: &str| of[name].as_array().cloned().unwrap_or_default();
    let input = |input: &Value| {
        let id = input["txid"].as_str().unwrap_or_default();
        let place = input["vout"].as_u64().unwrap_or_default();
        let previous = transaction(ledger, id);
        let place = usize::try_from(place).unwrap();
        let previous = previous.and_then(|it| it["vout"].get(place).map(output));
        json!({
            "txid": id, "vout": input["vout"], "prevout": previous, "is_coinbase": false,
            "scriptsig": input["scriptSig"]["hex"], "witness": input["txinwitness"],
        })
    };
    let inputs: Vec<_> = list("vin").iter().map(input).collect();
    let outputs: Vec<_> = list("vout").iter().map(output).collect();
    json!({
        "txid": of["txid"], "version": 2, "locktime": 0, "vin": inputs, "vout": outputs,
        "status": status(of),
    })
}

fn output(output: &Value) -> Value {
    let script = &output["scriptPubKey"]["hex"];
    json!({"scriptpubkey": script, "value": satoshis(&output["value"])})
}

/// Satoshis of a node's bitcoins, which have eight decimals.
fn satoshis(value: &Value) -> u64 {
    let bitcoins: f64 = value.to_string().parse().unwrap();
    let text = format!("{bitcoins:.8}");
    text.replace('.', "").parse().unwrap()
}
