//! Looks under way: at each network one at a time, so that one that does not answer holds up no other.

use std::{collections::HashSet, future::Future};

use tokio::task::JoinSet;

/// See the module. Dropping it ends them.
#[derive(Default)]
pub struct Looks {
    tasks: JoinSet<String>,
    busy: HashSet<String>,
}

impl Looks {
    /// Takes note of looks that have ended. What panicked there panics here.
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
