//! What sled leaves undone between "written" and "survives a power loss".
//!
//! sled 0.34's `flush` ends in `sync_file_range`, which neither flushes the disk's cache nor the
//! file's length, and it never syncs a blob (a value or page above its segment size). [`Disk::sync`]
//! does both on handles of our own, opened before the first write so that they see its errors.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

/// Handles to the files of an opened store.
pub(super) struct Disk {
    pub(super) log: File,
    blobs: PathBuf,
    synced: BTreeSet<OsString>,
    witness: File,
    /// The number of the last durable group of commits.
    pub(super) sequence: u64,
}

impl Disk {
    /// Opens the handles and makes durable that the files exist.
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
        log.sync_all()?;
        File::open(path.join("conf"))?.sync_all()?;
        let mut disk = Self {
            log,
            blobs: path.join("blobs"),
            synced: BTreeSet::new(),
            witness,
            sequence,
        };
        disk.sync_blobs()?;
        File::open(path)?.sync_all()?;
        if let Some(parent) = path.canonicalize()?.parent() {
            File::open(parent)?.sync_all()?;
        }
        Ok(disk)
    }

    /// Makes durable what sled has flushed.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.sync_blobs()?;
        self.log.sync_data()
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
