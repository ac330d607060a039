//! Peers that did not answer in time lately.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// Whether a peer is late: its last answer did not come in time.
#[derive(Debug, Default)]
pub struct Late {
    is: AtomicBool,
    probed: AtomicBool,
}

/// The one request to a late peer that is not given up with the rest: it tells when the peer answers again.
pub struct Probe(Arc<Late>);

impl Late {
    pub fn is_late(&self) -> bool {
        self.is.load(Relaxed)
    }

    /// The peer's answer came in time, or did not.
    pub fn set(&self, late: bool) {
        self.is.store(late, Relaxed);
    }

    /// `None` while another request is the probe.
    pub fn probe(self: &Arc<Self>) -> Option<Probe> {
        let taken = self.probed.swap(true, Relaxed);
        (!taken).then(|| Probe(self.clone()))
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.0.probed.store(false, Relaxed);
    }
}
