//! Recipients whose accounts the payer pays for where they are not there.

use alloy::primitives::U256;

use super::rig::Rig;
use crate::{
    request::{Request, reason::FailReason, status::Status},
    solver::{SolverError, judge::Next, repricing::Repriced},
};

/// Two dollars.
const RENT: u64 = 1_000_000_000_000_000;

/// An order whose deposit comes a second too late.
async fn late(rig: &Rig) -> Request {
    let until = rig.now / 1_000 - 1;
    let request = rig.quote(1, |request| request.valid_until = until).await;
    rig.deposit(&request, |_| ()).await;
    request
}

#[tokio::test]
async fn a_fill_waits_for_an_account_that_was_closed_since_the_quote() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    let solver = rig.solver().await;
    // It is closed after the fill is judged, or before.
    for rents in [[0, RENT], [RENT, RENT], [0, RENT]] {
        rig.destination.with(|world| world.rents = rents);
        let next = solver.advance(&request.id, rig.now).await;
        assert_eq!(next, Ok(Next::Wait), "{rents:?}");
        let account = &solver.accounts["destination"];
        assert_eq!(account.attempts().await.unwrap(), []);
        assert_eq!(rig.destination.waiting(), 0);
    }
    drop(solver);
    rig.destination.with(|world| world.rents = [0; 2]);
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
    assert_eq!(rig.facts(&request).await.failure, None);
    assert_eq!(rig.status(&request).await, Status::Success);
    rig.is_clean().await;
}

#[tokio::test]
async fn an_account_whose_rent_is_charged_is_paid_for() {
    for rents in [[RENT, RENT], [RENT, 0], [0, RENT]] {
        let mut rig = Rig::new();
        let charging = |request: &mut Request| request.fill_besides = U256::from(RENT);
        let request = rig.quote(1, charging).await;
        rig.deposit(&request, |_| ()).await;
        rig.destination.with(|world| world.rents = rents);
        rig.begun(&request).await;
        assert_eq!(rig.destination.waiting(), 1, "{rents:?}");
        rig.settle(&request).await;
        rig.filled(request.order_id, 1);
    }
}

#[tokio::test]
async fn who_closes_his_account_before_each_signature_gets_his_deposit_back() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    rig.destination.with(|world| world.rents = [0, RENT]);
    rig.begun(&request).await;
    assert_eq!(rig.facts(&request).await.failure, None);
    // By now it is priced anew, without rent.
    rig.now += 301_000;
    rig.settle(&request).await;
    let failure = rig.facts(&request).await.failure;
    assert_eq!(failure, Some(FailReason::QuotedGasLimitExceeded));
    assert_eq!(rig.destination.paid(request.order_id), []);
    assert!(rig.refunded(request.order_id, 1) > U256::ZERO);
}

#[tokio::test]
async fn a_late_fill_makes_no_account_that_it_was_not_priced_with() {
    for (rents, sent) in [([RENT, RENT], 1), ([RENT, 0], 1), ([0, RENT], 0)] {
        let mut rig = Rig::new();
        let request = late(&rig).await;
        rig.destination.with(|world| world.rents = rents);
        rig.begun(&request).await;
        assert_eq!(rig.destination.waiting(), sent, "{rents:?}");
        let burden = rig.burden.lock().unwrap().unwrap();
        assert_eq!(burden.besides, U256::from(rents[0]));
        rig.destination.with(|world| world.rents = [RENT; 2]);
        rig.settle(&request).await;
        rig.filled(request.order_id, 1);
    }
}

#[tokio::test]
async fn a_refund_to_an_account_that_was_closed_since_its_bill_is_billed_anew() {
    for (rent, least) in [(RENT, 97_000_000), (0, 99_000_000_u64)] {
        let mut rig = Rig::new();
        rig.worth = Ok(Repriced::Nothing);
        let request = late(&rig).await;
        let solver = rig.solver().await;
        rig.origin.with(|world| world.rents = [0, RENT]);
        let (network, asked) = ("origin".to_owned(), U256::from(RENT));
        let dearer = SolverError::Dearer(network, asked, U256::ZERO);
        let next = solver.advance(&request.id, rig.now).await;
        assert_eq!(next, Err(dearer));
        assert_eq!(rig.origin.waiting(), 0);
        drop(solver);
        // It stays closed, or is there again.
        rig.origin.with(|world| world.rents = [rent; 2]);
        rig.settle(&request).await;
        let back = rig.refunded(request.order_id, 1);
        let expected = U256::from(least)..U256::from(least + 1_000_000);
        assert!(expected.contains(&back), "{back}");
        assert_eq!(rig.status(&request).await, Status::Refund);
        rig.is_clean().await;
    }
}
