//! Logs and calldata that only look like deposits or payments (guide: protocol 12.3).

use proptest::prelude::*;
use serde_json::{Value, json};
use vm::{
    Block, Deposit, PaymentKind, Receipt, Refusal, Transaction, U256,
    ethereum::{
        decode::{self, Mined, Rules},
        raw::{RawHeader, RawReceipt, RawTransaction},
    },
};

use super::chain::{self, DEPOSITORY, TOKEN, address, decode_json};
use crate::odd;

const USER: &str = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";
const OTHER: &str = "0x00000000000000000000000000000000000000ee";
const SECOND: &str = "0x00000000000000000000000000000000000000dd";
const RECIPIENT: &str = "0x1111111111111111111111111111111111111111";
const WORTHLESS: &str = "0x00000000000000000000000000000000000000bb";
const NATIVE_TOPIC: &str = "0x8032066556caf3967d8fec4ad22a2d9e1e9576556b2903a0fcd5b1fd201e3477";
const ERC20_TOPIC: &str = "0x49fed1d0b752ce30eee63c7a81133f3363b532fec5d4d7dd1ccfd005de4555e1";
const TRANSFER_TOPIC: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const EXECUTED_TOPIC: &str = "0x4be109453ef7e895dc7215c929fff9b76b51483d56a4d04548b4866e9aa7c5ea";
const HASH: &str = "0x7777777777777777777777777777777777777777777777777777777777777777";
const ID: &str = "b6d722041aaff41e734b66e45ebc28c32013821d68d90d6f18c8cb79d533c454";
const ZERO: &str = "0x0000000000000000000000000000000000000000000000000000000000000000";

fn word(text: &str) -> String {
    format!("{:0>64}", text.trim_start_matches("0x"))
}

fn number(amount: u64) -> String {
    format!("{amount:064x}")
}

fn topic(text: &str) -> String {
    format!("0x{}", word(text))
}

/// A log before its place in a receipt is known.
fn log(emitter: &str, topics: &[&str], words: &[String]) -> Value {
    json!({"address": emitter, "topics": topics, "data": format!("0x{}", words.concat())})
}

fn native(amount: u64) -> Value {
    let words = [word(USER), number(amount), ID.into()];
    log(DEPOSITORY, &[NATIVE_TOPIC], &words)
}

fn erc20(depositor: &str, token: &str, amount: u64, id: &str) -> Value {
    let words = [word(depositor), word(token), number(amount), id.into()];
    log(DEPOSITORY, &[ERC20_TOPIC], &words)
}

fn transfer(token: &str, from: &str, to: &str, amount: u64) -> Value {
    let topics = [TRANSFER_TOPIC, &topic(from), &topic(to)];
    log(token, &topics, &[number(amount)])
}

fn executed(to: &str) -> Value {
    let words = [
        ID.into(),
        number(0x40),
        word(to),
        number(0x80),
        number(0),
        number(0),
        number(0),
    ];
    log(DEPOSITORY, &[EXECUTED_TOPIC], &words)
}

/// A transaction in block 20 with these logs and this calldata.
fn entry(logs: &[Value], input: &str) -> Value {
    let block = chain::header(20).unwrap();
    let mut placed = logs.to_vec();
    for (index, log) in placed.iter_mut().enumerate() {
        log["logIndex"] = json!(format!("{:#x}", index * 2));
        log["blockHash"] = block["hash"].clone();
        log["transactionHash"] = json!(HASH);
        log["removed"] = json!(false);
    }
    json!({
        "receipt": {
            "transactionHash": HASH, "blockHash": block["hash"], "blockNumber": "0x14",
            "status": "0x1", "logs": placed,
        },
        "transaction": {
            "hash": HASH, "blockHash": block["hash"], "blockNumber": "0x14",
            "from": USER, "to": OTHER, "value": "0x63", "input": input,
        },
    })
}

fn receipt_by(rules: &Rules, logs: &[Value], input: &str) -> Receipt {
    match decode_json(rules, &entry(logs, input)) {
        Ok(Transaction::Succeeded(receipt)) => receipt,
        other => panic!("{other:?}"),
    }
}

fn deposits(logs: &[Value]) -> Result<Vec<Deposit>, Refusal> {
    receipt_by(&chain::rules(), logs, "0x").deposits
}

/// Depositor, currency, amount and whether the id is [`ID`].
fn summary(logs: &[Value]) -> Vec<(String, String, u64, bool)> {
    deposits(logs)
        .unwrap()
        .iter()
        .map(|deposit| {
            let amount = u64::try_from(deposit.amount).unwrap();
            let (depositor, currency) = (deposit.depositor.text(), deposit.currency.text());
            let named = *deposit.id == format!("0x{ID}");
            (depositor.to_owned(), currency.to_owned(), amount, named)
        })
        .collect()
}

#[test]
fn foreign_and_reshaped_events_are_no_deposits() {
    let mut elsewhere = native(5);
    elsewhere["address"] = json!(OTHER);
    let mut second = native(5);
    second["address"] = json!(SECOND);
    let four_topics = log(
        TOKEN,
        &[
            TRANSFER_TOPIC,
            &topic(USER),
            &topic(DEPOSITORY),
            &topic("0x05"),
        ],
        &[],
    );
    let unindexed = log(
        TOKEN,
        &[TRANSFER_TOPIC],
        &[word(USER), word(DEPOSITORY), number(5)],
    );
    let long = log(
        TOKEN,
        &[TRANSFER_TOPIC, &topic(USER), &topic(DEPOSITORY)],
        &[number(5), number(5)],
    );
    let dirty_topic = format!("0xff{}", &topic(DEPOSITORY)[4..]);
    let dirty = log(
        TOKEN,
        &[TRANSFER_TOPIC, &topic(USER), &dirty_topic],
        &[number(5)],
    );
    let zero_token = transfer(&ZERO[..42], USER, DEPOSITORY, 5);
    let anonymous = log(DEPOSITORY, &[], &[number(5)]);
    for (name, log) in [
        ("another emitter", elsewhere),
        ("additional depository", second),
        ("ERC-721", four_topics),
        ("without indexes", unindexed),
        ("extra data", long),
        ("dirty address", dirty),
        ("zero token", zero_token),
        ("no topics", anonymous),
        ("to somebody else", transfer(TOKEN, USER, OTHER, 5)),
        (
            "depository to itself",
            transfer(TOKEN, DEPOSITORY, DEPOSITORY, 5),
        ),
        ("event alone", erc20(USER, TOKEN, 5, ID)),
        ("event for the zero token", erc20(USER, &ZERO[..42], 5, ID)),
    ] {
        assert_eq!(deposits(&[log]), Ok(vec![]), "{name}");
    }
}

#[test]
fn depository_event_in_another_shape_is_refused() {
    let short = log(DEPOSITORY, &[NATIVE_TOPIC], &[word(USER), number(5)]);
    let indexed = log(
        DEPOSITORY,
        &[NATIVE_TOPIC, &topic(USER)],
        &[number(5), ID.into()],
    );
    let dirty = log(
        DEPOSITORY,
        &[NATIVE_TOPIC],
        &["f".repeat(64), number(5), ID.into()],
    );
    let cut = log(DEPOSITORY, &[EXECUTED_TOPIC], &[ID.into()]);
    for log in [short, indexed, dirty, cut] {
        assert!(deposits(std::slice::from_ref(&log)).is_err(), "{log}");
        assert!(deposits(&[native(5), log]).is_err());
    }
}

#[test]
fn depository_calling_itself_is_refused() {
    assert!(deposits(&[native(5), executed(DEPOSITORY)]).is_err());
    assert_eq!(deposits(&[native(5), executed(OTHER)]).unwrap().len(), 1);
}

#[test]
fn event_names_the_transfer_before_it() {
    let named = [
        transfer(TOKEN, OTHER, DEPOSITORY, 5),
        erc20(USER, TOKEN, 5, ID),
    ];
    assert_eq!(summary(&named), [(USER.into(), TOKEN.into(), 5, true)]);
    for (name, event) in [
        ("another amount", erc20(USER, TOKEN, 6, ID)),
        ("another token", erc20(USER, OTHER, 5, ID)),
    ] {
        let found = summary(&[named[0].clone(), event]);
        assert_eq!(found, [(OTHER.into(), TOKEN.into(), 5, false)], "{name}");
    }
    let mut forged = named[1].clone();
    forged["address"] = json!(OTHER);
    let found = summary(&[named[0].clone(), forged]);
    assert_eq!(found, [(OTHER.into(), TOKEN.into(), 5, false)]);
    let reversed = [named[1].clone(), named[0].clone()];
    assert_eq!(summary(&reversed), [(OTHER.into(), TOKEN.into(), 5, false)]);
}

#[test]
fn event_names_one_transfer_only() {
    let pull = || transfer(TOKEN, OTHER, DEPOSITORY, 5);
    let found = summary(&[pull(), pull(), erc20(USER, TOKEN, 5, ID)]);
    let expected = [
        (OTHER.into(), TOKEN.into(), 5, false),
        (USER.into(), TOKEN.into(), 5, true),
    ];
    assert_eq!(found, expected);
}

/// Index, depositor, amount, and whether the id is [`ID`].
type Expected<'a> = &'a [(u32, &'a str, u64, bool)];

fn pull() -> Value {
    transfer(TOKEN, OTHER, DEPOSITORY, 5)
}

fn honest() -> Value {
    erc20(USER, TOKEN, 5, ID)
}

fn check(cases: &[(&str, Vec<Value>, Expected<'_>)]) {
    for (name, logs, expected) in cases {
        let found = deposits(logs).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|deposit| {
                let amount = u64::try_from(deposit.amount).unwrap();
                let named = *deposit.id == format!("0x{ID}");
                assert!(named || *deposit.id == *ZERO, "{name}");
                (deposit.index, deposit.depositor.text(), amount, named)
            })
            .collect();
        assert_eq!(found, *expected, "{name}");
    }
}

/// Whatever else stands in a transaction, an honest deposit in it keeps depositor, amount, id and
/// index.
#[test]
fn worthless_logs_change_no_other_deposit() {
    let nothing = || transfer(WORTHLESS, SECOND, DEPOSITORY, 0);
    let cases: &[(&str, Vec<Value>, Expected<'_>)] = &[
        (
            "nothing before",
            vec![nothing(), pull(), honest()],
            &[(0, SECOND, 0, false), (2, USER, 5, true)],
        ),
        (
            "nothing behind",
            vec![pull(), honest(), nothing()],
            &[(0, USER, 5, true), (4, SECOND, 0, false)],
        ),
        (
            // The other oracles do not look beyond it either.
            "nothing between a transfer and its event",
            vec![pull(), nothing(), honest()],
            &[(0, OTHER, 5, false), (2, SECOND, 0, false)],
        ),
        (
            "native deposit of nothing",
            vec![native(0), pull(), honest()],
            &[(0, USER, 0, true), (2, USER, 5, true)],
        ),
        (
            "worthless token",
            vec![transfer(WORTHLESS, SECOND, DEPOSITORY, 5), pull(), honest()],
            &[(0, SECOND, 5, false), (2, USER, 5, true)],
        ),
        (
            "event of a transfer that is missing",
            vec![pull(), honest(), erc20(SECOND, WORTHLESS, 9, ID), native(7)],
            &[(0, USER, 5, true), (6, USER, 7, true)],
        ),
    ];
    check(cases);
}

/// Nobody's money is deposited by somebody else.
#[test]
fn contradictory_claims_leave_a_transfer_to_its_payer() {
    let theirs = || erc20(SECOND, TOKEN, 5, &ID.replace('b', "c"));
    let cases: &[(&str, Vec<Value>, Expected<'_>)] = &[
        (
            "two claims on one transfer: its payer's, and the others stand",
            vec![native(7), pull(), honest(), theirs(), pull(), honest()],
            &[(0, USER, 7, true), (2, OTHER, 5, false), (8, USER, 5, true)],
        ),
        (
            "the same in the other order",
            vec![pull(), theirs(), honest()],
            &[(0, OTHER, 5, false)],
        ),
        (
            "one id claimed by two depositors",
            vec![pull(), honest(), erc20(SECOND, TOKEN, 5, ID)],
            &[(0, OTHER, 5, false)],
        ),
        (
            "an id taken back by a second event",
            vec![pull(), honest(), erc20(USER, TOKEN, 5, &ZERO[2..])],
            &[(0, OTHER, 5, false)],
        ),
        (
            "one claim made twice",
            vec![pull(), honest(), honest()],
            &[(0, USER, 5, true)],
        ),
        (
            // Money of the inner depositor never serves the outer one.
            "deposit inside of a deposit",
            vec![
                pull(),
                transfer(TOKEN, SECOND, DEPOSITORY, 5),
                theirs(),
                honest(),
            ],
            &[(0, OTHER, 5, false), (2, SECOND, 5, false)],
        ),
        (
            "claim of another amount or token in between",
            vec![
                pull(),
                erc20(SECOND, TOKEN, 6, ID),
                erc20(SECOND, WORTHLESS, 5, ID),
                honest(),
            ],
            &[(0, USER, 5, true)],
        ),
    ];
    check(cases);
}

#[test]
fn fee_on_transfer_is_credited_as_received() {
    let logs = [
        transfer(TOKEN, USER, OTHER, 5),
        transfer(TOKEN, USER, DEPOSITORY, 95),
        erc20(USER, TOKEN, 100, ID),
    ];
    assert_eq!(summary(&logs), [(USER.into(), TOKEN.into(), 95, false)]);
}

#[test]
fn native_and_token_deposits_stand_side_by_side() {
    let logs = [
        native(7),
        transfer(TOKEN, USER, DEPOSITORY, 5),
        native(8),
        erc20(USER, TOKEN, 5, ID),
    ];
    let found = deposits(&logs).unwrap();
    let amounts: Vec<U256> = found.iter().map(|deposit| deposit.amount).collect();
    assert_eq!(amounts, [7, 5, 8].map(U256::from));
    let indexes: Vec<u32> = found.iter().map(|deposit| deposit.index).collect();
    assert_eq!(indexes, [0, 2, 4]);
    assert_eq!(&*found[1].id, format!("0x{ID}"));
}

#[test]
fn amounts_are_exact_at_the_edges() {
    for amount in ["0".repeat(64), "f".repeat(64), word("0x20000000000001")] {
        let log = log(
            DEPOSITORY,
            &[NATIVE_TOPIC],
            &[word(USER), amount.clone(), ID.into()],
        );
        let found = deposits(&[log]).unwrap();
        assert_eq!(found[0].amount, U256::from_str_radix(&amount, 16).unwrap());
    }
}

#[test]
fn value_of_the_transaction_is_no_deposit() {
    assert_eq!(deposits(&[]), Ok(vec![]));
}

#[test]
fn calldata_names_a_bare_transfer() {
    let input =
        |amount: u64, tail: &str| format!("0xa9059cbb{}{}{tail}", word(DEPOSITORY), number(amount));
    let read = |logs: &[Value], input: &str| {
        let found = receipt_by(&chain::rules(), logs, input).deposits.unwrap();
        found.iter().map(|d| d.id.to_string()).collect::<Vec<_>>()
    };
    let pull = || transfer(TOKEN, USER, DEPOSITORY, 5);
    let named = format!("0x{ID}");
    assert_eq!(read(&[pull()], &input(5, ID)), std::slice::from_ref(&named));
    for (name, logs, input) in [
        ("other amount", vec![pull()], input(6, ID)),
        ("no id", vec![pull()], input(5, "")),
        ("padding", vec![pull()], input(5, &word("0x11"))),
        (
            "approve, not transfer",
            vec![pull()],
            input(5, ID).replace("a9059cbb", "095ea7b3"),
        ),
    ] {
        assert_eq!(read(&logs, &input), [ZERO], "{name}");
    }
    assert_eq!(read(&[pull(), pull()], &input(5, ID)), [ZERO, ZERO]);
    assert_eq!(
        read(&[native(5)], &input(5, ID)),
        std::slice::from_ref(&named)
    );
    // Calldata decides no dispute, and names nothing once there are two transfers, even of nothing.
    let claims = [("dd", ID), ("ee", &ZERO[2..])].map(|(by, id)| erc20(by, TOKEN, 5, id));
    let [first, second] = claims;
    assert_eq!(
        read(&[pull(), first, second.clone()], &input(5, ID)),
        [ZERO]
    );
    assert_eq!(read(&[pull(), second], &input(5, ID)), [named]);
    let nothing = transfer(OTHER, SECOND, DEPOSITORY, 0);
    assert_eq!(read(&[pull(), nothing], &input(5, ID)), [ZERO, ZERO]);
}

/// Anybody can deposit in another's name.
#[test]
fn a_deposit_is_its_depositors_own_if_the_depositor_sent_the_transaction() {
    let own = |logs: &[Value]| {
        let deposits = deposits(logs).unwrap();
        let own = deposits.iter().map(|deposit| deposit.by_depositor);
        own.collect::<Vec<_>>()
    };
    for (depositor, sent) in [(USER, true), (SECOND, false)] {
        assert_eq!(own(&[transfer(TOKEN, depositor, DEPOSITORY, 5)]), [sent]);
        let words = [word(depositor), number(5), ID.into()];
        assert_eq!(own(&[log(DEPOSITORY, &[NATIVE_TOPIC], &words)]), [sent]);
    }
}

/// What a wallet's owner signs is sent by anybody, behind calldata of the sender's own.
#[test]
fn calldata_that_the_payer_did_not_send_is_named_by_another() {
    let named = format!("0xa9059cbb{}{}{ID}", word(DEPOSITORY), number(5));
    // The literal that the payer signed is swallowed as the word behind the sender's own.
    let literal = format!("a9059cbb{}{}", word(DEPOSITORY), number(5));
    let swallowed = format!("{named}a9059cbb{}{literal}", word("0x44"));
    let read = |logs: &[Value], input: &str| {
        let found = receipt_by(&chain::rules(), logs, input).deposits.unwrap();
        let found = found
            .iter()
            .map(|d| (*d.id == format!("0x{ID}"), d.named_by_other));
        found.collect::<Vec<_>>()
    };
    for input in [&named, &swallowed] {
        let by = |payer: &str| read(&[transfer(TOKEN, payer, DEPOSITORY, 5)], input);
        assert_eq!(by(USER), [(true, false)]);
        assert_eq!(by(SECOND), [(true, true)]);
    }
    // What names no order, or what the depository itself says, is nobody else's word.
    let pull = || transfer(TOKEN, SECOND, DEPOSITORY, 5);
    assert_eq!(read(&[pull()], "0x"), [(false, false)]);
    let said = erc20("dd", TOKEN, 5, ID);
    assert_eq!(read(&[pull(), said], &named), [(true, false)]);
}

#[test]
fn zksync_base_token_moves_no_erc20() {
    let base = "0x000000000000000000000000000000000000800a";
    let mut spec = chain::spec(None);
    spec.additional.insert("isZksyncStack".into(), json!(true));
    let logs = [
        transfer(base, USER, DEPOSITORY, 5),
        transfer(base, OTHER, USER, 5),
    ];
    let zksync = receipt_by(&Rules::new(&spec).unwrap(), &logs, "0x");
    assert_eq!(zksync.deposits, Ok(vec![]));
    assert_eq!(zksync.payments, []);
    let plain = receipt_by(&chain::rules(), &logs, "0x");
    assert_eq!(plain.deposits.unwrap().len(), 1);
    assert_eq!(plain.payments.len(), 2);
}

/// An account's own code decides there what of its transaction's value it pays.
#[test]
fn zksync_value_pays_what_the_base_token_says_that_it_moved() {
    let base = "0x000000000000000000000000000000000000800a";
    let mut spec = chain::spec(None);
    spec.additional.insert("isZksyncStack".into(), json!(true));
    let zksync = Rules::new(&spec).unwrap();
    // The transaction is from USER to OTHER, with a value of 99.
    let moved = |amount| transfer(base, USER, OTHER, amount);
    let table = [
        (vec![], 0),
        (vec![moved(99)], 99),
        (vec![moved(98)], 98),
        (vec![moved(60), moved(60)], 99),
        (vec![transfer(base, RECIPIENT, OTHER, 99)], 0),
        (vec![transfer(base, USER, RECIPIENT, 99)], 0),
        (vec![transfer(WORTHLESS, USER, OTHER, 99)], 0),
    ];
    for (logs, wanted) in table {
        let paid = |rules: &Rules| {
            let receipt = receipt_by(rules, &logs, &format!("0x{ID}"));
            let mut payments = receipt.payments.into_iter();
            let direct = payments.find(|it| matches!(it.kind, PaymentKind::Direct { .. }));
            direct.unwrap().amount
        };
        assert_eq!(paid(&zksync), U256::from(wanted), "{logs:?}");
        assert_eq!(paid(&chain::rules()), U256::from(99), "{logs:?}");
    }
}

#[test]
fn tempo_calldata_stands_in_its_first_call() {
    let mut spec = chain::spec(None);
    spec.id = vm::ChainId::new("tempo");
    let mut nested = entry(&[], "0x");
    nested["transaction"]["input"] = Value::Null;
    nested["transaction"]["calls"] = json!([{"input": format!("0x12{ID}")}, {"input": "0x"}]);
    let found = decode_json(&Rules::new(&spec).unwrap(), &nested).unwrap();
    let Transaction::Succeeded(receipt) = found else {
        panic!("{found:?}");
    };
    assert_eq!(receipt.references, [format!("0x{ID}").into()]);
    assert!(decode_json(&chain::rules(), &nested).is_err());
}

#[test]
fn chain_without_depository_refuses_deposits() {
    let mut spec = chain::spec(None);
    spec.depository = None;
    spec.additional_depositories.clear();
    let receipt = receipt_by(&Rules::new(&spec).unwrap(), &[native(5)], "0x");
    assert!(receipt.deposits.is_err());
}

#[test]
fn transfer_to_oneself_pays_nobody() {
    let receipt = receipt_by(&chain::rules(), &[transfer(TOKEN, OTHER, OTHER, 5)], "0x");
    assert_eq!(receipt.payments, []);
    let mut own = entry(&[], &format!("0x{ID}"));
    assert_eq!(pays(&own), 1);
    own["transaction"]["to"] = json!(USER);
    assert_eq!(pays(&own), 0);
    own["transaction"]["to"] = Value::Null;
    assert_eq!(pays(&own), 0);
}

#[test]
fn token_payment_names_its_giver_and_none_comes_out_of_a_depository() {
    let kinds = |from: &str| {
        let logs = [transfer(TOKEN, from, RECIPIENT, 5)];
        let receipt = receipt_by(&chain::rules(), &logs, "0x");
        let kinds: Vec<_> = receipt.payments.into_iter().map(|p| p.kind).collect();
        kinds
    };
    assert_eq!(kinds(USER), [PaymentKind::Transfer]);
    let by = |who: &str| [PaymentKind::TransferBy(address(who))];
    assert_eq!(kinds(OTHER), by(OTHER));
    assert_eq!(kinds(&ZERO[..42]), by(&ZERO[..42]));
    // A withdrawal with an order's id behind it: the primary depository and the additional one.
    assert_eq!(kinds(DEPOSITORY), []);
    assert_eq!(kinds(SECOND), []);
}

fn pays(entry: &Value) -> usize {
    match decode_json(&chain::rules(), entry) {
        Ok(Transaction::Succeeded(receipt)) => receipt.payments.len(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn payments_name_emitter_and_recipient() {
    let router_topic = "0xd35467972d1fda5b63c735f59d3974fa51785a41a92aa3ed1b70832836f8dba6";
    let fake = log(OTHER, &[router_topic], &[word(USER), number(9)]);
    let cut = log(OTHER, &[router_topic], &[word(USER)]);
    let receipt = receipt_by(&chain::rules(), &[fake, cut], "0x");
    assert_eq!(receipt.payments.len(), 1);
    assert_eq!(
        receipt.payments[0].kind,
        PaymentKind::Router(address(OTHER))
    );
}

#[test]
fn broken_router_calls_are_no_calls() {
    let topic = "0x93485dcd31a905e3ffd7b012abe3438fa8fa77f98ddc9f50e879d3fa7ccdc324";
    let good = log(
        OTHER,
        &[topic],
        &[word(USER), number(0x60), number(7), number(0)],
    );
    let far = log(OTHER, &[topic], &[word(USER), "f".repeat(64), number(7)]);
    let long = log(
        OTHER,
        &[topic],
        &[word(USER), number(0x60), number(7), "f".repeat(64)],
    );
    let receipt = receipt_by(&chain::rules(), &[good, far, long], "0x");
    assert_eq!(receipt.calls.len(), 1);
}

#[test]
fn answers_that_contradict_themselves_are_doubtful() {
    let rules = chain::rules();
    let sound = || entry(&[native(5), native(6)], "0x");
    assert!(decode_json(&rules, &sound()).is_ok());
    let other = || json!(format!("0x{ID}"));
    let lies = [
        ("/receipt/transactionHash", other()),
        ("/receipt/blockHash", other()),
        ("/receipt/blockHash", Value::Null),
        ("/receipt/status", Value::Null),
        ("/receipt/status", json!("0x2")),
        ("/receipt/logs", Value::Null),
        ("/receipt/logs/0/transactionHash", other()),
        ("/receipt/logs/0/data", json!("0x123")),
        ("/receipt/logs/0/removed", json!(true)),
        ("/receipt/logs/1/blockHash", other()),
        ("/receipt/logs/1/logIndex", json!("0x0")),
        ("/receipt/logs/1/logIndex", json!("0xffffffff")),
        ("/transaction/blockNumber", json!("0x15")),
        ("/transaction/blockHash", Value::Null),
        ("/transaction/input", Value::Null),
    ];
    for (place, lie) in lies {
        let mut entry = sound();
        *entry.pointer_mut(place).unwrap() = lie.clone();
        assert!(decode_json(&rules, &entry).is_err(), "{place} {lie}");
    }
}

/// A transaction that deposits, pays and executes, with all the fields that are read.
fn busy() -> Value {
    let router_topic = "0xd35467972d1fda5b63c735f59d3974fa51785a41a92aa3ed1b70832836f8dba6";
    let paid = log(OTHER, &[router_topic], &[word(USER), number(9)]);
    let input = format!("0xa9059cbb{}{}{ID}", word(DEPOSITORY), number(5));
    let logs = [native(5), pull(), honest(), executed(OTHER), paid];
    let mut busy = entry(&logs, &input);
    for field in ["gasUsed", "effectiveGasPrice", "l1Fee"] {
        busy["receipt"][field] = json!("0x5208");
    }
    busy["transaction"]["calls"] = json!([{"input": "0x12"}]);
    busy
}

/// What is made of an answer about [`HASH`], whatever stands in it; `None` where nothing is.
fn attempted(answer: &Value) -> Option<Transaction> {
    let [receipt, transaction] = ["receipt", "transaction"].map(|part| answer[part].to_string());
    let receipt: Option<RawReceipt> = serde_json::from_str(&receipt).ok()?;
    let transaction: Option<RawTransaction> = serde_json::from_str(&transaction).ok()?;
    let _ = receipt.as_ref().and_then(RawReceipt::spent);
    let asked = HASH.parse().unwrap();
    let mined = Mined::join(&asked, receipt, transaction).ok()??;
    let block = Block {
        number: mined.number,
        hash: mined.hash,
        ..chain::block(20)
    };
    decode::decode(&chain::rules(), &mined, &block).ok()
}

#[test]
fn the_answer_in_which_values_are_made_odd_is_sound() {
    let Some(Transaction::Succeeded(receipt)) = attempted(&busy()) else {
        panic!("it is read");
    };
    assert_eq!(receipt.deposits.unwrap().len(), 2);
    assert_eq!(receipt.executions.len(), 1);
    assert!(!receipt.payments.is_empty());
    let header: RawHeader = serde_json::from_value(chain::header(20).unwrap()).unwrap();
    assert_eq!(header.block(), Some(chain::block(20)));
}

proptest! {
    #[test]
    fn any_bytes_never_panic(
        topic in prop::sample::select(vec![
            NATIVE_TOPIC, ERC20_TOPIC, TRANSFER_TOPIC, EXECUTED_TOPIC,
            "0xd35467972d1fda5b63c735f59d3974fa51785a41a92aa3ed1b70832836f8dba6",
            "0x93485dcd31a905e3ffd7b012abe3438fa8fa77f98ddc9f50e879d3fa7ccdc324",
        ]),
        more in 0..4_usize,
        data in prop::collection::vec(any::<u8>(), 0..400),
        input in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut topics = vec![topic.to_owned()];
        topics.extend((0..more).map(|_| self::topic(DEPOSITORY)));
        let log = json!({
            "address": DEPOSITORY, "topics": topics,
            "data": format!("0x{}", alloy::hex::encode(&data)),
        });
        let entry = entry(&[log], &format!("0x{}", alloy::hex::encode(&input)));
        let _ = decode_json(&chain::rules(), &entry);
    }

    #[test]
    fn an_odd_value_in_an_answer_never_panics(
        answer in odd::changed(busy()), header in odd::changed(chain::header(20).unwrap()),
    ) {
        let _ = attempted(&answer);
        let header = serde_json::from_str::<RawHeader>(&header.to_string());
        let _ = header.map(|header| header.block());
    }
}
