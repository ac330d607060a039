//! The solver over chains in memory: dying, reorgs, replacements, and what they do to balances.

mod chain;
mod closed;
mod exposure;
mod fuse;
mod held;
mod last_gas;
mod late;
mod overdue;
mod pauses;
mod providers;
mod random;
mod rents;
pub mod rig;
mod routers;
mod soon;
mod waste;
mod worths;

use std::sync::{Arc, atomic::Ordering};

use alloy::primitives::{B256, U256};

use self::rig::{Rig, native, recipient, refundee, routed};
use super::{
    Solver, SolverError,
    breaker::Loss,
    judge::Next,
    worker::{Pace, Worker},
};
use crate::{
    request::{
        Request,
        fact::{Deposit, Facts, Purpose, Standing, State},
        fixtures,
        reason::{FailReason, RefundFailReason},
        status::{self, Status},
    },
    store::{
        requests::RequestsError,
        rows::{self, claim::Stage, parked::Parked},
    },
};

const PAID: u64 = 99_900_000;

impl Rig {
    /// Nothing is held back and no nonce is open once everything is done.
    async fn is_clean(&self) {
        for kind in [rows::RESERVATION, rows::RESOURCE, rows::OPEN] {
            let range = crate::store::Range {
                kind,
                prefix: Vec::new(),
                after: None,
                limit: 9,
                reverse: false,
            };
            assert_eq!(self.store.scan(range).await.unwrap(), []);
        }
        let solver = self.solver().await;
        for account in solver.accounts.values() {
            assert_eq!(account.attempts().await.unwrap(), []);
        }
    }

    /// Settles an order, in two lives if the process dies at this point. Whether it did.
    async fn settle_dying(&mut self, request: &Request, point: i64) -> bool {
        let fuse = self.fuse.clone();
        fuse.set(point);
        let died = !fuse.survive(self.settle(request)).await;
        fuse.off();
        if died {
            self.settle(request).await;
        }
        died
    }

    fn filled(&self, order: B256, number: u8) {
        let paid = self.destination.paid(order);
        assert_eq!(paid, [(recipient(number), U256::from(PAID))]);
        assert_eq!(self.origin.paid(order), []);
    }

    /// What came back on the origin.
    fn refunded(&self, order: B256, number: u8) -> U256 {
        let paid = self.origin.paid(order);
        assert_eq!(paid.len(), 1, "{paid:?}");
        assert_eq!(paid[0].0, refundee(number));
        paid[0].1
    }
}

/// Deadlines were judged before the signature was asked for.
#[tokio::test(start_paused = true)]
async fn what_a_slow_signature_delays_is_judged_again_and_not_sent() {
    for forced in [false, true] {
        let rig = Rig::new();
        let solver = rig.solver().await;
        let force = |request: &mut Request| {
            request.referrer = forced.then(|| "debug-force-refund".into());
        };
        let request = rig.quote(1, force).await;
        rig.deposit(&request, |_| ()).await;
        let legs = async |seconds: u64| {
            rig.slow.store(seconds, Ordering::Relaxed);
            for _ in 0..4 {
                solver.advance(&request.id, rig.now).await.unwrap();
            }
            rig.claim(&request).await.legs.len()
        };
        assert_eq!([legs(31).await, legs(5).await], [0, 1]);
    }
}

/// A look has one time for all its steps.
#[tokio::test(start_paused = true)]
async fn what_slow_signatures_of_the_same_look_delay_is_not_sent_either() {
    let rig = Rig::new();
    let solver = rig.solver().await;
    let request = rig.quote(1, |_| ()).await;
    rig.deposit(&request, |_| ()).await;
    let short = |deposit: &mut Deposit| {
        deposit.onchain_id = B256::repeat_byte(7);
        deposit.transaction = B256::repeat_byte(8).to_string();
        deposit.amount = U256::from(50_000_000);
    };
    rig.deposit(&request, short).await;
    rig.slow.store(20, Ordering::Relaxed);
    let mut legs = Vec::new();
    for _ in 0..2 {
        solver.advance(&request.id, rig.now).await.unwrap();
        legs.push(rig.claim(&request).await.legs.len());
    }
    assert_eq!(legs, [1, 2]);
}

#[tokio::test]
async fn order_is_filled_once_and_told_when_it_is_deep_enough() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    let solver = rig.solver().await;
    assert_eq!(solver.advance(&request.id, rig.now).await, Ok(Next::Wait));
    assert_eq!(rig.status(&request).await, Status::Submitted);
    let reserved = solver
        .available("destination", fixtures::USDC)
        .await
        .unwrap();
    assert_eq!(reserved, U256::from(rig::USDC) - U256::from(PAID));
    rig.mine(1);
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(rig.status(&request).await, Status::Submitted);
    rig.mine(2);
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(rig.status(&request).await, Status::Success);
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
    assert_eq!(rig.claim(&request).await.legs[0].stage, Stage::Final);
    assert_eq!(rig.status(&request).await, Status::Success);
    rig.is_clean().await;
}

#[tokio::test]
async fn nothing_is_done_before_the_deposit_is_final() {
    let rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    for standing in [Standing::Included, Standing::Reorged] {
        rig.deposit(&request, |deposit| deposit.standing = standing)
            .await;
        let solver = rig.solver().await;
        let next = solver.advance(&request.id, rig.now).await;
        assert_eq!(next, Ok(Next::Wait));
    }
    assert_eq!(rig.claim(&request).await.legs, []);
    assert_eq!(rig.destination.waiting(), 0);
}

#[tokio::test]
async fn allowances_are_made_once_and_ahead() {
    let mut rig = Rig::new();
    let solver = rig.solver().await;
    let account = &solver.accounts["destination"];
    assert_eq!(solver.approve_ahead(account, rig.now).await, Ok(false));
    // It is on its way: nobody makes another one.
    assert_eq!(solver.approve_ahead(account, rig.now).await, Ok(false));
    assert_eq!(rig.destination.waiting(), 1);
    rig.mine(1);
    assert_eq!(solver.approve_ahead(account, rig.now).await, Ok(true));
    assert_eq!(rig.destination.waiting(), 0);
    for _ in 0..10 {
        rig.mine(1);
        account.sweep(rig.now / 1_000).await.unwrap();
    }
    rig.is_clean().await;
}

/// Dies at every point once, in turn: each commit before and after, each broadcast before and after.
#[tokio::test]
async fn order_is_filled_once_wherever_the_process_dies() {
    for point in 1..60 {
        let mut rig = Rig::new();
        let request = rig.quote(1, |request| routed(request, 1)).await;
        rig.deposit(&request, |_| ()).await;
        let died = rig.settle_dying(&request, point).await;
        let paid = rig.destination.paid(request.order_id);
        let expected = [U256::from(PAID), U256::from(5)];
        assert_eq!(
            paid.iter().map(|paid| paid.1).collect::<Vec<_>>(),
            expected,
            "{point}"
        );
        assert_eq!(rig.origin.paid(request.order_id), []);
        // The approval's own nonce is freed a little later.
        for _ in 0..10 {
            rig.mine(1);
            let solver = rig.solver().await;
            for account in solver.accounts.values() {
                account.sweep(rig.now / 1_000).await.unwrap();
            }
        }
        rig.is_clean().await;
        if !died {
            return;
        }
    }
    panic!("the fuse was never long enough");
}

#[tokio::test]
async fn deposit_is_given_back_once_wherever_the_process_dies() {
    for point in 1..60 {
        let mut rig = Rig::new();
        let request = rig
            .quote(1, |r| r.referrer = Some("debug-force-refund".into()))
            .await;
        rig.deposit(&request, |_| ()).await;
        let died = rig.settle_dying(&request, point).await;
        rig.refunded(request.order_id, 1);
        assert_eq!(rig.destination.paid(request.order_id), []);
        assert_eq!(rig.status(&request).await, Status::Refund);
        rig.is_clean().await;
        if !died {
            return;
        }
    }
    panic!("the fuse was never long enough");
}

#[tokio::test]
async fn what_cannot_be_filled_is_given_back_with_its_reason() {
    type Change = fn(&mut Request);
    type Deposited = fn(&mut Deposit);
    let table: [(FailReason, Change, Deposited); 4] = [
        (
            FailReason::DepositedAmountTooLowToFill,
            |_| (),
            |deposit| deposit.amount = U256::from(99_999_999),
        ),
        (
            FailReason::TtlExpired,
            |request| request.expires_at = Some(chain::GENESIS),
            |_| (),
        ),
        (
            FailReason::OrderExpired,
            |request| {
                // As the quoter makes them: the refund's deadline is days behind the fill's.
                request.order.output.deadline = 1_700_000_159;
                request.order.inputs[0].refunds[0].deadline = 1_700_604_959;
            },
            |_| (),
        ),
        (
            FailReason::ManualAdminRefund,
            |request| request.referrer = Some("debug-force-refund".into()),
            |_| (),
        ),
    ];
    for (reason, change, deposited) in table {
        let mut rig = Rig::new();
        let request = rig.quote(1, change).await;
        rig.deposit(&request, deposited).await;
        rig.settle(&request).await;
        let facts = rig.facts(&request).await;
        let low = reason == FailReason::DepositedAmountTooLowToFill;
        // An order fails with the deposit that pays for it, and with no other.
        assert_eq!(facts.failure, (!low).then_some(reason));
        let verdict = status::of(&request, &facts);
        assert_eq!(verdict.status, Status::Refund, "{reason:?}");
        assert_eq!(verdict.fail_reason, Some(reason));
        let deposit = facts.deposits[0].amount;
        // 26 250 gas at a rate of 110, 0.000006 of a cent: one unit of USDC.
        assert_eq!(rig.refunded(request.order_id, 1), deposit - U256::ONE);
        rig.is_clean().await;
    }
}

/// A row that lists the deposit for the operator.
async fn parked(rig: &Rig, request: &Request, deposit: B256) -> Option<Parked> {
    let key = rows::parked::key(&request.id, &deposit);
    let found = rig.store.read(&key).await.unwrap();
    found.map(|bytes| Parked::decode(&bytes).unwrap())
}

/// The oracle attests neither: whatever were paid for them would be the solver's own.
#[tokio::test]
async fn deposits_that_nobody_attests_are_not_given_back_but_told_and_listed() {
    type Deposited = fn(&mut Deposit);
    let table: [(FailReason, Deposited); 2] = [
        (FailReason::DepositChainMismatch, |deposit| {
            deposit.network = "destination".into();
        }),
        (FailReason::IncorrectDepositCurrency, |deposit| {
            deposit.currency = native().into();
            deposit.amount = U256::from(rig::RICH) / U256::from(100);
        }),
    ];
    for (reason, deposited) in table {
        let mut rig = Rig::new();
        let request = rig
            .quote(1, |request| {
                let mut there = request.order.inputs[0].refunds[0].clone();
                there.chain_id = "destination".into();
                request.order.inputs[0].refunds.push(there);
            })
            .await;
        rig.deposit(&request, deposited).await;
        rig.settle(&request).await;
        for chain in [&rig.origin, &rig.destination] {
            assert_eq!(chain.paid(request.order_id), [], "{reason:?}");
        }
        let verdict = status::of(&request, &rig.facts(&request).await);
        assert_eq!(verdict.status, Status::Failure);
        assert_eq!(verdict.fail_reason, Some(reason));
        let manual = RefundFailReason::ManualRefundRequired;
        assert_eq!(verdict.refund_fail_reason, Some(manual));
        let listed = parked(&rig, &request, B256::ZERO).await.unwrap();
        assert_eq!(
            (listed.reason, listed.why, listed.minor),
            (reason, manual, false)
        );
        rig.is_clean().await;
        // The order can be filled all the same.
        rig.deposit(&request, |deposit| {
            deposit.onchain_id = B256::repeat_byte(7);
        })
        .await;
        rig.settle(&request).await;
        rig.filled(request.order_id, 1);
        assert_eq!(rig.status(&request).await, Status::Success);
    }
}

#[tokio::test]
async fn a_strangers_wei_before_between_and_after_changes_nothing() {
    let mut rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    let unknown = "0x00000000000000000000000000000000000000cc";
    let dust = async |rig: &Rig, number: u8| {
        let change = |deposit: &mut Deposit| {
            deposit.onchain_id = B256::repeat_byte(number);
            deposit.depositor = unknown.into();
            match number % 3 {
                0 => deposit.amount = U256::ONE,
                1 => deposit.currency = unknown.into(),
                _ => deposit.network = "destination".into(),
            }
            if number % 3 == 2 {
                deposit.amount = U256::ONE;
            }
        };
        rig.deposit(&request, change).await;
    };
    for number in 1..=6 {
        dust(&rig, number).await;
    }
    rig.settle(&request).await;
    assert_eq!(rig.status(&request).await, Status::Waiting);
    rig.deposit(&request, |_| ()).await;
    dust(&rig, 7).await;
    rig.begun(&request).await;
    assert_eq!(rig.status(&request).await, Status::Submitted);
    dust(&rig, 8).await;
    rig.settle(&request).await;
    dust(&rig, 9).await;
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
    assert_eq!(rig.status(&request).await, Status::Success);
    let claim = rig.claim(&request).await;
    assert_eq!((claim.legs.len(), claim.parked.len()), (1, 9));
    for number in 1..=9 {
        let listed = parked(&rig, &request, B256::repeat_byte(number)).await;
        assert!(listed.unwrap().minor);
    }
    let rendered = crate::request::render::v3(&request, &rig.facts(&request).await);
    let rendered = serde_json::to_value(rendered).unwrap();
    assert_eq!(rendered["inTxHashes"].as_array().unwrap().len(), 1);
    rig.is_clean().await;
}

/// The operator's list stays free of tokens that nobody knows; their owner hears of them.
#[tokio::test]
async fn a_users_own_unlisted_token_is_told_to_him() {
    for (own, status) in [(true, Status::Failure), (false, Status::Waiting)] {
        let mut rig = Rig::new();
        let request = rig.quote(1, |_| ()).await;
        let unlisted = |deposit: &mut Deposit| {
            deposit.currency = "0x00000000000000000000000000000000000000cc".into();
            deposit.own = own;
        };
        rig.deposit(&request, unlisted).await;
        rig.settle(&request).await;
        assert_eq!(rig.status(&request).await, status, "{own}");
        let listed = parked(&rig, &request, B256::ZERO).await.unwrap();
        assert!(listed.minor);
    }
}

/// Later its depositor can take the deposit back, and the payment would be the solver's own.
#[tokio::test]
async fn a_fill_that_is_stuck_for_days_is_cancelled_and_its_deposit_goes_back() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    rig.begun(&request).await;
    assert_eq!(rig.status(&request).await, Status::Submitted);
    rig.destination.forget();
    rig.now += (604_800 - 21_600 - 86_400) * 1_000;
    rig.settle(&request).await;
    rig.refunded(request.order_id, 1);
}

#[tokio::test]
async fn a_small_deposit_first_goes_back_and_the_whole_one_fills() {
    let mut rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    rig.deposit(&request, |deposit| {
        deposit.onchain_id = B256::repeat_byte(1);
        deposit.amount = U256::from(1_000_000);
    })
    .await;
    // Its chain is slow: the refund is on its way for long.
    let solver = rig.begun(&request).await;
    rig.origin.forget();
    rig.deposit(&request, |_| ()).await;
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(rig.status(&request).await, Status::Submitted);
    rig.settle(&request).await;
    let paid = rig.destination.paid(request.order_id);
    assert_eq!(paid, [(recipient(1), U256::from(PAID))]);
    assert_eq!(rig.refunded(request.order_id, 1), U256::from(999_999));
    assert_eq!(rig.status(&request).await, Status::Success);
    // One row for each: both are settled.
    for deposit in [B256::ZERO, B256::repeat_byte(1)] {
        let key = rows::settlement::key(&request.id, &deposit);
        assert!(rig.store.read(&key).await.unwrap().is_some(), "{deposit}");
    }
    rig.is_clean().await;
}

#[tokio::test]
async fn what_was_deposited_too_much_goes_back_when_the_fill_is_final() {
    let mut rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    rig.deposit(&request, |d| d.amount = U256::from(150_000_000))
        .await;
    let solver = rig.begun(&request).await;
    rig.mine(3);
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(rig.status(&request).await, Status::Success);
    assert_eq!(rig.origin.paid(request.order_id), []);
    rig.settle(&request).await;
    let paid = rig.destination.paid(request.order_id);
    assert_eq!(paid, [(recipient(1), U256::from(PAID))]);
    assert_eq!(rig.refunded(request.order_id, 1), U256::from(49_999_999));
    assert_eq!(rig.status(&request).await, Status::Success);
    // What went back beside it is on the origin.
    let facts = rig.facts(&request).await;
    let fill = &facts.alive(Purpose::Fill).next().unwrap().transaction;
    assert!(facts.alive(Purpose::Excess).next().is_some());
    assert_eq!(told(&request, &facts), std::slice::from_ref(fill));
    rig.is_clean().await;
}

/// `txHashes` of a status.
fn told(request: &Request, facts: &Facts) -> Vec<String> {
    let shown = serde_json::to_value(crate::request::render::v3(request, facts)).unwrap();
    serde_json::from_value(shown["txHashes"].clone()).unwrap()
}

#[tokio::test]
async fn what_strangers_get_back_is_no_transaction_of_the_request() {
    let mut rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    let small = async |rig: &Rig, number: u8, depositor: &str| {
        let change = |deposit: &mut Deposit| {
            deposit.onchain_id = B256::repeat_byte(number);
            deposit.transaction = B256::repeat_byte(10 + number).to_string();
            deposit.amount = U256::from(1_000_000);
            deposit.depositor = depositor.into();
        };
        rig.deposit(&request, change).await;
    };
    small(&rig, 1, &recipient(4)).await;
    rig.settle(&request).await;
    let facts = rig.facts(&request).await;
    assert!(facts.alive(Purpose::Refund).next().is_some());
    assert_eq!(rig.status(&request).await, Status::Waiting);
    assert_eq!(told(&request, &facts), Vec::<String>::new());
    // The user's own refund is told.
    small(&rig, 2, fixtures::USER).await;
    rig.settle(&request).await;
    let facts = rig.facts(&request).await;
    assert_eq!(rig.status(&request).await, Status::Refund);
    let own = facts.alive(Purpose::Refund).nth(1).unwrap();
    assert_eq!(
        told(&request, &facts),
        std::slice::from_ref(&own.transaction)
    );
}

#[tokio::test]
async fn a_refund_waits_for_cheaper_gas_and_is_parked_at_its_deadline_only() {
    let deposited = U256::from(1_000_000);
    for cheap in [true, false] {
        let mut rig = Rig::new();
        // A hundredth of the order, and of its least refund: 999 998 units.
        let least = |request: &mut Request| {
            request.order.inputs[0].refunds[0].minimum_amount = "99999800".into();
        };
        let request = rig.quote(1, least).await;
        rig.deposit(&request, |deposit| deposit.amount = deposited)
            .await;
        // 26 250 gas at a rate of 90 000 are five units.
        rig.origin.with(|world| world.base = 90_000);
        let solver = rig.solver().await;
        let next = solver.advance(&request.id, rig.now).await;
        let until = rig.now / 1_000 + 60;
        assert_eq!(next, Ok(Next::Until(until)));
        assert_eq!(rig.origin.paid(request.order_id), []);
        if cheap {
            rig.origin.with(|world| world.base = 100);
            rig.now = until * 1_000;
            rig.settle(&request).await;
            assert_eq!(rig.status(&request).await, Status::Refund);
            continue;
        }
        let facts = rig.facts(&request).await;
        rig.now = (super::claimable::until(&facts.deposits[0]) - 61) * 1_000;
        let next = solver.advance(&request.id, rig.now).await;
        assert!(matches!(next, Ok(Next::Until(_))), "{next:?}");
        rig.now += 1_000;
        rig.settle(&request).await;
        let listed = parked(&rig, &request, B256::ZERO).await.unwrap();
        assert_eq!(listed.why, RefundFailReason::AmountTooLowToRefund);
        assert_eq!(rig.status(&request).await, Status::Failure);
        rig.is_clean().await;
    }
}

#[tokio::test]
async fn a_refund_that_reverts_is_told_and_tried_again_until_it_does_not() {
    let mut rig = Rig::new();
    let force = |request: &mut Request| {
        request.referrer = Some("debug-force-refund".into());
    };
    let request = rig.quote(1, force).await;
    rig.origin
        .with(|world| world.revert_estimate.insert(request.order_id));
    rig.deposit(&request, |_| ()).await;
    let solver = rig.solver().await;
    for tries in 1..6 {
        let next = solver.advance(&request.id, rig.now).await;
        let Ok(Next::Until(until)) = next else {
            panic!("{next:?}");
        };
        assert_eq!(until - rig.now / 1_000, 60 << (tries - 1));
        // The only provider says so: the record has it, and the worker tries again all the same.
        assert_eq!(rig.status(&request).await, Status::Failure);
        rig.now = until * 1_000;
    }
    rig.origin.with(|world| world.revert_estimate.clear());
    rig.settle(&request).await;
    rig.refunded(request.order_id, 1);
    assert_eq!(rig.status(&request).await, Status::Refund);
}

#[tokio::test]
async fn while_paused_nothing_is_filled_and_refunds_go_on() {
    let mut rig = Rig::new();
    let paused = rows::pause::Paused {
        why: "a drill".into(),
        since: 1,
    };
    let pause = crate::store::Batch::new().put(rows::pause::key(), paused.encode().unwrap());
    rig.store.commit(pause).await.unwrap();
    let (first, second) = (rig.quote(1, |_| ()).await, rig.quote(2, |_| ()).await);
    rig.deposit(&first, |_| ()).await;
    rig.deposit(&second, |d| d.amount = U256::from(50_000_000))
        .await;
    rig.settle(&second).await;
    rig.refunded(second.order_id, 2);
    let solver = rig.solver().await;
    assert_eq!(solver.advance(&first.id, rig.now).await, Ok(Next::Wait));
    assert_eq!(rig.claim(&first).await.legs, []);
    // Resumed in time, it is filled; else it goes back.
    let resume = crate::store::Batch::new().delete(rows::pause::key());
    rig.store.commit(resume).await.unwrap();
    rig.settle(&first).await;
    rig.filled(first.order_id, 1);
}

#[tokio::test]
async fn a_fill_that_is_judged_when_the_solver_is_paused_does_not_begin() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    let solver = rig.solver().await;
    let view = solver
        .view(&request.id, (rig.now, tokio::time::Instant::now()))
        .await
        .unwrap()
        .unwrap();
    handle(&rig).pause("a drill").await.unwrap();
    let deposit = view.facts.deposits[0].onchain_id;
    let amounts = super::fill::quoted(&request).unwrap();
    let begun = solver.fill(&view, deposit, (amounts, None)).await;
    assert!(matches!(
        begun,
        Err(SolverError::Requests(RequestsError::Refused))
    ));
    assert_eq!(solver.advance(&request.id, rig.now).await, Ok(Next::Wait));
    assert_eq!(rig.claim(&request).await.legs, []);
    handle(&rig).resume().await.unwrap();
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
}

#[tokio::test]
async fn fill_that_would_revert_or_does_is_given_back() {
    for in_block in [false, true] {
        let mut rig = Rig::new();
        let request = rig.quote(1, |_| ()).await;
        rig.destination.with(|world| {
            let orders = if in_block {
                &mut world.revert
            } else {
                &mut world.revert_estimate
            };
            orders.insert(request.order_id);
        });
        rig.deposit(&request, |_| ()).await;
        rig.settle(&request).await;
        let facts = rig.facts(&request).await;
        assert_eq!(facts.failure, Some(FailReason::ExecutionReverted));
        assert_eq!(rig.status(&request).await, Status::Refund);
        rig.refunded(request.order_id, 1);
        let tried = facts
            .attempts
            .iter()
            .any(|a| matches!(a.state, State::Reverted { .. }));
        assert_eq!(tried, in_block);
        rig.is_clean().await;
    }
}

#[tokio::test]
async fn reverted_fill_is_not_given_back_while_a_reorg_may_undo_it() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    rig.destination
        .with(|world| world.revert.insert(request.order_id));
    let solver = rig.begun(&request).await;
    rig.mine(3);
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(rig.claim(&request).await.legs[0].stage, Stage::Open);
    rig.destination.with(|world| world.revert.clear());
    rig.destination.reorg(3, true);
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
    assert_eq!(rig.facts(&request).await.failure, None);
}

#[tokio::test]
async fn later_deposit_of_a_filled_order_is_given_back() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    rig.deposit(&request, |deposit| {
        deposit.onchain_id = B256::repeat_byte(7);
    })
    .await;
    rig.settle(&request).await;
    assert_eq!(rig.destination.paid(request.order_id).len(), 1);
    assert_eq!(rig.refunded(request.order_id, 1), U256::from(99_999_999));
    let claim = rig.claim(&request).await;
    assert_eq!(claim.legs[1].reason, Some(FailReason::DoubleSpend));
    assert_eq!(claim.legs[1].deposit, B256::repeat_byte(7));
    assert_eq!(
        (claim.failure, rig.status(&request).await),
        (None, Status::Success)
    );
    rig.is_clean().await;
}

#[tokio::test]
async fn stuck_fill_is_replaced_and_only_one_version_lands() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    let solver = rig.begun(&request).await;
    rig.destination.with(|world| world.base = 400);
    rig.mine(20);
    solver.advance(&request.id, rig.now).await.unwrap();
    let attempts = rig.facts(&request).await.attempts;
    assert_eq!(attempts.len(), 2);
    assert!(
        attempts
            .iter()
            .all(|attempt| attempt.state == State::Broadcast)
    );
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
    let attempts = rig.facts(&request).await.attempts;
    assert_eq!(attempts[0].state, State::Replaced);
    assert!(matches!(attempts[1].state, State::Confirmed(_)));
    rig.is_clean().await;
}

#[tokio::test]
async fn replacements_stop_at_the_operators_limit() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    let solver = rig.begun(&request).await;
    rig.destination.with(|world| world.base = 1_000_000);
    for _ in 0..100 {
        rig.mine(20);
        solver.advance(&request.id, rig.now).await.unwrap();
    }
    let attempts = solver.accounts["destination"].attempts().await.unwrap();
    let versions = vm::ethereum::trade::priced(&attempts[0].1.own).unwrap();
    assert!(versions.len() > 1);
    for pair in versions.windows(2) {
        assert!(pair[1].max_fee * 8 >= pair[0].max_fee * 9);
    }
    assert!(versions.last().unwrap().max_fee <= 100_000);
    rig.destination.with(|world| world.base = 100);
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
}

#[tokio::test]
async fn refused_transaction_is_cancelled_so_that_no_nonce_is_left_open() {
    let mut rig = Rig::new();
    let (first, second) = (rig.quote(1, |_| ()).await, rig.quote(2, |_| ()).await);
    rig.destination.with(|world| world.refuse = true);
    rig.deposit(&first, |_| ()).await;
    rig.settle(&first).await;
    let facts = rig.facts(&first).await;
    assert_eq!(facts.failure, Some(FailReason::TransactionSubmissionFailed));
    assert_eq!(rig.status(&first).await, Status::Refund);
    assert_eq!(rig.destination.paid(first.order_id), []);
    rig.destination.with(|world| world.refuse = false);
    rig.deposit(&second, |_| ()).await;
    rig.settle(&second).await;
    rig.filled(second.order_id, 2);
    rig.is_clean().await;
}

#[tokio::test]
async fn nonce_that_somebody_else_used_ends_the_fill_only_when_that_is_final() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    let solver = rig.begun(&request).await;
    rig.destination.intrude(&rig.solver_text(), 0);
    rig.mine(1);
    solver.advance(&request.id, rig.now).await.unwrap();
    rig.mine(4);
    solver.advance(&request.id, rig.now).await.unwrap();
    let claim = rig.claim(&request).await;
    assert_eq!((claim.legs.len(), claim.legs[0].stage), (1, Stage::Open));
    rig.settle_by(&solver, &request).await;
    let facts = rig.facts(&request).await;
    assert_eq!(facts.failure, Some(FailReason::TransactionNotIncluded));
    assert_eq!(facts.attempts[0].state, State::Replaced);
    assert_eq!(rig.destination.paid(request.order_id), []);
    rig.refunded(request.order_id, 1);
    rig.is_clean().await;
    let other = rig.funded(2).await;
    rig.settle(&other).await;
    rig.filled(other.order_id, 2);
}

#[tokio::test]
async fn reorged_fill_is_the_same_bytes_again() {
    for (depth, keep) in [(1, true), (3, true), (3, false)] {
        let mut rig = Rig::new();
        let request = rig.funded(1).await;
        let solver = rig.begun(&request).await;
        rig.mine(3);
        solver.advance(&request.id, rig.now).await.unwrap();
        assert_eq!(rig.status(&request).await, Status::Success);
        let free = solver
            .available("destination", fixtures::USDC)
            .await
            .unwrap();
        rig.destination.reorg(depth, keep);
        solver.advance(&request.id, rig.now).await.unwrap();
        if depth == 3 {
            assert_eq!(rig.status(&request).await, Status::Submitted);
            // Its money is back, and held back again.
            assert_eq!(
                solver
                    .available("destination", fixtures::USDC)
                    .await
                    .unwrap(),
                free
            );
        }
        rig.settle(&request).await;
        rig.filled(request.order_id, 1);
        assert_eq!(rig.facts(&request).await.attempts.len(), 1);
        let sent = rig.destination.with(|world| world.broadcasts.clone());
        assert!(sent.iter().all(|hash| *hash == sent[0]));
        rig.is_clean().await;
    }
}

impl Rig {
    async fn stand(&self, request: &Request, standing: Standing) {
        let change = |facts: &mut crate::request::fact::Facts| {
            facts.deposits[0].standing = standing;
        };
        let open = crate::store::Batch::new().put(
            rows::open::key(&request.id),
            rows::open::encode(self.now, &request.id),
        );
        let recorded = self.requests.record(&request.id, self.now, open, change);
        recorded.await.unwrap();
    }
}

#[tokio::test]
async fn refund_that_left_its_chain_with_its_deposit_is_cancelled_and_paid_when_that_is_back() {
    let mut rig = Rig::new();
    let refunds = |request: &mut Request| {
        request.referrer = Some("debug-force-refund".into());
    };
    let request = rig.quote(1, refunds).await;
    rig.deposit(&request, |_| ()).await;
    let solver = rig.begun(&request).await;
    rig.mine(3);
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(rig.status(&request).await, Status::Refund);
    let sent = || rig.origin.with(|world| world.broadcasts.len());
    let before = sent();
    rig.origin.reorg(4, false);
    let deposits = rig.origin.with(|world| std::mem::take(&mut world.deposits));
    // The index does not know yet: the solver sees for itself.
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(sent(), before);
    // One provider doubts the deposit: nothing is sent on its word, nor called off.
    rig.stand(&request, Standing::Included).await;
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(sent(), before);
    // A quorum misses it.
    rig.stand(&request, Standing::Reorged).await;
    rig.settle(&request).await;
    assert_eq!(rig.origin.paid(request.order_id), []);
    assert_eq!(rig.claim(&request).await.legs[0].stage, Stage::Failed);
    assert_eq!(rig.status(&request).await, Status::Failure);
    rig.is_clean().await;

    rig.origin.with(|world| world.deposits = deposits);
    rig.stand(&request, Standing::Final).await;
    rig.settle(&request).await;
    rig.refunded(request.order_id, 1);
    assert_eq!(rig.status(&request).await, Status::Refund);
    rig.is_clean().await;
}

#[tokio::test]
async fn fill_in_no_block_without_its_deposit_is_cancelled_and_the_deposit_given_back() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    rig.begun(&request).await;
    assert_eq!(rig.status(&request).await, Status::Submitted);
    rig.destination.forget();
    rig.stand(&request, Standing::Reorged).await;
    rig.settle(&request).await;
    assert_eq!(rig.destination.paid(request.order_id), []);
    let facts = rig.facts(&request).await;
    assert_eq!(facts.failure, Some(FailReason::DepositReorged));
    assert_eq!(rig.status(&request).await, Status::Failure);
    rig.stand(&request, Standing::Final).await;
    rig.settle(&request).await;
    rig.refunded(request.order_id, 1);
    rig.is_clean().await;
}

#[tokio::test]
async fn fill_in_no_block_near_the_deadline_is_cancelled_and_given_back() {
    let mut rig = Rig::new();
    let deadline = u32::try_from(rig.now / 1_000 + 90).unwrap();
    let request = rig
        .quote(1, |request| request.order.output.deadline = deadline)
        .await;
    rig.deposit(&request, |_| ()).await;
    rig.begun(&request).await;
    assert_eq!(rig.status(&request).await, Status::Submitted);
    rig.destination.forget();
    rig.mine(31);
    rig.settle(&request).await;
    assert_eq!(rig.destination.paid(request.order_id), []);
    let facts = rig.facts(&request).await;
    assert_eq!(facts.failure, Some(FailReason::OrderExpired));
    rig.refunded(request.order_id, 1);
}

/// One provider's doubt calls nothing off; it does not keep open what comes too late, either.
#[tokio::test]
async fn payment_in_no_block_near_the_deadline_is_cancelled_while_its_deposit_is_doubted() {
    for forced in [false, true] {
        let mut rig = Rig::new();
        let deadline = u32::try_from(rig.now / 1_000 + 90).unwrap();
        let soon = |request: &mut Request| {
            request.referrer = forced.then(|| "debug-force-refund".into());
            match forced {
                true => request.order.inputs[0].refunds[0].deadline = deadline,
                false => request.order.output.deadline = deadline,
            }
        };
        let request = rig.quote(1, soon).await;
        rig.deposit(&request, |_| ()).await;
        let solver = rig.begun(&request).await;
        let chain = match forced {
            true => rig.origin.clone(),
            false => rig.destination.clone(),
        };
        chain.forget();
        rig.stand(&request, Standing::Included).await;
        let sent = || chain.with(|world| world.broadcasts.len());
        let before = sent();
        solver.advance(&request.id, rig.now).await.unwrap();
        assert_eq!(sent(), before, "{forced}");
        rig.mine(31);
        solver.advance(&request.id, rig.now).await.unwrap();
        assert!(sent() > before, "{forced}");
        for _ in 0..20 {
            rig.mine(1);
            solver.advance(&request.id, rig.now).await.unwrap();
        }
        assert_eq!(rig.claim(&request).await.legs[0].stage, Stage::Failed);
        rig.stand(&request, Standing::Final).await;
        rig.settle(&request).await;
        assert_eq!(rig.destination.paid(request.order_id), []);
        match forced {
            true => assert!(parked(&rig, &request, B256::ZERO).await.is_some()),
            false => assert!(rig.refunded(request.order_id, 1) > U256::ZERO),
        }
        rig.is_clean().await;
    }
}

/// Two hours before its deadline a fill is still wanted where blocks are frequent, and is cancelled where they come every
/// ten minutes.
#[tokio::test]
async fn fill_in_no_block_is_cancelled_as_early_as_blocks_of_its_chain_are_rare() {
    let hours = 14_400;
    for (pace, filled) in [(chain::PACE, true), (600, false)] {
        let mut rig = Rig::new();
        rig.pace = pace;
        let deadline = u32::try_from(rig.now / 1_000 + hours + 1).unwrap();
        let request = rig
            .quote(1, |request| request.order.output.deadline = deadline)
            .await;
        rig.deposit(&request, |_| ()).await;
        rig.begun(&request).await;
        assert_eq!(rig.status(&request).await, Status::Submitted, "{pace}");
        rig.destination.forget();
        rig.now += (hours / 2 + 1) * 1_000;
        rig.settle(&request).await;
        if filled {
            rig.filled(request.order_id, 1);
            continue;
        }
        assert_eq!(rig.destination.paid(request.order_id), []);
        let facts = rig.facts(&request).await;
        assert_eq!(facts.failure, Some(FailReason::OrderExpired));
        rig.refunded(request.order_id, 1);
    }
}

#[tokio::test]
async fn orders_beyond_the_inventory_wait_and_are_given_back_at_last() {
    let mut rig = Rig::new();
    rig.destination
        .give(&rig.solver_text(), fixtures::USDC, 150_000_000);
    let (first, second) = (rig.quote(1, |_| ()).await, rig.quote(2, |_| ()).await);
    rig.deposit(&first, |_| ()).await;
    rig.deposit(&second, |_| ()).await;
    let solver = rig.solver().await;
    let both = (
        solver.advance(&first.id, rig.now),
        solver.advance(&second.id, rig.now),
    );
    let (one, other) = futures::future::join(both.0, both.1).await;
    assert_eq!((one, other), (Ok(Next::Wait), Ok(Next::Wait)));
    assert_eq!(rig.status(&second).await, Status::Pending);
    rig.settle(&first).await;
    rig.now += 300_000;
    rig.settle(&second).await;
    rig.filled(first.order_id, 1);
    let facts = rig.facts(&second).await;
    assert_eq!(facts.failure, Some(FailReason::SolverBalanceTooLow));
    rig.refunded(second.order_id, 2);
    rig.is_clean().await;
}

#[tokio::test]
async fn order_waits_for_gas_that_is_there_again() {
    let mut rig = Rig::new();
    rig.destination.give(&rig.solver_text(), native(), 0);
    let request = rig.funded(1).await;
    rig.begun(&request).await;
    assert_eq!(rig.claim(&request).await.legs, []);
    rig.destination
        .give(&rig.solver_text(), native(), rig::RICH);
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
}

#[tokio::test]
async fn holder_that_was_replaced_changes_nothing_any_more() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    let old = rig.solver().await;
    let new = rig.solver().await;
    let late = old.advance(&request.id, rig.now).await;
    assert!(late.is_err() || late == Ok(Next::Wait), "{late:?}");
    assert_eq!(rig.claim(&request).await.legs, []);
    assert_eq!(rig.destination.waiting(), 0);
    new.advance(&request.id, rig.now).await.unwrap();
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
}

#[tokio::test]
async fn who_asks_at_the_same_time_fills_once() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    let solver = rig.solver().await;
    let all = (0..8).map(|_| solver.advance(&request.id, rig.now));
    for done in futures::future::join_all(all).await {
        let lost = matches!(
            done,
            Err(SolverError::Claim(_) | SolverError::Requests(RequestsError::Refused))
        );
        assert!(done.is_ok() || lost, "{done:?}");
    }
    assert_eq!(rig.claim(&request).await.legs.len(), 1);
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
}

#[tokio::test]
async fn order_of_another_solver_is_left_alone() {
    let rig = Rig::new();
    let request = rig.quote(1, |r| r.order.solver = recipient(1)).await;
    rig.deposit(&request, |_| ()).await;
    let refused = rig.solver().await.advance(&request.id, rig.now).await;
    assert_eq!(refused, Err(SolverError::Elsewhere(recipient(1))));
}

#[tokio::test]
async fn worker_wakes_for_facts_and_ends_when_told() {
    let rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    let worker = Worker {
        solver: Arc::new(rig.solver().await) as Arc<Solver>,
        settler: None,
        pace: Pace {
            poll: std::time::Duration::from_millis(5),
            ..Pace::default()
        },
        clock: || (chain::GENESIS + 100) * 1_000,
    };
    let stop = tokio_util::sync::CancellationToken::new();
    let running = tokio::spawn(worker.run(stop.clone()));
    let mut changes = rig.requests.changes();
    rig.deposit(&request, |_| ()).await;
    while rig.claim(&request).await.legs.is_empty() {
        changes.changed().await.unwrap();
    }
    for _ in 0..3 {
        rig.destination.mine();
    }
    while rig.status(&request).await != Status::Success {
        changes.changed().await.unwrap();
    }
    stop.cancel();
    running.await.unwrap();
    assert_eq!(rig.destination.paid(request.order_id).len(), 1);
    let purposes = rig.facts(&request).await.attempts;
    assert!(
        purposes
            .iter()
            .all(|attempt| attempt.purpose == Purpose::Fill)
    );
}

#[tokio::test]
async fn network_that_does_not_answer_holds_up_its_own_ways_only() {
    let rig = Rig::new();
    rig.destination.with(|world| world.dark = true);
    let stuck = [rig.quote(1, |_| ()).await, rig.quote(2, |_| ()).await];
    let other = rig
        .quote(3, |request| {
            request.destination.network = "origin".into();
            request.order.output.chain_id = "origin".into();
        })
        .await;
    let worker = Worker {
        solver: Arc::new(rig.solver().await),
        settler: None,
        pace: Pace {
            poll: std::time::Duration::from_millis(5),
            at_once: 1,
        },
        clock: || (chain::GENESIS + 100) * 1_000,
    };
    let stop = tokio_util::sync::CancellationToken::new();
    let running = tokio::spawn(worker.run(stop.clone()));
    let mut changes = rig.requests.changes();
    for request in stuck.iter().chain([&other]) {
        rig.deposit(request, |_| ()).await;
    }
    while rig.claim(&other).await.legs.is_empty() {
        changes.changed().await.unwrap();
    }
    for request in &stuck {
        assert!(rig.claim(request).await.legs.is_empty());
    }
    rig.destination.with(|world| world.dark = false);
    for request in &stuck {
        while rig.claim(request).await.legs.is_empty() {
            changes.changed().await.unwrap();
        }
    }
    stop.cancel();
    running.await.unwrap();
}

/// What the quote charged for gas on the destination.
fn charging(request: &mut Request, units: u64) {
    let amount = |units: u64| {
        serde_json::json!({"currency": {"chainId": 31_001, "address": fixtures::USDC, "symbol": "USDC",
            "name": "USDC", "decimals": 6,
            "metadata": {"logoURI": "", "verified": true, "isNative": false}},
            "amount": units.to_string(), "amountFormatted": "", "amountUsd": "0",
            "minimumAmount": units.to_string()})
    };
    let fees = serde_json::json!({"gas": amount(0), "relayerGas": amount(units),
        "relayerService": amount(0), "app": amount(0)});
    request.quoted = serde_json::json!({ "fees": fees }).into();
}

#[tokio::test]
async fn a_failed_fill_is_paid_from_the_refund_up_to_what_was_charged_for_gas() {
    // Some 32 000 gas at a rate of 90 010, data among it, are six units of USDC.
    for (charged, kept) in [(0, 0), (3, 3), (1_000, 6)] {
        let mut rig = Rig::new();
        let request = rig.quote(1, |request| charging(request, charged)).await;
        rig.destination.with(|world| {
            world.base = 90_000;
            world.revert.insert(request.order_id);
        });
        rig.deposit(&request, |_| ()).await;
        rig.settle(&request).await;
        let back = rig.refunded(request.order_id, 1);
        assert_eq!(back, U256::from(99_999_999 - kept), "{charged}");
    }
}

#[tokio::test]
async fn what_a_failed_fills_bytes_cost_is_taken_from_the_refund_too() {
    // Five units more than its gas, rounded up together.
    let bytes = 2_362_762_500_u64;
    let mut rig = Rig::new();
    let change = |request: &mut Request| {
        charging(request, 1_000);
        request.fill_besides = U256::from(bytes);
    };
    let request = rig.quote(1, change).await;
    rig.destination.with(|world| {
        world.base = 90_000;
        world.data_fee = Some(bytes);
        world.revert.insert(request.order_id);
    });
    rig.deposit(&request, |_| ()).await;
    rig.settle(&request).await;
    let back = rig.refunded(request.order_id, 1);
    assert_eq!(back, U256::from(99_999_999 - 11));
}

#[tokio::test]
async fn what_it_cost_to_use_a_refused_fills_nonce_up_is_taken_from_the_refund() {
    let mut rig = Rig::new();
    let request = rig.quote(1, |request| charging(request, 1_000)).await;
    rig.destination.with(|world| {
        world.base = 40_000;
        world.never = true;
    });
    rig.deposit(&request, |_| ()).await;
    rig.settle(&request).await;
    // 26 250 gas at a rate of 40 010 are three units of USDC.
    let back = rig.refunded(request.order_id, 1);
    assert_eq!(back, U256::from(99_999_999 - 3));
}

#[tokio::test]
async fn orders_of_whom_or_what_cost_too_much_are_given_back_untried() {
    let mut rig = Rig::new();
    let first = rig.quote(1, |_| ()).await;
    let own = |request: &mut Request| {
        request.user = recipient(4);
        request.order.output.payments[0].currency = native().into();
    };
    let other = rig.quote(2, own).await;
    // The same user's: what somebody else deposits in that name blames nobody.
    let third = rig
        .quote(3, |request| request.recipient = recipient(3))
        .await;
    let solver = rig.solver().await;
    let by = |depositor: &str, own: bool| {
        let depositor = depositor.to_owned();
        move |deposit: &mut Deposit| (deposit.depositor, deposit.own) = (depositor.clone(), own)
    };
    let cost = |depositor: &str, own| {
        let mut deposit = fixtures::deposit(1, Standing::Final);
        by(depositor, own)(&mut deposit);
        let mut breaker = solver.breaker.lock().unwrap();
        let loss = Loss {
            cost: 1_000,
            handed_over: true,
        };
        breaker.lost(&first, &deposit, loss, rig.now / 1_000);
    };
    let (stranger, user) = (recipient(4), fixtures::USER);
    cost(&stranger, true);
    rig.deposit(&other, by(&stranger, true)).await;
    cost(user, false);
    rig.deposit(&third, by(user, true)).await;
    for request in [&other, &third] {
        solver.advance(&request.id, rig.now).await.unwrap();
    }
    let facts = rig.facts(&other).await;
    assert_eq!(facts.failure, Some(FailReason::SolverCapacityExceeded));
    assert_eq!(rig.destination.waiting(), 1);
    assert_eq!(rig.status(&third).await, Status::Submitted);
    rig.settle(&other).await;
    rig.refunded(other.order_id, 2);
}

fn handle(rig: &Rig) -> super::admin::AdminHandle {
    super::admin::AdminHandle {
        requests: rig.requests.clone(),
        reconciliation: tokio::sync::watch::Sender::new(None).subscribe(),
        clock: || (chain::GENESIS + 100) * 1_000,
    }
}

#[tokio::test]
async fn what_the_index_parked_is_released_without_a_decision_of_the_solvers() {
    let rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    let (deposit, key) = (B256::repeat_byte(7), rows::open::key(&request.id));
    let parked = rows::parked::Parked {
        network: "origin".into(),
        transaction: "0x1".into(),
        depositor: "0x2".into(),
        currency: "0x3".into(),
        amount: U256::from(1),
        reason: FailReason::Unknown,
        why: RefundFailReason::ManualRefundRequired,
        note: "not agreed about for days".into(),
        minor: false,
        since: 0,
    };
    let row = rows::parked::key(&request.id, &deposit);
    let batch = crate::store::Batch::new().put(row, parked.encode().unwrap());
    rig.store.commit(batch).await.unwrap();
    let handle = handle(&rig);
    assert_eq!(handle.parked(false).await.unwrap().len(), 1);
    // What was parked last is listed first, however many were before it.
    let last = rows::parked::Parked {
        since: 1,
        ..parked.clone()
    };
    let row = rows::parked::key(&request.id, &B256::repeat_byte(9));
    let batch = crate::store::Batch::new().put(row.clone(), last.encode().unwrap());
    rig.store.commit(batch).await.unwrap();
    let listed = handle.parked(false).await.unwrap();
    let since: Vec<_> = listed.iter().map(|left| left.parked.since).collect();
    assert_eq!(since, [1, 0]);
    let batch = crate::store::Batch::new().delete(row);
    rig.store.commit(batch).await.unwrap();
    // The operator cannot release a deposit that its order's record does not have.
    let refused = handle.release(deposit).await;
    assert!(matches!(refused, Err(super::admin::AdminError::LeftOut)));
    assert_eq!(handle.parked(false).await.unwrap().len(), 1);
    let known = |one: &mut Deposit| {
        (one.onchain_id, one.standing) = (deposit, Standing::Included);
    };
    rig.deposit(&request, known).await;
    let closed = crate::store::Batch::new().delete(key.clone());
    rig.store.commit(closed).await.unwrap();
    handle.release(deposit).await.unwrap();
    assert_eq!(handle.parked(true).await.unwrap(), []);
    assert!(rig.store.read(&key).await.unwrap().is_some());
}

/// Nothing that the look read as facts changes: the order is filled, whatever becomes of the excess.
#[tokio::test]
async fn what_is_released_during_the_last_look_is_looked_at_again() {
    let mut rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    rig.deposit(&request, |d| d.amount = U256::from(150_000_000))
        .await;
    rig.begun(&request).await;
    rig.mine(3);
    // It is too late to give the excess back.
    let facts = rig.facts(&request).await;
    rig.now = super::claimable::until(&facts.deposits[0]) * 1_000;
    rig.settle(&request).await;
    let listed = parked(&rig, &request, B256::ZERO).await.unwrap();
    assert!(listed.note.contains("exceeds its order"), "{}", listed.note);
    rig.is_clean().await;

    let key = rows::open::key(&request.id);
    let work = rows::open::encode(1, &request.id);
    let batch = crate::store::Batch::new().put(key.clone(), work);
    rig.store.commit(batch).await.unwrap();
    let (solver, now) = (rig.solver().await, (rig.now, tokio::time::Instant::now()));
    let look = solver.view(&request.id, now).await.unwrap().unwrap();
    let facts = rig.facts(&request).await;
    handle(&rig).release(B256::ZERO).await.unwrap();
    assert_eq!(rig.facts(&request).await, facts);
    let refused = SolverError::Requests(RequestsError::Refused);
    assert_eq!(solver.close(&look).await, Err(refused));
    assert!(rig.store.read(&key).await.unwrap().is_some());
    // The next look decides anew, which changes nothing.
    assert_eq!(parked(&rig, &request, B256::ZERO).await, None);
    rig.settle(&request).await;
    assert!(parked(&rig, &request, B256::ZERO).await.is_some());
    rig.is_clean().await;
}

/// Facts and claim are as the look read them; only the row tells that there is work again.
#[tokio::test]
async fn work_that_comes_during_the_last_look_stays_open() {
    let rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    let (solver, key) = (rig.solver().await, rows::open::key(&request.id));
    let open = async |at: u64| {
        let row = rows::open::encode(at, &request.id);
        let batch = crate::store::Batch::new().put(key.clone(), row);
        rig.store.commit(batch).await.unwrap();
    };
    let look = async || {
        let now = (rig.now, tokio::time::Instant::now());
        solver.view(&request.id, now).await.unwrap().unwrap()
    };
    let refused = SolverError::Requests(RequestsError::Refused);
    let early = look().await;
    open(1).await;
    assert_eq!(solver.close(&early).await, Err(refused.clone()));
    let late = look().await;
    open(2).await;
    assert_eq!(solver.close(&late).await, Err(refused));
    assert!(rig.store.read(&key).await.unwrap().is_some());
    // Nothing comes.
    let last = look().await;
    assert_eq!(solver.close(&last).await, Ok(()));
    assert_eq!(rig.store.read(&key).await.unwrap(), None);
}

#[tokio::test]
async fn operator_sees_parked_deposits_releases_and_dismisses_them() {
    let mut rig = Rig::new();
    let force = |request: &mut Request| {
        request.referrer = Some("debug-force-refund".into());
        request.order.inputs[0].refunds[0].currency = native().into();
    };
    let request = rig.quote(1, force).await;
    rig.deposit(&request, |_| ()).await;
    rig.settle(&request).await;
    assert_eq!(rig.status(&request).await, Status::Failure);
    let handle = handle(&rig);
    let listed = handle.parked(false).await.unwrap();
    assert_eq!((listed.len(), listed[0].deposit), (1, B256::ZERO));
    assert_eq!(listed[0].request, request.id);
    // Decided anew: it is parked again, since nothing has changed.
    handle.release(B256::ZERO).await.unwrap();
    assert_eq!(rig.status(&request).await, Status::Pending);
    assert_eq!(handle.parked(true).await.unwrap(), []);
    rig.settle(&request).await;
    assert_eq!(rig.status(&request).await, Status::Failure);
    handle.dismiss(B256::ZERO).await.unwrap();
    assert_eq!(handle.parked(true).await.unwrap(), []);
    assert_eq!(rig.status(&request).await, Status::Failure);
    assert!(handle.dismiss(B256::ZERO).await.is_err());
    assert!(handle.release(B256::ZERO).await.is_err());
    rig.is_clean().await;
}

#[tokio::test]
async fn releasing_anothers_deposit_says_nothing_of_the_orders_own() {
    let mut rig = Rig::new();
    let request = rig
        .quote(1, |request| {
            request.referrer = Some("debug-force-refund".into());
            request.order.inputs[0].refunds[0].currency = native().into();
        })
        .await;
    let stranger = B256::repeat_byte(7);
    rig.deposit(&request, |_| ()).await;
    rig.deposit(&request, |deposit| {
        deposit.onchain_id = stranger;
        deposit.transaction = B256::repeat_byte(8).to_string();
        deposit.currency = native().into();
    })
    .await;
    rig.settle(&request).await;
    let refused = rig.facts(&request).await.refund_failure;
    assert!(refused.is_some());
    handle(&rig).release(stranger).await.unwrap();
    assert_eq!(rig.facts(&request).await.refund_failure, refused);
    assert_eq!(rig.status(&request).await, Status::Failure);
    handle(&rig).release(B256::ZERO).await.unwrap();
    assert_eq!(rig.facts(&request).await.refund_failure, None);
}

#[tokio::test]
async fn unsettled_payments_are_listed_tried_at_once_and_written_off() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    rig.settle(&request).await;
    let handle = handle(&rig);
    let listed = handle.unsettled().await.unwrap();
    assert_eq!((listed.len(), listed[0].purpose.as_str()), (1, "fill"));
    let key = rows::settlement::key(&request.id, &B256::ZERO);
    let read = async || {
        let found = rig.store.read(&key).await.unwrap();
        rows::settlement::Settlement::decode(&found.unwrap()).unwrap()
    };
    let mut row = read().await;
    row.not_before = u64::MAX;
    row.outcome = rows::settlement::Part::Sent {
        lane: "origin".into(),
        attempt: 1_u64.to_be_bytes().to_vec().into(),
        execution: serde_json::Value::Null,
    };
    let put = crate::store::Batch::new().put(key.clone(), row.encode().unwrap());
    rig.store.commit(put).await.unwrap();
    handle.retry(B256::ZERO).await.unwrap();
    assert_eq!(read().await.not_before, 0);
    // Its transaction may land: it is not let go.
    assert!(handle.write_off(B256::ZERO).await.is_err());
    row.outcome = rows::settlement::Part::Pending;
    let put = crate::store::Batch::new().put(key.clone(), row.encode().unwrap());
    rig.store.commit(put).await.unwrap();
    handle.write_off(B256::ZERO).await.unwrap();
    assert_eq!(handle.unsettled().await.unwrap(), []);
}

#[tokio::test]
async fn books_tell_what_is_owed_and_a_gap_above_the_limit_pauses_fills() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    rig.settle(&request).await;
    let mut solver = rig.solver().await;
    solver.gap_limit = 99;
    let reconciliation = solver.reconcile(rig.now).await.unwrap();
    assert_eq!(
        (
            reconciliation.unsettled,
            reconciliation.paid,
            reconciliation.owed
        ),
        (1, 99_900, 100_000)
    );
    assert_eq!(
        (
            reconciliation.gap,
            reconciliation.overdue,
            reconciliation.refused
        ),
        (0, 0, 0)
    );
    assert_eq!(solver.paused().await, Ok(None));
    // An hour later it is overdue: 100 dollars are missing, 99 may be.
    let late = rig.now + 3_600_000;
    let reconciliation = solver.reconcile(late).await.unwrap();
    assert_eq!((reconciliation.gap, reconciliation.overdue), (100_000, 1));
    assert!(solver.paused().await.unwrap().is_some());
    let handle = handle(&rig);
    assert!(handle.standing().await.unwrap().paused.is_some());
    assert!(handle.resume().await.unwrap() && !handle.resume().await.unwrap());
    solver.gap_limit = 100;
    solver.reconcile(late).await.unwrap();
    assert_eq!(solver.paused().await, Ok(None));
    handle.pause("a drill").await.unwrap();
    assert_eq!(solver.paused().await.unwrap().unwrap().why, "a drill");
}

#[tokio::test]
async fn a_row_that_cannot_be_read_ends_no_reconciliation_and_a_lost_price_hides_no_gap() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let shows = |gauge: &str| {
        let text = recorder.handle().render();
        let gauge = format!("intentd_solver_{gauge}");
        assert!(
            text.lines().any(|line| line == gauge),
            "{gauge} is not in {text}"
        );
    };
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    rig.settle(&request).await;
    let mut solver = rig.solver().await;
    solver.gap_limit = 99;
    let broken = rows::settlement::key(&B256::ZERO, &B256::ZERO);
    let put = crate::store::Batch::new().put(broken, vec![0xff]);
    rig.store.commit(put).await.unwrap();
    let reconciliation = solver.reconcile(rig.now).await.unwrap();
    assert_eq!(
        (reconciliation.unsettled, reconciliation.unreadable),
        (1, 1)
    );
    solver.prices = std::sync::Arc::new(rig::Away);
    let late = rig.now + 3_600_000;
    let reconciliation = solver.reconcile(late).await.unwrap();
    assert_eq!(
        (
            reconciliation.gap,
            reconciliation.overdue,
            reconciliation.unpriced
        ),
        (100_000, 1, 0)
    );
    assert!(solver.paused().await.unwrap().is_some());
    for gauge in [
        "unsettled 1",
        "unsettled_overdue 1",
        "unreadable 1",
        "unpriced 0",
        "gap_usd 100",
        "paid_usd 99",
        "owed_usd 100",
        "parked{worth=\"real\"} 0",
        "parked{worth=\"minor\"} 0",
    ] {
        shows(gauge);
    }
    // Who has never known a price says so.
    let mut solver = rig.solver().await;
    solver.prices = std::sync::Arc::new(rig::Away);
    let reconciliation = solver.reconcile(late).await.unwrap();
    assert_eq!((reconciliation.gap, reconciliation.unpriced), (0, 1));
    shows("unpriced 1");
}

#[tokio::test]
async fn the_worker_reconciles_every_minute() {
    let rig = Rig::new();
    let solver = std::sync::Arc::new(rig.solver().await);
    let mut reconciliation = solver.reconciliation.subscribe();
    let worker = Worker {
        solver,
        settler: None,
        pace: Pace::default(),
        clock: || 1_700_000_000_000,
    };
    tokio::time::pause();
    let stop = tokio_util::sync::CancellationToken::new();
    let working = tokio::spawn(worker.run(stop.clone()));
    for _ in 0..2 {
        let reconciled =
            tokio::time::timeout(std::time::Duration::from_secs(61), reconciliation.changed());
        reconciled.await.unwrap().unwrap();
    }
    stop.cancel();
    working.await.unwrap();
}
