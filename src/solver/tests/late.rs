//! Deposits that come after the time that their order's price held for.

use alloy::primitives::{B256, U256};

use vm::OrderCall;

use super::rig::{Rig, recipient};
use crate::{
    request::{
        Request,
        fact::{Deposit, Facts, Waited},
        reason::FailReason,
        status::Status,
    },
    solver::{SolverError, judge::Next, repricing::Repriced},
    store::Batch,
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
    let burden = rig.burden.lock().unwrap().unwrap();
    assert_eq!(burden.besides, U256::from(5_000_000));
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

/// Where blocks are rare: seconds after the end of the price at which a quorum showed the deposit waiting, if it did,
/// and at which its block came.
#[tokio::test]
async fn a_price_holds_for_a_deposit_that_waited_in_time() {
    for (since, mined, late) in [
        (Some(0), 600, false),
        (Some(0), 601, true),
        (Some(1), 2, true),
        (None, 0, true),
        (Some(-5), -5, false),
    ] {
        let mut rig = Rig::new();
        rig.worth = Ok(Repriced::Nothing);
        let now = i64::try_from(rig.now / 1_000).unwrap();
        let until = u64::try_from(now - mined).unwrap();
        let change = |request: &mut Request| {
            request.valid_until = until;
            request.mined_until = Some(until + 600);
        };
        let request = rig.quote(1, change).await;
        rig.deposit(&request, |_| ()).await;
        let waited = since.map(|since| Waited {
            network: "origin".into(),
            transaction: B256::repeat_byte(9).to_string(),
            since: until.saturating_add_signed(since),
        });
        let change = |facts: &mut Facts| facts.waited = waited.iter().cloned().collect();
        let recorded = rig
            .requests
            .record(&request.id, rig.now, Batch::new(), change);
        recorded.await.unwrap();
        rig.settle(&request).await;
        let paid = rig.destination.paid(request.order_id);
        assert_eq!(paid.is_empty(), late, "{since:?} {mined}");
    }
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

/// An order whose deposit comes in the last second, and whose fill no provider can say anything about.
async fn unsure(rig: &Rig) -> Request {
    let until = rig.now / 1_000;
    let request = rig.quote(1, |request| request.valid_until = until).await;
    rig.deposit(&request, |_| ()).await;
    let order = request.order_id;
    rig.destination.with(|world| world.unsure.insert(order));
    let solver = rig.solver().await;
    let said = solver.advance(&request.id, rig.now).await;
    assert!(matches!(said, Err(SolverError::Read(_))), "{said:?}");
    request
}

#[tokio::test]
async fn who_makes_his_own_fill_doubtful_chooses_among_no_prices() {
    for (worth, filled) in [(Repriced::Nothing, false), (Repriced::Promised, true)] {
        let mut rig = Rig::new();
        rig.worth = Ok(worth);
        let request = unsure(&rig).await;
        rig.now += 301_000;
        rig.destination.with(|world| world.unsure.clear());
        rig.settle(&request).await;
        let paid = rig.destination.paid(request.order_id);
        assert_eq!(!paid.is_empty(), filled);
        let failure = rig.facts(&request).await.failure;
        assert_eq!(failure, (!filled).then_some(FailReason::Slippage));
    }
}

#[tokio::test]
async fn in_time_order_outlasts_a_market_that_is_away_and_ends_after_a_day() {
    let mut rig = Rig::new();
    let request = unsure(&rig).await;
    rig.destination.with(|world| world.unsure.clear());
    rig.worth = Err("no price");
    rig.now += 7_200_000;
    let solver = rig.solver().await;
    assert_eq!(solver.advance(&request.id, rig.now).await, Ok(Next::Wait));
    assert_eq!(rig.facts(&request).await.failure, None);
    rig.worth = Ok(Repriced::Promised);
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);

    let mut rig = Rig::new();
    let request = unsure(&rig).await;
    rig.now += 86_401_000;
    rig.settle(&request).await;
    let failure = rig.facts(&request).await.failure;
    assert_eq!(failure, Some(FailReason::NoQuotes));
    assert_eq!(rig.status(&request).await, Status::Refund);
}

#[tokio::test]
async fn deposit_of_a_backdated_block_is_priced_anew() {
    let mut rig = Rig::new();
    rig.worth = Ok(Repriced::Nothing);
    let until = rig.now / 1_000;
    let request = rig.quote(1, |request| request.valid_until = until).await;
    rig.now += 3_600_000;
    rig.deposit(&request, |deposit: &mut Deposit| deposit.place.time = until)
        .await;
    rig.settle(&request).await;
    assert_eq!(rig.destination.paid(request.order_id), []);
    let failure = rig.facts(&request).await.failure;
    assert_eq!(failure, Some(FailReason::Slippage));
}

/// An order whose calls are an exchange, and the user's own ones besides.
async fn exchanging(rig: &Rig, own: bool) -> Request {
    let change = |request: &mut Request| {
        super::rig::routed(request, 1);
        request.order.output.payments.truncate(1);
        let call = OrderCall {
            to: vm::SETTLEMENT.address(super::rig::ROUTER).unwrap(),
            data: vec![1, 2, 3, 4].into(),
            value: U256::ZERO,
        };
        let call = vm::SETTLEMENT.orders.unwrap().encode_call(&call).unwrap();
        request.order.output.calls = vec![alloy::hex::encode_prefixed(call)];
        if own {
            request.calls.push(crate::request::Call {
                to: recipient(1),
                value: U256::ZERO,
                data: vec![1].into(),
            });
        }
    };
    let request = rig.quote(1, change).await;
    rig.deposit(&request, |_| ()).await;
    // The approval is there.
    let solver = rig.solver().await;
    let account = &solver.accounts["destination"];
    solver.approve_ahead(account, rig.now).await.unwrap();
    rig.destination.mine();
    let order = request.order_id;
    rig.destination
        .with(|world| world.revert_estimate.insert(order));
    request
}

#[tokio::test]
async fn who_moves_a_pool_for_a_block_fails_no_exchange() {
    let mut rig = Rig::new();
    let request = exchanging(&rig, false).await;
    let solver = rig.solver().await;
    assert_eq!(solver.advance(&request.id, rig.now).await, Ok(Next::Wait));
    assert_eq!(rig.facts(&request).await.failure, None);
    rig.destination.with(|world| world.revert_estimate.clear());
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
    // Not for ever; and the user's own calls fail their order at once.
    for own in [false, true] {
        let mut rig = Rig::new();
        let request = exchanging(&rig, own).await;
        rig.begun(&request).await;
        let reverted = Some(FailReason::ExecutionReverted);
        let failure = rig.facts(&request).await.failure;
        assert_eq!(failure, reverted.filter(|_| own));
        rig.now += 301_000;
        rig.settle(&request).await;
        assert_eq!(rig.facts(&request).await.failure, reverted);
    }
}

/// What an exchange ends in may be native.
#[tokio::test]
async fn an_exchange_runs_the_code_of_whom_it_pays() {
    let rig = Rig::new();
    let mut request = exchanging(&rig, false).await;
    let solver = rig.solver().await;
    assert!(solver.runs_code(&request).await);
    // It has none.
    request.recipient = "0x00000000000000000000000000000000000000f1".into();
    assert!(!solver.runs_code(&request).await);
    // A token, paid plainly, runs nobody's.
    let plain = rig.quote(2, |_| ()).await;
    assert!(!solver.runs_code(&plain).await);
}

#[tokio::test]
async fn gas_that_became_dearer_is_waited_out_and_then_priced() {
    // Fifty times is too much, 1.5 times is not; nor is any multiple of next to nothing.
    const MUCH: u64 = 10_000_000_000;
    for (base, gas, filled) in [
        (1_490, MUCH, true),
        (50_000, MUCH / 10, true),
        (50_000, MUCH, false),
    ] {
        let mut rig = Rig::new();
        rig.worth = Ok(Repriced::Nothing);
        let change = |request: &mut Request| {
            request.fill_work = gas;
            request.fill_rate = U256::from(1_000);
        };
        let request = rig.quote(1, change).await;
        rig.destination.with(|world| world.base = base);
        rig.deposit(&request, |_| ()).await;
        let solver = rig.solver().await;
        assert_eq!(solver.advance(&request.id, rig.now).await, Ok(Next::Wait));
        assert_eq!(
            rig.destination.waiting(),
            usize::from(filled),
            "{base} {gas}"
        );
        if filled {
            continue;
        }
        rig.now += 301_000;
        rig.settle(&request).await;
        let failure = rig.facts(&request).await.failure;
        assert_eq!(failure, Some(FailReason::Slippage));
    }
}

/// Four and forty dollars of gas, by what was charged for it.
#[tokio::test]
async fn of_much_gas_a_quarter_more_is_dear() {
    const FOUR: u64 = 2_000_000_000_000;
    for (gas, base, filled) in [
        (FOUR, 1_600, true),
        (FOUR, 2_100, false),
        (10 * FOUR, 1_200, true),
        (10 * FOUR, 1_400, false),
        (10 * FOUR, 1_900, false),
    ] {
        let rig = Rig::new();
        let change = |request: &mut Request| {
            request.fill_work = gas;
            request.fill_rate = U256::from(1_000);
        };
        let request = rig.quote(1, change).await;
        rig.destination.with(|world| world.base = base);
        rig.deposit(&request, |_| ()).await;
        rig.begun(&request).await;
        let waiting = rig.destination.waiting();
        assert_eq!(waiting, usize::from(filled), "{gas} {base}");
    }
}

#[tokio::test]
async fn what_gas_needs_is_not_promised_and_its_lack_ends_an_order() {
    let mut rig = Rig::new();
    let sellable = rig.solver().await;
    let sellable = sellable.sellable("destination", super::rig::native()).await;
    let kept = U256::from(2 * 50 * 100_000 * 110_u64);
    assert_eq!(sellable, Ok(U256::from(super::rig::RICH) - kept));
    // One unit is left for gas.
    let change = |request: &mut Request| {
        let payment = &mut request.order.output.payments[0];
        payment.currency = super::rig::native().into();
        payment.minimum_amount = (super::rig::RICH - 1).to_string();
        payment.expected_amount = payment.minimum_amount.clone();
    };
    let request = rig.quote(1, change).await;
    rig.deposit(&request, |_| ()).await;
    let solver = rig.solver().await;
    assert_eq!(solver.advance(&request.id, rig.now).await, Ok(Next::Wait));
    rig.now += 301_000;
    rig.settle(&request).await;
    let failure = rig.facts(&request).await.failure;
    assert_eq!(failure, Some(FailReason::SolverBalanceTooLow));
    assert!(rig.refunded(request.order_id, 1) > U256::ZERO);
}

/// Each was quoted alone.
#[tokio::test]
async fn what_several_quotes_promised_together_leaves_gas_for_refunds() {
    let mut rig = Rig::new();
    let kept = 50 * 100_000 * 110_u128;
    let native = |amount: u128| {
        move |request: &mut Request| {
            let payment = &mut request.order.output.payments[0];
            payment.currency = super::rig::native().into();
            payment.minimum_amount = amount.to_string();
            payment.expected_amount = payment.minimum_amount.clone();
        }
    };
    // All that was sellable, while gas becomes dearer.
    let sellable = rig.solver().await;
    let sellable = sellable.sellable("destination", super::rig::native()).await;
    let first = rig.quote(1, native(sellable.unwrap().to())).await;
    rig.destination.with(|world| world.base = 150);
    let second = rig.quote(2, native(kept)).await;
    let token = rig.quote(3, |_| ()).await;
    for request in [&first, &second, &token] {
        rig.deposit(request, |_| ()).await;
    }
    let solver = rig.solver().await;
    for request in [&first, &second, &token] {
        for _ in 0..10 {
            solver.advance(&request.id, rig.now).await.unwrap();
            rig.mine(1);
        }
    }
    assert_eq!(rig.destination.paid(first.order_id).len(), 1);
    assert_eq!(rig.claim(&second).await.legs, []);
    rig.filled(token.order_id, 3);
}

#[tokio::test]
async fn what_settles_for_more_than_it_is_worth_is_dust() {
    // Three cents. A bad minute's dollar counts for five.
    for (settlement, units, dust) in [(4, 30_000, true), (2, 30_000, false), (100, 60_000, false)] {
        let mut rig = Rig::new();
        rig.settlement = U256::from(settlement) * U256::from(super::rig::RICH) / U256::from(100);
        let change = |request: &mut Request| {
            request.order.inputs[0].refunds[0].minimum_amount = "1".into();
        };
        let request = rig.quote(1, change).await;
        rig.deposit(&request, |deposit| deposit.amount = U256::from(units))
            .await;
        rig.begun(&request).await;
        let parked = rig.claim(&request).await.parked;
        assert_eq!(!parked.is_empty(), dust, "{settlement} {units}");
    }
}

/// Whoever fills somebody's transaction, or his own, with deposits that are settled with it.
#[tokio::test]
async fn who_deposits_among_many_pays_for_the_settlement_of_all() {
    for (together, filled) in [(3, true), (4, false)] {
        let mut rig = Rig::new();
        rig.settlement = U256::from(super::rig::RICH);
        rig.worth = Ok(Repriced::Nothing);
        let request = rig.quote(1, |_| ()).await;
        rig.deposit(&request, |deposit| deposit.together = together)
            .await;
        rig.settle(&request).await;
        let paid = rig.destination.paid(request.order_id);
        assert_eq!(!paid.is_empty(), filled, "{together}");
        let burden = *rig.burden.lock().unwrap();
        assert_eq!(burden.map(|burden| burden.together), (!filled).then_some(4));
    }
    let mut given = Vec::new();
    for together in [1, 3, 4, 54] {
        let mut rig = Rig::new();
        rig.settlement = U256::from(super::rig::RICH);
        rig.worth = Ok(Repriced::Nothing);
        let until = rig.now / 1_000 - 1;
        let request = rig.quote(1, |request| request.valid_until = until).await;
        rig.deposit(&request, |deposit| deposit.together = together)
            .await;
        rig.settle(&request).await;
        given.push(rig.refunded(request.order_id, 1));
    }
    assert_eq!(given[0], given[1]);
    // A fifth of a dollar for each.
    assert_eq!(given[1] - given[2], U256::from(200_000));
    assert_eq!(given[1] - given[3], U256::from(51 * 200_000));
}

/// Somebody else pays for it in a transaction with so many deposits that it is worth less than was promised, or
/// nobody has looked at what he paid until it is too old for a fill.
#[tokio::test]
async fn what_others_deposit_fails_no_order_of_the_users() {
    let crowded = |deposit: &mut Deposit| deposit.together = 4;
    let old = |deposit: &mut Deposit| deposit.place.time -= 6 * 86_400 + 6 * 3_600;
    let cases = [
        (crowded as fn(&mut Deposit), FailReason::Slippage),
        (old, FailReason::OrderExpired),
    ];
    for (case, reason) in cases {
        let mut rig = Rig::new();
        rig.settlement = U256::from(super::rig::RICH);
        rig.worth = Ok(Repriced::Nothing);
        let request = rig.quote(1, |_| ()).await;
        let strangers = |deposit: &mut Deposit| {
            deposit.onchain_id.0[0] = 1;
            deposit.depositor = recipient(4);
            case(deposit);
        };
        rig.deposit(&request, strangers).await;
        rig.settle(&request).await;
        assert!(rig.refunded(request.order_id, 1) > U256::ZERO);
        let facts = rig.facts(&request).await;
        assert_eq!(facts.failure, None);
        assert_eq!(facts.endings[0].reason, reason);
        assert_eq!(rig.status(&request).await, Status::Refund);
        // The user's own one is filled, though it comes later.
        let transaction = B256::repeat_byte(8).to_string();
        let own = |deposit: &mut Deposit| deposit.transaction.clone_from(&transaction);
        rig.deposit(&request, own).await;
        rig.settle(&request).await;
        assert_eq!(rig.destination.paid(request.order_id).len(), 1);
        assert_eq!(rig.status(&request).await, Status::Success);
        rig.is_clean().await;
    }
}

/// He moves the pool in front of the fill, before the user has deposited.
#[tokio::test]
async fn a_fill_for_anothers_deposit_that_fails_fails_no_order() {
    let mut rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    let order = request.order_id;
    rig.destination.with(|world| world.revert.insert(order));
    let strangers = |deposit: &mut Deposit| {
        deposit.onchain_id.0[0] = 1;
        deposit.depositor = recipient(4);
    };
    rig.deposit(&request, strangers).await;
    rig.settle(&request).await;
    assert_eq!(rig.facts(&request).await.failure, None);
    assert_eq!(rig.status(&request).await, Status::Refund);
    rig.destination.with(|world| world.revert.clear());
    let transaction = B256::repeat_byte(8).to_string();
    let own = |deposit: &mut Deposit| deposit.transaction.clone_from(&transaction);
    rig.deposit(&request, own).await;
    rig.settle(&request).await;
    assert_eq!(rig.destination.paid(order).len(), 1);
    assert_eq!(rig.status(&request).await, Status::Success);
    rig.is_clean().await;
}

#[tokio::test]
async fn a_network_stands_whose_newest_block_is_old() {
    let rig = Rig::new();
    let head = super::chain::GENESIS + 19 * super::chain::PACE;
    for (age, stands) in [(0, false), (60, false), (61, true), (3_600, true)] {
        let moves = rig.solver().await.moves("origin", 60, head + age).await;
        let expected = SolverError::Stalled("origin".into(), age);
        assert_eq!(moves.err(), stands.then_some(expected), "{age}");
    }
    // It is asked once in ten seconds, whoever wants a quote.
    let solver = rig.solver().await;
    assert_eq!(solver.moves("origin", 60, head + 60).await, Ok(()));
    rig.origin.mine();
    let moves = solver.moves("origin", 60, head + 61).await;
    assert_eq!(moves, Err(SolverError::Stalled("origin".into(), 61)));
    let moves = rig.solver().await.moves("origin", 60, head + 61).await;
    assert_eq!(moves, Ok(()));
}
