//! The tests that every backend passes.

use std::sync::Arc;

use super::{
    Batch, Expect, Key, Kind, MAX_KEY, MAX_VALUE, Outcome, Range, Store, StoreError,
    memory::MemoryStore, sled::SledStore,
};

const KIND: Kind = Kind(200);

macro_rules! suite {
    ($($case:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                super::$case(std::sync::Arc::new(super::MemoryStore::new())).await;
            })*
        }
        mod sled {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                let directory = tempfile::tempdir().unwrap();
                let store = super::SledStore::open(directory.path()).unwrap();
                super::$case(std::sync::Arc::new(store)).await;
            })*
        }
    };
}

suite!(
    a_row_is_what_was_written_last,
    many_rows_are_read_in_the_order_asked_for,
    a_refused_commit_writes_nothing_and_says_what_is_there,
    absent_equals_and_either_are_told_apart,
    preconditions_are_checked_in_order,
    a_commit_sees_those_before_it,
    one_of_many_racing_claims_wins,
    counting_by_compare_and_set_loses_no_step,
    a_range_is_in_key_order_within_its_kind,
    pages_join_without_gap_or_overlap,
    a_range_can_be_read_from_its_end,
    a_log_is_numbered_as_it_is_committed,
    a_row_that_leads_to_the_end_of_a_log_has_its_number,
    oversized_rows_are_refused,
    a_row_at_the_limit_is_kept,
    a_closed_store_refuses,
    every_row_is_walked_over_once_and_can_be_copied,
    a_request_its_order_and_other_rows_are_stored_once_and_together,
    facts_change_by_compare_and_set_with_the_rows_that_say_so,
    one_of_many_claims_of_a_request_wins_with_its_nonce,
    reservations_of_a_currency_are_one_range,
    a_cursor_moves_with_what_was_seen_or_not_at_all,
    who_lost_a_lease_changes_nothing_any_more,
);

/// The rows of the daemon's modules, written as the modules write them.
mod kept;
use kept::{
    a_cursor_moves_with_what_was_seen_or_not_at_all,
    a_request_its_order_and_other_rows_are_stored_once_and_together,
    a_row_that_leads_to_the_end_of_a_log_has_its_number,
    every_row_is_walked_over_once_and_can_be_copied,
    facts_change_by_compare_and_set_with_the_rows_that_say_so,
    many_rows_are_read_in_the_order_asked_for, one_of_many_claims_of_a_request_wins_with_its_nonce,
    reservations_of_a_currency_are_one_range, who_lost_a_lease_changes_nothing_any_more,
};

fn key(name: &str) -> Key {
    Key::new(KIND, name)
}

fn refused(name: &str, found: Option<&str>) -> Outcome {
    Outcome::Refused {
        key: key(name),
        found: found.map(|found| found.as_bytes().to_vec()),
    }
}

async fn put(store: &dyn Store, name: &str, value: &str) {
    let batch = Batch::new().put(key(name), value.into());
    assert_eq!(store.commit(batch).await, Ok(Outcome::APPLIED));
}

async fn get(store: &dyn Store, name: &str) -> Option<String> {
    store
        .read(&key(name))
        .await
        .unwrap()
        .map(|value| String::from_utf8(value).unwrap())
}

async fn a_row_is_what_was_written_last(store: Arc<dyn Store>) {
    assert_eq!(get(&*store, "a").await, None);
    put(&*store, "a", "1").await;
    put(&*store, "a", "2").await;
    assert_eq!(get(&*store, "a").await.as_deref(), Some("2"));
    let other = Key::new(Kind(201), "a");
    assert_eq!(store.read(&other).await, Ok(None), "kinds are apart");
    let within = Batch::new().put(key("a"), "3".into()).delete(key("a"));
    assert_eq!(store.commit(within).await, Ok(Outcome::APPLIED));
    assert_eq!(get(&*store, "a").await, None);
}

async fn a_refused_commit_writes_nothing_and_says_what_is_there(store: Arc<dyn Store>) {
    put(&*store, "a", "1").await;
    let batch = Batch::new()
        .put(key("b"), "2".into())
        .delete(key("a"))
        .expect(key("a"), Expect::Equals("9".into()));
    assert_eq!(store.commit(batch).await, Ok(refused("a", Some("1"))));
    assert_eq!(get(&*store, "a").await.as_deref(), Some("1"));
    assert_eq!(get(&*store, "b").await, None);
}

async fn absent_equals_and_either_are_told_apart(store: Arc<dyn Store>) {
    put(&*store, "a", "1").await;
    let one = || b"1".to_vec();
    let table = [
        ("a", Expect::Absent, false),
        ("a", Expect::Equals(one()), true),
        ("a", Expect::AbsentOrEquals(one()), true),
        ("a", Expect::AbsentOrEquals(b"2".to_vec()), false),
        ("a", Expect::Equals(Vec::new()), false),
        ("none", Expect::Absent, true),
        ("none", Expect::Equals(one()), false),
        ("none", Expect::Equals(Vec::new()), false),
        ("none", Expect::AbsentOrEquals(one()), true),
    ];
    for (name, expect, met) in table {
        let batch = Batch::new().expect(key(name), expect.clone());
        let applied = store.commit(batch).await == Ok(Outcome::APPLIED);
        assert_eq!(applied, met, "{name} {expect:?}");
    }
    let claim = || Batch::new().claim(key("c"), b"mine".to_vec());
    assert_eq!(store.commit(claim()).await, Ok(Outcome::APPLIED));
    assert_eq!(store.commit(claim()).await, Ok(Outcome::APPLIED));
    let other = Batch::new().claim(key("c"), b"yours".to_vec());
    assert_eq!(store.commit(other).await, Ok(refused("c", Some("mine"))));
}

async fn preconditions_are_checked_in_order(store: Arc<dyn Store>) {
    put(&*store, "a", "1").await;
    put(&*store, "b", "2").await;
    let batch = Batch::new()
        .expect(key("b"), Expect::Absent)
        .expect(key("a"), Expect::Absent);
    assert_eq!(store.commit(batch).await, Ok(refused("b", Some("2"))));
}

async fn a_commit_sees_those_before_it(store: Arc<dyn Store>) {
    // Started together, so that a backend that groups commits has them in one group.
    let commits = (0..50).map(|n: u32| {
        let before = n.checked_sub(1).map(|n| n.to_string().into_bytes());
        let expect = before.map_or(Expect::Absent, Expect::Equals);
        let batch = Batch::new()
            .expect(key("n"), expect)
            .put(key("n"), n.to_string().into());
        store.commit(batch)
    });
    let outcomes = futures::future::join_all(commits).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| *outcome == Ok(Outcome::APPLIED))
    );
    assert_eq!(get(&*store, "n").await.as_deref(), Some("49"));
}

async fn one_of_many_racing_claims_wins(store: Arc<dyn Store>) {
    for round in 0..20 {
        let slot = format!("slot/{round}");
        let tasks = (0..16).map(|n: u8| {
            let (store, slot) = (store.clone(), slot.clone());
            tokio::spawn(async move {
                let batch = Batch::new()
                    .claim(key(&slot), vec![n])
                    .put(key(&format!("{slot}/by/{n}")), vec![n]);
                store.commit(batch).await.unwrap()
            })
        });
        let outcomes: Vec<_> = futures::future::join_all(tasks)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let winner = outcomes
            .iter()
            .position(|outcome| *outcome == Outcome::APPLIED)
            .unwrap();
        let found = Some(vec![u8::try_from(winner).unwrap()]);
        let lost = Outcome::Refused {
            key: key(&slot),
            found,
        };
        assert_eq!(
            outcomes.iter().filter(|outcome| **outcome == lost).count(),
            15
        );
        let range = Range {
            kind: KIND,
            prefix: format!("{slot}/by/").into(),
            after: None,
            limit: 99,
            reverse: false,
        };
        assert_eq!(
            store.scan(range).await.unwrap().len(),
            1,
            "losers wrote nothing"
        );
    }
}

async fn counting_by_compare_and_set_loses_no_step(store: Arc<dyn Store>) {
    put(&*store, "n", "0").await;
    let tasks = (0..8).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            for _ in 0..25 {
                loop {
                    let old = get(&*store, "n").await.unwrap();
                    let new = (old.parse::<u32>().unwrap() + 1).to_string();
                    let batch = Batch::new()
                        .expect(key("n"), Expect::Equals(old.into()))
                        .put(key("n"), new.into());
                    if store.commit(batch).await == Ok(Outcome::APPLIED) {
                        break;
                    }
                }
            }
        })
    });
    for task in futures::future::join_all(tasks).await {
        task.unwrap();
    }
    assert_eq!(get(&*store, "n").await.as_deref(), Some("200"));
}

async fn names(store: &dyn Store, prefix: &str, after: Option<&str>, limit: usize) -> Vec<String> {
    let after = after.map(Into::into);
    let range = Range {
        kind: KIND,
        prefix: prefix.into(),
        after,
        limit,
        reverse: false,
    };
    let rows = store.scan(range).await.unwrap();
    rows.into_iter()
        .map(|(key, _)| String::from_utf8(key.name).unwrap())
        .collect()
}

async fn a_range_is_in_key_order_within_its_kind(store: Arc<dyn Store>) {
    for name in ["b/2", "a", "b/1", "b/10", "c", "b"] {
        put(&*store, name, name).await;
    }
    for kind in [199, 201] {
        let foreign = Batch::new().put(Key::new(Kind(kind), "b/3"), Vec::new());
        store.commit(foreign).await.unwrap();
    }
    assert_eq!(names(&*store, "b/", None, 9).await, ["b/1", "b/10", "b/2"]);
    assert_eq!(
        names(&*store, "", None, 9).await,
        ["a", "b", "b/1", "b/10", "b/2", "c"]
    );
    assert_eq!(names(&*store, "b", Some("b/1"), 9).await, ["b/10", "b/2"]);
    assert_eq!(names(&*store, "b", Some("a"), 2).await, ["b", "b/1"]);
    assert_eq!(names(&*store, "b", Some("c"), 9).await, [""; 0]);
    assert_eq!(names(&*store, "d", None, 9).await, [""; 0]);
}

async fn pages_join_without_gap_or_overlap(store: Arc<dyn Store>) {
    let all: Vec<String> = (0..100).map(|n| format!("p/{n:03}")).collect();
    let batch = all
        .iter()
        .fold(Batch::new(), |batch, name| batch.put(key(name), vec![1]));
    store.commit(batch).await.unwrap();
    let mut seen = Vec::new();
    loop {
        let page = names(&*store, "p/", seen.last().map(String::as_str), 7).await;
        if page.is_empty() {
            break;
        }
        seen.extend(page);
    }
    assert_eq!(seen, all);
}

async fn a_range_can_be_read_from_its_end(store: Arc<dyn Store>) {
    for name in ["a", "b", "b/1", "b/2", "b\u{7f}", "c"] {
        put(&*store, name, name).await;
    }
    for kind in [199, 201] {
        let foreign = Batch::new().put(Key::new(Kind(kind), "b/3"), Vec::new());
        store.commit(foreign).await.unwrap();
    }
    let cases: [(&str, Option<&str>, usize, &[&str]); 6] = [
        ("b", None, 9, &["b\u{7f}", "b/2", "b/1", "b"]),
        ("b", None, 2, &["b\u{7f}", "b/2"]),
        ("b", Some("b/2"), 9, &["b/1", "b"]),
        ("b", Some("zz"), 1, &["b\u{7f}"]),
        ("b", Some("a"), 9, &[]),
        ("", Some("b"), 9, &["a"]),
    ];
    for (prefix, after, limit, wanted) in cases {
        let range = Range {
            kind: KIND,
            prefix: prefix.into(),
            after: after.map(Into::into),
            limit,
            reverse: true,
        };
        let rows = store.scan(range).await.unwrap();
        let names: Vec<_> = rows.iter().map(|(key, _)| key.name.as_slice()).collect();
        let wanted: Vec<_> = wanted.iter().map(|name| name.as_bytes()).collect();
        assert_eq!(names, wanted, "{prefix} {after:?}");
    }
}

async fn a_log_is_numbered_as_it_is_committed(store: Arc<dyn Store>) {
    let append = |value: u64| Batch::new().append(KIND, value.to_be_bytes().into());
    let refused = append(9).expect(key("none"), Expect::Equals(Vec::new()));
    assert_eq!(store.commit(refused).await, Ok(self::refused("none", None)));
    let tasks = (0..64).map(|value| {
        let (store, batch) = (store.clone(), append(value));
        tokio::spawn(async move { (value, store.commit(batch).await.unwrap()) })
    });
    let mut given = std::collections::BTreeMap::new();
    for task in futures::future::join_all(tasks).await {
        let (value, outcome) = task.unwrap();
        let Outcome::Applied {
            number: Some(number),
        } = outcome
        else {
            panic!("{outcome:?}")
        };
        assert_eq!(given.insert(number, value), None);
    }
    assert!(given.keys().copied().eq(1..=64), "{given:?}");
    let range = Range {
        kind: KIND,
        prefix: Vec::new(),
        after: None,
        limit: 99,
        reverse: false,
    };
    let rows = store.scan(range).await.unwrap();
    let stored = rows.iter().map(|(key, value)| {
        let value = u64::from_be_bytes(value.as_slice().try_into().unwrap());
        (crate::store::number(&key.name).unwrap(), value)
    });
    assert!(stored.eq(given));
}

async fn oversized_rows_are_refused(store: Arc<dyn Store>) {
    let long = Key::new(KIND, vec![b'k'; MAX_KEY + 1]);
    let batches = [
        Batch::new().put(key("a"), vec![0; MAX_VALUE + 1]),
        Batch::new().put(long.clone(), Vec::new()),
        Batch::new().delete(long.clone()),
        Batch::new().expect(long, Expect::Absent),
        Batch::new().append(KIND, vec![0; MAX_VALUE + 1]),
    ];
    for batch in batches {
        assert_eq!(store.commit(batch).await, Err(StoreError::Oversized));
    }
    assert_eq!(get(&*store, "a").await, None);
    put(&*store, "a", "small").await;
}

async fn a_row_at_the_limit_is_kept(store: Arc<dyn Store>) {
    let value: Vec<u8> = (0..MAX_VALUE).map(|n| n.to_le_bytes()[0]).collect();
    let large = Key::new(KIND, vec![b'k'; MAX_KEY]);
    store
        .commit(Batch::new().put(large.clone(), value.clone()))
        .await
        .unwrap();
    assert_eq!(store.read(&large).await, Ok(Some(value)));
}

async fn a_closed_store_refuses(store: Arc<dyn Store>) {
    put(&*store, "a", "1").await;
    store.close().await;
    store.close().await;
    let batch = Batch::new().put(key("a"), b"2".to_vec());
    assert_eq!(store.commit(batch).await, Err(StoreError::Closed));
    assert_eq!(store.read(&key("a")).await, Err(StoreError::Closed));
}
