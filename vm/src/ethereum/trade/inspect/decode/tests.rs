use alloy::primitives::{B256, U256};
use serde_json::{Value, json};

use super::*;
use crate::{ChainId, ChainSpec, Finality, types::Address};

const HASH: B256 = B256::repeat_byte(7);
const FROM: EvmAddress = EvmAddress::repeat_byte(1);
const TO: EvmAddress = EvmAddress::repeat_byte(2);
const OTHER: EvmAddress = EvmAddress::repeat_byte(3);
const TOKEN: EvmAddress = EvmAddress::repeat_byte(9);
const NOBODY: EvmAddress = EvmAddress::ZERO;

fn rules(additional: &Value) -> Rules {
    let spec = ChainSpec {
        id: ChainId::new("ethereum"),
        family: &crate::ethereum::FAMILY,
        hub_chain_id: U256::ONE,
        depository: None,
        additional_depositories: Vec::new(),
        finality: Finality {
            blocks: 1,
            seconds: 0,
            tag: None,
        },
        watch_blocks: 1,
        fill_routers: crate::FillRouters::Any,
        additional: additional.as_object().unwrap().clone(),
    };
    Rules::new(&spec).unwrap()
}

fn block() -> Block {
    Block {
        number: 5,
        hash: B256::repeat_byte(5),
        parent: B256::repeat_byte(4),
        time: 1_700_000_000,
    }
}

fn word(address: EvmAddress) -> B256 {
    address.into_word()
}

fn amount(amount: u64) -> B256 {
    U256::from(amount).into()
}

/// A `Transfer` of `token`.
fn transfer(token: EvmAddress, from: EvmAddress, to: EvmAddress, amount: B256) -> Value {
    json!({"address": token, "topics": [event::TRANSFER, word(from), word(to)], "data": amount})
}

/// What a node says: value 100 from [`FROM`] to [`TO`], with these logs.
struct NodeAnswers {
    receipt: Value,
    transaction: Value,
}

fn answers(logs: Vec<Value>) -> NodeAnswers {
    let mut index = 0;
    let logs = logs.into_iter().map(|mut log| {
        index += 1;
        log["blockHash"] = json!(block().hash);
        log["transactionHash"] = json!(HASH);
        log["logIndex"] = json!(format!("{index:#x}"));
        log
    });
    NodeAnswers {
        receipt: json!({
            "transactionHash": HASH, "blockHash": block().hash, "blockNumber": "0x5",
            "status": "0x1", "logs": logs.collect::<Vec<_>>(),
            "gasUsed": "0x5208", "effectiveGasPrice": "0xa",
        }),
        transaction: json!({
            "hash": HASH, "blockHash": block().hash, "blockNumber": "0x5",
            "from": FROM, "to": TO, "value": "0x64", "input": "0x1234", "gasPrice": "0x14",
        }),
    }
}

fn read_by(rules: &Rules, answers: &NodeAnswers) -> Result<Option<TxDetails>, Doubt> {
    read_with(rules, answers, None)
}

fn read_with(
    rules: &Rules,
    answers: &NodeAnswers,
    trace: Option<&Frame>,
) -> Result<Option<TxDetails>, Doubt> {
    let of = |value: &Value| value.to_string();
    let (receipt, transaction) = (of(&answers.receipt), of(&answers.transaction));
    let mined = Mined::join(
        &HASH,
        serde_json::from_str(&receipt).unwrap(),
        serde_json::from_str(&transaction).unwrap(),
    )?;
    let Some(mined) = mined else {
        return Ok(None);
    };
    let paid = serde_json::from_str(&receipt).unwrap();
    let cost = Cost::new(paid, serde_json::from_str(&transaction).unwrap())?;
    inspect(rules, mined, cost, &block(), trace).map(Some)
}

fn read(answers: &NodeAnswers) -> TxDetails {
    read_by(&rules(&json!({})), answers).unwrap().unwrap()
}

fn address(evm: EvmAddress) -> Address {
    Address::from_parts(&format!("{evm:#x}"), evm.0)
}

/// Changes as `(account, currency, diff)`; `-` before what was given.
fn changes(details: &TxDetails) -> Vec<(Address, Address, String)> {
    let line = |change: &Change| {
        let sign = if change.diff.negative { "-" } else { "" };
        let diff = format!("{sign}{}", change.diff.amount);
        (change.address.clone(), change.currency.clone(), diff)
    };
    details.changes.iter().map(line).collect()
}

fn line(account: EvmAddress, currency: EvmAddress, diff: &str) -> (Address, Address, String) {
    (address(account), address(currency), diff.into())
}

fn value_moved() -> [(Address, Address, String); 2] {
    [line(FROM, NOBODY, "-100"), line(TO, NOBODY, "100")]
}

#[test]
fn a_transaction_is_shown_in_full() {
    let details = read(&answers(Vec::new()));
    assert_eq!(
        details,
        TxDetails {
            from: address(FROM),
            to: Some(address(TO)),
            data: Some(vec![0x12, 0x34].into()),
            value: U256::from(100),
            fee: U256::from(210_000),
            block: block(),
            success: true,
            changes: details.changes.clone(),
        }
    );
    assert_eq!(changes(&details), value_moved());
}

fn call(kind: &str, from: EvmAddress, to: EvmAddress, value: &str) -> Value {
    json!({"type": kind, "from": from, "to": to, "value": value, "gas": "0x1", "input": "0x"})
}

/// [`answers`], with `calls` within it.
fn traced(calls: Vec<Value>) -> Value {
    let mut trace = call("CALL", FROM, TO, "0x64");
    trace["calls"] = calls.into();
    trace
}

fn read_traced(answers: &NodeAnswers, trace: &Value) -> Vec<(Address, Address, String)> {
    let trace: Frame = serde_json::from_str(&trace.to_string()).unwrap();
    let details = read_with(&rules(&json!({})), answers, Some(&trace));
    changes(&details.unwrap().unwrap())
}

#[test]
fn native_currency_that_contracts_pass_on_is_seen_in_a_trace() {
    let mut inner = call("CALL", TO, OTHER, "0x1e");
    inner["calls"] = json!([
        call("CALL", OTHER, TOKEN, "0x5"),
        // These move nothing, whatever value they name.
        call("DELEGATECALL", OTHER, NOBODY, "0x7"),
        call("CALLCODE", OTHER, NOBODY, "0x7"),
        json!({"type": "STATICCALL", "from": OTHER, "to": TOKEN}),
    ]);
    let mut failed = call("CALL", TO, OTHER, "0x9");
    failed["error"] = json!("execution reverted");
    failed["calls"] = json!([call("CALL", OTHER, TOKEN, "0x9")]);
    let created = call("CREATE2", TO, EvmAddress::repeat_byte(4), "0x2");
    let destroyed = call("SELFDESTRUCT", EvmAddress::repeat_byte(4), OTHER, "0x2");
    let trace = traced(vec![inner, failed, created, destroyed]);
    let logs = vec![transfer(TOKEN, FROM, TO, amount(1))];
    let wanted = [
        line(FROM, NOBODY, "-100"),
        line(TO, NOBODY, "68"),
        line(OTHER, NOBODY, "27"),
        line(TOKEN, NOBODY, "5"),
        line(FROM, TOKEN, "-1"),
        line(TO, TOKEN, "1"),
    ];
    assert_eq!(read_traced(&answers(logs), &trace), wanted);
}

#[test]
fn the_trace_of_something_else_counts_for_none() {
    let paid = || vec![call("CALL", TO, OTHER, "0x1e")];
    let lies: [fn(&mut Value); 4] = [
        |trace| trace["from"] = json!(OTHER),
        |trace| trace["to"] = json!(OTHER),
        |trace| trace["value"] = json!("0x65"),
        |trace| trace["error"] = json!("out of gas"),
    ];
    for (at, lie) in lies.into_iter().enumerate() {
        let mut trace = traced(paid());
        lie(&mut trace);
        assert_eq!(
            read_traced(&answers(Vec::new()), &trace),
            value_moved(),
            "{at}"
        );
    }
    let mut failed = answers(Vec::new());
    failed.receipt["status"] = json!("0x0");
    assert_eq!(read_traced(&failed, &traced(paid())), []);
    // A contract that is created is somebody there.
    let mut creating = answers(Vec::new());
    creating.transaction["to"] = Value::Null;
    let trace = call("CREATE", FROM, OTHER, "0x64");
    let wanted = [line(FROM, NOBODY, "-100"), line(OTHER, NOBODY, "100")];
    assert_eq!(read_traced(&creating, &trace), wanted);
}

#[test]
fn only_code_is_asked_for_a_trace() {
    let mined = |change: fn(&mut NodeAnswers)| {
        let mut answers = answers(Vec::new());
        answers.transaction["input"] = json!("0x");
        change(&mut answers);
        let [receipt, transaction] = [&answers.receipt, &answers.transaction].map(Value::to_string);
        let receipt = serde_json::from_str(&receipt).unwrap();
        let transaction = serde_json::from_str(&transaction).unwrap();
        Mined::join(&HASH, receipt, transaction).unwrap().unwrap()
    };
    assert!(!ran(&mined(|_| ())));
    assert!(ran(&mined(
        |answers| answers.transaction["input"] = json!("0x12")
    )));
    assert!(ran(&mined(
        |answers| answers.transaction["to"] = Value::Null
    )));
    assert!(ran(&mined(|answers| {
        let log = transfer(TOKEN, FROM, TO, amount(1));
        *answers = self::answers(vec![log]);
        answers.transaction["input"] = json!("0x");
    })));
}

#[test]
fn transfers_are_netted_in_the_order_in_which_they_moved() {
    let details = read(&answers(vec![
        transfer(TOKEN, FROM, OTHER, amount(30)),
        transfer(TOKEN, OTHER, TO, amount(30)),
        transfer(TOKEN, TO, FROM, amount(10)),
        transfer(OTHER, FROM, FROM, amount(7)),
        transfer(OTHER, NOBODY, TO, amount(5)),
        transfer(OTHER, TO, NOBODY, amount(1)),
    ]));
    let changes = changes(&details);
    assert_eq!(changes[..2], value_moved());
    let tokens = [
        line(FROM, TOKEN, "-20"),
        line(TO, TOKEN, "20"),
        line(TO, OTHER, "4"),
    ];
    assert_eq!(changes[2..], tokens);
}

#[test]
fn logs_that_are_no_erc20_transfers_move_nothing() {
    let good = transfer(TOKEN, FROM, TO, amount(1));
    let with = |change: &dyn Fn(&mut Value)| {
        let mut log = good.clone();
        change(&mut log);
        log
    };
    let bad = vec![
        // ERC-721: the id is indexed.
        with(&|log| {
            log["topics"].as_array_mut().unwrap().push(json!(amount(1)));
            log["data"] = json!("0x");
        }),
        with(&|log| log["topics"] = json!([event::TRANSFER, word(FROM)])),
        with(&|log| log["topics"] = json!([])),
        with(&|log| log["topics"][0] = json!(event::NATIVE_DEPOSIT)),
        with(&|log| log["topics"][1] = json!(B256::repeat_byte(1))),
        with(&|log| log["data"] = json!("0x")),
        with(&|log| log["data"] = json!(format!("{}00", amount(1)))),
        with(&|log| log["address"] = json!(NOBODY)),
    ];
    for log in bad {
        let details = read(&answers(vec![log.clone()]));
        assert_eq!(changes(&details), value_moved(), "{log}");
    }
}

#[test]
fn what_fits_no_amount_is_no_change() {
    let most = B256::from(U256::MAX);
    let twice = vec![
        transfer(TOKEN, NOBODY, TO, most),
        transfer(TOKEN, NOBODY, TO, most),
    ];
    assert_eq!(changes(&read(&answers(twice.clone()))), value_moved());
    let back = [twice, vec![transfer(TOKEN, TO, OTHER, most)]].concat();
    let whole = U256::MAX.to_string();
    let expected = [line(TO, TOKEN, &whole), line(OTHER, TOKEN, &whole)];
    assert_eq!(changes(&read(&answers(back)))[2..], expected);
}

#[test]
fn a_failed_transaction_pays_and_changes_nothing() {
    let mut answers = answers(vec![transfer(TOKEN, FROM, TO, amount(1))]);
    answers.receipt["status"] = json!("0x0");
    let details = read(&answers);
    assert!(!details.success && details.changes.is_empty());
    assert_eq!(details.fee, U256::from(210_000));
    assert_eq!(details.value, U256::from(100));
}

#[test]
fn a_created_contract_is_nobody_yet() {
    let mut answers = answers(Vec::new());
    answers.transaction["to"] = Value::Null;
    let details = read(&answers);
    assert_eq!(details.to, None);
    assert_eq!(changes(&details), [line(FROM, NOBODY, "-100")]);
}

#[test]
fn fees_are_what_the_receipt_says() {
    for (field, value, fee) in [
        ("l1Fee", json!("0x5"), Some(210_005)),
        ("l1Fee", Value::Null, Some(210_000)),
        // The transaction's own price.
        ("effectiveGasPrice", Value::Null, Some(420_000)),
        ("gasUsed", Value::Null, None),
        ("gasUsed", json!(U256::MAX), None),
    ] {
        let mut answers = answers(Vec::new());
        answers.receipt[field] = value.clone();
        let found = read_by(&rules(&json!({})), &answers).map(|found| found.unwrap().fee);
        assert_eq!(found.ok(), fee.map(U256::from), "{field} {value}");
    }
    let mut priceless = answers(Vec::new());
    priceless.receipt["effectiveGasPrice"] = Value::Null;
    priceless.transaction["gasPrice"] = Value::Null;
    assert!(read_by(&rules(&json!({})), &priceless).is_err());
}

#[test]
fn answers_of_two_stories_are_refused() {
    let other = B256::repeat_byte(0xee);
    let lies: [fn(&mut NodeAnswers, B256); 7] = [
        |answers, other| answers.receipt["transactionHash"] = json!(other),
        |answers, other| answers.transaction["hash"] = json!(other),
        |answers, other| answers.transaction["blockHash"] = json!(other),
        |answers, _| answers.transaction["blockNumber"] = json!("0x6"),
        |answers, _| answers.receipt = Value::Null,
        |answers, _| answers.transaction = Value::Null,
        |answers, other| {
            answers.receipt["blockHash"] = json!(other);
            answers.transaction["blockHash"] = json!(other);
        },
    ];
    for (at, lie) in lies.into_iter().enumerate() {
        let mut answers = answers(Vec::new());
        lie(&mut answers, other);
        assert!(read_by(&rules(&json!({})), &answers).is_err(), "{at}");
    }
    let mut foreign = answers(vec![transfer(TOKEN, FROM, TO, amount(1))]);
    foreign.receipt["logs"][0]["transactionHash"] = json!(other);
    assert!(read_by(&rules(&json!({})), &foreign).is_err());
    let mut waiting = answers(Vec::new());
    waiting.receipt = Value::Null;
    waiting.transaction["blockHash"] = Value::Null;
    waiting.transaction["blockNumber"] = Value::Null;
    assert_eq!(read_by(&rules(&json!({})), &waiting), Ok(None));
}

#[test]
fn large_calldata_and_many_changes_are_bounded() {
    let mut answers = answers(Vec::new());
    let input = |bytes: usize| json!(format!("0x{}", "ab".repeat(bytes)));
    answers.transaction["input"] = input(TxDetails::MOST_DATA);
    let data = read(&answers).data.unwrap();
    assert_eq!(data.len(), TxDetails::MOST_DATA);
    answers.transaction["input"] = input(TxDetails::MOST_DATA + 1);
    assert_eq!(read(&answers).data, None);

    let account = |number: usize| EvmAddress::left_padding_from(&(number + 1000).to_be_bytes());
    let payouts = (0..TxDetails::MOST_CHANGES + 9)
        .map(|number| transfer(TOKEN, OTHER, account(number), amount(1)));
    let details = read(&self::answers(payouts.collect()));
    assert_eq!(details.changes.len(), TxDetails::MOST_CHANGES);
    let last = &details.changes[TxDetails::MOST_CHANGES - 1].address;
    assert_eq!(*last, address(account(TxDetails::MOST_CHANGES - 4)));
}

#[test]
fn the_base_token_of_the_zksync_stack_tells_of_value_a_second_time() {
    let base = EvmAddress::left_padding_from(&[0x80, 0x0a]);
    let answers = answers(vec![transfer(base, FROM, TO, amount(100))]);
    let zksync = rules(&json!({"isZksyncStack": true}));
    let details = read_by(&zksync, &answers).unwrap().unwrap();
    assert_eq!(changes(&details), value_moved());
    assert_eq!(read(&answers).changes.len(), 4);
}
