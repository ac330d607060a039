//! Deposits that come after the time that their order's price held for.

use alloy::primitives::U256;

use super::rig::{Rig, recipient};
use crate::{
    request::{Request, reason::FailReason, status::Status},
    solver::{judge::Next, late::Repriced},
};

/// An order whose deposit comes a second too late.
async fn late(rig: &Rig) -> Request {
    let until = rig.now / 1_000 - 1;
    let change = |request: &mut Request| {
        request.valid_until = until;
        request.order.output.payments[0].minimum_amount = "97000000".into();
    };
    let request = rig.quote(1, change).await;
    rig.deposit(&request, |_| ()).await;
    request
}

#[tokio::test]
async fn late_deposit_whose_price_moved_goes_back() {
    let mut rig = Rig::new();
    rig.worth = Ok(Repriced::Nothing);
    let request = late(&rig).await;
    rig.settle(&request).await;
    assert_eq!(rig.destination.paid(request.order_id), []);
    assert!(rig.refunded(request.order_id, 1) > U256::ZERO);
    assert_eq!(rig.status(&request).await, Status::Refund);
    let failure = rig.facts(&request).await.failure;
    assert_eq!(failure, Some(FailReason::Slippage));
}

#[tokio::test]
async fn late_deposit_is_filled_with_what_it_is_worth() {
    let mut rig = Rig::new();
    let worth = U256::from(98_000_000);
    rig.worth = Ok(Repriced::Less(worth));
    let request = late(&rig).await;
    rig.settle(&request).await;
    let paid = rig.destination.paid(request.order_id);
    assert_eq!(paid, [(recipient(1), worth)]);
    assert_eq!(rig.status(&request).await, Status::Success);
}

#[tokio::test]
async fn late_deposit_is_priced_with_what_its_bytes_cost_now() {
    let mut rig = Rig::new();
    rig.destination
        .with(|world| world.data_fee = Some(5_000_000));
    let request = late(&rig).await;
    rig.settle(&request).await;
    assert_eq!(*rig.data.lock().unwrap(), Some(U256::from(5_000_000)));
    rig.filled(request.order_id, 1);
}

#[tokio::test]
async fn deposit_in_time_asks_no_market() {
    let mut rig = Rig::new();
    rig.worth = Err("nobody is to be asked");
    let until = rig.now / 1_000;
    let request = rig.quote(1, |request| request.valid_until = until).await;
    rig.deposit(&request, |_| ()).await;
    // Final a while after its block.
    rig.now += 120_000;
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
}

#[tokio::test]
async fn late_deposit_that_nobody_can_price_waits_and_goes_back() {
    let mut rig = Rig::new();
    rig.worth = Err("no price");
    let request = late(&rig).await;
    let solver = rig.solver().await;
    assert_eq!(solver.advance(&request.id, rig.now).await, Ok(Next::Wait));
    assert_eq!(rig.destination.waiting(), 0);
    rig.now += 301_000;
    rig.settle(&request).await;
    assert_eq!(rig.destination.paid(request.order_id), []);
    assert_eq!(rig.status(&request).await, Status::Refund);
    let failure = rig.facts(&request).await.failure;
    assert_eq!(failure, Some(FailReason::NoQuotes));
}

#[tokio::test]
async fn refund_pays_for_its_settlement() {
    let mut given = Vec::new();
    for settlement in [0, 2] {
        let mut rig = Rig::new();
        rig.settlement = U256::from(settlement) * U256::from(super::rig::RICH);
        rig.worth = Ok(Repriced::Nothing);
        let request = late(&rig).await;
        rig.settle(&request).await;
        given.push(rig.refunded(request.order_id, 1));
    }
    // Two dollars of the deposit's currency.
    assert_eq!(given[0] - given[1], U256::from(2_000_000));
}
