//! Withdrawals of `solana-vm`: transfer requests, and the accounts that say that they were executed.

use alloy::{hex, primitives::B256};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    EXECUTE_TRANSFER, OTHER, PROGRAM, STRANGER, Solana, VAULT,
    build::{Builder, instruction},
};
use crate::{
    family::{ExecutionKind, Offered, Script, Withdrawing},
    ledger::{Ledger, Tx},
};

/// The account of an executed request (guide: protocol 8.1).
const USED_REQUEST: [u8; 8] = [0x87, 0x86, 0x6e, 0x4d, 0x96, 0x62, 0xb4, 0x6b];

/// A request for what `vault` has.
pub fn encoded(asked: &Withdrawing<'_>, vault: &str) -> Vec<u8> {
    let request = json!({
        "domain": hex::encode_prefixed([0x11; 32]), "recipient": asked.to, "token": asked.currency,
        "amount": asked.amount.to_string(), "nonce": asked.number.to_string(),
        "expiration": asked.until, "vaultAddress": vault,
    });
    Solana
        .family()
        .withdrawals
        .unwrap()
        .encode(&request)
        .unwrap()
}

/// What executes a request, or looks so.
pub fn execution(script: &Solana, kind: ExecutionKind, withdrawal: &[u8]) -> Offered<Tx> {
    let program = match kind {
        ExecutionKind::LookAlike => OTHER,
        _ => PROGRAM,
    };
    let data = [&EXECUTE_TRANSFER[..], withdrawal].concat();
    let step = instruction(program, &[VAULT, STRANGER], data);
    let mut body = Builder::by(&[STRANGER]).with(step).body(B256::ZERO);
    let id: [u8; 32] = Sha256::digest(withdrawal).into();
    match kind {
        ExecutionKind::Good | ExecutionKind::Again => {
            let program = PROGRAM.parse().unwrap();
            let used = vm::solana::programs::used_request(&program, &id);
            body["uses"] = json!(used.unwrap().to_string());
        }
        ExecutionKind::Failed => {
            body["meta"]["err"] = json!({"InstructionError": [0, {"Custom": 1}]});
        }
        ExecutionKind::LookAlike => {}
        ExecutionKind::Spent => return Err("what is left in a vault pays it later"),
    }
    Ok(Tx {
        id: script.id(&format!("{kind:?} of {}", B256::from(id))),
        body,
    })
}

/// What stands at an account as of the slot `last`; null where nothing does.
pub fn account(ledger: &Ledger, last: u64, account: &Value) -> Value {
    let mut blocks = ledger.blocks().filter(|block| block.number <= last);
    let uses = |tx: &Tx| tx.body["uses"] == *account;
    match blocks.any(|block| block.txs.iter().any(uses)) {
        true => {
            let data = STANDARD.encode([&USED_REQUEST[..], &[1]].concat());
            json!({"owner": PROGRAM, "data": [data, "base64"], "lamports": 1_000_000})
        }
        false => Value::Null,
    }
}
