//! Orders that name a fill router of before, and oracles that believe listed ones only.

use alloy::primitives::U256;

use super::rig::{ROUTER, Rig, native, routed, through};
use crate::request::{Request, reason::FailReason};

const FORMER: &str = "0x00000000000000000000000000000000000000fe";

/// What is paid in two native payments, which needs no proxy.
fn native_only(request: &mut Request) {
    routed(request, 1);
    let payment = &mut request.order.output.payments[0];
    payment.currency = native().into();
}

/// What was paid for a deposited order, and why it failed if it did.
async fn ended(
    routers: Option<&[&str]>,
    change: impl FnOnce(&mut Request),
) -> (usize, Option<FailReason>) {
    let mut rig = Rig::new();
    let listed = |routers: &[&str]| routers.iter().map(|it| (*it).to_owned()).collect();
    let listed = routers.map(listed);
    rig.destination.with(|world| world.routers = listed);
    let request = rig.quote(1, change).await;
    rig.deposit(&request, |_| ()).await;
    rig.settle(&request).await;
    let paid = rig.destination.paid(request.order_id).len();
    if paid == 0 {
        assert!(rig.refunded(request.order_id, 1) > U256::ZERO);
    }
    (paid, rig.facts(&request).await.failure)
}

/// The proxy hands calls to the present router, whose word does not count for the order.
#[tokio::test]
async fn what_a_former_router_was_to_do_is_not_done_by_another() {
    let former = |request: &mut Request| {
        routed(request, 1);
        through(request, FORMER);
    };
    assert_eq!(ended(None, former).await, (0, Some(FailReason::Unknown)));
    let present = |request: &mut Request| routed(request, 1);
    assert_eq!(ended(None, present).await, (2, None));
}

#[tokio::test]
async fn nothing_is_paid_through_a_router_that_is_not_listed() {
    let former = |request: &mut Request| {
        native_only(request);
        through(request, FORMER);
    };
    let refused = (0, Some(FailReason::Unknown));
    assert_eq!(ended(Some(&[ROUTER]), former).await, refused);
    assert_eq!(ended(Some(&[ROUTER, FORMER]), former).await, (2, None));
    assert_eq!(ended(Some(&[ROUTER]), native_only).await, (2, None));
    // A plain payment goes through none.
    assert_eq!(ended(Some(&[]), |_| ()).await, (1, None));
}
