use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use alloy::primitives::U256;
use tokio::sync::Semaphore;

use super::*;
use crate::price::feed::timely;

const MAX_AGE: u64 = 100;

/// Answers what stands in `says`, once `gate` lets it.
struct Scripted {
    says: Mutex<Result<Observation, Doubt>>,
    asked: AtomicUsize,
    gate: Semaphore,
}

#[async_trait]
impl Feed for Arc<Scripted> {
    async fn read(&self, _: u64) -> Result<Observation, Doubt> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let _open = self.gate.acquire().await.unwrap();
        self.says.lock().unwrap().clone()
    }

    fn believable(&self, observed: &Observation, now: u64) -> bool {
        timely(observed.at, MAX_AGE, now)
    }
}

fn observed(usd: u64, at: u64) -> Result<Observation, Doubt> {
    let usd = U256::from(usd);
    Ok(Observation { usd, at, swing: 0 })
}

/// Without its swing.
fn plain(answer: Result<Observation, Doubt>) -> Result<Observation, Doubt> {
    answer.map(|observed| Observation {
        swing: 0,
        ..observed
    })
}

fn scripted(gates: usize) -> (Arc<Scripted>, Arc<Cached>) {
    let feed = Arc::new(Scripted {
        says: Mutex::new(observed(7, 1000)),
        asked: AtomicUsize::new(0),
        gate: Semaphore::new(gates),
    });
    let cached = Cached::new(Box::new(feed.clone()));
    (feed, Arc::new(cached))
}

impl Scripted {
    fn says(&self, what: Result<Observation, Doubt>) {
        *self.says.lock().unwrap() = what;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn answers_stay_fresh_and_outlive_failures_up_to_their_age() {
    let (feed, cached) = scripted(1);
    assert_eq!(cached.read(1000).await, observed(7, 1000));
    feed.says(observed(8, 1004));
    assert_eq!(cached.read(1004).await, observed(7, 1000));
    assert_eq!(feed.asked(), 1);
    assert_eq!(plain(cached.read(1005).await), observed(8, 1004));
    cached.accept(&observed(8, 1004).unwrap(), 1005);
    feed.says(Err(Doubt::Senseless));
    assert_eq!(plain(cached.read(1010).await), observed(8, 1004));
    assert_eq!(plain(cached.read(1104).await), observed(8, 1004));
    assert_eq!(cached.read(1110).await, Err(Doubt::Senseless));
}

#[tokio::test]
async fn price_that_grew_too_old_is_gone_within_its_freshness() {
    let (feed, cached) = scripted(1);
    assert_eq!(cached.read(1099).await, observed(7, 1000));
    feed.says(Err(Doubt::Senseless));
    assert_eq!(cached.read(1100).await, observed(7, 1000));
    assert_eq!(cached.read(1101).await, Err(Doubt::Senseless));
}

#[tokio::test]
async fn failure_is_remembered_as_long_as_an_answer() {
    let (feed, cached) = scripted(1);
    feed.says(Err(Doubt::Senseless));
    for now in [1000, 1001, 1004] {
        assert_eq!(cached.read(now).await, Err(Doubt::Senseless));
    }
    assert_eq!(feed.asked(), 1);
    feed.says(observed(7, 1000));
    assert_eq!(cached.read(1005).await, observed(7, 1000));
}

#[tokio::test]
async fn many_who_ask_at_once_are_one_question() {
    let (feed, cached) = scripted(0);
    let readers: Vec<_> = (0..10)
        .map(|_| {
            tokio::spawn({
                let cached = cached.clone();
                async move { cached.read(1000).await }
            })
        })
        .collect();
    feed.gate.add_permits(1);
    for reader in readers {
        assert_eq!(reader.await.unwrap(), observed(7, 1000));
    }
    assert_eq!(feed.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn while_one_asks_again_the_others_wait_for_a_second_and_have_the_last_answer() {
    let (feed, cached) = scripted(1);
    assert_eq!(cached.read(1000).await, observed(7, 1000));
    feed.says(observed(8, 1006));
    feed.gate.forget_permits(1);
    let ask = || {
        let cached = cached.clone();
        tokio::spawn(async move { cached.read(1006).await })
    };
    let (asking, waiting) = (ask(), ask());
    while feed.asked() < 2 {
        tokio::task::yield_now().await;
    }
    let began = Instant::now();
    assert_eq!(waiting.await.unwrap(), observed(7, 1000));
    assert_eq!(began.elapsed(), PATIENCE);
    let waiting = ask();
    tokio::task::yield_now().await;
    feed.gate.add_permits(1);
    for answer in [asking, waiting] {
        assert_eq!(plain(answer.await.unwrap()), observed(8, 1006));
    }
    assert_eq!(feed.asked(), 2);
}

#[tokio::test]
async fn one_who_gives_up_leaves_the_turn_to_the_next() {
    let (feed, cached) = scripted(0);
    let first = tokio::spawn({
        let cached = cached.clone();
        async move { cached.read(1000).await }
    });
    while feed.asked() < 1 {
        tokio::task::yield_now().await;
    }
    first.abort();
    assert!(first.await.is_err());
    feed.gate.add_permits(1);
    assert_eq!(cached.read(1000).await, observed(7, 1000));
}

#[tokio::test]
async fn answers_of_the_last_minutes_say_how_restless_a_price_is() {
    let (feed, cached) = scripted(1);
    let swing = async |now: u64| {
        let observed = cached.read(now).await.unwrap();
        cached.accept(&observed, now);
        observed.swing
    };
    for (usd, at, wanted) in [
        (1_000, 1_000, 0),
        (1_010, 1_010, 10_000),
        (1_005, 1_020, 10_000),
        // Ten minutes later the first ones are forgotten.
        (1_005, 1_605, 4_975),
        (1_005, 1_625, 0),
    ] {
        feed.says(observed(usd, at));
        assert_eq!(swing(at).await, wanted, "{at}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_asks_anew_is_told_nothing_of_before() {
    let (feed, cached) = scripted(100);
    assert_eq!(cached.read(1000).await, observed(7, 1000));
    feed.says(observed(8, 1001));
    let began = Instant::now();
    let anew = || cached.anew(began, 1000);
    // Together they are one question, a second after the one before.
    for answer in futures::future::join_all((0..10).map(|_| anew())).await {
        assert_eq!(plain(answer), observed(8, 1001));
    }
    assert_eq!((feed.asked(), began.elapsed()), (2, APART));
    assert_eq!(plain(anew().await), observed(8, 1001));
    assert_eq!(feed.asked(), 2);
    // Many who ask anew again and again ask once a second.
    let began = Instant::now();
    for asked in 1..=10 {
        let since = Instant::now();
        let answers = (0..10).map(|_| cached.anew(since, 1002));
        futures::future::join_all(answers).await;
        assert_eq!(feed.asked(), 2 + asked);
    }
    assert_eq!(began.elapsed(), 10 * APART);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_wait_has_asked_all_the_same() {
    let (feed, cached) = scripted(0);
    for _ in 0..9 {
        let wait = Duration::from_millis(400);
        let answer = cached.anew(Instant::now(), 1000);
        assert!(tokio::time::timeout(wait, answer).await.is_err());
    }
    assert_eq!(feed.asked(), 4);
}

#[tokio::test(start_paused = true)]
async fn who_asks_anew_hears_of_failures_as_others_do() {
    let (feed, cached) = scripted(100);
    feed.says(Err(Doubt::Senseless));
    assert_eq!(cached.read(1000).await, Err(Doubt::Senseless));
    let began = Instant::now();
    assert_eq!(cached.anew(began, 1000).await, Err(Doubt::Senseless));
    feed.says(observed(7, 1000));
    assert_eq!(cached.anew(Instant::now(), 1001).await, observed(7, 1000));
    cached.accept(&observed(7, 1000).unwrap(), 1001);
    feed.says(Err(Doubt::Senseless));
    assert_eq!(cached.anew(Instant::now(), 1002).await, observed(7, 1000));
    assert_eq!(feed.asked(), 4);
}

/// The feed lies once: whoever asked believed it not, so that nobody later is charged for it.
#[tokio::test]
async fn what_was_refused_moves_nothing_later() {
    let (feed, cached) = scripted(1);
    let read = async |usd: u64, at: u64| {
        feed.says(observed(usd, at));
        cached.read(at).await.unwrap()
    };
    let first = read(1_000, 1_000).await;
    cached.accept(&first, 1_000);
    let lie = read(2_000, 1_010).await;
    assert_eq!(lie.swing, 1_000_000);
    assert_eq!(read(1_000, 1_020).await.swing, 0);
    // Nor does it stand in for the feed when that is silent.
    read(2_000, 1_030).await;
    feed.says(Err(Doubt::Senseless));
    assert_eq!(plain(cached.read(1_035).await), observed(1_000, 1_000));
    assert_eq!(cached.read(1_101).await, Err(Doubt::Senseless));
    // What is believed in the end counts.
    let moved = read(2_000, 1_110).await;
    cached.accept(&moved, 1_110);
    assert_eq!(read(1_000, 1_120).await.swing, 1_000_000);
}
