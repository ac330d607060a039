//! What a node and an index show of outputs that no signature covers.

#![allow(clippy::unwrap_used, clippy::wildcard_imports, reason = "tests")]

use std::{collections::HashMap, sync::Mutex};

use bitcoin::{
    Amount, OutPoint, Transaction, TxOut,
    absolute::LockTime,
    consensus::{encode::serialize_hex, serialize},
    hashes::Hash,
    transaction::Version,
};
use serde_json::{Value, json};

use super::*;
use crate::{
    ChainEntry,
    bitcoin::{FAMILY, network::MAIN, unproven::of},
    http::inside,
};

const LEGACY: &str = "1MviEDGCTgEKEJ6cmfL9pBQa5GG4hujXnF";
/// The P2WPKH address of the same hash.
const WITNESS: &str = "bc1quk9059p02agfa6dfxzqsuv6eykq6mxe3st9f83";

fn pay(address: &str, value: u64) -> TxOut {
    TxOut {
        value: Amount::from_sat(value),
        script_pubkey: MAIN.script(address).unwrap(),
    }
}

/// A transaction that pays so.
fn paying(outputs: Vec<TxOut>) -> Transaction {
    Transaction {
        version: Version::TWO,
        lock_time: LockTime::ZERO,
        input: vec![bitcoin::TxIn::default()],
        output: outputs,
    }
}

/// A node and an index that show transactions by ids, and how often they were asked.
struct Sight {
    providers: [Provider; 2],
    asked: Arc<Mutex<Vec<String>>>,
}

impl Sight {
    fn new(name: &str, shown: &[(Txid, &Transaction)]) -> Self {
        let shown = shown.iter();
        let shown = shown.map(|(txid, it)| (txid.to_string(), (*it).clone()));
        let shown: HashMap<String, Transaction> = shown.collect();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let counted = asked.clone();
        let answer = move |asked: &inside::Asked<'_>| {
            counted.lock().unwrap().push(asked.path.to_owned());
            let parts: Vec<_> = asked.path.trim_start_matches('/').split('/').collect();
            if let ["index", "tx", id, "raw"] = parts[..] {
                let missing = || (404, Vec::new());
                let found = shown.get(id).map(|found| (200, serialize(found)));
                return Some(found.unwrap_or_else(missing));
            }
            let question: Value = serde_json::from_slice(asked.body).unwrap();
            assert_eq!(question["method"], "getrawtransaction");
            let found = shown.get(question["params"][0].as_str().unwrap());
            let unknown = json!({"code": -5, "message": "No such transaction"});
            let error = found.is_none().then_some(unknown);
            let answer = json!({
                "result": found.map(serialize_hex), "error": error, "id": question["id"],
            });
            Some((200, answer.to_string().into_bytes()))
        };
        let host = format!("{name}{}", inside::HOST);
        inside::register(&host, Arc::new(answer));
        let url = |provider: &str| format!("http://{host}/{provider}");
        let entry: ChainEntry = serde_json::from_value(json!({
            "id": "bitcoin", "hubChainId": "7", "depository": LEGACY,
            "additionalData": {"esploraCompatibleApiUrl": url("index")},
        }))
        .unwrap();
        let spec = entry.spec(&FAMILY, false).unwrap();
        let open = |provider: &str| {
            let endpoint = Endpoint {
                position: 1,
                url: url(provider).parse().unwrap(),
                timeout: Duration::from_secs(20),
                longest: limits::PROVIDER_ANSWER,
                allows: None,
                client: Endpoint::client().unwrap(),
            };
            open(&spec, &endpoint).unwrap()
        };
        let providers = ["node", "index"].map(open);
        Self { providers, asked }
    }

    async fn say(&self, said: &Bytes) -> [Result<bool, ReadError>; 2] {
        let [node, index] = &self.providers;
        let [node, index] = [node, index].map(|it| it.state.clone().unwrap());
        [node.bears_out(said).await, index.bears_out(said).await]
    }
}

#[tokio::test]
async fn outputs_are_what_their_transactions_pay() {
    let (one, two) = (
        paying(vec![pay(LEGACY, 1_000), pay(LEGACY, 2_000)]),
        paying(vec![pay(LEGACY, 3_000)]),
    );
    let [first, second] = [&one, &two].map(Transaction::compute_txid);
    let sight = Sight::new("outputs", &[(first, &one), (second, &two)]);
    let at = OutPoint::new;
    let good = [
        (at(first, 1), pay(LEGACY, 2_000)),
        (at(second, 0), pay(LEGACY, 3_000)),
        (at(first, 0), pay(LEGACY, 1_000)),
    ];
    assert_eq!(sight.say(&of(&good)).await, [Ok(true), Ok(true)]);
    // Each transaction is asked for once.
    assert_eq!(sight.asked.lock().unwrap().len(), 4);
    let other = Txid::from_byte_array([9; 32]);
    for (what, wrong) in [
        ("a satoshi less", (at(first, 0), pay(LEGACY, 999))),
        ("a satoshi more", (at(first, 0), pay(LEGACY, 1_001))),
        ("another output's value", (at(first, 0), pay(LEGACY, 2_000))),
        ("another script", (at(first, 0), pay(WITNESS, 1_000))),
        ("no such output", (at(first, 2), pay(LEGACY, 1_000))),
        ("no such transaction", (at(other, 0), pay(LEGACY, 1_000))),
    ] {
        let mut bad = good.clone();
        bad[2] = wrong;
        assert_eq!(sight.say(&of(&bad)).await, [Ok(false), Ok(false)], "{what}");
    }
}

/// An id is the hash of what it names: no provider can show something else under it.
#[tokio::test]
async fn a_transaction_under_anothers_id_is_doubtful() {
    let (true_one, lie) = (
        paying(vec![pay(LEGACY, 1)]),
        paying(vec![pay(LEGACY, 1_000)]),
    );
    let txid = true_one.compute_txid();
    let sight = Sight::new("outputs-lies", &[(txid, &lie)]);
    for value in [1, 1_000] {
        let asked = of(&[(OutPoint::new(txid, 0), pay(LEGACY, value))]);
        for said in sight.say(&asked).await {
            assert!(matches!(said, Err(ReadError::Doubtful(_))), "{said:?}");
        }
    }
}

#[tokio::test]
async fn what_names_no_outputs_one_twice_or_too_many_is_asked_of_nobody() {
    let one = paying(vec![pay(LEGACY, 1_000); limits::ITEMS + 1]);
    let txid = one.compute_txid();
    let sight = Sight::new("outputs-bounds", &[(txid, &one)]);
    let outputs = |places: std::ops::Range<usize>| {
        let places = places.map(|place| u32::try_from(place).unwrap());
        let each = places.map(|place| (OutPoint::new(txid, place), pay(LEGACY, 1_000)));
        each.collect::<Vec<_>>()
    };
    let twice = [outputs(0..1), outputs(0..1)].concat();
    for wrong in [
        Bytes::new(),
        Bytes::from_static(b"outputs"),
        of(&[]),
        of(&twice),
        of(&outputs(0..limits::ITEMS + 1)),
    ] {
        for said in sight.say(&wrong).await {
            assert!(matches!(said, Err(ReadError::Foreign(_))), "{said:?}");
        }
    }
    assert!(sight.asked.lock().unwrap().is_empty());
    let most = of(&outputs(0..limits::ITEMS));
    assert_eq!(sight.say(&most).await, [Ok(true), Ok(true)]);
}
