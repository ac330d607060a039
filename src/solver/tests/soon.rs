//! Deposits that are acted on in their first block, and may still be gone later.

use alloy::primitives::U256;

use super::{
    chain::FINAL,
    rig::{Rig, refundee},
};
use crate::{
    market::Units,
    request::{Request, fixtures},
    solver::Solver,
};

/// A solver where small deposits are acted on in their first block.
async fn solver(rig: &Rig, most: u64) -> Solver {
    let mut solver = rig.solver().await;
    let account = solver.accounts.get_mut("origin").unwrap();
    let account = std::sync::Arc::get_mut(account).unwrap();
    let mut chain = (*account.chain).clone();
    for currency in &mut chain.market.as_mut().unwrap().currencies {
        if currency.address == fixtures::USDC {
            currency.one_block_up_to = Some(Units(U256::from(most)));
        }
    }
    account.chain = std::sync::Arc::new(chain);
    solver
}

/// An order that fails at once, with a deposit in the newest block.
async fn failing(rig: &Rig, solver: &Solver, amount: u64) -> Request {
    let force = |request: &mut Request| {
        request.referrer = Some("debug-force-refund".into());
    };
    let request = rig.quote(1, force).await;
    let chain = &solver.accounts["origin"].chain.loaded;
    let head = chain.reader.head().await.unwrap().block.number;
    let deposited = |deposit: &mut crate::request::fact::Deposit| {
        deposit.place.number = head;
        deposit.amount = U256::from(amount);
    };
    rig.deposit(&request, deposited).await;
    let old = |block: &mut vm::Block| block.time = 0;
    rig.origin
        .with(|world| world.deposits.values_mut().for_each(old));
    request
}

/// It would be given back out of money that nobody can take away, while whoever made it takes it back himself.
#[tokio::test]
async fn nothing_is_given_back_before_its_deposit_is_final_for_the_chain() {
    let mut rig = Rig::new();
    let solver = solver(&rig, 100_000_000).await;
    let request = failing(&rig, &solver, 100_000_000).await;
    for _ in 0..FINAL {
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.mine(1);
        assert_eq!(rig.origin.paid(request.order_id), []);
    }
    for _ in 0..2 {
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.mine(1);
    }
    let paid = rig.origin.paid(request.order_id);
    assert_eq!(paid[0].0, refundee(1));
}

/// A larger one was final before anybody acted on it; one that is gone is never given back.
#[tokio::test]
async fn what_is_final_anyway_is_given_back_at_once_and_what_is_gone_never() {
    let mut rig = Rig::new();
    let larger = solver(&rig, 99_999_999).await;
    let request = failing(&rig, &larger, 100_000_000).await;
    larger.advance(&request.id, rig.now).await.unwrap();
    rig.mine(1);
    assert_eq!(rig.origin.paid(request.order_id).len(), 1);

    let mut rig = Rig::new();
    let solver = solver(&rig, 100_000_000).await;
    let request = failing(&rig, &solver, 100_000_000).await;
    rig.origin.with(|world| world.deposits.clear());
    for _ in 0..2 * FINAL {
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.mine(1);
    }
    assert_eq!(rig.origin.paid(request.order_id), []);
}
