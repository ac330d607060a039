//! What sled leaves undone between "written" and "survives a power loss".
//!
//! sled 0.34's `flush` ends in `sync_file_range`, which neither flushes the disk's cache nor the
//! file's length, and it never syncs a blob (a value or page above its segment size). [`Disk::sync`]
//! does both on handles of our own, opened before the first write so that they see its errors.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{File, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::io::Errno;

use sha2::{Digest, Sha256};

/// What only its owner may open.
const DIRECTORY: u32 = 0o700;
/// See [`DIRECTORY`].
pub(super) const FILE: u32 = 0o600;
/// Between two tries to open something while there is no descriptor for it.
const PAUSE: Duration = Duration::from_millis(10);
/// Tries between two lines in the log about that.
const SILENT: u32 = 500;
/// Tries to note a doubt while there is no descriptor for it.
const NOTED: u32 = 200;

/// Handles to the files of an opened store.
pub(super) struct Disk {
    pub(super) log: File,
    path: PathBuf,
    blobs: PathBuf,
    synced: BTreeSet<OsString>,
    witness: File,
    /// The number of the last durable group of commits.
    pub(super) sequence: u64,
}

impl Disk {
    /// Opens the handles and makes durable that the files exist. A sync that fails leaves the store
    /// in doubt, now and after a restart.
    pub(super) fn open(path: &Path, sequence: u64) -> io::Result<Self> {
        let mut options = File::options();
        let witness = options
            .create(true)
            .truncate(false)
            .write(true)
            .mode(FILE)
            .open(path.join("witness"))?;
        let log = File::options()
            .read(true)
            .write(true)
            .open(path.join("db"))?;
        let mut disk = Self {
            log,
            path: path.to_owned(),
            blobs: path.join("blobs"),
            synced: BTreeSet::new(),
            witness,
            sequence,
        };
        let files = [
            File::open(path.join("conf"))?,
            File::open(path)?,
            File::open(parent(&path.canonicalize()?))?,
        ];
        let mut settle = || {
            disk.log.sync_all()?;
            disk.sync_blobs()?;
            files.iter().try_for_each(File::sync_all)
        };
        settle().inspect_err(|error| doubt(path, error))?;
        Ok(disk)
    }

    /// Makes durable what sled has flushed. A failure leaves the store in doubt, now and after a
    /// restart: the kernel has dropped pages that it will not speak of again.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.sync_blobs()
            .and_then(|()| self.log.sync_data())
            .inspect_err(|error| doubt(&self.path, error))
    }

    /// Notes that group `sequence` is durable, for [`witnessed`].
    ///
    /// Not synced: after a crash of the process it is exact, after a power loss it is older.
    pub(super) fn attest(&mut self, sequence: u64) -> io::Result<()> {
        self.sequence = sequence;
        self.witness.write_all_at(&seal(sequence), 0)
    }

    /// Waits until there is a descriptor for what sled may want to open: it takes a lack of them for
    /// the end of the store. Somebody may still be faster than sled: then the store takes no more commits
    /// until a restart, in no doubt, since what sled wrote before is synced all the same.
    pub(super) fn room(&self) -> io::Result<()> {
        opened(|| File::open(&self.path)).map(drop)
    }

    fn sync_blobs(&mut self) -> io::Result<()> {
        let mut fresh = BTreeSet::new();
        for blob in opened(|| std::fs::read_dir(&self.blobs))? {
            fresh.insert(blob?.file_name());
        }
        for name in fresh.difference(&self.synced) {
            match opened(|| File::open(self.blobs.join(name))) {
                Ok(blob) => blob.sync_all()?,
                // sled's cleaner has removed it meanwhile.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        if fresh != self.synced {
            opened(|| File::open(&self.blobs))?.sync_all()?;
            self.synced = fresh;
        }
        Ok(())
    }
}

/// Opens something, however long there is no descriptor for it: what is written is in the kernel's
/// hands, nothing has failed, and whoever holds the descriptors gives some back.
fn opened<T>(open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let mut tries = 0;
    loop {
        match open() {
            Err(error) if is_lack(&error) => {
                if tries % SILENT == 0 {
                    tracing::warn!(%error, "the store waits for a file descriptor");
                    metrics::counter!("intentd_store_descriptor_waits_total").increment(1);
                }
                tries += 1;
                pause();
            }
            done => return done,
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the committer's thread blocks anyway"
)]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// Whether the process or the system has no descriptor left.
pub(super) fn is_lack(error: &io::Error) -> bool {
    let lacks = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error
        .raw_os_error()
        .is_some_and(|code| lacks.contains(&code))
}

/// The file that says that a sync failed, and how.
fn doubts(path: &Path) -> PathBuf {
    path.join("in-doubt")
}

/// Why the store in `path` is in doubt, if it is.
pub(super) fn doubted(path: &Path) -> io::Result<Option<String>> {
    match std::fs::read(doubts(path)) {
        Ok(why) => Ok(Some(String::from_utf8_lossy(&why).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Notes that nobody knows what is on the disk. It may not get there itself; the page cache holds it
/// for as long as it holds what makes the store look whole.
fn doubt(path: &Path, error: &io::Error) {
    let note = || {
        let mut options = File::options();
        let options = options.create(true).truncate(true).write(true).mode(FILE);
        let mut file = options.open(doubts(path))?;
        file.write_all(format!("a sync failed: {error}").as_bytes())?;
        file.sync_all()?;
        File::open(path)?.sync_all()
    };
    for _ in 0..NOTED {
        match note() {
            Err(lack) if is_lack(&lack) => pause(),
            Err(error) => {
                tracing::error!(%error, "cannot note for the next start that the store is in doubt");
                return;
            }
            Ok(()) => return,
        }
    }
    tracing::error!("no descriptor to note for the next start that the store is in doubt");
}

/// Takes the doubt back; `false` if there was none.
pub(super) fn trust(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(doubts(path)) {
        Ok(()) => File::open(path)?.sync_all().map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The mode of a directory that somebody else than its owner may look into, or write to.
pub(super) fn looseness(path: &Path) -> io::Result<Option<u32>> {
    let mode = std::fs::metadata(path)?.permissions().mode() & 0o7777;
    Ok((mode & !DIRECTORY & 0o777 != 0).then_some(mode))
}

/// Closes a store's directory, and what lies in it, to everybody but its owner: files may have been
/// copied there, or made under another mask.
pub(super) fn tighten(path: &Path) -> io::Result<()> {
    close(path, DIRECTORY)?;
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() => tighten(&entry.path())?,
            kind if kind.is_file() => close(&entry.path(), FILE)?,
            _ => {}
        }
    }
    Ok(())
}

fn close(path: &Path, mode: u32) -> io::Result<()> {
    if std::fs::metadata(path)?.permissions().mode() & 0o777 == mode {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Creates `path` with the directories above it, for its owner only; each name that is new is made durable in its
/// parent by `sync` before anything is put below it.
pub(super) fn create(
    path: &Path,
    sync: &mut impl FnMut(&Path) -> io::Result<()>,
) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let above = parent(path);
    create(above, sync)?;
    match std::fs::DirBuilder::new().mode(DIRECTORY).create(path) {
        Ok(()) => sync(above),
        // Somebody else was faster, and may not have synced it yet.
        Err(_) if path.is_dir() => sync(above),
        Err(error) => Err(error),
    }
}

/// Syncs a directory: the names in it.
pub(super) fn sync_names(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// The directory that holds the name `path`; itself for a root.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(above) if above.as_os_str().is_empty() => Path::new("."),
        Some(above) => above,
        None => path,
    }
}

/// The last group that a store in `path` has acknowledged, as its file `witness` says.
///
/// sled takes a damaged page at the end of its log for the end of the log and forgets what follows.
/// The witness stands outside of the log: a log that ends before it has lost acknowledged commits.
/// Layout: the number, 8 bytes big endian, and the first 8 bytes of their sha256; `None` when that
/// does not match, as after a torn write.
pub(super) fn witnessed(path: &Path) -> io::Result<Option<u64>> {
    let bytes = match std::fs::read(path.join("witness")) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let number = bytes
        .get(..8)
        .and_then(|number| number.try_into().ok())
        .map(u64::from_be_bytes);
    Ok(number.filter(|number| bytes == seal(*number)))
}

fn seal(sequence: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&sequence.to_be_bytes());
    let digest = Sha256::digest(&bytes[..8]);
    bytes[8..].copy_from_slice(&digest[..8]);
    bytes
}
