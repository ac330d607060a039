//! The worker over a scripted network, in paused time.

mod prune;
mod rig;

use std::time::Duration;

use self::rig::{Rig, S, hook};
use super::{
    admin::AdminError,
    schedule::{BACKLOG, LONGEST, Reply},
    sign,
};
use crate::{
    integrator::Key,
    store::{
        Batch,
        rows::{self, DEAD, DELIVERY, delivery::Delivery},
    },
};

fn ok() -> (u64, Reply) {
    (5, Reply::Status(200, None))
}

fn status(status: u16) -> (u64, Reply) {
    (5, Reply::Status(status, None))
}

fn hanging() -> (u64, Reply) {
    (10 * S, Reply::Failed("timed out".into()))
}

#[tokio::test(start_paused = true)]
async fn a_delivery_is_tried_with_growing_pauses_and_one_id_until_it_succeeds() {
    let rig = Rig::start(|_, before| if before < 5 { status(500) } else { ok() }).await;
    rig.app("app").await;
    rig.happen("app", 1).await;
    let calls = rig.calls(6).await;
    let seconds: Vec<_> = calls.iter().map(|call| (call.at + S / 2) / S).collect();
    assert_eq!(seconds, [0, 10, 30, 70, 150, 310]);
    assert!(
        calls
            .iter()
            .all(|call| call.id == 1 && call.body == calls[0].body)
    );
    rig.settled().await;
    assert_eq!(rig.rows(DEAD).await, 0);
    let endpoints = rig.handle.list(None).await.unwrap();
    assert_eq!((endpoints[0].waiting, endpoints[0].dead), (0, 0));
    assert!(endpoints[0].last_success > endpoints[0].last_failure.as_ref().map(|(at, _)| *at));
}

#[tokio::test(start_paused = true)]
async fn after_ten_retries_it_is_dead_with_its_reason_and_can_be_sent_again() {
    let rig = Rig::start(|_, before| if before < 11 { status(500) } else { ok() }).await;
    rig.app("app").await;
    rig.happen("app", 1).await;
    rig.calls(11).await;
    rig.settled().await;
    let shown = rig.handle.find(1).await.unwrap();
    let dead = shown.dead.unwrap();
    assert_eq!(dead.why, "11 tries, the last: status 500");
    assert_eq!(dead.delivery.tries.len(), 11);
    assert!(
        shown
            .body
            .starts_with(r#"{"event":"request.status.updated""#)
    );
    let foreign = rig.handle.replay(1, Some("other")).await;
    assert!(matches!(foreign, Err(AdminError::Foreign(1, _))));
    assert!(matches!(
        rig.handle.replay(9, None).await,
        Err(AdminError::NoEvent(9))
    ));
    assert_eq!(rig.handle.replay(1, Some("app")).await.unwrap(), "app");
    let calls = rig.calls(12).await;
    assert_eq!((calls[11].id, &calls[11].body), (1, &calls[0].body));
    rig.settled().await;
    assert_eq!(rig.rows(DEAD).await, 0);
    // A delivered event can be replayed too.
    rig.handle.replay(1, None).await.unwrap();
    rig.calls(13).await;
}

#[tokio::test(start_paused = true)]
async fn all_that_is_dead_is_sent_again_at_once() {
    let rig = Rig::start(|_, before| if before < 3 { status(410) } else { ok() }).await;
    for label in ["app", "other"] {
        rig.app(label).await;
        rig.happen(label, 3).await;
    }
    rig.calls(6).await;
    rig.settled().await;
    assert_eq!(rig.rows(DEAD).await, 6);
    assert_eq!(rig.handle.replay_dead(Some("app")).await.unwrap(), 3);
    rig.calls(9).await;
    assert_eq!(rig.handle.replay_dead(None).await.unwrap(), 3);
    rig.calls(12).await;
    rig.settled().await;
    assert_eq!(rig.rows(DEAD).await, 0);
    assert_eq!(rig.handle.replay_dead(None).await.unwrap(), 0);
    let unknown = rig.handle.replay_dead(Some("nobody")).await;
    assert!(matches!(unknown, Err(AdminError::Unknown(_))));
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_quiet_for_the_whole_endpoint_and_never_longer_than_an_hour() {
    let asks = |at| (5, Reply::Status(503, Some(at)));
    let rig = Rig::start(move |call, before| match before {
        0 => asks(call.now + 90 * S),
        1 => asks(call.now + 100 * LONGEST),
        _ => ok(),
    })
    .await;
    rig.app("app").await;
    rig.happen("app", 1).await;
    rig.calls(1).await;
    rig.happen("app", 1).await;
    let calls = rig.calls(3).await;
    assert_eq!((calls[1].at + S / 2) / S, 90);
    assert_eq!((calls[2].at - calls[1].at + S / 2) / S, LONGEST / S);
    rig.calls(4).await;
    rig.settled().await;
}

#[tokio::test(start_paused = true)]
async fn every_try_is_signed_anew_with_the_key_of_then() {
    let rig = Rig::start(|_, before| if before < 2 { status(401) } else { ok() }).await;
    rig.app("app").await;
    rig.happen("app", 1).await;
    rig.calls(1).await;
    let key = Key {
        digest: [9; 32],
        created_at: 1,
        expires_at: None,
    };
    rig.change("app", move |app| app.keys.push(key.clone()))
        .await;
    let calls = rig.calls(3).await;
    let digests = [[7; 32], [9; 32], [9; 32]];
    for (call, digest) in calls.iter().zip(digests) {
        let signed = sign::signature(&digest, call.now / 1_000, &call.body);
        assert_eq!(call.timestamp, call.now / 1_000);
        assert_eq!(call.signature, signed);
    }
    assert_ne!(calls[1].signature, calls[2].signature);
}

#[tokio::test(start_paused = true)]
async fn no_number_of_sick_endpoints_delays_a_healthy_one() {
    let rig = Rig::start(|call, _| match call.host.split('-').next() {
        Some("hanging") => hanging(),
        Some("dead") => (0, Reply::Failed("cannot connect".into())),
        Some("moved") => status(301),
        Some("gone") => status(410),
        Some("slow") => (9 * S, Reply::Status(200, None)),
        _ => ok(),
    })
    .await;
    for kind in ["hanging", "slow", "dead", "moved", "gone"] {
        for number in 0..100 {
            let label = format!("{kind}-{number}");
            rig.app(&label).await;
            rig.happen(&label, 3).await;
        }
    }
    rig.calls(600).await;
    tokio::time::advance(Duration::from_secs(15)).await;
    rig.app("healthy").await;
    let before = rig.elapsed();
    rig.happen("healthy", 60).await;
    let calls = rig.calls_of("healthy", 60).await;
    let last = calls.iter().map(|call| call.at).max().unwrap();
    assert!(last - before < 250, "{} ms", last - before);
}

#[tokio::test(start_paused = true)]
async fn what_was_under_way_when_the_daemon_died_is_sent_again() {
    let mut rig = Rig::start(|_, before| if before == 0 { hanging() } else { ok() }).await;
    rig.app("app").await;
    rig.happen("app", 2).await;
    rig.calls(1).await;
    rig.crash();
    assert_eq!(rig.rows(DELIVERY).await, 2);
    rig.restart().await;
    let calls = rig.calls(3).await;
    assert_eq!((calls[0].id, calls[1].id, calls[2].id), (1, 1, 2));
    rig.settled().await;
}

#[tokio::test(start_paused = true)]
async fn an_orderly_end_records_what_comes_soon() {
    let mut rig = Rig::start(|_, _| (S, Reply::Status(200, None))).await;
    rig.app("app").await;
    rig.happen("app", 1).await;
    rig.calls(1).await;
    rig.stop().await;
    assert_eq!(rig.rows(DELIVERY).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_backlog_that_does_not_fit_into_memory_is_delivered_once_each() {
    let mut rig = Rig::start(|_, _| ok()).await;
    rig.app("app").await;
    rig.stop().await;
    rig.happen("app", 3_000).await;
    rig.restart().await;
    let calls = rig.calls(3_000).await;
    let mut ids: Vec<_> = calls.iter().map(|call| call.id).collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq(1..=3_000));
    rig.settled().await;
    rig.stop().await;
    rig.restart().await;
    rig.happen("app", 1).await;
    assert_eq!(rig.calls(3_001).await[3_000].id, 3_001);
}

#[tokio::test(start_paused = true)]
async fn only_who_has_an_endpoint_is_told_and_nobody_of_others_events() {
    let rig = Rig::start(|_, _| ok()).await;
    rig.app("deaf").await;
    rig.change("deaf", |app| app.webhook = None).await;
    rig.app("app").await;
    rig.happen("deaf", 1).await;
    rig.happen("unknown", 1).await;
    rig.happen("", 1).await;
    rig.happen("app", 1).await;
    let calls = rig.calls(1).await;
    assert_eq!((calls[0].id, &*calls[0].host), (4, "app"));
    rig.settled().await;
    let refused = rig.handle.replay(1, None).await;
    assert!(matches!(refused, Err(AdminError::NoEndpoint(label)) if label == "deaf"));
    let refused = rig.handle.replay(3, None).await;
    assert!(matches!(refused, Err(AdminError::Keyless(3))));
    let listed = rig.handle.list(None).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].label, "app");
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_sent_is_dead_at_once_and_never_leaves() {
    let rig = Rig::start(|_, _| status(500)).await;
    let cases = [
        ("revoked", "the key is revoked or expired"),
        ("removed", "the endpoint was removed"),
        ("injected", "the value of header x-a is not visible ASCII"),
        ("private", "10.0.0.1 is not a public address"),
        ("plain", "only https is called"),
    ];
    for (label, _) in cases {
        rig.app(label).await;
        rig.happen(label, 1).await;
    }
    rig.calls(5).await;
    rig.change("revoked", |app| app.revoked_at = Some(1)).await;
    rig.change("removed", |app| app.webhook = None).await;
    let inject = |app: &mut crate::integrator::Integrator| {
        let mut hook = hook("injected");
        hook.headers
            .insert("x-a".into(), "b\r\nX-Event-Id: 9".into());
        app.webhook = Some(hook);
    };
    rig.change("injected", inject).await;
    for (label, url) in [("private", "https://10.0.0.1/"), ("plain", "http://plain/")] {
        let set = move |app: &mut crate::integrator::Integrator| {
            app.webhook.as_mut().unwrap().url = url.parse().unwrap();
        };
        rig.change(label, set).await;
    }
    rig.settled().await;
    for (number, (label, why)) in (1..).zip(cases) {
        let key = rows::dead::key(label, number);
        let row = rig.store.read(&key).await.unwrap().unwrap();
        assert_eq!(rows::dead::Dead::decode(&row).unwrap().why, why);
    }
    assert_eq!(rig.calls(5).await.len(), 5);
    // After a repair by the operator it can be replayed.
    rig.change("removed", |app| app.webhook = Some(hook("removed")))
        .await;
    rig.handle.replay(2, None).await.unwrap();
    assert_eq!(rig.calls(6).await[5].id, 2);
    let waiting = rig.handle.replay(2, None).await;
    assert!(matches!(waiting, Err(AdminError::Waiting(2))));
}

#[tokio::test(start_paused = true)]
async fn a_test_is_signed_and_is_no_event() {
    let rig = Rig::start(|call, _| {
        if call.host == "app" {
            ok()
        } else {
            status(404)
        }
    })
    .await;
    rig.app("app").await;
    let tested = rig.handle.test("app").await.unwrap();
    assert!(tested.delivered);
    assert_eq!((tested.said.as_str(), tested.took), ("status 200", 5));
    let calls = rig.calls(1).await;
    let signed = sign::signature(&[7; 32], calls[0].now / 1_000, &calls[0].body);
    assert_eq!((calls[0].id, &calls[0].signature), (0, &signed));
    let body: serde_json::Value = serde_json::from_str(&calls[0].body).unwrap();
    assert_eq!(body["event"], "request.status.updated");
    assert_eq!(rig.rows(DELIVERY).await, 0);
    rig.app("other").await;
    assert!(!rig.handle.test("other").await.unwrap().delivered);
    assert!(matches!(
        rig.handle.test("nobody").await,
        Err(AdminError::Unknown(_))
    ));
    rig.change("app", |app| app.webhook = None).await;
    assert!(matches!(
        rig.handle.test("app").await,
        Err(AdminError::NoEndpoint(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn what_is_a_day_old_is_given_up_and_told() {
    let asks = |at| (5, Reply::Status(503, Some(at)));
    let rig = Rig::start(move |call, _| match call.at < 26 * LONGEST {
        true => asks(call.now + LONGEST),
        false => ok(),
    })
    .await;
    rig.app("app").await;
    rig.happen("app", 40).await;
    tokio::time::sleep(Duration::from_millis(25 * LONGEST + 60 * S)).await;
    // One try per hour; then nothing is owed.
    let tried = rig.calls(20).await.len();
    assert!(tried < 30, "{tried}");
    assert_eq!((rig.rows(DELIVERY).await, rig.rows(DEAD).await), (0, 40));
    let shown = rig.handle.find(40).await.unwrap();
    assert_eq!(shown.dead.unwrap().why, "older than 24 hours");
    tokio::time::sleep(Duration::from_millis(2 * LONGEST)).await;
    rig.happen("app", 1).await;
    let calls = rig.calls(tried + 1).await;
    let last = calls.last().unwrap();
    assert_eq!((last.id, last.given_up), (41, Some(40)));
    // A replay has a day of its own.
    assert_eq!(rig.handle.replay(1, None).await.unwrap(), "app");
    rig.calls(tried + 2).await;
    rig.settled().await;
    assert_eq!(rig.rows(DEAD).await, 39);
}

#[tokio::test(start_paused = true)]
async fn beyond_the_backlog_events_are_given_up_at_once() {
    let mut rig = Rig::start(|_, _| hanging()).await;
    rig.app("app").await;
    rig.app("other").await;
    rig.stop().await;
    rig.happen("app", 2).await;
    rig.happen("other", 1).await;
    let context = rig.context();
    let full = ["app".into()].into();
    let fanned = super::fan::further(&context, 0, &full).await.unwrap();
    assert_eq!(fanned.owed, [("other".to_owned(), 3)]);
    assert_eq!(fanned.given_up.len(), 2);
    assert_eq!((rig.rows(DELIVERY).await, rig.rows(DEAD).await), (1, 2));
    let shown = rig.handle.find(1).await.unwrap();
    assert_eq!(shown.dead.unwrap().why, "10000 deliveries wait already");
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_wait_for_an_endpoint_and_no_more() {
    let mut rig = Rig::start(|_, _| hanging()).await;
    rig.app("app").await;
    rig.stop().await;
    let one = Delivery {
        due: u64::MAX,
        ..Delivery::fresh((rig.context().clock)())
    };
    let one = one.encode().unwrap();
    let waiting = (1..BACKLOG).fold(Batch::new(), |batch, number| {
        batch.put(rows::delivery::key("app", 1_000_000 + number), one.clone())
    });
    rig.store.commit(waiting).await.unwrap();
    rig.restart().await;
    for (owed, given_up) in [(10_000, 0), (10_000, 1), (10_000, 2)] {
        rig.happen("app", 1).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let rows = (rig.rows(DELIVERY).await, rig.rows(DEAD).await);
        assert_eq!(rows, (owed, given_up));
    }
}

#[test]
fn a_queue_knows_how_many_are_owed() {
    let mut queue = super::queue::Queue::default();
    queue.left(1);
    queue.left(2);
    queue.add(3, 0, 0);
    assert_eq!(queue.owed(), 3);
    queue.remove(3);
    queue.remove(1);
    assert_eq!(queue.owed(), 1);
}
