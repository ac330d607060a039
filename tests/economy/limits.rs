//! What the market file lets a unit of gas cost, at the solver of a whole process.

use alloy::primitives::U256;
use serde_json::json;

use crate::{
    clock,
    customer::{CUSTOMER, RECIPIENT},
    market::{self, NATIVE},
    world::World,
};

const GWEI: u128 = 1_000_000_000;
/// `limits.maxFee` of the destination. When the order is quoted a unit costs 22 gwei with the tip, and is
/// offered twice its base fee where nothing limits that.
const MOST: u64 = 30_000_000_000;
const TO: &str = "beta";

/// A unit of gas costs so many gwei on the destination, and a tenth for the tip.
fn cost(world: &World, gwei: u128) {
    let mut chain = world.chain(TO).lock();
    chain.base = gwei * GWEI;
    chain.tip = chain.base / 10;
}

/// The most that the solver has offered there for a unit, in blocks and waiting.
fn offered(world: &World) -> Option<u128> {
    let chain = world.chain(TO).lock();
    let mined = chain.history().map(|(_, done)| &done.tx);
    let signed = mined.chain(chain.pool()).filter_map(|tx| tx.signed);
    signed.map(|signed| signed.max).max()
}

fn received(world: &World) -> U256 {
    world.chain(TO).lock().state().balance(RECIPIENT, NATIVE)
}

/// Nonces of the solver's that are on their way there.
async fn begun(world: &World) -> usize {
    let mut accounts = world.accounts().iter();
    let account = accounts.find(|account| account.chain.name == TO).unwrap();
    account.attempts().await.unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn no_payment_is_signed_above_the_market_files_limit_and_it_waits_for_cheaper_gas() {
    for limit in [Some(MOST), None] {
        clock::begin(0);
        let mut world = World::new(&[CUSTOMER], None);
        world.market = market::changed(|network| {
            if network["name"] == TO
                && let Some(most) = limit
            {
                network["limits"] = json!({ "maxFee": most });
            }
        });
        world.start().await;
        world.pass(20).await;
        let quoted = world.quoted(None, TO).await;
        world.sent_by(CUSTOMER, &quoted);
        // With the tip it is a little above the limit, and not much above what the user has paid for.
        cost(&world, 28);
        world.pass(180).await;
        assert_eq!(received(&world).is_zero(), limit.is_some());
        if limit.is_some() {
            assert_eq!(begun(&world).await, 0);
            assert_eq!(world.status(quoted.request).await, "pending");
        }
        cost(&world, 27);
        world.pass(180).await;
        assert!(received(&world) >= quoted.minimum);
        assert_eq!(world.status(quoted.request).await, "success");
        // What was to be offered is cut to the limit, that of the allowances before the order, too.
        match limit {
            Some(most) => assert_eq!(offered(&world), Some(u128::from(most))),
            None => assert!(offered(&world) > Some(u128::from(MOST))),
        }
        world.stop().await;
    }
}
