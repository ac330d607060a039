//! What callers who wait for the answer make the providers of one network read: so much a second, and so much at the same
//! time. Callers without a key ([`asking`]) have half of both at most. The providers are those that deposits are confirmed by.
//! Time is an argument, in unix milliseconds.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use vm::permits::{Held, Permits};

use crate::chains::asking;

/// Transactions that are looked for in a second.
pub const A_SECOND: u32 = 32;
/// Transactions that are looked for at the same time.
pub const AT_ONCE: usize = 8;
/// How long a caller waits for a permit.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// A second in milliseconds.
const SECOND: u64 = 1_000;

/// The permits of one network.
#[derive(Debug)]
pub struct LookPermits {
    window: Mutex<Window>,
    at_once: Permits,
}

/// How many were looked for since `begun`, by the half that they were counted in.
#[derive(Debug, Default)]
struct Window {
    begun: u64,
    keyed: u32,
    strangers: u32,
}

impl Default for LookPermits {
    fn default() -> Self {
        Self {
            window: Mutex::default(),
            at_once: Permits::new(AT_ONCE, AT_ONCE / 2),
        }
    }
}

impl LookPermits {
    /// The caller's permit, for which it may have to wait; `None` where too many are looked for.
    pub async fn enter(&self, now: u64) -> Option<Held<'_>> {
        if !self.count(now) {
            return None;
        }
        self.at_once.wait(!asking::is_keyed(), 1, PATIENCE).await
    }

    /// Counts one more; false where there were enough. A key that has used up the half of the keys takes of the other, as
    /// in the budget for quotes (`paced` of `chains::providers`), which reads a clock of its own.
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
}
