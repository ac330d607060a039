//! Withdrawals: the account that a depository makes when it executes one.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use vm::{
    Block, Bytes, ChainReader, ReadError, StateReader, WithdrawalStatus,
    quorum::Quorum,
    solana::programs::{SYSTEM, used_request},
};

use super::{
    build::{Tx, key, program, vault},
    node::{Node, World, node, spec},
};

/// The clock of slot 100.
const NOW: i64 = 1_760_000_100;
const USED: [u8; 8] = [0x87, 0x86, 0x6e, 0x4d, 0x96, 0x62, 0xb4, 0x6b];

fn withdrawal(expiration: i64) -> Value {
    json!({
        "domain": format!("0x{}", "11".repeat(32)), "recipient": key(2).to_string(),
        "token": SYSTEM.to_string(), "amount": "5", "nonce": "6", "expiration": expiration,
        "vaultAddress": vault().to_string(),
    })
}

fn encoded(withdrawal: &Value) -> Bytes {
    let codec = vm::family("solana-vm").unwrap().withdrawals.unwrap();
    codec.encode(withdrawal).unwrap().into()
}

fn account(withdrawal: &Bytes) -> String {
    let id = Sha256::digest(withdrawal).into();
    used_request(&program(), &id).unwrap().to_string()
}

fn holding(owner: impl ToString, data: &[u8]) -> Value {
    json!({"owner": owner.to_string(), "data": [STANDARD.encode(data), "base64"], "lamports": 1})
}

async fn at(node: &Node, withdrawal: &Bytes) -> Result<WithdrawalStatus, ReadError> {
    let provider = node.open(&spec(json!({})));
    let head = provider.reader.head().await?;
    let state = provider.state.unwrap();
    let block: Block = state.settled(&head).await?.unwrap();
    assert_eq!(block, head.block);
    state.withdrawal(withdrawal, None, &block).await
}

#[tokio::test]
async fn a_withdrawal_is_executed_expired_or_pending() {
    let node = node(World::up_to(100)).await;
    let cases = [
        (NOW + 1, WithdrawalStatus::Pending),
        (NOW, WithdrawalStatus::Pending),
        (NOW - 1, WithdrawalStatus::Expired),
        (-5, WithdrawalStatus::Expired),
        (i64::MAX, WithdrawalStatus::Pending),
    ];
    for (expiration, status) in cases {
        let asked = encoded(&withdrawal(expiration));
        assert_eq!(at(&node, &asked).await, Ok(status), "{expiration}");
        let used = holding(program(), &[&USED[..], &[1]].concat());
        node.change(|world| {
            world.accounts.insert(account(&asked), used);
        });
        assert_eq!(at(&node, &asked).await, Ok(WithdrawalStatus::Executed));
    }
}

/// Anybody can send lamports to an address, and what else stands there nobody knows.
#[tokio::test]
async fn an_account_that_says_nothing_signs_nothing() {
    let node = node(World::up_to(100)).await;
    let asked = encoded(&withdrawal(NOW - 1));
    let used = [&USED[..], &[1]].concat();
    let cases = [
        (holding(SYSTEM, &[]), Some(WithdrawalStatus::Expired)),
        (
            holding(program(), &[&USED[..], &[0]].concat()),
            Some(WithdrawalStatus::Expired),
        ),
        (holding(SYSTEM, &used), None),
        (holding(key(3), &used), None),
        (holding(program(), &[]), None),
        (holding(program(), &USED), None),
        (holding(program(), &[&USED[..], &[2]].concat()), None),
        (holding(program(), &[&used[..], &[0]].concat()), None),
        (holding(program(), &[&[0; 8][..], &[1]].concat()), None),
        (
            json!({"owner": program().to_string(), "data": ["%", "base64"]}),
            None,
        ),
        (
            json!({"owner": program().to_string(), "data": ["", "base58"]}),
            None,
        ),
    ];
    for (shown, wanted) in cases {
        let put = shown.clone();
        node.change(|world| {
            world.accounts.insert(account(&asked), put);
        });
        match (at(&node, &asked).await, wanted) {
            (Ok(status), Some(wanted)) => assert_eq!(status, wanted, "{shown}"),
            (Err(ReadError::Doubtful(_)), None) => {}
            other => panic!("{shown}: {other:?}"),
        }
    }
}

/// The reference takes every failure to read the account for one that is not there.
#[tokio::test]
async fn a_failed_read_is_no_answer() {
    let asked = encoded(&withdrawal(NOW - 1));
    let lies = [
        json!({"error": {"code": -32016, "message": "not reached"}}),
        json!({"error": {"code": -32602, "message": "invalid"}}),
        json!({"result": null}),
        json!({"result": {"context": {"slot": 100}}}),
        json!({"result": {"context": {"slot": 99}, "value": null}}),
        json!({"result": {"value": null}}),
        json!({}),
    ];
    for lie in lies {
        let node = node(World::up_to(100)).await;
        let shown = lie.clone();
        node.lie(move |method, _, answer| {
            if method == "getAccountInfo" {
                *answer = shown.clone();
            }
        });
        let found = at(&node, &asked).await;
        assert!(found.is_err(), "{lie} {found:?}");
    }
}

/// Another fork.
fn fork() -> World {
    let mut other = World::up_to(100);
    (1..=104).for_each(|slot| other.put_block(slot, slot - 1, 1));
    other
}

#[tokio::test]
async fn a_node_that_changes_fork_between_two_answers_says_nothing() {
    let asked = encoded(&withdrawal(NOW - 1));
    let used = holding(program(), &[&USED[..], &[1]].concat());
    for executed in [false, true] {
        let mut world = World::up_to(100);
        let used = executed.then(|| (account(&asked), used.clone()));
        world.accounts.extend(used);
        let node = node(world).await;
        let state = node.state.clone();
        node.lie(move |method, _, _| {
            if method == "getAccountInfo" {
                *state.world.lock().unwrap() = fork();
            }
        });
        let found = at(&node, &asked).await;
        assert!(matches!(found, Err(ReadError::Doubtful(_))), "{found:?}");
    }
    let node = node(World::up_to(100)).await;
    let provider = node.open(&spec(json!({"finalizationBlocks": 10})));
    let head = provider.reader.head().await.unwrap();
    let state = node.state.clone();
    node.lie(move |method, _, _| {
        if method == "getBlocks" {
            *state.world.lock().unwrap() = fork();
        }
    });
    let found = provider.state.unwrap().settled(&head).await;
    assert!(matches!(found, Err(ReadError::Doubtful(_))), "{found:?}");
}

/// No hash proves a time: each provider has its own word for that of a head that is handed to it.
#[tokio::test]
async fn the_time_of_one_liars_head_expires_nothing() {
    let asked = encoded(&withdrawal(NOW + 1_000));
    let nodes = [
        node(World::up_to(100)).await,
        node(World::up_to(100)).await,
        node(World::up_to(100)).await,
    ];
    nodes[0].lie(|method, _, answer| match method {
        "getBlock" => answer["result"]["blockTime"] = json!(NOW + 9_000),
        "getBlockTime" => answer["result"] = json!(NOW + 9_000),
        _ => {}
    });
    let spec = spec(json!({}));
    let providers = nodes.iter().map(|node| node.open(&spec)).collect();
    let quorum = Quorum::new(&spec.id, providers, 2).unwrap();
    let mut head = quorum.head().await.unwrap();
    head.block.time = (NOW + 9_000).unsigned_abs();
    let block = quorum.settled(&head).await.unwrap().unwrap();
    assert_eq!(block.time, NOW.unsigned_abs());
    let found = quorum.withdrawal(&asked, None, &block).await;
    assert_eq!(found, Ok(WithdrawalStatus::Pending));
}

#[tokio::test]
async fn only_withdrawals_of_this_depository_are_judged() {
    let node = node(World::up_to(100)).await;
    let mut other = withdrawal(NOW - 1);
    other["vaultAddress"] = json!(key(4).to_string());
    for asked in [encoded(&other), Bytes::from(vec![1, 2, 3])] {
        let found = at(&node, &asked).await;
        assert!(matches!(found, Err(ReadError::Foreign(_))), "{found:?}");
    }
    let mut longer = encoded(&withdrawal(NOW - 1)).to_vec();
    longer.push(0);
    assert!(at(&node, &longer.into()).await.is_err());
    assert_eq!(node.calls("getAccountInfo"), 0);
}

/// It is executed between the reads of two providers: nobody has lied.
#[tokio::test]
async fn an_execution_between_two_reads_sets_nobody_aside() {
    let asked = encoded(&withdrawal(NOW + 1_000));
    let nodes = [
        node(World::up_to(100)).await,
        node(World::up_to(100)).await,
        node(World::up_to(100)).await,
    ];
    let used = holding(program(), &[&USED[..], &[1]].concat());
    for node in &nodes[..2] {
        node.change(|world| {
            world.accounts.insert(account(&asked), used.clone());
        });
    }
    // The third knows it by the second question.
    let (late, of) = (nodes[2].state.clone(), account(&asked));
    nodes[2].lie(move |method, _, answer| {
        let mut asked = late.calls.lock().unwrap();
        asked.push(method.to_owned());
        let times = asked
            .iter()
            .filter(|call| *call == "getAccountInfo")
            .count();
        if method == "getAccountInfo" && times > 2 {
            answer["result"]["value"] = used.clone();
        }
    });
    let spec = spec(json!({}));
    let providers = nodes.iter().map(|node| node.open(&spec)).collect();
    let quorum = Quorum::new(&spec.id, providers, 2).unwrap();
    let head = quorum.head().await.unwrap();
    let block = quorum.settled(&head).await.unwrap().unwrap();
    let found = quorum.withdrawal(&asked, None, &block).await;
    assert_eq!(found, Ok(WithdrawalStatus::Executed), "{of}");
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert!(quorum.health().iter().all(|health| !health.set_aside));
}

#[tokio::test]
async fn an_entry_may_ask_for_depth_and_age() {
    let deeper = spec(json!({"finalizationBlocks": 10, "finalizationTime": 30}));
    let mut world = World::up_to(100);
    world.skip(70);
    let node = node(world).await;
    let provider = node.open(&deeper);
    let head = provider.reader.head().await.unwrap();
    let block = provider.state.unwrap().settled(&head).await;
    let block = block.unwrap().unwrap();
    assert!(deeper.finality.met(&block, &head));
    assert!((60..=70).contains(&block.number), "{}", block.number);
}

#[test]
fn executed_transfers_are_known_by_the_hash_of_their_request() {
    let asked = encoded(&withdrawal(NOW));
    let kind = [0xe9, 0x7e, 0xa0, 0xb8, 0xeb, 0xce, 0x1f, 0x77];
    let executed = |program, data: Vec<u8>| {
        let tx = Tx::by(&[key(1)]).with(program, &[vault(), key(2)], data);
        tx.receipt().executions
    };
    let data = [&kind[..], &asked[..]].concat();
    let found = executed(program(), data.clone());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id.0, <[u8; 32]>::from(Sha256::digest(&asked)));
    assert_eq!(found[0].depository.text(), program().to_string());
    // Behind the request the program reads nothing.
    let longer = [&data[..], &[7; 9]].concat();
    assert_eq!(executed(program(), longer), found);
    assert!(executed(key(9), data.clone()).is_empty());
    assert!(executed(program(), data[..40].to_vec()).is_empty());
    assert!(executed(program(), kind.to_vec()).is_empty());
}
