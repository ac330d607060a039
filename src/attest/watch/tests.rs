use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use vm::{
    ChainId, ChainReader, TxRef,
    quorum::Quorum,
    testing::{Answers, Script, block, said},
};

use super::*;
use crate::{
    attest::{
        fixtures,
        statement::{Mode, Statement},
    },
    sign::raw::RawKey,
    store::{Store, memory::MemoryStore},
};

const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
/// A fork that a script never reaches: the chain is the first one again.
const NEVER: u64 = u64::MAX;

fn base() -> ChainId {
    ChainId::new("base")
}

/// Finality 10, watched for 128 blocks more.
fn chain(reader: Arc<dyn ChainReader>) -> Chain {
    Chain {
        spec: Arc::new(fixtures::spec("base")),
        reader,
        state: None,
    }
}

fn statement(byte: u8, number: u64) -> Statement {
    let (tx, digest) = (fixtures::tx(byte), B256::repeat_byte(byte));
    Statement::deposit(&base(), &tx, Mode::Slow, &block(number, 0), digest)
}

/// A journal that signed one deposit in each block of `numbers`.
async fn journal(numbers: &[u64]) -> Arc<Journal> {
    let (store, signer) = (MemoryStore::new(), RawKey::parse(KEY).unwrap());
    let journal = Journal::new(Arc::new(store), Arc::new(signer));
    for (at, number) in numbers.iter().enumerate() {
        let statement = statement(u8::try_from(at).unwrap(), *number);
        journal.sign(&statement, 1).await.unwrap();
    }
    Arc::new(journal)
}

async fn is_halted(journal: &Journal) -> bool {
    journal.halted(&base()).await.unwrap().is_some()
}

async fn watched(journal: &Journal) -> usize {
    journal.watched(&base(), None, 99).await.unwrap().len()
}

#[tokio::test]
async fn a_block_missed_twice_voids_its_statements_and_halts_the_chain() {
    let (script, journal) = (Script::at(120), journal(&[90, 100, 100]).await);
    let mut watcher = Watcher::new(journal.clone(), chain(script.clone()));
    let look = watcher.look(1000).await.unwrap();
    assert_eq!((look.facts, look.missing, look.void), (3, 0, 0));
    script.fork(95, 7);
    assert_eq!(watcher.look(1100).await.unwrap().missing, 1);
    assert_eq!(watcher.look(1104).await.unwrap().missing, 1);
    assert!(!is_halted(&journal).await);
    let look = watcher.look(1105).await.unwrap();
    assert_eq!((look.missing, look.void), (0, 2));
    let halt = journal.halted(&base()).await.unwrap().unwrap();
    assert_eq!(halt.at, 1105);
    assert!(halt.why.starts_with("block 100 "), "{}", halt.why);
    for (byte, number, stands) in [(0, 90, true), (1, 100, false), (2, 100, false)] {
        let key = statement(byte, number).key;
        assert_eq!(
            journal.entry(&key).await.unwrap().is_some(),
            stands,
            "{byte}"
        );
        assert_eq!(
            journal.voids(&key).await.unwrap().is_empty(),
            stands,
            "{byte}"
        );
    }
    assert_eq!(watched(&journal).await, 1);
}

/// A journal with one deposit in block 100, signed before it was final, and its key.
async fn early() -> (Arc<Journal>, String) {
    let journal = journal(&[]).await;
    let statement = statement(0, 100).early();
    journal.sign(&statement, 1).await.unwrap();
    (journal, statement.key)
}

#[tokio::test]
async fn early_fact_that_goes_voids_its_statement_and_halts_nothing() {
    let (script, (journal, key)) = (Script::at(105), early().await);
    let mut watcher = Watcher::new(journal.clone(), chain(script.clone()));
    assert_eq!(watcher.look(900).await.unwrap().missing, 0);
    script.fork(95, 7);
    // The depth of the new chain does not matter.
    script.set_head(150);
    assert_eq!(watcher.look(1000).await.unwrap().missing, 1);
    assert_eq!(watcher.look(1005).await.unwrap().void, 1);
    assert!(!is_halted(&journal).await);
    assert!(journal.entry(&key).await.unwrap().is_none());
    assert_eq!(journal.voids(&key).await.unwrap().len(), 1);
    assert_eq!(watched(&journal).await, 0);
}

#[tokio::test]
async fn early_fact_that_was_seen_final_halts_when_it_goes() {
    let (script, (journal, _)) = (Script::at(109), early().await);
    let mut watcher = Watcher::new(journal.clone(), chain(script.clone()));
    for (head, early) in [(109, true), (110, false)] {
        script.set_head(head);
        watcher.look(900).await.unwrap();
        let fact = &journal.watched(&base(), None, 9).await.unwrap()[0];
        assert_eq!(fact.early, early, "{head}");
    }
    script.fork(95, 7);
    watcher.look(1000).await.unwrap();
    assert_eq!(watcher.look(1005).await.unwrap().void, 1);
    assert!(is_halted(&journal).await);
}

#[tokio::test]
async fn settled_fact_beside_an_early_one_halts() {
    let (script, (journal, _)) = (Script::at(105), early().await);
    journal.sign(&statement(1, 100), 1).await.unwrap();
    let mut watcher = Watcher::new(journal.clone(), chain(script.clone()));
    script.fork(95, 7);
    watcher.look(1000).await.unwrap();
    assert_eq!(watcher.look(1005).await.unwrap().void, 2);
    assert!(is_halted(&journal).await);
}

#[tokio::test]
async fn one_contradictory_answer_halts_nothing() {
    let (script, journal) = (Script::at(120), journal(&[100]).await);
    let mut watcher = Watcher::new(journal.clone(), chain(script.clone()));
    for round in 0..3 {
        script.fork(95, 7);
        assert_eq!(watcher.look(1000 + round * 100).await.unwrap().missing, 1);
        script.fork(NEVER, 7);
        assert_eq!(watcher.look(1050 + round * 100).await.unwrap().missing, 0);
    }
    assert!(!is_halted(&journal).await);
    assert_eq!(watched(&journal).await, 1);
}

#[tokio::test]
async fn providers_that_are_away_halt_nothing() {
    let (script, journal) = (Script::at(120), journal(&[100]).await);
    let mut watcher = Watcher::new(journal.clone(), chain(script.clone()));
    let away = ReadError::Unavailable("down".into());
    script.fork(95, 7);
    script.fail(Some(away));
    for now in [1000, 2000, 3000] {
        assert!(matches!(watcher.look(now).await, Err(Error::Read(_))));
    }
    script.fail(None);
    assert_eq!(watcher.look(4000).await.unwrap().missing, 1);
    assert!(!is_halted(&journal).await);
}

#[tokio::test]
async fn no_answer_is_no_second_miss() {
    let (script, journal) = (Script::at(120), journal(&[100]).await);
    // Shows its head, and answers about blocks only while the flag is set.
    let answers = Answers {
        contains: Some(|own: &Script<AtomicBool>, block| match own.load(SeqCst) {
            true => Box::pin(async move { own.plain().contains(block).await }),
            false => said(Err(ReadError::Doubtful("who knows".into()))),
        }),
        ..Answers::default()
    };
    let tongue = script.answering(AtomicBool::new(true), answers);
    let mut watcher = Watcher::new(journal.clone(), chain(tongue.clone()));
    script.fork(95, 7);
    assert_eq!(watcher.look(1000).await.unwrap().missing, 1);
    tongue.store(false, SeqCst);
    for now in [1100, 1200] {
        let look = watcher.look(now).await.unwrap();
        assert_eq!((look.unanswered, look.missing, look.void), (1, 1, 0));
    }
    assert!(!is_halted(&journal).await);
    tongue.store(true, SeqCst);
    assert_eq!(watcher.look(1300).await.unwrap().void, 1);
    assert!(is_halted(&journal).await);
}

#[tokio::test]
async fn one_liar_among_three_halts_nothing_and_two_agree() {
    let scripts = [Script::at(120), Script::at(120), Script::at(120)];
    let providers = ["a", "b", "c"].iter().zip(&scripts);
    let providers = providers.map(|(name, script)| script.provider(name));
    let quorum = Quorum::new(&base(), providers.collect(), 2).unwrap();
    let journal = journal(&[100]).await;
    let mut watcher = Watcher::new(journal.clone(), chain(Arc::new(quorum)));
    scripts[0].fork(95, 7);
    for now in [1000, 1100, 1200] {
        assert_eq!(watcher.look(now).await.unwrap().missing, 0);
    }
    assert!(!is_halted(&journal).await);
}

#[tokio::test]
async fn facts_are_watched_until_they_are_past_and_then_nobody_is_asked() {
    let (script, journal) = (Script::at(237), journal(&[90, 100]).await);
    let mut watcher = Watcher::new(journal.clone(), chain(script.clone()));
    watcher.look(1000).await.unwrap();
    assert_eq!(watched(&journal).await, 1);
    script.set_head(238);
    watcher.look(1100).await.unwrap();
    assert_eq!(watched(&journal).await, 0);
    let asked = script.asked();
    assert_eq!(watcher.look(1200).await.unwrap(), Look::default());
    assert_eq!(script.asked(), asked);
}

#[tokio::test]
async fn a_fact_that_grew_old_unseen_is_looked_at_before_it_is_past() {
    let (script, journal) = (Script::at(9999), journal(&[100]).await);
    let mut watcher = Watcher::new(journal.clone(), chain(script.clone()));
    script.fork(95, 7);
    watcher.look(1000).await.unwrap();
    assert_eq!(watched(&journal).await, 1);
    assert_eq!(watcher.look(1100).await.unwrap().void, 1);
    assert!(is_halted(&journal).await);
}

#[tokio::test]
async fn more_facts_than_a_page_are_all_looked_at() {
    let journal = journal(&[]).await;
    for n in 0..600_u64 {
        let tx = TxRef {
            text: format!("{n}").into(),
            bytes: n.to_be_bytes().to_vec().into(),
            hint: None,
        };
        let digest = B256::left_padding_from(&n.to_be_bytes());
        let statement = Statement::deposit(&base(), &tx, Mode::Slow, &block(n / 6, 0), digest);
        journal.sign(&statement, 1).await.unwrap();
    }
    let script = Script::at(100);
    let mut watcher = Watcher::new(journal.clone(), chain(script.clone()));
    assert_eq!(watcher.look(1000).await.unwrap().facts, 600);
    // One read of the head, and one of each block.
    assert_eq!(script.asked(), 101);
}

/// Statements on one block, more than fit on a page; then the block is gone.
#[tokio::test]
async fn a_block_under_more_facts_than_a_page_is_asked_about_once() {
    let journal = journal(&[]).await;
    let tx = |n: u64| TxRef {
        text: format!("{n}").into(),
        bytes: n.to_be_bytes().to_vec().into(),
        hint: None,
    };
    for n in 0..600_u64 {
        let digest = B256::left_padding_from(&n.to_be_bytes());
        let number = if n == 0 { 90 } else { 100 };
        let statement = Statement::deposit(&base(), &tx(n), Mode::Slow, &block(number, 0), digest);
        journal.sign(&statement, 1).await.unwrap();
    }
    let script = Script::at(110);
    let mut watcher = Watcher::new(journal.clone(), chain(script.clone()));
    assert_eq!(watcher.look(1000).await.unwrap().facts, 600);
    assert_eq!(script.asked(), 3);
    script.fork(95, 7);
    assert_eq!(watcher.look(1100).await.unwrap().missing, 1);
    let look = watcher.look(1200).await.unwrap();
    assert_eq!((look.facts, look.missing, look.void), (600, 0, 599));
    assert_eq!(script.asked(), 9);
    assert_eq!(journal.watched(&base(), None, 999).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_fact_that_was_signed_during_a_look_is_watched_although_its_block_is_low() {
    let journal = journal(&[90, 100]).await;
    let answers = Answers {
        contains: Some(|own: &Script<Arc<Journal>>, block| {
            Box::pin(async move {
                own.sign(&statement(9, 80), 1).await.unwrap();
                own.plain().contains(block).await
            })
        }),
        ..Answers::default()
    };
    let late = Script::at(9999).answering(journal.clone(), answers);
    let mut watcher = Watcher::new(journal.clone(), chain(late));
    assert_eq!(watcher.look(1000).await.unwrap().facts, 2);
    let left = journal.watched(&base(), None, 9).await.unwrap();
    let left: Vec<_> = left.iter().map(|row| row.block.number).collect();
    assert_eq!(left, [80]);
}

#[tokio::test]
async fn a_store_that_failed_is_an_error_and_the_loop_ends_when_told_to() {
    let store = Arc::new(MemoryStore::new());
    let signer = Arc::new(RawKey::parse(KEY).unwrap());
    let journal = Arc::new(Journal::new(store.clone(), signer));
    store.close().await;
    let mut watcher = Watcher::new(journal.clone(), chain(Script::at(1)));
    assert!(matches!(watcher.look(1).await, Err(Error::Journal(_))));
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(watcher.run(|| 1, shutdown.clone()));
    tokio::task::yield_now().await;
    shutdown.cancel();
    running.await.unwrap();
}
