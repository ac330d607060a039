//! The reader over HTTP: an honest node, and nodes that lag, lie, or show less than others.

use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use serde_json::{Value, json};
use vm::{
    B256, Block, ChainReader, Head, Provider, ReadError, Receipt, Transaction, TxRef,
    quorum::Quorum,
};

use super::{
    build::{Tx, key, token_transfer, vault, vault_tokens},
    node::{GENESIS, Node, World, hash, node, spec},
};

fn tx(signature: &[u8; 64]) -> TxRef {
    let text = bs58::encode(signature).into_string();
    spec(json!({})).family.tx(&text, None).unwrap()
}

/// A deposit of 100, in the block of `slot`.
fn deposit(signature: &[u8; 64], slot: u64) -> (String, Value) {
    let user = key(1);
    let shown = Tx::by(&[user])
        .depositing(user, 100, 9)
        .lamports(vault(), 0, 100)
        .shown(signature, slot);
    (bs58::encode(signature).into_string(), shown)
}

const SIGNATURE: [u8; 64] = [3; 64];

/// A chain with a deposit at slot 90.
fn world() -> World {
    let mut world = World::up_to(100);
    world.transactions.extend([deposit(&SIGNATURE, 90)]);
    world
}

fn open(node: &Node) -> Provider {
    node.open(&spec(json!({})))
}

fn block(slot: u64, fork: u8) -> Block {
    let hash = |slot: u64| {
        let key: solana_pubkey::Pubkey = hash(slot, fork).parse().unwrap();
        B256::new(key.to_bytes())
    };
    Block {
        number: slot,
        hash: hash(slot),
        parent: hash(slot - 1),
        time: 1_760_000_000 + slot,
    }
}

fn head(slot: u64) -> Head {
    Head {
        block: block(slot, 0),
        tagged: None,
    }
}

/// The deposit as `node` shows it from the head at slot 100.
async fn look(node: &Node) -> Result<Transaction, ReadError> {
    let reader = open(node).reader;
    reader.transaction(&tx(&SIGNATURE), &head(100)).await
}

fn receipt(found: Transaction) -> Receipt {
    match found {
        Transaction::Succeeded(receipt) => receipt,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_head_is_the_newest_finalized_block() {
    let node = node(world()).await;
    let reader = open(&node).reader;
    assert_eq!(reader.head().await, Ok(head(100)));
    node.change(|world| world.finalized = 101);
    // One read serves for a moment.
    assert_eq!(reader.head().await, Ok(head(100)));
    assert_eq!(reader.fresh_head().await, Ok(head(101)));
    assert_eq!(node.calls("getSlot"), 2);
}

#[tokio::test]
async fn a_slot_that_is_not_shown_yet_and_a_block_without_a_time_are_no_head() {
    let mut shown = world();
    shown.blocks.remove(&100);
    shown.skip(98);
    shown.blocks.get_mut(&99).unwrap()["blockTime"] = Value::Null;
    let node = node(shown).await;
    assert_eq!(open(&node).reader.head().await, Ok(head(97)));
    // The time may stand beside the block.
    node.change(|world| {
        world.times.insert(99, json!(1_760_000_099));
    });
    let found = open(&node).reader.head().await.unwrap();
    assert_eq!((found.block.number, found.block.time), (99, 1_760_000_099));
    assert_eq!(found.block.hash, block(99, 0).hash);
    assert_eq!(found.block.parent, block(97, 0).hash);
    node.change(|world| world.blocks.clear());
    assert!(matches!(
        open(&node).reader.head().await,
        Err(ReadError::Unavailable(_))
    ));
}

#[tokio::test]
async fn a_deposit_is_read_with_its_block() {
    let node = node(world()).await;
    let receipt = receipt(look(&node).await.unwrap());
    assert_eq!(receipt.block, block(90, 0));
    assert_eq!(receipt.deposits.unwrap().len(), 1);
}

#[tokio::test]
async fn a_time_that_the_transaction_lacks_is_its_blocks() {
    let node = node(world()).await;
    let read = async || look(&node).await.map(|found| receipt(found).block.time);
    let id = bs58::encode(SIGNATURE).into_string();
    node.change(|world| {
        world.transactions.get_mut(&id).unwrap()["blockTime"] = Value::Null;
    });
    assert_eq!(read().await, Ok(1_760_000_090));
    node.change(|world| {
        world.blocks.get_mut(&90).unwrap()["blockTime"] = Value::Null;
        world.times.insert(90, json!(1_760_000_077));
    });
    assert_eq!(read().await, Ok(1_760_000_077));
    node.change(|world| {
        world.times.insert(90, Value::Null);
    });
    assert!(matches!(read().await, Err(ReadError::Unavailable(_))));
}

#[tokio::test]
async fn what_is_only_confirmed_does_not_exist() {
    let mut shown = world();
    let other = [4; 64];
    shown.transactions.extend([deposit(&other, 102)]);
    let node = node(shown).await;
    let reader = open(&node).reader;
    let look = async |slot: u64| reader.transaction(&tx(&other), &head(slot)).await;
    assert_eq!(look(100).await, Ok(Transaction::Missing));
    // It is dropped: the slot is skipped, and the chain goes on without it.
    node.change(|world| {
        world
            .transactions
            .remove(&bs58::encode(other).into_string());
        world.skip(102);
        world.finalized = 104;
    });
    assert_eq!(look(104).await, Ok(Transaction::Missing));
}

#[tokio::test]
async fn transactions_above_the_head_and_ids_of_other_lengths_are_missing() {
    let node = node(world()).await;
    let reader = open(&node).reader;
    let found = reader.transaction(&tx(&SIGNATURE), &head(89)).await;
    assert_eq!(found, Ok(Transaction::Missing));
    let found = reader.transaction(&tx(&[5; 64]), &head(100)).await;
    assert_eq!(found, Ok(Transaction::Missing));
    let short = TxRef {
        bytes: vec![1; 63].into(),
        ..tx(&SIGNATURE)
    };
    assert_eq!(
        reader.transaction(&short, &head(100)).await,
        Ok(Transaction::Missing)
    );
}

/// Another machine answers behind the same address since the head was shown.
#[tokio::test]
async fn nothing_is_missing_at_a_node_behind_the_head() {
    let node = node(world()).await;
    let reader = open(&node).reader;
    let head = reader.fresh_head().await.unwrap();
    node.change(|world| world.finalized = 80);
    let found = reader.transaction(&tx(&SIGNATURE), &head).await;
    assert!(matches!(found, Err(ReadError::Unavailable(_))), "{found:?}");
}

#[tokio::test]
async fn reads_are_pinned_to_the_head() {
    let node = node(world()).await;
    let reader = open(&node).reader;
    let fork = Head {
        block: block(100, 1),
        tagged: None,
    };
    let other = reader.transaction(&tx(&SIGNATURE), &fork).await;
    assert!(matches!(other, Err(ReadError::Doubtful(_))), "{other:?}");
    let behind = reader.transaction(&tx(&SIGNATURE), &head(103)).await;
    assert!(matches!(behind, Err(ReadError::Unavailable(_))));
}

/// Another fork, with the deposit at the same slot.
fn fork() -> World {
    let mut other = world();
    (1..=104).for_each(|slot| other.put_block(slot, slot - 1, 1));
    other
}

/// No answer about a transaction says of which fork it is.
#[tokio::test]
async fn a_node_that_changes_fork_between_two_answers_shows_no_transaction() {
    let reads = ["getBlock", "getTransaction", "getBlock", "getBlock"];
    for answers in 1..=reads.len() {
        let node = node(world()).await;
        let state = node.state.clone();
        node.lie(move |_, _, _| {
            if state.calls.lock().unwrap().len() == answers {
                *state.world.lock().unwrap() = fork();
            }
        });
        let found = look(&node).await;
        let asked = node.state.calls.lock().unwrap().clone();
        match answers == reads.len() {
            true => assert_eq!(receipt(found.unwrap()).block, block(90, 0)),
            false => assert!(matches!(found, Err(ReadError::Doubtful(_))), "{found:?}"),
        }
        assert_eq!(asked, reads, "{answers}");
    }
}

#[tokio::test]
async fn a_block_is_not_remembered_from_another_fork() {
    let node = node(world()).await;
    let reader = open(&node).reader;
    let read = async |fork: u8| {
        let head = Head {
            block: block(100, fork),
            tagged: None,
        };
        let found = reader.transaction(&tx(&SIGNATURE), &head).await;
        found.map(|found| receipt(found).block)
    };
    assert_eq!(read(0).await, Ok(block(90, 0)));
    node.change(|world| *world = fork());
    assert_eq!(read(1).await, Ok(block(90, 1)));
    assert!(matches!(read(0).await, Err(ReadError::Doubtful(_))));
}

#[tokio::test]
async fn a_skipped_slot_is_known_by_the_block_behind_it() {
    let node = node(world()).await;
    let reader = open(&node).reader;
    assert_eq!(reader.contains(&block(90, 0)).await, Ok(true));
    assert_eq!(reader.contains(&block(90, 1)).await, Ok(false));
    assert_eq!(reader.contains(&block(103, 0)).await, Ok(false));
    // This node has lost the block, or it is too old: that says nothing about it.
    node.change(|world| {
        world.blocks.remove(&90);
    });
    let lost = reader.contains(&block(90, 0)).await;
    assert!(matches!(lost, Err(ReadError::Unavailable(_))), "{lost:?}");
    node.change(|world| world.put_block(91, 89, 0));
    assert_eq!(reader.contains(&block(90, 0)).await, Ok(false));
    node.lie(|method, _, answer| {
        if method == "getBlock" {
            *answer = json!({"error": {"code": -32001, "message": "cleaned up"}});
        }
    });
    let old = reader.contains(&block(90, 0)).await;
    assert!(matches!(old, Err(ReadError::Unavailable(_))), "{old:?}");
}

/// The time of a head is what enough nodes say: no hash proves it.
#[tokio::test]
async fn a_block_of_another_time_is_not_the_chains_and_one_without_a_time_says_nothing() {
    let node = node(world()).await;
    let reader = open(&node).reader;
    let mut dated = block(100, 0);
    dated.time += 1;
    assert_eq!(reader.contains(&block(100, 0)).await, Ok(true));
    assert_eq!(reader.contains(&dated).await, Ok(false));
    // The time may stand beside the block, or nowhere.
    node.change(|world| {
        world.blocks.get_mut(&90).unwrap()["blockTime"] = Value::Null;
        world.times.insert(90, json!(1_760_000_090));
    });
    assert_eq!(reader.contains(&block(90, 0)).await, Ok(true));
    node.change(|world| {
        world.times.insert(90, Value::Null);
    });
    let silent = reader.contains(&block(90, 0)).await;
    assert!(
        matches!(silent, Err(ReadError::Unavailable(_))),
        "{silent:?}"
    );
}

#[tokio::test]
async fn one_node_alone_dates_no_head() {
    let nodes = [node(world()).await, node(world()).await];
    nodes[0].lie(|method, _, answer| match method {
        "getBlock" => answer["result"]["blockTime"] = json!(1_770_000_000),
        "getBlockTime" => answer["result"] = json!(1_770_000_000),
        _ => {}
    });
    let head = quorum(&nodes).head().await;
    assert!(matches!(head, Err(ReadError::Quorum(_))), "{head:?}");
}

#[test]
fn public_chains_are_known_by_their_first_blocks() {
    let eclipse = "EAQLJCV2mh23BsK2P9oYpV5CHVLDNHTxYss3URrNmg3s";
    for (id, genesis) in [("solana", GENESIS), ("eclipse", eclipse)] {
        let entry = json!({"id": id, "vmType": "solana-vm", "hubChainId": "7"});
        let entry: vm::ChainEntry = serde_json::from_value(entry).unwrap();
        assert_eq!(entry.public().additional_data["genesisHash"], genesis);
    }
}

#[tokio::test]
async fn a_node_of_another_chain_is_doubtful() {
    let node = node(world()).await;
    let wrong = node.open(&spec(json!({"genesisHash": hash(1, 1)})));
    let found = wrong.reader.head().await;
    assert!(matches!(found, Err(ReadError::Doubtful(_))), "{found:?}");
    let right = node.open(&spec(json!({"genesisHash": GENESIS})));
    assert_eq!(right.reader.head().await, Ok(head(100)));
    assert_eq!(right.reader.fresh_head().await, Ok(head(100)));
    assert_eq!(node.calls("getGenesisHash"), 2);
    let family = spec(json!({})).family;
    let bad = spec(json!({"genesisHash": "0x12"}));
    let endpoint = vm::Endpoint {
        position: 1,
        url: "http://127.0.0.1:1/".parse().unwrap(),
        timeout: Duration::from_secs(1),
        longest: 1,
        allows: None,
        client: vm::Endpoint::client().unwrap(),
    };
    assert!((family.open.unwrap())(&bad, &endpoint).is_err());
}

#[tokio::test]
async fn what_goes_wrong_is_said_without_secrets() {
    let silent = node(world()).await;
    silent.state.hanging.store(true, SeqCst);
    let busy = node(world()).await;
    busy.state.busy.store(true, SeqCst);
    for node in [silent, busy] {
        let reader = open(&node).reader;
        let error = reader.head().await.unwrap_err();
        assert!(matches!(error, ReadError::Unavailable(_)), "{error}");
        assert!(!format!("{error:?}").contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn a_node_that_asks_for_silence_gets_it() {
    let node = node(world()).await;
    let reader = open(&node).reader;
    node.state.busy.store(true, SeqCst);
    assert!(reader.head().await.is_err());
    node.state.busy.store(false, SeqCst);
    let error = reader.fresh_head().await.unwrap_err();
    assert!(error.to_string().contains("asked to wait"), "{error}");
    assert_eq!(node.calls("getSlot"), 0);
}

#[tokio::test]
async fn answers_that_are_none_are_not_believed() {
    let huge = "x".repeat(5 << 20);
    let lies: [(&str, Value); 6] = [
        ("getTransaction", json!({"result": {"slot": 90}})),
        ("getTransaction", json!({"result": 7})),
        ("getBlock", json!({"result": {"blockhash": "1"}})),
        ("getBlock", json!({"result": null})),
        (
            "getTransaction",
            json!({"error": {"code": -32005, "message": "behind"}}),
        ),
        (
            "getTransaction",
            json!({"result": {"slot": 90, "more": huge}}),
        ),
    ];
    for (told, lie) in lies {
        let node = node(world()).await;
        let shown = lie.clone();
        node.lie(move |method, _, answer| {
            if method == told {
                *answer = shown.clone();
            }
        });
        let found = look(&node).await;
        let is_long = lie["result"]["more"].is_string();
        assert_eq!(found == Err(ReadError::TooLarge), is_long, "{told}");
        assert!(found.is_err(), "{told}");
    }
    // A block that stands before its parent, and times before 1970.
    for (field, value) in [("parentSlot", json!(90)), ("blockTime", json!(-7))] {
        let node = node(world()).await;
        node.change(|world| {
            world.blocks.get_mut(&90).unwrap()[field] = value;
        });
        let found = look(&node).await;
        assert!(matches!(found, Err(ReadError::Doubtful(_))), "{field}");
    }
}

/// Without balances in the answer, as the reference's recorded node shows none, the token account itself says what it
/// holds; its address proves it.
#[tokio::test]
async fn an_unnamed_token_is_looked_up_and_checked() {
    let (user, mint) = (key(1), key(0x70));
    let to = vault_tokens(&mint, &vm::solana::programs::TOKEN);
    let accounts = [key(8), to, user];
    let mut shown = Tx::by(&[user])
        .with(vm::solana::programs::TOKEN, &accounts, token_transfer(70))
        .shown(&SIGNATURE, 90);
    for field in ["preBalances", "postBalances"] {
        shown["meta"][field] = json!([0, 0, 0, 0]);
    }
    let mut world = world();
    world
        .transactions
        .insert(bs58::encode(SIGNATURE).into_string(), shown);
    let node = node(world).await;
    let read = async || receipt(look(&node).await.unwrap()).deposits.unwrap();
    assert!(read().await.is_empty());
    let account = |mint: solana_pubkey::Pubkey| json!({"data": {"parsed": {"info": {"mint": mint.to_string()}}}, "owner": key(9).to_string()});
    node.change(|world| {
        world.accounts.insert(to.to_string(), account(key(0x71)));
    });
    assert!(read().await.is_empty());
    node.change(|world| {
        world.accounts.insert(to.to_string(), account(mint));
    });
    let [deposit] = &read().await[..] else {
        panic!("one deposit expected")
    };
    assert_eq!(deposit.currency.text(), mint.to_string());
}

fn quorum(nodes: &[Node]) -> Arc<Quorum> {
    let spec = spec(json!({}));
    let providers = nodes.iter().map(|node| node.open(&spec)).collect();
    Arc::new(Quorum::new(&spec.id, providers, 2).unwrap())
}

#[tokio::test]
async fn one_of_three_may_lie_about_anything() {
    let forged = |path: &'static str, value: Value| {
        move |method: &str, _: &Value, answer: &mut Value| {
            if method == "getTransaction"
                && let Some(part) = answer.pointer_mut(path)
            {
                *part = value.clone();
            }
        }
    };
    let more = bs58::encode(super::build::deposit_native(900, 9)).into_string();
    let lies = [
        ("/result", Value::Null),
        ("/result/slot", json!(91)),
        ("/result/meta/err", json!({"Custom": 1})),
        (
            "/result/transaction/message/instructions/0/data",
            json!(more),
        ),
        ("/result/meta/postBalances", json!([0, 0, 9_000, 0, 0])),
        ("/result/blockTime", json!(1)),
    ];
    for (path, value) in lies {
        let nodes = [
            node(world()).await,
            node(world()).await,
            node(world()).await,
        ];
        nodes[1].lie(forged(path, value));
        let quorum = quorum(&nodes);
        let head = quorum.head().await.unwrap();
        let found = quorum.transaction(&tx(&SIGNATURE), &head).await.unwrap();
        let receipt = receipt(found);
        assert_eq!(receipt.block, block(90, 0), "{path}");
        let deposits = receipt.deposits.unwrap();
        assert_eq!(deposits[0].amount, vm::U256::from(100), "{path}");
    }
}

#[tokio::test]
async fn a_provider_one_slot_behind_stops_nobody() {
    let nodes = [
        node(world()).await,
        node(world()).await,
        node(world()).await,
    ];
    nodes[0].change(|world| world.finalized = 99);
    let quorum = quorum(&nodes);
    assert_eq!(quorum.head().await, Ok(head(100)));
    let found = quorum.transaction(&tx(&SIGNATURE), &head(100)).await;
    assert_eq!(receipt(found.unwrap()).block, block(90, 0));
    assert_eq!(quorum.contains(&block(90, 0)).await, Ok(true));
    assert!(quorum.health().iter().all(|health| !health.set_aside));
    // Two of three make the head.
    nodes[1].change(|world| world.finalized = 99);
    assert_eq!(quorum.fresh_head().await, Ok(head(99)));
}

#[tokio::test]
async fn providers_that_all_differ_agree_on_nothing() {
    let nodes = [
        node(world()).await,
        node(world()).await,
        node(world()).await,
    ];
    for (node, amount) in nodes[1..].iter().zip([7, 8]) {
        node.lie(move |method, _, answer| {
            if method == "getTransaction" {
                answer["result"]["blockTime"] = json!(1_760_000_000 + amount);
            }
        });
    }
    let quorum = quorum(&nodes);
    let head = quorum.head().await.unwrap();
    let found = quorum.transaction(&tx(&SIGNATURE), &head).await;
    assert!(matches!(found, Err(ReadError::Quorum(_))), "{found:?}");
}
