//! Where a request that was let in is counted, for those that count more than once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    auth::KeyLabel,
    limit::{Allowance, Caller, Limiter, Standing},
};

/// Where a request was counted; nowhere by default.
#[derive(Clone, Debug, Default)]
pub struct Toll(Option<Arc<Counted>>);

#[derive(Debug)]
struct Counted {
    counter: Counter,
    allowance: Allowance,
    now: u64,
    /// Where the caller stands since.
    standing: Mutex<Option<Standing>>,
}

#[derive(Clone, Debug)]
pub(super) enum Counter {
    Caller(Callers, (Caller, &'static str)),
    Key(Counters, (KeyLabel, &'static str)),
}

pub(super) type Callers = Arc<Mutex<Limiter<(Caller, &'static str)>>>;
pub(super) type Counters = Arc<Mutex<Limiter<(KeyLabel, &'static str)>>>;

impl Toll {
    pub(super) fn new(counter: Counter, allowance: Allowance, now: u64) -> Self {
        Self(Some(Arc::new(Counted {
            counter,
            allowance,
            now,
            standing: Mutex::default(),
        })))
    }

    /// Counts the request `more` times more: see [`Limiter::charge`].
    pub fn charge(&self, more: u32) {
        let Some(counted) = self.0.as_deref().filter(|_| more > 0) else {
            return;
        };
        let (allowance, count) = (counted.allowance, (more, counted.now));
        counted.stands(match &counted.counter {
            Counter::Caller(callers, key) => locked(callers).charge(*key, allowance, count),
            Counter::Key(keys, key) => locked(keys).charge(key.clone(), allowance, count),
        });
    }

    /// Counts the request `more` times more, or, where the caller has not so many left, not at all, and says
    /// where the caller stands: see [`Limiter::take`].
    pub fn take(&self, more: u32) -> Result<(), Standing> {
        let Some(counted) = self.0.as_deref().filter(|_| more > 0) else {
            return Ok(());
        };
        let (allowance, count) = (counted.allowance, (more, counted.now));
        let standing = counted.stands(match &counted.counter {
            Counter::Caller(callers, key) => locked(callers).take(*key, allowance, count),
            Counter::Key(keys, key) => locked(keys).take(key.clone(), allowance, count),
        });
        match standing.allowed {
            true => Ok(()),
            false => Err(standing),
        }
    }

    /// Where the caller stands since the last charge.
    pub fn standing(&self) -> Option<Standing> {
        self.0.as_deref().and_then(|it| *locked(&it.standing))
    }
}

impl Counted {
    fn stands(&self, standing: Standing) -> Standing {
        *locked(&self.standing) = Some(standing);
        standing
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
