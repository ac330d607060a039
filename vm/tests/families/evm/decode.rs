//! Recorded transactions decode to what the network's oracle attested.

use serde_json::Value;
use vm::{PaymentKind, Transaction, U256};

use super::chain::{self, DEPOSITORY, ROUTER, TOKEN, WORLD, address, decode, decode_json, entry};

const NATIVE: &str = "0x0000000000000000000000000000000000000000";
const RECIPIENT: &str = "0x1111111111111111111111111111111111111111";

#[test]
fn recorded_deposits_are_found() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../../../fixtures/recorded/evm-deposits.json")).unwrap();
    assert_eq!(cases.len(), 17);
    for case in cases {
        let name = &case["name"];
        let receipt = decode(case["transaction"].as_str().unwrap());
        let found = receipt.deposits.unwrap();
        let expected = case["deposits"].as_array().unwrap();
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(expected) {
            let text = |field: &str| expected[field].as_str().unwrap();
            assert_eq!(found.depository.text(), text("depository"), "{name}");
            assert_eq!(found.depositor.text(), text("depositor"), "{name}");
            assert_eq!(found.currency.text(), text("currency"), "{name}");
            assert_eq!(found.amount.to_string(), text("amount"), "{name}");
            assert_eq!(&*found.id, text("depositId"), "{name}");
            assert_eq!(receipt.block.time.to_string(), text("timestamp"), "{name}");
        }
    }
}

#[test]
fn deposit_index_is_the_logs() {
    let multi = decode("0xcf28d3c53d2a0aa5e60c5a553be35fa213ba19ba6c9ab27ead015947715e4fe5");
    let indexes: Vec<u32> = multi.deposits.unwrap().iter().map(|d| d.index).collect();
    assert_eq!(indexes, [0, 2]);
}

#[test]
fn every_recorded_transaction_is_readable() {
    let rules = chain::rules();
    for entry in WORLD["transactions"].as_array().unwrap() {
        let hash = &entry["transaction"]["hash"];
        let failed = entry["receipt"]["status"] == "0x0";
        match decode_json(&rules, entry) {
            Ok(Transaction::Succeeded(receipt)) => {
                assert!(!failed);
                assert!(receipt.deposits.is_ok(), "{hash}");
            }
            Ok(Transaction::Failed(_)) => assert!(failed, "{hash}"),
            other => panic!("{hash}: {other:?}"),
        }
    }
}

#[test]
fn failed_transaction_has_no_effects() {
    let hash = "0x82e32499ae916caa2e66ac09fb50e9dd00db394ce27e4bd94c00ecf5a2e875fd";
    let failed = |entry: &Value| match decode_json(&chain::rules(), entry).unwrap() {
        Transaction::Failed(failure) => failure,
        found => panic!("{found:?}"),
    };
    let failure = failed(entry(hash));
    assert_eq!(failure.block, chain::block(22));
    assert!(failure.references.is_empty(), "four bytes name no order");
    // Whose it was and what it was for is known all the same.
    let order = format!("0x{}", "7e".repeat(32));
    let mut named = entry(hash).clone();
    named["transaction"]["input"] = format!("0xdeadbeef{}", &order[2..]).into();
    let failure = failed(&named);
    assert_eq!(failure.references, [order.as_str().into()]);
    assert!(failure.outer_call.is_some());
}

#[test]
fn direct_payment_is_the_value_of_the_transaction() {
    let receipt = decode("0x6ae56d4e188dcc612364ea374a6f181c7a6e18ff755a4d70ca5db48c66d29731");
    let order = "0x35d7b5c459559158bbf70d3d95bdc5ed274d5f4c91bb41a3e456a2982f8b0f48";
    assert_eq!(receipt.references, [order.into()]);
    let [payment] = receipt.payments.as_slice() else {
        panic!("{:?}", receipt.payments);
    };
    assert_eq!(
        payment.kind,
        PaymentKind::Direct {
            order: order.parse().unwrap()
        }
    );
    assert_eq!(payment.recipient, address(RECIPIENT));
    assert_eq!(payment.currency, address(NATIVE));
    assert!(payment.amount >= U256::from(900));
}

#[test]
fn router_payment_names_its_emitter() {
    let receipt = decode("0xa36da14ea8e2dc503bc7a8808acc381570d81dcd58b7463e5fb9b06c4ccca803");
    let payment = receipt
        .payments
        .iter()
        .find(|p| matches!(p.kind, PaymentKind::Router(_)))
        .unwrap();
    assert_eq!(payment.kind, PaymentKind::Router(address(ROUTER)));
    assert_eq!(payment.recipient, address(RECIPIENT));
    assert_eq!(payment.currency, address(NATIVE));
}

#[test]
fn token_payment_is_the_tokens_own_transfer() {
    let receipt = decode("0xf0cff73c642c44581167088aa0792cea75f75de5b5e9ab4d852a7dfe02a6112c");
    let payment = receipt
        .payments
        .iter()
        .find(|p| p.kind == PaymentKind::Transfer)
        .unwrap();
    assert_eq!(payment.currency, address(TOKEN));
    assert_eq!(payment.recipient, address(RECIPIENT));
}

#[test]
fn payment_indexes_are_unique() {
    let rules = chain::rules();
    for entry in WORLD["transactions"].as_array().unwrap() {
        if let Ok(Transaction::Succeeded(receipt)) = decode_json(&rules, entry) {
            let mut indexes: Vec<u32> = receipt.payments.iter().map(|p| p.index).collect();
            indexes.sort_unstable();
            indexes.dedup();
            assert_eq!(indexes.len(), receipt.payments.len());
        }
    }
}

#[test]
fn router_calls_keep_their_order() {
    let receipt = decode("0x98b1ccdaef2a76ab018a69bceb7eb642633d22090ba332e9fd0e05b4e85fb1ef");
    let called: Vec<&str> = receipt.calls.iter().map(|call| call.to.text()).collect();
    assert_eq!(
        called,
        [TOKEN, "0x3333333333333333333333333333333333333333"]
    );
    assert!(
        receipt
            .calls
            .iter()
            .all(|call| call.router == address(ROUTER))
    );
    assert_eq!(receipt.calls[1].data.as_ref(), [0x12, 0x34]);
    assert_eq!(receipt.calls[1].value, U256::from(7));
}

#[test]
fn executed_withdrawal_is_named_by_its_depository() {
    let receipt = decode("0x7faba8e60ee48af3c94eada4296fb2155f09d15b3b774a92fe441cd090c89f67");
    let [execution] = receipt.executions.as_slice() else {
        panic!("{:?}", receipt.executions);
    };
    assert_eq!(execution.depository, address(DEPOSITORY));
    let id = "0x5d84522b04ef11cead29e3a6394b3a099d9d3fd55ddcdb1f696a685bd7833677";
    assert_eq!(execution.id, id.parse::<vm::B256>().unwrap());
    assert!(receipt.deposits.unwrap().is_empty());
}
