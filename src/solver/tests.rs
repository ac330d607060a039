//! The solver over chains in memory: dying, reorgs, replacements, and what they do to balances.

mod chain;
mod fuse;
mod random;
pub mod rig;

use std::sync::Arc;

use alloy::primitives::{B256, U256};

use self::rig::{Rig, native, recipient, refundee, routed};
use super::{
    Solver, SolverError,
    judge::Next,
    worker::{Pace, Worker},
};
use crate::{
    request::{
        fact::{Purpose, Standing, State},
        reason::{FailReason, RefundFailReason},
        scene,
        status::Status,
    },
    store::{
        requests::RequestsError,
        rows::{self, claim::Stage},
    },
};

const PAID: u64 = 99_900_000;

impl Rig {
    /// Nothing is held back and no nonce is open once everything is done.
    async fn is_clean(&self) {
        for kind in [rows::RESERVATION, rows::OPEN] {
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
        for lane in solver.lanes.values() {
            assert_eq!(lane.slots().await.unwrap(), []);
        }
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

#[tokio::test]
async fn order_is_filled_once_and_told_when_it_is_deep_enough() {
    let mut rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    rig.deposit(&request, |_| ()).await;
    let solver = rig.solver().await;
    assert_eq!(solver.advance(&request.id, rig.now).await, Ok(Next::Wait));
    assert_eq!(rig.status(&request).await, Status::Submitted);
    let reserved = solver.available("destination", scene::USDC).await.unwrap();
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
    let lane = &solver.lanes["destination"];
    assert_eq!(solver.allow_ahead(lane, rig.now).await, Ok(false));
    // It is on its way: nobody makes another one.
    assert_eq!(solver.allow_ahead(lane, rig.now).await, Ok(false));
    assert_eq!(rig.destination.waiting(), 1);
    rig.mine(1);
    assert_eq!(solver.allow_ahead(lane, rig.now).await, Ok(true));
    assert_eq!(rig.destination.waiting(), 0);
    for _ in 0..10 {
        rig.mine(1);
        lane.sweep(rig.now / 1_000).await.unwrap();
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
        let fuse = rig.fuse.clone();
        fuse.set(point);
        let died = !fuse.survive(rig.settle(&request)).await;
        fuse.off();
        if died {
            rig.settle(&request).await;
        }
        let paid = rig.destination.paid(request.order_id);
        let expected = [U256::from(PAID), U256::from(5)];
        assert_eq!(
            paid.iter().map(|paid| paid.1).collect::<Vec<_>>(),
            expected,
            "{point}"
        );
        assert_eq!(rig.origin.paid(request.order_id), []);
        // The allowance's own nonce is let go a little later.
        for _ in 0..10 {
            rig.mine(1);
            let solver = rig.solver().await;
            for lane in solver.lanes.values() {
                lane.sweep(rig.now / 1_000).await.unwrap();
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
        let fuse = rig.fuse.clone();
        fuse.set(point);
        let died = !fuse.survive(rig.settle(&request)).await;
        fuse.off();
        if died {
            rig.settle(&request).await;
        }
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
    type Change = fn(&mut crate::request::Request);
    type Deposited = fn(&mut crate::request::fact::Deposit);
    let table: [(FailReason, Change, Deposited); 5] = [
        (
            FailReason::DepositedAmountTooLowToFill,
            |_| (),
            |deposit| deposit.amount = U256::from(99_999_999),
        ),
        (
            FailReason::IncorrectDepositCurrency,
            |_| (),
            |deposit| deposit.currency = native().into(),
        ),
        (
            FailReason::TtlExpired,
            |request| request.expires_at = Some(chain::GENESIS),
            |_| (),
        ),
        (
            FailReason::OrderExpired,
            |request| request.order.output.deadline = 1_700_000_159,
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
        assert_eq!(facts.failure, Some(reason));
        assert_eq!(rig.status(&request).await, Status::Refund, "{reason:?}");
        let deposit = facts.deposits[0].amount;
        // 26 250 gas at 110 wei, 0.000006 of a cent: one unit of USDC.
        let cost = if reason == FailReason::IncorrectDepositCurrency {
            U256::from(26_250 * 110)
        } else {
            U256::ONE
        };
        assert_eq!(rig.refunded(request.order_id, 1), deposit - cost);
        rig.is_clean().await;
    }
}

#[tokio::test]
async fn deposit_on_another_chain_goes_back_there() {
    let mut rig = Rig::new();
    let request = rig
        .quote(1, |request| {
            let mut here = request.order.inputs[0].refunds[0].clone();
            here.chain_id = "destination".into();
            request.order.inputs[0].refunds.push(here);
        })
        .await;
    rig.deposit(&request, |d| d.network = "destination".into())
        .await;
    rig.settle(&request).await;
    let facts = rig.facts(&request).await;
    assert_eq!(facts.failure, Some(FailReason::DepositChainMismatch));
    let paid = rig.destination.paid(request.order_id);
    assert_eq!(paid, [(refundee(1), U256::from(99_999_999))]);
}

#[tokio::test]
async fn deposit_that_gas_eats_up_is_kept_and_the_order_fails() {
    let mut rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    rig.deposit(&request, |deposit| deposit.amount = U256::ONE)
        .await;
    rig.settle(&request).await;
    let facts = rig.facts(&request).await;
    assert_eq!(facts.failure, Some(FailReason::DepositedAmountTooLowToFill));
    assert_eq!(
        facts.refund_failure,
        Some(RefundFailReason::AmountTooLowToRefund)
    );
    assert_eq!(rig.status(&request).await, Status::Failure);
    assert_eq!(rig.origin.paid(request.order_id), []);
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
    let request = rig.quote(1, |_| ()).await;
    rig.deposit(&request, |_| ()).await;
    rig.destination
        .with(|world| world.revert.insert(request.order_id));
    let solver = rig.solver().await;
    solver.advance(&request.id, rig.now).await.unwrap();
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
    let request = rig.quote(1, |_| ()).await;
    rig.deposit(&request, |_| ()).await;
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
    let request = rig.quote(1, |_| ()).await;
    rig.deposit(&request, |_| ()).await;
    let solver = rig.solver().await;
    solver.advance(&request.id, rig.now).await.unwrap();
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
    let request = rig.quote(1, |_| ()).await;
    rig.deposit(&request, |_| ()).await;
    let solver = rig.solver().await;
    solver.advance(&request.id, rig.now).await.unwrap();
    rig.destination.with(|world| world.base = 1_000_000);
    for _ in 0..100 {
        rig.mine(20);
        solver.advance(&request.id, rig.now).await.unwrap();
    }
    let slots = solver.lanes["destination"].slots().await.unwrap();
    let versions = &slots[0].1.versions;
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
    let request = rig.quote(1, |_| ()).await;
    rig.deposit(&request, |_| ()).await;
    let solver = rig.solver().await;
    solver.advance(&request.id, rig.now).await.unwrap();
    rig.destination.intrude(&rig.solver_text(), 0);
    rig.mine(8);
    solver.advance(&request.id, rig.now).await.unwrap();
    rig.mine(15);
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(rig.claim(&request).await.legs.len(), 1);
    rig.settle(&request).await;
    let facts = rig.facts(&request).await;
    assert_eq!(facts.failure, Some(FailReason::TransactionNotIncluded));
    assert_eq!(facts.attempts[0].state, State::Replaced);
    assert_eq!(rig.destination.paid(request.order_id), []);
    rig.refunded(request.order_id, 1);
    rig.is_clean().await;
    let other = rig.quote(2, |_| ()).await;
    rig.deposit(&other, |_| ()).await;
    rig.settle(&other).await;
    rig.filled(other.order_id, 2);
}

#[tokio::test]
async fn reorged_fill_is_the_same_bytes_again() {
    for (depth, keep) in [(1, true), (3, true), (3, false)] {
        let mut rig = Rig::new();
        let request = rig.quote(1, |_| ()).await;
        rig.deposit(&request, |_| ()).await;
        let solver = rig.solver().await;
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.mine(3);
        solver.advance(&request.id, rig.now).await.unwrap();
        assert_eq!(rig.status(&request).await, Status::Success);
        let free = solver.available("destination", scene::USDC).await.unwrap();
        rig.destination.reorg(depth, keep);
        solver.advance(&request.id, rig.now).await.unwrap();
        if depth == 3 {
            assert_eq!(rig.status(&request).await, Status::Submitted);
            // Its money is back, and held back again.
            assert_eq!(
                solver.available("destination", scene::USDC).await.unwrap(),
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
    async fn stand(&self, request: &crate::request::Request, standing: Standing) {
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
    let refunds = |request: &mut crate::request::Request| {
        request.referrer = Some("debug-force-refund".into());
    };
    let request = rig.quote(1, refunds).await;
    rig.deposit(&request, |_| ()).await;
    let solver = rig.solver().await;
    solver.advance(&request.id, rig.now).await.unwrap();
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
    let request = rig.quote(1, |_| ()).await;
    rig.deposit(&request, |_| ()).await;
    let solver = rig.solver().await;
    solver.advance(&request.id, rig.now).await.unwrap();
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
    let solver = rig.solver().await;
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(rig.status(&request).await, Status::Submitted);
    rig.destination.forget();
    rig.mine(31);
    rig.settle(&request).await;
    assert_eq!(rig.destination.paid(request.order_id), []);
    let facts = rig.facts(&request).await;
    assert_eq!(facts.failure, Some(FailReason::OrderExpired));
    rig.refunded(request.order_id, 1);
}

#[tokio::test]
async fn orders_beyond_the_inventory_wait_and_are_given_back_at_last() {
    let mut rig = Rig::new();
    rig.destination
        .give(&rig.solver_text(), scene::USDC, 150_000_000);
    let (first, second) = (rig.quote(1, |_| ()).await, rig.quote(2, |_| ()).await);
    rig.deposit(&first, |_| ()).await;
    rig.deposit(&second, |_| ()).await;
    let solver = rig.solver().await;
    let both = (
        solver.advance(&first.id, rig.now),
        solver.advance(&second.id, rig.now),
    );
    let (one, other) = futures::future::join(both.0, both.1).await;
    assert_eq!(
        (one, other),
        (
            Ok(Next::Wait),
            Ok(Next::Fill {
                deposit: B256::ZERO
            })
        )
    );
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
    let request = rig.quote(1, |_| ()).await;
    rig.deposit(&request, |_| ()).await;
    let solver = rig.solver().await;
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(rig.claim(&request).await.legs, []);
    rig.destination
        .give(&rig.solver_text(), native(), rig::RICH);
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
}

#[tokio::test]
async fn holder_that_was_replaced_changes_nothing_any_more() {
    let mut rig = Rig::new();
    let request = rig.quote(1, |_| ()).await;
    rig.deposit(&request, |_| ()).await;
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
    let request = rig.quote(1, |_| ()).await;
    rig.deposit(&request, |_| ()).await;
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
