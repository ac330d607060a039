//! Permits for work that is bounded for all callers together, and more narrowly for strangers: callers without a key.

use std::time::Duration;

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

/// The permits of one kind of work. A stranger takes of the strangers' permits first and of all permits then: so no more
/// strangers wait among the others than may hold permits, and the rest wait among themselves.
#[derive(Debug)]
pub struct Permits {
    all: Semaphore,
    strangers: Semaphore,
    /// How many there are of both.
    sizes: [usize; 2],
}

/// Permits that a caller holds; dropping them gives them back.
#[derive(Debug)]
pub struct Held<'a> {
    _strangers: Option<SemaphorePermit<'a>>,
    _all: SemaphorePermit<'a>,
}

impl Permits {
    /// `all` permits, of which strangers together hold `strangers` at most.
    pub fn new(all: usize, strangers: usize) -> Self {
        Self {
            all: Semaphore::new(all),
            strangers: Semaphore::new(strangers),
            sizes: [all, strangers],
        }
    }

    /// Takes one permit; `None` where none is free for the caller.
    pub fn try_one(&self, is_stranger: bool) -> Option<Held<'_>> {
        let strangers = match is_stranger {
            true => Some(self.strangers.try_acquire().ok()?),
            false => None,
        };
        Some(Held {
            _strangers: strangers,
            _all: self.all.try_acquire().ok()?,
        })
    }

    /// Waits for `count` permits, or for as many as the caller may ever hold where that is less; `None` after `patience`.
    /// [`Duration::MAX`] is a wait without a limit.
    pub async fn wait(
        &self,
        is_stranger: bool,
        count: usize,
        patience: Duration,
    ) -> Option<Held<'_>> {
        let [all, strangers] = self.sizes;
        let most = if is_stranger { all.min(strangers) } else { all };
        let count = u32::try_from(count.min(most)).unwrap_or(u32::MAX);
        let held = async {
            let strangers = match is_stranger {
                true => Some(self.strangers.acquire_many(count).await.ok()?),
                false => None,
            };
            Some(Held {
                _strangers: strangers,
                _all: self.all.acquire_many(count).await.ok()?,
            })
        };
        timeout(patience, held).await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::time::{Instant, sleep};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(2);

    #[test]
    fn strangers_have_their_part_of_the_permits_and_keys_have_all() {
        let permits = Permits::new(4, 2);
        let strangers = [(); 2].map(|()| permits.try_one(true).unwrap());
        assert!(permits.try_one(true).is_none());
        let keys = [(); 2].map(|()| permits.try_one(false).unwrap());
        assert!(permits.try_one(false).is_none());
        drop(strangers);
        let more = [(); 2].map(|()| permits.try_one(false).unwrap());
        // None is left for strangers, and their own are not used up by that.
        assert!(permits.try_one(true).is_none());
        drop((keys, more));
        assert!(permits.try_one(true).is_some());
    }

    #[test]
    fn strangers_whose_part_is_all_have_all_permits() {
        let permits = Permits::new(2, 2);
        let _held = [(); 2].map(|()| permits.try_one(true).unwrap());
        assert!(permits.try_one(true).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_who_wait_leave_the_rest_to_keys() {
        let permits = Permits::new(4, 2);
        let _held = permits.wait(true, 2, PATIENCE).await.unwrap();
        let mut stranger = Box::pin(permits.wait(true, 1, PATIENCE));
        assert!(stranger.as_mut().now_or_never().is_none());
        assert!(permits.wait(false, 2, PATIENCE).await.is_some());
        assert!(stranger.await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn patience_is_for_the_whole_wait_and_who_gave_up_holds_nothing() {
        let permits = Permits::new(1, 1);
        let first = permits.try_one(true).unwrap();
        let begun = Instant::now();
        // The key takes the permit that the first stranger gives back. The second then has one of the strangers' only.
        let key = permits.wait(false, 1, PATIENCE);
        let second = permits.wait(true, 1, PATIENCE);
        let ends = async {
            sleep(PATIENCE / 2).await;
            drop(first);
        };
        let (key, second, ()) = tokio::join!(key, second, ends);
        assert!(key.is_some() && second.is_none());
        assert!(begun.elapsed() < PATIENCE * 3 / 2);
        drop(key);
        assert!(permits.try_one(true).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_count_is_cut_to_what_the_caller_may_ever_hold() {
        let permits = Permits::new(4, 2);
        let stranger = permits.wait(true, 9, PATIENCE).await.unwrap();
        assert!(permits.try_one(true).is_none());
        assert!(permits.wait(false, 3, PATIENCE).await.is_none());
        drop(stranger);
        let _key = permits.wait(false, 9, PATIENCE).await.unwrap();
        assert!(permits.try_one(false).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_patience_has_no_end() {
        let permits = Permits::new(1, 1);
        let held = permits.wait(false, 1, PATIENCE).await.unwrap();
        let waiting = permits.wait(false, 1, Duration::MAX);
        let later = async {
            sleep(Duration::from_secs(86_400)).await;
            drop(held);
        };
        assert!(tokio::join!(waiting, later).0.is_some());
    }
}
