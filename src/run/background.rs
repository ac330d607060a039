//! Tasks that must live as long as the daemon. Without its watcher a daemon would sign without seeing reorgs, so the end
//! of any task ends the daemon. So does the failure of a store: without it no task does anything.

use std::{collections::HashMap, future::Future};

use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// The daemon's tasks. The end of any of them before the shutdown ends the daemon.
pub struct Background {
    tasks: JoinSet<()>,
    names: HashMap<Id, String>,
    shutdown: CancellationToken,
}

/// A task ended before the shutdown.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} died")]
pub struct Died(String);

impl Background {
    /// `shutdown` ends the tasks and the daemon's work.
    pub fn new(shutdown: CancellationToken) -> Self {
        Self {
            tasks: JoinSet::new(),
            names: HashMap::new(),
            shutdown,
        }
    }

    /// Starts a task that runs until `shutdown`.
    pub fn spawn(
        &mut self,
        name: impl Into<String>,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let started = self.tasks.spawn(task);
        self.names.insert(started.id(), name.into());
    }

    /// Waits for `work`, then for all tasks. A task that ends too early asks `work` to end.
    pub async fn guard(mut self, work: impl Future<Output = ()>) -> Result<(), Died> {
        let mut died = None;
        tokio::pin!(work);
        loop {
            tokio::select! {
                () = &mut work => break,
                Some(ended) = self.tasks.join_next_with_id() => {
                    died = died.or(self.early(ended));
                }
            }
        }
        self.shutdown.cancel();
        while let Some(ended) = self.tasks.join_next_with_id().await {
            died = died.or(self.early(ended));
        }
        died.map_or(Ok(()), Err)
    }

    /// What is wrong with the end of a task, if anything is.
    fn early(&self, ended: Result<(Id, ()), JoinError>) -> Option<Died> {
        let (id, panic) = match &ended {
            Ok((id, ())) => (*id, None),
            Err(error) => (error.id(), Some(error)),
        };
        if panic.is_none() && self.shutdown.is_cancelled() {
            return None;
        }
        let name = self.names.get(&id).cloned().unwrap_or_default();
        let error = panic.map_or_else(|| "it returned".to_owned(), ToString::to_string);
        tracing::error!(task = name, error, "a task died: the daemon ends");
        metrics::counter!("intentd_dead_tasks_total", "task" => name.clone()).increment(1);
        self.shutdown.cancel();
        Some(Died(name))
    }
}

/// Ends when `failed` says why the store `name` failed, or at `shutdown`. Only a restart opens the store again.
pub async fn failure(
    name: &'static str,
    failed: impl Future<Output = String>,
    shutdown: CancellationToken,
) {
    if let Some(why) = shutdown.run_until_cancelled(failed).await {
        tracing::error!(store = name, why, "a store failed: the daemon ends");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the daemon's end is when `task` runs behind it; the work goes on until the shutdown.
    async fn end(
        task: impl Future<Output = ()> + Send + 'static,
        shutdown: CancellationToken,
    ) -> Result<(), Died> {
        let mut background = Background::new(shutdown.clone());
        background.spawn("one", task);
        let other = shutdown.clone();
        background.spawn("other", async move { other.cancelled().await });
        background
            .guard(async move { shutdown.cancelled().await })
            .await
    }

    #[tokio::test]
    async fn a_task_that_panics_or_returns_ends_the_daemon() {
        let died = Err(Died("one".into()));
        assert_eq!(
            end(async { panic!("on purpose") }, CancellationToken::new()).await,
            died
        );
        assert_eq!(end(async {}, CancellationToken::new()).await, died);
    }

    #[tokio::test]
    async fn a_store_that_fails_ends_the_daemon_and_one_that_works_does_not() {
        let shutdown = CancellationToken::new();
        let fails = failure("store", async { "disk full".into() }, shutdown.clone());
        assert_eq!(end(fails, shutdown).await, Err(Died("one".into())));
        let shutdown = CancellationToken::new();
        let works = failure("store", std::future::pending(), shutdown.clone());
        let cancels = shutdown.clone();
        let (ended, ()) = tokio::join!(end(works, shutdown), async {
            cancels.cancel();
        });
        assert_eq!(ended, Ok(()));
    }

    #[tokio::test]
    async fn tasks_that_end_at_the_shutdown_are_in_order_and_panics_then_are_not() {
        let shutdown = CancellationToken::new();
        let (waits, cancels) = (shutdown.clone(), shutdown.clone());
        let (ended, ()) = tokio::join!(
            end(async move { waits.cancelled().await }, shutdown),
            async {
                cancels.cancel();
            }
        );
        assert_eq!(ended, Ok(()));
        let shutdown = CancellationToken::new();
        let waits = shutdown.clone();
        let late = async move {
            waits.cancelled().await;
            panic!("on purpose");
        };
        shutdown.cancel();
        assert_eq!(end(late, shutdown).await, Err(Died("one".into())));
    }

    #[tokio::test]
    async fn work_that_ends_ends_the_tasks() {
        let shutdown = CancellationToken::new();
        let mut background = Background::new(shutdown.clone());
        background.spawn("one", async move { shutdown.cancelled().await });
        assert_eq!(background.guard(async {}).await, Ok(()));
    }
}
