//! What payments cost that paid nobody, and who pays for it.

use alloy::primitives::{Bytes, U256};

use super::{charging, handle, parked, rig::Rig, *};
use crate::{
    request::{
        Call, Request,
        fact::{Attempt, Facts},
    },
    solver::{
        breaker::Loss,
        stake::RiskyFill,
        stakes::{Pot, Stake},
    },
    store::{
        Batch,
        rows::claim::{Claim, Leg, Stage},
    },
};

/// 26 250 gas at a rate of 90 010 are five units of USDC.
const DEAR: u128 = 90_000;

fn native_payment(request: &mut Request) {
    request.order.output.payments[0].currency = native().into();
}

/// A unit less than the order asks for.
fn short(deposit: &mut Deposit) {
    deposit.amount = U256::from(99_999_999);
}

#[tokio::test]
async fn a_refund_to_the_solver_itself_is_parked() {
    let mut rig = Rig::new();
    let solver = rig.solver_text();
    let request = rig
        .quote(1, |request| {
            request.order.inputs[0].refunds[0].recipient = solver.clone();
        })
        .await;
    rig.deposit(&request, short).await;
    rig.settle(&request).await;
    assert!(parked(&rig, &request, B256::ZERO).await.is_some());
    assert_eq!(rig.claim(&request).await.legs, []);
    rig.is_clean().await;
}

#[tokio::test]
async fn a_success_that_paid_nobody_ends_and_is_the_operators() {
    for filled in [true, false] {
        let mut rig = Rig::new();
        let request = rig.quote(1, |_| ()).await;
        let chain = if filled {
            &rig.destination
        } else {
            &rig.origin
        }
        .clone();
        chain.with(|world| world.silent.insert(request.order_id));
        let change: fn(&mut Deposit) = if filled { |_| () } else { short };
        rig.deposit(&request, change).await;
        rig.settle(&request).await;
        let listed = parked(&rig, &request, B256::ZERO).await.unwrap();
        assert!(listed.note.starts_with("unpaid: 0x"), "{}", listed.note);
        let claim = rig.claim(&request).await;
        assert_eq!((claim.legs.len(), claim.unpaid), (1, vec![B256::ZERO]));
        assert_eq!(rig.status(&request).await, Status::Failure, "{filled}");
        rig.is_clean().await;
        let solver = rig.solver().await;
        let name = if filled { "destination" } else { "origin" };
        let available = solver.available(name, fixtures::USDC).await.unwrap();
        assert_eq!(available, U256::from(rig::USDC));
        // Nothing was paid, the operator has seen: it is given back.
        chain.with(|world| world.silent.clear());
        handle(&rig).release(B256::ZERO).await.unwrap();
        assert!(rig.claim(&request).await.unpaid.is_empty());
        rig.settle(&request).await;
        rig.refunded(request.order_id, 1);
        assert_eq!(rig.status(&request).await, Status::Refund);
        rig.is_clean().await;
    }
}

#[tokio::test]
async fn a_refund_that_fails_is_tried_twice_and_paid_for_by_what_is_given_back() {
    let mut rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    rig.origin.with(|world| {
        world.base = DEAR;
        world.revert.insert(request.order_id);
    });
    rig.deposit(&request, short).await;
    let since = rig.now;
    rig.settle(&request).await;
    assert_eq!(rig.claim(&request).await.legs.len(), 2);
    assert!(rig.now - since >= 60_000, "there is a pause between them");
    let listed = parked(&rig, &request, B256::ZERO).await.unwrap();
    assert!(!listed.minor);
    rig.is_clean().await;
    // Released, it is tried as often again; what failed is taken from it, with what it takes itself.
    rig.origin.with(|world| world.revert.clear());
    handle(&rig).release(B256::ZERO).await.unwrap();
    rig.settle(&request).await;
    let back = rig.refunded(request.order_id, 1);
    assert_eq!(back, U256::from(99_999_999 - 6 - 2 * 6));
    rig.is_clean().await;
}

#[tokio::test]
async fn what_burns_or_wants_gas_to_be_given_back_is_not_sent() {
    for greedy in [true, false] {
        let mut rig = Rig::new();
        let request = rig.quote(1, |_| ()).await;
        let order = request.order_id;
        rig.origin.with(|world| match greedy {
            true => world.greedy.insert(order),
            false => world.burners.insert(order),
        });
        rig.deposit(&request, short).await;
        let solver = rig.solver().await;
        let next = solver.advance(&request.id, rig.now).await;
        assert_eq!(next, Ok(Next::Until(rig.now / 1_000 + 60)), "{greedy}");
        assert_eq!(rig.claim(&request).await.legs, []);
        // It is given back when it is like others'.
        rig.origin
            .with(|world| (world.greedy.clear(), world.burners.clear()));
        rig.now += 60_000;
        rig.settle(&request).await;
        rig.refunded(order, 1);
    }
}

/// The estimate gives the whole deposit, the transaction what is left of it.
#[tokio::test]
async fn who_takes_only_the_whole_deposit_burns_nothing() {
    let mut rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    rig.origin.with(|world| {
        world.base = DEAR;
        let deposited = U256::from(99_999_999);
        world.whole.insert(request.order_id, deposited);
    });
    rig.deposit(&request, short).await;
    let solver = rig.solver().await;
    for _ in 0..10 {
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.mine(5);
    }
    assert_eq!(rig.claim(&request).await.legs, []);
    assert_eq!(rig.origin.spent_on_gas(), U256::ZERO);
    // It is given back when less is taken.
    rig.origin.with(|world| world.whole.clear());
    rig.now += 600_000;
    rig.settle(&request).await;
    rig.refunded(request.order_id, 1);
}

#[tokio::test]
async fn native_deposits_go_back_to_code_for_so_much_an_hour() {
    // Those of keys are not among the others.
    for (native, at_once) in [(true, 2 + 3), (false, 5 + 3)] {
        let mut rig = Rig::new();
        let mut orders = Vec::new();
        for number in 1..=8 {
            let key = (number > 5).then_some("app");
            orders.push(to_give_back(&rig, number, (native, key)).await);
        }
        let solver = rig.solver().await;
        let mut begun = 0;
        for request in &orders {
            let next = solver.advance(&request.id, rig.now).await;
            let begins = rig.claim(request).await.legs.len();
            let crowded = Err(SolverError::Crowded("origin".into()));
            assert_eq!(
                next == crowded,
                begins == 0,
                "told, and looked at less often"
            );
            begun += begins;
        }
        assert_eq!(begun, at_once, "{native}");
        rig.mine(10);
        if native {
            // Those fail, and count for an hour however soon they are final.
            for _ in 0..2 {
                let mut tried = 0;
                for request in &orders {
                    let _ = solver.advance(&request.id, rig.now).await;
                    let _ = solver.advance(&request.id, rig.now).await;
                    tried += rig.claim(request).await.legs.len();
                }
                assert_eq!(tried, at_once);
                // Nor are they tried again after their pause.
                rig.mine(40);
            }
            rig.mine(1_800);
        }
        // Then the others have their turn, and so do these.
        rig.origin.with(|world| world.revert.clear());
        for _ in 0..40 {
            for request in &orders {
                let _ = solver.advance(&request.id, rig.now).await;
            }
            rig.mine(3);
        }
        for (request, number) in orders.iter().zip(1..) {
            rig.refunded(request.order_id, number);
        }
    }
}

/// Ten dollars of gas each; without a key in vain.
async fn to_give_back(rig: &Rig, number: u8, (native, key): (bool, Option<&str>)) -> Request {
    let change = |request: &mut Request| {
        if native {
            native_deposit(request);
        }
        request.api_key = key.map(str::to_owned);
    };
    let request = rig.quote(number, change).await;
    rig.origin.with(|world| {
        world.data_fee = Some(5_000_000_000_000_000);
        if key.is_none() {
            world.revert.insert(request.order_id);
        }
    });
    let given = |deposit: &mut Deposit| {
        short(deposit);
        if native {
            deposit.currency = super::rig::native().into();
            deposit.amount = U256::from(99_999_999_999_999_999_u64);
        }
    };
    rig.deposit(&request, given).await;
    request
}

#[tokio::test]
async fn a_native_deposit_that_twice_did_not_go_back_counts_for_both() {
    let mut rig = Rig::new();
    let first = to_give_back(&rig, 1, (true, None)).await;
    let solver = rig.solver().await;
    for _ in 0..20 {
        let _ = solver.advance(&first.id, rig.now).await;
        rig.mine(10);
    }
    let legs = rig.claim(&first).await.legs;
    assert_eq!(legs.len(), 2);
    assert!(legs.iter().all(|leg| leg.stage == Stage::Failed));
    let second = to_give_back(&rig, 2, (true, None)).await;
    let next = solver.advance(&second.id, rig.now).await;
    assert_eq!(next, Err(SolverError::Crowded("origin".into())));
}

/// Whoever lets its refund fail, too, when it comes late.
#[tokio::test]
async fn what_was_lost_after_its_hour_is_not_lost_again_when_its_refund_fails() {
    let mut rig = Rig::new();
    let bytes = 20_000_000_000_000_000_u64;
    // Forty dollars, which its deposit could pay for.
    let change = |request: &mut Request| {
        calling(request);
        charging(request, 50_000_000);
        request.fill_besides = U256::from(bytes);
    };
    let request = rig.quote(1, change).await;
    let order = request.order_id;
    rig.destination.with(|world| {
        world.data_fee = Some(bytes);
        world.revert.insert(order);
    });
    let deposited = U256::from(100_000_000);
    rig.origin
        .with(|world| world.whole.insert(order, deposited));
    rig.deposit(&request, |_| ()).await;
    let solver = rig.solver().await;
    let holds = |now| {
        let breaker = solver.breaker.lock().unwrap();
        breaker.holds(("destination", None), now)
    };
    for _ in 0..20 {
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.mine(1);
    }
    assert!(!holds(rig.now / 1_000));
    rig.mine(1_800);
    solver.advance(&request.id, rig.now).await.unwrap();
    let lost = rig.now / 1_000;
    assert!(holds(lost) && !holds(lost + 3_600));
    rig.origin.with(|world| {
        world.whole.clear();
        world.revert.insert(order);
    });
    rig.mine(300);
    for _ in 0..20 {
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.mine(1);
    }
    let legs = rig.claim(&request).await.legs;
    let failed = |leg: &Leg| leg.purpose == Purpose::Refund && leg.stage == Stage::Failed;
    assert!(legs.iter().any(failed));
    assert!(holds(lost) && !holds(lost + 3_600));
}

/// They can get some in the block.
#[tokio::test]
async fn what_hands_over_to_accounts_without_code_is_at_stake_too() {
    let mut rig = Rig::new();
    let bytes = 20_000_000_000_000_000_u64;
    rig.destination.with(|world| world.data_fee = Some(bytes));
    let mut orders = Vec::new();
    for number in 1..=8 {
        let change = |request: &mut Request| {
            native_payment(request);
            let payment = &mut request.order.output.payments[0];
            payment.recipient = "0x00000000000000000000000000000000000000f1".into();
            request.fill_besides = U256::from(bytes);
        };
        let request = rig.quote(number, change).await;
        rig.destination
            .with(|world| world.revert.insert(request.order_id));
        rig.deposit(&request, |_| ()).await;
        orders.push(request);
    }
    let solver = rig.solver().await;
    assert!(!solver.runs_code(&orders[0]).await);
    assert_eq!(looked(&rig, &solver, &orders).await, 7);
    let holds = |now| {
        solver
            .breaker
            .lock()
            .unwrap()
            .holds(("destination", None), now)
    };
    assert!(!holds(rig.now / 1_000));
    rig.mine(10);
    looked(&rig, &solver, &orders).await;
    assert!(holds(rig.now / 1_000), "nobody was charged for it");
}

pub(super) fn native_deposit(request: &mut Request) {
    let native = super::rig::native();
    let input = &mut request.order.inputs[0];
    input.payment.currency = native.into();
    input.payment.amount = "100000000000000000".into();
    input.refunds[0].currency = native.into();
}

#[tokio::test]
async fn what_may_fail_together_is_begun_for_so_much_at_a_time() {
    let bytes = 20_000_000_000_000_000_u64;
    for fails in [false, true] {
        let mut rig = Rig::new();
        rig.destination.with(|world| world.data_fee = Some(bytes));
        let mut orders = Vec::new();
        for number in 1..=8 {
            // Forty dollars each.
            let change = |request: &mut Request| {
                calling(request);
                charging(request, 50_000_000);
                request.fill_besides = U256::from(bytes);
            };
            let request = rig.quote(number, change).await;
            let deposited = U256::from(100_000_000);
            let order = request.order_id;
            if fails {
                rig.destination.with(|world| world.revert.insert(order));
                rig.origin
                    .with(|world| world.whole.insert(order, deposited));
            }
            rig.deposit(&request, |_| ()).await;
            orders.push(request);
        }
        let solver = rig.solver().await;
        assert_eq!(looked(&rig, &solver, &orders).await, 2, "{fails}");
        assert!(rig.claim(&orders[5]).await.waits.is_some());
        // Keys have a part of their own.
        let keyed = |request: &mut Request| {
            calling(request);
            charging(request, 50_000_000);
            request.fill_besides = U256::from(bytes);
            request.api_key = Some("app".into());
        };
        let keyed = rig.quote(9, keyed).await;
        rig.deposit(&keyed, |_| ()).await;
        assert_eq!(looked(&rig, &solver, &[keyed]).await, 1, "{fails}");
        // Another process knows what is under way.
        let solver = rig.solver().await;
        assert_eq!(looked(&rig, &solver, &orders).await, 2, "{fails}");
        rig.mine(10);
        looked(&rig, &solver, &orders).await;
        let begun = looked(&rig, &solver, &orders).await;
        assert_eq!(begun > 2, !fails, "{begun}");
        if !fails {
            continue;
        }
        // The refunds are refused: nothing like it is quoted.
        assert!(quoted_less(&solver, None, rig.now).await);
        assert!(!quoted_less(&solver, Some("other"), rig.now).await);
        until_a_block_gives_them_back(&mut rig, &solver, &orders[..2]).await;
    }
}

/// What failed is at stake until then.
async fn until_a_block_gives_them_back(
    rig: &mut Rig,
    solver: &crate::solver::Solver,
    orders: &[Request],
) {
    // Neither a refund that is sent nor one that fails in its block pays for anything.
    rig.origin.with(|world| {
        world.whole.clear();
        let failing = orders.iter().map(|request| request.order_id);
        world.revert.extend(failing);
    });
    rig.now += 61_000;
    let mut sent = 0;
    for _ in 0..100 {
        if sent == 4 {
            break;
        }
        for request in orders {
            solver.advance(&request.id, rig.now).await.unwrap();
        }
        assert!(quoted_less(solver, None, rig.now).await);
        sent = refunds(rig, orders).await;
        if sent > 2 {
            rig.origin.with(|world| world.revert.clear());
        }
        rig.mine(2);
    }
    assert_eq!(sent, 4);
    // Their deposits pay as soon as a block gives them back.
    for round in 0..8 {
        for request in orders {
            solver.advance(&request.id, rig.now).await.unwrap();
        }
        rig.mine(2);
        assert!(round < 1 || !quoted_less(solver, None, rig.now).await);
    }
}

/// How many refunds of the orders were begun.
async fn refunds(rig: &Rig, orders: &[Request]) -> usize {
    let mut begun = 0;
    for request in orders {
        let legs = rig.claim(request).await.legs;
        let refunds = legs.iter().filter(|leg| leg.purpose == Purpose::Refund);
        begun += refunds.count();
    }
    begun
}

/// What is worth less than the least unit fills no room, and nothing has none.
#[tokio::test]
async fn no_fill_is_too_small_to_be_at_stake() {
    let rig = Rig::new();
    let solver = rig.solver().await;
    let now = rig.now / 1_000;
    let restrains = |most: u64| {
        let fill = RiskyFill {
            key: None,
            most: U256::from(most),
            code: true,
        };
        solver.restrains("destination", fill, now)
    };
    let stake = Stake {
        network: "destination".into(),
        pot: Pot::Code,
        cost: 100_000,
        failed: None,
    };
    {
        let mut breaker = solver.breaker.lock().unwrap();
        assert!(breaker.begin((B256::ZERO, None), stake, now));
    }
    // 0.0008 dollars.
    assert_eq!(restrains(400_000_000_000).await, Ok(true));
    assert_eq!(restrains(0).await, Ok(false));
}

fn lost(cost: u64, handed_over: bool) -> Loss {
    Loss { cost, handed_over }
}

/// Whether forty dollars of gas for somebody's code are too much now.
async fn quoted_less(solver: &crate::solver::Solver, key: Option<&str>, now: u64) -> bool {
    let gas = U256::from(20_000_000_000_000_000_u64);
    let fill = RiskyFill {
        key,
        most: gas,
        code: true,
    };
    let restrained = solver.restrains("destination", fill, now / 1_000);
    restrained.await.unwrap()
}

/// How many of the orders' fills were begun after a look at each.
async fn looked(rig: &Rig, solver: &crate::solver::Solver, orders: &[Request]) -> usize {
    let mut begun = 0;
    for request in orders {
        solver.advance(&request.id, rig.now).await.unwrap();
        let legs = rig.claim(request).await.legs;
        begun += usize::from(legs.iter().any(|leg| leg.purpose == Purpose::Fill));
    }
    begun
}

#[tokio::test]
async fn a_fill_that_fails_with_the_gas_that_it_is_sent_with_is_not_sent() {
    let mut rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    rig.destination
        .with(|world| world.greedy.insert(request.order_id));
    rig.deposit(&request, |_| ()).await;
    rig.settle(&request).await;
    assert_eq!(rig.destination.spent_on_gas(), U256::ZERO);
    let facts = rig.facts(&request).await;
    assert_eq!(facts.failure, Some(FailReason::ExecutionReverted));
    rig.refunded(request.order_id, 1);
}

/// It costs about as much as the whole deposit.
async fn failed(rig: &mut Rig, minimum: &str) -> Request {
    let bytes = 60_000_000_000_000_000_u64;
    let change = |request: &mut Request| {
        charging(request, 99_999_999);
        request.fill_besides = U256::from(bytes);
        request.order.inputs[0].refunds[0].minimum_amount = minimum.into();
    };
    let request = rig.quote(1, change).await;
    rig.destination.with(|world| {
        world.data_fee = Some(bytes);
        world.revert.insert(request.order_id);
    });
    rig.deposit(&request, |_| ()).await;
    rig.settle(&request).await;
    request
}

#[tokio::test]
async fn a_failed_fill_leaves_the_least_refund_and_no_more() {
    for (minimum, back) in [("0", 1), ("1", 1), ("40000000", 40_000_000)] {
        let mut rig = Rig::new();
        let request = failed(&mut rig, minimum).await;
        let given = rig.refunded(request.order_id, 1);
        assert_eq!(given, U256::from(back), "{minimum}");
    }
}

fn calling(request: &mut Request) {
    request.calls = vec![Call {
        to: recipient(9),
        value: Default::default(),
        data: Bytes::from_static(&[1]),
    }];
}

/// Losses of strangers' orders that run code hold up what runs code, and nothing else.
#[tokio::test]
async fn after_strangers_losses_a_plain_payment_is_still_filled() {
    let rig = Rig::new();
    let (burner, plain) = (rig.quote(1, calling).await, rig.quote(2, |_| ()).await);
    let native = rig.quote(3, native_payment).await;
    let keyed = |request: &mut Request| {
        calling(request);
        request.calls[0].data = Bytes::from_static(&[2]);
        request.api_key = Some("app".into());
    };
    let keyed = rig.quote(4, keyed).await;
    let solver = rig.solver().await;
    let mut deposit = fixtures::deposit(1, Standing::Final);
    deposit.depositor = recipient(4);
    solver
        .breaker
        .lock()
        .unwrap()
        .lost(&burner, &deposit, lost(30_000, true), rig.now / 1_000);
    assert!(quoted_less(&solver, None, rig.now).await);
    assert!(!quoted_less(&solver, Some("app"), rig.now).await);
    for request in [&plain, &native, &keyed] {
        rig.deposit(request, |_| ()).await;
        solver.advance(&request.id, rig.now).await.unwrap();
    }
    assert_eq!(rig.status(&plain).await, Status::Submitted);
    assert_eq!(rig.status(&keyed).await, Status::Submitted);
    // Whom it pays may have code: it waits, and goes back after five minutes.
    assert_eq!(rig.claim(&native).await.legs, []);
    assert_eq!(rig.facts(&native).await.failure, None);
    let later = rig.now + 301_000;
    solver.advance(&native.id, later).await.unwrap();
    let facts = rig.facts(&native).await;
    assert_eq!(facts.failure, Some(FailReason::SolverCapacityExceeded));
}

/// The large one is worth less than was promised by then.
#[tokio::test]
async fn who_lets_a_small_fill_fail_has_no_plain_payment_of_tokens_given_back() {
    // The deposit is the user's own, or another account's.
    for depositor in [fixtures::USER.to_owned(), recipient(4)] {
        for plain in [true, false] {
            let rig = Rig::new();
            let small = rig.quote(1, calling).await;
            let change = |request: &mut Request| {
                if !plain {
                    native_payment(request);
                }
            };
            let large = rig.quote(2, change).await;
            let solver = rig.solver().await;
            let by = |deposit: &mut Deposit| deposit.depositor.clone_from(&depositor);
            let mut deposit = fixtures::deposit(1, Standing::Final);
            by(&mut deposit);
            {
                let (mut breaker, now) = (solver.breaker.lock().unwrap(), rig.now / 1_000);
                breaker.lost(&small, &deposit, lost(1_000, true), now);
                assert!(breaker.is_open(&large, &deposit, now) && breaker.bars(&deposit, now));
            }
            rig.deposit(&large, by).await;
            solver.advance(&large.id, rig.now).await.unwrap();
            assert_eq!(rig.destination.waiting() == 1, plain, "{depositor}");
            let legs = rig.claim(&large).await.legs;
            let filled = legs.iter().any(|leg| leg.purpose == Purpose::Fill);
            assert_eq!(filled, plain, "{depositor}");
        }
    }
}

#[tokio::test]
async fn what_a_barred_depositor_gives_for_others_goes_back_at_once() {
    let mut rig = Rig::new();
    let request = rig.quote(1, native_payment).await;
    let solver = rig.solver().await;
    let others = |deposit: &mut Deposit| deposit.depositor = recipient(4);
    let mut deposit = fixtures::deposit(1, Standing::Final);
    others(&mut deposit);
    let blamed = |now| {
        let mut breaker = solver.breaker.lock().unwrap();
        breaker.lost(&request, &deposit, lost(1_000, false), now);
    };
    blamed(rig.now / 1_000);
    rig.deposit(&request, others).await;
    for _ in 0..20 {
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.mine(1);
    }
    assert!(rig.refunded(request.order_id, 1) > U256::ZERO);
    assert_eq!(rig.status(&request).await, Status::Refund);
    let facts = rig.facts(&request).await;
    assert_eq!(facts.failure, None);
    assert_eq!(facts.endings[0].reason, FailReason::SolverCapacityExceeded);
    // The user's own one decides.
    let own = |deposit: &mut Deposit| deposit.onchain_id.0[0] = 1;
    rig.deposit(&request, own).await;
    for _ in 0..20 {
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.mine(1);
    }
    assert_eq!(rig.destination.paid(request.order_id).len(), 1);
    assert_eq!(rig.status(&request).await, Status::Success);
}

#[tokio::test]
async fn what_a_deposit_cannot_pay_of_a_failed_fill_is_a_loss() {
    let mut rig = Rig::new();
    let bytes = 20_000_000_000_000_000_u64;
    // Forty dollars were charged for and wasted; the least refund leaves ten.
    let request = rig
        .quote(1, |request| {
            charging(request, 50_000_000);
            request.fill_besides = U256::from(bytes);
            request.order.inputs[0].refunds[0].minimum_amount = "90000000".into();
        })
        .await;
    rig.destination.with(|world| {
        world.data_fee = Some(bytes);
        world.revert.insert(request.order_id);
    });
    rig.deposit(&request, |_| ()).await;
    let solver = rig.solver().await;
    for _ in 0..40 {
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.mine(1);
    }
    assert_eq!(
        rig.refunded(request.order_id, 1),
        U256::from(90_000_000_u64)
    );
    let breaker = solver.breaker.lock().unwrap();
    let deposit = rig_deposit();
    assert!(breaker.is_open(&request, &deposit, rig.now / 1_000));
}

fn rig_deposit() -> Deposit {
    let mut deposit = fixtures::deposit(1, Standing::Final);
    deposit.depositor = fixtures::USER.into();
    deposit
}

#[tokio::test]
async fn what_failed_costs_what_its_receipt_says() {
    let mut rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    // Two units of USDC, and not the six that its gas would have cost at most.
    rig.origin.with(|world| {
        (world.base, world.spent) = (DEAR, Some(900_000_000));
        world.revert.insert(request.order_id);
    });
    rig.deposit(&request, short).await;
    let solver = rig.solver().await;
    while rig.claim(&request).await.legs.len() < 2 {
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.mine(2);
    }
    assert_eq!(
        rig.claim(&request).await.legs[0].wasted,
        U256::from(900_000_000)
    );
    assert_eq!(
        rig.claim(&request).await.legs[1].amount,
        U256::from(99_999_999 - 6 - 2)
    );
}

/// Its depositor has nothing to do with it.
#[tokio::test]
async fn what_no_node_took_of_a_refund_is_not_taken_from_it() {
    for (reverted, taken) in [(true, 2), (false, 0)] {
        let mut rig = Rig::new();
        let request = rig.quote(1, |_| ()).await;
        rig.origin.with(|world| world.base = DEAR);
        rig.deposit(&request, short).await;
        let leg = Leg {
            purpose: Purpose::Refund,
            deposit: B256::ZERO,
            reason: None,
            network: "origin".into(),
            lane: "origin".into(),
            attempt: Default::default(),
            currency: fixtures::USDC.into(),
            amount: U256::ONE,
            payments: Vec::new(),
            transaction: Some("0x1".into()),
            stage: Stage::Failed,
            wasted: U256::from(900_000_000),
            begun: 0,
        };
        let claim = Claim {
            legs: vec![leg],
            ..Claim::default()
        };
        let row = claim.encode().unwrap();
        let batch = Batch::new().put(rows::claim::key(&request.id), row);
        rig.store.commit(batch).await.unwrap();
        if reverted {
            let attempt = Attempt {
                purpose: Purpose::Refund,
                network: "origin".into(),
                transaction: "0x1".into(),
                currency: fixtures::USDC.into(),
                amount: U256::ONE,
                deposit: None,
                state: State::Reverted {
                    place: fixtures::place(1),
                    reason: None,
                },
            };
            let attempts = |facts: &mut Facts| facts.attempts.push(attempt.clone());
            let recorded = rig
                .requests
                .record(&request.id, rig.now, Batch::new(), attempts);
            recorded.await.unwrap();
        }
        rig.settle(&request).await;
        let back = rig.refunded(request.order_id, 1);
        assert_eq!(back, U256::from(99_999_999 - 6 - taken), "{reverted}");
    }
}
