//! How the solver's transactions reach a node and an index, what those ask for inclusion, and what became of them.

use std::sync::Arc;

use ::bitcoin::{
    Amount, OutPoint, ScriptBuf, Transaction, TxIn, TxOut, Txid, absolute::LockTime, consensus,
    hashes::Hash, transaction::Version,
};
use serde_json::{Value, json};
use vm::{
    Bytes, ChainSpec, ReadError,
    trade::{Broadcast, Failover, Fate, FeeRate, TradingProvider},
};

use super::{
    ledger::{Ledger, output, transaction},
    node::{Node, serve, spec},
};

const SCRIPT: &str = "0014751e76e8199196d454941c45d1b3a323f1433bd6";

fn indexed(node: &Node) -> Arc<ChainSpec> {
    spec(json!({"esploraCompatibleApiUrl": node.index_url()}))
}

/// A node of an empty chain, opened both ways.
async fn rig() -> (Node, [TradingProvider; 2]) {
    let node = serve(Ledger::new()).await;
    let spec = indexed(&node);
    let both = [node.trade(&spec), node.trade_index(&spec)];
    (node, both)
}

fn rate(satoshis: u128) -> Result<FeeRate, ReadError> {
    Ok(FeeRate::new(satoshis, 0))
}

/// Answers these methods, and leaves the others.
fn answering(node: &Node, answers: Value) {
    node.lie(move |method, _, answer| {
        if let Some(said) = answers.get(method) {
            *answer = match said.get("code") {
                Some(_) => json!({"result": null, "error": said}),
                None => json!({"result": said, "error": null}),
            };
        }
    });
}

fn made() -> (Bytes, String) {
    let made = Transaction {
        version: Version::TWO,
        lock_time: LockTime::ZERO,
        input: vec![TxIn {
            previous_output: OutPoint::new(Txid::from_byte_array([7; 32]), 1),
            ..TxIn::default()
        }],
        output: vec![TxOut {
            value: Amount::from_sat(9_000),
            script_pubkey: ScriptBuf::from_hex(SCRIPT).unwrap(),
        }],
    };
    (
        consensus::serialize(&made).into(),
        made.compute_txid().to_string(),
    )
}

#[tokio::test]
async fn a_node_asks_what_it_estimates_and_never_less_than_its_pool_takes() {
    let (node, [provider, _]) = rig().await;
    let asked = |estimate: Value, least: Value| {
        answering(
            &node,
            json!({"estimatesmartfee": estimate, "getmempoolinfo": {"mempoolminfee": least}}),
        );
        provider.writer.rate()
    };
    let number = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let least = number("0.00001000");
    for (estimate, satoshis) in [
        (json!({"feerate": number("0.00025001"), "blocks": 2}), 26),
        (json!({"feerate": number("0.00000100"), "blocks": 2}), 1),
        (json!({"errors": ["Insufficient data"], "blocks": 2}), 1),
    ] {
        assert_eq!(asked(estimate, least.clone()).await, rate(satoshis));
    }
    let full = number("0.00030000");
    let estimate = json!({"feerate": number("0.00025000"), "blocks": 2});
    assert_eq!(asked(estimate, full).await, rate(30));
    let lie = asked(json!({"feerate": "much"}), least).await;
    assert!(matches!(lie, Err(ReadError::Doubtful(_))), "{lie:?}");
}

#[tokio::test]
async fn an_index_asks_what_it_estimates_for_two_blocks() {
    let (node, [_, provider]) = rig().await;
    let asked = |estimates: Value| {
        node.ledger(|ledger| ledger.more.insert("fee-estimates".into(), estimates));
        provider.writer.rate()
    };
    let estimates = json!({"1": 30, "2": 20.25, "144": 1.0});
    assert_eq!(asked(estimates).await, rate(21));
    assert_eq!(asked(json!({"1": 30, "3": 10})).await, rate(30));
    assert_eq!(asked(json!({})).await, rate(1));
    let lie = asked(json!({"2": "much"})).await;
    assert!(matches!(lie, Err(ReadError::Doubtful(_))), "{lie:?}");
}

/// What one of two says too low would else be what users' transactions pay, and ours.
#[tokio::test]
async fn two_that_ask_much_more_and_less_have_no_rate() {
    let (node, both) = rig().await;
    let failover = Failover::new("bitcoin", 2, both.into()).unwrap();
    // Bitcoins per 1000 virtual bytes: 40 satoshis each.
    let estimate: Value = serde_json::from_str(r#"{"feerate": 0.00040000}"#).unwrap();
    let pool: Value = serde_json::from_str(r#"{"mempoolminfee": 0.00001000}"#).unwrap();
    answering(
        &node,
        json!({"estimatesmartfee": estimate, "getmempoolinfo": pool}),
    );
    let asked = |index: u64| {
        node.ledger(|ledger| {
            let estimates = json!({"2": index});
            ledger.more.insert("fee-estimates".into(), estimates)
        });
        failover.rate()
    };
    for apart in [1, 9, 161] {
        let said = asked(apart).await;
        assert!(matches!(said, Err(ReadError::Quorum(_))), "{said:?}");
    }
    for (index, lower, signed) in [(10, 10, 25), (60, 40, 50), (160, 40, 100)] {
        let said = asked(index).await.unwrap();
        assert_eq!((said.expected(), said.between()), (lower, signed));
    }
}

#[tokio::test]
async fn a_node_takes_a_transaction_or_says_why_not() {
    let (node, [provider, _]) = rig().await;
    let (raw, id) = made();
    let refused = |code: i32, message: &str| json!({"code": code, "message": message});
    let said = |answer: Value| {
        answering(&node, json!({"sendrawtransaction": answer}));
        provider.writer.broadcast(&raw)
    };
    assert_eq!(said(json!(id)).await, Ok(Broadcast::Accepted));
    let spent = refused(-25, "bad-txns-inputs-missingorspent");
    assert_eq!(said(spent).await, Ok(Broadcast::Used));
    let known = refused(-27, "Transaction outputs already in utxo set");
    assert_eq!(said(known).await, Ok(Broadcast::Accepted));
    let cheap = refused(-26, "insufficient fee, rejecting replacement");
    assert_eq!(said(cheap).await, Ok(Broadcast::Underpriced));
    let dust = said(refused(-26, "dust")).await;
    assert!(matches!(dust, Ok(Broadcast::Rejected(_))), "{dust:?}");
    let other = said(json!("11".repeat(32))).await;
    assert!(matches!(other, Err(ReadError::Doubtful(_))), "{other:?}");
    let rubbish = provider.writer.broadcast(&raw.slice(1..)).await;
    assert!(matches!(rubbish, Ok(Broadcast::Refused(_))), "{rubbish:?}");
}

#[tokio::test]
async fn an_index_takes_a_transaction_or_another() {
    let (node, [_, provider]) = rig().await;
    let (raw, id) = made();
    let said = |answer: String| {
        node.ledger(|ledger| ledger.more.insert("tx".into(), json!(answer)));
        provider.writer.broadcast(&raw)
    };
    assert_eq!(said(format!("{id}\n")).await, Ok(Broadcast::Accepted));
    let other = said("11".repeat(32)).await;
    assert!(matches!(other, Err(ReadError::Doubtful(_))), "{other:?}");
}

#[tokio::test]
async fn a_transaction_is_unknown_then_waits_and_then_is_in_a_block() {
    let (node, both) = rig().await;
    let (id, source) = ("22".repeat(32), "33".repeat(32));
    let bytes: Bytes = alloy::hex::decode(&id).unwrap().into();
    let fate = |provider: &TradingProvider| {
        let (writer, bytes) = (provider.writer.clone(), bytes.clone());
        async move { writer.fate(&bytes).await }
    };
    for provider in &both {
        assert_eq!(fate(provider).await, Ok(Fate::Unknown));
    }
    let funded = transaction(&source, &[], vec![output(SCRIPT, 10_000)]);
    let paid = transaction(&id, &[(source.as_str(), 0)], vec![output(SCRIPT, 9_000)]);
    node.ledger(|ledger| {
        ledger.mine(vec![funded]);
        ledger.put(paid.clone());
    });
    for provider in &both {
        assert_eq!(fate(provider).await, Ok(Fate::Waiting));
    }
    node.ledger(|ledger| {
        ledger.mine(vec![paid]);
        ledger.bury(2);
    });
    for provider in &both {
        let found = fate(provider).await;
        let Ok(Fate::Included { block, depth, .. }) = found else {
            panic!("{found:?}");
        };
        assert_eq!((block.number, depth), (2, 2));
    }
    // A reorg gives it back to the pool.
    node.ledger(|ledger| ledger.undo(3));
    for provider in &both {
        assert_eq!(fate(provider).await, Ok(Fate::Waiting));
    }
}
