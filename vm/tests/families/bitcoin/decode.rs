//! Hostile transactions, decoded without a node.

use bitcoin::{ScriptBuf, script::Builder};
use proptest::prelude::*;
use serde_json::{Value, json};
use vm::{
    B256, Block, Receipt,
    bitcoin::{
        decode::{Rules, decode},
        network::MAIN,
        raw::{IndexedTransaction, RawTransaction},
    },
};

use super::node::{LEGACY, SEGWIT, spec};
use crate::odd;

const PAYER: &str = "bc1qs34tc3mtzq4w9s2ea7klr2jmxm8p78rsdjzvl0";
const ID: &str = "0xb18ec80e06a7a4b9de5ebcd2c1d8f24b6070c5daa959f057aa6cb23c94ae394f";
const OTHER: &str = "0xaaaaaa0e06a7a4b9de5ebcd2c1d8f24b6070c5daa959f057aa6cb23c94ae394f";

fn of_address(address: &str) -> Result<ScriptBuf, vm::CodecError> {
    MAIN.script(address)
}

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
    signed(outputs, spent, &[])
}

/// The same with a signature of each input, of these hash types.
fn signed(outputs: Vec<Value>, spent: &[Option<ScriptBuf>], kinds: &[u8]) -> Receipt {
    let numbered: Vec<Value> = (0..)
        .zip(outputs)
        .map(|(n, mut output)| {
            output["n"] = json!(n);
            output
        })
        .collect();
    let vin = spent.iter().enumerate().map(|(at, spent)| match spent {
        Some(_) => {
            let kind = kinds.get(at).into_iter();
            let witness: Vec<_> = kind
                .map(|kind| format!("3006020101020101{kind:02x}"))
                .collect();
            json!({"txid": "11".repeat(32), "scriptSig": {"hex": ""}, "txinwitness": witness})
        }
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
    decode(&rules(json!({})), &transaction, spent, block)
}

fn rules(additional: Value) -> Rules {
    Rules::new(&spec(additional)).unwrap()
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

/// Anybody can name another as the depositor.
#[test]
fn a_deposit_is_its_depositors_own_if_the_depositor_alone_paid() {
    let user = "bc1qcuqg72jtj44f8j5m9vgt0dh2vzd5llef36zu46";
    let own = |text: &str, spent: &[&str]| {
        let spent: Vec<_> = spent.iter().map(|s| Some(of_address(s).unwrap())).collect();
        let outputs = vec![to(LEGACY, 0.1), note(text.as_bytes())];
        receipt(outputs, &spent).deposits.unwrap()[0].by_depositor
    };
    let of = |depositor: &str| format!("{ID}|depositor={depositor}|");
    assert!(own(ID, &[PAYER]) && own(&of(PAYER), &[PAYER, PAYER]));
    assert!(!own(&of(user), &[PAYER]) && !own(ID, &[PAYER, user]));
}

/// Whoever leaves inputs or outputs to others has not written all that stands there.
#[test]
fn a_deposit_that_others_could_complete_funds_no_order_and_is_one_owners() {
    let user = "bc1qcuqg72jtj44f8j5m9vgt0dh2vzd5llef36zu46";
    let deposit = |text: &str, spent: &[&str], kinds: &[u8]| {
        let spent: Vec<_> = spent.iter().map(|s| Some(of_address(s).unwrap())).collect();
        let outputs = vec![to(LEGACY, 0.1), note(text.as_bytes())];
        let deposits = signed(outputs, &spent, kinds).deposits;
        let deposit = deposits.map_err(|refused| refused.0)?.remove(0);
        Ok::<_, String>((deposit.depositor.text().to_owned(), deposit.named_by_other))
    };
    let of = |owner: &str, named_by_other| Ok((owner.to_owned(), named_by_other));
    let refused = || Err("Could not determine depositor".to_owned());
    let to_user = format!("{ID}|depositor={user}|");
    assert_eq!(deposit(ID, &[PAYER], &[1]), of(PAYER, false));
    assert_eq!(deposit(&to_user, &[PAYER], &[1]), of(user, false));
    assert_eq!(deposit(ID, &[user, PAYER], &[1, 1]), of(user, false));
    // NONE, SINGLE, and each with ANYONECANPAY.
    for open in [2, 3, 0x81, 0x82, 0x83] {
        assert_eq!(deposit(ID, &[PAYER; 2], &[1, open]), of(PAYER, true));
        assert_eq!(deposit("no id", &[PAYER], &[open]), of(PAYER, false));
        // A stranger's input before the payer's, and a stranger's word about the depositor.
        assert_eq!(deposit(ID, &[user, PAYER], &[1, open]), refused());
        assert_eq!(deposit(&to_user, &[PAYER], &[open]), refused());
    }
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
        // A length of two bytes, which others take for text.
        ScriptBuf::from_bytes([&[0x6a, 0x4d, 0x42, 0], ID.as_bytes()].concat()),
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

#[test]
fn what_leaves_a_depository_is_its_execution() {
    let executed = |spent: &[&str]| {
        let spent: Vec<_> = spent.iter().map(|s| Some(of_address(s).unwrap())).collect();
        let found = receipt(vec![to(PAYER, 0.1)], &spent);
        let executions = found.executions.iter();
        executions
            .map(|execution| (execution.depository.text().to_owned(), execution.id))
            .collect::<Vec<_>>()
    };
    assert_eq!(executed(&[PAYER]), []);
    let twice = executed(&[SEGWIT, PAYER, SEGWIT]);
    assert_eq!(twice, [(SEGWIT.to_owned(), B256::ZERO)]);
    assert_eq!(executed(&[LEGACY, SEGWIT]).len(), 2);
}

/// Nobody but the payer writes what stands behind the id, and it changes neither id nor amount.
#[test]
fn text_behind_an_id_changes_nothing_but_the_depositor() {
    for more in [
        "|depositor=|",
        "|depositor=0xdead|",
        // A text that has a hub account, and is no address.
        "|depositor=1|",
        &format!("|depositor={SEGWIT}"),
        "|amount=9|depository=x|",
        &OTHER[2..],
    ] {
        let text = format!("{ID}{more}");
        let deposits = from_payer(vec![to(LEGACY, 0.1), note(text.as_bytes())]).deposits;
        let deposit = deposits.unwrap().remove(0);
        assert_eq!((&*deposit.id, deposit.amount.to()), (ID, 10_000_000_u64));
        assert_eq!(deposit.depositor.text(), PAYER, "{more}");
    }
}

#[test]
fn a_push_beyond_255_bytes_says_nothing() {
    let noted = |length: usize| {
        let text = format!("{ID}{}", " ".repeat(length - ID.len()));
        let found = from_payer(vec![to(LEGACY, 0.1), note(text.as_bytes())]);
        found.deposits.unwrap().remove(0).id
    };
    assert_eq!(&*noted(255), ID);
    assert!(noted(256).ends_with("000000"));
}

#[test]
fn one_satoshi_off_is_another_amount_and_dust_is_counted() {
    for (value, wanted) in [(0.00000545, 545_u64), (0.00000546, 546), (0.00000547, 547)] {
        let deposits = from_payer(vec![to(LEGACY, value)]).deposits.unwrap();
        assert_eq!(deposits[0].amount.to::<u64>(), wanted);
    }
}

/// The chain's entry names the network: addresses are that network's, and the other's scripts are nobody's.
#[test]
fn deposits_of_a_local_network_are_in_its_addresses() {
    let local = |address: &str| vm::bitcoin::network::LOCAL.script(address).unwrap();
    let (depository, payer) = (
        "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080",
        "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn",
    );
    let entry = json!({"id": "regtest", "hubChainId": "7", "depository": depository,
        "additionalData": {"network": "regtest"}});
    let entry: vm::ChainEntry = serde_json::from_value(entry).unwrap();
    let family = vm::family("bitcoin-vm").unwrap();
    let spec = entry.spec(family, false).unwrap();
    assert_eq!(spec.family.name, family.name);
    assert!(spec.family.account(payer).is_ok() && family.account(payer).is_err());
    let raw = json!({"txid": "00".repeat(32), "vin": [{"txid": "11".repeat(32)}],
        "vout": [{"n": 0, "value": 0.5, "scriptPubKey": {"hex": local(depository).to_hex_string()}}]});
    let raw: RawTransaction = serde_json::from_value(raw).unwrap();
    let block = vm::Block {
        number: 1,
        hash: B256::ZERO,
        parent: B256::ZERO,
        time: 1,
    };
    let found = decode(
        &Rules::new(&spec).unwrap(),
        &raw,
        &[Some(local(payer))],
        block,
    );
    let deposit = found.deposits.unwrap().remove(0);
    assert_eq!(deposit.depository.text(), depository);
    assert_eq!(deposit.depositor.text(), payer);
    // An entry of the main network takes no such depository.
    let mut main = entry;
    main.additional_data.remove("network");
    assert!(main.spec(family, false).is_err());
}

/// A deposit in a block as a node shows it, with all the fields that are read.
fn shown() -> Value {
    let named = format!("{ID}|depositor={SEGWIT}|");
    let mut outputs = [to(LEGACY, 0.1), note(named.as_bytes()), to(PAYER, 0.2)];
    for (n, output) in outputs.iter_mut().enumerate() {
        output["n"] = json!(n);
    }
    let spent = of_address(PAYER).unwrap().to_hex_string();
    let input = json!({
        "txid": "11".repeat(32), "vout": 1, "scriptSig": {"hex": ""},
        "txinwitness": ["300602010102010101", "02".repeat(33)],
        "prevout": {"scriptPubKey": {"hex": spent}},
    });
    json!({
        "txid": "00".repeat(32), "blockhash": "33".repeat(32), "vin": [input], "vout": outputs,
    })
}

/// The same as an index shows it.
fn indexed() -> Value {
    let shown = shown();
    let outputs = shown["vout"].as_array().unwrap().iter();
    let outputs = outputs.zip([10_000_000, 0, 20_000_000]);
    let outputs = outputs.map(|(output, satoshis)| {
        json!({"scriptpubkey": output["scriptPubKey"]["hex"], "value": satoshis})
    });
    let input = &shown["vin"][0];
    let spent =
        json!({"scriptpubkey": input["prevout"]["scriptPubKey"]["hex"], "value": 40_000_000});
    json!({
        "txid": shown["txid"],
        "vin": [{
            "txid": input["txid"], "vout": 1, "is_coinbase": false, "scriptsig": "",
            "witness": input["txinwitness"], "prevout": spent,
        }],
        "vout": outputs.collect::<Vec<_>>(),
        "status": {"confirmed": true, "block_hash": shown["blockhash"], "block_height": 1},
    })
}

/// What is made of whatever a node shows; `None` where nothing is.
fn attempted(shown: &Value) -> Option<Receipt> {
    let transaction: RawTransaction = serde_json::from_str(&shown.to_string()).ok()?;
    Some(read(&transaction))
}

/// What is made of whatever an index shows.
fn attempted_of_index(shown: &Value) -> Option<Receipt> {
    let indexed: IndexedTransaction = serde_json::from_str(&shown.to_string()).ok()?;
    let transaction = RawTransaction::try_from(indexed).ok()?;
    Some(read(&transaction))
}

fn read(transaction: &RawTransaction) -> Receipt {
    let spent = transaction.vin.iter().map(|input| {
        let prevout = input.prevout.as_ref()?;
        Some(prevout.script.hex.clone())
    });
    let spent: Vec<_> = spent.collect();
    let block = Block {
        number: 1,
        hash: B256::ZERO,
        parent: B256::ZERO,
        time: 1,
    };
    decode(&rules(json!({})), transaction, &spent, block)
}

#[test]
fn the_answers_in_which_values_are_made_odd_are_sound() {
    for receipt in [attempted(&shown()), attempted_of_index(&indexed())] {
        let receipt = receipt.unwrap();
        let deposit = receipt.deposits.unwrap().remove(0);
        assert_eq!((&*deposit.id, deposit.depositor.text()), (ID, SEGWIT));
        assert_eq!(deposit.amount.to::<u64>(), 10_000_000);
        assert_eq!(receipt.sender.unwrap().text(), PAYER);
    }
}

proptest! {
    #[test]
    fn an_odd_value_in_an_answer_never_panics(
        shown in odd::changed(shown()), indexed in odd::changed(indexed()),
    ) {
        let _ = attempted(&shown);
        let _ = attempted_of_index(&indexed);
    }

    #[test]
    fn random_scripts_never_panic(scripts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..90), 0..6)) {
        let outputs = scripts.iter().map(|s| output(&ScriptBuf::from_bytes(s.clone()), 0.1)).collect();
        let spent: Vec<_> = scripts.iter().map(|s| Some(ScriptBuf::from_bytes(s.clone()))).collect();
        let found = receipt(outputs, &spent);
        prop_assert!(found.payments.len() <= scripts.len());
    }
}
