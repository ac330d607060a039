//! What is replaced before a block has it: a fill by its solver, and a deposit by its user. The whole daemon trades over a
//! real node.

use std::time::Duration;

use alloy::primitives::{Address, Bytes, U256};
use bitcoin::{Amount, OutPoint, Psbt, Transaction, TxOut, Txid};
use devnet::{
    bitcoin::{FEE, Key, Kind, LocalChain, PROVIDERS, Spend, note, script, with_credentials},
    node::Payload,
    proxy::{Lie, LyingProxy, on},
    world::{Abroad, DevChain, Devnet, order::text},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::{
    chain::{RECIPIENT, done, finalize, oracle},
    daemon::Daemon,
};

/// Wei, and satoshis, that a user gives.
const WEI: u64 = 50_000_000_000_000_000;
const SATOSHIS: u64 = 200_000;
/// Bitcoins per 1000 virtual bytes: twenty times of what an empty node asks.
const DEAR: f64 = 0.0002;

const POLL: Duration = Duration::from_millis(500);
/// How often something is looked for. A payment is left alone for half a minute before it is replaced.
const PATIENCE: usize = 240;
/// In which the solver has looked at each of its orders more than once.
const ROUNDS: Duration = Duration::from_secs(6);

/// A daemon whose solver trades between EVM chains and Bitcoin. What its provider says of fees can be changed; all else is
/// the node's.
struct Trading {
    world: Devnet,
    abroad: Abroad,
    proxy: LyingProxy,
    daemon: Daemon,
    client: reqwest::Client,
}

/// One side of a request: its chain's number, the chain's own currency, and somebody's account.
type End = (u64, String, String);

impl Trading {
    async fn start() -> Self {
        let (world, abroad) = tokio::join!(Devnet::start(), Abroad::bitcoin());
        let (world, abroad) = (world.unwrap(), abroad.unwrap());
        let mut files = world.files();
        abroad.tell(&mut files).unwrap();
        abroad.trade(&mut files).unwrap();
        let solver = abroad.solver_account(&world.solver).unwrap();
        for account in [solver, abroad.account("user").unwrap()] {
            abroad.endow(&account).await.unwrap();
        }
        let proxy = LyingProxy::start(abroad.url()).await.unwrap();
        let daemon = oracle(&world, 0)
            .chains(&files)
            .with(PROVIDERS, with_credentials(&proxy.url))
            .solver(&world.solver, "destination")
            .start()
            .await;
        let trading = Self {
            world,
            abroad,
            proxy,
            daemon,
            client: reqwest::Client::new(),
        };
        // The solver spends what is final.
        trading.mine(2).await;
        trading
    }

    fn bitcoin(&self) -> &LocalChain {
        let Abroad::Bitcoin(chain) = &self.abroad else {
            panic!("another chain");
        };
        chain
    }

    async fn mine(&self, blocks: u64) {
        self.bitcoin().node.mine(blocks).await.unwrap();
    }

    /// The account of somebody with this name on Bitcoin.
    fn end_of(&self, who: &str) -> End {
        let native = self.abroad.identity().unwrap().native;
        let account = self.abroad.account(who).unwrap();
        (self.abroad.number(), native, account)
    }

    /// The answer to a request for a quote, once there is one.
    async fn quote(&self, from: End, to: End, amount: u64) -> Value {
        let body = json!({
            "user": from.2, "recipient": to.2, "originChainId": from.0, "destinationChainId": to.0,
            "originCurrency": from.1, "destinationCurrency": to.1, "amount": amount.to_string(),
            "tradeType": "EXACT_INPUT", "includeProtocolData": true,
        });
        let url = format!("{}/quote/v2", self.daemon.integrator_url());
        in_time(async || {
            let answer = self.client.post(&url).json(&body).send().await.unwrap();
            let answer: Value = answer.json().await.unwrap();
            match answer["steps"].is_array() {
                true => Ok(answer),
                false => Err(answer),
            }
        })
        .await
    }

    /// The user deposits at the origin as the quote says; it is final when this returns.
    async fn deposit(&self, quote: &Value) {
        let data = &quote["steps"][0]["items"][0]["data"];
        let field = |name: &str| data[name].as_str().unwrap_or_else(|| panic!("{quote}"));
        let payload = Payload {
            to: Some(field("to").parse().unwrap()),
            data: field("data").parse::<Bytes>().unwrap().to_vec(),
            value: field("value").parse().unwrap(),
        };
        let (origin, user) = (&self.world.origin, self.world.user.address());
        done(origin.node.send(user, payload).await);
        finalize(&self.world, origin).await;
    }

    async fn status(&self, quote: &Value) -> Value {
        let request = quote["steps"][0]["requestId"].as_str().unwrap();
        let base = self.daemon.integrator_url();
        let url = format!("{base}/intents/status/v3?requestId={request}");
        let answer = self.client.get(url).send().await.unwrap();
        answer.json().await.unwrap()
    }

    /// Where the request stands, once that is `wanted`.
    async fn reaches(&self, quote: &Value, wanted: &str) -> Value {
        in_time(async || {
            let answer = self.status(quote).await;
            match answer["status"] == wanted {
                true => Ok(answer),
                false => Err(answer),
            }
        })
        .await
    }

    /// The only transaction that waits for a block, once it is another than `before`.
    async fn waiting(&self, before: Option<Txid>) -> Transaction {
        let node = &self.bitcoin().node;
        let id = in_time(async || {
            let ids = node.waiting().await.unwrap();
            match ids[..] {
                [one] if before != Some(one) => Ok(one),
                _ => Err(json!(ids.iter().map(Txid::to_string).collect::<Vec<_>>())),
            }
        });
        node.transaction(id.await).await.unwrap()
    }

    /// What `POST /transactions/index` says to a transaction.
    async fn indexed(&self, transaction: Txid) -> u16 {
        let body = json!({"chainId": self.abroad.number(), "txHash": transaction.to_string()});
        let url = format!("{}/transactions/index", self.daemon.integrator_url());
        let answer = self.client.post(url).json(&body).send().await.unwrap();
        answer.status().as_u16()
    }

    /// What the recipient at the destination has.
    async fn received(&self) -> U256 {
        let node = &self.world.destination.node;
        node.balance(RECIPIENT).await.unwrap()
    }
}

/// What `look` finds, once it finds what is wanted; what it saw last is told where that takes too long.
async fn in_time<T>(look: impl AsyncFn() -> Result<T, Value>) -> T {
    let mut last = Value::Null;
    for _ in 0..PATIENCE {
        match look().await {
            Ok(found) => return found,
            Err(seen) => last = seen,
        }
        sleep(POLL).await;
    }
    panic!("{last}")
}

/// An account on an EVM chain.
fn ether(chain: &DevChain, account: Address) -> End {
    (chain.node.chain_id, text(Address::ZERO), text(account))
}

/// What the quote promises, in the smallest unit.
fn promised(quote: &Value) -> U256 {
    let amount = quote["details"]["currencyOut"]["amount"].as_str();
    amount.unwrap().parse().unwrap()
}

/// What a transaction spends.
fn spent(transaction: &Transaction) -> Vec<OutPoint> {
    let inputs = transaction.input.iter();
    inputs.map(|input| input.previous_output).collect()
}

fn sum(outputs: &[TxOut]) -> Amount {
    outputs.iter().map(|output| output.value).sum()
}

/// Each transaction pays `promised` and names the order, and at most one of the two is ever in a block.
fn are_versions_of_one_fill((first, second): (&Transaction, &Transaction), promised: &[TxOut]) {
    let common = spent(first);
    assert!(
        spent(second).iter().any(|one| common.contains(one)),
        "{first:?} {second:?}"
    );
    for version in [first, second] {
        let paid = promised.iter().all(|one| version.output.contains(one));
        assert!(paid, "{version:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fill_that_waits_is_replaced_when_fees_rise_and_pays_the_user_once() {
    let trading = Trading::start().await;
    let (node, world) = (&trading.bitcoin().node, &trading.world);
    let recipient = Key::named("recipient").unwrap();
    let from = ether(&world.origin, world.user.address());
    let to = trading.end_of("recipient");
    let quote = trading.quote(from, to, WEI).await;
    let amount = Amount::from_sat(u64::try_from(promised(&quote)).unwrap());
    let order = quote["protocol"]["v2"]["orderId"].as_str().unwrap();
    trading.deposit(&quote).await;
    let first = trading.waiting(None).await;
    assert_eq!(trading.status(&quote).await["status"], "submitted");
    let rate = json!({"feerate": DEAR, "blocks": 2});
    let rule = on("estimatesmartfee", move |_| Lie::Result(rate.clone()));
    trading.proxy.lie(rule);
    let second = trading.waiting(Some(first.compute_txid())).await;
    let outputs = [recipient.output(Kind::P2wpkh, amount), note(order).unwrap()];
    are_versions_of_one_fill((&first, &second), &outputs);
    let size = u64::try_from(second.vsize()).unwrap();
    let fee = sum(&first.output).checked_sub(sum(&second.output));
    // The first paid one satoshi for a byte.
    assert!(fee.unwrap() >= Amount::from_sat(size * 18), "{second:?}");
    // The node has no place for the first any more.
    node.send(&first).await.unwrap_err();
    trading.mine(1).await;
    let early = trading.status(&quote).await;
    assert_ne!(early["status"], "success", "a block is missing on top");
    trading.mine(1).await;
    let last = trading.reaches(&quote, "success").await;
    let (first, second) = (first.compute_txid(), second.compute_txid());
    assert_eq!(last["txHashes"], json!([second.to_string()]));
    trading.mine(3).await;
    sleep(ROUNDS).await;
    assert!(node.waiting().await.unwrap().is_empty());
    assert_eq!(node.included(first).await.unwrap(), None);
    let coins = node.unspent(recipient, Kind::P2wpkh).await.unwrap();
    let coins = coins.iter().map(|one| (one.point.txid, one.output.value));
    assert_eq!(coins.collect::<Vec<_>>(), [(second, amount)]);
    trading.daemon.stop().await;
}

/// The order is not lost by it: another deposit of the user's is filled.
#[tokio::test(flavor = "multi_thread")]
async fn deposit_that_its_user_takes_back_before_a_block_has_it_is_paid_for_by_nobody() {
    let trading = Trading::start().await;
    let (node, world) = (&trading.bitcoin().node, &trading.world);
    let user = Key::named("user").unwrap();
    let solver = trading.abroad.solver_account(&world.solver).unwrap();
    let solver = script(&solver).unwrap();
    let had = node.holds(solver.clone()).await.unwrap();
    let to = ether(&world.destination, RECIPIENT);
    let quote = trading.quote(trading.end_of("user"), to, SATOSHIS).await;
    let psbt = &quote["steps"][0]["items"][0]["data"]["psbt"];
    let psbt = alloy::hex::decode(psbt.as_str().unwrap()).unwrap();
    let psbt = Psbt::deserialize(&psbt).unwrap();
    let deposit = Spend::wanted(&psbt, (user, Kind::P2wpkh)).unwrap();
    let gone = node.send(&deposit.sign().unwrap()).await.unwrap();
    let pending = trading.reaches(&quote, "pending").await;
    assert_eq!(pending["inTxHashes"], json!([gone.to_string()]));
    let own = vec![user.output(Kind::P2tr, Amount::from_sat(SATOSHIS))];
    let back = Spend {
        fee: FEE * 3,
        ..Spend::of(deposit.coins.clone(), own)
    };
    let back = node.send(&back.sign().unwrap()).await.unwrap();
    assert_eq!(node.waiting().await.unwrap(), [back]);
    let waiting = trading.reaches(&quote, "waiting").await;
    assert_eq!(waiting["inTxHashes"], json!([]));
    assert_eq!(trading.indexed(gone).await, 404);
    trading.mine(3).await;
    sleep(ROUNDS).await;
    assert_eq!(trading.indexed(back).await, 200);
    assert_eq!(trading.indexed(gone).await, 404);
    assert_eq!(trading.status(&quote).await["status"], "waiting");
    assert!(trading.received().await.is_zero());
    assert!(node.waiting().await.unwrap().is_empty());
    assert_eq!(node.holds(solver).await.unwrap(), had);
    // What the deposit paid and named, without its change.
    let outputs = deposit.outputs[..2].to_vec();
    let coins = node.unspent(user, Kind::P2wpkh).await.unwrap();
    let again = Spend::of(coins[..1].to_vec(), outputs).sign().unwrap();
    let again = node.confirm(&again).await.unwrap();
    trading.mine(1).await;
    let paid = in_time(async || match trading.received().await {
        nothing if nothing.is_zero() => Err(trading.status(&quote).await),
        paid => Ok(paid),
    });
    assert_eq!(paid.await, promised(&quote));
    finalize(world, &world.destination).await;
    let last = trading.reaches(&quote, "success").await;
    assert_eq!(last["inTxHashes"], json!([again.to_string()]));
    trading.daemon.stop().await;
}
