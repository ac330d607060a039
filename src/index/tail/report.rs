//! What a tail reports: metrics, the log, and what stops it.

use super::{IndexError, Step, Tail};

impl Tail {
    pub(super) fn measure(&self, at: u64, head: u64) {
        let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let chain = || self.network.name.clone();
        metrics::gauge!("intentd_index_height", "chain" => chain()).set(number(at));
        metrics::gauge!("intentd_index_lag_blocks", "chain" => chain())
            .set(number(head.saturating_sub(at)));
    }

    /// Reports an error once a few tries at every provider did not cure it.
    pub(super) fn troubled(&self, errors: u32, stepped: &Result<Step, IndexError>) {
        let tries = u32::try_from(self.scanners.len().max(1)).unwrap_or(u32::MAX);
        let why = match stepped {
            Err(error) if errors > tries.saturating_mul(2) => Some(error.to_string()),
            Err(_) => return,
            Ok(_) => None,
        };
        self.tail_states.set_trouble(&self.network.name, why);
    }

    pub(super) fn failed(&self, error: &IndexError) {
        let network = self.network.name.clone();
        match error {
            IndexError::Moved => tracing::debug!(%network, %error, "indexing again"),
            IndexError::Read(_) | IndexError::Unconfirmed(_) => {
                tracing::warn!(%network, %error, "not indexed");
            }
            _ => tracing::error!(%network, %error, "not indexed"),
        }
        metrics::counter!("intentd_index_errors_total", "chain" => network).increment(1);
    }
}
