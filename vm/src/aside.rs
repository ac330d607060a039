//! Long work beside the other tasks of a runtime.

use std::ops::Deref;

use tokio::runtime::{Handle, RuntimeFlavor};

/// Bytes of an answer that take about a millisecond to read.
pub const LARGE_BYTES: usize = 256 << 10;
/// Events of a transaction that take about a millisecond to look at.
pub const LARGE_EVENTS: usize = 2_000;

/// Does `work`. Where it is `long`, the other tasks of this thread go on on others meanwhile; a
/// runtime of one thread has no others.
pub fn aside<T>(long: bool, work: impl FnOnce() -> T) -> T {
    // Most work is short, and the look at the runtime is not free.
    if !long {
        return work();
    }
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Something that may be so large that to compare, to copy and to let go of it is long work.
pub trait Large {
    fn is_large(&self) -> bool {
        false
    }

    /// Lets go of what it holds.
    fn clear(&mut self) {}
}

/// What is let go of [`aside`].
#[derive(Debug)]
pub struct Kept<T: Large>(T);

impl<T: Large> Kept<T> {
    pub const fn new(inner: T) -> Self {
        Self(inner)
    }
}

impl<T: Large> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Large> Drop for Kept<T> {
    fn drop(&mut self) {
        if self.0.is_large() {
            aside(true, || self.0.clear());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use super::*;

    /// The long work ends only once another task of the only worker has run.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn long_work_lets_other_tasks_run() {
        let long = tokio::spawn(async {
            let (done, other) = mpsc::channel();
            tokio::spawn(async move { done.send(7) });
            let patience = Duration::from_secs(10);
            aside(true, move || other.recv_timeout(patience).ok())
        });
        assert_eq!(long.await.unwrap(), Some(7));
    }

    struct Waiting(mpsc::Receiver<u8>, mpsc::Sender<u8>);

    impl Large for Waiting {
        fn is_large(&self) -> bool {
            true
        }

        fn clear(&mut self) {
            let value = self.0.recv().unwrap();
            self.1.send(value).unwrap();
        }
    }

    /// What is large is let go of only once another task of the only worker has run.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_is_large_is_let_go_of_while_other_tasks_run() {
        let (cleared, wait) = mpsc::channel();
        let long = tokio::spawn(async {
            let (done, other) = mpsc::channel();
            tokio::spawn(async move { done.send(7) });
            drop(Kept::new(Waiting(other, cleared)));
        });
        long.await.unwrap();
        assert_eq!(wait.recv(), Ok(7));
    }

    #[tokio::test]
    async fn works_in_place_where_there_is_one_thread() {
        assert_eq!(aside(true, || 7), 7);
        assert_eq!(aside(false, || 7), 7);
    }
}
