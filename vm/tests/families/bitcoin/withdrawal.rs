//! Withdrawals: the allocator's transaction against what the chain has, through a node alone, with an index, and through
//! the index.

use std::sync::Arc;

use bitcoin::{
    Psbt, ScriptBuf,
    secp256k1::{SecretKey, ecdsa},
};
use serde_json::{Value, json};
use vm::{
    Bytes, ChainSpec, Provider, ReadError, WithdrawalInfo, WithdrawalStatus,
    bitcoin::{network::MAIN, psbt::Payload},
};

use super::{
    allocator::{self, Paid, script_of, signed_by},
    ledger::{Ledger, bitcoins, output, transaction},
    node::{Node, owned_by, serve},
};
use crate::withdrawals::{self, WITNESS};

const USER: &str = "bc1qcuqg72jtj44f8j5m9vgt0dh2vzd5llef36zu46";

/// The allocator's account.
fn script() -> ScriptBuf {
    script_of(1)
}

fn depository() -> String {
    MAIN.address_text(&script()).unwrap()
}

fn to(address: &str) -> ScriptBuf {
    MAIN.script(address).unwrap()
}

fn says(text: &[u8; 4]) -> ScriptBuf {
    ScriptBuf::new_op_return(text)
}

/// The transaction that funds the allocator: two outputs of 1000.
fn fund() -> String {
    "fa".repeat(32)
}

/// The allocator's record of a transaction that spends both outputs.
fn recorded(outputs: &[Paid]) -> Vec<u8> {
    allocator::recorded(1, &[0, 1].map(|place| ([0xfa; 32], place, 1_000)), outputs)
}

fn signed(outputs: &[(ScriptBuf, u64)]) -> Psbt {
    let payload = Payload::decode(&recorded(outputs)).unwrap();
    signed_by(&payload, 1, 1)
}

/// The other signature of the same message and key, which anybody can compute: its s is high.
fn twin(signature: &ecdsa::Signature) -> ecdsa::Signature {
    let mut compact = signature.serialize_compact();
    let s = SecretKey::from_slice(&compact[32..]).unwrap().negate();
    compact[32..].copy_from_slice(&s.secret_bytes());
    ecdsa::Signature::from_compact(&compact).unwrap()
}

fn described(psbt: &[u8]) -> WithdrawalInfo {
    let codec = vm::family("bitcoin-vm").unwrap().withdrawals.unwrap();
    let bytes = alloy::hex::encode(psbt);
    codec.describe(&json!({"psbt": bytes}))
}

#[test]
fn the_allocators_own_transaction_is_a_withdrawal_and_says_what_is_recorded() {
    let outputs = [(to(USER), 900), (script(), 1_000), (says(b"wd17"), 0)];
    let info = described(&signed(&outputs).serialize());
    assert_eq!(info.sole, Ok(()));
    // The fee of 100 is the user's, too.
    assert_eq!(info.amount, Ok("1000".into()));
    assert_eq!(info.recipient, Ok(USER.into()));
    let spending = info.spending.unwrap();
    assert_eq!(spending.payer, depository());
    assert_eq!(*spending.payload, *recorded(&outputs));
}

#[test]
fn what_others_could_have_written_is_no_withdrawal() {
    let good = [(to(USER), 900), (script(), 1_000)];
    let refused = |bytes: &[u8]| {
        let info = described(bytes);
        assert!(info.spending.is_none());
        info.sole.unwrap_err().0
    };
    let payload = Payload::decode(&recorded(&good)).unwrap();
    for bad in [
        payload.psbt().unwrap(),
        // Signed by another key, or for another transaction.
        signed_by(&payload, 2, 1),
        signed_by(&payload, 2, 2),
        {
            let mut other = signed(&good);
            other.unsigned_tx.output[0].value = bitcoin::Amount::from_sat(901);
            other
        },
        // Another form of the same: a signature's twin, more fields, or less.
        {
            let mut other = signed(&good);
            for signature in other.inputs[0].partial_sigs.values_mut() {
                signature.signature = twin(&signature.signature);
            }
            other
        },
        {
            let mut other = signed(&good);
            other.inputs[0].bip32_derivation.clear();
            other
        },
        {
            let mut other = signed(&good);
            let key = bitcoin::psbt::raw::Key {
                type_value: 0xfb,
                key: vec![1],
            };
            other.unknown.insert(key, vec![2]);
            other
        },
    ] {
        refused(&bad.serialize());
    }
    let two = [
        (to(USER), 900),
        (to("1BoatSLRHtKNngkdXEeobR76b53LETtpyT"), 5),
    ];
    assert!(refused(&signed(&two).serialize()).contains("change"));
    let burned = [(to(USER), 900), (says(b"wd17"), 5)];
    assert!(refused(&signed(&burned).serialize()).contains("change"));
    let home = [(script(), 900), (to(USER), 5)];
    assert!(refused(&signed(&home).serialize()).contains("pays the account"));
    refused(&signed(&[]).serialize());
}

/// A chain on which the allocator has its two outputs, final for long.
async fn chain() -> Node {
    let mut ledger = Ledger::new();
    let pay = || output(&script().to_hex_string(), 1_000);
    ledger.mine(vec![transaction(&fund(), &[], vec![pay(), pay()])]);
    ledger.bury(3);
    serve(ledger).await
}

/// A transaction that spends some of the outputs.
fn spend(id: &str, places: &[u32], outputs: &[(ScriptBuf, u64)]) -> Value {
    let fund = fund();
    let inputs: Vec<_> = places.iter().map(|place| (&*fund, *place)).collect();
    let outputs = outputs
        .iter()
        .map(|(script, value)| output(&script.to_hex_string(), *value));
    transaction(id, &inputs, outputs.collect())
}

/// What the allocator's transaction is in the chain.
fn own(psbt: &Psbt, outputs: &[(ScriptBuf, u64)]) -> Value {
    let id = psbt.unsigned_tx.compute_txid().to_string();
    spend(&id, &[0, 1], outputs)
}

/// A node alone, a node with the index, and the index.
struct Sight {
    spec: Arc<ChainSpec>,
    providers: [Provider; 3],
}

impl Sight {
    fn of(node: &Node) -> Self {
        let alone = owned_by(&depository(), json!({}));
        let both = owned_by(
            &depository(),
            json!({"esploraCompatibleApiUrl": node.index_url()}),
        );
        Self {
            providers: [node.open(&alone), node.open(&both), node.open_index(&both)],
            spec: both,
        }
    }

    /// What each says, named a transaction or not.
    async fn say(
        &self,
        psbt: &Psbt,
        named: Option<&str>,
    ) -> [Result<WithdrawalStatus, ReadError>; 3] {
        let encoded = Bytes::from(psbt.serialize());
        let tx = named.map(|id| self.spec.family.tx(id, None).unwrap());
        let mut said = Vec::new();
        for provider in &self.providers {
            let state = provider.state.clone().unwrap();
            let head = provider.reader.fresh_head().await.unwrap();
            let block = state.settled(&head).await.unwrap().unwrap();
            said.push(state.withdrawal(&encoded, tx.as_ref(), &block).await);
        }
        <[_; 3]>::try_from(said).unwrap()
    }
}

use WithdrawalStatus::{Executed, Expired, Pending};

fn all(status: WithdrawalStatus) -> [Result<WithdrawalStatus, ReadError>; 3] {
    [0; 3].map(|_| Ok(status))
}

#[tokio::test]
async fn pending_until_final_then_executed_and_gone_with_a_reorg() {
    let node = chain().await;
    let outputs = [(to(USER), 900), (script(), 1_000)];
    let psbt = signed(&outputs);
    let sight = Sight::of(&node);
    assert_eq!(sight.say(&psbt, None).await, all(Pending));
    node.ledger(|ledger| ledger.put(own(&psbt, &outputs)));
    assert_eq!(sight.say(&psbt, None).await, all(Pending), "in the pool");
    node.ledger(|ledger| ledger.mine(vec![own(&psbt, &outputs)]));
    let [alone, with, index] = sight.say(&psbt, None).await;
    // The node alone sees only that something spent the inputs.
    assert!(matches!(alone, Err(ReadError::Unavailable(_))), "{alone:?}");
    assert_eq!(
        (with, index),
        (Ok(Pending), Ok(Pending)),
        "one block is not final"
    );
    node.ledger(|ledger| ledger.bury(1));
    assert_eq!(sight.say(&psbt, None).await, all(Executed));
    // Whatever is named, and whatever signatures the claim has.
    assert_eq!(sight.say(&psbt, Some(&fund())).await, all(Executed));
    node.ledger(|ledger| ledger.undo(2));
    node.ledger(|ledger| ledger.bury(2));
    assert_eq!(sight.say(&psbt, None).await, all(Pending));
}

#[tokio::test]
async fn a_conflicting_spend_ends_it_once_it_is_final() {
    let node = chain().await;
    let outputs = [(to(USER), 900), (script(), 1_000)];
    let psbt = signed(&outputs);
    let sight = Sight::of(&node);
    let other = "ee".repeat(32);
    // It pays the user as much, and is another transaction.
    node.ledger(|ledger| ledger.mine(vec![spend(&other, &[0], &outputs)]));
    let [alone, with, index] = sight.say(&psbt, Some(&other)).await;
    assert!(matches!(alone, Err(ReadError::Unavailable(_))), "{alone:?}");
    assert_eq!((with, index), (Ok(Pending), Ok(Pending)));
    node.ledger(|ledger| ledger.bury(1));
    assert_eq!(sight.say(&psbt, Some(&other)).await, all(Expired));
    let [alone, with, index] = sight.say(&psbt, None).await;
    assert!(matches!(alone, Err(ReadError::Unavailable(_))), "{alone:?}");
    assert_eq!((with, index), (Ok(Expired), Ok(Expired)));
    // A transaction that spends none of the inputs ends nothing.
    let [alone, with, index] = sight.say(&psbt, Some(&fund())).await;
    assert!(matches!(alone, Err(ReadError::Unavailable(_))), "{alone:?}");
    assert_eq!((with, index), (Ok(Expired), Ok(Expired)));
    node.ledger(|ledger| {
        ledger.mine(vec![spend(&"ef".repeat(32), &[1], &[])]);
        ledger.bury(1);
    });
    let several = sight.say(&psbt, Some(&other)).await;
    assert_eq!(several, all(Expired));
}

#[tokio::test]
async fn a_bumped_transaction_of_the_same_purpose_executes_it() {
    let node = chain().await;
    let psbt = signed(&[(to(USER), 900), (says(b"wd17"), 0), (script(), 1_000)]);
    let sight = Sight::of(&node);
    let bumped = "ee".repeat(32);
    let paid = [(to(USER), 900), (says(b"wd17"), 0), (script(), 950)];
    node.ledger(|ledger| {
        ledger.mine(vec![spend(&bumped, &[0, 1], &paid)]);
        ledger.bury(1);
    });
    assert_eq!(sight.say(&psbt, Some(&bumped)).await, all(Executed));
    // One that says the same and pays less is doubtful, and nothing is signed.
    node.ledger(|ledger| {
        ledger.undo(2);
        let short = [(to(USER), 899), (says(b"wd17"), 0)];
        ledger.mine(vec![spend(&bumped, &[0, 1], &short)]);
        ledger.bury(1);
    });
    for said in sight.say(&psbt, Some(&bumped)).await {
        assert!(matches!(said, Err(ReadError::Unavailable(_))), "{said:?}");
    }
}

/// A chain on which the allocator has three outputs, and somebody else one before the last.
async fn shared_chain() -> Node {
    let mut ledger = Ledger::new();
    let pay = |byte| output(&script_of(byte).to_hex_string(), 1_000);
    let held = [1, 1, 2, 1].map(pay);
    ledger.mine(vec![transaction(&fund(), &[], held.to_vec())]);
    ledger.bury(3);
    serve(ledger).await
}

/// The allocator's transaction, whose fee somebody else's output pays.
fn shared(outputs: &[Paid]) -> Psbt {
    let held = [0, 1, 2].map(|place| ([0xfa; 32], place, 1_000));
    let payload = Payload::decode(&allocator::recorded(1, &held, outputs)).unwrap();
    let mut psbt = payload.psbt().unwrap();
    let fee = psbt.inputs[2].witness_utxo.as_mut().unwrap();
    fee.script_pubkey = script_of(2);
    psbt
}

#[tokio::test]
async fn who_pays_the_fee_may_end_it_and_says_nothing_else_about_it() {
    let node = shared_chain().await;
    let psbt = shared(&[(to(USER), 900), (says(b"wd17"), 0), (script(), 1_000)]);
    let sight = Sight::of(&node);
    let other = "ee".repeat(32);
    let is = async |places: &[u32], paid: &[Paid], wanted: WithdrawalStatus| {
        node.ledger(|ledger| {
            ledger.mine(vec![spend(&other, places, paid)]);
            ledger.bury(1);
        });
        let said = sight.say(&psbt, Some(&other)).await;
        assert_eq!(said, all(wanted), "{places:?} {paid:?}");
        let [alone, with, index] = sight.say(&psbt, None).await;
        assert!(matches!(alone, Err(ReadError::Unavailable(_))), "{alone:?}");
        assert_eq!((with, index), (Ok(wanted), Ok(wanted)), "{places:?}");
        node.ledger(|ledger| ledger.undo(2));
    };
    // He spends his output elsewhere, and says the same.
    is(&[2], &[(says(b"wd17"), 0)], Expired).await;
    // He pays the recipient out of his own pocket, too.
    let paid = [(to(USER), 900), (says(b"wd17"), 0)];
    is(&[2], &paid, Expired).await;
    // The depository pays for a higher fee, with the same outputs or with another one of its own.
    is(&[0, 1, 2], &paid, Executed).await;
    is(&[2, 3], &paid, Executed).await;
}

/// The script of an output that everybody may spend without a signature (pay-to-anchor).
const ANYBODYS: &str = "51024e73";

/// Transactions with an output that everybody may spend: more than are looked up.
fn anchors() -> impl Iterator<Item = String> {
    (0..2_001).map(|number| format!("aa{number:062x}"))
}

/// The same transaction, which spends all of these outputs, too. The node shows what each input spends.
fn crowded(mut spending: Value) -> Value {
    let shown = |script: &str| json!({"value": bitcoins(1_000), "scriptPubKey": {"hex": script}});
    let inputs = spending["vin"].as_array_mut().unwrap();
    for input in inputs.iter_mut() {
        let key = if input["vout"] == 2 { 2 } else { 1 };
        input["prevout"] = shown(&script_of(key).to_hex_string());
    }
    inputs.extend(anchors().map(|id| {
        json!({"txid": id, "vout": 0, "scriptSig": {"hex": ""}, "txinwitness": [],
            "prevout": shown(ANYBODYS)})
    }));
    spending
}

#[tokio::test]
async fn who_pays_the_fee_says_nothing_else_with_outputs_of_thousands_of_others_either() {
    let node = shared_chain().await;
    node.ledger(|ledger| {
        let anchor = |id: String| transaction(&id, &[], vec![output(ANYBODYS, 1_000)]);
        ledger.mine(anchors().map(anchor).collect());
        ledger.bury(1);
    });
    let psbt = shared(&[(to(USER), 900), (says(b"wd17"), 0), (script(), 1_000)]);
    let sight = Sight::of(&node);
    let other = "ee".repeat(32);
    let said = async |spending: Value| {
        node.ledger(|ledger| {
            ledger.mine(vec![spending]);
            ledger.bury(1);
        });
        let said = sight.say(&psbt, Some(&other)).await;
        node.ledger(|ledger| ledger.undo(2));
        said
    };
    let paid = [(says(b"wd17"), 0), (to(USER), 900)];
    for paid in [&paid[..1], &paid[..]] {
        let spending = crowded(spend(&other, &[2], paid));
        assert_eq!(said(spending).await, all(Expired), "{paid:?}");
    }
    // The depository pays for a higher fee.
    for places in [&[0, 1, 2][..], &[2, 3]] {
        let spending = crowded(spend(&other, places, &paid));
        assert_eq!(said(spending).await, all(Executed), "{places:?}");
    }
    // What a node does not show may be the depository's.
    let mut hidden = crowded(spend(&other, &[2], &paid[..1]));
    let input = hidden["vin"][7].as_object_mut().unwrap();
    input.remove("prevout");
    let [alone, with, index] = said(hidden).await;
    for node in [alone, with] {
        assert!(matches!(node, Err(ReadError::Unavailable(_))), "{node:?}");
    }
    assert_eq!(index, Ok(Expired));
}

#[tokio::test]
async fn a_request_with_the_most_inputs_ends_though_each_is_spent_by_another_transaction() {
    // Of the allocator's transaction with so many inputs.
    let said = async |inputs: u32| {
        let pay = |_| output(&script().to_hex_string(), 1_000);
        let funding = transaction(&fund(), &[], (0..inputs).map(pay).collect());
        let each = (0..inputs).map(|place| spend(&format!("ee{place:062x}"), &[place], &[]));
        let mut ledger = Ledger::new();
        ledger.mine(vec![funding]);
        ledger.mine(each.collect());
        ledger.bury(1);
        let node = serve(ledger).await;
        let held = (0..inputs).map(|place| ([0xfa; 32], place, 1_000));
        let held: Vec<_> = held.collect();
        let recorded = allocator::recorded(1, &held, &[(to(USER), 900), (says(b"wd17"), 0)]);
        let psbt = Payload::decode(&recorded).unwrap().psbt().unwrap();
        let [_, with, index] = Sight::of(&node).say(&psbt, None).await;
        [with, index]
    };
    let authorized = |inputs| withdrawals::checked(&withdrawals::held(0..inputs, WITNESS), &[]);
    assert_eq!(authorized(32), Ok(()));
    assert_eq!(said(32).await, [Ok(Expired), Ok(Expired)]);
    // Not all who spend more are looked at: of such a request nobody could say that it ended.
    assert!(authorized(33).is_err());
    for said in said(33).await {
        assert!(matches!(said, Err(ReadError::Unavailable(_))), "{said:?}");
    }
}

#[tokio::test]
async fn an_index_that_lies_moves_no_node() {
    let node = chain().await;
    let outputs = [(to(USER), 900), (script(), 1_000)];
    let psbt = signed(&outputs);
    let sight = Sight::of(&node);
    let honest = fund();
    node.garble(move |path, text| {
        if path.contains("outspend") {
            *text = json!({"spent": true, "txid": honest,
                "status": {"confirmed": true, "block_hash": "11".repeat(32)}})
            .to_string();
        }
    });
    let [alone, with, index] = sight.say(&psbt, None).await;
    assert_eq!((alone, with), (Ok(Pending), Ok(Pending)));
    // The transaction that it names does not spend the output.
    assert!(matches!(index, Err(ReadError::Doubtful(_))), "{index:?}");
    node.ledger(|ledger| {
        ledger.mine(vec![spend(&"ee".repeat(32), &[0], &[])]);
        ledger.bury(1);
    });
    let [_, with, index] = sight.say(&psbt, None).await;
    assert!(matches!(with, Err(ReadError::Unavailable(_))), "{with:?}");
    assert!(index.is_err());
}

#[tokio::test]
async fn transactions_of_others_are_not_judged() {
    let node = chain().await;
    let psbt = signed(&[(to(USER), 900), (script(), 1_000)]);
    let encoded = Bytes::from(psbt.serialize());
    let stranger = owned_by(USER, json!({}));
    let provider = node.open(&stranger);
    let head = provider.reader.head().await.unwrap();
    let state = provider.state.unwrap();
    let block = state.settled(&head).await.unwrap().unwrap();
    for bytes in [encoded, Bytes::from_static(b"psbt"), Bytes::new()] {
        let said = state.withdrawal(&bytes, None, &block).await;
        assert!(matches!(said, Err(ReadError::Foreign(_))), "{said:?}");
    }
    // A block of another fork grounds nothing.
    let mut forked = block;
    forked.hash.0[0] ^= 1;
    let own = owned_by(&depository(), json!({}));
    let state = node.open(&own).state.unwrap();
    let said = state
        .withdrawal(&Bytes::from(psbt.serialize()), None, &forked)
        .await;
    assert!(matches!(said, Err(ReadError::Doubtful(_))), "{said:?}");
}

#[tokio::test]
async fn state_is_judged_as_deep_as_deposits_are() {
    let node = chain().await;
    let settled = async |additional: Value| {
        let provider = node.open(&owned_by(&depository(), additional));
        let head = provider.reader.head().await.unwrap();
        let block = provider.state.unwrap().settled(&head).await.unwrap();
        block.map(|block| block.number)
    };
    // The tip is at height 4. Two confirmations: one block on top.
    assert_eq!(settled(json!({})).await, Some(3));
    assert_eq!(settled(json!({"finalizationBlocks": 1})).await, Some(4));
    assert_eq!(settled(json!({"finalizationBlocks": 6})).await, None);
    // An hour is six blocks: the chain is too young.
    assert_eq!(settled(json!({"finalizationTime": 1_800})).await, Some(1));
    assert_eq!(settled(json!({"finalizationTime": 3_600})).await, None);
}
