//! What the solver pays within an hour.

use alloy::primitives::{B256, U256};

use super::rig::{Rig, recipient, refundee};
use crate::{
    market::{Caps, Dollars},
    request::{Call, Request, fact::Deposit, fixtures, reason::FailReason, status::Status},
    solver::{exposure::Payment, judge::Next},
};

/// Fills cost 99.90 dollars each; one of them fits.
fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.caps = Caps {
        hourly: Some(Dollars(150_000_000)),
        hourly_per_user: None,
        ..Caps::default()
    };
    rig
}

/// A limit of an hour for each user, and none for all.
fn rig_by_user() -> Rig {
    let mut rig = Rig::new();
    rig.caps = Caps {
        hourly: None,
        hourly_per_user: Some(Dollars(150_000_000)),
        ..Caps::default()
    };
    rig
}

async fn deposited(rig: &Rig, number: u8) -> Request {
    let request = rig.quote(number, |_| ()).await;
    let change = |deposit: &mut Deposit| {
        deposit.onchain_id.0[0] = number;
        let transaction = B256::repeat_byte(number + 40);
        deposit.transaction = transaction.to_string();
    };
    rig.deposit(&request, change).await;
    request
}

#[tokio::test]
async fn fill_beyond_the_hours_limit_waits_and_goes_back() {
    let mut rig = rig();
    let first = deposited(&rig, 1).await;
    rig.settle(&first).await;
    rig.filled(first.order_id, 1);
    // Another process remembers.
    let second = deposited(&rig, 2).await;
    let solver = rig.solver().await;
    let next = solver.advance(&second.id, rig.now).await;
    assert_eq!(next, Ok(Next::Wait));
    assert_eq!(rig.destination.waiting(), 0);
    rig.now += 301_000;
    rig.settle(&second).await;
    assert_eq!(rig.destination.paid(second.order_id), []);
    assert!(rig.refunded(second.order_id, 2) > U256::ZERO);
    assert_eq!(rig.status(&second).await, Status::Refund);
    let failure = rig.facts(&second).await.failure;
    assert_eq!(failure, Some(FailReason::SolverCapacityExceeded));
}

#[tokio::test]
async fn an_hour_later_there_is_room_again() {
    let mut rig = rig();
    let first = deposited(&rig, 1).await;
    rig.settle(&first).await;
    rig.now += 3_600_000;
    let second = deposited(&rig, 2).await;
    rig.settle(&second).await;
    rig.filled(second.order_id, 2);
}

#[tokio::test]
async fn two_fills_at_once_do_not_share_what_is_left() {
    let mut rig = rig();
    let (first, second) = (deposited(&rig, 1).await, deposited(&rig, 2).await);
    let solver = rig.solver().await;
    let both = futures::join!(
        solver.advance(&first.id, rig.now),
        solver.advance(&second.id, rig.now)
    );
    assert!(both.0.is_ok() && both.1.is_ok());
    rig.mine(1);
    let paid = [&first, &second].map(|order| rig.destination.paid(order.order_id).len());
    assert_eq!(paid.iter().sum::<usize>(), 1);
}

#[tokio::test]
async fn whoever_asks_in_anothers_name_uses_up_his_own_limit() {
    let mut rig = rig_by_user();
    // The user of both is the same; the first pays somebody else.
    let stranger = |request: &mut Request| request.recipient = refundee(9);
    let first = rig.quote(1, stranger).await;
    rig.deposit(&first, |_| ()).await;
    rig.settle(&first).await;
    rig.filled(first.order_id, 1);
    let second = deposited(&rig, 2).await;
    assert_eq!(second.user, first.user);
    rig.settle(&second).await;
    rig.filled(second.order_id, 2);
    // Now he has had his share.
    let payment = Payment {
        network: "destination",
        currency: crate::request::fixtures::USDC,
        amount: U256::from(99_900_000),
        user: Some((vm::SETTLEMENT, second.recipient.as_str())),
    };
    let solver = rig.solver().await;
    assert_eq!(solver.admits(payment, rig.now / 1_000).await, Ok(false));
}

#[tokio::test]
async fn quotes_are_asked_of_the_same_limits() {
    let mut rig = rig();
    let solver = rig.solver().await;
    let payment = |amount: u64| Payment {
        network: "destination",
        currency: crate::request::fixtures::USDC,
        amount: U256::from(amount),
        user: Some((vm::SETTLEMENT, "0x51")),
    };
    let now = rig.now / 1_000;
    assert_eq!(solver.admits(payment(150_000_000), now).await, Ok(true));
    assert_eq!(solver.admits(payment(150_000_001), now).await, Ok(false));
    // What is promised with it in another currency is of the same hour.
    for (besides, fits) in [(50_000_000_u64, true), (50_000_001, false)] {
        let besides = U256::from(besides) * U256::from(1_000_000_000_000_u64);
        let admitted = solver.admits_besides(payment(100_000_000), besides, now);
        assert_eq!(admitted.await, Ok(fits), "{besides}");
    }
    let first = deposited(&rig, 1).await;
    rig.settle(&first).await;
    let solver = rig.solver().await;
    let now = rig.now / 1_000;
    assert_eq!(solver.admits(payment(50_100_000), now).await, Ok(true));
    assert_eq!(solver.admits(payment(50_100_001), now).await, Ok(false));
}

#[tokio::test]
async fn a_fill_that_failed_leaves_the_hours_limit_to_others() {
    let mut rig = rig();
    let first = deposited(&rig, 1).await;
    let order = first.order_id;
    rig.destination.with(|world| world.revert.insert(order));
    rig.settle(&first).await;
    assert_eq!(rig.status(&first).await, Status::Refund);
    for again in [false, true] {
        // Another process knows it, too.
        let solver = rig.solver().await;
        let payment = Payment {
            network: "destination",
            currency: fixtures::USDC,
            amount: U256::from(150_000_000),
            user: None,
        };
        let admitted = solver.admits(payment, rig.now / 1_000).await;
        assert_eq!(admitted, Ok(true), "{again}");
    }
    let second = deposited(&rig, 2).await;
    rig.settle(&second).await;
    rig.filled(second.order_id, 2);
}

#[tokio::test]
async fn a_fill_that_may_have_paid_keeps_the_hours_limit() {
    let mut rig = rig();
    let request = deposited(&rig, 1).await;
    let order = request.order_id;
    rig.destination.with(|world| world.silent.insert(order));
    rig.settle(&request).await;
    let payment = Payment {
        network: "destination",
        currency: fixtures::USDC,
        amount: U256::from(99_900_000),
        user: None,
    };
    let solver = rig.solver().await;
    assert_eq!(solver.admits(payment, rig.now / 1_000).await, Ok(false));
}

/// An order whose calls take what is paid.
async fn calls(rig: &Rig, number: u8) -> Request {
    let calls = |request: &mut Request| {
        request.calls = vec![Call {
            to: refundee(9),
            value: U256::ZERO,
            data: vec![number].into(),
        }];
        // Whomever he names.
        request.recipient = recipient(50);
    };
    rig.quote(number, calls).await
}

/// A deposit of `depositor`'s, as far as anybody knows.
async fn gives(rig: &Rig, request: &Request, number: u8, (depositor, own): (&str, bool)) {
    let gives = |deposit: &mut Deposit| {
        deposit.onchain_id.0[0] = number;
        deposit.transaction = B256::repeat_byte(number + 40).to_string();
        (deposit.depositor, deposit.own) = (depositor.into(), own);
    };
    rig.deposit(request, gives).await;
}

async fn calling(rig: &mut Rig, number: u8, whose: (&str, bool)) -> Request {
    let request = calls(rig, number).await;
    gives(rig, &request, number, whose).await;
    rig.settle(&request).await;
    request
}

/// Where nobody can say that the user gave what he gave (through a bundle), others' deposits may stand before it.
#[tokio::test]
async fn what_anothers_deposit_waits_for_holds_up_no_deposit_behind_it() {
    let mut rig = rig_by_user();
    let stranger = recipient(60);
    let first = calling(&mut rig, 1, (&stranger, true)).await;
    rig.filled(first.order_id, 1);
    let request = calls(&rig, 2).await;
    for (number, whose) in [
        (2, (stranger.as_str(), true)),
        (3, (stranger.as_str(), true)),
        (4, (fixtures::USER, false)),
    ] {
        gives(&rig, &request, number, whose).await;
    }
    let solver = rig.solver().await;
    for _ in 0..10 {
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.mine(1);
    }
    let legs = rig.claim(&request).await.legs;
    assert_eq!(legs[0].deposit[0], 4);
}

#[tokio::test]
async fn calls_use_up_the_limit_of_whoever_gave_the_deposit_and_nobody_elses() {
    let mut rig = rig_by_user();
    let stranger = recipient(60);
    let first = calling(&mut rig, 1, (&stranger, true)).await;
    rig.filled(first.order_id, 1);
    // In somebody else's name.
    let second = calling(&mut rig, 2, (fixtures::USER, false)).await;
    rig.filled(second.order_id, 2);
    let solver = rig.solver().await;
    fn payment(user: &str) -> Payment<'_> {
        Payment {
            network: "destination",
            currency: fixtures::USDC,
            amount: U256::from(99_900_000),
            user: Some((vm::SETTLEMENT, user)),
        }
    }
    let now = rig.now / 1_000;
    for victim in [recipient(50), fixtures::USER.into(), refundee(9)] {
        assert_eq!(solver.admits(payment(&victim), now).await, Ok(true));
    }
    assert_eq!(solver.admits(payment(&stranger), now).await, Ok(false));
}

#[tokio::test]
async fn what_waits_keeps_nothing_of_the_hours_limit() {
    let mut rig = rig();
    let first = deposited(&rig, 1).await;
    let order = first.order_id;
    rig.destination.with(|world| world.unsure.insert(order));
    let solver = rig.solver().await;
    for _ in 0..3 {
        assert!(solver.advance(&first.id, rig.now).await.is_err());
    }
    let second = deposited(&rig, 2).await;
    for _ in 0..10 {
        solver.advance(&second.id, rig.now).await.unwrap();
        rig.mine(1);
    }
    rig.filled(second.order_id, 2);
    // What was sent keeps it.
    rig.destination.with(|world| world.unsure.clear());
    solver.advance(&first.id, rig.now).await.unwrap();
    assert_eq!(rig.claim(&first).await.legs, []);
}
