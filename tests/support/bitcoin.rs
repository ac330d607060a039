//! The recorded Bitcoin node and index, as `vm/fixtures/recorded/bitcoin.json` holds them.

use std::sync::LazyLock;

use serde_json::{Value, json};

use self::ledger::{Ledger, output, transaction};

#[path = "../../vm/tests/families/bitcoin/ledger.rs"]
pub mod ledger;

static WORLD: LazyLock<Ledger> = LazyLock::new(|| {
    let world = super::vm_fixture("recorded/bitcoin.json");
    let mut ledger = Ledger::recorded(&world);
    ledger.complete();
    fund(&mut ledger);
    spend(&mut ledger, &world);
    ledger
});

/// The allocator's account of the recorded withdrawals.
const ALLOCATOR: &str = "00143aa532bd88b399698ee60ffbe2f97c7d1e993e5d";

/// Puts there the outputs that the recorded withdrawals spend: nodes answered nothing about them.
fn fund(ledger: &mut Ledger) {
    let first = ledger.hash_at(&json!(900)).unwrap();
    for case in super::fixture("recorded/withdrawals-bitcoin.json")
        .as_array()
        .unwrap()
    {
        let spent = &case["body"]["additionalData"]["bitcoin-vm"]["allocatorUtxos"][0];
        let id = spent["txid"].as_str().unwrap();
        let origin = "11".repeat(32);
        let mut funding = transaction(id, &[(&origin, 0)], vec![output(ALLOCATOR, 1_000)]);
        funding["blockhash"] = first.clone();
        ledger.put(funding);
    }
}

/// Puts there what spent them. Of those transactions the world has the bytes only.
fn spend(ledger: &mut Ledger, world: &Value) {
    for (spent, by) in world["outspends"].as_object().unwrap() {
        let id = by["txid"].as_str().unwrap();
        let outputs = outputs(world["raw"][id].as_str().unwrap());
        let outputs = outputs.map(|(script, satoshis)| output(&script, satoshis));
        let (txid, _) = spent.split_once('/').unwrap();
        let mut spending = transaction(id, &[(txid, 0)], outputs.collect());
        if by["status"]["confirmed"] == true {
            spending["blockhash"] = by["status"]["block_hash"].clone();
        }
        ledger.put(spending);
    }
}

/// Scripts and satoshis of a transaction of one unsigned input and a few short outputs.
fn outputs(raw: &str) -> impl Iterator<Item = (String, u64)> + '_ {
    // Version, count, output (32 and 4 bytes), length of the script, sequence.
    let mut rest = &raw[2 * (4 + 1 + 32 + 4 + 1 + 4)..];
    let mut take = move |bytes: usize| {
        let (taken, left) = rest.split_at(2 * bytes);
        rest = left;
        taken
    };
    let count = u8::from_str_radix(take(1), 16).unwrap();
    (0..count).map(move |_| {
        let value = u64::from_str_radix(take(8), 16).unwrap().swap_bytes();
        let length = u8::from_str_radix(take(1), 16).unwrap();
        (take(length.into()).to_owned(), value)
    })
}

/// The answer to one JSON-RPC question.
pub fn answer(question: &Value) -> Value {
    WORLD.answer(question)
}

/// What the index has at a path; `None` for 404.
pub fn index(path: &str) -> Option<String> {
    WORLD.index(path)
}
