//! The disk space that stays free for signing, filling and refunding. When less is free, the daemon accepts no
//! quotes, and of what costs a caller next to nothing it signs nothing new without a key: mappings, authorizations and
//! initiations that an owner signs, inclusions, transfers, and orders that end at the hub.

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

/// The pause between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// Watches the free space of the stores' disks and says when it falls below the reserve.
#[derive(Debug, Default)]
pub struct Reserve {
    /// The bytes that must be free on every disk with rows.
    least: u64,
    paths: Vec<PathBuf>,
    low: AtomicBool,
}

impl Reserve {
    /// Reserves `least` bytes on the disk of each of `paths`.
    pub fn new(paths: Vec<PathBuf>, least: u64) -> Self {
        Self {
            least,
            paths,
            low: AtomicBool::new(false),
        }
    }

    /// Whether less space is free than the reserve.
    pub fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }

    /// Reads the free space of all disks; the fullest one decides. Where one cannot be read, the state stays as it was,
    /// unless another one is full.
    pub fn look(&self) -> io::Result<()> {
        let (mut fullest, mut failure) = (None, None);
        for path in &self.paths {
            match rustix::fs::statvfs(path) {
                Ok(found) => {
                    let free = found.f_bavail.saturating_mul(found.f_frsize);
                    fullest = Some(fullest.map_or(free, |least: u64| least.min(free)));
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        let decides = |free: &u64| failure.is_none() || *free < self.least;
        if let Some(free) = fullest.filter(decides) {
            self.record(free);
        }
        match failure {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Records that `free` bytes are free.
    fn record(&self, free: u64) {
        let low = free < self.least;
        metrics::gauge!("intentd_store_disk_low").set(if low { 1.0 } else { 0.0 });
        if self.low.swap(low, Ordering::Relaxed) != low {
            match low {
                true => tracing::error!(
                    free,
                    "DISK_RESERVE is reached: no quotes are accepted, and less is signed for callers without a key"
                ),
                false => tracing::info!(
                    free,
                    "the disk has room again: quotes are accepted, and all is signed for everybody"
                ),
            }
        }
    }

    /// Reads the free space regularly until `shutdown`.
    pub async fn watch(self: Arc<Self>, shutdown: CancellationToken) {
        loop {
            let this = self.clone();
            let looked = tokio::task::spawn_blocking(move || this.look()).await;
            if let Ok(Err(error)) = looked {
                tracing::warn!(%error, "the daemon cannot read the free disk space");
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
    use std::fs::File;

    use super::*;

    #[test]
    fn below_the_reserve_it_is_low_and_above_it_is_not_any_more() {
        let reserve = Reserve::new(Vec::new(), 100);
        assert!(!reserve.is_low());
        for (free, low) in [(100, false), (99, true), (0, true), (100, false)] {
            reserve.record(free);
            assert_eq!(reserve.is_low(), low, "{free}");
        }
        reserve.look().unwrap();
    }

    #[test]
    fn the_file_system_is_asked() {
        let directory = tempfile::tempdir().unwrap();
        let all = Reserve::new(vec![directory.path().to_owned()], u64::MAX);
        all.look().unwrap();
        assert!(all.is_low());
        let none = Reserve::new(vec![directory.path().to_owned()], 1);
        none.look().unwrap();
        assert!(!none.is_low());
        let nowhere = Reserve::new(vec![directory.path().join("none")], 1);
        assert!(nowhere.look().is_err());
    }

    /// What is logged while `work` is done.
    fn logged(work: impl FnOnce()) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        // With a single subscriber, the first thread that passes an event decides for all threads whether it is
        // recorded, and other tests pass the same events without a subscriber.
        let _second = tracing::Dispatch::new(tracing_subscriber::registry());
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(File::create(&path).unwrap())
            .finish();
        tracing::subscriber::with_default(subscriber, work);
        std::fs::read_to_string(&path).unwrap()
    }

    /// Nothing is free on a file system without blocks.
    #[test]
    fn the_fullest_disk_decides_and_is_told_once() {
        let directory = tempfile::tempdir().unwrap();
        let (room, none) = (directory.path().to_owned(), PathBuf::from("/proc"));
        for paths in [vec![room.clone(), none.clone()], vec![none, room]] {
            let reserve = Reserve::new(paths, 1);
            let first = logged(|| reserve.look().unwrap());
            assert!(reserve.is_low());
            assert_eq!(first.lines().count(), 1, "{first}");
            assert_eq!(logged(|| reserve.look().unwrap()), "");
            assert!(reserve.is_low());
        }
    }

    #[test]
    fn a_disk_that_cannot_be_read_leaves_the_state_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let paths = vec![directory.path().to_owned(), directory.path().join("none")];
        let reserve = Reserve::new(paths, 1);
        assert!(reserve.look().is_err());
        assert!(!reserve.is_low());
        reserve.record(0);
        assert!(reserve.look().is_err());
        assert!(reserve.is_low());
    }

    /// Nothing is free on a file system without blocks.
    #[test]
    fn a_disk_that_cannot_be_read_hides_no_full_one() {
        let directory = tempfile::tempdir().unwrap();
        let (full, none) = (PathBuf::from("/proc"), directory.path().join("none"));
        for paths in [vec![full.clone(), none.clone()], vec![none, full]] {
            let reserve = Reserve::new(paths, 1);
            assert!(reserve.look().is_err());
            assert!(reserve.is_low());
        }
    }
}
