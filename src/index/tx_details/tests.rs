use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use vm::{ReadError, U256};

use super::*;
use crate::{
    index::{
        apply,
        fixtures::{Script, deposit, market, tx},
    },
    price::{Price, PriceError},
    request::{
        Request,
        fact::{Facts, Inclusion},
        fixtures::{USDC, request},
        tx_details::Change,
    },
    store::{memory::MemoryStore, requests::Requests},
};

const DOWN: fn() -> ReadError = || ReadError::Unavailable("down".into());

/// A store with the facts of one request, on the chain `origin`.
struct Rig {
    world: Arc<Script>,
    requests: Requests,
    request: Request,
}

impl Rig {
    fn new() -> Self {
        Self {
            world: Script::at(5),
            requests: Requests::new(Arc::new(MemoryStore::new())),
            request: request(1),
        }
    }

    fn observer(&self) -> Observer {
        self.observer_of("origin", vec![self.world.clone()])
    }

    fn observer_of(&self, network: &str, providers: Vec<Arc<dyn TxInspector>>) -> Observer {
        Observer::new(network, vm::SETTLEMENT, providers, self.requests.clone())
    }

    /// A deposit in transaction `number`, in a block of its own and in the facts since `now`.
    async fn deposited(&self, number: u64, now: u64) -> Inclusion {
        self.on("origin", &self.world, number, now).await
    }

    async fn on(&self, network: &str, world: &Script, number: u64, now: u64) -> Inclusion {
        let found = deposit(self.request.order_id, 0);
        let height = world.deposit(number, vec![found.clone()]);
        let place = Inclusion::from(&world.block(height));
        let seen = apply::deposit(network, &tx(number), &place, &found);
        self.changed(now, |facts| apply::seen(facts, &seen)).await;
        place
    }

    async fn changed(&self, now: u64, change: impl Fn(&mut Facts) + Send + Sync) {
        let id = &self.request.id;
        // Quoted once, however often something is seen of it.
        let _known = self.requests.insert(&self.request, Batch::new()).await;
        let changed = self.requests.record(id, now, Batch::new(), change).await;
        changed.unwrap();
    }

    async fn kept(&self, network: &str, number: u64) -> Option<TxDetails> {
        let text = &tx(number).text;
        let store = &**self.requests.store();
        tx_details::of(store, network, text).await.unwrap()
    }

    async fn wanted(&self) -> Vec<Row> {
        let range = tx_details::range("origin", PAGE);
        let rows = self.requests.store().scan(range).await.unwrap();
        let rows = rows.iter().map(|(key, value)| tx_details::row(key, value));
        rows.collect::<Result<_, _>>().unwrap()
    }
}

fn seen(count: usize) -> Round {
    Round {
        seen: count,
        done: true,
        ..Round::default()
    }
}

fn later(count: usize) -> Round {
    Round {
        later: count,
        done: true,
        ..Round::default()
    }
}

fn dropped(count: usize) -> Round {
    Round {
        dropped: count,
        done: true,
        ..Round::default()
    }
}

#[tokio::test]
async fn a_transaction_in_a_block_is_kept_in_full_once() {
    let (rig, observer) = {
        let rig = Rig::new();
        let observer = rig.observer();
        (rig, observer)
    };
    let place = rig.deposited(1, 7).await;
    assert_eq!(rig.kept("origin", 1).await, None);
    assert_eq!(observer.round(6).await, Ok(seen(0)), "not before its time");
    assert_eq!(observer.round(7).await, Ok(seen(1)));
    let kept = rig.kept("origin", 1).await.unwrap();
    assert!(kept.is_of(&place) && kept.success);
    assert_eq!((kept.fee, &kept.place), (U256::from(21_000), &place));
    assert_eq!(rig.kept("destination", 1).await, None);
    // It becomes final where it was: nothing is wanted.
    let id = apply::onchain_id("origin", &tx(1).text, 0);
    rig.changed(8, |facts| {
        apply::settled(
            facts,
            id,
            place.hash,
            &crate::request::fixtures::agreed(&place),
        );
    })
    .await;
    assert_eq!(observer.round(u64::MAX).await, Ok(seen(0)));
    assert_eq!(rig.world.inspected(), 1);
}

/// 2,500 dollars for who asks then, in unix seconds; nobody else is told.
struct PriceThen(u64);

const USD: U256 = U256::from_limbs([2_500, 0, 0, 0]);

#[async_trait::async_trait]
impl PriceSource for PriceThen {
    async fn price(&self, currency: &Currency, now: u64) -> Result<Price, PriceError> {
        match now == self.0 {
            true => Ok(Price::exact(USD, now)),
            false => Err(PriceError::Unknown(currency.symbol.clone())),
        }
    }
}

/// The time of [`clock`], unix seconds. Of one test: it is the process'.
static NOW: AtomicU64 = AtomicU64::new(0);

fn clock() -> u64 {
    NOW.load(Relaxed) * 1_000
}

#[tokio::test]
async fn what_is_seen_soon_is_kept_with_its_price() {
    let (rig, market) = (Rig::new(), market());
    let network = market.by_name("origin").unwrap();
    let priced = |price| {
        rig.observer()
            .pricing(network, Arc::new(PriceThen(price)), clock)
    };
    // The price is asked for as of now, whenever the round began.
    let place = rig.deposited(1, 0).await;
    let soon = place.time + LATE;
    NOW.store(soon, Relaxed);
    assert_eq!(priced(soon).round(7).await, Ok(seen(1)));
    let wanted = Worth {
        currency: network.native().unwrap().address.clone(),
        native: true,
        decimals: 18,
        usd: USD,
    };
    assert_eq!(rig.kept("origin", 1).await.unwrap().prices, [wanted]);
    // Nobody tells a price, and none of then can be told any more: it is kept without.
    let place = rig.deposited(2, 0).await;
    NOW.store(place.time, Relaxed);
    assert_eq!(priced(0).round(7).await, Ok(seen(1)));
    assert_eq!(rig.kept("origin", 2).await.unwrap().prices, []);
    let place = rig.deposited(3, 0).await;
    let late = place.time + LATE + 1;
    NOW.store(late, Relaxed);
    let early = place.time * 1_000;
    assert_eq!(priced(late).round(early).await, Ok(seen(1)));
    assert_eq!(rig.kept("origin", 3).await.unwrap().prices, []);
}

#[tokio::test]
async fn only_listed_currencies_that_moved_are_priced() {
    let (rig, market) = (Rig::new(), market());
    let mut network = market.by_name("origin").unwrap().clone();
    for (symbol, address) in [("USDC", USDC), ("OTHER", "0x0b")] {
        let mut currency = network.currencies[0].clone();
        (currency.symbol, currency.address) = (symbol.into(), address.into());
        network.currencies.push(currency);
    }
    rig.deposited(1, 0).await;
    assert_eq!(rig.observer().round(0).await, Ok(seen(1)));
    let mut tx_details = rig.kept("origin", 1).await.unwrap();
    for currency in [USDC.to_uppercase().replace("0X", "0x"), "0x0c".into()] {
        tx_details.changes.push(Change {
            address: "0x01".into(),
            currency,
            negative: false,
            amount: U256::from(1),
        });
    }
    let pricing = Pricing {
        network,
        prices: Arc::new(PriceThen(0)),
        clock: || 0,
    };
    let moved = pricing.moved(&tx_details);
    let moved: Vec<_> = moved.iter().map(|one| one.symbol.as_str()).collect();
    assert_eq!(moved, ["ETH", "USDC"]);
}

#[tokio::test]
async fn an_outage_is_waited_out_and_holds_up_no_other_network() {
    let rig = Rig::new();
    let there = Script::at(5);
    rig.deposited(1, 0).await;
    rig.on("destination", &there, 2, 0).await;
    rig.world.fail(Some(DOWN()));
    let origin = rig.observer();
    let destination = rig.observer_of("destination", vec![there.clone()]);
    assert_eq!(origin.round(0).await, Ok(later(1)));
    assert_eq!(destination.round(0).await, Ok(seen(1)));
    assert!(rig.kept("destination", 2).await.is_some());
    // Each pause is twice the last.
    for (now, looks) in [(999, 1), (1_000, 2), (2_999, 2), (3_000, 3), (6_999, 3)] {
        origin.round(now).await.unwrap();
        assert_eq!(rig.world.inspected(), looks, "{now}");
    }
    rig.world.fail(None);
    assert_eq!(origin.round(7_000).await, Ok(seen(1)));
    assert!(rig.kept("origin", 1).await.is_some());
    assert_eq!(rig.wanted().await, []);
}

#[tokio::test]
async fn what_was_wanted_is_wanted_after_a_restart() {
    let rig = Rig::new();
    rig.deposited(1, 0).await;
    rig.world.fail(Some(DOWN()));
    assert_eq!(rig.observer().round(0).await, Ok(later(1)));
    rig.world.fail(None);
    let again = Rig {
        requests: Requests::new(rig.requests.store().clone()),
        world: rig.world.clone(),
        request: rig.request.clone(),
    };
    assert_eq!(again.observer().round(1_000).await, Ok(seen(1)));
    assert!(again.kept("origin", 1).await.is_some());
}

#[tokio::test]
async fn another_provider_is_asked_where_the_first_shows_nothing() {
    let rig = Rig::new();
    let place = rig.deposited(1, 0).await;
    let (down, empty, forked) = (Script::at(5), Script::at(5), Script::at(5));
    down.fail(Some(DOWN()));
    forked.reorg(1);
    forked.mine(1);
    forked.deposit(1, vec![deposit(rig.request.order_id, 0)]);
    let others: [Arc<dyn TxInspector>; 3] = [down, empty, forked];
    let only = rig.observer_of("origin", others.to_vec());
    assert_eq!(only.round(0).await, Ok(later(1)));
    let all = [others.to_vec(), vec![rig.world.clone()]].concat();
    let all = rig.observer_of("origin", all);
    assert_eq!(all.round(1_000).await, Ok(seen(1)));
    assert!(rig.kept("origin", 1).await.unwrap().is_of(&place));
    let nobody = rig.observer_of("origin", Vec::new());
    rig.deposited(2, 0).await;
    assert_eq!(nobody.round(0).await, Ok(later(1)));
}

#[tokio::test]
async fn a_transaction_that_comes_into_another_block_is_seen_anew() {
    let (rig, id) = (Rig::new(), apply::onchain_id("origin", &tx(1).text, 0));
    let observer = rig.observer();
    let first = rig.deposited(1, 0).await;
    assert_eq!(observer.round(0).await, Ok(seen(1)));
    rig.changed(1, |facts| apply::lost(facts, id, first.hash))
        .await;
    rig.world.reorg(1);
    assert_eq!(observer.round(1).await, Ok(seen(0)));
    let second = rig.deposited(1, 2).await;
    assert_ne!(first.hash, second.hash);
    assert!(!rig.kept("origin", 1).await.unwrap().is_of(&second));
    assert_eq!(observer.round(2).await, Ok(seen(1)));
    assert!(rig.kept("origin", 1).await.unwrap().is_of(&second));
}

#[tokio::test]
async fn what_left_its_block_before_it_was_seen_is_not_asked_for() {
    let (rig, id) = (Rig::new(), apply::onchain_id("origin", &tx(1).text, 0));
    let place = rig.deposited(1, 0).await;
    rig.changed(1, |facts| apply::lost(facts, id, place.hash))
        .await;
    assert_eq!(rig.observer().round(1).await, Ok(dropped(1)));
    assert_eq!((rig.world.inspected(), rig.wanted().await), (0, Vec::new()));
    assert_eq!(rig.kept("origin", 1).await, None);
}

#[tokio::test]
async fn one_that_nobody_shows_holds_up_no_other_and_is_given_up() {
    let rig = Rig::new();
    let observer = rig.observer();
    rig.deposited(1, 0).await;
    rig.world.reorg(1);
    rig.world.mine(1);
    rig.deposited(2, 0).await;
    let both = Round {
        later: 1,
        ..seen(1)
    };
    assert_eq!(observer.round(0).await, Ok(both));
    assert!(rig.kept("origin", 2).await.is_some());
    for _ in 1..TRIES {
        let next = rig.wanted().await[0].next;
        assert_eq!(observer.round(next).await, Ok(later(1)));
    }
    let last = &rig.wanted().await[0];
    assert!(last.next > 6 * 24 * 3_600_000, "{}", last.next);
    assert_eq!(observer.round(last.next).await, Ok(dropped(1)));
    assert_eq!(rig.wanted().await, []);
    assert_eq!(rig.kept("origin", 1).await, None);
}

#[tokio::test]
async fn an_outage_costs_a_few_looks_and_a_backlog_is_seen_page_by_page() {
    let rig = Rig::new();
    let observer = rig.observer();
    let count = PAGE + 20;
    for number in 0..count {
        rig.deposited(number as u64, 0).await;
    }
    rig.world.fail(Some(DOWN()));
    assert_eq!(observer.round(0).await, Ok(later(AT_ONCE)));
    assert_eq!(rig.world.inspected(), AT_ONCE);
    rig.world.fail(None);
    let first = Round {
        done: false,
        ..seen(PAGE)
    };
    assert_eq!(observer.round(1_000).await, Ok(first));
    assert_eq!(observer.round(1_000).await, Ok(seen(count - PAGE)));
    assert_eq!(rig.wanted().await, []);
}
