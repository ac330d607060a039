//! Disk that is kept free for what must go on: signing, filling, refunding. Below it no quotes are
//! taken.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio_util::sync::CancellationToken;

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub struct Reserve {
    /// Bytes that must be free wherever rows are written.
    least: u64,
    paths: Vec<PathBuf>,
    low: AtomicBool,
}

impl Reserve {
    /// Of `least` bytes where each of `paths` is.
    pub fn new(paths: Vec<PathBuf>, least: u64) -> Self {
        Self {
            least,
            paths,
            low: AtomicBool::new(false),
        }
    }

    /// Whether less is free than is to be kept.
    pub fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }

    /// Looks what is free.
    pub fn look(&self) -> io::Result<()> {
        for path in &self.paths {
            let found = rustix::fs::statvfs(path)?;
            if !self.keeps(found.f_bavail.saturating_mul(found.f_frsize)) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Notes that `free` bytes are there; whether that is enough.
    fn keeps(&self, free: u64) -> bool {
        let low = free < self.least;
        metrics::gauge!("intentd_store_disk_low").set(if low { 1.0 } else { 0.0 });
        if self.low.swap(low, Ordering::Relaxed) != low {
            match low {
                true => tracing::error!(free, "DISK_RESERVE is reached: no quotes are taken"),
                false => tracing::info!(free, "there is room again: quotes are taken"),
            }
        }
        !low
    }

    /// Looks again and again until `shutdown`.
    pub async fn watch(self: Arc<Self>, shutdown: CancellationToken) {
        loop {
            let this = self.clone();
            let looked = tokio::task::spawn_blocking(move || this.look()).await;
            if let Ok(Err(error)) = looked {
                tracing::warn!(%error, "cannot tell how much of the disk is free");
            }
            let waited = shutdown
                .run_until_cancelled(tokio::time::sleep(PAUSE))
                .await;
            if waited.is_none() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_the_reserve_it_is_low_and_above_it_is_not_any_more() {
        let reserve = Reserve::new(Vec::new(), 100);
        assert!(!reserve.is_low());
        for (free, low) in [(100, false), (99, true), (0, true), (100, false)] {
            reserve.keeps(free);
            assert_eq!(reserve.is_low(), low, "{free}");
        }
        reserve.look().unwrap();
    }

    #[test]
    fn the_file_system_is_asked() {
        let place = tempfile::tempdir().unwrap();
        let all = Reserve::new(vec![place.path().to_owned()], u64::MAX);
        all.look().unwrap();
        assert!(all.is_low());
        let none = Reserve::new(vec![place.path().to_owned()], 1);
        none.look().unwrap();
        assert!(!none.is_low());
        let nowhere = Reserve::new(vec![place.path().join("none")], 1);
        assert!(nowhere.look().is_err());
    }
}
