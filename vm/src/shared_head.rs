//! The head of a chain as one provider shows it: one caller reads it at a time, and the others use what was found.
//!
//! How a head is read, and how old it may be, is the family's; who reads and who is served is one rule for all.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{ReadError, types::Head};

/// The last reads of a head. A head serves everybody to whom it is young enough, also while another read is under way
/// and after one has failed. A failure serves those who came before its end, and nobody else: with a turn for each of
/// them, a provider that hangs would have a queue that never ends.
#[derive(Default)]
pub struct SharedHead {
    /// Held by whoever reads.
    turn: tokio::sync::Mutex<()>,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    /// The head of the last read that succeeded, and when that read began.
    found: Option<(Instant, Head)>,
    /// When the last read failed, and why.
    failed: Option<(Instant, ReadError)>,
}

impl SharedHead {
    /// The head of a read that began at most `age` before this call; where there is none, that of `read`. An age of zero
    /// asks for a head of now.
    pub async fn within<F>(
        &self,
        age: Duration,
        read: impl FnOnce() -> F,
    ) -> Result<Head, ReadError>
    where
        F: Future<Output = Result<Head, ReadError>>,
    {
        let called = Instant::now();
        if let Some(head) = self.last(|last| last.head(called, age)) {
            return Ok(head);
        }
        let _turn = self.turn.lock().await;
        // Others may have read while this caller waited.
        let known = self.last(|last| {
            let head = last.head(called, age).map(Ok);
            head.or_else(|| last.failure(called).map(Err))
        });
        if let Some(known) = known {
            return known;
        }
        let began = Instant::now();
        let answer = read().await;
        self.last(|last| match &answer {
            Ok(head) => last.found = Some((began, head.clone())),
            Err(error) => last.failed = Some((Instant::now(), error.clone())),
        });
        answer
    }

    fn last<T>(&self, with: impl FnOnce(&mut Last) -> T) -> T {
        with(&mut self.last.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Last {
    /// The head, if its read began at most `age` before `called`, or later.
    fn head(&self, called: Instant, age: Duration) -> Option<Head> {
        let (began, head) = self.found.as_ref()?;
        (called.saturating_duration_since(*began) <= age).then(|| head.clone())
    }

    /// Why a read failed that ended after `called`.
    fn failure(&self, called: Instant) -> Option<ReadError> {
        let (ended, error) = self.failed.as_ref()?;
        (*ended >= called).then(|| error.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

    use futures::{
        FutureExt,
        future::{join, join_all},
    };
    use tokio::time::sleep;

    use super::*;
    use crate::types::{B256, Block};

    const AGE: Duration = Duration::from_secs(5);
    /// How long a read takes.
    const READ: Duration = Duration::from_secs(1);
    const MOMENT: Duration = Duration::from_millis(1);

    type Answer = Result<u64, ReadError>;

    /// Each of its reads finds the next block.
    #[derive(Default)]
    struct Provider {
        shared: SharedHead,
        reads: AtomicU64,
        down: AtomicBool,
    }

    impl Provider {
        async fn read(&self) -> Result<Head, ReadError> {
            let number = self.reads.fetch_add(1, SeqCst) + 1;
            sleep(READ).await;
            match self.down.load(SeqCst) {
                true => Err(gone(number)),
                false => Ok(Head {
                    block: Block {
                        number,
                        hash: B256::ZERO,
                        parent: B256::ZERO,
                        time: 0,
                    },
                    tagged: None,
                }),
            }
        }

        /// The number of the head.
        async fn within(&self, age: Duration) -> Answer {
            let head = self.shared.within(age, || self.read()).await?;
            Ok(head.block.number)
        }

        /// What the first caller gets, who asks for a head of now, and others who come in the middle of its read.
        async fn crowd(&self, age: Duration) -> (Answer, Vec<Answer>) {
            let others = async {
                sleep(READ / 2).await;
                join_all((0..30).map(|_| self.within(age))).await
            };
            join(self.within(Duration::ZERO), others).await
        }

        fn reads(&self) -> u64 {
            self.reads.load(SeqCst)
        }
    }

    fn gone(number: u64) -> ReadError {
        ReadError::Unavailable(format!("read {number}"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_serves_as_long_as_it_is_young() {
        let provider = Provider::default();
        assert_eq!(provider.within(AGE).await, Ok(1));
        // Its age is counted from the beginning of its read.
        sleep(AGE - READ - MOMENT).await;
        assert_eq!(provider.within(AGE).await, Ok(1));
        sleep(MOMENT * 2).await;
        assert_eq!(provider.within(AGE).await, Ok(2));
        assert_eq!(provider.reads(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_for_a_head_of_now_is_served_with_no_older_one() {
        let provider = Provider::default();
        assert_eq!(provider.within(AGE).await, Ok(1));
        assert_eq!(provider.within(Duration::ZERO).await, Ok(2));
        assert_eq!(provider.within(AGE).await, Ok(2));
        assert_eq!(provider.reads(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn callers_who_come_at_once_read_once() {
        let provider = Provider::default();
        let heads = join_all((0..30).map(|_| provider.within(Duration::ZERO))).await;
        assert!(heads.iter().all(|head| *head == Ok(1)), "{heads:?}");
        assert_eq!(provider.reads(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_under_way_serves_callers_to_whom_it_is_young() {
        let provider = Provider::default();
        let (first, others) = provider.crowd(AGE).await;
        assert_eq!(first, Ok(1));
        assert!(others.iter().all(|head| *head == Ok(1)), "{others:?}");
        assert_eq!(provider.reads(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn callers_who_want_a_later_head_than_the_one_under_way_read_once_more_together() {
        let provider = Provider::default();
        let (first, others) = provider.crowd(Duration::ZERO).await;
        assert_eq!(first, Ok(1));
        assert!(others.iter().all(|head| *head == Ok(2)), "{others:?}");
        assert_eq!(provider.reads(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_that_of_all_who_waited_for_it_and_of_nobody_later() {
        let provider = Provider::default();
        provider.down.store(true, SeqCst);
        let (first, others) = provider.crowd(Duration::ZERO).await;
        assert_eq!(first, Err(gone(1)));
        let gone_too = |head: &Answer| *head == Err(gone(1));
        assert!(others.iter().all(gone_too), "{others:?}");
        assert_eq!(provider.reads(), 1);
        sleep(MOMENT).await;
        assert_eq!(provider.within(AGE).await, Err(gone(2)));
        provider.down.store(false, SeqCst);
        sleep(MOMENT).await;
        assert_eq!(provider.within(AGE).await, Ok(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_takes_away_no_head_that_is_young() {
        let provider = Provider::default();
        assert_eq!(provider.within(AGE).await, Ok(1));
        provider.down.store(true, SeqCst);
        sleep(MOMENT).await;
        assert_eq!(provider.within(Duration::ZERO).await, Err(gone(2)));
        assert_eq!(provider.within(AGE).await, Ok(1));
        sleep(AGE).await;
        assert_eq!(provider.within(AGE).await, Err(gone(3)));
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_a_young_head_waits_for_no_read() {
        let provider = Provider::default();
        assert_eq!(provider.within(AGE).await, Ok(1));
        let mut fresh = Box::pin(provider.within(Duration::ZERO));
        assert!(fresh.as_mut().now_or_never().is_none());
        assert_eq!(provider.within(AGE).now_or_never(), Some(Ok(1)));
        assert_eq!(fresh.await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_leaves_the_read_to_the_next() {
        let provider = Provider::default();
        let mut first = Box::pin(provider.within(AGE));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(provider.within(AGE).now_or_never().is_none());
        assert_eq!(provider.reads(), 1);
        drop(first);
        assert_eq!(provider.within(AGE).await, Ok(2));
    }
}
