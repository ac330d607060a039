//! What sled leaves undone between "written" and "survives a power loss".
//!
//! sled 0.34's `flush` ends in `sync_file_range`, which neither flushes the disk's cache nor the
//! file's length, and it never syncs a blob (a value or page above its segment size). [`Disk::sync`]
//! does both on handles of our own, opened before the first write so that they see its errors.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::File,
    io::{self, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

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

    fn sync_blobs(&mut self) -> io::Result<()> {
        let mut fresh = BTreeSet::new();
        for blob in std::fs::read_dir(&self.blobs)? {
            fresh.insert(blob?.file_name());
        }
        for name in fresh.difference(&self.synced) {
            match File::open(self.blobs.join(name)) {
                Ok(blob) => blob.sync_all()?,
                // sled's cleaner has removed it meanwhile.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        if fresh != self.synced {
            File::open(&self.blobs)?.sync_all()?;
            self.synced = fresh;
        }
        Ok(())
    }
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
    let noted = File::create(doubts(path))
        .and_then(|mut file| {
            file.write_all(format!("a sync failed: {error}").as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| File::open(path)?.sync_all());
    if let Err(error) = noted {
        tracing::error!(%error, "cannot note for the next start that the store is in doubt");
    }
}

/// Takes the doubt back; `false` if there was none.
pub(super) fn trust(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(doubts(path)) {
        Ok(()) => File::open(path)?.sync_all().map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates `path` with the directories above it; each name that is new is made durable in its
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
    match std::fs::create_dir(path) {
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
