//! What callers who wait for the answer make the providers of one network read: so much a second, and so much at the same
//! time. Callers without a key ([`asking`]) have half of both at most. The providers are those that deposits are confirmed by.
//! Time is an argument, in unix milliseconds.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use crate::chains::asking;

/// Transactions that are looked for in a second.
pub const A_SECOND: u32 = 32;
/// Transactions that are looked for at the same time.
pub const AT_ONCE: usize = 8;
/// How long a caller waits for a turn.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// A second in milliseconds.
const SECOND: u64 = 1_000;

/// The turns of one network.
#[derive(Debug)]
pub struct Turns {
    window: Mutex<Window>,
    all: Semaphore,
    strangers: Semaphore,
}

/// A caller's turn; dropping it ends it.
pub type Turn<'a> = (Option<SemaphorePermit<'a>>, SemaphorePermit<'a>);

/// The turns that were given since `begun`.
#[derive(Debug, Default)]
struct Window {
    begun: u64,
    keyed: u32,
    strangers: u32,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            window: Mutex::default(),
            all: Semaphore::new(AT_ONCE),
            strangers: Semaphore::new(AT_ONCE / 2),
        }
    }
}

impl Turns {
    /// The caller's turn, for which it may have to wait; `None` where too many are looked for.
    pub async fn enter(&self, now: u64) -> Option<Turn<'_>> {
        if !self.count(now) {
            return None;
        }
        timeout(PATIENCE, self.permits()).await.ok().flatten()
    }

    /// Counts one more; false where there were enough. A key that has used up the half of the keys takes of the other.
    fn count(&self, now: u64) -> bool {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        // The clock may go back.
        if now.abs_diff(window.begun) >= SECOND {
            *window = Window {
                begun: now,
                ..Window::default()
            };
        }
        let window = &mut *window;
        let own = asking::is_keyed().then_some(&mut window.keyed);
        let mut halves = own.into_iter().chain([&mut window.strangers]);
        let Some(half) = halves.find(|half| **half < A_SECOND / 2) else {
            return false;
        };
        *half += 1;
        true
    }

    async fn permits(&self) -> Option<Turn<'_>> {
        let stranger = match asking::is_keyed() {
            true => None,
            false => Some(self.strangers.acquire().await.ok()?),
        };
        Some((stranger, self.all.acquire().await.ok()?))
    }
}
