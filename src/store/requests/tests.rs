use super::*;
use crate::{
    request::{
        fact::{Facts, Standing},
        fixtures,
        reason::FailReason,
    },
    store::{Key, Kind, memory::MemoryStore, retention::Sweep},
};

fn requests() -> Requests {
    Requests::new(Arc::new(MemoryStore::default()))
}

/// A store with one quote.
async fn quoted() -> (Requests, B256) {
    let (requests, request) = (requests(), fixtures::request(1));
    requests.insert(&request, Batch::new()).await.unwrap();
    (requests, request.id)
}

#[tokio::test]
async fn nothing_is_committed_of_a_request_that_is_forgotten() {
    let (requests, request) = (requests(), fixtures::request(1));
    let inserted = requests.insert(&request, Batch::new());
    inserted.await.unwrap();
    let swept = Sweep::default().step(&**requests.store(), u64::MAX).await;
    assert_eq!(swept.unwrap().quotes, 1);
    let row = Key::new(Kind(200), "row");
    let seen = |facts: &mut Facts| facts.deposits = vec![fixtures::deposit(1, Standing::Included)];
    let with = || Batch::new().put(row.clone(), vec![1]);
    let unknown = Err(RequestsError::Unknown(request.id));
    let recorded = requests.record(&request.id, 7, with(), seen).await;
    assert_eq!(recorded, unknown);
    let before = Facts::default();
    let decided = requests.decide(
        Seen {
            id: &request.id,
            facts: &before,
        },
        7,
        with(),
        seen,
    );
    assert_eq!(decided.await, unknown);
    for key in [row.clone(), rows::facts::key(&request.id)] {
        assert_eq!(requests.store().read(&key).await.unwrap(), None);
    }
}

#[tokio::test]
async fn request_is_stored_once_and_found_by_both_ids() {
    let (requests, request) = (requests(), fixtures::request(1));
    requests.insert(&request, Batch::new()).await.unwrap();
    assert_eq!(
        requests.by_id(&request.id).await.unwrap(),
        Some(request.clone())
    );
    assert_eq!(
        requests.by_order(&request.order_id).await.unwrap(),
        Some(request.clone())
    );
    let mut other = fixtures::request(2);
    other.order_id = request.order_id;
    for again in [request.clone(), other.clone()] {
        let refused = requests.insert(&again, Batch::new()).await;
        assert_eq!(refused, Err(RequestsError::Refused));
    }
    assert_eq!(requests.by_id(&other.id).await.unwrap(), None);
}

#[tokio::test]
async fn several_quotes_are_stored_together_or_not_at_all() {
    let (requests, known) = (requests(), fixtures::request(2));
    requests.insert(&known, Batch::new()).await.unwrap();
    let row = Key::new(Kind(200), "row");
    let with = || Batch::new().put(row.clone(), vec![1]);
    let both = [fixtures::request(1), known];
    let refused = requests.insert_all(&both, 0, with()).await;
    assert_eq!(refused, Err(RequestsError::Refused));
    assert_eq!(requests.by_id(&both[0].id).await.unwrap(), None);
    assert_eq!(requests.store().read(&row).await.unwrap(), None);
    let both = [fixtures::request(1), fixtures::request(3)];
    requests.insert_all(&both, 0, with()).await.unwrap();
    for one in &both {
        let found = requests.by_order(&one.order_id).await.unwrap();
        assert_eq!(found.as_ref(), Some(one));
    }
    assert_eq!(requests.store().read(&row).await.unwrap(), Some(vec![1]));
}

#[tokio::test]
async fn facts_change_with_a_version_and_a_wake_up() {
    let (requests, id) = quoted().await;
    let mut changes = requests.changes();
    let fail = |facts: &mut Facts| facts.failure = Some(FailReason::TtlExpired);
    let first = requests.record(&id, 7, Batch::new(), fail).await.unwrap();
    assert_eq!((first.version, first.updated_at), (1, 7));
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    let again = requests.record(&id, 9, Batch::new(), fail).await.unwrap();
    assert_eq!(again, first);
    assert!(!changes.has_changed().unwrap());
    assert_eq!(requests.facts(&id).await.unwrap(), first);
}

#[tokio::test]
async fn facts_and_rows_are_one_step() {
    let (requests, id) = quoted().await;
    let row = Key::new(Kind(200), "row");
    let with = Batch::new()
        .expect(row.clone(), Expect::Absent)
        .put(row, vec![1]);
    let fail = |facts: &mut Facts| facts.failure = Some(FailReason::TtlExpired);
    let undo = |facts: &mut Facts| facts.failure = None;
    requests.record(&id, 1, with.clone(), fail).await.unwrap();
    let refused = requests.record(&id, 2, with, undo).await;
    assert_eq!(refused, Err(RequestsError::Refused));
    assert_eq!(requests.facts(&id).await.unwrap().version, 1);
}

#[tokio::test]
async fn changes_at_the_same_time_are_all_kept() {
    let (requests, id) = quoted().await;
    let count = |facts: &mut Facts| {
        facts.own.push(crate::request::fact::Sent {
            network: "origin".into(),
            transaction: "0x".into(),
            state: crate::request::fact::State::Broadcast,
        });
    };
    let all = (0..20).map(|now| requests.record(&id, now, Batch::new(), count));
    futures::future::try_join_all(all).await.unwrap();
    assert_eq!(requests.facts(&id).await.unwrap().own.len(), 20);
}

#[tokio::test]
async fn decisions_rest_on_the_facts_that_were_seen() {
    let (requests, id) = quoted().await;
    let fail = |facts: &mut Facts| facts.failure = Some(FailReason::TtlExpired);
    let row = Key::new(Kind(200), "row");
    let with = Batch::new().put(row.clone(), vec![1]);
    let seen = Facts::default();
    let after = requests
        .decide(
            Seen {
                id: &id,
                facts: &seen,
            },
            5,
            with.clone(),
            fail,
        )
        .await
        .unwrap();
    assert_eq!((after.version, after.updated_at), (1, 5));
    assert_eq!(requests.facts(&id).await.unwrap(), after);
    let with = Batch::new().delete(row.clone());
    for change in [fail, |_: &mut Facts| ()] {
        let late = requests
            .decide(
                Seen {
                    id: &id,
                    facts: &seen,
                },
                6,
                with.clone(),
                change,
            )
            .await;
        assert_eq!(late, Err(RequestsError::Refused));
    }
    assert!(requests.store().read(&row).await.unwrap().is_some());
    let same = requests
        .decide(
            Seen {
                id: &id,
                facts: &after,
            },
            7,
            with,
            |_| (),
        )
        .await;
    assert_eq!(same, Ok(after));
    assert!(requests.store().read(&row).await.unwrap().is_none());
}

#[tokio::test]
async fn a_new_status_is_an_event_in_the_same_commit_and_outlives_the_process() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let requests = Requests::open(store.clone()).await.unwrap();
    let ids = [1, 2].map(|n| fixtures::request(n).id);
    for n in [1, 2] {
        let inserted = requests.insert(&fixtures::request(n), Batch::new()).await;
        inserted.unwrap();
    }
    let mut newest = requests.newest_event();
    assert_eq!(*newest.borrow_and_update(), 0, "a quote is no event");
    let seen =
        |standing| move |facts: &mut Facts| facts.deposits = vec![fixtures::deposit(1, standing)];
    let quoted = fixtures::request(1).created_at;
    for (now, id) in [(quoted + 5, ids[0]), (quoted + 6, ids[1])] {
        let seen = seen(Standing::Included);
        requests.record(&id, now, Batch::new(), seen).await.unwrap();
    }
    // The deposit is deeper; the status is unchanged.
    let deeper = requests.record(&ids[0], quoted + 7, Batch::new(), seen(Standing::Final));
    deeper.await.unwrap();
    assert_eq!(*newest.borrow_and_update(), 2);
    let refused = Batch::new().expect(rows::facts::key(&ids[0]), Expect::Absent);
    let undo = |facts: &mut Facts| facts.deposits.clear();
    let refused = requests.record(&ids[1], 8, refused, undo).await;
    assert_eq!(refused, Err(RequestsError::Refused));
    let all = requests.events(0, 9).await.unwrap();
    let brief: Vec<_> = all
        .iter()
        .map(|(n, event)| (*n, event.request, event.at))
        .collect();
    assert_eq!(brief, [(1, ids[0], quoted + 5), (2, ids[1], quoted + 6)]);
    let again = Requests::open(store).await.unwrap();
    assert_eq!(again.events(1, 9).await.unwrap(), all[1..]);
    assert_eq!(*again.newest_event().borrow(), 2);
}

#[tokio::test]
async fn what_comes_into_a_block_is_wanted_in_full_in_the_same_step() {
    use crate::{
        request::fact::{Purpose, Standing, State},
        store::rows::tx_details,
    };
    let (requests, id) = quoted().await;
    let wanted = async |network: &str| {
        let range = tx_details::range(network, 9);
        let rows = requests.store().scan(range).await.unwrap();
        let rows = rows.iter().map(|(key, value)| tx_details::row(key, value));
        rows.map(|row| row.unwrap()).collect::<Vec<_>>()
    };
    let deposit = fixtures::deposit(1, Standing::Included);
    let seen = |facts: &mut Facts| facts.deposits = vec![deposit.clone()];
    let facts = requests.record(&id, 7, Batch::new(), seen).await.unwrap();
    let [row] = wanted("origin").await.try_into().unwrap();
    let is = (
        row.next,
        row.transaction,
        row.wanted.request,
        row.wanted.block,
    );
    let block = deposit.place.hash;
    assert_eq!(is, (7, deposit.transaction.clone(), id, block));
    // The same block again.
    let settled = |facts: &mut Facts| facts.deposits[0].standing = Standing::Final;
    requests
        .record(&id, 8, Batch::new(), settled)
        .await
        .unwrap();
    assert_eq!(wanted("origin").await.len(), 1);

    // A refused commit changes nothing.
    let filled = |facts: &mut Facts| {
        let state = State::Included(fixtures::place(3));
        facts.attempts = vec![fixtures::attempt(Purpose::Fill, state)];
    };
    let seen = Seen {
        id: &id,
        facts: &facts,
    };
    let late = requests.decide(seen, 9, Batch::new(), filled).await;
    assert_eq!(late, Err(RequestsError::Refused));
    assert_eq!(wanted("destination").await, []);
    let facts = requests.facts(&id).await.unwrap();
    let seen = Seen {
        id: &id,
        facts: &facts,
    };
    let decided = requests.decide(seen, 9, Batch::new(), filled).await;
    decided.unwrap();
    let [row] = wanted("destination").await.try_into().unwrap();
    assert_eq!((row.next, row.transaction.as_str()), (9, "0xf111"));
}

mod large {
    use super::*;
    use crate::{
        request::fixtures::{VALID_UNTIL, large},
        store::{check, large::Budget, retention::Sweep},
    };

    /// Two large quotes per caller, and three for all callers without a key.
    const BUDGET: Budget = Budget {
        each: 20_000,
        all: 60_000,
    };
    const SIZE: usize = 8_000;

    /// A large quote from long after the prices of the fixture's others held.
    fn later(number: u8) -> Request {
        let created_at = (VALID_UNTIL + 3_600) * 1_000;
        Request {
            created_at,
            valid_until: created_at / 1_000 + 60,
            ..large(number, SIZE)
        }
    }

    async fn opened(store: &Arc<dyn Store>) -> Requests {
        Requests::open_within(store.clone(), BUDGET).await.unwrap()
    }

    async fn ask(requests: &Requests, request: &Request, by: u64) -> Result<(), RequestsError> {
        requests.insert_by(request, by, Batch::new()).await
    }

    async fn is_known(requests: &Requests, request: &Request) -> bool {
        let found = requests.by_id(&request.id).await.unwrap();
        let led = requests.by_order(&request.order_id).await.unwrap();
        assert_eq!(found, led);
        found.is_some()
    }

    async fn assert_consistent(requests: &Requests) {
        let report = check::check(&**requests.store()).await.unwrap();
        assert_eq!(report.defects, 0, "{report}");
    }

    #[tokio::test]
    async fn large_quotes_have_a_budget_that_survives_a_restart_and_small_ones_none() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let requests = opened(&store).await;
        for number in 1..=2 {
            assert_eq!(ask(&requests, &large(number, SIZE), 1).await, Ok(()));
        }
        // The caller's share is full, before and after a restart; the others' shares are not.
        for requests in [&requests, &opened(&store).await] {
            let refused = ask(requests, &large(3, SIZE), 1).await;
            assert_eq!(refused, Err(RequestsError::TooLarge));
        }
        let requests = opened(&store).await;
        assert_eq!(ask(&requests, &large(4, SIZE), 2).await, Ok(()));
        // The budget is full: large quotes are refused, small ones are not.
        let refused = ask(&requests, &large(5, SIZE), 3).await;
        assert_eq!(refused, Err(RequestsError::TooLarge));
        for (number, by) in [(6, 1), (7, 2), (8, 3)] {
            assert_eq!(ask(&requests, &fixtures::request(number), by).await, Ok(()));
        }
        for number in [1, 2, 4] {
            assert!(is_known(&requests, &large(number, SIZE)).await);
        }
        assert!(!is_known(&requests, &large(5, SIZE)).await);
        assert_consistent(&requests).await;
    }

    #[tokio::test]
    async fn several_large_quotes_have_their_places_together_or_not_at_all() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let requests = opened(&store).await;
        let three = [1, 2, 3].map(|number| large(number, SIZE));
        let refused = requests.insert_all(&three, 1, Batch::new()).await;
        assert_eq!(refused, Err(RequestsError::TooLarge));
        for one in &three {
            assert!(!is_known(&requests, one).await);
        }
        // None of them is counted.
        let two = requests.insert_all(&three[..2], 1, Batch::new()).await;
        assert_eq!(two, Ok(()));
        let refused = ask(&requests, &three[2], 1).await;
        assert_eq!(refused, Err(RequestsError::TooLarge));
        assert_consistent(&requests).await;
    }

    #[tokio::test]
    async fn who_has_most_makes_room_once_his_price_has_held() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let requests = opened(&store).await;
        let origin = large(1, SIZE).origin.network;
        for (number, by) in [(1, 1), (2, 2), (3, 2)] {
            assert_eq!(ask(&requests, &large(number, SIZE), by).await, Ok(()));
        }
        // A quote that was acted on is a request and makes no room.
        let paid = |facts: &mut Facts| facts.deposits.push(fixtures::deposit(1, Standing::Final));
        let acted = large(2, SIZE).id;
        requests
            .record(&acted, 5, Batch::new(), paid)
            .await
            .unwrap();
        let requests = opened(&store).await;
        assert_eq!(ask(&requests, &later(4), 3).await, Ok(()));
        // At these index positions deposits in time may be unseen: nothing makes room.
        for reached in [0, VALID_UNTIL - 1, VALID_UNTIL + 600] {
            requests.reached(&origin, reached);
            let refused = ask(&requests, &later(5), 3).await;
            assert_eq!(refused, Err(RequestsError::TooLarge));
        }
        requests.reached(&origin, VALID_UNTIL + 601);
        assert_eq!(ask(&requests, &later(5), 3).await, Ok(()));
        let known = async |number| is_known(&requests, &large(number, SIZE)).await;
        let forgotten = [known(1).await, known(3).await];
        assert_eq!(forgotten.iter().filter(|known| !**known).count(), 1);
        assert!(known(2).await && known(4).await && known(5).await);
        assert_consistent(&requests).await;
    }

    #[tokio::test]
    async fn a_large_quote_is_forgotten_with_all_its_rows_unless_somebody_deposited() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let requests = opened(&store).await;
        for (number, by) in [(1, 1), (2, 2)] {
            assert_eq!(ask(&requests, &large(number, SIZE), by).await, Ok(()));
        }
        let small = fixtures::request(3);
        assert_eq!(ask(&requests, &small, 1).await, Ok(()));
        let paid = |facts: &mut Facts| facts.deposits.push(fixtures::deposit(1, Standing::Final));
        let acted = large(2, SIZE);
        requests
            .record(&acted.id, 5, Batch::new(), paid)
            .await
            .unwrap();
        let mut sweep = Sweep::of(&requests);
        let origin = acted.origin.network.clone();
        for (days, left) in [(0, true), (86_400, true), (86_401, false)] {
            requests.reached(&origin, VALID_UNTIL + days);
            // At any time.
            let now = (VALID_UNTIL + 2 * 86_400) * 1_000;
            while !sweep.step(&*store, now).await.unwrap().ended {}
            assert_eq!(is_known(&requests, &large(1, SIZE)).await, left, "{days}");
        }
        assert!(is_known(&requests, &acted).await && is_known(&requests, &small).await);
        assert_consistent(&requests).await;
        let rows = store.scan(rows::quote::range(None, 9)).await.unwrap();
        assert_eq!(rows.len(), 1);
        // Deleted quotes stop counting once their price is over.
        let requests = opened(&store).await;
        for number in 4..=6 {
            assert_eq!(
                ask(&requests, &later(number), u64::from(number)).await,
                Ok(())
            );
        }
    }
}
