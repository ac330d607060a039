//! Answers that contradict themselves, or keep silent about what has to be read.

use serde_json::{Value, json};
use vm::{
    ReadError,
    solana::{executed::Doubt, raw::RawTransaction},
};

use super::build::{SIGNATURE, Tx, decoded, key, vault};

fn honest() -> Value {
    let user = key(1);
    let tx = Tx::by(&[user])
        .depositing(user, 100, 9)
        .memo("hello", &[])
        .lamports(vault(), 0, 100);
    tx.shown(&SIGNATURE, 5)
}

/// Why an answer with `value` at `path` shows no transaction.
fn with(path: &str, value: Value) -> Doubt {
    let mut shown = honest();
    *shown.pointer_mut(path).unwrap() = value;
    decoded(shown).expect_err(path)
}

#[test]
fn contradictions_are_doubtful() {
    decoded(honest()).unwrap();
    let other = bs58::encode([8; 64]).into_string();
    let message = "/transaction/message";
    let keys = &honest()["transaction"]["message"]["accountKeys"];
    let cases = [
        ("/transaction/signatures/0".to_owned(), json!(other)),
        ("/transaction/signatures".to_owned(), json!([])),
        (format!("{message}/header/numRequiredSignatures"), json!(2)),
        (format!("{message}/header/numRequiredSignatures"), json!(0)),
        (format!("{message}/accountKeys/2"), keys[1].clone()),
        (
            format!("{message}/instructions/0/programIdIndex"),
            json!(99),
        ),
        (format!("{message}/instructions/0/accounts/0"), json!(99)),
        (
            "/meta/loadedAddresses/writable".to_owned(),
            json!([keys[0]]),
        ),
        ("/meta/preBalances".to_owned(), json!([1])),
        ("/meta/preBalances".to_owned(), json!(vec![1; 99])),
        ("/blockTime".to_owned(), json!(-1)),
        (
            "/meta/innerInstructions".to_owned(),
            json!([{"index": 2, "instructions": []}]),
        ),
        (
            "/meta/innerInstructions".to_owned(),
            json!([{"index": 1, "instructions": []}, {"index": 0, "instructions": []}]),
        ),
        ("/meta/postTokenBalances".to_owned(), json!([held(99, "1")])),
        (
            "/meta/postTokenBalances".to_owned(),
            json!([held(1, "1"), held(1, "2")]),
        ),
        ("/meta/postTokenBalances".to_owned(), json!([held(1, "-1")])),
        (
            "/meta/postTokenBalances".to_owned(),
            json!([held(1, "1.5")]),
        ),
        (
            "/meta/postTokenBalances".to_owned(),
            json!([held(1, "18446744073709551616")]),
        ),
    ];
    for (path, value) in cases {
        let doubt = with(&path, value.clone());
        assert!(matches!(doubt, Doubt::Contradiction(_)), "{path} {value}");
        assert!(matches!(ReadError::from(doubt), ReadError::Doubtful(_)));
    }
}

fn held(account: u8, amount: &str) -> Value {
    json!({
        "accountIndex": account, "mint": key(0x70).to_string(), "owner": key(2).to_string(),
        "uiTokenAmount": {"amount": amount, "decimals": 0},
    })
}

#[test]
fn what_a_node_does_not_keep_is_no_contradiction() {
    for path in [
        "/meta",
        "/meta/innerInstructions",
        "/meta/preTokenBalances",
        "/meta/postTokenBalances",
    ] {
        let doubt = with(path, Value::Null);
        assert!(matches!(doubt, Doubt::Incomplete(_)), "{path}");
        assert!(matches!(ReadError::from(doubt), ReadError::Unavailable(_)));
    }
}

#[test]
fn answers_of_another_form_are_not_read() {
    let read = |path: &str, value: Option<Value>| {
        let mut shown = honest();
        let (parent, name) = path.rsplit_once('/').unwrap();
        let parent = shown.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Some(value) => parent.insert(name.to_owned(), value),
            None => parent.remove(name),
        };
        serde_json::from_value::<RawTransaction>(shown).is_ok()
    };
    // A transaction of which nobody says that it failed has not succeeded.
    assert!(!read("/meta/err", None));
    assert!(read("/meta/err", Some(Value::Null)));
    let message = "/transaction/message";
    for (path, value) in [
        ("/slot".to_owned(), json!("5")),
        ("/slot".to_owned(), json!(-5)),
        ("/slot".to_owned(), json!(1.5)),
        ("/meta/preBalances".to_owned(), json!([-1])),
        ("/meta/preBalances".to_owned(), json!([1e3])),
        ("/meta/postBalances".to_owned(), json!(null)),
        (format!("{message}/accountKeys"), json!(["1111"])),
        (format!("{message}/accountKeys"), json!(["0".repeat(44)])),
        (
            format!("{message}/accountKeys"),
            json!([{"pubkey": key(1).to_string()}]),
        ),
        (
            format!("{message}/instructions"),
            json!([{"programIdIndex": 256, "accounts": [], "data": ""}]),
        ),
        (
            format!("{message}/instructions"),
            json!([{"programIdIndex": 0, "accounts": [], "data": "0OIl"}]),
        ),
    ] {
        assert!(!read(&path, Some(value.clone())), "{path} {value}");
    }
}

/// Programs can give each other more than a transaction holds; nothing is made of it.
#[test]
fn data_that_no_transaction_holds_are_left_out() {
    let mut shown = honest();
    let deposit = bs58::encode([super::build::deposit_native(100, 9), vec![0; 1_400]].concat());
    shown["transaction"]["message"]["instructions"][0]["data"] = json!(deposit.into_string());
    let vm::Transaction::Succeeded(receipt) = decoded(shown).unwrap() else {
        panic!("it succeeded")
    };
    assert!(receipt.deposits.unwrap().is_empty());
}

/// To decode takes work that grows with the square of the length: there is little of it, and none before the number of
/// instructions is known.
#[test]
fn an_answer_of_long_data_is_quickly_judged() {
    let mut shown = honest();
    let message = shown.pointer_mut("/transaction/message").unwrap();
    let mut long = message["instructions"][0].clone();
    long["data"] = json!("z".repeat(1_800));
    message["instructions"] = json!(vec![long; 2_000]);
    let started = std::time::Instant::now();
    assert!(matches!(decoded(shown), Err(Doubt::Contradiction(_))));
    assert!(started.elapsed() < std::time::Duration::from_secs(2));
    // A transfer with far more behind it than a transfer has is not read.
    let user = key(1);
    let data = [super::build::system_transfer(100), vec![0; 300]].concat();
    let tx = Tx::by(&[user])
        .with(vm::solana::programs::SYSTEM, &[user, vault()], data)
        .lamports(vault(), 0, 100);
    assert_eq!(tx.deposits(), Ok(vec![]));
}

/// The recorded answers of the reference have no balances: there the depository's instruction counts by itself, as it
/// cannot on a real chain, where whoever pays the fee has a balance.
#[test]
fn an_answer_without_any_balance_proves_nothing_against_a_deposit() {
    let count = honest()["meta"]["preBalances"].as_array().unwrap().len();
    let mut shown = honest();
    shown["meta"]["preBalances"] = json!(vec![0; count]);
    shown["meta"]["postBalances"] = json!(vec![0; count]);
    let vm::Transaction::Succeeded(receipt) = decoded(shown.clone()).unwrap() else {
        panic!("it succeeded")
    };
    assert_eq!(receipt.deposits.unwrap().len(), 1);
    // One balance is enough to have them all.
    shown["meta"]["postBalances"][0] = json!(1);
    let vm::Transaction::Succeeded(receipt) = decoded(shown).unwrap() else {
        panic!("it succeeded")
    };
    assert!(receipt.deposits.is_err());
}
