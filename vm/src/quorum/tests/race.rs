//! Contradictions that a race explains, and others that only look like one.

use std::{collections::VecDeque, sync::Mutex};

use super::*;

type Said = VecDeque<Result<Transaction, ReadError>>;

/// Providers that give these answers about transactions in order, then repeat the last; two must agree.
fn answering(all: Vec<Vec<Result<Transaction, ReadError>>>) -> Quorum {
    fn in_turn(own: &Script<Mutex<Said>>) -> Result<Transaction, ReadError> {
        let mut answers = own.lock().unwrap();
        match answers.len() {
            0 | 1 => answers.front().cloned().unwrap(),
            _ => answers.pop_front().unwrap(),
        }
    }
    let providers = all.into_iter().map(|answers| {
        let own = Mutex::new(answers.into());
        let answers = Answers {
            transaction: Some(|own, _, _| said(in_turn(own))),
            ..Answers::default()
        };
        Script::at(100).answering(own, answers).provider("node")
    });
    Quorum::new(&ChainId::new("ethereum"), providers.collect(), 2).unwrap()
}

fn found() -> Result<Transaction, ReadError> {
    Ok(honest())
}

fn missing() -> Result<Transaction, ReadError> {
    Ok(Transaction::Missing)
}

fn down() -> Result<Transaction, ReadError> {
    Err(ReadError::Unavailable("down".into()))
}

#[tokio::test(start_paused = true)]
async fn who_is_asked_again_before_it_is_judged() {
    let contradiction = Duration::from_secs(60);
    let doubt = Duration::from_secs(10);
    let cases = [
        ("caught up", vec![missing(), found()], 0, Duration::ZERO),
        ("has not got it", vec![missing(); 2], 1, Duration::ZERO),
        (
            "then forges",
            vec![missing(), Ok(forged())],
            1,
            contradiction,
        ),
        ("then is silent", vec![missing(), down()], 1, doubt),
        // Only answers that a race can explain are asked for again.
        ("forges once", vec![Ok(forged()), found()], 1, contradiction),
        (
            "failed once",
            vec![
                Ok(Transaction::Failed(testing::failure(testing::block(90, 0)))),
                found(),
            ],
            1,
            contradiction,
        ),
    ];
    for (name, answers, disputed, aside) in cases {
        for position in 0..3 {
            let mut providers = vec![vec![found()], vec![found()]];
            providers.insert(position, answers.clone());
            let quorum = answering(providers);
            assert_eq!(read(&quorum).await, found(), "{name}");
            settle().await;
            let health = &quorum.health()[position];
            assert_eq!(health.set_aside, !aside.is_zero(), "{name}");
            assert_eq!(health.disputes, disputed, "{name}");
            tokio::time::advance(aside.saturating_sub(Duration::from_secs(1))).await;
            assert_eq!(
                quorum.health()[position].set_aside,
                !aside.is_zero(),
                "{name}"
            );
            tokio::time::advance(Duration::from_secs(2)).await;
            assert!(!quorum.health()[position].set_aside, "{name}");
            assert_eq!(disputes(&quorum).iter().sum::<u64>(), health.disputes);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn first_to_know_a_transaction_is_no_liar() {
    let late = || vec![missing(), found()];
    let quorum = answering(vec![late(), vec![found()], late()]);
    let first = read(&quorum).await;
    assert!(first == missing() || first == found());
    settle().await;
    assert_eq!(disputes(&quorum), [0, 0, 0]);
    // A provider alone with an answer that the others lack: an archive, or a liar.
    let quorum = answering(vec![vec![missing()], vec![Ok(forged())], vec![missing()]]);
    assert_eq!(read(&quorum).await, missing());
    settle().await;
    assert_eq!(disputes(&quorum), [0, 1, 0]);
    assert!(!quorum.health()[1].set_aside);
}

#[tokio::test(start_paused = true)]
async fn asking_again_never_makes_an_agreement() {
    // A second question would have found an agreement, but it is not asked.
    let turning = || vec![missing(), found()];
    for providers in [
        vec![turning(), vec![found()], vec![down()]],
        vec![turning(), vec![found()], vec![Ok(forged())]],
        vec![vec![Ok(forged()), found()], vec![found()], vec![down()]],
    ] {
        let quorum = answering(providers);
        lost(read(&quorum).await);
        settle().await;
        assert!(quorum.health().iter().all(|health| !health.set_aside));
    }
}

#[tokio::test(start_paused = true)]
async fn provider_that_does_not_answer_the_second_question_is_paused() {
    let script = Script::at(100);
    script.put(&tx(), Transaction::Missing);
    let (scripts, _) = three();
    let quorum = quorum(&[script.clone(), scripts[0].clone(), scripts[1].clone()], 2);
    let head = quorum.head().await.unwrap();
    let transaction = tx();
    let asked = quorum.transaction(&transaction, &head);
    assert_eq!(asked.await, found());
    script.hang(true);
    settle().await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(quorum.health()[0].set_aside);
}

#[tokio::test(start_paused = true)]
async fn block_that_a_laggard_has_not_reached_is_no_dispute() {
    let (scripts, quorum) = three();
    scripts[0].set_head(98);
    let tip = testing::block(100, 0);
    assert_eq!(quorum.contains(&tip).await, Ok(true));
    settle().await;
    // A provider that is behind says nothing about the block, unless all are behind.
    scripts[1].set_head(99);
    lost(quorum.contains(&tip).await);
    settle().await;
    scripts[2].set_head(99);
    assert_eq!(quorum.contains(&tip).await, Ok(false));
    settle().await;
    scripts[1].fail(Some(ReadError::Unavailable("down".into())));
    lost(quorum.contains(&tip).await);
    assert_eq!(disputes(&quorum), [0, 0, 0]);
    // One liar besides does not change that.
    let (scripts, quorum) = three();
    scripts[0].fork(95, 7);
    scripts[1].set_head(98);
    lost(quorum.contains(&tip).await);
    // Another block at that height does.
    let (scripts, quorum) = three();
    scripts[0].fork(95, 7);
    assert_eq!(quorum.contains(&tip).await, Ok(true));
    settle().await;
    assert_eq!(disputes(&quorum), [1, 0, 0]);
}
