//! The price of a quote from Bitcoin holds for a deposit that a quorum's memory pools show in time, whatever prices do until
//! its block. Where too few show it, it is priced anew.

use std::sync::Arc;

use intentd::request::reason::FailReason;
use serde_json::json;
use vm::testing::{Manners, bitcoin::World};

use crate::{
    bitcoin::{Bitcoin, FINAL, PROVIDERS},
    deal::{Asset, Deal},
    evm::Evm,
    invariants::Ending,
    lived,
    machine::{CHAINS, COINS, Machine, coin, shared},
    quotes::passes,
    side::{Act, Side},
};

/// What a deposit is worth, in cents of a dollar.
const CENTS: u64 = 20_000;
/// Seconds for which the price holds, and for which a deposit may then wait for its block.
const HOLDS: u64 = 60;
const WAITS: u64 = 600;
/// Seconds for which the origin makes no block, and within which a deposit is seen that waits for one.
const STILL: u64 = 200;
const SIGHTED: u64 = 30;

/// Has all providers but one show no transaction, or be like the others.
fn blind(world: &World, blind: bool) {
    for provider in &PROVIDERS[..2] {
        let manners = Manners {
            blind,
            ..Manners::default()
        };
        world.set_manners(provider, manners);
    }
}

/// Bitcoin, where prices hold for deposits that wait.
fn origin(name: &str) -> (Bitcoin, Arc<World>) {
    let mut origin = Bitcoin::new(name, CHAINS[0], FINAL);
    let mut coin = coin(origin.about());
    coin["priceHolds"] = json!({ "seconds": HOLDS, "waiting": WAITS });
    origin.listed = json!({ "currencies": [coin] });
    let world = origin.world.clone();
    (origin, world)
}

async fn machine(origin: Bitcoin) -> Machine {
    let shared = shared();
    let destination = Evm::traded(&shared, CHAINS[1]);
    let ends: [Box<dyn Side>; 2] = [Box::new(origin), Box::new(destination)];
    Machine::between(ends, &shared).await
}

/// A deposit that waits for its block until the quote's price holds no more, while the deposited coin becomes worth `parts`
/// of ten thousand of what it was.
async fn waits(m: &mut Machine, world: &World, (parts, is_blind): (u64, bool)) -> Deal {
    m.origin.blocks().act(Act::Stand(STILL));
    let deal = m.quote(Asset::Token, CENTS, false).await;
    blind(world, is_blind);
    m.deposit(&deal);
    m.pass(SIGHTED).await;
    assert_eq!(m.status(&deal).await, "pending", "it is not seen");
    m.move_price(COINS[0], parts);
    m.pass(HOLDS).await;
    blind(world, false);
    deal
}

/// What is wrong with how the deposit ended, and with why its order failed.
async fn ended(
    m: &mut Machine,
    deal: &Deal,
    (ending, failure): (Ending, Option<FailReason>),
) -> Vec<String> {
    let mut wrong = m.ends(deal, ending).await;
    let found = m.failure(deal).await;
    if found != failure {
        wrong.push(format!("failed because of {found:?}"));
    }
    wrong
}

/// Plays it on a machine of its own.
fn passes_from(name: &str, play: impl AsyncFnOnce(&mut Machine, &World) -> Vec<String>) {
    let (origin, world) = origin(name);
    let made = async move || machine(origin).await;
    passes(lived(1, made, async |m: &mut Machine| {
        play(m, &world).await
    }));
}

#[test]
fn what_was_promised_arrives_for_a_deposit_that_was_seen_in_time() {
    passes_from("sighted", async |m: &mut Machine, world: &World| {
        let deal = waits(m, world, (9_000, false)).await;
        let mut wrong = ended(m, &deal, (Ending::Filled, None)).await;
        let filled = m.filled(&deal);
        if filled.iter().any(|one| one.amount != deal.promised) {
            wrong.push(format!("{filled:?} of {}", deal.promised));
        }
        wrong
    });
}

#[test]
fn less_arrives_for_a_deposit_that_too_few_have_seen() {
    passes_from("unseen", async |m: &mut Machine, world: &World| {
        let deal = waits(m, world, (9_900, true)).await;
        let mut wrong = ended(m, &deal, (Ending::Filled, None)).await;
        let filled = m.filled(&deal);
        if filled.iter().any(|one| one.amount >= deal.promised) {
            wrong.push(format!("{filled:?} of {}", deal.promised));
        }
        wrong
    });
}

#[test]
fn deposit_that_too_few_have_seen_goes_back_where_the_price_has_moved_far() {
    passes_from("moved", async |m: &mut Machine, world: &World| {
        let deal = waits(m, world, (9_000, true)).await;
        let slippage = Some(FailReason::Slippage);
        ended(m, &deal, (Ending::Refunded, slippage)).await
    });
}
