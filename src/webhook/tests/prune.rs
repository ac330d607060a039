//! What pruning deletes, and what it never deletes.

use std::{collections::BTreeSet, sync::Arc};

use alloy::primitives::B256;

use super::rig;
use crate::{
    request::{
        event::Event,
        fact::{Facts, Standing},
        fixtures,
    },
    store::{
        Batch, Store, check,
        integrators::Integrators,
        listing::Listing,
        memory::MemoryStore,
        requests::Requests,
        rows::{self, dead::Dead, delivery::Delivery},
    },
    webhook::{
        fan,
        prune::{KEPT, Pruned, prune},
    },
};

const DAY: u64 = 24 * 60 * 60 * 1_000;
const NOW: u64 = 100 * DAY;

/// A store with events of these days, by number, all of `app`.
async fn store(days: &[u64], mark: u64) -> Arc<dyn Store> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    for day in days {
        let event = Event {
            referrer: None,
            request: B256::ZERO,
            version: 0,
            key: Some("app".into()),
            at: day * DAY,
            data: "{}".into(),
        };
        let row = rows::event::encode(&event).unwrap();
        let batch = Batch::new().append(rows::EVENT, row);
        store.commit(batch).await.unwrap();
    }
    let mark = Batch::new().put(rows::mark::key("webhooks"), rows::mark::encode(mark));
    store.commit(mark).await.unwrap();
    store
}

async fn pruned(store: &Arc<dyn Store>) -> (Pruned, Vec<u64>) {
    let requests = Requests::open(store.clone()).await.unwrap();
    let pruned = prune(&requests, NOW).await.unwrap();
    let left = requests.events(0, 100).await.unwrap();
    (pruned, left.into_iter().map(|(number, _)| number).collect())
}

async fn put(store: &Arc<dyn Store>, batch: Batch) {
    store.commit(batch).await.unwrap();
}

fn dead(day: u64) -> Vec<u8> {
    let dead = Dead {
        why: "no".into(),
        at: day * DAY,
        delivery: Delivery::fresh(1),
    };
    dead.encode().unwrap()
}

#[tokio::test]
async fn events_of_thirty_days_stay_and_so_does_the_newest() {
    assert_eq!(KEPT, 30 * DAY);
    let old = store(&[1, 69, 70, 99], 4).await;
    let (count, left) = pruned(&old).await;
    assert_eq!((count.events, left), (2, vec![3, 4]));
    let all = store(&[1, 2, 3], 3).await;
    assert_eq!(pruned(&all).await.1, [3]);
    // The numbering continues.
    let next = Batch::new().append(rows::EVENT, vec![1]);
    let outcome = all.commit(next).await.unwrap();
    assert_eq!(outcome, crate::store::Outcome::Applied { number: Some(4) });
}

#[tokio::test]
async fn what_a_follower_or_a_delivery_needs_stays() {
    let behind = store(&[1, 2, 3, 4], 2).await;
    assert_eq!(pruned(&behind).await.1, [3, 4]);
    // An unknown follower keeps no events.
    let other = Batch::new().put(rows::mark::key("other"), rows::mark::encode(0));
    put(&behind, other).await;
    put(
        &behind,
        Batch::new().put(rows::mark::key("webhooks"), rows::mark::encode(3)),
    )
    .await;
    assert_eq!(pruned(&behind).await.1, [4]);
    let none = store(&[1, 2], 2).await;
    put(&none, Batch::new().delete(rows::mark::key("webhooks"))).await;
    assert_eq!(pruned(&none).await.1, [1, 2]);
    let led = store(&[1, 2, 3, 4], 4).await;
    let waiting = Delivery::fresh(1).encode().unwrap();
    let rows = Batch::new()
        .put(rows::delivery::key("app", 1), waiting)
        .put(rows::dead::key("app", 2), dead(71));
    put(&led, rows).await;
    assert_eq!(pruned(&led).await.1, [1, 2, 4]);
}

/// Makes one request per day, with one change of its status.
async fn day(requests: &Requests, number: u8) -> B256 {
    let mut request = fixtures::request(number);
    request.created_at = u64::from(number) * DAY;
    requests.insert(&request, Batch::new()).await.unwrap();
    let paid = |facts: &mut Facts| {
        facts
            .deposits
            .push(fixtures::deposit(number, Standing::Final));
    };
    let recorded = requests.record(&request.id, u64::from(number) * DAY, Batch::new(), paid);
    recorded.await.unwrap();
    request.id
}

/// All rows of a daemon's store while 31 days pass, with webhooks and listing.
#[tokio::test]
async fn after_thirty_one_days_the_first_day_is_forgotten() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let listing = Listing::open(store.clone()).await.unwrap();
    listing.complete().await.unwrap();
    let requests = Requests::open(store.clone()).await.unwrap();
    let integrators = Integrators::open(store.clone()).await.unwrap();
    let network = rig::network(|_, _| panic!("nobody wants to be told"));
    let context = rig::context(&requests, &integrators, &network);
    let (mut mark, mut ids) = (0, Vec::new());
    for number in 1..=32 {
        ids.push(day(&requests, number).await);
        mark = fan::further(&context, mark, &BTreeSet::new())
            .await
            .unwrap()
            .mark;
        let now = u64::from(number) * DAY;
        let gone = prune(&requests, now).await.unwrap().events;
        assert_eq!(gone, u64::from(number == 32), "day {number}");
    }
    let left = requests.events(0, 100).await.unwrap();
    assert_eq!(left.iter().map(|(number, _)| *number).min(), Some(2));
    assert_eq!(requests.events_of(&ids[0], 0, 9).await.unwrap(), []);
    let second = requests.events_of(&ids[1], 0, 9).await.unwrap();
    assert_eq!(second, [left[0].clone()]);
    let report = check::check(&*store).await.unwrap();
    assert_eq!(report.defects, 0, "{report}");
}

#[tokio::test]
async fn dead_deliveries_go_with_their_events() {
    let store = store(&[1, 2, 3], 3).await;
    let rows = Batch::new()
        .put(rows::dead::key("app", 1), dead(69))
        .put(rows::dead::key("app", 2), dead(70));
    put(&store, rows).await;
    let (count, left) = pruned(&store).await;
    assert_eq!(count, Pruned { events: 1, dead: 1 });
    assert_eq!(left, [2, 3]);
}
