//! Where short reads are done. Most find their rows in memory: on the caller's thread they take microseconds, and the
//! way to a blocking thread takes ten times as long. A read that waits stops the other tasks of the caller's thread, so
//! where reads may wait they go to a blocking thread. They wait for the disk, and for the one lock of the whole process
//! that sled takes for a batch: while a batch of one store waits for another store's sync, new readers wait, too.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst},
    time::{Duration, Instant},
};

/// The most rows of a short read.
const SHORT: usize = 16;
/// Reads that take longer than this on average go to a blocking thread.
const SLOW: Duration = Duration::from_micros(250);
/// How many reads the average is of, about: one that is interrupted does not count for much.
const READS: u64 = 64;

/// The batches that sled applies now, of all stores of the process.
static BATCHES: Batches = Batches(AtomicUsize::new(0));

/// Does `apply`, which applies a batch.
pub(super) fn batch<T>(apply: impl FnOnce() -> T) -> T {
    BATCHES.count(apply)
}

/// How many batches are applied now.
#[derive(Debug)]
struct Batches(AtomicUsize);

impl Batches {
    fn any(&self) -> bool {
        self.0.load(SeqCst) > 0
    }

    /// Counts a batch while `apply` runs, and no longer if it panics.
    fn count<T>(&self, apply: impl FnOnce() -> T) -> T {
        struct Applied<'a>(&'a AtomicUsize);
        impl Drop for Applied<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, SeqCst);
            }
        }
        self.0.fetch_add(1, SeqCst);
        let _applied = Applied(&self.0);
        apply()
    }
}

/// How long short reads take of late, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Pace(AtomicU64);

impl Pace {
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
        let batches = Batches(AtomicUsize::new(0));
        assert!(!batches.any());
        batches.count(|| {
            batches.count(|| assert!(batches.any()));
            assert!(batches.any());
        });
        assert!(!batches.any());
        let died = std::panic::catch_unwind(|| batches.count(|| panic!("a test")));
        assert!(died.is_err() && !batches.any());
    }
}
