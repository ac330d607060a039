//! Peers that did not answer in time lately.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use tokio::time::Instant;

/// Whether a peer is late: a question was not answered in time, and none that was asked since then was.
#[derive(Debug, Default)]
pub struct Late {
    times: Mutex<Times>,
    probed: AtomicBool,
}

#[derive(Debug, Default)]
struct Times {
    late: bool,
    /// Of the last answer in time.
    answered: Option<Instant>,
}

/// The one request to a late peer that is not given up with the rest: it tells when the peer answers again.
pub struct Probe(Arc<Late>);

impl Late {
    pub fn is_late(&self) -> bool {
        self.times().late
    }

    /// The peer answered in time.
    pub fn answered(&self) {
        *self.times() = Times {
            late: false,
            answered: Some(Instant::now()),
        };
    }

    /// The peer did not answer in time what it was asked at `asked`.
    pub fn missed(&self, asked: Instant) {
        let mut times = self.times();
        times.late |= times.answered.is_none_or(|answered| asked > answered);
    }

    /// `None` while another request is the probe.
    pub fn probe(self: &Arc<Self>) -> Option<Probe> {
        let taken = self.probed.swap(true, Relaxed);
        (!taken).then(|| Probe(self.clone()))
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.0.probed.store(false, Relaxed);
    }
}
