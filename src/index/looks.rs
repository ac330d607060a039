//! Runs looks: at each network one at a time, so that a network that does not answer delays no other.

use std::{collections::HashSet, future::Future};

use tokio::task::JoinSet;

/// The looks under way. Dropping it ends them.
#[derive(Default)]
pub struct Looks {
    tasks: JoinSet<String>,
    busy: HashSet<String>,
}

impl Looks {
    /// Removes looks that have ended. A panic of a look continues here.
    pub fn reap(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            match ended {
                Ok(network) => drop(self.busy.remove(&network)),
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => {}
            }
        }
    }

    /// Begins `look` unless one is under way at `network`.
    pub fn begin(&mut self, network: String, look: impl Future<Output = ()> + Send + 'static) {
        if self.busy.insert(network.clone()) {
            self.tasks.spawn(async move {
                look.await;
                network
            });
        }
    }
}
