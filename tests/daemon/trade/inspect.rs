//! Transactions in full: what a real node says of them, and what a lying one may not say.

use alloy::{
    primitives::{Address as EvmAddress, B256, U256},
    sol_types::SolCall,
};
use devnet::{
    contracts::{FillRouter, Token},
    proxy::{Lie, on, rules},
};
use serde_json::{Value, json};
use vm::{
    ReadError, TxRef,
    trade::{Call, Change, Diff, TxDetails},
};

use super::rig::{FAMILY, ORDER, Rig, address};

const RECIPIENT: EvmAddress = EvmAddress::repeat_byte(9);
const NATIVE: EvmAddress = EvmAddress::ZERO;

fn reference(hash: B256) -> TxRef {
    FAMILY.tx(&hash.to_string(), None).unwrap()
}

/// What a lying node does to an answer.
type Edit = fn(&mut Value);

/// A transaction of the solver's, in the newest block.
async fn mined(rig: &Rig, nonce: u64, call: Call) -> TxRef {
    rig.site.node.automine(false).await.unwrap();
    let (raw, hash) = rig.sealed(&rig.draft(call, nonce, 10), &rig.solver);
    rig.trade.writer.broadcast(&raw).await.unwrap();
    rig.site.node.mine(1, 1).await.unwrap();
    reference(hash)
}

async fn seen(rig: &Rig, transaction: &TxRef) -> TxDetails {
    let found = rig.trade.inspector.inspect(transaction).await;
    found.unwrap().unwrap()
}

fn transfer(rig: &Rig, amount: U256) -> Call {
    let to = RECIPIENT;
    Call {
        data: Token::transferCall { to, amount }.abi_encode().into(),
        ..rig.payment(rig.site.token, 0)
    }
}

fn change(account: EvmAddress, currency: EvmAddress, diff: i64) -> Change {
    Change {
        address: address(account),
        currency: address(currency),
        diff: Diff {
            negative: diff < 0,
            amount: U256::from(diff.unsigned_abs()),
        },
    }
}

#[tokio::test]
async fn what_was_paid_and_moved_is_what_the_chain_holds() {
    let rig = Rig::start().await;
    let solver = rig.solver.address();
    let before = rig.site.node.balance(solver).await.unwrap();
    let paid = mined(&rig, 0, rig.payment(RECIPIENT, 5)).await;
    let details = seen(&rig, &paid).await;
    let after = rig.site.node.balance(solver).await.unwrap();
    assert_eq!(details.fee, before - after - U256::from(5));
    let receipt: Value = rig
        .site
        .node
        .rpc("eth_getTransactionReceipt", [&*paid.text])
        .await
        .unwrap();
    let number = |field: &str| receipt[field].as_str().unwrap().parse::<U256>().unwrap();
    assert_eq!(details.fee, number("gasUsed") * number("effectiveGasPrice"));
    let from = (&details.from, details.to.as_ref());
    assert_eq!(from, (&address(solver), Some(&address(RECIPIENT))));
    assert_eq!((details.value, details.success), (U256::from(5), true));
    assert_eq!(details.data, Some(vm::Bytes::new()));
    assert_eq!(details.block, rig.trade.scanner.head().await.unwrap());
    let moved = [change(solver, NATIVE, -5), change(RECIPIENT, NATIVE, 5)];
    assert_eq!(details.changes, moved);

    let call = transfer(&rig, U256::from(7));
    let details = seen(&rig, &mined(&rig, 1, call.clone()).await).await;
    assert_eq!(details.data, Some(call.data));
    let token = rig.site.token;
    let moved = [change(solver, token, -7), change(RECIPIENT, token, 7)];
    assert_eq!(details.changes, moved);
}

const TRACE: &str = "debug_traceTransaction";

/// What passes on what it is paid to the recipient.
fn passing(rig: &Rig) -> Call {
    let calls = vec![FillRouter::Call {
        to: RECIPIENT,
        data: vm::Bytes::new(),
        value: U256::from(5),
    }];
    Call {
        data: FillRouter::fillCall { calls }.abi_encode().into(),
        ..rig.payment(rig.site.router, 5)
    }
}

/// What it moved as a trace has it, and as its value has it.
fn moved(rig: &Rig) -> [[Change; 2]; 2] {
    let paid = |to| {
        [
            change(rig.solver.address(), NATIVE, -5),
            change(to, NATIVE, 5),
        ]
    };
    [paid(RECIPIENT), paid(rig.site.router)]
}

#[tokio::test]
async fn native_currency_that_contracts_pass_on_is_seen_where_the_node_traces() {
    let rig = Rig::start().await;
    let paid = mined(&rig, 0, passing(&rig)).await;
    let [passed, stays] = moved(&rig);
    assert_eq!(seen(&rig, &paid).await.changes, passed);
    let asked = rig.proxy.count(TRACE);
    assert!(asked > 0);

    // A node that cannot is not asked again and again, and what its logs say is told.
    rig.proxy.lie(on(TRACE, |_| {
        Lie::Error(-32601, "the method does not exist".into())
    }));
    for _ in 0..2 {
        assert_eq!(seen(&rig, &paid).await.changes, stays);
    }
    assert_eq!(rig.proxy.count(TRACE), asked + 1);
}

#[tokio::test]
async fn a_trace_that_fails_silences_nobody() {
    let mut rig = Rig::start().await;
    let paid = mined(&rig, 0, passing(&rig)).await;
    let [passed, stays] = moved(&rig);
    let pad = |length: usize| {
        on(TRACE, move |_| {
            Lie::patch(move |trace| trace["pad"] = json!("0".repeat(length)))
        })
    };
    let others = vec![
        on(TRACE, |_| Lie::Result(Value::Null)),
        on(TRACE, |_| Lie::Result(json!({"type": 7}))),
        on(TRACE, |_| Lie::Drop),
        pad(vm::protocol::limits::STRANGERS_ANSWER),
    ];
    for (at, lie) in others.into_iter().enumerate() {
        rig.proxy.lie(lie);
        assert_eq!(seen(&rig, &paid).await.changes, stays, "{at}");
        rig.proxy.lie(pad(1));
        assert_eq!(seen(&rig, &paid).await.changes, passed, "{at}");
    }

    // Who hears of too many traces hears of everything else.
    let silent = rules::too_many_requests("30");
    rig.proxy.lie(Box::new(move |call| match call.method {
        TRACE => silent(call),
        _ => None,
    }));
    let asked = rig.proxy.count(TRACE);
    for _ in 0..2 {
        assert_eq!(seen(&rig, &paid).await.changes, stays);
    }
    assert_eq!(rig.proxy.count(TRACE), asked + 1);
    assert!(rig.trade.scanner.head().await.is_ok());

    // A line with less room has no more for traces.
    rig.longest(64 << 10);
    rig.proxy.lie(pad(64 << 10));
    assert_eq!(seen(&rig, &paid).await.changes, stays);
    rig.proxy.lie(pad(1));
    assert_eq!(seen(&rig, &paid).await.changes, passed);
}

#[tokio::test]
async fn a_reverted_transaction_cost_its_fee_and_moved_nothing() {
    let rig = Rig::start().await;
    let solver = rig.solver.address();
    let before = rig.site.node.balance(solver).await.unwrap();
    let failed = mined(&rig, 0, transfer(&rig, U256::MAX)).await;
    let details = seen(&rig, &failed).await;
    let after = rig.site.node.balance(solver).await.unwrap();
    assert!(!details.success && details.changes.is_empty());
    assert_eq!(details.fee, before - after);
}

#[tokio::test]
async fn a_transaction_in_no_block_is_not_seen() {
    let rig = Rig::start().await;
    rig.site.node.automine(false).await.unwrap();
    let (raw, hash) = rig.sealed(&rig.draft(rig.payment(RECIPIENT, 5), 0, 10), &rig.solver);
    let look = async || rig.trade.inspector.inspect(&reference(hash)).await;
    assert_eq!(look().await, Ok(None));
    rig.trade.writer.broadcast(&raw).await.unwrap();
    assert_eq!(look().await, Ok(None));
    rig.site.node.mine(1, 1).await.unwrap();
    assert!(look().await.unwrap().is_some());
}

#[tokio::test]
async fn answers_that_contradict_each_other_are_doubted() {
    let rig = Rig::start().await;
    let paid = mined(&rig, 0, rig.payment(RECIPIENT, 5)).await;
    let lies: [(&str, Edit); 5] = [
        ("eth_getTransactionReceipt", |receipt| {
            receipt["transactionHash"] = json!(ORDER);
        }),
        ("eth_getTransactionReceipt", |receipt| {
            receipt["blockHash"] = json!(ORDER);
        }),
        ("eth_getTransactionReceipt", |receipt| {
            receipt["gasUsed"] = json!(null);
        }),
        ("eth_getTransactionByHash", |found| {
            found["hash"] = json!(ORDER);
        }),
        // The node has changed forks between its answers.
        ("eth_getBlockByNumber", |block| {
            block["hash"] = json!(ORDER);
        }),
    ];
    for (method, lie) in lies {
        rig.proxy.lie(on(method, move |_| Lie::patch(lie)));
        let told = rig.trade.inspector.inspect(&paid).await;
        assert!(matches!(told, Err(ReadError::Doubtful(_))), "{told:?}");
    }
    rig.proxy.lie(on("eth_getTransactionReceipt", |_| {
        Lie::Error(-32000, "busy".into())
    }));
    let told = rig.trade.inspector.inspect(&paid).await;
    assert!(matches!(told, Err(ReadError::Unavailable(_))), "{told:?}");
    rig.proxy.honest();
    assert!(seen(&rig, &paid).await.success);
}
