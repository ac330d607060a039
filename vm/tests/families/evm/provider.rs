//! One provider over HTTP: pinned views, round trips, and every way a node can fail or lie.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use serde_json::{Value, json};
use vm::{Block, ReadError, Transaction, WithdrawalStatus};

use super::{
    chain::{self, DEPOSITORY, address, block, tx},
    node::{Manner, Node, node},
};

/// A native deposit in block 10, and one in block 136.
const OLD: &str = "0x81a576ec1fab230515b8e7da89033598f44c56222ec945d798696db8d3aabc74";
const YOUNG: &str = "0xa07f784e5645430e841f1cbfd8733b5cdd68e83c8f880fcff84ebdb5e3e9af46";
const NOWHERE: &str = "0x1212121212121212121212121212121212121212121212121212121212121212";

async fn read(node: &Node, hash: &str) -> Result<Transaction, ReadError> {
    let reader = node.open().reader;
    let head = reader.head().await?;
    reader.transaction(&tx(hash), &head).await
}

fn block_of(found: &Transaction) -> &Block {
    match found {
        Transaction::Succeeded(receipt) => &receipt.block,
        Transaction::Failed(failure) => &failure.block,
        Transaction::Missing => panic!("missing"),
    }
}

fn doubtful<T: std::fmt::Debug>(answer: Result<T, ReadError>, name: &str) {
    assert!(
        matches!(answer, Err(ReadError::Doubtful(_))),
        "{name}: {answer:?}"
    );
}

fn unavailable<T: std::fmt::Debug>(answer: Result<T, ReadError>, name: &str) {
    assert!(
        matches!(answer, Err(ReadError::Unavailable(_))),
        "{name}: {answer:?}"
    );
}

#[tokio::test]
async fn honest_node_is_read() {
    let node = node().await;
    for (hash, number) in [(OLD, 10), (YOUNG, 136)] {
        let found = read(&node, hash).await.unwrap();
        assert_eq!(*block_of(&found), block(number));
    }
    assert_eq!(read(&node, NOWHERE).await, Ok(Transaction::Missing));
}

#[tokio::test]
async fn known_header_costs_one_round_trip_and_unknown_two() {
    let node = node().await;
    let reader = node.open().reader;
    let head = reader.head().await.unwrap();
    assert_eq!(node.posts(), 1, "head and chain id leave together");
    reader.transaction(&tx(OLD), &head).await.unwrap();
    assert_eq!(node.posts(), 3);
    reader.transaction(&tx(OLD), &head).await.unwrap();
    assert_eq!(node.posts(), 4);
    reader.head().await.unwrap();
    assert_eq!(node.posts(), 4);
    reader.transaction(&tx(YOUNG), &head).await.unwrap();
    assert_eq!(node.posts(), 6);
    reader.transaction(&tx(YOUNG), &head).await.unwrap();
    assert_eq!(node.posts(), 7);
}

#[tokio::test]
async fn provider_without_batches_is_asked_singly_and_remembered() {
    let node = node().await;
    node.state.batches.store(false, SeqCst);
    let reader = node.open().reader;
    let head = reader.head().await.unwrap();
    assert_eq!(node.posts(), 3);
    reader.transaction(&tx(OLD), &head).await.unwrap();
    assert_eq!(node.posts(), 7, "no further batch is tried");
}

#[tokio::test]
async fn credentials_and_path_of_the_url_are_used() {
    let node = node().await;
    let mut endpoint = node.endpoint();
    endpoint.url = format!("http://user:pass@127.0.0.1:{}/v2/key", node.port())
        .parse()
        .unwrap();
    let open = vm::ethereum::FAMILY.open.unwrap();
    let reader = open(&chain::shared_spec(), &endpoint).unwrap().reader;
    reader.head().await.unwrap();
    let authorization = node.state.authorization.lock().unwrap().clone();
    assert_eq!(authorization.as_deref(), Some("Basic dXNlcjpwYXNz"));
    assert_eq!(*node.state.path.lock().unwrap(), "/v2/key");
    node.behave(Manner::Status(500, None));
    let error = reader.fresh_head().await.unwrap_err().to_string();
    assert!(!error.contains("pass") && !error.contains("key"), "{error}");
    drop(node);
    let error = reader.fresh_head().await.unwrap_err().to_string();
    assert!(!error.contains("pass") && !error.contains("key"), "{error}");
}

#[tokio::test]
async fn transaction_above_the_pinned_head_is_missing() {
    let node = node().await;
    let reader = node.open().reader;
    let mut head = reader.head().await.unwrap();
    head.block = block(130);
    assert_eq!(
        reader.transaction(&tx(YOUNG), &head).await,
        Ok(Transaction::Missing)
    );
    head.block = block(136);
    let found = reader.transaction(&tx(YOUNG), &head).await.unwrap();
    assert_eq!(block_of(&found).number, 136);
}

#[tokio::test]
async fn receipts_that_do_not_fit_the_chain_are_doubtful() {
    let other = || json!(format!("0x{}", "ab".repeat(32)));
    let doubled = json!([{"logIndex": "0x0"}, {"logIndex": "0x0"}]);
    let lies = [
        ("eth_getTransactionReceipt", "/blockHash", other()),
        ("eth_getTransactionReceipt", "/blockNumber", json!("0xb")),
        ("eth_getTransactionReceipt", "/logs", doubled),
        ("eth_getTransactionReceipt", "/logs/0/data", json!("0x123")),
        ("eth_getTransactionReceipt", "/status", json!("0x2")),
        ("eth_getTransactionByHash", "/blockHash", other()),
        ("eth_getTransactionByHash", "", Value::Null),
        ("eth_getBlockByNumber", "/number", json!("0xb")),
        ("eth_getBlockByNumber", "/hash", other()),
    ];
    for (lied, place, lie) in lies {
        let node = node().await;
        let name = format!("{lied} {place}");
        node.lie(move |method, params, result| {
            if method == lied && params[0] != "latest" {
                *result.pointer_mut(place).unwrap() = lie.clone();
            }
        });
        doubtful(read(&node, OLD).await, &name);
    }
}

/// Strangers may ask about old transactions: nothing is held against a node that has not got all of one.
#[tokio::test]
async fn what_a_node_keeps_no_receipt_of_is_not_available() {
    for (place, kept) in [("", Value::Null), ("/status", Value::Null)] {
        let node = node().await;
        node.lie(move |method, _, result| {
            if method == "eth_getTransactionReceipt" {
                *result.pointer_mut(place).unwrap() = kept.clone();
            }
        });
        unavailable(read(&node, OLD).await, place);
    }
}

/// A node takes a new block into its parts one after the other, and goes on between two calls.
#[tokio::test]
async fn answers_from_before_and_after_a_new_block_are_asked_for_once_more() {
    let pending = [("/blockHash", Value::Null), ("/blockNumber", Value::Null)];
    type Check = fn(Result<Transaction, ReadError>, &str);
    let torn: [(&str, &[(&str, Value)], Check); 4] = [
        ("eth_getTransactionByHash", &pending, doubtful),
        ("eth_getTransactionByHash", &[("", Value::Null)], doubtful),
        ("eth_getTransactionReceipt", &pending, unavailable),
        (
            "eth_getTransactionReceipt",
            &[("", Value::Null)],
            unavailable,
        ),
    ];
    for (late, before, check) in torn {
        for (times, doubted) in [(1, false), (2, true)] {
            let node = node().await;
            let before = before.to_vec();
            let left = AtomicU64::new(times);
            node.lie(move |method, _, result| {
                let is_late = method == late && left.load(SeqCst) > 0;
                for (place, value) in before.iter().filter(|_| is_late) {
                    *result.pointer_mut(place).unwrap() = value.clone();
                }
                left.fetch_sub(u64::from(is_late), SeqCst);
            });
            let found = read(&node, YOUNG).await;
            if doubted {
                check(found, late);
                continue;
            }
            assert_eq!(*block_of(&found.unwrap()), block(136), "{late}");
        }
    }
}

#[tokio::test]
async fn block_hash_that_no_header_has_is_doubtful() {
    let node = node().await;
    node.lie(|method, _, result| {
        if method.starts_with("eth_getTransaction") {
            let other = json!(format!("0x{}", "ab".repeat(32)));
            result["blockHash"] = other.clone();
            for log in result["logs"].as_array_mut().into_iter().flatten() {
                log["blockHash"] = other.clone();
            }
        }
    });
    doubtful(read(&node, OLD).await, "wrong block hash for the height");
}

#[tokio::test]
async fn another_chain_never_votes() {
    let node = node().await;
    node.lie(|method, _, result| {
        if method == "eth_chainId" {
            *result = json!("0x1");
        }
    });
    doubtful(node.open().reader.head().await, "head");
    let reader = node.open().reader;
    let head = vm::Head {
        block: block(150),
        tagged: None,
    };
    doubtful(reader.transaction(&tx(OLD), &head).await, "transaction");
}

#[tokio::test]
async fn chain_id_is_asked_again_after_a_failure() {
    let node = node().await;
    let reader = node.open().reader;
    reader.head().await.unwrap();
    node.behave(Manner::Status(502, None));
    unavailable(reader.fresh_head().await, "down");
    node.be_honest();
    node.lie(|method, _, result| {
        if method == "eth_chainId" {
            *result = json!("0x2");
        }
    });
    doubtful(
        reader.fresh_head().await,
        "another chain behind the same name",
    );
}

#[tokio::test]
async fn unusable_answers_are_errors() {
    for manner in [
        Manner::Status(500, None),
        Manner::Bytes(b"[{\"jsonrpc\":\"2.0\",\"id\":0,\"res"),
        Manner::Bytes(b"<html>"),
        Manner::Bytes(b""),
        Manner::Bytes(b"\xff\xfe"),
        Manner::Flood,
        Manner::Drip,
        Manner::Hang,
        Manner::Compressed,
        Manner::Redirect("http://127.0.0.1:1/".into()),
    ] {
        let node = node().await;
        let reader = node.open().reader;
        node.behave(manner.clone());
        let name = format!("{manner:?}");
        unavailable(reader.head().await, &name);
        node.be_honest();
        assert!(reader.head().await.is_ok(), "{name}: recovers");
    }
}

#[tokio::test]
async fn doubled_envelope_keys_are_unreadable() {
    let node = node().await;
    node.behave(Manner::Bytes(
        br#"[{"jsonrpc":"2.0","id":0,"result":{},"result":{}},{"jsonrpc":"2.0","id":1,"result":"0x7a69"}]"#,
    ));
    unavailable(node.open().reader.head().await, "doubled");
}

/// Evidence keeps why a provider failed.
#[tokio::test]
async fn an_answer_is_quoted_in_few_words() {
    let long = "x".repeat(1 << 16);
    let result = |result: &str| json!({"jsonrpc": "2.0", "id": 0, "result": result});
    let network = json!({"jsonrpc": "2.0", "id": 1, "result": "0x7a69"});
    for answer in [json!(long), json!([result(&long), network])] {
        let node = node().await;
        node.behave(Manner::Bytes(answer.to_string().into_bytes().leak()));
        let why = node.open().reader.head().await.unwrap_err().to_string();
        assert!(
            why.contains("xxx") && why.len() < 400,
            "{} bytes",
            why.len()
        );
    }
}

#[tokio::test]
async fn retry_after_is_obeyed() {
    let node = node().await;
    let reader = node.open().reader;
    node.behave(Manner::Status(429, Some("20")));
    unavailable(reader.head().await, "limited");
    let posts = node.posts();
    node.be_honest();
    unavailable(reader.head().await, "still waiting");
    assert_eq!(node.posts(), posts);
}

#[tokio::test]
async fn reorg_below_the_transaction_refuses_the_old_head() {
    let node = node().await;
    let reader = node.open().reader;
    let head = reader.head().await.unwrap();
    let found = reader.transaction(&tx(YOUNG), &head).await.unwrap();
    assert_eq!(*block_of(&found), block(136));
    node.state.fork.store(130, SeqCst);
    doubtful(reader.transaction(&tx(YOUNG), &head).await, "old head");
    let head = reader.fresh_head().await.unwrap();
    assert_ne!(head.block.hash, block(150).hash);
    let moved = reader.transaction(&tx(YOUNG), &head).await.unwrap();
    assert_eq!(block_of(&moved).number, 136);
    assert_ne!(block_of(&moved).hash, block(136).hash);
    assert_eq!(reader.contains(&block(129)).await, Ok(true));
    assert_eq!(reader.contains(&block(131)).await, Ok(false));
}

#[tokio::test]
async fn block_of_another_time_or_parent_is_not_the_chains() {
    let node = node().await;
    let reader = node.open().reader;
    reader.head().await.unwrap();
    // The tip, a block of the run, and one that is read for the question.
    for number in [150, 140, 20] {
        let honest = block(number);
        assert_eq!(reader.contains(&honest).await, Ok(true), "{number}");
        let (mut late, mut early, mut torn) = (honest.clone(), honest.clone(), honest);
        late.time += 1;
        early.time -= 1;
        torn.parent.0[0] ^= 1;
        for other in [late, early, torn] {
            assert_eq!(reader.contains(&other).await, Ok(false), "{other:?}");
        }
    }
}

#[tokio::test]
async fn receipt_of_one_fork_and_header_of_another_are_refused() {
    let node = node().await;
    let reader = node.open().reader;
    let head = reader.head().await.unwrap();
    let state = node.state.clone();
    let flips = AtomicU64::new(0);
    node.lie(move |method, _, _| {
        // Every answer comes from the other fork than the one before.
        if method == "eth_getTransactionByHash" {
            let even = flips.fetch_add(1, SeqCst).is_multiple_of(2);
            state.fork.store(if even { 130 } else { u64::MAX }, SeqCst);
        }
    });
    doubtful(reader.transaction(&tx(YOUNG), &head).await, "mixed");
}

#[tokio::test]
async fn growing_chain_is_followed() {
    let node = node().await;
    node.state.latest.store(100, SeqCst);
    let reader = node.open().reader;
    assert_eq!(reader.head().await.unwrap().block, block(100));
    for latest in [101, 103, 140] {
        node.state.latest.store(latest, SeqCst);
        assert_eq!(reader.fresh_head().await.unwrap().block, block(latest));
    }
    let posts = node.posts();
    assert_eq!(reader.contains(&block(120)).await, Ok(true));
    assert_eq!(node.posts(), posts, "headers of the gap are known");
}

#[tokio::test]
async fn head_is_tracked_while_somebody_reads() {
    let node = node().await;
    let reader = node.open().reader;
    let head = reader.head().await.unwrap();
    reader.transaction(&tx(YOUNG), &head).await.unwrap();
    let posts = node.posts();
    while node.posts() == posts {
        node.state.asked.notified().await;
    }
    let calls = node.state.calls.lock().unwrap().clone();
    assert_eq!(
        calls.last().map(String::as_str),
        Some("eth_getBlockByNumber")
    );
}

#[tokio::test]
async fn node_behind_its_siblings_does_not_move_the_head_back() {
    let node = node().await;
    let reader = node.open().reader;
    reader.head().await.unwrap();
    assert_eq!(reader.contains(&block(140)).await, Ok(true));
    node.lie(|method, params, result| {
        if method == "eth_getBlockByNumber" && params[0] == "latest" {
            *result = chain::header(149).unwrap();
        }
    });
    assert_eq!(reader.fresh_head().await.unwrap().block, block(150));
}

#[tokio::test]
async fn chain_that_went_back_is_followed_down() {
    let node = node().await;
    let reader = node.open().reader;
    reader.head().await.unwrap();
    assert_eq!(reader.contains(&block(140)).await, Ok(true));
    for latest in [145, 60, 0] {
        node.state.latest.store(latest, SeqCst);
        assert_eq!(reader.fresh_head().await.unwrap().block, block(latest));
        assert_eq!(reader.contains(&block(latest + 1)).await, Ok(false));
    }
}

#[tokio::test]
async fn headers_that_do_not_link_are_doubtful() {
    let node = node().await;
    node.state.latest.store(100, SeqCst);
    let reader = node.open().reader;
    reader.head().await.unwrap();
    node.state.latest.store(110, SeqCst);
    node.lie(|method, params, result| {
        if method == "eth_getBlockByNumber" && params[0] == "0x69" {
            result["parentHash"] = result["hash"].clone();
        }
    });
    doubtful(reader.fresh_head().await, "unlinked");
}

#[tokio::test]
async fn finality_tag_is_read_with_the_head() {
    let node = node().await;
    let open = vm::ethereum::FAMILY.open.unwrap();
    let spec = Arc::new(chain::spec(Some(vm::FinalityTag::Finalized)));
    let reader = open(&spec, &node.endpoint()).unwrap().reader;
    assert_eq!(reader.head().await.unwrap().tagged, Some(86));
    assert_eq!(node.posts(), 1);
}

#[tokio::test]
async fn a_head_whose_tagged_block_is_of_another_fork_is_not_shown() {
    let node = node().await;
    node.state.latest.store(100, SeqCst);
    let open = vm::ethereum::FAMILY.open.unwrap();
    let spec = Arc::new(chain::spec(Some(vm::FinalityTag::Finalized)));
    let reader = open(&spec, &node.endpoint()).unwrap().reader;
    let head = reader.head().await.unwrap();
    assert_eq!(head.block, block(100));
    node.state.latest.store(110, SeqCst);
    node.lie(|method, params, result| {
        if method == "eth_getBlockByNumber" && params[0] == "finalized" {
            *result = chain::header(105).unwrap();
            result["hash"] = result["parentHash"].clone();
        }
    });
    doubtful(reader.fresh_head().await, "tag");
    // The one before as long as it is young, and never one that was not believed.
    let shown = reader.head().await;
    assert!(shown.is_err() || shown == Ok(head), "{shown:?}");
    node.be_honest();
    assert_eq!(reader.fresh_head().await.unwrap().block, block(110));
}

#[tokio::test]
async fn contract_state_is_read_at_the_heads_hash() {
    let node = node().await;
    let state = node.open().state.unwrap();
    let reader = node.open().reader;
    let head = reader.head().await.unwrap();
    let now = state.view(&allocator(), &family(), &head.block).await;
    let before = state.view(&allocator(), &family(), &block(80)).await;
    assert_ne!(now.unwrap(), before.unwrap());
    let mut other = block(80);
    other.hash = vm::B256::repeat_byte(9);
    doubtful(
        state.view(&allocator(), &family(), &other).await,
        "unknown block",
    );
}

/// The recorded contract whose `family()` changed in block 81.
fn allocator() -> vm::Address {
    address("0x09635f643e140090a9a8dcd712ed6285858cebef")
}

fn family() -> vm::Bytes {
    "0x76e75a0e".parse().unwrap()
}

#[tokio::test]
async fn node_that_takes_no_block_hash_is_asked_by_number_between_two_looks() {
    let node = node().await;
    node.state.hashes.store(false, SeqCst);
    let state = node.open().state.unwrap();
    let view = async || {
        node.state.calls.lock().unwrap().clear();
        let answer = state.view(&allocator(), &family(), &block(80)).await;
        (answer, node.state.calls.lock().unwrap().clone())
    };
    let called = |calls: &[String]| calls.iter().filter(|method| *method == "eth_call").count();
    let (first, calls) = view().await;
    assert_eq!(called(&calls), 2);
    // Known by now: no call in vain, and each of the three in a round of its own.
    let before = node.posts();
    let (again, calls) = view().await;
    assert_eq!(again, first);
    let look = "eth_getBlockByNumber";
    assert_eq!(calls, [look, "eth_call", look]);
    assert_eq!(node.posts() - before, 3);
    // The chain changes after the first look, ...
    let elsewhere = AtomicBool::new(false);
    node.lie(move |method, params, result| {
        if method == "eth_call" {
            elsewhere.store(true, SeqCst);
        } else if params[0] == "0x50" && elsewhere.load(SeqCst) {
            result["hash"] = result["parentHash"].clone();
        }
    });
    let (changed, _) = view().await;
    doubtful(changed, "the chain changed");
    node.be_honest();
    // ... and the node is another machine after a while.
    node.state.hashes.store(true, SeqCst);
    assert_eq!(called(&view().await.1), 1);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(601)).await;
    tokio::time::resume();
    let by_hash = Arc::new(AtomicBool::new(false));
    let seen = by_hash.clone();
    node.lie(move |method, params, _| {
        seen.fetch_or(method == "eth_call" && params[1].is_object(), SeqCst);
    });
    assert_eq!(view().await.0, first);
    assert!(by_hash.load(SeqCst));
}

#[tokio::test]
async fn settled_block_is_deep_and_old_enough() {
    let node = node().await;
    let settled = async |blocks, seconds, number| {
        let mut spec = chain::spec(None);
        (spec.finality.blocks, spec.finality.seconds) = (blocks, seconds);
        let open = vm::ethereum::FAMILY.open.unwrap();
        let state = open(&Arc::new(spec), &node.endpoint()).unwrap().state;
        let head = vm::Head {
            block: block(number),
            tagged: None,
        };
        let found = state.unwrap().settled(&head).await.unwrap();
        found.map(|block| block.number)
    };
    // Blocks are 12 seconds apart.
    assert_eq!(settled(3, 30, 63).await, Some(60));
    assert_eq!(settled(3, 37, 63).await, Some(58));
    assert_eq!(settled(0, 0, 63).await, Some(63));
    assert_eq!(settled(0, 12, 63).await, Some(62));
    assert_eq!(settled(1, 100, 63).await, Some(54));
    assert_eq!(settled(1, 700, 63).await, Some(4));
    assert_eq!(settled(1, 63 * 12, 63).await, Some(0));
    assert_eq!(settled(1, 63 * 12 + 1, 63).await, None);
    assert_eq!(settled(64, 0, 63).await, None);
}

#[tokio::test]
async fn settled_block_is_at_or_below_the_tag() {
    let node = node().await;
    let open = vm::ethereum::FAMILY.open.unwrap();
    let spec = Arc::new(chain::spec(Some(vm::FinalityTag::Finalized)));
    let state = open(&spec, &node.endpoint()).unwrap().state.unwrap();
    let settled = async |tagged| {
        let block = block(100);
        state.settled(&vm::Head { block, tagged }).await
    };
    assert_eq!(settled(Some(86)).await, Ok(Some(block(86))));
    assert_eq!(settled(Some(99)).await, Ok(Some(block(97))));
    unavailable(settled(None).await, "no tag");
}

#[tokio::test]
async fn contract_call_that_fails_is_no_answer() {
    let node = node().await;
    let provider = node.open();
    let head = provider.reader.head().await.unwrap();
    let state = provider.state.unwrap();
    let data = "0x12345678".parse().unwrap();
    let depository = address(DEPOSITORY);
    let answer = state.view(&depository, &data, &head.block).await;
    unavailable(answer, "call");
}

/// The withdrawal that the recorded chain executed in block 60, as its transaction's calldata holds it.
fn executed_withdrawal() -> vm::Bytes {
    let hash = "0x7faba8e60ee48af3c94eada4296fb2155f09d15b3b774a92fe441cd090c89f67";
    let input = chain::entry(hash)["transaction"]["input"].as_str().unwrap();
    let request = &input[10 + 128..10 + 0x180 * 2];
    format!("0x{:064x}{request}", 32).parse().unwrap()
}

#[tokio::test]
async fn withdrawal_counts_as_executed_once_that_is_final() {
    let node = node().await;
    let provider = node.open();
    let (reader, state) = (provider.reader, provider.state.unwrap());
    let encoded = executed_withdrawal();
    let mut head = reader.head().await.unwrap();
    let read = async |head: &vm::Head| {
        let block = state.settled(head).await?.unwrap();
        state.withdrawal(&encoded, None, &block).await
    };
    assert_eq!(read(&head).await, Ok(WithdrawalStatus::Executed));
    head.block = block(63);
    assert_eq!(read(&head).await, Ok(WithdrawalStatus::Executed));
    head.block = block(62);
    assert_eq!(read(&head).await, Ok(WithdrawalStatus::Pending));
}

#[tokio::test]
async fn withdrawal_that_is_executed_counts_only_when_that_is_old_enough() {
    let node = node().await;
    let mut spec = chain::spec(None);
    // Three blocks are 36 seconds here.
    spec.finality.seconds = 37;
    let open = vm::ethereum::FAMILY.open.unwrap();
    let state = open(&Arc::new(spec), &node.endpoint()).unwrap().state;
    let state = state.unwrap();
    let read = async |number| {
        let block = block(number);
        let head = vm::Head {
            block,
            tagged: None,
        };
        let settled = state.settled(&head).await.unwrap().unwrap();
        let encoded = executed_withdrawal();
        let status = state.withdrawal(&encoded, None, &settled).await;
        status.unwrap()
    };
    assert_eq!(read(63).await, WithdrawalStatus::Pending);
    assert_eq!(read(64).await, WithdrawalStatus::Pending);
    assert_eq!(read(65).await, WithdrawalStatus::Executed);
}

#[tokio::test]
async fn garbage_is_no_withdrawal() {
    let node = node().await;
    let provider = node.open();
    let head = provider.reader.head().await.unwrap();
    let state = provider.state.unwrap();
    let garbage = vec![7; 64].into();
    let answer = state.withdrawal(&garbage, None, &head.block).await;
    assert!(answer.is_err());
}

#[tokio::test]
async fn a_hanging_node_fails_all_who_wait_at_once() {
    let node = node().await;
    node.behave(Manner::Hang);
    let provider = node.open();
    let asked = (0..20).map(|_| provider.reader.fresh_head());
    let answers = futures::future::join_all(asked).await;
    assert!(answers.iter().all(Result::is_err));
    // One turn for all of them, and perhaps the tracker's.
    assert!(node.state.posts.load(SeqCst) <= 2);
}

#[tokio::test]
async fn requests_under_way_are_limited_and_waiting_ends_with_the_timeout() {
    let node = node().await;
    let reader = node.open().reader;
    let head = reader.head().await.unwrap();
    node.behave(Manner::Hang);
    let posts = node.posts();
    let (asked, started) = (tx(OLD), std::time::Instant::now());
    let reads = (0..200).map(|_| reader.transaction(&asked, &head));
    for read in futures::future::join_all(reads).await {
        unavailable(read, "hanging");
    }
    // Two seconds each, whether sent or waiting.
    assert!(started.elapsed() < std::time::Duration::from_secs(10));
    // What is freed at the last moment may just be used.
    assert!(node.posts() - posts < 200, "{}", node.posts() - posts);
    node.be_honest();
    let found = reader.transaction(&asked, &head).await.unwrap();
    assert_eq!(block_of(&found).number, 10);
}

#[tokio::test]
async fn highest_number_of_all_is_only_a_number() {
    let node = node().await;
    let reader = node.open().reader;
    for number in [u64::MAX - 2, u64::MAX, u64::MAX - 1, u64::MAX] {
        node.lie(move |method, params, result| {
            if method == "eth_getBlockByNumber" && params[0] == "latest" {
                result["number"] = json!(format!("{number:#x}"));
                result["hash"] = json!(vm::B256::from(alloy::primitives::U256::from(number)));
            }
        });
        let _either = reader.fresh_head().await;
        let _either = reader.contains(&block(150)).await;
    }
    node.be_honest();
    assert_eq!(reader.fresh_head().await.unwrap().block, block(150));
    assert_eq!(reader.contains(&block(149)).await, Ok(true));
}
