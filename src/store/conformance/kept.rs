//! Requests, quotes, facts, claims, inventory, cursors and leases over any backend.

use std::sync::Arc;

use alloy::primitives::{B256, U256};
use futures::future::join_all;

use super::{KIND, key, put};
use crate::{
    request::{fact::Facts, fixtures as request_scene, reason::FailReason},
    store::{
        Batch, Expect, Key, Kind, Outcome, Range, Store, fixtures,
        memory::MemoryStore,
        requests::{Requests, RequestsError, Seen},
        rows::{
            RESERVATION, attempt,
            claim::{self, Claim},
            cursor::{self, Cursor},
            deposit_tx,
            lease::{self, Lease},
            open, reservation,
        },
        walk::{Walk, copy, same},
    },
};

pub async fn every_row_is_walked_over_once_and_can_be_copied(store: Arc<dyn Store>) {
    fixtures::fill(&*store, fixtures::rows()).await;
    let many = (0..600u32).map(|n| (Key::new(Kind(255), n.to_be_bytes()), vec![1]));
    fixtures::fill(&*store, many.collect()).await;
    let (mut walk, mut seen) = (Walk::new(&*store), Vec::new());
    loop {
        let page = walk.page().await.unwrap();
        if page.is_empty() {
            break;
        }
        seen.extend(page);
    }
    assert_eq!(seen.len(), fixtures::rows().len() + 600);
    assert!(
        seen.is_sorted_by(|one, next| one.0 < next.0),
        "in order, each once"
    );
    // A full page, and less than one.
    for (prefix, wanted) in [([0, 0, 0], 256), ([0, 0, 2], 88), ([0, 0, 3], 0)] {
        let mut walk = Walk::under(&*store, Kind(255), prefix.to_vec());
        let mut count = 0;
        while walk.next().await.unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, wanted, "{prefix:?}");
    }
    let other = MemoryStore::new();
    assert_eq!(copy(&*store, &other).await, Ok(seen.len() as u64));
    assert_eq!(same(&*store, &other).await, Ok(true));
    let gone = Batch::new().delete(seen[0].0.clone());
    other.commit(gone).await.unwrap();
    assert_eq!(same(&*store, &other).await, Ok(false));
}

pub async fn a_request_its_order_and_other_rows_are_stored_once_and_together(
    store: Arc<dyn Store>,
) {
    let requests = Requests::new(store.clone());
    let quote = request_scene::request(1);
    let beside = open::key(&quote.id);
    let with = Batch::new().put(beside.clone(), open::encode(1, &quote.id));
    requests.insert(&quote, with).await.unwrap();
    assert!(store.read(&beside).await.unwrap().is_some());
    assert_eq!(requests.by_id(&quote.id).await, Ok(Some(quote.clone())));
    assert_eq!(
        requests.by_order(&quote.order_id).await,
        Ok(Some(quote.clone()))
    );
    let mut other = request_scene::request(2);
    other.order_id = quote.order_id;
    let with = Batch::new().delete(beside.clone());
    let again = requests.insert(&other, with).await;
    assert_eq!(again, Err(RequestsError::Refused));
    assert_eq!(requests.by_id(&other.id).await, Ok(None));
    assert!(store.read(&beside).await.unwrap().is_some());
}

pub async fn facts_change_by_compare_and_set_with_the_rows_that_say_so(store: Arc<dyn Store>) {
    let requests = Requests::new(store.clone());
    let id = fixtures::id();
    let quote = request_scene::request(1);
    requests.insert(&quote, Batch::new()).await.unwrap();
    let own = |n: u64| request_scene::sent(&n.to_string(), crate::request::fact::State::Broadcast);
    let all = (0..20u64).map(|n| {
        let row = Key::new(Kind(200), n.to_be_bytes());
        let with = Batch::new()
            .expect(row.clone(), Expect::Absent)
            .put(row, vec![1]);
        requests.record(&id, n, with, move |facts: &mut Facts| {
            facts.own.push(own(n));
        })
    });
    for recorded in join_all(all).await {
        recorded.unwrap();
    }
    let facts = requests.facts(&id).await.unwrap();
    assert_eq!((facts.version, facts.own.len()), (20, 20));
    let old = Facts::default();
    let row = Key::new(Kind(200), "late");
    let with = Batch::new().put(row.clone(), vec![1]);
    let fail = |facts: &mut Facts| facts.failure = Some(FailReason::TtlExpired);
    let late = requests
        .decide(
            Seen {
                id: &id,
                facts: &old,
            },
            9,
            with,
            fail,
        )
        .await;
    assert_eq!(late, Err(RequestsError::Refused));
    assert_eq!(store.read(&row).await, Ok(None));
    assert_eq!(requests.facts(&id).await.unwrap().failure, None);
}

pub async fn one_of_many_claims_of_a_request_wins_with_its_nonce(store: Arc<dyn Store>) {
    let key = claim::key(&fixtures::id());
    let tasks = (0..16).map(|nonce| {
        let (store, key) = (store.clone(), key.clone());
        tokio::spawn(async move {
            let mut claim = fixtures::claim();
            let id = fixtures::attempt_id(nonce);
            let slot = attempt::key("origin", &id);
            claim.legs[0].attempt = id;
            let batch = Batch::new()
                .expect(key.clone(), Expect::Absent)
                .expect(slot.clone(), Expect::Absent)
                .put(key, claim.encode().unwrap())
                .put(slot, fixtures::attempt().encode().unwrap());
            store.commit(batch).await.unwrap()
        })
    });
    let outcomes: Vec<_> = join_all(tasks)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let won = |outcome: &&Outcome| **outcome == Outcome::APPLIED;
    assert_eq!(outcomes.iter().filter(won).count(), 1);
    let winner = outcomes.iter().position(|outcome| won(&outcome)).unwrap() as u64;
    let stored = store.read(&key).await.unwrap().unwrap();
    let winner = fixtures::attempt_id(winner);
    let claim = Claim::decode(&stored).unwrap();
    assert_eq!(claim.legs[0].attempt, winner);
    let slots = store.scan(attempt::range("origin", 99)).await.unwrap();
    let slots: Vec<_> = slots
        .iter()
        .map(|(key, _)| attempt::id("origin", key))
        .collect();
    assert_eq!(slots, [Ok(winner)]);
}

pub async fn reservations_of_a_currency_are_one_range(store: Arc<dyn Store>) {
    let rows = [
        ("origin", 0xab, 255),
        ("origin", 0xab, 256),
        ("origin", 0xac, 1),
        ("origin2", 0xab, 1),
    ];
    let put = |batch: Batch, (network, currency, nonce): (&str, u8, u64)| {
        let key = reservation::key(network, &[currency], &fixtures::attempt_id(nonce));
        batch.put(key, reservation::encode(U256::from(nonce)))
    };
    let batch = rows.into_iter().fold(Batch::new(), put);
    store.commit(batch).await.unwrap();
    let sum = async || {
        let prefix = reservation::prefix("origin", &[0xab]);
        let mut walk = Walk::under(&*store, RESERVATION, prefix);
        let mut sum = U256::ZERO;
        while let Some((_, amount)) = walk.next().await.unwrap() {
            sum += reservation::decode(&amount).unwrap();
        }
        sum
    };
    assert_eq!(sum().await, U256::from(511));
    let first = reservation::key("origin", &[0xab], &fixtures::attempt_id(255));
    store.commit(Batch::new().delete(first)).await.unwrap();
    assert_eq!(sum().await, U256::from(256));
}

pub async fn a_cursor_moves_with_what_was_seen_or_not_at_all(store: Arc<dyn Store>) {
    let (key, at) = (cursor::key("origin"), |next| Cursor {
        next,
        ..Cursor::default()
    });
    let step = |from: Option<u64>, to: u64| {
        let expect = from.map_or(Expect::Absent, |from| {
            Expect::Equals(at(from).encode().unwrap())
        });
        let seen = deposit_tx::Seen {
            hash: B256::ZERO,
            request: None,
        };
        Batch::new()
            .expect(key.clone(), expect)
            .put(key.clone(), at(to).encode().unwrap())
            .put(
                deposit_tx::key("origin", to, &B256::ZERO),
                deposit_tx::encode(&seen).unwrap(),
            )
    };
    assert_eq!(store.commit(step(None, 5)).await, Ok(Outcome::APPLIED));
    assert_eq!(store.commit(step(Some(5), 9)).await, Ok(Outcome::APPLIED));
    // A second tail that still expects the old position.
    let late = store.commit(step(Some(5), 7)).await.unwrap();
    assert!(matches!(late, Outcome::Refused { .. }));
    let seen = store.scan(deposit_tx::range("origin", 0, 9)).await.unwrap();
    assert_eq!(seen.len(), 2);
    let stored = store.read(&key).await.unwrap().unwrap();
    assert_eq!(Cursor::decode(&stored), Ok(at(9)));
}

pub async fn who_lost_a_lease_changes_nothing_any_more(store: Arc<dyn Store>) {
    let key = lease::key("lane/origin");
    let lease = |fence| Lease { fence, since: 1 }.encode().unwrap();
    let take = |before: Option<u64>, fence: u64| {
        let expect = before.map_or(Expect::Absent, |fence| Expect::Equals(lease(fence)));
        Batch::new()
            .expect(key.clone(), expect)
            .put(key.clone(), lease(fence))
    };
    assert_eq!(store.commit(take(None, 1)).await, Ok(Outcome::APPLIED));
    let racers = join_all((0..8).map(|_| store.commit(take(Some(1), 2)))).await;
    let won = racers
        .iter()
        .filter(|one| **one == Ok(Outcome::APPLIED))
        .count();
    assert_eq!(won, 1);
    let nonce = attempt::key("origin", &fixtures::attempt_id(1));
    let as_holder = |fence| {
        Batch::new()
            .expect(key.clone(), Expect::Equals(lease(fence)))
            .put(nonce.clone(), fixtures::attempt().encode().unwrap())
    };
    let fenced = store.commit(as_holder(1)).await.unwrap();
    assert!(matches!(fenced, Outcome::Refused { .. }));
    assert_eq!(store.read(&nonce).await, Ok(None));
    assert_eq!(store.commit(as_holder(2)).await, Ok(Outcome::APPLIED));
}

pub async fn many_rows_are_read_in_the_order_asked_for(store: Arc<dyn Store>) {
    for name in ["a", "b"] {
        put(&*store, name, name).await;
    }
    let keys = ["b", "c", "a", "b"].map(key);
    let rows = store.read_all(&keys).await.unwrap();
    let row = |name: &str| Some(name.as_bytes().to_vec());
    assert_eq!(rows, [row("b"), None, row("a"), row("b")]);
    assert!(store.read_all(&[]).await.unwrap().is_empty());
}

const OTHER: Kind = Kind(201);

pub async fn a_row_that_leads_to_the_end_of_a_log_has_its_number(store: Arc<dyn Store>) {
    let lead = |name: &str| (Key::new(OTHER, name), vec![7]);
    for name in ["a", "b", "a"] {
        let batch = Batch::new().append_led(KIND, name.into(), lead(name));
        store.commit(batch).await.unwrap();
    }
    let refused = Batch::new().append_led(KIND, Vec::new(), lead("a"));
    let refused = refused.expect(key("none"), Expect::Equals(Vec::new()));
    assert!(matches!(
        store.commit(refused).await,
        Ok(Outcome::Refused { .. })
    ));
    let led = Range {
        kind: OTHER,
        prefix: b"a".into(),
        after: None,
        limit: 9,
        reverse: false,
    };
    let rows = store.scan(led).await.unwrap();
    let name = |number: u64| [&b"a"[..], &number.to_be_bytes()].concat();
    let wanted = [1, 3].map(|number| (Key::new(OTHER, name(number)), vec![7]));
    assert_eq!(rows, wanted);
}
