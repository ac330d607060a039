//! Withdrawals of `ethereum-vm`: call requests, and what their depository says of them.

use alloy::primitives::{B256, keccak256};
use serde_json::{Value, json};

use super::{
    DEPOSITORY, Ethereum, OTHER, Outer, STRANGER, ZERO, body,
    deposits::{EXECUTED, emitted_by, executed},
    hash, small, word,
};
use crate::{
    family::{ExecutionKind, Offered, Script, Withdrawing},
    ledger::{Ledger, Tx},
};

fn codec() -> &'static dyn vm::WithdrawalCodec {
    Ethereum.family().withdrawals.unwrap()
}

/// The call that pays.
pub fn call(asked: &Withdrawing<'_>) -> Value {
    let (to, data, value) = match asked.currency {
        ZERO => (asked.to, "0x".to_owned(), asked.amount),
        token => {
            let data = format!("0xa9059cbb{}{}", word(asked.to), small(asked.amount));
            (token, data, 0)
        }
    };
    json!({"to": to, "data": data, "value": value.to_string(), "allowFailure": false})
}

/// A request of these calls.
pub fn encoded(asked: &Withdrawing<'_>, calls: &[Value]) -> Vec<u8> {
    let request = json!({
        "calls": calls, "nonce": asked.number.to_string(), "expiration": asked.until,
    });
    codec().encode(&request).unwrap()
}

/// Requests whose execution would not prove that the payment was made, and nothing else.
pub fn unsound(asked: &Withdrawing<'_>) -> Vec<(&'static str, Vec<u8>)> {
    let good = call(asked);
    let mut failing = good.clone();
    failing["allowFailure"] = json!(true);
    let mut token = call(&Withdrawing {
        currency: super::TOKEN,
        ..*asked
    });
    token["value"] = json!("1");
    vec![
        ("two calls", encoded(asked, &[good.clone(), good])),
        ("no calls", encoded(asked, &[])),
        ("a call that may fail", encoded(asked, &[failing])),
        ("a call that moves two currencies", encoded(asked, &[token])),
    ]
}

/// What executes a request, or looks so.
pub fn execution(script: &Ethereum, kind: ExecutionKind, withdrawal: &[u8]) -> Offered<Tx> {
    let request = codec().decode(withdrawal).unwrap();
    let id = codec().describe(&request).id.unwrap();
    let to = request["calls"][0]["to"].as_str().unwrap_or(OTHER);
    let said = executed(&id, to);
    let outer = Outer {
        from: STRANGER,
        to: DEPOSITORY,
        value: 0,
        input: "12345678".into(),
    };
    let mut body = body(&outer, std::slice::from_ref(&said));
    match kind {
        ExecutionKind::Good | ExecutionKind::Again => {}
        ExecutionKind::Failed => body["status"] = json!("0x0"),
        ExecutionKind::LookAlike => body["logs"] = json!([emitted_by(OTHER, said)]),
        ExecutionKind::Spent => return Err("what is left of a depository pays it later"),
    }
    Ok(Tx {
        id: script.id(&format!("{kind:?} of {id}")),
        body,
    })
}

/// What the depository answers at a block: whether it has executed the withdrawal with this id. `None` where the node
/// has no such block.
pub fn called(ledger: &Ledger, params: &Value) -> Option<Value> {
    let hash = params[1]["blockHash"].as_str()?.parse::<B256>().ok()?;
    let at = ledger.by_hash(&hash)?.number;
    let asked = params[0]["data"].as_str()?;
    let id = asked.strip_prefix(&selector("callRequests(bytes32)"))?;
    let of = params[0]["to"].as_str()?;
    let mut blocks = ledger.blocks().filter(|block| block.number <= at);
    let executed = blocks.any(|block| block.txs.iter().any(|tx| has_executed(tx, of, id)));
    Some(json!(format!("0x{}", small(u64::from(executed)))))
}

fn has_executed(tx: &Tx, depository: &str, id: &str) -> bool {
    let mut logs = tx.body["logs"].as_array().into_iter().flatten();
    let is_it = |log: &Value| {
        let data = log["data"].as_str().unwrap_or_default();
        log["address"] == depository
            && log["topics"][0] == hash(EXECUTED)
            && data.trim_start_matches("0x").starts_with(id)
    };
    tx.body["status"] == "0x1" && logs.any(is_it)
}

/// The first bytes of a call's data.
fn selector(function: &str) -> String {
    alloy::hex::encode_prefixed(&keccak256(function)[..4])
}
