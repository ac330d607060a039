//! The daemon's clock: the only place where it is read.

use std::time::{Duration, SystemTime};

/// Unix seconds; 0 before their beginning.
pub fn unix_seconds() -> u64 {
    now().as_secs()
}

/// Unix milliseconds; 0 before their beginning.
pub fn unix_millis() -> u64 {
    u64::try_from(now().as_millis()).unwrap_or(u64::MAX)
}

fn now() -> Duration {
    #[allow(clippy::disallowed_methods)]
    let now = SystemTime::now();
    now.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}
