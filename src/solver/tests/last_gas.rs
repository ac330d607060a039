//! What payments of native currency leave for fees, whoever has them made.

use std::sync::atomic::Ordering;

use alloy::primitives::U256;
use futures::future::join;

use super::{
    PAID,
    rig::{RICH, Rig, native, recipient},
    waste::native_deposit,
};
use crate::{
    request::{Request, fact::Deposit},
    solver::judge::Next,
};

/// What fifty payments cost.
const KEPT: u128 = 50 * 100_000 * 110;
/// What a refund may cost, and little more.
const LITTLE: u128 = 10_000_000;
/// What orders ask for whose deposits are too much.
const ASKED: u128 = RICH / 10;

/// An order of the origin's native currency of whose deposit so much is to be given back: all of it, as it is a unit
/// short, or what is too much.
async fn to_give_back(rig: &Rig, number: u8, (amount, excess): (u128, bool)) -> Request {
    let (asked, deposited) = match excess {
        true => (ASKED, amount + ASKED),
        false => (amount + 1, amount),
    };
    let change = |request: &mut Request| {
        native_deposit(request);
        request.order.inputs[0].payment.amount = asked.to_string();
    };
    let request = rig.quote(number, change).await;
    let given = |deposit: &mut Deposit| {
        deposit.currency = native().into();
        deposit.amount = U256::from(deposited);
    };
    rig.deposit(&request, given).await;
    request
}

/// An order that pays so much of the destination's native currency.
async fn to_fill(rig: &Rig, number: u8, amount: u128) -> Request {
    let change = |request: &mut Request| {
        let payment = &mut request.order.output.payments[0];
        payment.currency = native().into();
        payment.minimum_amount = amount.to_string();
        payment.expected_amount = payment.minimum_amount.clone();
    };
    let request = rig.quote(number, change).await;
    rig.deposit(&request, |_| ()).await;
    request
}

#[tokio::test]
async fn no_native_deposit_that_goes_back_takes_the_last_gas() {
    for excess in [false, true] {
        for (left, given) in [(LITTLE, false), (2 * KEPT, true)] {
            let mut rig = Rig::new();
            let request = to_give_back(&rig, 1, (RICH - left, excess)).await;
            let solver = rig.solver().await;
            for _ in 0..20 {
                solver.advance(&request.id, rig.now).await.unwrap();
                rig.mine(1);
            }
            drop(solver);
            let back = rig.origin.paid(request.order_id);
            assert_eq!(!back.is_empty(), given, "{excess} {left}");
            // Somebody else's plain payment of tokens there is filled all the same.
            let here = |request: &mut Request| {
                request.destination.network = "origin".into();
                request.order.output.chain_id = "origin".into();
            };
            let token = rig.quote(2, here).await;
            rig.deposit(&token, |_| ()).await;
            rig.settle(&token).await;
            let paid = rig.origin.paid(token.order_id);
            assert_eq!(paid, [(recipient(2), U256::from(PAID))], "{excess} {left}");
        }
    }
}

/// Where no code runs and there are no tokens, each payment brings its own fee: nothing is kept from who is given back.
#[tokio::test]
async fn where_nothing_needs_gas_a_deposit_that_goes_back_takes_all() {
    for (without_code, without_tokens) in [(true, true), (true, false), (false, true)] {
        let mut rig = Rig::new();
        rig.without_tokens = without_tokens;
        rig.origin.with(|world| world.without_code = without_code);
        let request = to_give_back(&rig, 1, (RICH - LITTLE, false)).await;
        let solver = rig.solver().await;
        for _ in 0..20 {
            solver.advance(&request.id, rig.now).await.unwrap();
            rig.mine(1);
        }
        let given = !rig.origin.paid(request.order_id).is_empty();
        assert_eq!(given, without_code && without_tokens);
    }
}

/// Nobody tops an account up within seconds.
#[tokio::test]
async fn who_cannot_be_given_back_now_is_looked_at_again_in_a_minute() {
    let rig = Rig::new();
    let request = to_give_back(&rig, 1, (RICH - LITTLE, false)).await;
    let solver = rig.solver().await;
    let next = solver.advance(&request.id, rig.now).await;
    assert_eq!(next, Ok(Next::Until(rig.now / 1_000 + 60)));
    // What is paid goes on at once.
    let rig = Rig::new();
    let request = to_give_back(&rig, 1, (RICH / 2, false)).await;
    let solver = rig.solver().await;
    let next = solver.advance(&request.id, rig.now).await;
    assert_eq!(next, Ok(Next::Wait));
}

/// Each is judged while nothing of the other is stored: it is being signed.
#[tokio::test(start_paused = true)]
async fn what_is_paid_at_the_same_time_leaves_gas_together() {
    for fills in [true, false] {
        for (left, begun) in [(KEPT / 2, 1), (3 * KEPT, 2)] {
            let rig = Rig::new();
            let half = (RICH - left) / 2;
            let orders = match fills {
                true => [to_fill(&rig, 1, half).await, to_fill(&rig, 2, half).await],
                false => [
                    to_give_back(&rig, 1, (half, false)).await,
                    to_give_back(&rig, 2, (half, false)).await,
                ],
            };
            let solver = rig.solver().await;
            rig.slow.store(5, Ordering::Relaxed);
            let [first, second] = orders.each_ref();
            let (one, other) = join(
                solver.advance(&first.id, rig.now),
                solver.advance(&second.id, rig.now),
            )
            .await;
            assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
            let mut legs = 0;
            for request in &orders {
                legs += rig.claim(request).await.legs.len();
            }
            assert_eq!(legs, begun, "{fills} {left}");
        }
    }
}

/// No user waits for a payment whose fee the solver has not got.
#[tokio::test]
async fn a_plain_payment_is_quoted_while_what_is_signed_for_it_is_there() {
    let fee = 1_000_000;
    for (there, plain, other) in [
        (0, false, false),
        (3 * fee - 1, false, false),
        (3 * fee, true, false),
        (2 * KEPT + fee - 1, true, false),
        (2 * KEPT + fee, true, true),
    ] {
        let rig = Rig::new();
        let account = rig.solver_text();
        rig.destination.give(&account, native(), there);
        let (solver, fee) = (rig.solver().await, U256::from(fee));
        for (needed, affords) in [(U256::ZERO, plain), (fee, other)] {
            let afforded = solver.affords("destination", needed, fee).await;
            assert_eq!(afforded, Ok(affords), "{there} {needed}");
        }
    }
}
