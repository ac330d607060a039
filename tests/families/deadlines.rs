//! Orders near their deadlines. Nobody is paid for a payment that lands behind its deadline: the solver begins none that
//! may, and cancels what is under way while the cancellation has time to land.

use std::sync::Arc;

use intentd::request::reason::FailReason;
use vm::testing::bitcoin::World;

use crate::{
    bitcoin::{Bitcoin, FINAL, pin, waiting_fill},
    clock,
    deal::{Asset, Deal},
    evm::Evm,
    invariants::Ending,
    lived,
    machine::{CHAINS, Machine, shared},
    quotes::passes,
    side::{Act, Side, Weather},
    solana::Solana,
};

/// What a deposit is worth, in cents of a dollar.
const CENTS: u64 = 20_000;
/// Seconds from a quote to the deadline of its fill.
const LIFE: u64 = 604_800;
const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;
/// Seconds between blocks of Bitcoin.
const PACE: u64 = 600;
/// Seconds in which a deposit is final and its fill is sent.
const SOON: u64 = 120;

/// A destination whose blocks are as rare as Bitcoin's are.
fn rare(name: &str) -> (Bitcoin, Arc<World>) {
    let (chain, number, _) = CHAINS[1];
    let destination = Bitcoin::new(name, (chain, number, PACE), FINAL);
    let world = destination.world.clone();
    (destination, world)
}

async fn machine(destination: impl Side + 'static) -> Machine {
    let shared = shared();
    let origin = Evm::traded(&shared, CHAINS[0]);
    let ends: [Box<dyn Side>; 2] = [Box::new(origin), Box::new(destination)];
    Machine::between(ends, &shared).await
}

/// A quote, and its order's deadline in unix seconds.
async fn quoted(m: &mut Machine) -> (Deal, u64) {
    let deadline = clock::seconds() + LIFE;
    (m.quote(Asset::Native, CENTS, false).await, deadline)
}

fn at_destination(m: &mut Machine, act: Act) {
    m.note(format!("the destination: {act:?}"));
    m.destination.blocks().act(act);
}

/// Moves the clock to a time at once. No chain makes a block meanwhile.
fn skip_to(m: &mut Machine, time: u64) {
    m.skip(time - clock::seconds());
}

/// Moves the clock to a time at once, and lets the solver look. Only the destination makes its blocks meanwhile.
async fn leap_to(m: &mut Machine, time: u64) {
    let seconds = time - clock::seconds();
    clock::skip(seconds);
    m.origin.blocks().act(Act::Stand(seconds));
    m.settlement(Act::Stand(seconds));
    m.pass(20).await;
}

/// The destination makes its next blocks.
async fn blocks(m: &mut Machine, count: u64) {
    for _ in 0..count {
        leap_to(m, clock::seconds() + PACE).await;
    }
}

/// A fill that was begun five hours before the deadline, and that no block includes.
async fn under_way(m: &mut Machine, world: &World, (deal, deadline): (&Deal, u64)) {
    skip_to(m, deadline - 5 * HOUR);
    at_destination(m, Act::Weather(Weather::Held));
    m.pass(20).await;
    m.deposit(deal);
    m.pass(SOON).await;
    assert!(waiting_fill(world).is_some(), "no fill is begun");
}

/// What is wrong with how a deal ended whose deadline was too near.
async fn given_back(m: &mut Machine, deal: &Deal) -> Vec<String> {
    let mut wrong = m.ends(deal, Ending::Refunded).await;
    let failure = m.failure(deal).await;
    if failure != Some(FailReason::OrderExpired) {
        wrong.push(format!("given back because of {failure:?}"));
    }
    wrong
}

/// The deposits are final nine minutes and one minute before the deadline, and the next block comes behind it.
async fn minutes_before(m: &mut Machine) -> Vec<String> {
    let (first, deadline) = quoted(m).await;
    let (second, _) = quoted(m).await;
    skip_to(m, deadline - 10 * MINUTE);
    at_destination(m, Act::Stand(2 * PACE));
    m.pass(20).await;
    m.deposit(&first);
    m.pass(deadline - 2 * MINUTE - clock::seconds()).await;
    m.deposit(&second);
    let mut wrong = given_back(m, &first).await;
    wrong.extend(given_back(m, &second).await);
    wrong
}

#[test]
fn deposit_that_is_final_minutes_before_its_deadline_is_given_back_where_blocks_are_rare() {
    let (destination, _) = rare("minutes-before");
    let made = async move || machine(destination).await;
    passes(lived(1, made, async |m: &mut Machine| {
        minutes_before(m).await
    }));
}

/// A cancellation that waits for its block replaces the fill two hours before the deadline, and not before that.
async fn cancelled(m: &mut Machine, world: &World) -> Vec<String> {
    let (deal, deadline) = quoted(m).await;
    under_way(m, world, (&deal, deadline)).await;
    leap_to(m, deadline - 2 * HOUR - 5 * MINUTE).await;
    assert!(waiting_fill(world).is_some(), "cancelled too early");
    leap_to(m, deadline - 2 * HOUR + MINUTE).await;
    assert_eq!(waiting_fill(world), None, "the fill may land too late");
    at_destination(m, Act::Weather(Weather::Fair));
    blocks(m, FINAL + 1).await;
    assert!(clock::seconds() < deadline);
    given_back(m, &deal).await
}

#[test]
fn fill_under_way_is_cancelled_hours_before_its_deadline_where_blocks_are_rare() {
    let (destination, world) = rare("cancelled-in-time");
    let made = async move || machine(destination).await;
    passes(lived(1, made, async |m: &mut Machine| {
        cancelled(m, &world).await
    }));
}

/// The recipient keeps nodes from replacing fills. One was begun early enough: it is cancelled in vain, and lands before
/// its deadline. The other one would land behind it, and is not begun.
async fn pinned(m: &mut Machine, world: &World) -> Vec<String> {
    let (first, deadline) = quoted(m).await;
    let (second, _) = quoted(m).await;
    under_way(m, world, (&first, deadline)).await;
    pin(world);
    leap_to(m, deadline - 2 * HOUR + MINUTE).await;
    assert!(waiting_fill(world).is_some(), "it was not pinned");
    at_destination(m, Act::Weather(Weather::Fair));
    blocks(m, FINAL + 1).await;
    let mut wrong = m.ends(&first, Ending::Filled).await;
    skip_to(m, deadline - 10 * MINUTE);
    at_destination(m, Act::Stand(2 * PACE));
    m.pass(20).await;
    m.deposit(&second);
    m.pass(SOON).await;
    pin(world);
    leap_to(m, deadline + 2 * PACE).await;
    wrong.extend(given_back(m, &second).await);
    wrong
}

#[test]
fn whoever_pins_a_fill_is_paid_before_its_deadline_or_gets_his_deposit_back() {
    let (destination, world) = rare("pinned-fill");
    let made = async move || machine(destination).await;
    passes(lived(1, made, async |m: &mut Machine| {
        pinned(m, &world).await
    }));
}

/// Behind the deadline, blocks include whatever was sent before.
async fn outlived(m: &mut Machine) -> Vec<String> {
    let (deal, deadline) = quoted(m).await;
    skip_to(m, deadline - 5 * MINUTE);
    at_destination(m, Act::Weather(Weather::Held));
    m.pass(20).await;
    m.deposit(&deal);
    m.pass(deadline + 10 - clock::seconds()).await;
    at_destination(m, Act::Weather(Weather::Fair));
    at_destination(m, Act::Resend);
    given_back(m, &deal).await
}

#[test]
fn payment_that_nothing_cancels_is_not_begun_while_it_may_land_behind_its_deadline() {
    let destination = Solana::new("outlived", CHAINS[1]);
    let made = async move || machine(destination).await;
    passes(lived(1, made, async |m: &mut Machine| outlived(m).await));
}
