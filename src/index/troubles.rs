//! What keeps tails from going on, for those who look after the daemon.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The last error of each network whose tail does not come further.
#[derive(Debug, Default)]
pub struct Troubles(Mutex<BTreeMap<String, String>>);

impl Troubles {
    /// `None`: the network's tail goes on.
    pub fn set(&self, network: &str, why: Option<String>) {
        let mut all = self.all();
        match why {
            Some(why) => drop(all.insert(network.to_owned(), why)),
            None => drop(all.remove(network)),
        }
    }

    pub fn of(&self, network: &str) -> Option<String> {
        self.all().get(network).cloned()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
