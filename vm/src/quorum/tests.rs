#![allow(clippy::unwrap_used, clippy::wildcard_imports, reason = "tests")]

mod heads;
mod race;
mod recorded;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::*;
use crate::{
    testing::{self, Answers, Script, receipt, said},
    types::{EvmAddress, Payment, PaymentKind, U256},
};

fn tx() -> TxRef {
    TxRef {
        text: "0x77".into(),
        bytes: vec![0x77].into(),
        hint: None,
    }
}

fn honest() -> Transaction {
    Transaction::Succeeded(receipt(testing::block(90, 0)))
}

fn forged() -> Transaction {
    let address = Address::from_parts("0xee", EvmAddress::repeat_byte(0xee).0);
    let mut forged = receipt(testing::block(90, 0));
    forged.payments.push(Payment {
        index: 1,
        kind: PaymentKind::Transfer,
        recipient: address.clone(),
        currency: address,
        amount: U256::from(1),
    });
    Transaction::Succeeded(forged)
}

/// Three providers at block 100 that know the transaction; two must agree.
fn three() -> ([Arc<Script>; 3], Quorum) {
    let scripts = [0, 1, 2].map(|_| Script::at(100));
    for script in &scripts {
        script.put(&tx(), honest());
    }
    let quorum = quorum(&scripts, 2);
    (scripts, quorum)
}

fn quorum(scripts: &[Arc<Script>], required: usize) -> Quorum {
    let providers = scripts
        .iter()
        .map(|script| script.provider("node"))
        .collect();
    Quorum::new(&ChainId::new("ethereum"), providers, required).unwrap()
}

async fn read(quorum: &Quorum) -> Result<Transaction, ReadError> {
    let head = quorum.head().await?;
    quorum.transaction(&tx(), &head).await
}

fn lost<T: std::fmt::Debug>(answer: Result<T, ReadError>) {
    assert!(matches!(answer, Err(ReadError::Quorum(_))), "{answer:?}");
}

fn disputes(quorum: &Quorum) -> Vec<u64> {
    quorum
        .health()
        .iter()
        .map(|health| health.disputes)
        .collect()
}

/// Lets background tasks finish.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// An answer whose every operation ends only once another task of the only worker has run.
struct Huge {
    kind: u8,
    alone: Arc<AtomicUsize>,
}

impl Huge {
    fn work(&self) {
        let (done, other) = std::sync::mpsc::channel();
        tokio::spawn(async move { done.send(()) });
        // Limits the wait in case of a failure.
        if other.recv_timeout(Duration::from_secs(20)).is_err() {
            self.alone.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Clone for Huge {
    fn clone(&self) -> Self {
        self.work();
        let (kind, alone) = (self.kind, self.alone.clone());
        Self { kind, alone }
    }
}

impl crate::Large for Huge {
    fn is_large(&self) -> bool {
        true
    }

    fn clear(&mut self) {
        self.work();
    }
}

impl super::recorded::Recorded for Huge {
    fn shown(&self) -> evidence::Answer {
        evidence::Answer::Sequence(self.kind.into())
    }

    fn of_evidence(_: evidence::Answer) -> Option<Self> {
        None
    }
}

impl Answer for Huge {
    fn same(&self, other: &Self) -> bool {
        self.work();
        self.kind == other.kind
    }

    fn against(&self, _: &Self) -> Dissent {
        Dissent::Race
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn large_answers_keep_no_other_task_from_running() {
    // A different answer before, between or after those that agree; and no agreement.
    for kinds in [[1, 2, 2], [2, 1, 2], [2, 2, 1], [1, 2, 3]] {
        let (_, quorum) = three();
        let alone = Arc::new(AtomicUsize::new(0));
        let (turn, counter) = (Arc::new(AtomicUsize::new(0)), alone.clone());
        let voting = tokio::spawn(async move {
            let answer = quorum.vote(
                "huge",
                || Question::Head { fresh: false },
                move |_| {
                    let turn = turn.fetch_add(1, Ordering::Relaxed) % kinds.len();
                    let (kind, alone) = (kinds[turn], counter.clone());
                    Box::pin(async move {
                        for _ in 0..turn {
                            tokio::task::yield_now().await;
                        }
                        Ok(Huge { kind, alone })
                    })
                },
            );
            answer.await.map(|huge: Huge| huge.kind)
        });
        let agreed = voting.await.unwrap();
        assert_eq!(agreed.is_ok(), kinds != [1, 2, 3], "{kinds:?}");
        settle().await;
        assert_eq!(alone.load(Ordering::Relaxed), 0, "{kinds:?}");
    }
}

#[test]
fn required_votes_must_be_possible() {
    assert_eq!([1, 2, 3, 4, 5].map(majority), [1, 2, 2, 3, 3]);
    for required in [0, 2] {
        let providers = vec![Script::at(1).provider("node")];
        assert!(Quorum::new(&ChainId::new("ethereum"), providers, required).is_err());
    }
}

#[test]
fn providers_of_one_name_get_numbers() {
    let (_, quorum) = three();
    let names: Vec<_> = quorum
        .health()
        .into_iter()
        .map(|health| health.name)
        .collect();
    assert_eq!(names, ["node", "node#2", "node#3"].map(Arc::from));
}

#[tokio::test]
async fn equal_answers_count() {
    let (_, quorum) = three();
    assert_eq!(read(&quorum).await, Ok(honest()));
    settle().await;
    assert_eq!(disputes(&quorum), [0, 0, 0]);
    assert!(quorum.ready());
}

#[tokio::test(start_paused = true)]
async fn one_liar_is_outvoted_and_set_aside() {
    let block = testing::block(90, 0);
    let other = Transaction::Succeeded(receipt(testing::block(90, 5)));
    for lie in [
        forged(),
        other,
        Transaction::Failed(testing::failure(block)),
        Transaction::Missing,
    ] {
        for liar in 0..3 {
            let (scripts, quorum) = three();
            scripts[liar].put(&tx(), lie.clone());
            assert_eq!(read(&quorum).await, Ok(honest()));
            settle().await;
            let health = quorum.health();
            assert_eq!(health[liar].disputes, 1);
            // A missing transaction may have been pruned.
            let aside = lie != Transaction::Missing;
            assert_eq!(health[liar].set_aside, aside);
            assert_eq!(health.iter().map(|h| h.disputes).sum::<u64>(), 1);
            let asked = scripts[liar].asked();
            assert_eq!(read(&quorum).await, Ok(honest()));
            assert_eq!(
                scripts[liar].asked() == asked,
                aside,
                "asked unless set aside"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn time_aside_ends_and_doubles() {
    let (scripts, quorum) = three();
    scripts[2].put(&tx(), forged());
    for seconds in [60, 120, 240] {
        read(&quorum).await.unwrap();
        settle().await;
        assert!(quorum.health()[2].set_aside);
        tokio::time::advance(Duration::from_secs(seconds - 1)).await;
        assert!(quorum.health()[2].set_aside);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(!quorum.health()[2].set_aside);
    }
}

#[tokio::test(start_paused = true)]
async fn contradictions_are_forgotten_with_time() {
    let (scripts, quorum) = three();
    scripts[2].put(&tx(), forged());
    let aside = async |seconds: u64| {
        read(&quorum).await.unwrap();
        settle().await;
        tokio::time::advance(Duration::from_secs(seconds - 1)).await;
        assert!(quorum.health()[2].set_aside, "{seconds}");
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(!quorum.health()[2].set_aside, "{seconds}");
    };
    for seconds in [60, 120, 240] {
        aside(seconds).await;
    }
    // Each hour cancels one contradiction.
    tokio::time::advance(Duration::from_secs(2 * 3600)).await;
    aside(120).await;
    tokio::time::advance(Duration::from_secs(100 * 3600)).await;
    aside(60).await;
    tokio::time::advance(Duration::from_secs(3500)).await;
    aside(120).await;
}

#[tokio::test(start_paused = true)]
async fn lies_told_at_the_same_time_are_one() {
    let (scripts, quorum) = three();
    scripts[2].put(&tx(), forged());
    let head = quorum.head().await.unwrap();
    let (tx, quorum) = (tx(), &quorum);
    let reads = (0..9).map(|_| quorum.transaction(&tx, &head));
    let reads = futures::future::join_all(reads).await;
    assert!(reads.iter().all(|read| *read == Ok(honest())));
    settle().await;
    assert_eq!(disputes(quorum), [0, 0, 9]);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(!quorum.health()[2].set_aside);
}

#[tokio::test(start_paused = true)]
async fn lie_on_the_second_call_only_is_caught() {
    let (scripts, quorum) = three();
    read(&quorum).await.unwrap();
    scripts[0].put(&tx(), forged());
    assert_eq!(read(&quorum).await, Ok(honest()));
    settle().await;
    assert!(quorum.health()[0].set_aside);
}

#[tokio::test(start_paused = true)]
async fn fewer_than_required_is_never_an_answer() {
    let (scripts, quorum) = three();
    let down = || Some(ReadError::Unavailable("down".into()));
    scripts[0].fail(down());
    assert_eq!(read(&quorum).await, Ok(honest()));
    scripts[1].fail(down());
    lost(read(&quorum).await);
    assert!(!quorum.ready());
    scripts[2].fail(down());
    lost(read(&quorum).await);
    for script in &scripts {
        script.fail(None);
    }
    assert_eq!(read(&quorum).await, Ok(honest()), "flapping heals");
    assert!(quorum.ready());
}

#[tokio::test(start_paused = true)]
async fn three_different_answers_are_none() {
    let (scripts, quorum) = three();
    scripts[0].put(&tx(), forged());
    scripts[1].put(&tx(), Transaction::Missing);
    lost(read(&quorum).await);
    assert_eq!(disputes(&quorum), [1, 1, 1]);
    assert!(quorum.health().iter().all(|health| !health.set_aside));
}

#[tokio::test(start_paused = true)]
async fn all_must_agree_where_all_are_required() {
    let (scripts, _) = three();
    let quorum = quorum(&scripts, 3);
    assert_eq!(read(&quorum).await, Ok(honest()));
    scripts[1].put(&tx(), forged());
    lost(read(&quorum).await);
}

#[tokio::test(start_paused = true)]
async fn missing_needs_the_quorum_too() {
    let (scripts, quorum) = three();
    scripts[0].put(&tx(), Transaction::Missing);
    scripts[1].put(&tx(), Transaction::Missing);
    assert_eq!(read(&quorum).await, Ok(Transaction::Missing));
    let (scripts, quorum) = three();
    scripts[0].put(&tx(), Transaction::Missing);
    scripts[1].fail(Some(ReadError::Unavailable("down".into())));
    lost(read(&quorum).await);
}

#[tokio::test(start_paused = true)]
async fn two_set_aside_leave_no_quorum() {
    let (scripts, quorum) = three();
    scripts[0].put(&tx(), forged());
    read(&quorum).await.unwrap();
    settle().await;
    scripts[1].fail(Some(ReadError::Unavailable("down".into())));
    lost(read(&quorum).await);
}

#[tokio::test(start_paused = true)]
async fn hanging_provider_delays_nobody() {
    let (scripts, quorum) = three();
    scripts[0].hang(true);
    let started = Instant::now();
    assert_eq!(read(&quorum).await, Ok(honest()));
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn late_lie_is_still_found() {
    let (scripts, quorum) = three();
    let head = quorum.head().await.unwrap();
    // The liar is last in the list and answers after the agreement.
    scripts[2].put(&tx(), forged());
    quorum.transaction(&tx(), &head).await.unwrap();
    settle().await;
    assert_eq!(disputes(&quorum), [0, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn doubtful_answer_counts_as_a_dispute_once_others_agree() {
    let (scripts, quorum) = three();
    let head = quorum.head().await.unwrap();
    scripts[0].fail(Some(ReadError::Doubtful(
        "log indexes do not increase".into(),
    )));
    assert_eq!(quorum.transaction(&tx(), &head).await, Ok(honest()));
    settle().await;
    assert!(quorum.health()[0].set_aside);
    tokio::time::advance(Duration::from_secs(11)).await;
    assert!(!quorum.health()[0].set_aside);
}

#[tokio::test(start_paused = true)]
async fn agreed_head_is_the_second_highest() {
    for (heads, agreed) in [
        ([100, 100, 100], 100),
        ([100, 99, 98], 99),
        ([100, 100, 99], 100),
        ([0, 100, 100], 100),
        ([100, 5000, 100], 100),
    ] {
        let (scripts, quorum) = three();
        for (script, head) in scripts.iter().zip(heads) {
            script.set_head(head);
        }
        assert_eq!(
            quorum.head().await.unwrap().block,
            testing::block(agreed, 0)
        );
        assert_eq!(
            quorum.fresh_head().await.unwrap().block,
            testing::block(agreed, 0)
        );
        assert_eq!(read(&quorum).await, Ok(honest()), "{heads:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn head_of_a_fork_is_not_agreed() {
    let (scripts, quorum) = three();
    scripts[0].fork(95, 7);
    assert_eq!(quorum.head().await.unwrap().block, testing::block(100, 0));
    assert_eq!(read(&quorum).await, Ok(honest()));
    scripts[1].fork(95, 8);
    lost(quorum.head().await);
}

#[tokio::test(start_paused = true)]
async fn fork_at_the_tip_falls_back_to_the_common_block() {
    let (scripts, quorum) = three();
    for (script, head) in scripts.iter().zip([101, 100, 99]) {
        script.set_head(head);
    }
    scripts[1].fork(100, 7);
    assert_eq!(quorum.head().await.unwrap().block, testing::block(99, 0));
}

#[tokio::test(start_paused = true)]
async fn tag_is_agreed_like_the_head() {
    let (scripts, quorum) = three();
    for (script, tagged) in scripts.iter().zip([Some(90), Some(80), None]) {
        script.set_tagged(tagged);
    }
    assert_eq!(quorum.head().await.unwrap().tagged, Some(80));
    scripts[1].set_tagged(None);
    assert_eq!(quorum.head().await.unwrap().tagged, None);
}

#[tokio::test(start_paused = true)]
async fn state_is_voted() {
    let (scripts, quorum) = three();
    let contract = Address::from_parts("0x01", EvmAddress::repeat_byte(1).0);
    let (data, encoded) = (Bytes::from(vec![1]), Bytes::from(vec![2]));
    for script in &scripts {
        script.put_view(&contract, &data, vec![3].into());
        script.put_withdrawal(&encoded, WithdrawalStatus::Expired);
        script.set_settled(Some(90));
    }
    scripts[0].put_view(&contract, &data, vec![4].into());
    let head = quorum.head().await.unwrap();
    let block = quorum.settled(&head).await.unwrap().unwrap();
    assert_eq!(block, scripts[0].block(90));
    let answer = quorum.view(&contract, &data, &block).await;
    assert_eq!(answer, Ok(vec![3].into()));
    settle().await;
    assert_eq!(disputes(&quorum), [1, 0, 0]);
    let status = quorum.withdrawal(&encoded, None, &block).await;
    assert_eq!(status, Ok(WithdrawalStatus::Expired));
    scripts[1].put_withdrawal(&encoded, WithdrawalStatus::Executed);
    lost(quorum.withdrawal(&encoded, None, &block).await);
    scripts[1].set_settled(Some(91));
    lost(quorum.settled(&head).await);
}

/// On chains that show only the state of now, two honest reads may differ while a withdrawal is ending.
#[test]
fn a_withdrawal_that_only_one_calls_pending_is_asked_about_once_more() {
    use WithdrawalStatus::{Executed, Expired, Pending};
    for ended in [Executed, Expired] {
        assert_eq!(Pending.against(&ended), Dissent::Race);
        assert_eq!(ended.against(&Pending), Dissent::Race);
        assert_eq!(ended.again(&Pending), Weight::Contradiction);
    }
    assert_eq!(Executed.against(&Expired), Dissent::Lie);
}

/// Answers that the transaction is too large, and truthfully otherwise.
fn large(script: &Script) -> Provider {
    let answers = Answers {
        transaction: Some(|_, _, _| said(Err(ReadError::TooLarge))),
        ..Answers::default()
    };
    script.answering((), answers).provider("node")
}

#[tokio::test]
async fn a_transaction_is_too_large_when_a_quorum_says_so() {
    for (liars, expected) in [
        (1, Ok(honest())),
        (2, Err(ReadError::TooLarge)),
        (3, Err(ReadError::TooLarge)),
    ] {
        let (scripts, _) = three();
        let providers = scripts
            .iter()
            .enumerate()
            .map(|(at, script)| match at < liars {
                true => large(script),
                false => script.provider("node"),
            });
        let quorum = Quorum::new(&ChainId::new("ethereum"), providers.collect(), 2).unwrap();
        assert_eq!(read(&quorum).await, expected, "{liars}");
    }
    // One provider says so and another fails: no quorum, and no final answer.
    let (scripts, _) = three();
    let mut providers: Vec<_> = scripts.iter().map(|one| one.provider("node")).collect();
    providers[0] = large(&scripts[0]);
    let quorum = Quorum::new(&ChainId::new("ethereum"), providers, 2).unwrap();
    let head = quorum.head().await.unwrap();
    scripts[1].fail(Some(ReadError::Unavailable("down".into())));
    let unsure = quorum.transaction(&tx(), &head).await;
    assert!(matches!(unsure, Err(ReadError::Quorum(_))), "{unsure:?}");
}

/// Answers that the question does not fit the chain.
fn foreign(script: &Script) -> Provider {
    let answers = Answers {
        transaction: Some(|_, _, _| said(Err(ReadError::Foreign("nothing of this chain")))),
        ..Answers::default()
    };
    script.answering((), answers).provider("node")
}

/// Whoever asks chooses the question: one that does not fit must not show providers as failing.
#[tokio::test]
async fn a_question_that_does_not_fit_the_chain_counts_against_nobody() {
    let (scripts, _) = three();
    let providers = scripts.iter().map(|script| foreign(script)).collect();
    let quorum = Quorum::new(&ChainId::new("ethereum"), providers, 2).unwrap();
    let expected = Err(ReadError::Foreign("nothing of this chain"));
    assert_eq!(read(&quorum).await, expected);
    settle().await;
    assert!(quorum.health().iter().all(Health::well));
    // One provider alone does not decide that, and those that are down are shown.
    let (scripts, _) = three();
    let mut providers: Vec<_> = scripts.iter().map(|one| one.provider("node")).collect();
    providers[0] = foreign(&scripts[0]);
    let quorum = Quorum::new(&ChainId::new("ethereum"), providers, 2).unwrap();
    let head = quorum.head().await.unwrap();
    for script in &scripts[1..] {
        script.fail(Some(ReadError::Unavailable("down".into())));
    }
    lost(quorum.transaction(&tx(), &head).await);
    settle().await;
    let well: Vec<bool> = quorum.health().iter().map(Health::well).collect();
    assert_eq!(well, [true, false, false]);
}

/// A transaction comes to one provider before another.
#[tokio::test]
async fn who_does_not_know_outputs_yet_is_not_set_aside() {
    let (scripts, quorum) = three();
    let said = Bytes::from(vec![4]);
    for (known, expected) in [(0, false), (1, false), (2, true)] {
        let knowing = scripts[..known].iter();
        knowing.for_each(|script| script.put_outputs(&said));
        assert_eq!(quorum.bears_out(&said).await, Ok(expected), "{known}");
        settle().await;
        assert!(quorum.health().iter().all(|health| !health.set_aside));
    }
}
