//! Requests that cannot be looked at: how often they are tried, and who waits for them.

use std::{cell::Cell, sync::Arc, time::Duration};

use alloy::primitives::{B256, U256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{chain, rig::Rig};
use crate::{
    request::{Request, fact::Deposit},
    solver::worker::{Pace, Worker},
    store::{Batch, rows},
};

thread_local! {
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

fn clock() -> u64 {
    let passed = BEGAN.get().map_or(Duration::ZERO, |began| began.elapsed());
    (chain::GENESIS + 100) * 1_000 + u64::try_from(passed.as_millis()).unwrap()
}

/// Works at the usual pace, on so many requests at a time.
async fn working(rig: &Rig, at_once: usize) -> CancellationToken {
    BEGAN.set(Some(Instant::now()));
    let worker = Worker {
        solver: Arc::new(rig.solver().await),
        settler: None,
        pace: Pace {
            at_once,
            ..Pace::default()
        },
        clock,
    };
    let stop = CancellationToken::new();
    tokio::spawn(worker.run(stop.clone()));
    stop
}

/// An order, deposited for, of which no provider says what it would do.
async fn unsure(rig: &Rig, number: u8) -> Request {
    let request = rig.quote(number, |_| ()).await;
    let order = request.order_id;
    rig.destination.with(|world| world.unsure.insert(order));
    rig.deposit(&request, |_| ()).await;
    request
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_looked_at_is_tried_less_and_less_often() {
    let rig = Rig::new();
    let request = unsure(&rig, 1).await;
    let stop = working(&rig, 32).await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    let looks = rig.destination.with(|world| world.estimates) / 3;
    assert!((5..=12).contains(&looks), "{looks}");
    // What comes anew is looked at at once.
    rig.destination.with(|world| world.unsure.clear());
    rig.deposit(&request, |deposit| {
        deposit.onchain_id = alloy::primitives::B256::repeat_byte(1);
    })
    .await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(rig.claim(&request).await.legs.len(), 1);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn who_comes_anew_waits_for_none_who_was_looked_at_in_vain() {
    let rig = Rig::new();
    rig.destination
        .with(|world| world.slow = Duration::from_secs(1));
    for number in 1..=60 {
        unsure(&rig, number).await;
    }
    let stop = working(&rig, 1).await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    let honest = rig.funded(99).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(rig.claim(&honest).await.legs.len(), 1);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_hiccup_of_some_seconds_costs_no_order_its_price() {
    let mut rig = Rig::new();
    rig.worth = Err("nobody is to be asked");
    let request = unsure(&rig, 1).await;
    let stop = working(&rig, 32).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    rig.destination.with(|world| world.unsure.clear());
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(rig.claim(&request).await.legs.len(), 1);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_read_holds_up_no_other() {
    let rig = Rig::new();
    let broken = B256::ZERO;
    let rows = Batch::new()
        .put(rows::request::key(&broken), vec![255])
        .put(rows::open::key(&broken), rows::open::encode(0, &broken));
    rig.store.commit(rows).await.unwrap();
    let stop = working(&rig, 32).await;
    let honest = rig.funded(99).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(rig.claim(&honest).await.legs.len(), 1);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn what_others_change_reads_nothing_of_what_waits() {
    let rig = Rig::new();
    for number in 1..=60 {
        unsure(&rig, number).await;
    }
    let stop = working(&rig, 32).await;
    // Looked at seven times, the last one five seconds ago, and the next one in half a minute.
    tokio::time::sleep(Duration::from_secs(68)).await;
    let other = rig.quote(99, |_| ()).await;
    let before = rig.fuse.facts();
    for number in 1..=10 {
        let dust = |deposit: &mut Deposit| {
            deposit.onchain_id = B256::repeat_byte(number);
            deposit.amount = U256::ONE;
        };
        rig.deposit(&other, dust).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let parked = rig.claim(&other).await.parked.len();
    assert_eq!(parked, 10, "each was looked at");
    let read = rig.fuse.facts() - before;
    assert!(read < 300, "{read}");
    stop.cancel();
}
