//! Withdrawals of `bitcoin-vm`: the allocator's signed transactions, and what became of them.

use alloy::primitives::B256;
use bitcoin::{Psbt, ScriptBuf};
use serde_json::{Map, Value, json};
use vm::bitcoin::psbt::Payload;

use super::{Account, Bitcoin, DEPOSITORY, FUNDS, STRANGER, account, body, funding, output, to};
use crate::{
    allocator::{self, Paid, script_of, signed_by},
    family::{ExecutionKind, Offered, Script, Withdrawing},
    ledger::Tx,
};

/// What the allocator pays for a transaction at the most, in satoshis.
const FEE: u64 = 500;
/// The bytes of the depository's key, and of another one.
const OWN: u8 = 1;
const OTHER: u8 = 2;

fn script(of: Account) -> ScriptBuf {
    ScriptBuf::from_hex(of.1).unwrap()
}

/// The allocator's transaction of all that the account of the key `byte` has.
fn payload(byte: u8, outputs: &[Paid]) -> Payload {
    let mut txid: B256 = funding(DEPOSITORY.0).parse().unwrap();
    txid.0.reverse();
    let recorded = allocator::recorded(byte, &[(txid.0, 0, FUNDS)], outputs);
    Payload::decode(&recorded).unwrap()
}

/// Signed by the key `by`, as if it were `named`.
fn signed(payload: &Payload, by: u8, named: u8) -> Vec<u8> {
    signed_by(payload, by, named).serialize()
}

/// The payment with what tells it apart, and the change to the account of the key `byte`.
fn outputs(asked: &Withdrawing<'_>, byte: u8) -> Vec<Paid> {
    let purpose = ScriptBuf::new_op_return(asked.number.to_be_bytes());
    let paid = asked.amount - FEE.min(asked.amount);
    vec![
        (script(account(asked.to)), paid),
        (purpose, 0),
        (script_of(byte), FUNDS - asked.amount),
    ]
}

/// The fee is the recipient's, too.
pub fn encoded(asked: &Withdrawing<'_>) -> Vec<u8> {
    signed(&payload(OWN, &outputs(asked, OWN)), OWN, OWN)
}

/// The same out of another account.
pub fn foreign(asked: &Withdrawing<'_>) -> Vec<u8> {
    signed(&payload(OTHER, &outputs(asked, OTHER)), OTHER, OTHER)
}

/// Transactions that pay somebody besides, or that the depository's key has not signed.
pub fn unsound(asked: &Withdrawing<'_>) -> Vec<(&'static str, Vec<u8>)> {
    let good = outputs(asked, OWN);
    let by_own = |outputs: &[Paid]| signed(&payload(OWN, outputs), OWN, OWN);
    let mut two = good.clone();
    two.push((script(STRANGER), 1_000));
    let mut burned = good.clone();
    burned[1].1 = 1;
    let home = [(script_of(OWN), asked.amount)];
    let payload = payload(OWN, &good);
    vec![
        ("a second payment", by_own(&two)),
        ("money in a note", by_own(&burned)),
        ("a payment to the depository", by_own(&home)),
        ("no signature", payload.psbt().unwrap().serialize()),
        ("another's signature", signed(&payload, OTHER, OWN)),
        ("another's key", signed(&payload, OTHER, OTHER)),
    ]
}

/// Which outputs the allocator was told to spend.
pub fn additional() -> Option<Map<String, Value>> {
    let utxo = json!({"txid": funding(DEPOSITORY.0), "vout": "0", "value": FUNDS.to_string()});
    let told = json!({"bitcoin-vm": {"allocatorUtxos": [utxo], "feeRate": "1"}});
    told.as_object().cloned()
}

/// The allocator's transaction in the chain, or one that spends the same.
pub fn execution(script: &Bitcoin, kind: ExecutionKind, withdrawal: &[u8]) -> Offered<Tx> {
    let psbt = Psbt::deserialize(withdrawal).unwrap();
    let id = psbt.unsigned_tx.compute_txid().to_string();
    let outputs = match kind {
        ExecutionKind::Good => {
            let paid = psbt.unsigned_tx.output.iter();
            let paid = paid.map(|it| output(&it.script_pubkey.to_hex_string(), it.value.to_sat()));
            paid.collect()
        }
        ExecutionKind::Spent => vec![to(STRANGER, 1_000), to(DEPOSITORY, 5_000)],
        ExecutionKind::Again => return Err("an output is spent once"),
        ExecutionKind::Failed => return Err("what is in a block has not failed"),
        ExecutionKind::LookAlike => return Err("only the depository spends what it has"),
    };
    let id = match kind {
        ExecutionKind::Good => id,
        _ => script.id(&format!("{kind:?} instead of {id}")),
    };
    Ok(Tx {
        id,
        body: body(&[DEPOSITORY], outputs),
    })
}

#[test]
fn depository_is_of_the_key() {
    assert_eq!(script_of(OWN), script(DEPOSITORY));
}
