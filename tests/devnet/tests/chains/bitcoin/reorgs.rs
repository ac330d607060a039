//! Blocks that are replaced under a fill, and blocks that a deposit waits for. The whole daemon trades over a real node.

use alloy::primitives::U256;
use bitcoin::Amount;
use devnet::{
    bitcoin::{Key, Kind},
    world::Files,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::trading::{ROUNDS, SATOSHIS, Trading, WEI, ether, in_time, promised, wanted};
use crate::support::chain::{RECIPIENT, finalize};

/// Bitcoin's entry in a file: it is the last one.
fn entry(file: &mut Value) -> &mut Value {
    file.as_array_mut().unwrap().last_mut().unwrap()
}

/// Waits until the recipient at the destination has so much.
async fn receives(trading: &Trading, wanted: U256) {
    in_time(async || {
        let received = trading.received().await;
        match received == wanted {
            true => Ok(()),
            false => Err(json!(received.to_string())),
        }
    })
    .await;
}

/// It has two blocks and is shown as a success, and a reorg takes both: once it waits in the node again, and once the node
/// has forgotten it.
#[tokio::test(flavor = "multi_thread")]
async fn fill_whose_two_blocks_are_replaced_is_the_same_again_and_pays_once() {
    let final_with_the_third = |files: &mut Files| {
        entry(&mut files.chains)["additionalData"]["finalizationBlocks"] = json!(3);
    };
    let trading = Trading::with(final_with_the_third).await;
    let (node, world) = (&trading.bitcoin().node, &trading.world);
    let from = ether(&world.origin, world.user.address());
    let quote = trading.quote(from, trading.end_of("recipient"), WEI).await;
    let amount = Amount::from_sat(u64::try_from(promised(&quote)).unwrap());
    trading.deposit(&quote).await;
    let fill = trading.waiting(None).await.compute_txid();
    for is_forgotten in [false, true] {
        trading.mine(2).await;
        let filled = trading.reaches(&quote, "success").await;
        assert_eq!(filled["txHashes"], json!([fill.to_string()]));
        node.reorg(2).await.unwrap();
        assert_eq!(node.included(fill).await.unwrap(), None);
        trading.reaches(&quote, "submitted").await;
        assert_eq!(node.waiting().await.unwrap(), [fill]);
        if is_forgotten {
            let sent = trading.proxy.count("sendrawtransaction");
            node.restart().await.unwrap();
            trading.waiting(None).await;
            assert!(trading.proxy.count("sendrawtransaction") > sent);
        }
        assert_eq!(node.waiting().await.unwrap(), [fill]);
    }
    trading.mine(2).await;
    trading.reaches(&quote, "success").await;
    trading.mine(3).await;
    sleep(ROUNDS).await;
    let last = trading.reaches(&quote, "success").await;
    assert_eq!(last["txHashes"], json!([fill.to_string()]));
    assert!(node.waiting().await.unwrap().is_empty());
    let recipient = Key::named("recipient").unwrap();
    let coins = node.unspent(recipient, Kind::P2wpkh).await.unwrap();
    let coins = coins.iter().map(|one| (one.point.txid, one.output.value));
    assert_eq!(coins.collect::<Vec<_>>(), [(fill, amount)]);
    trading.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_deposit_waits_for_its_second_block_and_a_small_one_does_not() {
    let small_ones_soon = |files: &mut Files| {
        entry(&mut files.market)["currencies"][0]["oneBlockUpTo"] = json!(SATOSHIS.to_string());
    };
    let trading = Trading::with(small_ones_soon).await;
    let (node, world) = (&trading.bitcoin().node, &trading.world);
    let mut quotes = Vec::new();
    for amount in [SATOSHIS, SATOSHIS + 1] {
        let to = ether(&world.destination, RECIPIENT);
        let quote = trading.quote(trading.end_of("user"), to, amount).await;
        let deposit = wanted(&quote).sign().unwrap();
        node.send(&deposit).await.unwrap();
        trading.reaches(&quote, "pending").await;
        quotes.push(quote);
    }
    let [small, large] = &quotes[..] else {
        panic!("not two quotes");
    };
    trading.mine(1).await;
    receives(&trading, promised(small)).await;
    sleep(ROUNDS).await;
    assert_eq!(trading.received().await, promised(small));
    assert_eq!(trading.status(large).await["status"], "pending");
    trading.mine(1).await;
    receives(&trading, promised(small) + promised(large)).await;
    finalize(world, &world.destination).await;
    for quote in [small, large] {
        trading.reaches(quote, "success").await;
    }
    trading.daemon.stop().await;
}
