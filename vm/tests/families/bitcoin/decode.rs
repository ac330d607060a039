//! Hostile transactions, decoded without a node.

use bitcoin::{ScriptBuf, script::Builder};
use proptest::prelude::*;
use serde_json::{Value, json};
use vm::{
    B256, Block, Receipt,
    bitcoin::{
        decode::{Rules, decode},
        raw::RawTransaction,
        script::of_address,
    },
};

use super::node::{LEGACY, SEGWIT, spec};

const PAYER: &str = "bc1qs34tc3mtzq4w9s2ea7klr2jmxm8p78rsdjzvl0";
const ID: &str = "0xb18ec80e06a7a4b9de5ebcd2c1d8f24b6070c5daa959f057aa6cb23c94ae394f";
const OTHER: &str = "0xaaaaaa0e06a7a4b9de5ebcd2c1d8f24b6070c5daa959f057aa6cb23c94ae394f";

fn to(address: &str, value: f64) -> Value {
    output(&of_address(address).unwrap(), value)
}

fn output(script: &ScriptBuf, value: f64) -> Value {
    json!({"value": value, "scriptPubKey": {"hex": script.to_hex_string()}})
}

fn note(text: &[u8]) -> Value {
    let push: &bitcoin::script::PushBytes = text.try_into().unwrap();
    output(&ScriptBuf::new_op_return(push), 0.0)
}

fn receipt(outputs: Vec<Value>, spent: &[Option<ScriptBuf>]) -> Receipt {
    let numbered: Vec<Value> = (0..)
        .zip(outputs)
        .map(|(n, mut output)| {
            output["n"] = json!(n);
            output
        })
        .collect();
    let vin = spent.iter().map(|spent| match spent {
        Some(_) => json!({"txid": "11".repeat(32), "scriptSig": {"hex": ""}}),
        None => json!({"coinbase": "00"}),
    });
    let vin: Vec<Value> = vin.collect();
    let transaction: RawTransaction =
        serde_json::from_value(json!({"txid": "00".repeat(32), "vin": vin, "vout": numbered}))
            .unwrap();
    let block = Block {
        number: 1,
        hash: B256::ZERO,
        parent: B256::ZERO,
        time: 1,
    };
    decode(
        &Rules::new(&spec(json!({}))).unwrap(),
        &transaction,
        spent,
        block,
    )
}

fn from_payer(outputs: Vec<Value>) -> Receipt {
    receipt(outputs, &[Some(of_address(PAYER).unwrap())])
}

fn refusal(outputs: Vec<Value>) -> String {
    from_payer(outputs).deposits.unwrap_err().0
}

#[test]
fn two_different_ids_name_no_order() {
    let twice = vec![to(LEGACY, 0.1), note(ID.as_bytes()), note(OTHER.as_bytes())];
    assert_eq!(refusal(twice), "Transaction names several order ids");
    let same = vec![
        to(LEGACY, 0.1),
        note(ID.as_bytes()),
        note(ID.to_uppercase().replace("0X", "0x").as_bytes()),
    ];
    assert_eq!(from_payer(same).deposits.unwrap()[0].index, 1);
}

#[test]
fn two_different_depositors_are_ambiguous() {
    let named = |address: &str| note(format!("{ID}|depositor={address}|").as_bytes());
    let one = vec![to(LEGACY, 0.1), named(SEGWIT)];
    assert_eq!(
        from_payer(one).deposits.unwrap()[0].depositor.text(),
        SEGWIT
    );
    let two = vec![to(LEGACY, 0.1), named(SEGWIT), named(PAYER)];
    assert_eq!(refusal(two), "Transaction names several depositors");
}

#[test]
fn a_note_must_be_one_push_of_text() {
    let ids: Vec<ScriptBuf> = vec![
        // Two pushes, no push, a push that is cut, an id outside of an OP_RETURN.
        Builder::new()
            .push_opcode(bitcoin::opcodes::all::OP_RETURN)
            .push_slice(<&bitcoin::script::PushBytes>::try_from(ID.as_bytes()).unwrap())
            .push_slice([1])
            .into_script(),
        ScriptBuf::from_bytes(vec![0x6a]),
        ScriptBuf::from_bytes(vec![0x6a, 0x42, 0x30]),
        Builder::new()
            .push_slice(<&bitcoin::script::PushBytes>::try_from(ID.as_bytes()).unwrap())
            .into_script(),
    ];
    for script in ids {
        let found = from_payer(vec![to(LEGACY, 0.1), output(&script, 0.0)]);
        assert!(
            found.deposits.unwrap()[0].id.ends_with("000000"),
            "{script}"
        );
        assert!(found.references.is_empty());
    }
}

#[test]
fn ids_that_are_not_hex_or_cut_short_are_no_ids() {
    for text in [
        &ID[..65],
        &ID.replace('b', "g"),
        &ID[2..],
        &format!(" {ID}"),
    ] {
        let found = from_payer(vec![to(LEGACY, 0.1), note(text.as_bytes())]);
        assert!(found.deposits.unwrap()[0].id.ends_with("000000"), "{text}");
    }
}

#[test]
fn coinbases_and_scripts_without_address_have_no_depositor() {
    let outputs = || vec![to(LEGACY, 0.1)];
    for spent in [
        vec![None],
        vec![],
        vec![Some(ScriptBuf::from_bytes(vec![0x51]))],
    ] {
        let refused = receipt(outputs(), &spent).deposits.unwrap_err();
        assert_eq!(refused.0, "Could not determine depositor");
    }
}

#[test]
fn every_kind_of_address_can_deposit() {
    for payer in [
        "1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
        "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
        "bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3",
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
    ] {
        let spent = [Some(of_address(payer).unwrap())];
        let deposits = receipt(vec![to(LEGACY, 0.1)], &spent).deposits.unwrap();
        assert_eq!(deposits[0].depositor.text(), payer);
    }
}

#[test]
fn an_output_of_nothing_is_no_deposit_and_one_satoshi_is() {
    assert_eq!(
        refusal(vec![to(LEGACY, 0.0)]),
        "No value sent to the depository"
    );
    let deposits = from_payer(vec![to(LEGACY, 1e-8)]).deposits.unwrap();
    assert_eq!(deposits[0].amount.to_string(), "1");
}

#[test]
fn several_orders_in_one_fill_are_all_named() {
    let found = from_payer(vec![
        to(PAYER, 0.1),
        note(ID.as_bytes()),
        note(OTHER.as_bytes()),
    ]);
    assert_eq!(found.references.len(), 2);
}

#[test]
fn a_depository_among_the_inputs_makes_everything_change() {
    let spent = [
        Some(of_address(PAYER).unwrap()),
        Some(of_address(SEGWIT).unwrap()),
    ];
    assert!(
        receipt(vec![to(LEGACY, 0.1), note(ID.as_bytes())], &spent)
            .deposits
            .unwrap()
            .is_empty()
    );
}

/// What a transaction pays to whom, in satoshis.
fn paid(outputs: Vec<Value>, spent: &[&str]) -> Vec<(String, u64)> {
    let spent: Vec<_> = spent.iter().map(|s| Some(of_address(s).unwrap())).collect();
    let payments = receipt(outputs, &spent).payments.into_iter();
    payments
        .map(|p| (p.recipient.text().to_owned(), p.amount.to()))
        .collect()
}

#[test]
fn change_withdrawals_and_what_several_gave_pay_nobody() {
    let outputs = || vec![note(ID.as_bytes()), to(SEGWIT, 0.5), to(PAYER, 0.2)];
    let user = "bc1qcuqg72jtj44f8j5m9vgt0dh2vzd5llef36zu46";
    let payout = || vec![note(ID.as_bytes()), to(user, 0.5), to(PAYER, 0.2)];
    assert_eq!(paid(payout(), &[PAYER]), [(user.to_owned(), 50_000_000)]);
    assert_eq!(paid(payout(), &[PAYER, PAYER]).len(), 1);
    assert_eq!(paid(outputs(), &[PAYER]).len(), 1);
    // Out of a depository: a withdrawal. Of two owners who show no signatures: nobody's.
    assert_eq!(paid(payout(), &[SEGWIT]), []);
    assert_eq!(paid(payout(), &[PAYER, LEGACY]), []);
    assert_eq!(paid(payout(), &[PAYER, user]), []);
    assert_eq!(receipt(payout(), &[None]).payments, []);
    let sender = |spent: &str| receipt(payout(), &[Some(of_address(spent).unwrap())]).sender;
    assert_eq!(sender(PAYER).unwrap().text(), PAYER);
}

proptest! {
    #[test]
    fn random_scripts_never_panic(scripts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..90), 0..6)) {
        let outputs = scripts.iter().map(|s| output(&ScriptBuf::from_bytes(s.clone()), 0.1)).collect();
        let spent: Vec<_> = scripts.iter().map(|s| Some(ScriptBuf::from_bytes(s.clone()))).collect();
        let found = receipt(outputs, &spent);
        prop_assert!(found.payments.len() <= scripts.len());
    }
}
