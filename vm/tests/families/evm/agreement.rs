//! Three nodes over HTTP, two of which must agree (guide: protocol 12.1).

use serde_json::{Value, json};
use vm::{
    ChainId, ChainReader, ReadError, Transaction,
    quorum::{Health, Quorum},
};

use super::{
    chain::{self, block, tx},
    node::{Manner, Node, node},
};

const DEPOSIT: &str = "0xa07f784e5645430e841f1cbfd8733b5cdd68e83c8f880fcff84ebdb5e3e9af46";

async fn three() -> ([Node; 3], Quorum) {
    let nodes = [node().await, node().await, node().await];
    let quorum = agree(&nodes, 2);
    (nodes, quorum)
}

fn agree(nodes: &[Node], required: usize) -> Quorum {
    let providers = nodes.iter().map(Node::open).collect();
    Quorum::new(&ChainId::new("ethereum"), providers, required).unwrap()
}

async fn read(quorum: &Quorum) -> Result<Transaction, ReadError> {
    let head = quorum.head().await?;
    quorum.transaction(&tx(DEPOSIT), &head).await
}

fn truth() -> Transaction {
    Transaction::Succeeded(chain::decode(DEPOSIT))
}

fn lost<T: std::fmt::Debug>(answer: Result<T, ReadError>, name: &str) {
    assert!(
        matches!(answer, Err(ReadError::Quorum(_))),
        "{name}: {answer:?}"
    );
}

type Lie = fn(&str, &Value, &mut Value);

fn forged_amount(method: &str, _: &Value, result: &mut Value) {
    if method == "eth_getTransactionReceipt" {
        let data = result["logs"][0]["data"].as_str().unwrap();
        result["logs"][0]["data"] = json!(data.replace("03e8", "ffff"));
    }
}

fn added_log(method: &str, _: &Value, result: &mut Value) {
    if method == "eth_getTransactionReceipt" {
        let mut log = result["logs"][0].clone();
        log["logIndex"] = json!("0x7");
        result["logs"].as_array_mut().unwrap().push(log);
    }
}

fn dropped_log(method: &str, _: &Value, result: &mut Value) {
    if method == "eth_getTransactionReceipt" {
        result["logs"] = json!([]);
    }
}

fn wrong_status(method: &str, _: &Value, result: &mut Value) {
    if method == "eth_getTransactionReceipt" {
        result["status"] = json!("0x0");
    }
}

fn hidden(method: &str, _: &Value, result: &mut Value) {
    if method.starts_with("eth_getTransaction") {
        *result = Value::Null;
    }
}

fn another_time(method: &str, params: &Value, result: &mut Value) {
    if method == "eth_getBlockByNumber" && params[0] == "0x88" {
        result["timestamp"] = json!("0x1");
    }
}

fn another_chain(method: &str, _: &Value, result: &mut Value) {
    if method == "eth_chainId" {
        *result = json!("0x1");
    }
}

fn future_block(method: &str, params: &Value, result: &mut Value) {
    if method == "eth_getBlockByNumber" && params[0] == "latest" {
        result["number"] = json!("0x1000");
    }
}

fn stale_by_one(method: &str, params: &Value, result: &mut Value) {
    if method == "eth_getBlockByNumber" && params[0] == "latest" {
        *result = chain::header(149).unwrap();
    }
}

fn stale_by_hundred(method: &str, params: &Value, result: &mut Value) {
    if method == "eth_getBlockByNumber" && params[0] == "latest" {
        *result = chain::header(50).unwrap();
    }
}

const LIES: [(&str, Lie); 10] = [
    ("forged amount", forged_amount),
    ("added log", added_log),
    ("dropped log", dropped_log),
    ("wrong status", wrong_status),
    ("hidden", hidden),
    ("another time", another_time),
    ("another chain", another_chain),
    ("future block", future_block),
    ("stale by one", stale_by_one),
    ("stale by hundred", stale_by_hundred),
];

#[tokio::test]
async fn one_liar_changes_nothing() {
    for (name, lie) in LIES {
        let (nodes, quorum) = three().await;
        nodes[0].lie(lie);
        assert_eq!(read(&quorum).await, Ok(truth()), "{name}");
    }
}

#[tokio::test]
async fn liar_and_honest_node_alone_agree_on_nothing_false() {
    for (name, lie) in LIES {
        let (nodes, quorum) = three().await;
        nodes[0].lie(lie);
        nodes[1].behave(Manner::Status(503, None));
        match read(&quorum).await {
            Err(ReadError::Quorum(_)) => {}
            // A tip behind hides what is above it, and says nothing false below.
            answer if name.starts_with("stale") => match answer {
                Ok(found) => assert!(found == truth() || found == Transaction::Missing, "{name}"),
                Err(error) => panic!("{name}: {error}"),
            },
            answer => panic!("{name}: {answer:?}"),
        }
    }
}

#[tokio::test]
async fn forger_is_on_record_and_set_aside() {
    for (name, lie) in &LIES[..6] {
        let (nodes, quorum) = three().await;
        nodes[2].lie(lie);
        read(&quorum).await.unwrap();
        // What is merely not there may have been pruned.
        let aside = *name != "hidden";
        let caught = |health: &Health| health.disputes == 1 && health.set_aside == aside;
        while !caught(&quorum.health()[2]) {
            tokio::task::yield_now().await;
        }
        assert_eq!(quorum.health()[0].disputes, 0, "{name}");
        assert_eq!(quorum.health()[1].disputes, 0, "{name}");
    }
}

#[tokio::test]
async fn node_on_another_fork_is_outvoted() {
    let (nodes, quorum) = three().await;
    nodes[1]
        .state
        .fork
        .store(100, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(quorum.head().await.unwrap().block, block(150));
    assert_eq!(read(&quorum).await, Ok(truth()));
    nodes[2]
        .state
        .fork
        .store(120, std::sync::atomic::Ordering::SeqCst);
    lost(quorum.fresh_head().await, "three forks");
}

/// One after the other is lost in this manner.
async fn lose(manner: Manner) {
    let (nodes, quorum) = three().await;
    nodes[0].behave(manner.clone());
    let name = format!("{manner:?}");
    assert_eq!(read(&quorum).await, Ok(truth()), "{name}: one lost");
    nodes[1].behave(manner.clone());
    lost(quorum.fresh_head().await, &name);
    nodes[2].behave(manner);
    lost(quorum.fresh_head().await, &name);
}

#[tokio::test]
async fn lost_providers_never_lower_the_quorum() {
    for manner in [
        Manner::Status(500, None),
        Manner::Status(429, Some("30")),
        Manner::Flood,
        Manner::Bytes(b"{"),
    ] {
        lose(manner).await;
    }
    // These take as long as a provider may.
    futures::future::join(lose(Manner::Drip), lose(Manner::Hang)).await;
}

#[tokio::test]
async fn refused_connections_never_lower_the_quorum() {
    let ([first, second, third], quorum) = three().await;
    drop(first);
    assert_eq!(read(&quorum).await, Ok(truth()));
    drop(second);
    lost(quorum.fresh_head().await, "one left");
    drop(third);
    lost(quorum.fresh_head().await, "none left");
}
