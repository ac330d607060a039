//! A chain that changes its mind before, during and after a signature.

use std::time::Duration;

use crate::support::{
    chain::{DEPOSITS, done, finalize, fork, native, oracle},
    daemon::{Answer, Daemon, Setup},
};
use alloy::primitives::{B256, Bytes};
use devnet::{
    claim,
    proxy::{Lie, LyingProxy, Rule, rules},
    world::Devnet,
};
use futures::future::join_all;
use serde_json::{Value, json};

/// The deposit's block and what makes it final.
const DEPTH: u64 = 3;

/// A deposit that can be sent again after a reorg: its bytes, and with them its hash, stay.
struct Fixture {
    world: Devnet,
    proxies: Vec<LyingProxy>,
    daemon: Daemon,
    wire: Bytes,
    transaction: B256,
}

impl Fixture {
    /// The deposit is in a block, which is not final.
    async fn start() -> Self {
        let world = Devnet::start().await.unwrap();
        let proxies = three(&world.origin.node.url).await;
        let daemon = unwatched(&world, &proxies).start().await;
        let origin = &world.origin;
        // It names an order, so that what is signed depends on the block's time.
        let order = B256::repeat_byte(7);
        let payload = origin.native_deposit(order).value(native(7).amount);
        let wire = origin.node.signed(&world.user, payload).await.unwrap();
        let mut fixture = Self {
            world,
            proxies,
            daemon,
            wire,
            transaction: B256::ZERO,
        };
        fixture.transaction = fixture.send().await;
        fixture
    }

    async fn send(&self) -> B256 {
        let sent = self.world.origin.node.broadcast(&self.wire).await;
        done(sent).transaction_hash
    }

    async fn finalize(&self) {
        finalize(&self.world, &self.world.origin).await;
    }

    /// The chain goes another way from below the deposit on, and grows longer than it was.
    async fn reorg(&self) {
        let node = &self.world.origin.node;
        node.reorg(DEPTH).await.unwrap();
        // Later than the blocks that are gone, so that the deposit's next block has another time.
        node.mine(2, 50).await.unwrap();
        let receipt = node.receipt(self.transaction).await.unwrap();
        assert!(receipt.is_none(), "the deposit survived the reorg");
    }

    /// Every provider says this about the transaction, whatever its chain is.
    fn freeze(&self, receipt: &Value, transaction: &Value) {
        for proxy in &self.proxies {
            proxy.lie(frozen(receipt.clone(), transaction.clone()));
        }
    }

    fn honest(&self) {
        self.proxies.iter().for_each(LyingProxy::honest);
    }

    async fn ask(&self) -> Answer {
        let body = claim::deposit(&self.world.origin, self.transaction);
        self.daemon.attest(DEPOSITS, &body).await
    }

    /// The answer once enough providers agree: behind a reorg each is read at its own moment.
    async fn agreed(&self) -> Answer {
        for _ in 0..100 {
            let answer = self.ask().await;
            if answer.status != 503 || answer.code() != "QUORUM_UNAVAILABLE" {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("no providers agree");
    }

    async fn signed(&self) -> Value {
        let answer = self.agreed().await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let json = answer.json();
        assert_eq!(json["execution"]["signatures"].as_array().unwrap().len(), 1);
        json
    }

    async fn refused(&self, status: u16, code: &str) {
        refused(&self.ask().await, status, code);
    }

    /// What the node says about the deposit's transaction now.
    async fn shown(&self, method: &'static str) -> Value {
        let node = &self.world.origin.node;
        node.rpc(method, (self.transaction,)).await.unwrap()
    }
}

/// A daemon that looks at the origin through `proxies` and leaves signed facts alone: what becomes of
/// a fact that is watched is the watcher's own test.
fn unwatched(world: &Devnet, proxies: &[LyingProxy]) -> Setup {
    let mut files = world.files();
    files.chains[0]["additionalData"]["watchBlocks"] = json!(0);
    oracle(world, 0)
        .chains(&files)
        .with("ORIGIN_RPC_URL", urls(proxies))
}

fn urls(proxies: &[LyingProxy]) -> String {
    let urls: Vec<_> = proxies.iter().map(|proxy| proxy.url.as_str()).collect();
    urls.join(",")
}

/// Three providers of a chain, of which two must agree.
async fn three(url: &url::Url) -> Vec<LyingProxy> {
    let mut proxies = Vec::new();
    for _ in 0..3 {
        proxies.push(LyingProxy::start(url).await.unwrap());
    }
    proxies
}

fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(
        (answer.status.as_u16(), answer.code().as_str()),
        (status, code),
        "{}",
        answer.body
    );
    assert!(answer.json()["execution"].is_null(), "{}", answer.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn deposit_is_not_signed_before_it_is_final() {
    let fixture = Fixture::start().await;
    fixture.refused(400, "TRANSACTION_NOT_FINALIZED").await;
    fixture.world.origin.node.mine(1, 1).await.unwrap();
    fixture.refused(400, "TRANSACTION_NOT_FINALIZED").await;
    fixture.world.origin.node.mine(1, 1).await.unwrap();
    fixture.signed().await;
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deposit_that_was_reorged_away_is_not_signed() {
    let fixture = Fixture::start().await;
    // The daemon has seen it, and the heads above it.
    fixture.refused(400, "TRANSACTION_NOT_FINALIZED").await;
    fixture.finalize().await;
    fixture.reorg().await;
    fixture.refused(400, "TRANSACTION_MISSING").await;
    fixture.finalize().await;
    fixture.refused(400, "TRANSACTION_MISSING").await;
    // It comes back, in another block, with its finality ahead of it.
    assert_eq!(fixture.send().await, fixture.transaction);
    fixture.refused(400, "TRANSACTION_NOT_FINALIZED").await;
    fixture.finalize().await;
    fixture.signed().await;
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deposit_in_another_block_is_signed_anew_after_a_halt_when_the_first_block_is_gone() {
    let mut fixture = Fixture::start().await;
    fixture.finalize().await;
    let first = fixture.signed().await;
    assert_eq!(fixture.signed().await, first);
    fixture.reorg().await;
    fixture.refused(400, "TRANSACTION_MISSING").await;
    assert_eq!(fixture.send().await, fixture.transaction);
    fixture.refused(400, "TRANSACTION_NOT_FINALIZED").await;
    fixture.finalize().await;
    // A signature has been given away for a block that is gone: somebody has to look into it.
    fixture.refused(503, "CHAIN_HALTED").await;
    fixture.daemon = fixture.daemon.restart().await;
    fixture.refused(503, "CHAIN_HALTED").await;
    assert!(fixture.daemon.clear_halt("origin").await);
    let second = fixture.signed().await;
    assert_ne!(first["execution"], second["execution"]);
    assert_eq!(fixture.signed().await, second);
    let metrics = fixture.daemon.metrics().await;
    assert!(metrics.contains("intentd_void_statements_total"));
    // The new statement outlives the process, the void one stays void.
    let daemon = fixture.daemon.restart().await;
    let body = claim::deposit(&fixture.world.origin, fixture.transaction);
    let again = daemon.attest(DEPOSITS, &body).await;
    assert_eq!(again.json(), second);
    daemon.stop().await;
}

/// The node's answers about a transaction are these, whatever its chain is.
fn frozen(receipt: Value, transaction: Value) -> Rule {
    Box::new(move |call| match call.method {
        "eth_getTransactionReceipt" => Some(Lie::Result(receipt.clone())),
        "eth_getTransactionByHash" => Some(Lie::Result(transaction.clone())),
        _ => None,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn two_live_blocks_of_one_deposit_never_both_get_a_signature() {
    let fixture = Fixture::start().await;
    fixture.finalize().await;
    let first = fixture.signed().await;
    // The provider claims that the deposit is in the next block, which is on the chain as well.
    let mut receipt = fixture.shown("eth_getTransactionReceipt").await;
    let mut transaction = fixture.shown("eth_getTransactionByHash").await;
    let number = receipt["blockNumber"].as_str().unwrap();
    let number = u64::from_str_radix(&number[2..], 16).unwrap() + 1;
    let next = fixture
        .world
        .origin
        .node
        .block(number.into())
        .await
        .unwrap();
    let mut moved: Vec<&mut Value> = vec![&mut transaction];
    for log in receipt["logs"].as_array_mut().unwrap() {
        log["blockNumber"] = json!(format!("{number:#x}"));
        log["blockHash"] = json!(next.hash);
    }
    moved.push(&mut receipt);
    for object in moved {
        object["blockNumber"] = json!(format!("{number:#x}"));
        object["blockHash"] = json!(next.hash);
    }
    fixture.freeze(&receipt, &transaction);
    fixture.world.origin.node.mine(1, 1).await.unwrap();
    let answer = fixture.ask().await;
    refused(&answer, 503, "PROVIDER_UNAVAILABLE");
    fixture.honest();
    assert_eq!(fixture.signed().await, first);
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn receipt_and_blocks_of_different_forks_give_no_signature() {
    let fixture = Fixture::start().await;
    fixture.finalize().await;
    let receipt = fixture.shown("eth_getTransactionReceipt").await;
    let transaction = fixture.shown("eth_getTransactionByHash").await;
    fixture.reorg().await;
    fixture.finalize().await;
    fixture.freeze(&receipt, &transaction);
    // A daemon that has seen nothing yet, ...
    refused(&fixture.ask().await, 503, "QUORUM_UNAVAILABLE");
    // ... and one that follows the new fork.
    fixture.finalize().await;
    refused(&fixture.ask().await, 503, "QUORUM_UNAVAILABLE");
    fixture.honest();
    fixture.refused(400, "TRANSACTION_MISSING").await;
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_changes_forks_between_two_reads_gives_no_signature() {
    let fixture = Fixture::start().await;
    // The daemon follows the first fork, on which the deposit is not final.
    fixture.refused(400, "TRANSACTION_NOT_FINALIZED").await;
    let receipt = fixture.shown("eth_getTransactionReceipt").await;
    let transaction = fixture.shown("eth_getTransactionByHash").await;
    fixture.finalize().await;
    fixture.reorg().await;
    // Receipts come from a node that still is on the first fork, heads from one on the second.
    fixture.freeze(&receipt, &transaction);
    for _ in 0..3 {
        let answer = fixture.ask().await;
        assert_ne!(answer.status, 200, "{}", answer.body);
        fixture.world.origin.node.mine(1, 1).await.unwrap();
    }
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reorg_while_it_is_asked_gives_the_old_block_or_nothing() {
    let fixture = Fixture::start().await;
    fixture.finalize().await;
    let mut given = false;
    for _ in 0..4 {
        let asked = join_all((0..6).map(|_| fixture.ask()));
        let (answers, ()) = tokio::join!(asked, fixture.reorg());
        let signed: Vec<&Answer> = answers.iter().filter(|a| a.status == 200).collect();
        for answer in &signed {
            assert_eq!(answer.body, signed[0].body);
        }
        for answer in answers.iter().filter(|a| a.status != 200) {
            assert!(answer.json()["execution"].is_null(), "{}", answer.body);
        }
        given |= !signed.is_empty();
        assert_eq!(fixture.send().await, fixture.transaction);
        fixture.finalize().await;
        if given {
            refused(&fixture.agreed().await, 503, "CHAIN_HALTED");
            assert!(fixture.daemon.clear_halt("origin").await);
        }
        fixture.signed().await;
        given = true;
    }
    fixture.daemon.stop().await;
}

/// Nobody asks the daemon about the deposit again: its own watcher looks back, and a quorum of three
/// providers tells it.
#[tokio::test(flavor = "multi_thread")]
async fn the_daemons_own_watcher_halts_the_chain_on_which_a_signed_deposit_is_gone() {
    let world = Devnet::start().await.unwrap();
    let origin = &world.origin;
    let proxies = three(&origin.node.url).await;
    let daemon = oracle(&world, 0)
        .with("ORIGIN_RPC_URL", urls(&proxies))
        .start()
        .await;
    let deposit = async |amount| {
        let sent = origin.deposit_native(&world.user, native(amount).amount, B256::repeat_byte(7));
        let transaction = done(sent.await).transaction_hash;
        finalize(&world, origin).await;
        claim::deposit(origin, transaction)
    };
    let kept = deposit(5).await;
    let lost = deposit(6).await;
    for body in [&kept, &lost] {
        assert_eq!(daemon.attest(DEPOSITS, body).await.status, 200);
    }
    // One provider on another fork halts nothing.
    let gone: Rule = Box::new(|call| match call.method {
        "eth_getBlockByNumber" | "eth_getBlockByHash" => Some(Lie::Result(Value::Null)),
        _ => None,
    });
    proxies[0].lie(gone);
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(daemon.attest(DEPOSITS, &kept).await.status, 200);
    proxies[0].honest();
    origin.node.reorg(DEPTH).await.unwrap();
    origin.node.mine(6, 50).await.unwrap();
    let halted = async {
        loop {
            let answer = daemon.attest(DEPOSITS, &kept).await;
            if answer.code() == "CHAIN_HALTED" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let halted = tokio::time::timeout(Duration::from_secs(60), halted).await;
    assert!(halted.is_ok(), "the watcher did not look back");
    let ready = daemon.ops("/readyz").await;
    assert!(
        ready.status == 503 && ready.body.contains("signing is halted"),
        "{}",
        ready.body
    );
    let metrics = daemon.metrics().await;
    assert!(
        metrics.contains("intentd_void_statements_total"),
        "{metrics}"
    );
    let daemon = daemon.restart().await;
    assert_eq!(daemon.attest(DEPOSITS, &kept).await.code(), "CHAIN_HALTED");
    assert!(daemon.clear_halt("origin").await);
    assert_eq!(daemon.attest(DEPOSITS, &kept).await.status, 200);
    daemon.stop().await;
}

/// Two real nodes, each of one mind: providers go over from one to the other, one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn one_providers_reorg_changes_nothing_and_a_seconds_halts_the_chain() {
    let world = Devnet::start().await.unwrap();
    let (origin, fork) = (&world.origin, fork(&world).await);
    let proxies = three(&origin.node.url).await;
    let daemon = oracle(&world, 0)
        .with("ORIGIN_RPC_URL", urls(&proxies))
        .start()
        .await;
    let deposit = async |amount| {
        let sent = origin.deposit_native(&world.user, native(amount).amount, B256::repeat_byte(7));
        let transaction = done(sent.await).transaction_hash;
        finalize(&world, origin).await;
        claim::deposit(origin, transaction)
    };
    let body = deposit(5).await;
    let signed = daemon.attest(DEPOSITS, &body).await;
    assert_eq!(signed.status, 200, "{}", signed.body);
    // The other chain is the longer one.
    fork.node.mine(40, 1).await.unwrap();
    proxies[0].lie(rules::other_fork(&fork.node.url));
    tokio::time::sleep(Duration::from_secs(8)).await;
    let later = deposit(6).await;
    assert_eq!(daemon.attest(DEPOSITS, &later).await.status, 200);
    assert_eq!(daemon.attest(DEPOSITS, &body).await.body, signed.body);
    proxies[1].lie(rules::other_fork(&fork.node.url));
    let halted = async {
        loop {
            let ready = daemon.ops("/readyz").await;
            if ready.status == 503 && ready.body.contains("signing is halted") {
                break;
            }
            let answer = daemon.attest(DEPOSITS, &body).await;
            // Nothing of the old chain is signed anew, and nothing is said to be gone for good.
            let known = answer.status == 200 && answer.body == signed.body;
            assert!(
                known || answer.json()["retryable"] == true,
                "{}",
                answer.body
            );
            fork.node.mine(1, 1).await.unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let halted = tokio::time::timeout(Duration::from_secs(120), halted).await;
    assert!(halted.is_ok(), "a quorum's reorg was not seen");
    daemon.stop().await;
}
