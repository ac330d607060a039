//! Refunds on a chain without senders: the spent outputs show whose money it is.

use serde_json::{Value, json};
use vm::{
    ChainSpec, Transaction,
    bitcoin::{
        decode::{Rules, decode},
        network::MAIN,
        raw::RawTransaction,
    },
};

use super::{
    fixtures::{self, Fixture, Read},
    refunded,
};

const USER: &str = "bc1qcuqg72jtj44f8j5m9vgt0dh2vzd5llef36zu46";
const STRANGER: &str = "bc1qs34tc3mtzq4w9s2ea7klr2jmxm8p78rsdjzvl0";
const SOMEBODY: &str = "1BoatSLRHtKNngkdXEeobR76b53LETtpyT";
const DEPOSITORY: &str = "1MviEDGCTgEKEJ6cmfL9pBQa5GG4hujXnF";
/// The order's minimum refund: 900 satoshis.
const WHOLE: f64 = 9e-6;

fn bitcoin() -> &'static vm::Family {
    fixtures::families("bitcoin").unwrap()
}

/// An order that is refunded on Bitcoin by `payers`: the refund to its user, the change to the first payer, with the
/// order's id. No input shows a signature.
fn paid_by(payers: &[&str]) -> Fixture {
    let mut fixture = Fixture::ordering(|order| {
        let refund = &mut order.inputs[0].refunds[0];
        refund.chain_id = "bitcoin".into();
        refund.recipient = USER.into();
        refund.currency = bitcoin().codec.native().into();
        refund.extra_data = "0x".into();
    });
    let spec = ChainSpec {
        family: bitcoin(),
        depository: Some(bitcoin().address(DEPOSITORY).unwrap()),
        ..fixtures::spec("bitcoin")
    };
    let script = |address: &str| MAIN.script(address).unwrap();
    let to = |n: u8, address: &str| {
        let hex = script(address).to_hex_string();
        json!({ "value": WHOLE, "n": n, "scriptPubKey": { "hex": hex } })
    };
    let named = alloy::hex::encode(fixture.id().to_string());
    let note = json!({ "value": 0.0, "n": 2, "scriptPubKey": { "hex": format!("6a42{named}") } });
    let input = json!({ "txid": "11".repeat(32), "scriptSig": { "hex": "" } });
    let vin: Vec<Value> = payers.iter().map(|_| input.clone()).collect();
    let vout = [to(0, USER), to(1, payers[0]), note];
    let raw = json!({ "txid": "e1".repeat(32), "vin": vin, "vout": vout });
    let raw: RawTransaction = serde_json::from_value(raw).unwrap();
    let spent = payers.iter().copied().map(|payer| Some(script(payer)));
    let spent: Vec<_> = spent.collect();
    let rules = Rules::new(&spec).unwrap();
    let receipt = decode(&rules, &raw, &spent, fixtures::block(10));
    fixture.refunded = vec![Read {
        spec,
        tx: bitcoin().tx(&"e1".repeat(32), None).unwrap(),
        found: Transaction::Succeeded(receipt),
        ..Read::new("ethereum", 0xe1)
    }];
    fixture
}

#[test]
fn nobodys_bitcoin_refunds_for_the_solver_without_its_word() {
    let vouched = |payers: &[&str]| refunded(&paid_by(payers).with(|s| s.vouched = true));
    // Strangers, and the user: without the solver's signature no payment is the solver's.
    for payers in [&[STRANGER][..], &[SOMEBODY], &[USER]] {
        let unvouched = paid_by(payers);
        assert_eq!(refunded(&unvouched), "REFUND_INSUFFICIENT", "{payers:?}");
    }
    assert_eq!(vouched(&[STRANGER]), "OK");
    assert_eq!(vouched(&[STRANGER, STRANGER]), "OK");
    // The solver's signature does not make a payment of change, of a withdrawal, or of several owners' money.
    for payers in [
        &[USER][..],
        &[DEPOSITORY],
        &[STRANGER, USER],
        &[STRANGER, SOMEBODY],
    ] {
        assert_eq!(vouched(payers), "REFUND_INSUFFICIENT", "{payers:?}");
    }
}
