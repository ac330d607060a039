//! Orders of networks that a start has not opened.

use super::rig::Rig;
use crate::{
    request::{Request, reason::FailReason},
    solver::{Solver, SolverError},
    store::rows,
};

/// The process starts, and does not open a network.
async fn without(rig: &Rig, network: &str) -> Solver {
    let mut solver = rig.solver().await;
    solver.accounts.remove(network);
    solver.families.insert(network.to_owned(), vm::SETTLEMENT);
    solver
}

/// Looks at an order once. That its network is not there is no surprise.
async fn look(rig: &Rig, solver: &Solver, request: &Request) {
    let next = solver.advance(&request.id, rig.now).await;
    let expected = matches!(next, Ok(_) | Err(SolverError::Elsewhere(_)));
    assert!(expected, "{next:?}");
}

#[tokio::test]
async fn an_order_waits_for_a_start_that_opens_its_networks() {
    for network in ["origin", "destination"] {
        let mut rig = Rig::new();
        let request = rig.funded(1).await;
        let solver = without(&rig, network).await;
        for _ in 0..5 {
            look(&rig, &solver, &request).await;
            rig.now += 600_000;
        }
        assert_eq!(rig.facts(&request).await.failure, None, "{network}");
        let claim = rig.claim(&request).await;
        assert_eq!((claim.legs, claim.parked), (vec![], vec![]), "{network}");
        let open = rig.store.read(&rows::open::key(&request.id)).await;
        assert!(open.unwrap().is_some(), "{network}");
        rig.settle(&request).await;
        rig.filled(request.order_id, 1);
        rig.is_clean().await;
    }
}

#[tokio::test]
async fn what_a_network_that_is_never_opened_again_owes_goes_back_after_a_day() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    let solver = without(&rig, "destination").await;
    look(&rig, &solver, &request).await;
    rig.now += 86_399_000;
    look(&rig, &solver, &request).await;
    assert_eq!(rig.facts(&request).await.failure, None);
    rig.now += 1_000;
    for _ in 0..20 {
        look(&rig, &solver, &request).await;
        rig.mine(1);
    }
    let facts = rig.facts(&request).await;
    assert_eq!(facts.failure, Some(FailReason::NoQuotes));
    rig.refunded(request.order_id, 1);
    assert_eq!(rig.destination.paid(request.order_id), []);
}
