//! The reader over HTTP: recorded transactions, and nodes that contradict themselves.

use std::{
    sync::atomic::Ordering::SeqCst,
    time::{Duration, Instant},
};

use futures::future::join_all;
use serde_json::{Value, json};
use vm::{Head, ReadError, Receipt, Transaction, U256, bitcoin::network::MAIN};

use super::{
    ledger::{Ledger, output, transaction},
    node::{LEGACY, Node, SEGWIT, WORLD, node, serve, spec},
};

/// The recorded transaction that has `outputs` outputs of which the first is worth `value`.
fn recorded(find: impl Fn(&Value) -> bool) -> String {
    let transactions = WORLD["transactions"].as_object().unwrap();
    let mut found = transactions
        .iter()
        .filter(|(_, transaction)| find(transaction));
    let (id, _) = found.next().unwrap();
    assert!(found.next().is_none());
    id.clone()
}

fn paying(value: f64) -> String {
    recorded(|transaction| transaction["vout"][0]["value"] == json!(value))
}

async fn look(node: &Node, id: &str) -> Result<Transaction, ReadError> {
    let spec = spec(json!({}));
    let provider = node.open(&spec);
    let head = provider.reader.head().await?;
    provider
        .reader
        .transaction(&spec.family.tx(id, None).unwrap(), &head)
        .await
}

async fn receipt(id: &str) -> Receipt {
    match look(&node().await, id).await.unwrap() {
        Transaction::Succeeded(receipt) => receipt,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn head_is_the_tip() {
    let node = node().await;
    let head = node.open(&spec(json!({}))).reader.head().await.unwrap();
    assert_eq!((head.block.number, head.block.time), (905, 1_760_003_600));
    let hash = "0x3913148a2434a720097c49a01a58c13bcad980209a5ee64a80157d9cd7971dcc";
    assert_eq!(head.block.hash.to_string(), hash);
}

#[tokio::test]
async fn deposits_are_read_as_recorded() {
    let receipt = receipt(&paying(0.0005)).await;
    assert_eq!(
        (receipt.block.number, receipt.block.time),
        (900, 1_760_000_600)
    );
    let [deposit] = &receipt.deposits.unwrap()[..] else {
        panic!("one deposit expected")
    };
    assert_eq!(deposit.amount, U256::from(50_000));
    assert_eq!(deposit.depository.text(), LEGACY);
    assert_eq!(
        deposit.depositor.text(),
        "bc1qs34tc3mtzq4w9s2ea7klr2jmxm8p78rsdjzvl0"
    );
    assert_eq!(deposit.index, 1);
    let id = "0xb18ec80e06a7a4b9de5ebcd2c1d8f24b6070c5daa959f057aa6cb23c94ae394f";
    assert_eq!(&*deposit.id, id);
}

#[tokio::test]
async fn outputs_to_the_same_depository_add_up() {
    let id = recorded(|found| found["vout"][1]["value"] == json!(1.234e-05));
    let deposits = receipt(&id).await.deposits.unwrap();
    assert_eq!(deposits[0].amount, U256::from(1235));
    assert_eq!(
        (deposits[0].depository.text(), deposits[0].index),
        (SEGWIT, 0)
    );
}

#[tokio::test]
async fn metadata_names_the_depositor_and_invalid_metadata_does_not() {
    for (value, depositor) in [
        (0.00050001, "bc1qpkfj837cdlzmcr447hven90jf9kvfjgfgrn4fv"),
        (0.00050002, "bc1qsmr62rpvwcy362ujhyt05ajj9n5ak3qplzh8g5"),
    ] {
        let deposits = receipt(&paying(value)).await.deposits.unwrap();
        assert_eq!(deposits[0].depositor.text(), depositor);
    }
}

#[tokio::test]
async fn case_of_an_id_is_kept_and_fractions_are_exact() {
    let deposits = receipt(&paying(9e-08)).await.deposits.unwrap();
    assert!(deposits[0].id.starts_with("0x012BE67A"));
    assert_eq!(deposits[0].amount, U256::from(9));
    let deposits = receipt(&paying(0.29)).await.deposits.unwrap();
    assert_eq!(deposits[0].amount, U256::from(29_000_000));
}

#[tokio::test]
async fn what_is_no_deposit_says_why() {
    let both = recorded(|found| {
        found["vout"][0]["value"] == json!(1e-08) && found["vout"][1]["value"] == json!(1e-08)
    });
    let cases = [
        (both, "Multiple depositories received funds"),
        (paying(6e-06), "No value sent to the depository"),
        (paying(0.001), "Could not determine depositor"),
    ];
    for (id, why) in cases {
        assert_eq!(receipt(&id).await.deposits.unwrap_err().0, why);
    }
}

#[tokio::test]
async fn change_of_a_depository_is_no_deposit() {
    let id = recorded(|found| found["vin"].as_array().unwrap().len() == 2);
    assert_eq!(receipt(&id).await.deposits.unwrap(), []);
}

#[tokio::test]
async fn fills_name_their_order_and_pay_by_output() {
    let receipt = receipt(&paying(6e-06)).await;
    assert_eq!(receipt.references.len(), 1);
    let paid: Vec<_> = receipt
        .payments
        .iter()
        .map(|paid| (paid.index, paid.amount))
        .collect();
    assert_eq!(paid, [(0, U256::from(600)), (1, U256::from(400))]);
    // An id with more text behind it is no reference.
    assert_eq!(self::receipt(&paying(1e-05)).await.references.len(), 0);
}

#[tokio::test]
async fn mempool_and_unknown_transactions_are_missing() {
    let unconfirmed = recorded(|found| found["blockhash"].is_null());
    let unknown = "00".repeat(32);
    for id in [unconfirmed, unknown] {
        assert_eq!(
            look(&node().await, &id).await.unwrap(),
            Transaction::Missing
        );
    }
}

#[tokio::test]
async fn previous_outputs_that_do_not_exist_are_no_answer() {
    let id = recorded(|found| {
        found["vin"][0]["txid"]
            .as_str()
            .is_some_and(|t| t.starts_with("aaaa"))
    });
    assert!(matches!(
        look(&node().await, &id).await,
        Err(ReadError::Unavailable(_))
    ));
}

#[tokio::test]
async fn previous_outputs_shown_by_the_node_are_not_asked_for() {
    let node = node().await;
    node.lie(|method, _, answer| {
        if method == "getrawtransaction" {
            answer["result"]["vin"][0]["prevout"] =
                json!({"scriptPubKey": {"hex": "00149beb315d2db8f3192aa9098a0443f4f6b2826ddf"}});
        }
    });
    let Transaction::Succeeded(receipt) = look(&node, &paying(0.0005)).await.unwrap() else {
        panic!("found")
    };
    let depositor = receipt.deposits.unwrap()[0].depositor.clone();
    assert_eq!(
        depositor.text(),
        "bc1qn04nzhfdhre3j24fpx9qgsl576egymwl5cpvd7"
    );
    let calls = node.state.calls.lock().unwrap();
    assert_eq!(
        calls
            .iter()
            .filter(|call| *call == "getrawtransaction")
            .count(),
        1
    );
}

#[tokio::test]
async fn doubtful_answers_are_refused() {
    type Lie = fn(&str, &Value, &mut Value);
    let lies: [(&str, Lie); 7] = [
        ("another transaction", |method, _, answer| {
            if method == "getrawtransaction" {
                answer["result"]["txid"] = json!("11".repeat(32));
            }
        }),
        ("no block at the head's height", |method, params, answer| {
            if method == "getblockhash" && params[0] == 905 {
                answer["result"] = json!("22".repeat(32));
            }
        }),
        ("outputs out of order", |method, _, answer| {
            if method == "getrawtransaction" {
                answer["result"]["vout"][0]["n"] = json!(1);
            }
        }),
        ("another header", |method, params, answer| {
            if method == "getblockheader" && params[0].as_str().unwrap().starts_with("375c") {
                answer["result"]["hash"] = json!("33".repeat(32));
            }
        }),
        ("a negative amount", |method, _, answer| {
            if method == "getrawtransaction" {
                answer["result"]["vout"][0]["value"] = json!(-0.5);
            }
        }),
        ("half a satoshi", |method, _, answer| {
            if method == "getrawtransaction" {
                answer["result"]["vout"][0]["value"] = json!(0.000000005);
            }
        }),
        ("odd hex", |method, _, answer| {
            if method == "getrawtransaction" {
                answer["result"]["vout"][0]["scriptPubKey"]["hex"] = json!("00149");
            }
        }),
    ];
    for (what, lie) in lies {
        let node = node().await;
        node.lie(lie);
        assert!(look(&node, &paying(0.0005)).await.is_err(), "{what}");
    }
}

/// A node still finds a transaction whose block a reorg removed.
#[tokio::test]
async fn a_transaction_of_a_block_that_is_gone_is_missing() {
    let node = node().await;
    node.lie(|method, params, answer| {
        if method == "getblockhash" && params[0] == 900 {
            answer["result"] = json!("22".repeat(32));
        }
    });
    let found = look(&node, &paying(0.0005)).await;
    assert_eq!(found.unwrap(), Transaction::Missing);
}

/// What was in the memory pool is replaced; what was mined is reorged away and spent otherwise.
#[tokio::test]
async fn replaced_and_reorged_deposits_are_missing() {
    let node = serve(Ledger::new()).await;
    let spec = spec(json!({}));
    let (fund, first, second) = ("aa".repeat(32), "bb".repeat(32), "cc".repeat(32));
    let to = |address: &str| MAIN.script(address).unwrap().to_hex_string();
    let pays = |id: &str, satoshis| {
        transaction(
            id,
            &[(fund.as_str(), 0)],
            vec![output(&to(LEGACY), satoshis)],
        )
    };
    node.ledger(|ledger| {
        let payer = to("bc1qs34tc3mtzq4w9s2ea7klr2jmxm8p78rsdjzvl0");
        ledger.mine(vec![transaction(&fund, &[], vec![output(&payer, 9_000)])]);
        ledger.put(pays(&first, 5_000));
    });
    let seen = async |id: &str| {
        let reader = node.open(&spec).reader;
        let head = reader.head().await.unwrap();
        let tx = spec.family.tx(id, None).unwrap();
        reader.transaction(&tx, &head).await.unwrap()
    };
    assert_eq!(seen(&first).await, Transaction::Missing);
    node.ledger(|ledger| {
        ledger.transactions.remove(&first);
        ledger.mine(vec![pays(&second, 4_000)]);
        ledger.bury(1);
    });
    assert_eq!(seen(&first).await, Transaction::Missing);
    assert!(matches!(seen(&second).await, Transaction::Succeeded(_)));
    // Two blocks are undone: the deposit is in the pool again, and then another takes its place.
    node.ledger(|ledger| ledger.undo(2));
    assert_eq!(seen(&second).await, Transaction::Missing);
    node.ledger(|ledger| {
        ledger.transactions.remove(&second);
        ledger.mine(vec![pays(&first, 5_000)]);
        ledger.bury(2);
    });
    assert_eq!(seen(&second).await, Transaction::Missing);
    let Transaction::Succeeded(receipt) = seen(&first).await else {
        panic!("found")
    };
    assert_eq!(receipt.deposits.unwrap()[0].amount, U256::from(5_000));
}

#[tokio::test]
async fn unreadable_and_endless_answers_are_refused() {
    let id = paying(0.0005);
    let node = node().await;
    let limited = spec(json!({}));
    let provider = node.open_limited(&limited, (Duration::from_secs(2), 4_096));
    let head = provider.reader.head().await.unwrap();
    let tx = limited.family.tx(&id, None).unwrap();
    node.garble(|method, text| {
        if method == "getrawtransaction" {
            text.truncate(text.len() / 2);
        }
    });
    let cut = provider.reader.transaction(&tx, &head).await;
    assert!(matches!(cut, Err(ReadError::Doubtful(_))), "{cut:?}");
    node.garble(|method, text| {
        if method == "getrawtransaction" {
            *text = " ".repeat(8_192) + text;
        }
    });
    let long = provider.reader.transaction(&tx, &head).await;
    assert_eq!(long, Err(ReadError::TooLarge));
    node.garble(|method, text| {
        if method == "getrawtransaction" {
            *text = text.replacen("\"vin\":", "\"vin\":[],\"vin\":", 1);
        }
    });
    let twice = provider.reader.transaction(&tx, &head).await;
    assert!(matches!(twice, Err(ReadError::Doubtful(_))), "{twice:?}");
}

#[tokio::test]
async fn a_head_of_another_fork_pins_nothing() {
    let node = node().await;
    let spec = spec(json!({}));
    let reader = node.open(&spec).reader;
    let mut head: Head = reader.head().await.unwrap();
    assert!(reader.contains(&head.block).await.unwrap());
    for seconds in [-1, 1] {
        let mut dated = head.block.clone();
        dated.time = dated.time.saturating_add_signed(seconds);
        assert_eq!(reader.contains(&dated).await, Ok(false), "{seconds}");
    }
    head.block.hash.0[0] ^= 1;
    assert!(!reader.contains(&head.block).await.unwrap());
    let tx = spec.family.tx(&paying(0.0005), None).unwrap();
    assert!(matches!(
        reader.transaction(&tx, &head).await,
        Err(ReadError::Doubtful(_))
    ));
    // A node that has not got there yet cannot confirm it.
    head.block.number = 1000;
    assert!(matches!(
        reader.transaction(&tx, &head).await,
        Err(ReadError::Unavailable(_))
    ));
}

#[tokio::test]
async fn a_block_above_the_head_is_not_seen() {
    let node = node().await;
    let spec = spec(json!({}));
    let reader = node.open(&spec).reader;
    let mut head = reader.head().await.unwrap();
    head.block.number = 903;
    head.block.hash = "0xaae39feff667b171174f580fb2f5fb384b84f5e9d4cfe90b1fa18b85d7ee61d0"
        .parse()
        .unwrap();
    let tip = recorded(|found| found["confirmations"] == 1);
    let tx = spec.family.tx(&tip, None).unwrap();
    assert_eq!(
        reader.transaction(&tx, &head).await.unwrap(),
        Transaction::Missing
    );
}

#[tokio::test]
async fn a_node_of_another_chain_has_no_vote() {
    let node = node().await;
    let wrong = spec(json!({"genesisHash": "00".repeat(32)}));
    let read = node.open(&wrong).reader.head().await;
    assert!(matches!(read, Err(ReadError::Doubtful(_))), "{read:?}");
    let hash = "375cbd4b167b0880f718308e6a55035551d83a0a42f22cd91d0c275ca7814440";
    node.lie(move |method, params, answer| {
        if method == "getblockhash" && params[0] == 0 {
            *answer = json!({"result": hash, "error": null});
        }
    });
    let right = spec(json!({"genesisHash": hash}));
    assert!(node.open(&right).reader.head().await.is_ok());
}

#[tokio::test]
async fn secrets_of_the_url_stay_out_of_errors() {
    let node = node().await;
    node.lie(|_, _, answer| *answer = json!({"result": "nonsense", "error": null}));
    let error = node
        .open(&spec(json!({})))
        .reader
        .head()
        .await
        .unwrap_err()
        .to_string();
    assert!(!error.contains("secret"), "{error}");
}

#[tokio::test]
async fn a_hanging_node_under_load_answers_within_the_deadline() {
    let (node, spec) = (node().await, spec(json!({})));
    let timeout = Duration::from_secs(2);
    let reader = node.open_within(&spec, timeout).reader;
    let head = reader.head().await.unwrap();
    let tx = spec.family.tx(&paying(0.0005), None).unwrap();
    node.state.hanging.store(true, SeqCst);
    let started = Instant::now();
    let answers = join_all((0..50).map(|_| reader.transaction(&tx, &head))).await;
    for answer in answers {
        assert!(
            matches!(answer, Err(ReadError::Unavailable(_))),
            "{answer:?}"
        );
    }
    assert!(started.elapsed() < timeout * 3, "{:?}", started.elapsed());
    // Sixteen at once, and as many after their time: the others gave up waiting, but for what is freed just then.
    assert!(node.state.hung.load(SeqCst) < 50);
    node.state.hanging.store(false, SeqCst);
    assert!(reader.transaction(&tx, &head).await.is_ok());
}

#[tokio::test]
async fn heads_asked_for_at_once_are_read_once() {
    let node = node().await;
    let reader = node.open(&spec(json!({}))).reader;
    let heads = join_all((0..30).map(|_| reader.fresh_head())).await;
    assert!(heads.iter().all(|head| *head == heads[0] && head.is_ok()));
    let count = |node: &Node| {
        let calls = node.state.calls.lock().unwrap();
        calls.iter().filter(|call| *call == "getblockcount").count()
    };
    assert!(count(&node) <= 2, "{}", count(&node));
    reader.fresh_head().await.unwrap();
    assert!(count(&node) >= 2, "a later one is read anew");
}

#[tokio::test]
async fn waiting_for_a_hanging_head_is_shared() {
    let node = node().await;
    node.state.hanging.store(true, SeqCst);
    let timeout = Duration::from_secs(2);
    let reader = node.open_within(&spec(json!({})), timeout).reader;
    let started = Instant::now();
    let heads = join_all((0..30).map(|_| reader.head())).await;
    assert!(heads.iter().all(Result::is_err));
    assert!(started.elapsed() < timeout * 3, "{:?}", started.elapsed());
    assert!(node.state.hung.load(SeqCst) <= 2);
}

/// Previous transactions that are asked for in one round trip.
const BATCH: u64 = 100;

/// A deposit that spends outputs of so many transactions.
fn spending(node: &Node, others: usize) {
    node.lie(move |method, params, answer| {
        let id = params[0].as_str().unwrap_or_default();
        if method != "getrawtransaction" {
            return;
        }
        if id.starts_with("bbbb") {
            let output = json!({"n": 0, "value": 1.0,
                "scriptPubKey": {"hex": "00149beb315d2db8f3192aa9098a0443f4f6b2826ddf"}});
            *answer = json!({"result": {"txid": id, "vin": [], "vout": [output]}, "error": null});
            return;
        }
        let vin: Vec<Value> = (0..others)
            .map(|n| json!({"txid": format!("bbbb{n:060x}"), "vout": 0}))
            .collect();
        answer["result"]["vin"] = json!(vin);
    });
}

#[tokio::test]
async fn two_thousand_previous_transactions_are_read_and_no_more() {
    let node = node().await;
    spending(&node, 2_000);
    let Transaction::Succeeded(receipt) = look(&node, &paying(0.0005)).await.unwrap() else {
        panic!("found")
    };
    assert_eq!(receipt.deposits.unwrap().len(), 1);
    let asked = node.state.calls.lock().unwrap().len();
    // Those of a batch are one round trip.
    let (batches, posts) = (2_000 / BATCH, node.state.posts.load(SeqCst));
    assert!((batches..batches + 20).contains(&posts), "{posts} POSTs");
    spending(&node, 2_001);
    let Transaction::Succeeded(receipt) = look(&node, &paying(0.0005)).await.unwrap() else {
        panic!("found")
    };
    let refusal = receipt.deposits.unwrap_err().0;
    assert!(refusal.contains("2000"), "{refusal}");
    // Whose money it was is not known either.
    assert!(receipt.payments.is_empty(), "{:?}", receipt.payments);
    assert!(node.state.calls.lock().unwrap().len() < asked + 20);
}

#[tokio::test]
async fn a_node_that_was_gone_is_identified_anew() {
    let node = node().await;
    let genesis = |first: &'static str| {
        move |method: &str, params: &Value, answer: &mut Value| {
            if method == "getblockhash" && params[0] == 0 {
                *answer = json!({"result": first.repeat(32), "error": null});
            }
        }
    };
    let spec = spec(json!({"genesisHash": "aa".repeat(32)}));
    node.lie(genesis("aa"));
    let reader = node.open(&spec).reader;
    assert!(reader.fresh_head().await.is_ok());
    node.lie(genesis("bb"));
    assert!(reader.fresh_head().await.is_ok(), "asked only once");
    node.state.down.store(true, SeqCst);
    assert!(reader.fresh_head().await.is_err());
    node.state.down.store(false, SeqCst);
    let read = reader.fresh_head().await;
    assert!(matches!(read, Err(ReadError::Doubtful(_))), "{read:?}");
}
