//! The solver's outputs as Bitcoin Core's own wallet shows them: each node has one without keys that watches the account.
//! The bitcoind that is built has no wallets: these tests run with one in PATH that has (`.ci/long`).

use std::{sync::Arc, time::Duration};

use bitcoin::{Amount, OutPoint, consensus::deserialize};
use bitcoincore_rpc::RpcApi;
use devnet::bitcoin::{
    Coin, Key, Kind, LocalChain, Regtest, Spend, Wallets, address, note, with_credentials,
};
use hyper::StatusCode;
use serde_json::{Value, json};
use vm::{Address, ChainEntry, Endpoint, ReadError, trade::Outputs};

use super::ORDER;
use crate::support::http::{self, Asked, Server, serve};

const COIN: u64 = 50_000_000;
/// Seconds in which a wallet looks back by itself, and more.
const DAY: u64 = 86_400;

/// An output, satoshis, and the height of its block.
type Seen = (OutPoint, u64, u64);

fn solver() -> Key {
    Key::named("solver").unwrap()
}

/// The account of a key.
fn account(key: Key) -> String {
    address(&key.script(Kind::P2wpkh)).unwrap()
}

/// The name of the wallet that watches the solver.
fn wallet() -> String {
    format!("intentd-{}", account(solver()))
}

/// What a daemon reads of an account of its own in a node.
struct Watcher {
    outputs: Arc<dyn Outputs>,
    account: Address,
}

impl Watcher {
    /// Begins anew, as at a daemon's start. `more` stands in the chain's entry, in `additionalData`.
    fn start(chain: &LocalChain, key: Key, more: Value) -> Self {
        let mut entry = chain.entry(1).unwrap();
        let additional = entry["additionalData"].as_object_mut().unwrap();
        additional.insert("scanUnspentOutputs".to_owned(), json!(false));
        additional.extend(more.as_object().unwrap().clone());
        let entry: ChainEntry = serde_json::from_value(entry).unwrap();
        let spec = entry
            .spec(vm::family("bitcoin-vm").unwrap(), false)
            .unwrap();
        let endpoint = Endpoint {
            position: 1,
            url: with_credentials(&chain.node.url).parse().unwrap(),
            timeout: Duration::from_secs(20),
            longest: 1 << 20,
            allows: None,
            client: Endpoint::client().unwrap(),
        };
        let provider = (spec.family.trade.unwrap())(&spec, &endpoint).unwrap();
        let account = spec.family.account(&account(key)).unwrap();
        let outputs = provider.outputs().unwrap().clone();
        outputs.watch(&account);
        Self { outputs, account }
    }

    /// The largest first.
    async fn reads(&self) -> Result<Vec<Seen>, ReadError> {
        let unspent = self.outputs.unspent(&self.account).await?;
        let seen = unspent.iter().map(|one| {
            let output = deserialize(&one.output).unwrap();
            (output, u64::try_from(one.amount).unwrap(), one.height)
        });
        Ok(seen.collect())
    }

    async fn sees(&self) -> Vec<Seen> {
        self.reads().await.unwrap()
    }
}

/// A new coin of a key, in a block of its own.
async fn fund(node: &Regtest, key: Key, satoshis: u64) -> Coin {
    let amount = Amount::from_sat(satoshis);
    node.fund(key, Kind::P2wpkh, amount).await.unwrap()
}

/// The coin in the newest block.
async fn newest(node: &Regtest, coin: &Coin) -> Seen {
    let height = node.tip().await.unwrap().height;
    (coin.point, coin.output.value.to_sat(), height)
}

/// What the wallet that watches the solver answers.
async fn asked(node: &Regtest, method: &'static str) -> Value {
    let wallet = wallet();
    let answer = node.ask_wallet(&wallet, method, Vec::new()).await;
    answer.unwrap()
}

/// The node's open wallets.
async fn open(node: &Regtest) -> Vec<String> {
    let listed = node.ask(|client| client.call::<Vec<String>>("listwallets", &[]));
    listed.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a bitcoind with wallets in PATH: the one that is built has none"]
async fn account_is_watched_by_one_wallet_over_starts_of_daemon_and_node() {
    let chain = LocalChain::with(Wallets::On).await.unwrap();
    let node = &chain.node;
    let before = fund(node, solver(), COIN).await;
    let before = newest(node, &before).await;
    let watcher = Watcher::start(&chain, solver(), json!({}));
    assert_eq!(watcher.sees().await, [before]);
    let after = fund(node, solver(), 2 * COIN).await;
    let both = [newest(node, &after).await, before];
    assert_eq!(watcher.sees().await, both);
    fund(node, Key::named("other").unwrap(), COIN).await;
    assert_eq!(watcher.sees().await, both);
    let info = asked(node, "getwalletinfo").await;
    assert_eq!(info["private_keys_enabled"], false, "{info}");
    assert_eq!(info["descriptors"], true, "{info}");
    // The node opens it by itself.
    node.restart().await.unwrap();
    assert_eq!(open(node).await, [wallet()]);
    assert_eq!(watcher.sees().await, both);
    // An operator closes it: a read finds that out, and the next one opens it.
    let close = |client: &bitcoincore_rpc::Client| {
        client.call::<Value>("unloadwallet", &[json!(wallet()), json!(false)])
    };
    node.ask(close).await.unwrap();
    assert!(watcher.reads().await.is_err());
    assert_eq!(watcher.sees().await, both);
    node.ask(close).await.unwrap();
    node.restart().await.unwrap();
    assert!(open(node).await.is_empty());
    let watcher = Watcher::start(&chain, solver(), json!({}));
    assert_eq!(watcher.sees().await, both);
    assert_eq!(open(node).await, [wallet()]);
    let watched = asked(node, "listdescriptors").await["descriptors"].take();
    assert_eq!(watched.as_array().unwrap().len(), 1, "{watched}");
    let descriptor = watched[0]["desc"].as_str().unwrap();
    let plain = format!("addr({})#", account(solver()));
    assert!(descriptor.starts_with(&plain), "{descriptor}");
}

/// A reorg takes back what its block had, until another one has it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a bitcoind with wallets in PATH: the one that is built has none"]
async fn payment_takes_its_output_at_once_and_its_change_is_there_with_its_block() {
    let chain = LocalChain::with(Wallets::On).await.unwrap();
    let node = &chain.node;
    let user = Key::named("user").unwrap();
    let watcher = Watcher::start(&chain, solver(), json!({}));
    assert!(watcher.sees().await.is_empty());
    let spent = fund(node, solver(), 3 * COIN).await;
    let first = newest(node, &spent).await;
    let kept = fund(node, solver(), COIN).await;
    let kept = newest(node, &kept).await;
    // Less than what counts.
    fund(node, solver(), 999).await;
    assert_eq!(watcher.sees().await, [first, kept]);
    let from = fund(node, user, 2 * COIN).await;
    let income = vec![solver().output(Kind::P2wpkh, Amount::from_sat(COIN / 2))];
    let income = Spend::of(vec![from], income).sign().unwrap();
    node.send(&income).await.unwrap();
    assert_eq!(watcher.sees().await, [first, kept]);
    let paid = user.output(Kind::P2wpkh, Amount::from_sat(COIN));
    let payment = Spend::of(vec![spent], vec![paid, note(ORDER).unwrap()]);
    let payment = payment.sign().unwrap();
    node.send(&payment).await.unwrap();
    assert_eq!(watcher.sees().await, [kept]);
    // The node forgets what waits, and its wallet does not.
    node.restart().await.unwrap();
    assert_eq!(node.waiting().await.unwrap().len(), 2);
    assert_eq!(watcher.sees().await, [kept]);
    let change = Coin::of(&payment, 2, (solver(), Kind::P2wpkh)).unwrap();
    let income = Coin::of(&income, 0, (solver(), Kind::P2wpkh)).unwrap();
    let mut heights = Vec::new();
    for reorg in [true, false] {
        node.mine(1).await.unwrap();
        let (change, income) = (newest(node, &change).await, newest(node, &income).await);
        assert_eq!(watcher.sees().await, [change, kept, income]);
        heights.push(change.2);
        if reorg {
            node.reorg(1).await.unwrap();
            assert_eq!(node.waiting().await.unwrap().len(), 2);
            assert_eq!(watcher.sees().await, [kept]);
        }
    }
    // Two empty blocks came in between.
    assert_eq!(heights[1], heights[0] + 2);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a bitcoind with wallets in PATH: the one that is built has none"]
async fn older_outputs_are_found_since_a_time_or_by_a_rescan() {
    let chain = LocalChain::with(Wallets::On).await.unwrap();
    let (node, other) = (&chain.node, Key::named("other").unwrap());
    let mut all = Vec::new();
    let began = node.tip().await.unwrap().time;
    for key in [solver(), other] {
        let old = fund(node, key, 2 * COIN).await;
        all.push(vec![newest(node, &old).await]);
    }
    let later = json!(began + DAY);
    let pass =
        move |client: &bitcoincore_rpc::Client| client.call::<Value>("setmocktime", &[later]);
    node.ask(pass).await.unwrap();
    // A chain's time is the middle one of eleven blocks.
    node.mine(12).await.unwrap();
    for (key, all) in [solver(), other].into_iter().zip(&mut all) {
        let new = fund(node, key, COIN).await;
        all.push(newest(node, &new).await);
    }
    let late = Watcher::start(&chain, solver(), json!({}));
    assert_eq!(late.sees().await, all[0][1..]);
    let early = Watcher::start(&chain, other, json!({ "walletSince": began }));
    assert_eq!(early.sees().await, all[1]);
    // It was made already: the time says nothing any more.
    let again = Watcher::start(&chain, solver(), json!({ "walletSince": began }));
    assert_eq!(again.sees().await, all[0][1..]);
    asked(node, "rescanblockchain").await;
    assert_eq!(again.sees().await, all[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn node_without_wallets_shows_its_own_outputs_of_what_an_index_says() {
    let chain = LocalChain::start().await.unwrap();
    let node = &chain.node;
    let refused = node.ask(|client| client.call::<Value>("listwallets", &[]));
    assert!(refused.await.is_err());
    let spent = fund(node, solver(), COIN).await;
    let kept = fund(node, solver(), 2 * COIN).await;
    let held = newest(node, &kept).await;
    let nothing = Watcher::start(&chain, solver(), json!({}));
    let nothing = nothing.reads().await;
    assert!(
        matches!(nothing, Err(ReadError::Unavailable(_))),
        "{nothing:?}"
    );
    let payment = Spend::of(vec![spent.clone()], vec![note(ORDER).unwrap()]);
    let payment = payment.sign().unwrap();
    node.send(&payment).await.unwrap();
    // A wrong amount and place of what is there, what a waiting transaction spends, and its change.
    let said = [
        (kept.point, 9 * COIN),
        (spent.point, COIN),
        (OutPoint::new(payment.compute_txid(), 1), COIN),
    ];
    let index = index(node, &said).await;
    let more = json!({ "esploraCompatibleApiUrl": format!("http://{}", index.address) });
    let watcher = Watcher::start(&chain, solver(), more);
    assert_eq!(watcher.sees().await, [held]);
    // Where it may, the node searches.
    let searching = Watcher::start(&chain, solver(), json!({ "scanUnspentOutputs": true }));
    assert_eq!(searching.sees().await, [held]);
}

/// An index that says of every account that it has these outputs, in the first block.
async fn index(node: &Regtest, outputs: &[(OutPoint, u64)]) -> Server {
    let first = node.ask(|client| client.get_block_hash(0)).await.unwrap();
    let tip = node.tip().await.unwrap();
    let utxos = outputs.iter().map(|(point, satoshis)| {
        json!({"txid": point.txid, "vout": point.vout, "value": satoshis,
            "status": {"confirmed": true, "block_height": 1}})
    });
    let utxos: Value = utxos.collect();
    let block = json!({"id": tip.hash, "height": tip.height, "timestamp": tip.time, "previousblockhash": first});
    serve(move |asked: Asked| {
        let said = match asked.target.split('/').nth(1) {
            Some("block-height") => first.to_string(),
            Some("blocks") => tip.hash.to_string(),
            Some("block") => block.to_string(),
            _ => utxos.to_string(),
        };
        async move { Some(http::json(StatusCode::OK, said.into_bytes())) }
    })
    .await
}
