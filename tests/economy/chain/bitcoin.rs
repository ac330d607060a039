//! Transactions of `bitcoin-vm`: inputs with signatures, outputs, and a note of the order.

use alloy::primitives::{Address, B256, keccak256};
use serde_json::{Value, json};
use vm::{
    Block, ChainSpec, Transaction,
    bitcoin::{
        decode::{self, Rules},
        raw::RawTransaction,
    },
};

use self::nodes::{note, output, transaction};
use super::ledger::{Encoding, Habits, Target, Tx};
use crate::market::NATIVE;

#[path = "../../../vm/tests/families/bitcoin/ledger.rs"]
mod nodes;

pub const HABITS: Habits = Habits {
    name: "bitcoin",
    family: "bitcoin-vm",
    number: 31_003,
    pace: 10,
    depth: 2,
    lag: 0,
    skips: 0,
    waits: 2,
    depository: "1MviEDGCTgEKEJ6cmfL9pBQa5GG4hujXnF",
    // The statement's own block counts.
    confirmations: 3,
    currencies: &[NATIVE],
};

/// The depository's script, and one of another kind with the same hash.
const DEPOSITORY: &str = "76a914e58afa142f57509ee9a930810e33592581ad9b3188ac";
const LOOK_ALIKE: &str = "0014e58afa142f57509ee9a930810e33592581ad9b31";
/// Satoshis that a transaction gives back to its sender.
const CHANGE: u64 = 7_777;

pub struct Encoder {
    rules: Rules,
    family: &'static vm::Family,
}

impl Encoder {
    pub fn new(spec: &ChainSpec) -> Self {
        Self {
            rules: Rules::new(spec).unwrap(),
            family: spec.family,
        }
    }
}

/// The script that pays an account's key.
fn script(of: Address) -> String {
    format!("0014{}", alloy::hex::encode(of))
}

fn shown(tx: &Tx, block: &Block) -> Value {
    let to = match tx.what.to {
        Target::Depository => DEPOSITORY.to_owned(),
        Target::LookAlike => LOOK_ALIKE.to_owned(),
        Target::Account(to) => script(to),
    };
    let amount = u64::try_from(tx.what.amount).unwrap();
    let mut outputs = vec![output(&to, amount), output(&script(tx.from), CHANGE)];
    if !tx.what.order.is_zero() {
        // It may stand anywhere.
        let place = usize::try_from(tx.coin % 3).unwrap();
        outputs.insert(place, note(&tx.what.order.to_string()));
    }
    let funding = alloy::hex::encode(keccak256(format!("funding of {}", tx.from)));
    let coin = u32::try_from(tx.coin).unwrap();
    let mut shown = transaction(&tx.id, &[(&funding, coin)], outputs);
    let input = &mut shown["vin"][0];
    input["prevout"] = json!({ "scriptPubKey": { "hex": script(tx.from) } });
    // A signature of the whole, and a key.
    input["txinwitness"] = json!(["300602010102010101", "02".repeat(33)]);
    shown["blockhash"] = json!(alloy::hex::encode(block.hash));
    shown
}

impl Encoding for Encoder {
    fn account(&self, of: Address) -> String {
        let program = [&[0][..], of.as_slice()].concat();
        self.family.codec.decode_address(&program).unwrap()
    }

    fn currency(&self, _: Address) -> String {
        self.family.codec.native().to_owned()
    }

    fn id(&self, hash: B256) -> String {
        alloy::hex::encode(hash)
    }

    fn decode(&self, tx: &Tx, block: &Block) -> Transaction {
        let text = shown(tx, block).to_string();
        let raw: RawTransaction = serde_json::from_str(&text).unwrap();
        let spent = raw.vin.iter().map(|input| {
            let spent = input.prevout.as_ref();
            spent.map(|spent| spent.script.hex.clone())
        });
        let spent: Vec<_> = spent.collect();
        let receipt = decode::decode(&self.rules, &raw, &spent, block.clone());
        Transaction::Succeeded(receipt)
    }
}
