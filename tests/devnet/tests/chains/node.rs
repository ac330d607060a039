//! A chain does what the tests of reorgs and finality need, and ends with its handle.

use std::time::Duration;

use alloy::{
    eips::BlockNumberOrTag,
    primitives::{Address, U256},
};
use devnet::{
    anvil::Options,
    node::{Node, Payload},
    world::Devnet,
};

const FROM: Address = Address::repeat_byte(0xaa);
const TO: Address = Address::repeat_byte(0xbb);

async fn node() -> Node {
    let options = Options {
        chain_id: 31_009,
        block_time: None,
    };
    let node = Node::start(&options).await.unwrap();
    node.set_balance(FROM, U256::from(10).pow(U256::from(20)))
        .await
        .unwrap();
    node
}

#[tokio::test]
async fn reorg_replaces_blocks_and_forgets_their_transactions() {
    let node = node().await;
    node.mine(3, 1).await.unwrap();
    let kept = node.tip().await.unwrap();
    let sent = node
        .transact(FROM, Payload::pay(TO, U256::from(5)))
        .await
        .unwrap();
    node.mine(1, 1).await.unwrap();
    let before = node.tip().await.unwrap();
    node.reorg(2).await.unwrap();
    let after = node.tip().await.unwrap();
    assert_eq!(after.number, before.number);
    assert_ne!(after.hash, before.hash);
    let below = node.block(BlockNumberOrTag::Number(kept.number)).await;
    assert_eq!(below.unwrap(), kept);
    assert!(node.receipt(sent.transaction_hash).await.unwrap().is_none());
    assert_eq!(node.balance(TO).await.unwrap(), U256::ZERO);
}

#[tokio::test]
async fn snapshot_brings_the_old_chain_back() {
    let node = node().await;
    let before = node.tip().await.unwrap();
    let snapshot = node.snapshot().await.unwrap();
    node.transact(FROM, Payload::pay(TO, U256::from(5)))
        .await
        .unwrap();
    node.revert(snapshot).await.unwrap();
    assert_eq!(node.tip().await.unwrap(), before);
    assert_eq!(node.balance(TO).await.unwrap(), U256::ZERO);
}

#[tokio::test]
async fn tags_follow_the_tip_and_blocks_are_as_far_apart_as_asked() {
    let node = node().await;
    node.mine(10, 12).await.unwrap();
    let tip = node.tip().await.unwrap();
    let finalized = node.block(BlockNumberOrTag::Finalized).await.unwrap();
    let safe = node.block(BlockNumberOrTag::Safe).await.unwrap();
    assert!(finalized.number < safe.number && safe.number < tip.number);
    assert!(finalized.number > 0);
    let older = node.block(BlockNumberOrTag::Number(tip.number - 5)).await;
    assert_eq!(tip.time - older.unwrap().time, 60);
}

#[tokio::test]
async fn transactions_wait_while_automining_is_off() {
    let node = node().await;
    node.automine(false).await.unwrap();
    let hash = node
        .submit(FROM, Payload::pay(TO, U256::from(5)))
        .await
        .unwrap();
    assert!(node.receipt(hash).await.unwrap().is_none());
    node.mine(1, 1).await.unwrap();
    assert!(node.receipt(hash).await.unwrap().unwrap().status());
}

#[tokio::test]
async fn chain_ends_with_its_handle() {
    let node = node().await;
    let address = node.url.socket_addrs(|| None).unwrap()[0];
    drop(node);
    let closed = async {
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), closed)
        .await
        .expect("the chain outlived its handle");
}

#[tokio::test]
async fn world_has_three_chains_and_the_files_that_describe_them() {
    let world = Devnet::start().await.unwrap();
    let files = world.files();
    let ids: Vec<_> = [&world.origin.node, &world.destination.node, &world.hub.node]
        .iter()
        .map(|node| node.chain_id)
        .collect();
    assert_eq!(ids, [31_001, 31_002, 31_000]);
    assert_eq!(files.chains[0]["httpRpcUrl"], "$ORIGIN_RPC_URL");
    assert_eq!(files.chains[1]["hubChainId"], "31002");
    assert_eq!(files.hub["evmChainId"], "31000");
    let variables: Vec<_> = files.environment.iter().map(|(name, _)| &**name).collect();
    assert!(variables.contains(&"ORIGIN_RPC_URL") && variables.contains(&"RELAY_RPC_URL"));
    let solver = world.solver.address();
    for site in [&world.origin, &world.destination] {
        assert!(site.node.balance(solver).await.unwrap() > U256::ZERO);
        assert!(site.token_balance(site.token, solver).await.unwrap() > U256::ZERO);
    }
}
