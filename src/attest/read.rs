//! Reads all transactions of a claim concurrently, those of each chain from one head. It decides only whether a read
//! is final enough or deserves a second one.

use std::{collections::HashMap, sync::Arc};

use futures::future::try_join_all;
use tokio::sync::{OnceCell, Semaphore};
use vm::{
    Bytes, Chain, ChainId, ChainSpec, Head, Kept, LARGE_EVENTS, ReadError, Seen, Transaction,
    TxRef, aside, permits::Permits, protocol::limits,
};

use super::Refusal;
use crate::chains::permits::{ReadPermits, enter};

/// A transaction to read.
#[derive(Clone)]
pub struct Wanted {
    pub chain: Chain,
    pub transaction: TxRef,
}

/// A transaction that was read, with the head of the read.
#[derive(Clone, Debug)]
pub struct Found {
    pub spec: Arc<ChainSpec>,
    pub transaction: TxRef,
    pub head: Head,
    /// Shared by all claims about the transaction, because it may be large.
    pub found: Arc<Kept<Transaction>>,
}

impl Found {
    /// The transaction as judges take it.
    pub fn seen(&self) -> Seen<'_> {
        Seen {
            spec: &self.spec,
            transaction: &self.transaction,
            head: &self.head,
            found: &self.found,
        }
    }

    /// Whether nobody knows the transaction.
    pub fn is_missing(&self) -> bool {
        matches!(&**self.found, Transaction::Missing)
    }

    /// The number of events to judge.
    pub fn events(&self) -> usize {
        match &**self.found {
            Transaction::Succeeded(receipt) => limits::events(receipt),
            _ => 0,
        }
    }
}

/// Refuses transactions that take too long to judge.
fn check_size(found: &[Found]) -> Result<(), Unread> {
    match found.iter().map(Found::events).sum::<usize>() > limits::EVENTS {
        true => Err(Refusal::TooMany {
            field: "events of the transactions",
            most: limits::EVENTS,
        }
        .into()),
        false => Ok(()),
    }
}

/// Why transactions could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// The most concurrent reads of one request on one chain; each asks all providers.
const AT_ONCE: usize = 8;

/// A chain's heads during one request.
struct Tip {
    chain: Chain,
    head: Head,
    fresh: OnceCell<Head>,
    permits: Semaphore,
    of_all: Arc<Permits>,
}

/// Judges one transaction by itself.
pub type Judge<'a> = &'a (dyn Fn(&Seen<'_>) -> Result<(), Refusal> + Sync);

/// Accepts transactions that are final by the chain's own rule.
pub const SETTLED: Judge<'static> = &|seen| {
    seen.settled()?;
    Ok(())
};

/// Reads `wanted` and returns the results in its order. A transaction that `judge` calls missing or not final is read
/// once more from a newer head.
pub async fn transactions(
    wanted: &[Wanted],
    permits: &ReadPermits,
    judge: Judge<'_>,
) -> Result<Vec<Found>, Unread> {
    let tips = tips(wanted, permits).await?;
    // Two claims about one transaction share one read.
    let mut distinct: Vec<&Wanted> = Vec::new();
    let mut positions = HashMap::<(ChainId, Bytes, String), usize>::new();
    let mut answers = Vec::with_capacity(wanted.len());
    for one in wanted {
        let hint = one.transaction.hint.as_ref().map(ToString::to_string);
        let key = (
            one.chain.spec.id.clone(),
            one.transaction.bytes.clone(),
            hint.unwrap_or_default(),
        );
        answers.push(*positions.entry(key).or_insert_with(|| {
            distinct.push(one);
            distinct.len() - 1
        }));
    }
    let reads = distinct.iter().map(|one| read(one, &tips, judge));
    let found = try_join_all(reads).await?;
    check_size(&found)?;
    let named = |(one, at): (&Wanted, usize)| Found {
        transaction: one.transaction.clone(),
        ..found[at].clone()
    };
    Ok(wanted.iter().zip(answers).map(named).collect())
}

async fn tips(
    wanted: &[Wanted],
    permits: &ReadPermits,
) -> Result<HashMap<ChainId, Tip>, ReadError> {
    let chains: HashMap<ChainId, &Chain> = wanted
        .iter()
        .map(|one| (one.chain.spec.id.clone(), &one.chain))
        .collect();
    let tips = chains.into_iter().map(async |(id, chain)| {
        let tip = Tip {
            chain: chain.clone(),
            head: chain.reader.head().await?,
            fresh: OnceCell::new(),
            permits: Semaphore::new(AT_ONCE),
            of_all: permits.of(&id),
        };
        Ok::<_, ReadError>((id, tip))
    });
    Ok(try_join_all(tips).await?.into_iter().collect())
}

async fn read(
    one: &Wanted,
    tips: &HashMap<ChainId, Tip>,
    judge: Judge<'_>,
) -> Result<Found, ReadError> {
    let missing = || ReadError::Unavailable(format!("no head of {}", one.chain.spec.id));
    let tip = tips.get(&one.chain.spec.id).ok_or_else(missing)?;
    let _permit = tip.permits.acquire().await.map_err(|_| missing())?;
    let _of_all = enter(&tip.of_all).await?;
    let first = tip.found(one, tip.head.clone()).await?;
    let long = first.events() > LARGE_EVENTS;
    let early = matches!(
        aside(long, || judge(&first.seen())),
        Err(Refusal::NotFinalized(_) | Refusal::MissingTransaction { .. })
    );
    if !early {
        return Ok(first);
    }
    let fresh = tip
        .fresh
        .get_or_try_init(|| tip.chain.reader.fresh_head())
        .await?;
    if *fresh == tip.head {
        return Ok(first);
    }
    tip.found(one, fresh.clone()).await
}

impl Tip {
    async fn found(&self, one: &Wanted, head: Head) -> Result<Found, ReadError> {
        let found = self
            .chain
            .reader
            .transaction(&one.transaction, &head)
            .await?;
        Ok(Found {
            spec: self.chain.spec.clone(),
            transaction: one.transaction.clone(),
            head,
            found: Arc::new(Kept::new(found)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use futures::{StreamExt, stream::FuturesUnordered};
    use vm::testing::{Answers, Script, said};

    use super::*;
    use crate::{
        attest::fixtures::{self, Read},
        chains::{
            asking,
            permits::{OF_ALL, PATIENCE},
        },
    };

    /// Counts concurrent reads.
    #[derive(Default)]
    struct Counting {
        /// Never answers.
        hangs: bool,
        now: AtomicUsize,
        most: AtomicUsize,
        all: AtomicUsize,
    }

    impl Counting {
        async fn read(&self) -> Transaction {
            let now = self.now.fetch_add(1, SeqCst) + 1;
            self.most.fetch_max(now, SeqCst);
            if self.hangs {
                std::future::pending::<()>().await;
            }
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            self.now.fetch_sub(1, SeqCst);
            self.all.fetch_add(1, SeqCst);
            Read::new("base", 0).found
        }
    }

    fn counting(hangs: bool) -> Arc<Script<Counting>> {
        let counting = Counting {
            hangs,
            ..Counting::default()
        };
        let answers = Answers {
            head: Some(|_| said(Ok(Read::new("base", 0).head))),
            contains: Some(|_, _| said(Ok(true))),
            transaction: Some(|own: &Script<Counting>, _, _| {
                Box::pin(async move { Ok(Counting::read(own).await) })
            }),
            ..Answers::default()
        };
        Script::at(0).answering(counting, answers)
    }

    fn wanted(name: &str, reader: &Arc<Script<Counting>>, byte: u8) -> Wanted {
        Wanted {
            chain: Chain {
                spec: Arc::new(fixtures::spec(name)),
                reader: reader.clone(),
                state: None,
            },
            transaction: fixtures::tx(byte),
        }
    }

    #[tokio::test]
    async fn all_requests_together_read_no_more_of_a_chain_than_it_bears() {
        let (base, ethereum) = (counting(false), counting(false));
        let permits = ReadPermits::default();
        let all: Vec<_> = (0..60).map(|byte| wanted("base", &base, byte)).collect();
        let other = [wanted("ethereum", &ethereum, 0)];
        let asked = (0..20).map(|_| transactions(&all, &permits, SETTLED));
        let (found, other) = tokio::join!(
            futures::future::join_all(asked),
            transactions(&other, &permits, SETTLED)
        );
        assert!(found.iter().all(Result::is_ok) && other.is_ok());
        let (most, all) = (base.most.load(SeqCst), base.all.load(SeqCst));
        assert_eq!((most, all), (OF_ALL, 20 * 60));
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_leave_a_third_of_the_permits_to_keys_and_wait_for_seconds() {
        let (quick, hanging) = (counting(false), counting(true));
        let mine = [wanted("base", &quick, 1)];
        let slow: Vec<_> = (0..8).map(|byte| wanted("base", &hanging, byte)).collect();
        let permits = ReadPermits::default();
        let strangers = (0..40).map(|_| asking::by(false, transactions(&slow, &permits, SETTLED)));
        let mut strangers: FuturesUnordered<_> = strangers.collect();
        let keyed = async {
            tokio::task::yield_now().await;
            for keyed in [Some(true), None] {
                let work = transactions(&mine, &permits, SETTLED);
                let read = match keyed {
                    Some(keyed) => asking::by(keyed, work).await,
                    None => work.await,
                };
                assert!(read.is_ok(), "{keyed:?}");
            }
        };
        tokio::select! {
            biased;
            ended = strangers.next() => panic!("{:?}", ended.map(|read| read.err())),
            () = keyed => {}
        }
        let begun = tokio::time::Instant::now();
        let late = strangers.next().await.unwrap();
        assert!(matches!(late, Err(Unread::Read(ReadError::Unavailable(_)))));
        assert!(begun.elapsed() <= PATIENCE);
    }

    #[tokio::test]
    async fn a_request_reads_a_few_transactions_of_a_chain_at_a_time() {
        let (base, ethereum) = (counting(false), counting(false));
        let mut all: Vec<_> = (0..60).map(|byte| wanted("base", &base, byte)).collect();
        all.extend((0..60).map(|byte| wanted("ethereum", &ethereum, byte)));
        let found = transactions(&all, &ReadPermits::default(), SETTLED)
            .await
            .unwrap();
        assert_eq!(found.len(), all.len());
        for reader in [base, ethereum] {
            let (most, all) = (reader.most.load(SeqCst), reader.all.load(SeqCst));
            assert_eq!((most, all), (AT_ONCE, 60));
        }
    }
}
