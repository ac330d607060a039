//! The chain by itself, with transactions that keys of its accounts sign.

use std::sync::Arc;

use bitcoin::{
    Amount, OutPoint, Sequence, Transaction, TxIn, TxOut, Witness, absolute::LockTime,
    consensus::serialize, transaction::Version,
};
use serde_json::{Value, json};

use super::{
    index,
    ledger::MATURITY,
    rpc,
    view::View,
    world::{INDEX, Rules, World},
    *,
};
use crate::testing::Manners;

const COIN: u64 = 100_000_000;
const RESTRICTED: Version = Version(3);

fn key(byte: u8) -> Key {
    Key::of(byte).unwrap()
}

/// A chain on which key 1 has two coins.
fn world(name: &str) -> Arc<World> {
    let rules = Rules {
        number: 7,
        pace: 10,
        since: 1_000,
        rate: 5,
    };
    let world = World::new(name, rules);
    pass(&world, MATURITY + 2);
    assert!(world.fund(&key(1).script(), COIN, 2));
    pass(&world, 1);
    world
}

fn pass(world: &World, blocks: u64) {
    world.mine_until(world.rules.since + (world.height() + blocks) * world.rules.pace);
}

/// The outputs of key 1 in blocks.
fn coins(world: &World) -> Vec<OutPoint> {
    let state = world.lock();
    let view = View {
        state: &state,
        manners: Manners::default(),
    };
    let mut coins: Vec<_> = view
        .unspent(&key(1).script())
        .iter()
        .map(|it| it.at)
        .collect();
    coins.sort();
    coins
}

/// Spends a coin of a key's to key 2 for a fee.
fn spending(coin: (OutPoint, u64), (by, version): (u8, Version), fee: u64) -> Transaction {
    let made = Transaction {
        version,
        lock_time: LockTime::ZERO,
        input: vec![TxIn {
            previous_output: coin.0,
            script_sig: Default::default(),
            sequence: Sequence::ENABLE_RBF_NO_LOCKTIME,
            witness: Witness::new(),
        }],
        output: vec![TxOut {
            value: Amount::from_sat(coin.1 - fee),
            script_pubkey: key(2).script(),
        }],
    };
    let spent = TxOut {
        value: Amount::from_sat(coin.1),
        script_pubkey: key(by).script(),
    };
    key(by).sign(made, &[spent]).unwrap()
}

fn send(world: &World, one: &Transaction) -> Result<bitcoin::Txid, &'static str> {
    world.send(&serialize(one))
}

fn asked(world: &World, method: &str, params: Value) -> Value {
    let body = json!({"id": 1, "method": method, "params": params}).to_string();
    let asked = ("one", "", body.as_bytes());
    let (_, answer) = rpc::answer(world, Manners::default(), asked).unwrap();
    serde_json::from_slice(&answer).unwrap()
}

fn page(world: &World, path: &str) -> (u16, Value) {
    let (status, answer) = index::answer(world, Manners::default(), (path, b""));
    (status, serde_json::from_slice(&answer).unwrap_or_default())
}

#[test]
fn payment_waits_and_lands_once() {
    let world = world("bitcoin-lands");
    let coins = coins(&world);
    let paid = spending((coins[0], COIN), (1, Version::TWO), 1_000);
    let txid = send(&world, &paid).unwrap();
    assert_eq!(send(&world, &paid), Ok(txid));
    let entry = asked(&world, "getmempoolentry", json!([txid]));
    assert!(entry["error"].is_null());
    // What waits is no output of an account yet, and what it spends is none any more.
    let listed = |key: &Key| page(&world, &format!("address/{}/utxo", key.address())).1;
    assert_eq!(listed(&key(2)), json!([]));
    assert_eq!(listed(&key(1)).as_array().unwrap().len(), 1);
    pass(&world, 1);
    assert_eq!(listed(&key(2))[0]["value"], json!(COIN - 1_000));
    let history = world.history();
    let last = history.last().unwrap();
    assert_eq!((&last.transaction, &last.payer), (&paid, &key(1).script()));
    let again = spending((coins[0], COIN), (1, Version::TWO), 90_000);
    assert_eq!(send(&world, &again), Err("bad-txns-inputs-missingorspent"));
    assert!(
        send(&world, &paid)
            .unwrap_err()
            .contains("already in utxo set")
    );
}

#[test]
fn replacement_pays_for_what_it_replaces() {
    let world = world("bitcoin-replaces");
    let coin = (coins(&world)[0], COIN);
    let version = |fee| spending(coin, (1, RESTRICTED), fee);
    send(&world, &version(1_000)).unwrap();
    let cheap = "insufficient fee, rejecting replacement";
    assert_eq!(send(&world, &version(1_050)), Err(cheap));
    let dear = version(2_000);
    send(&world, &dear).unwrap();
    assert_eq!(world.waiting(), std::slice::from_ref(&dear));
    world.set_rate(1_000);
    pass(&world, 2);
    assert_eq!(world.waiting().len(), 1);
    world.set_rate(5);
    pass(&world, 1);
    assert_eq!(world.history().last().unwrap().transaction, dear);
}

#[test]
fn restricted_transactions_have_one_small_child_of_their_kind() {
    let world = world("bitcoin-restricted");
    let parent = spending((coins(&world)[0], COIN), (1, RESTRICTED), 1_000);
    let child = |version| {
        let at = OutPoint::new(parent.compute_txid(), 0);
        spending((at, COIN - 1_000), (2, version), 1_000)
    };
    send(&world, &parent).unwrap();
    assert_eq!(send(&world, &child(Version::TWO)), Err("TRUC-violation"));
    send(&world, &child(RESTRICTED)).unwrap();
    let grand = OutPoint::new(child(RESTRICTED).compute_txid(), 0);
    let grand = spending((grand, COIN - 2_000), (2, RESTRICTED), 1_000);
    assert_eq!(send(&world, &grand), Err("TRUC-violation"));
    pass(&world, 1);
    assert!(world.waiting().is_empty() && send(&world, &grand).is_ok());
}

#[test]
fn reorg_puts_back_what_it_keeps_and_loses_the_rest() {
    let world = world("bitcoin-reorg");
    let coins = coins(&world);
    let sent: Vec<_> = coins
        .iter()
        .map(|at| spending((*at, COIN), (1, Version::TWO), 1_000))
        .collect();
    for one in &sent {
        send(&world, one).unwrap();
    }
    world.hold(&key(1).script(), true);
    pass(&world, 2);
    assert_eq!(world.waiting().len(), 2);
    world.hold(&key(1).script(), false);
    pass(&world, 2);
    let before = world.history().len();
    let height = world.height();
    let kept = sent[0].compute_txid();
    world.reorg(3, &mut |done| done.transaction.compute_txid() == kept);
    assert_eq!(
        (world.height(), world.history().len()),
        (height, before - 1)
    );
    world.resend(&key(1).script());
    pass(&world, 1);
    assert_eq!(world.history().len(), before);
}

#[test]
fn forged_and_worthless_transactions_are_refused() {
    let world = world("bitcoin-forged");
    let coin = (coins(&world)[0], COIN);
    let mut forged = spending(coin, (1, Version::TWO), 1_000);
    forged.output[0].value -= Amount::from_sat(1);
    assert_eq!(
        send(&world, &forged),
        Err("mandatory-script-verify-flag-failed")
    );
    let dust = spending(coin, (1, Version::TWO), COIN - 100);
    assert_eq!(send(&world, &dust), Err("dust"));
    let free = spending(coin, (1, Version::TWO), 0);
    assert_eq!(send(&world, &free), Err("min relay fee not met"));
    assert_eq!(world.send(&[]), Err("TX decode failed"));
    assert!(key(1).signed(&json!({})).is_none() && Key::of(0).is_none());
}

#[test]
fn index_lists_few_outputs_only() {
    let world = world("bitcoin-crowded");
    assert!(world.fund(&key(3).script(), 2_000, LISTED + 1));
    pass(&world, 1);
    let address = key(3).address();
    assert_eq!(page(&world, &format!("address/{address}/utxo")).0, 400);
    let (_, mined) = page(&world, &format!("address/{address}/txs/chain"));
    let txid = mined[0]["txid"].as_str().unwrap();
    let (_, spend) = page(&world, &format!("tx/{txid}/outspend/{LISTED}"));
    let (_, status) = page(&world, &format!("tx/{txid}/status"));
    assert_eq!(
        (&spend["spent"], &status["confirmed"]),
        (&json!(false), &json!(true))
    );
    let below = page(&world, &format!("address/{address}/txs/chain/{txid}"));
    assert_eq!(below, (200, json!([])));
}

#[test]
fn late_provider_has_the_newest_only_waiting() {
    let world = world("bitcoin-late");
    let paid = spending((coins(&world)[0], COIN), (1, Version::TWO), 1_000);
    let txid = send(&world, &paid).unwrap();
    pass(&world, 1);
    let seen = |lag, blind| {
        let manners = Manners {
            lag,
            blind,
            ..Manners::default()
        };
        let (status, shown) = index::answer(&world, manners, (&format!("tx/{txid}"), b""));
        let shown: Value = serde_json::from_slice(&shown).unwrap_or_default();
        (status, shown["status"]["confirmed"].as_bool())
    };
    assert_eq!(seen(0, false), (200, Some(true)));
    assert_eq!(seen(1, false), (200, Some(false)));
    assert_eq!(seen(0, true), (404, None));
    assert!(world.url(INDEX).starts_with("http://bitcoin-late.inside/"));
}
