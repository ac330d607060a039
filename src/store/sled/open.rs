//! Opens a directory as a store and detects what is wrong with it.

use std::{
    fs::{File, TryLockError},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{OWN, disk, flat, guard::guarded};
use crate::store::{FORMAT, Key, OLDER};

/// The size of sled's cache; sled's default is a gigabyte.
const CACHE_BYTES: u64 = 64 << 20;

/// The tries to lock a directory in use; the pause between them is below.
const LOCK_ATTEMPTS: usize = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Why a directory cannot be opened as a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{0} is in use by another process: is a daemon running?")]
    Locked(PathBuf),
    #[error("the store in {path} is damaged: {why}")]
    Damaged { path: PathBuf, why: String },
    #[error(
        "the store in {path} has format {found}, this version knows format {FORMAT}: it was written by {}",
        match *found {
            FORMAT.. => "a newer version",
            found if OLDER.contains(&found) => "an older version: `intentd store export` with that one, then `intentd store import` with this one into an empty DATA_DIR",
            _ => "an older version: go on with that one, or begin in an empty DATA_DIR with another signing key",
        }
    )]
    Format { path: PathBuf, found: u8 },
    /// Acknowledged rows may be lost, although the store looks complete.
    #[error(
        "the store in {path} is in doubt ({why}): check its disk, then run `intentd journal trust`"
    )]
    InDoubt { path: PathBuf, why: String },
    /// Other users can read the rows, which contain secrets, or take the lock and keep the daemon from starting.
    #[error(
        "{path} is open to other users (mode {mode:o}): run `chmod 700 {path}`, and check who had access"
    )]
    Loose { path: PathBuf, mode: u32 },
    #[error("there is no store in {0}: `intentd serve` creates one")]
    Missing(PathBuf),
    /// With one store alone the daemon does not know what was signed.
    #[error(
        "the store in {store} and the journal in {journal} do not belong together, or one of them is gone: put back what was there, look at DATA_DIR and JOURNAL_DIR, and never start one without the other"
    )]
    Apart { store: PathBuf, journal: PathBuf },
    #[error("cannot open the store in {path}: {error}")]
    Io { path: PathBuf, error: io::Error },
}

impl OpenError {
    /// What a failed operation on the store in `path` becomes.
    pub(in crate::store) fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io {
            path: path.clone(),
            error,
        }
    }

    /// Whether another process holds the directory: by our lock, or by sled's.
    pub fn is_held(&self) -> bool {
        match self {
            Self::Locked(_) => true,
            Self::Io { error, .. } => error.to_string().contains("could not acquire lock"),
            _ => false,
        }
    }
}

/// Whether a missing store is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Making {
    Allowed,
    Refused,
}

/// Checks the directory `path`, which must be accessible to its owner only; creates a missing one if `making` allows
/// it.
pub fn home(path: &Path, making: Making) -> Result<(), OpenError> {
    ensure(path, making)?;
    match disk::looseness(path).map_err(OpenError::io(path))? {
        None => Ok(()),
        Some(mode) => Err(OpenError::Loose {
            path: path.to_owned(),
            mode,
        }),
    }
}

/// Checks that `path` is a directory; creates a missing one if `making` allows it.
pub(super) fn ensure(path: &Path, making: Making) -> Result<(), OpenError> {
    match making {
        Making::Refused if path.is_dir() => Ok(()),
        Making::Refused => Err(OpenError::Missing(path.to_owned())),
        Making::Allowed => disk::create(path, &mut disk::sync_names).map_err(OpenError::io(path)),
    }
}

/// Retries for a second while another process holds the directory.
pub(super) fn patiently<T>(attempt: impl Fn() -> Result<T, OpenError>) -> Result<T, OpenError> {
    for _ in 0..LOCK_ATTEMPTS {
        match attempt() {
            Err(error) if error.is_held() => {
                #[allow(clippy::disallowed_methods, reason = "opening blocks anyway")]
                std::thread::sleep(LOCK_PAUSE);
            }
            opened => return opened,
        }
    }
    attempt()
}

/// Takes a lock of our own, because sled reports its lock only as a text.
pub(super) fn lock(path: &Path) -> Result<File, OpenError> {
    let io = OpenError::io(path);
    let mut options = File::options();
    let file = options
        .create(true)
        .truncate(false)
        .write(true)
        .mode(disk::FILE)
        .open(path.join("lock"));
    let file = file.map_err(&io)?;
    match file.try_lock() {
        // The directory may have been replaced during the open.
        Ok(()) if is_at(&file, path).map_err(&io)? => Ok(file),
        Ok(()) => Err(OpenError::Locked(path.to_owned())),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(io(error)),
    }
}

/// Whether `file` is the lock file that is in `path` now.
pub(super) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let (held, named) = (file.metadata()?, std::fs::metadata(path.join("lock"))?);
    Ok((held.dev(), held.ino()) == (named.dev(), named.ino()))
}

pub(super) fn open_tree(path: &Path) -> Result<::sled::Db, OpenError> {
    let config = ::sled::Config::new().path(path).cache_capacity(CACHE_BYTES);
    let mut refused = None;
    let opened = guarded(|| {
        config.open().inspect_err(|e| {
            if let ::sled::Error::Io(e) = e {
                refused = Some(io::Error::new(e.kind(), e.to_string()));
            }
        })
    });
    opened.map_err(|why| match refused {
        // sled reports torn or missing pieces of its files as one of these.
        Some(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::NotFound
            ) =>
        {
            OpenError::io(path)(error)
        }
        _ => OpenError::Damaged {
            path: path.to_owned(),
            why,
        },
    })
}

/// The state of an opened tree.
pub(super) struct Prepared {
    /// The number of the last group of commits.
    pub(super) sequence: u64,
    pub(super) origin: Origin,
}

/// Which stores belong together, and whether this one has rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The same in both stores of a pair; `None` in a single one.
    pub pair: Option<[u8; 16]>,
    /// Whether there are no rows.
    pub blank: bool,
}

/// Checks the layout and the witness. A tree without a pair belongs to `pair` from now on, once its log is synced.
pub(super) fn prepare(
    path: &Path,
    tree: &::sled::Db,
    pair: Option<[u8; 16]>,
) -> Result<Prepared, OpenError> {
    let damaged = |why: String| OpenError::Damaged {
        path: path.to_owned(),
        why,
    };
    let own = |name: &str| {
        let key = flat(&Key::new(OWN, name));
        guarded(|| tree.get(key)).map_err(damaged)
    };
    match own("format")?.as_deref() {
        Some(&[FORMAT]) => {}
        Some(found) => {
            let found = found.first().copied().unwrap_or_default();
            return Err(OpenError::Format {
                path: path.to_owned(),
                found,
            });
        }
        None => {
            let key = flat(&Key::new(OWN, "format"));
            guarded(|| tree.insert(key, &[FORMAT])).map_err(damaged)?;
            guarded(|| tree.flush()).map_err(damaged)?;
        }
    }
    let sequence = match own("sequence")?.as_deref() {
        None => 0,
        Some(bytes) => u64::from_be_bytes(
            bytes
                .try_into()
                .map_err(|_| damaged("sequence is not 8 bytes".into()))?,
        ),
    };
    let witnessed = disk::witnessed(path).map_err(OpenError::io(path))?;
    if witnessed.is_some_and(|witnessed| witnessed > sequence) {
        return Err(damaged(format!(
            "its log ends at commit group {sequence}, but group {} was acknowledged",
            witnessed.unwrap_or_default()
        )));
    }
    let mut origin = Origin {
        pair: own("pair")?.and_then(|id| id.as_ref().try_into().ok()),
        blank: guarded(|| tree.range([OWN.0 + 1]..).next().transpose())
            .map_err(damaged)?
            .is_none(),
    };
    if let (None, Some(pair)) = (origin.pair, pair) {
        let key = flat(&Key::new(OWN, "pair"));
        guarded(|| tree.insert(key, &pair)).map_err(damaged)?;
        guarded(|| tree.flush()).map_err(damaged)?;
        origin.pair = Some(pair);
    }
    Ok(Prepared { sequence, origin })
}
