//! The syncs that sled omits between "written" and "survives a power loss".
//!
//! sled 0.34's `flush` ends in `sync_file_range`, which flushes neither the disk's cache nor the file's length, and
//! sled never syncs a blob (a value or page above its segment size). [`Disk::sync`] does both through handles of our
//! own, opened before the first write so that they report its errors.

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

/// The mode of directories: for the owner only.
const DIRECTORY: u32 = 0o700;
/// The mode of files: for the owner only.
pub(super) const FILE: u32 = 0o600;
/// The pause between two tries to open something while no file descriptor is free.
const PAUSE: Duration = Duration::from_millis(10);
/// The tries between two log lines about that.
const SILENT: u32 = 500;
/// The tries to record a doubt while no file descriptor is free.
const NOTED: u32 = 200;

/// The handles to the files of an opened store.
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
    /// Opens the handles and makes the files' existence durable. A failed sync leaves the store in doubt, now and
    /// after a restart.
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

    /// Makes durable what sled has flushed. A failure leaves the store in doubt, now and after a restart: the kernel
    /// has dropped pages and reports them only once.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.sync_blobs()
            .and_then(|()| self.log.sync_data())
            .inspect_err(|error| doubt(&self.path, error))
    }

    /// Records that group `sequence` is durable, for [`witnessed`].
    ///
    /// Not synced: after a crash of the process the record is exact, after a power loss it is older.
    pub(super) fn attest(&mut self, sequence: u64) -> io::Result<()> {
        self.sequence = sequence;
        self.witness.write_all_at(&seal(sequence), 0)
    }

    /// Waits until a file descriptor is free for sled, which takes a lack of them for the end of the store. If
    /// another part of the process takes it first, the store refuses commits until a restart; it is not in doubt,
    /// because what sled wrote before is synced all the same.
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
                // sled's cleaner has removed the file meanwhile.
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

/// Opens something and waits for a free file descriptor as long as needed: the data is in the kernel, nothing has
/// failed, and descriptors become free again.
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

/// Whether the process or the system has no file descriptor left.
pub(super) fn is_lack(error: &io::Error) -> bool {
    let lacks = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error
        .raw_os_error()
        .is_some_and(|code| lacks.contains(&code))
}

/// The file that records a failed sync and its error.
fn doubts(path: &Path) -> PathBuf {
    path.join("in-doubt")
}

/// Why the store in `path` is in doubt; `None` if it is not.
pub(super) fn doubted(path: &Path) -> io::Result<Option<String>> {
    match std::fs::read(doubts(path)) {
        Ok(why) => Ok(Some(String::from_utf8_lossy(&why).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Records that the state of the disk is unknown. The record may not reach the disk either, but the page cache keeps
/// it for as long as it keeps what makes the store look complete.
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
                tracing::error!(%error, "the store cannot record for the next start that it is in doubt");
                return;
            }
            Ok(()) => return,
        }
    }
    tracing::error!("the store has no descriptor to record for the next start that it is in doubt");
}

/// Deletes the record of the doubt; `false` if there was none.
pub(super) fn trust(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(doubts(path)) {
        Ok(()) => File::open(path)?.sync_all().map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The mode of a directory that others than its owner may read or write; `None` if there is no such access.
pub(super) fn looseness(path: &Path) -> io::Result<Option<u32>> {
    let mode = std::fs::metadata(path)?.permissions().mode() & 0o7777;
    Ok((mode & !DIRECTORY & 0o777 != 0).then_some(mode))
}

/// Restricts a store's directory and its files to the owner: files may have been copied there, or created under
/// another umask.
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

/// Creates `path` and its missing parents for the owner only; `sync` makes each new name durable in its parent before
/// anything is created below it.
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
        // Another process created it first and may not have synced it yet.
        Err(_) if path.is_dir() => sync(above),
        Err(error) => Err(error),
    }
}

/// Syncs a directory, that is, the names in it.
pub(super) fn sync_names(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// The directory that contains the name `path`; `path` itself for a root.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(above) if above.as_os_str().is_empty() => Path::new("."),
        Some(above) => above,
        None => path,
    }
}

/// The last group that the store in `path` acknowledged, from its file `witness`.
///
/// sled takes a damaged page at the end of its log for the end of the log and drops what follows. The witness is
/// outside of the log: a log that ends before it has lost acknowledged commits. Layout: the number, 8 bytes big
/// endian, and the first 8 bytes of their sha256; `None` when that does not match, as after a torn write.
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
