//! What is forgotten, and what never is.

use super::*;
use crate::{
    request::{
        Request,
        fact::{Facts, Standing},
        last_deadline, scene,
    },
    store::{
        check,
        listing::{Cut, Listing},
        memory::MemoryStore,
        requests::Requests,
        rows::transaction::{Outcome as Fate, Tracked},
    },
};

const DAY: u64 = 24 * 60 * 60 * 1_000;

async fn all(sweep: &mut Sweep, store: &dyn Store, now: u64) -> Swept {
    let mut sum = Swept::default();
    while !sum.ended {
        let swept = sweep.step(store, now).await.unwrap();
        sum.quotes += swept.quotes;
        sum.transactions += swept.transactions;
        sum.ended = swept.ended;
    }
    sum
}

fn numbered(number: u64) -> Request {
    let mut request = scene::request(1);
    request.id = alloy::primitives::B256::left_padding_from(&(number + 1).to_be_bytes());
    request.order_id = alloy::primitives::B256::repeat_byte(9) ^ request.id;
    request
}

#[tokio::test]
async fn a_quote_is_one_row_in_no_list_and_gone_a_day_after_its_orders_last_deadline() {
    let requests = Requests::new(Arc::new(MemoryStore::new()));
    let store = requests.store().clone();
    for number in 0..1_200 {
        let request = numbered(number);
        let inserted = requests.insert(&request, Batch::new());
        inserted.await.unwrap();
    }
    let report = check::check(&*store).await.unwrap();
    assert_eq!(report.counts, [("order", 1_200), ("quote", 1_200)]);
    assert_eq!(report.defects, 0, "{report}");
    // One is acted on at the last moment.
    let paid = |facts: &mut Facts| facts.deposits.push(scene::deposit(1, Standing::Final));
    let last = numbered(700).id;
    let recorded = requests.record(&last, 5, Batch::new(), paid);
    recorded.await.unwrap();
    let listing = Listing::open(store.clone()).await.unwrap();
    listing.complete().await.unwrap();
    let cut = Cut {
        limit: 50,
        continuation: None,
        total: true,
    };
    let page = listing.page(&Default::default(), cut).await.unwrap();
    assert_eq!((page.found.len(), page.total), (1, Some(1)));

    let end = (last_deadline(&numbered(0).order)) * 1_000 + DAY;
    let mut sweep = Sweep::default();
    assert_eq!(all(&mut sweep, &*store, end - 1).await.quotes, 0);
    assert_eq!(all(&mut sweep, &*store, end).await.quotes, 1_199);
    let left = report_counts(&*store).await;
    assert!(
        left.contains(&("order", 1)) && left.contains(&("request", 1)),
        "{left:?}"
    );
    assert!(requests.by_id(&numbered(3).id).await.unwrap().is_none());
    let order = numbered(3).order_id;
    assert!(requests.by_order(&order).await.unwrap().is_none());
    assert!(requests.by_id(&numbered(700).id).await.unwrap().is_some());
    assert_eq!(all(&mut sweep, &*store, end + DAY).await.quotes, 0);
}

async fn report_counts(store: &dyn Store) -> Vec<(&'static str, u64)> {
    let report = check::check(store).await.unwrap();
    assert_eq!(report.defects, 0, "{report}");
    report.counts
}

#[tokio::test]
async fn a_transaction_that_was_looked_for_is_known_for_thirty_days() {
    let store = MemoryStore::new();
    let tracked = Tracked {
        text: "0x1".into(),
        requests: Vec::new(),
        claimed: true,
        outcome: Fate::GivenUp,
        tries: 1,
        first: DAY,
        next: 0,
    };
    let row = tracked.encode().unwrap();
    let keys = [
        transaction::settled("origin", &[1]),
        transaction::watched("origin", &[2]),
    ];
    for key in &keys {
        let put = Batch::new().put(key.clone(), row.clone());
        store.commit(put).await.unwrap();
    }
    let mut sweep = Sweep::default();
    let early = all(&mut sweep, &store, 31 * DAY - 1).await;
    assert_eq!(early.transactions, 0);
    let late = all(&mut sweep, &store, 31 * DAY).await;
    assert_eq!(late.transactions, 1);
    assert_eq!(store.read(&keys[0]).await.unwrap(), None);
    assert!(
        store.read(&keys[1]).await.unwrap().is_some(),
        "still looked for"
    );
}
