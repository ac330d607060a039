//! Random lives: the process dies anywhere, chains stall, forget and reorg, orders overlap. At the
//! end each order was filled exactly once or given back exactly once, and the books balance.

use alloy::primitives::U256;
use proptest::prelude::*;

use super::{
    PAID,
    rig::{self, Rig, native, recipient},
};
use crate::{
    request::{Request, fixtures},
    solver::judge::Next,
};

const ORDERS: u8 = 4;

#[derive(Clone, Debug)]
enum Event {
    /// The process starts, works on everything, and dies at some point if it comes that far.
    Live(u8),
    Deposit(u8),
    Mine {
        origin: bool,
        destination: bool,
    },
    Reorg {
        origin: bool,
        depth: u8,
        keep: bool,
    },
    Forget,
    Dear(u16),
    Wait(u8),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (1..30_u8).prop_map(Event::Live),
        3 => (1..=ORDERS).prop_map(Event::Deposit),
        6 => any::<(bool, bool)>().prop_map(|(origin, destination)| Event::Mine { origin, destination }),
        2 => (any::<bool>(), 1..4_u8, any::<bool>())
            .prop_map(|(origin, depth, keep)| Event::Reorg { origin, depth, keep }),
        1 => Just(Event::Forget),
        1 => (50..2_000_u16).prop_map(Event::Dear),
        1 => (1..60_u8).prop_map(Event::Wait),
    ]
}

async fn happen(rig: &mut Rig, event: &Event, requests: &[Request]) {
    match event {
        Event::Live(points) => {
            let fuse = rig.fuse.clone();
            fuse.set(i64::from(*points) + 4);
            fuse.survive(async {
                let solver = rig.solver().await;
                let all = requests
                    .iter()
                    .map(|request| solver.advance(&request.id, rig.now));
                futures::future::join_all(all).await;
                for account in solver.accounts.values() {
                    account.sweep(rig.now / 1_000).await.ok();
                }
            })
            .await;
            fuse.off();
        }
        Event::Deposit(order) => {
            let request = &requests[usize::from(*order) - 1];
            let count = rig.facts(request).await.deposits.len();
            if count < 2 {
                let id = alloy::primitives::B256::with_last_byte(u8::try_from(count).unwrap());
                rig.deposit(request, |deposit| deposit.onchain_id = id)
                    .await;
            }
        }
        Event::Mine {
            origin,
            destination,
        } => {
            if *origin {
                rig.origin.mine();
            }
            if *destination {
                rig.destination.mine();
            }
            rig.now += 2_000;
        }
        Event::Reorg {
            origin,
            depth,
            keep,
        } => {
            let chain = if *origin {
                &rig.origin
            } else {
                &rig.destination
            };
            chain.reorg(usize::from(*depth), *keep);
        }
        Event::Forget => {
            rig.origin.forget();
            rig.destination.forget();
        }
        Event::Dear(base) => rig.destination.with(|world| world.base = u128::from(*base)),
        Event::Wait(seconds) => rig.now += u64::from(*seconds) * 1_000,
    }
}

async fn quoted(rig: &Rig) -> Vec<Request> {
    let mut requests = Vec::new();
    for number in 1..=ORDERS {
        let request = rig
            .quote(number, |request| {
                if number == 2 {
                    request.referrer = Some("debug-force-refund".into());
                }
                if number == 3 {
                    super::routed(request, number);
                }
            })
            .await;
        if number == 4 {
            rig.destination
                .with(|world| world.revert.insert(request.order_id));
        }
        requests.push(request);
    }
    requests
}

/// A nonce of one order may stand before another's: all are worked on together.
async fn finish(rig: &mut Rig, requests: &[Request]) {
    rig.destination.with(|world| world.base = 100);
    let solver = rig.solver().await;
    for _ in 0..200 {
        let all = requests
            .iter()
            .map(|request| solver.advance(&request.id, rig.now));
        let nexts = futures::future::join_all(all).await;
        if nexts.iter().all(|next| matches!(next, Ok(Next::Done))) {
            return;
        }
        for account in solver.accounts.values() {
            account.sweep(rig.now / 1_000).await.ok();
        }
        rig.mine(1);
    }
    for account in solver.accounts.values() {
        eprintln!("{:?}", account.attempts().await);
    }
    panic!("not done");
}

async fn life(events: Vec<Event>) {
    let mut rig = Rig::new();
    let requests = quoted(&rig).await;
    for event in &events {
        happen(&mut rig, event, &requests).await;
    }
    finish(&mut rig, &requests).await;
    let (mut paid_out, mut given_back) = (U256::ZERO, U256::ZERO);
    for (number, request) in (1..=ORDERS).zip(&requests) {
        let deposits = rig.facts(request).await.deposits.len();
        let paid: Vec<_> = rig.destination.paid(request.order_id);
        let back = rig.origin.paid(request.order_id);
        let fills = usize::from(deposits > 0 && number % 2 == 1);
        let payments = if number == 3 { 2 * fills } else { fills };
        assert_eq!(paid.len(), payments, "order {number}: {paid:?}");
        assert!(paid.iter().all(|(to, _)| *to == recipient(number)));
        assert_eq!(back.len(), deposits - fills, "order {number}: {back:?}");
        paid_out += U256::from(PAID) * U256::from(fills);
        given_back += back
            .iter()
            .fold(U256::ZERO, |sum, (_, amount)| sum + *amount);
    }
    balanced(&rig, paid_out, given_back);
}

fn balanced(rig: &Rig, paid_out: U256, given_back: U256) {
    let (solver, start) = (rig.solver_text(), U256::from(rig::USDC));
    let left = rig.destination.balance_of(&solver, fixtures::USDC);
    assert_eq!(left, start - paid_out);
    let left = rig.origin.balance_of(&solver, fixtures::USDC);
    assert_eq!(left, start - given_back);
    let purse = rig.origin.balance_of(&solver, native());
    assert_eq!(purse + rig.origin.spent_on_gas(), U256::from(rig::RICH));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn orders_are_filled_or_given_back_exactly_once(
        events in proptest::collection::vec(event(), 10..80),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(life(events));
    }
}
