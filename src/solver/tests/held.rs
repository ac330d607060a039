//! What an account tells its family of its open attempts.

use alloy::primitives::{Bytes, U256};

use super::{chain::FakeChain, rig::Rig};
use crate::request::Request;

/// What was named as held, and whether some is left to others, for each attempt that was prepared since the last look.
fn named(chain: &FakeChain) -> Vec<(Vec<Bytes>, bool)> {
    let all = chain.with(|world| std::mem::take(&mut world.named));
    let each = all.into_iter().map(|mut one| {
        one.held.sort_unstable();
        // Each attempt of this family holds one.
        assert_eq!(one.attempts, one.held.len());
        (one.held, one.keeps)
    });
    each.collect()
}

/// A family that chooses what an attempt holds by the payment must not choose what another attempt holds.
#[tokio::test]
async fn a_family_is_told_what_open_attempts_hold() {
    let mut rig = Rig::new();
    let orders = [
        rig.funded(1).await,
        rig.funded(2).await,
        rig.funded(3).await,
    ];
    let solver = rig.solver().await;
    for order in &orders {
        solver.advance(&order.id, rig.now).await.unwrap();
    }
    let resource = |number: u64| Bytes::from(number.to_be_bytes().to_vec());
    let told = named(&rig.destination).into_iter();
    let told: Vec<_> = told.map(|(held, _)| held).collect();
    let [none, one, two] = [vec![], vec![resource(0)], vec![resource(0), resource(1)]];
    assert_eq!(told, [none, one, two]);
    // What is done with holds nothing any more.
    for order in &orders {
        rig.settle(order).await;
    }
    rig.rest().await;
    let last = rig.funded(4).await;
    let solver = rig.solver().await;
    drop(named(&rig.destination));
    solver.advance(&last.id, rig.now).await.unwrap();
    assert_eq!(named(&rig.destination)[0].0, Vec::<Bytes>::new());
}

/// What strangers want can wait for what small payments hold.
#[tokio::test]
async fn refunds_of_what_paid_leave_nothing_to_others_where_the_order_came_with_a_key() {
    let mut rig = Rig::new();
    let stranger = rig.funded(1).await;
    let keyed = rig.quote(2, |it| it.api_key = Some("app".into())).await;
    rig.deposit(&keyed, |_| ()).await;
    let solver = rig.solver().await;
    for order in [&stranger, &keyed] {
        solver.advance(&order.id, rig.now).await.unwrap();
    }
    let keeps = |chain: &FakeChain| -> Vec<bool> {
        let named = named(chain).into_iter();
        named.map(|(_, keeps)| keeps).collect()
    };
    assert_eq!(keeps(&rig.destination), [true, false]);
    // What is given back at once, and what somebody deposited besides.
    let forced = |request: &mut Request| request.referrer = Some("debug-force-refund".into());
    let refund = rig.quote(3, forced).await;
    rig.deposit(&refund, |_| ()).await;
    let with_key = |request: &mut Request| {
        forced(request);
        request.api_key = Some("app".into());
    };
    let keyed = rig.quote(6, with_key).await;
    rig.deposit(&keyed, |_| ()).await;
    let excess = rig.quote(4, |_| ()).await;
    let more = U256::from(150_000_000);
    rig.deposit(&excess, |deposit| deposit.amount = more).await;
    let solver = rig.solver().await;
    for _ in 0..30 {
        for order in [&refund, &keyed, &excess] {
            solver.advance(&order.id, rig.now).await.unwrap();
        }
        rig.mine(1);
    }
    assert_eq!(keeps(&rig.origin), [true, false, true]);
    // What never paid for its order.
    let short = rig.quote(5, |_| ()).await;
    let less = U256::from(99_999_999);
    rig.deposit(&short, |deposit| deposit.amount = less).await;
    let solver = rig.solver().await;
    for _ in 0..30 {
        solver.advance(&short.id, rig.now).await.unwrap();
        rig.mine(1);
    }
    assert_eq!(keeps(&rig.origin), [true]);
}
