//! Fills that are in no block when their price holds no more, on a chain whose payments expire.

mod expiring;

use alloy::primitives::{B256, U256};

use self::expiring::{Shared, started};
use super::{
    PAID,
    rig::{Rig, recipient},
};
use crate::{
    request::{
        Request,
        fact::{Deposit, Purpose},
        reason::FailReason,
    },
    solver::{Solver, repricing::Repriced},
    store::rows::claim::Stage,
};

/// An order, deposited for, that a little less than was promised pays for, too.
async fn order(rig: &Rig, change: impl FnOnce(&mut Request)) -> Request {
    let less = |request: &mut Request| {
        request.order.output.payments[0].minimum_amount = "97000000".into();
        change(request);
    };
    let request = rig.quote(1, less).await;
    rig.deposit(&request, |_| ()).await;
    request
}

/// Lets so many seconds pass in which no block has the fill, and then what was signed for it expire.
async fn expired(rig: &mut Rig, (solver, ends): (&Solver, &Shared), of: (&Request, u64)) {
    let (request, seconds) = of;
    rig.now += seconds * 1_000;
    solver.advance(&request.id, rig.now).await.unwrap();
    rig.destination.forget();
    ends.lock().unwrap().over = true;
    solver.advance(&request.id, rig.now).await.unwrap();
}

/// What became of the order: it was not filled for this reason, and its deposit went back.
async fn given_back(rig: &mut Rig, solver: &Solver, (request, why): (&Request, FailReason)) {
    for _ in 0..20 {
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.mine(1);
    }
    assert_eq!(rig.facts(request).await.failure, Some(why));
    assert!(rig.refunded(request.order_id, 1) > U256::ZERO);
    assert_eq!(rig.destination.paid(request.order_id), []);
}

/// The stage and the amount of each of its fills.
async fn fills(rig: &Rig, request: &Request) -> Vec<(Stage, U256)> {
    let legs = rig.claim(request).await.legs.into_iter();
    let fills = legs.filter(|leg| leg.purpose == Purpose::Fill);
    fills.map(|leg| (leg.stage, leg.amount)).collect()
}

#[tokio::test]
async fn a_fill_in_no_block_is_cancelled_when_its_price_has_held_for_five_minutes() {
    for (expires, seconds, cancelled) in [(true, 299, 0), (true, 300, 1), (false, 300, 0)] {
        let mut rig = Rig::new();
        let request = order(&rig, |_| ()).await;
        let (solver, ends) = started(&rig, expires).await;
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.now += seconds * 1_000;
        for _ in 0..2 {
            solver.advance(&request.id, rig.now).await.unwrap();
        }
        let found = ends.lock().unwrap().cancelled.len();
        assert_eq!(found, cancelled, "{expires} {seconds}");
        // It may still land: nothing else is begun.
        let open = (Stage::Open, U256::from(PAID));
        assert_eq!(fills(&rig, &request).await, [open]);
        assert_eq!(rig.claim(&request).await.legs.len(), 1);
    }
}

#[tokio::test]
async fn who_keeps_his_fill_out_of_blocks_gets_it_once_more_at_the_price_of_then() {
    let mut rig = Rig::new();
    let worth = U256::from(98_000_000);
    rig.worth = Ok(Repriced::Less(worth));
    let request = order(&rig, |_| ()).await;
    let (solver, ends) = started(&rig, true).await;
    solver.advance(&request.id, rig.now).await.unwrap();
    expired(&mut rig, (&solver, &ends), (&request, 300)).await;
    let first = (Stage::Failed, U256::from(PAID));
    assert_eq!(fills(&rig, &request).await, [first, (Stage::Open, worth)]);
    assert_eq!(rig.facts(&request).await.failure, None);
    // What keeps the second one waiting has as long as what kept the first one.
    let waiting = rig.claim(&request).await.waiting;
    let since: Vec<_> = waiting.iter().map(|one| one.since).collect();
    assert_eq!(since, [rig.now / 1_000]);
    // The second one's price holds as long as the first one's.
    rig.now += 299_000;
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(ends.lock().unwrap().cancelled.len(), 1);
    expired(&mut rig, (&solver, &ends), (&request, 1)).await;
    let why = FailReason::TransactionNotIncluded;
    given_back(&mut rig, &solver, (&request, why)).await;
    assert_eq!(fills(&rig, &request).await.len(), 2);
}

#[tokio::test]
async fn who_keeps_his_fill_out_of_blocks_until_the_price_has_moved_gets_his_deposit_back() {
    let mut rig = Rig::new();
    rig.worth = Ok(Repriced::Nothing);
    let request = order(&rig, |_| ()).await;
    let (solver, ends) = started(&rig, true).await;
    solver.advance(&request.id, rig.now).await.unwrap();
    expired(&mut rig, (&solver, &ends), (&request, 300)).await;
    given_back(&mut rig, &solver, (&request, FailReason::Slippage)).await;
    assert_eq!(fills(&rig, &request).await.len(), 1);
}

#[tokio::test]
async fn another_deposit_after_a_fill_that_was_kept_out_is_worth_what_it_is_worth_then() {
    let mut rig = Rig::new();
    let (worth, then) = (U256::from(98_000_000), rig.now / 1_000);
    rig.worth = Ok(Repriced::Less(worth));
    let long = |request: &mut Request| {
        request.order.output.payments[0].minimum_amount = "97000000".into();
        request.valid_until = then + 10_000;
    };
    let request = rig.quote(1, long).await;
    let others = |number: u8| {
        move |deposit: &mut Deposit| {
            deposit.onchain_id = B256::repeat_byte(number);
            deposit.transaction = B256::repeat_byte(number).to_string();
            deposit.depositor = recipient(4);
            deposit.place.time = then;
        }
    };
    rig.deposit(&request, others(1)).await;
    let (solver, ends) = started(&rig, true).await;
    solver.advance(&request.id, rig.now).await.unwrap();
    for _ in 0..2 {
        expired(&mut rig, (&solver, &ends), (&request, 300)).await;
    }
    let gone = [(Stage::Failed, U256::from(PAID)), (Stage::Failed, worth)];
    assert_eq!(fills(&rig, &request).await, gone);
    assert_eq!(rig.facts(&request).await.failure, None);
    rig.deposit(&request, others(2)).await;
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(fills(&rig, &request).await[2..], [(Stage::Open, worth)]);
}

#[tokio::test]
async fn an_overdue_fill_that_lands_all_the_same_is_the_only_payment() {
    let mut rig = Rig::new();
    rig.worth = Err("nobody is to be asked");
    let request = order(&rig, |_| ()).await;
    let (solver, ends) = started(&rig, true).await;
    solver.advance(&request.id, rig.now).await.unwrap();
    rig.now += 300_000;
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(ends.lock().unwrap().cancelled.len(), 1);
    for _ in 0..20 {
        rig.mine(1);
        solver.advance(&request.id, rig.now).await.unwrap();
    }
    rig.filled(request.order_id, 1);
    let paid = (Stage::Final, U256::from(PAID));
    assert_eq!(fills(&rig, &request).await, [paid]);
}

#[tokio::test]
async fn an_overdue_fill_whose_order_is_over_is_not_judged_anew() {
    let mut rig = Rig::new();
    let deadline = u32::try_from(rig.now / 1_000 + 340).unwrap();
    let soon = |request: &mut Request| request.order.output.deadline = deadline;
    let request = order(&rig, soon).await;
    let (solver, ends) = started(&rig, true).await;
    solver.advance(&request.id, rig.now).await.unwrap();
    expired(&mut rig, (&solver, &ends), (&request, 310)).await;
    given_back(&mut rig, &solver, (&request, FailReason::OrderExpired)).await;
    assert_eq!(fills(&rig, &request).await.len(), 1);
}
