//! Where short reads are done. Most find their rows in memory: on the caller's thread they take microseconds, and the
//! way to a blocking thread takes ten times as long. A read that waits stops the other tasks of the caller's thread, so
//! where reads may wait they go to a blocking thread. They wait for the disk, and for the one lock of the whole process
//! that sled takes for a batch: while a batch of one store waits for another store's sync, new readers wait, too. For the
//! end of a batch they wait without a thread.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

/// The most rows of a short read.
const SHORT: usize = 16;
/// Reads that take longer than this on average go to a blocking thread.
const SLOW: Duration = Duration::from_micros(250);
/// How many reads the average is of, about: one that is interrupted does not count for much.
const READS: u64 = 64;
/// The ends of batches that a short read waits for before it goes to a blocking thread: batches of several stores may
/// follow each other without a pause.
const ENDS: usize = 2;

/// The batches that sled applies now, of all stores of the process.
static BATCHES: Batches = Batches::new();

/// Does `apply`, which applies a batch.
pub(super) fn batch<T>(apply: impl FnOnce() -> T) -> T {
    BATCHES.count(apply)
}

/// The batches that are applied now.
#[derive(Debug)]
struct Batches {
    count: AtomicUsize,
    ended: Notify,
}

impl Batches {
    const fn new() -> Self {
        Self {
            count: AtomicUsize::new(0),
            ended: Notify::const_new(),
        }
    }

    fn any(&self) -> bool {
        self.count.load(SeqCst) > 0
    }

    /// Waits until none is applied, or [`ENDS`] have ended meanwhile.
    async fn pause(&self) {
        for _ in 0..ENDS {
            // Made before the look, so that an end in between is seen.
            let ended = self.ended.notified();
            if !self.any() {
                return;
            }
            ended.await;
        }
    }

    /// Counts a batch while `apply` runs, and no longer if it panics.
    fn count<T>(&self, apply: impl FnOnce() -> T) -> T {
        struct Applied<'a>(&'a Batches);
        impl Drop for Applied<'_> {
            fn drop(&mut self) {
                self.0.count.fetch_sub(1, SeqCst);
                self.0.ended.notify_waiters();
            }
        }
        self.count.fetch_add(1, SeqCst);
        let _applied = Applied(self);
        apply()
    }
}

/// How long short reads take of late, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Pace(AtomicU64);

impl Pace {
    /// Waits for the end of batches before a read of so many rows, unless that goes to a blocking thread anyway.
    pub(super) async fn pause(&self, rows: usize) {
        if rows <= SHORT && !self.is_slow() {
            BATCHES.pause().await;
        }
    }

    /// Whether a read of so many rows may wait.
    pub(super) fn may_wait(&self, rows: usize) -> bool {
        rows > SHORT || BATCHES.any() || self.is_slow()
    }

    fn is_slow(&self) -> bool {
        u128::from(self.0.load(Relaxed)) > SLOW.as_nanos()
    }

    /// Does `read` of so many rows, and counts its time. Reads on blocking threads are counted, too, so that reads return
    /// to their callers' threads once they are quick.
    pub(super) fn measured<T>(&self, rows: usize, read: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let found = read();
        if rows <= SHORT {
            self.took(begun.elapsed());
        }
        found
    }

    /// An update that another thread overwrites is one read less of the average.
    fn took(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) / READS;
        let before = self.0.load(Relaxed);
        self.0.store(before - before / READS + time, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn reads_may_wait_while_most_of_them_do() {
        let pace = Pace::default();
        let reads = |count: usize, micros: u64| {
            for _ in 0..count {
                pace.took(Duration::from_micros(micros));
            }
        };
        reads(1_000, 5);
        assert!(!pace.is_slow());
        // One of them was interrupted.
        reads(1, 10_000);
        assert!(!pace.is_slow());
        reads(100, 1_000);
        assert!(pace.is_slow() && pace.may_wait(1));
        reads(300, 5);
        assert!(!pace.is_slow());
        assert!(pace.may_wait(SHORT + 1));
    }

    #[test]
    fn reads_may_wait_while_a_batch_is_applied() {
        batch(|| assert!(Pace::default().may_wait(1)));
        // Other tests apply batches of the process meanwhile.
        let batches = Batches::new();
        assert!(!batches.any());
        batches.count(|| {
            batches.count(|| assert!(batches.any()));
            assert!(batches.any());
        });
        assert!(!batches.any());
        let died = std::panic::catch_unwind(|| batches.count(|| panic!("a test")));
        assert!(died.is_err() && !batches.any());
    }

    #[test]
    fn a_short_read_waits_for_the_end_of_a_batch_and_not_for_ever() {
        let batches = Batches::new();
        assert!(batches.pause().now_or_never().is_some());
        let mut waiting = Box::pin(batches.pause());
        batches.count(|| assert!((&mut waiting).now_or_never().is_none()));
        assert!((&mut waiting).now_or_never().is_some());
        batches.count(|| {
            let mut waiting = Box::pin(batches.pause());
            for _ in 0..ENDS {
                assert!((&mut waiting).now_or_never().is_none());
                batches.count(|| ());
            }
            assert!((&mut waiting).now_or_never().is_some());
        });
    }
}
