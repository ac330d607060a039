//! What is replaced before a block has it: a fill by its solver, and a deposit by its user. The whole daemon trades over a
//! real node.

use bitcoin::{Amount, OutPoint, Transaction, TxOut};
use devnet::{
    bitcoin::{FEE, Key, Kind, Spend, note, script},
    proxy::{Lie, on},
};
use serde_json::json;
use tokio::time::sleep;

use super::trading::{ROUNDS, SATOSHIS, Trading, WEI, ether, in_time, promised, wanted};
use crate::support::chain::{RECIPIENT, finalize};

/// Bitcoins per 1000 virtual bytes: twenty times of what an empty node asks.
const DEAR: f64 = 0.0002;

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
    let deposit = wanted(&quote);
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
