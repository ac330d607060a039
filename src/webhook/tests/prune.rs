//! What is forgotten, and what never is.

use std::sync::Arc;

use alloy::primitives::B256;

use crate::{
    request::event::Event,
    store::{
        Batch, Store,
        memory::MemoryStore,
        requests::Requests,
        rows::{self, dead::Dead, delivery::Delivery},
    },
    webhook::prune::{KEPT, Pruned, prune},
};

const DAY: u64 = 24 * 60 * 60 * 1_000;
const NOW: u64 = 100 * DAY;

/// Events of these days, by number, all of `app`.
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
    // Numbers go on.
    let next = Batch::new().append(rows::EVENT, vec![1]);
    let outcome = all.commit(next).await.unwrap();
    assert_eq!(outcome, crate::store::Outcome::Applied { number: Some(4) });
}

#[tokio::test]
async fn what_a_follower_or_a_delivery_needs_stays() {
    let behind = store(&[1, 2, 3, 4], 3).await;
    let other = Batch::new().put(rows::mark::key("other"), rows::mark::encode(1));
    put(&behind, other).await;
    assert_eq!(pruned(&behind).await.1, [2, 3, 4]);
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
