use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use tokio::time::{advance, sleep, timeout};

use super::{super::fakes::honest, *};
use crate::testing::{Answers, Script};

/// Counts, and takes its time.
async fn slow(asked: &AtomicUsize) -> Result<FeeRate, ReadError> {
    asked.fetch_add(1, Relaxed);
    sleep(Duration::from_millis(10)).await;
    Ok(honest().rate)
}

#[tokio::test(start_paused = true)]
async fn one_question_about_a_recent_rate_serves_all_who_wait() {
    let answers: Answers<Arc<AtomicUsize>> = Answers {
        rate: Some(|own| Box::pin(slow(own))),
        ..Answers::default()
    };
    let asked = Arc::new(AtomicUsize::new(0));
    let provider = Script::at(1).answering(asked.clone(), answers).trading();
    let failover = Failover::new("chain", 1, vec![provider]).unwrap();
    let (one, other) = tokio::join!(failover.recent_rate(), failover.recent_rate());
    assert_eq!((one, other), (Ok(honest().rate), Ok(honest().rate)));
    assert_eq!(failover.recent_rate().await, Ok(honest().rate));
    assert_eq!(asked.load(Relaxed), 1);
    // Who asked first and goes away takes the answer from nobody.
    advance(RECENT).await;
    let gone = timeout(Duration::from_millis(5), failover.recent_rate());
    let (gone, said) = tokio::join!(gone, failover.recent_rate());
    assert_eq!((gone.is_err(), said), (true, Ok(honest().rate)));
    assert_eq!(asked.load(Relaxed), 2);
    // Where nobody waits any more it is asked anew, and always where the rate is to be paid.
    advance(RECENT).await;
    let gone = timeout(Duration::from_millis(5), failover.recent_rate());
    assert!(gone.await.is_err());
    assert_eq!(failover.recent_rate().await, Ok(honest().rate));
    assert_eq!(failover.rate().await, Ok(honest().rate));
    assert_eq!(asked.load(Relaxed), 5);
}

#[tokio::test(start_paused = true)]
async fn whoever_has_a_key_waits_for_no_question_of_strangers() {
    tokio::task_local!(static KEYED: bool);
    let answers: Answers<Arc<AtomicUsize>> = Answers {
        rate: Some(|own| {
            // As a provider whose budget for strangers is used up.
            let keyed = KEYED.try_with(|keyed| *keyed).unwrap_or_default();
            Box::pin(async move {
                let said = slow(own).await;
                if keyed {
                    said
                } else {
                    Err(ReadError::Unavailable("strangers".into()))
                }
            })
        }),
        ..Answers::default()
    };
    let asked = Arc::new(AtomicUsize::new(0));
    let provider = Script::at(1).answering(asked.clone(), answers).trading();
    let failover = Failover::new("chain", 1, vec![provider]).unwrap();
    let failover = failover.with_keys(|| KEYED.try_with(|keyed| *keyed).unwrap_or_default());
    let by = |keyed| KEYED.scope(keyed, failover.recent_rate());
    let (stranger, one, other) = tokio::join!(by(false), by(true), by(true));
    assert!(stranger.is_err(), "{stranger:?}");
    assert_eq!((one, other), (Ok(honest().rate), Ok(honest().rate)));
    assert_eq!(asked.load(Relaxed), 2);
}
