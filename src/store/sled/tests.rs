use std::{
    io::Write, os::unix::fs::PermissionsExt, path::PathBuf, process::Command, time::Duration,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{disk::is_lack, *};
use crate::store::{Expect, FORMAT, OLDER, fixtures, walk::same};

const KIND: Kind = Kind(200);
const PAIR: [u8; 16] = [7; 16];
/// Makes the test binary run a store on a full disk in this directory.
const FULL: &str = "INTENTD_TEST_FULL_DISK";
/// Makes the test binary run a store without free descriptors in this directory.
const LACKING: &str = "INTENTD_TEST_NO_DESCRIPTOR";

fn key(n: u32) -> Key {
    Key::new(KIND, n.to_be_bytes())
}

fn value(n: u32) -> Vec<u8> {
    format!("value {n} ").repeat(20).into_bytes()
}

fn put(n: u32) -> Batch {
    Batch::new()
        .expect(key(n), Expect::Absent)
        .put(key(n), value(n))
}

async fn fill(path: &Path, count: u32) {
    let store = SledStore::open(path).unwrap();
    for n in 0..count {
        assert_eq!(store.commit(put(n)).await, Ok(Outcome::APPLIED));
    }
    store.close().await;
}

fn open_error(path: &Path) -> OpenError {
    SledStore::open(path).err().expect("opened")
}

#[tokio::test]
async fn rows_outlive_the_store() {
    let directory = tempfile::tempdir().unwrap();
    for n in 0..5 {
        let store = SledStore::open(directory.path()).unwrap();
        for old in 0..n {
            assert_eq!(store.read(&key(old)).await, Ok(Some(value(old))));
        }
        store.commit(put(n)).await.unwrap();
        if n % 2 == 0 {
            store.close().await;
            let again = SledStore::open(directory.path());
            assert!(again.is_ok(), "closing lets go of the directory");
        }
    }
}

#[tokio::test]
async fn a_commit_that_nobody_waits_for_is_finished_on_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    for n in 0..50 {
        let mut commit = Box::pin(store.commit(put(n)));
        assert!(futures::poll!(&mut commit).is_pending());
    }
    drop(store);
    let store = SledStore::open(directory.path()).unwrap();
    assert_eq!(store.read(&key(49)).await, Ok(Some(value(49))));
}

#[tokio::test]
async fn a_directory_in_use_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    assert!(
        matches!(open_error(directory.path()), OpenError::Locked(path) if path == directory.path())
    );
    drop(store);
    assert!(SledStore::open(directory.path()).is_ok());
}

#[tokio::test]
async fn a_place_that_is_no_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    assert!(matches!(open_error(&file), OpenError::Io { .. }));
    assert!(matches!(
        open_error(&file.join("below")),
        OpenError::Io { .. }
    ));
}

#[tokio::test]
async fn another_format_is_refused() {
    for (format, whose) in [
        (FORMAT + 1, "a newer version"),
        (2, "or begin in an empty DATA_DIR with another signing key"),
        (
            OLDER[0],
            "`intentd store import` with this one into an empty DATA_DIR",
        ),
        (
            OLDER[1],
            "`intentd store import` with this one into an empty DATA_DIR",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let store = SledStore::open(directory.path()).unwrap();
        let other = Batch::new().put(Key::new(OWN, "format"), vec![format]);
        store.commit(other).await.unwrap();
        drop(store);
        let error = open_error(directory.path());
        assert!(matches!(error, OpenError::Format { found, .. } if found == format));
        assert!(error.to_string().ends_with(whose), "{error}");
    }
}

#[tokio::test]
async fn a_log_that_lost_its_end_or_itself_is_damaged() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path(), 30).await;
    let log = directory.path().join("db");
    let bytes = std::fs::read(&log).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    for cut in [used - 1, used / 2, 512, 0] {
        let copy = tempfile::tempdir().unwrap();
        for name in ["conf", "witness"] {
            std::fs::copy(directory.path().join(name), copy.path().join(name)).unwrap();
        }
        std::fs::write(copy.path().join("db"), &bytes[..cut]).unwrap();
        let error = open_error(copy.path());
        assert!(
            matches!(error, OpenError::Damaged { .. }),
            "cut at {cut}: {error}"
        );
        let error = open_error(copy.path());
        assert!(
            matches!(error, OpenError::Damaged { .. }),
            "it stays damaged: {error}"
        );
    }
    std::fs::remove_file(&log).unwrap();
    assert!(matches!(
        open_error(directory.path()),
        OpenError::Damaged { .. }
    ));
}

#[tokio::test]
async fn a_flipped_bit_loses_nothing_in_silence() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path(), 40).await;
    flip_bits(directory.path()).await;
    // After a second open the log is in a snapshot.
    SledStore::open(directory.path()).unwrap().close().await;
    flip_bits(directory.path()).await;
}

async fn flip_bits(directory: &Path) {
    let (mut refused, mut kept_all) = (0, 0);
    let names: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| entry.file_name())
        .collect();
    for name in names {
        let bytes = std::fs::read(directory.join(&name)).unwrap();
        let used = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        for at in (0..used).step_by((used / 40).max(1)) {
            let copy = tempfile::tempdir().unwrap();
            for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_file() {
                    std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
                }
            }
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            std::fs::write(copy.path().join(&name), flipped).unwrap();
            let Ok(store) = SledStore::open(copy.path()) else {
                refused += 1;
                continue;
            };
            kept_all += 1;
            for n in 0..40 {
                let row = store.read(&key(n)).await;
                let kept = row == Ok(Some(value(n)));
                let said = matches!(row, Err(StoreError::Failed(_)));
                assert!(kept || said, "{name:?} byte {at}: row {n} is {row:?}");
            }
        }
    }
    assert!(
        refused > 0 && kept_all > 0,
        "both happen: {refused} {kept_all}"
    );
}

#[tokio::test]
async fn a_batch_with_a_new_row_writes_its_other_rows_too() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path(), 3).await;
    let store = SledStore::open(directory.path()).unwrap();
    let batch = Batch::new()
        .expect(key(20), Expect::Absent)
        .put(key(20), value(20))
        .claim(key(0), value(0))
        .put(key(1), value(7))
        .delete(key(2))
        .delete(key(3));
    assert_eq!(store.commit(batch.clone()).await, Ok(Outcome::APPLIED));
    let refused = store.commit(batch).await.unwrap();
    assert!(matches!(refused, Outcome::Refused { .. }));
    // So many rows are read on a blocking thread, and one is not.
    let keys: Vec<_> = (0..=20).map(key).collect();
    let rows = store.read_all(&keys).await.unwrap();
    for (row, number) in rows.iter().zip(0..) {
        let expected = match number {
            0 | 20 => Some(value(number)),
            1 => Some(value(7)),
            _ => None,
        };
        assert_eq!(*row, expected, "{number}");
        assert_eq!(store.read(&key(number)).await, Ok(expected));
    }
}

#[tokio::test]
async fn after_a_failed_sync_nothing_is_answered() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path(), 1).await;
    let lock = patiently(|| lock(directory.path())).unwrap();
    let tree = patiently(|| open_tree(directory.path())).unwrap();
    let prepared = prepare(directory.path(), &tree, None).unwrap();
    let mut disk = Disk::open(directory.path(), prepared.sequence).unwrap();
    // This device refuses every sync.
    disk.log = File::open("/dev/null").unwrap();
    let store = SledStore::start(lock, tree, disk, prepared.origin).unwrap();

    let unchanged = Batch::new().claim(key(0), value(0));
    assert_eq!(
        store.commit(unchanged.clone()).await,
        Ok(Outcome::APPLIED),
        "nothing to sync"
    );
    let mut failure = Box::pin(store.failed());
    assert!(futures::poll!(&mut failure).is_pending(), "it works");
    let failed = futures::join!(store.commit(put(1)), store.commit(put(2)));
    assert!(matches!(
        failed,
        (Err(StoreError::Failed(_)), Err(StoreError::Failed(_)))
    ));
    let why = failure.await;
    assert_eq!(failed.0, Err(StoreError::Failed(why.clone())));
    assert_eq!(store.failed().await, why);
    assert!(matches!(
        store.commit(unchanged).await,
        Err(StoreError::Failed(_))
    ));
    assert!(matches!(
        store.read(&key(0)).await,
        Err(StoreError::Failed(_))
    ));
    let range = Range {
        kind: KIND,
        prefix: Vec::new(),
        after: None,
        limit: 1,
        reverse: false,
    };
    assert!(matches!(
        store.scan(range).await,
        Err(StoreError::Failed(_))
    ));
    store.close().await;
    drop(store);
    for _ in 0..2 {
        let error = open_error(directory.path());
        assert!(matches!(error, OpenError::InDoubt { .. }), "{error}");
        assert!(error.to_string().contains("intentd journal trust"));
    }
    assert!(SledStore::trust(directory.path()).unwrap());
    assert!(!SledStore::trust(directory.path()).unwrap());
    let store = SledStore::open(directory.path()).unwrap();
    assert_eq!(store.read(&key(0)).await, Ok(Some(value(0))));
    let held = SledStore::trust(directory.path());
    assert!(matches!(held, Err(OpenError::Locked(_))));
}

#[test]
fn every_directory_that_is_created_is_made_durable_in_its_parent() {
    let directory = tempfile::tempdir().unwrap();
    let deep = directory.path().join("a/b/c");
    let mut synced = Vec::new();
    let mut sync = |directory: &Path| {
        synced.push(directory.to_owned());
        Ok(())
    };
    disk::create(&deep, &mut sync).unwrap();
    disk::create(&deep, &mut sync).unwrap();
    let expected = ["", "a", "a/b"].map(|name| directory.path().join(name));
    assert_eq!(
        synced,
        expected.map(|path| path.components().collect::<PathBuf>())
    );
    assert!(deep.is_dir());
    let refused = disk::create(&directory.path().join("x/y"), &mut |_: &Path| {
        Err(io::ErrorKind::Other.into())
    });
    assert!(refused.is_err());
    assert!(!directory.path().join("x/y").exists());
}

/// The child of the test below: commits until the file size limit stops it.
#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the parent of this test process speaks to it so"
)]
async fn full_disk_child() {
    let Ok(path) = std::env::var(FULL) else {
        return;
    };
    let store = SledStore::open(Path::new(&path)).unwrap();
    for n in 0..100_000 {
        match store.commit(put(n)).await {
            Ok(Outcome::APPLIED) => {}
            Err(StoreError::Failed(why)) => {
                assert!(matches!(
                    store.read(&key(0)).await,
                    Err(StoreError::Failed(_))
                ));
                assert!(matches!(
                    store.commit(put(n + 1)).await,
                    Err(StoreError::Failed(_))
                ));
                store.close().await;
                writeln!(std::io::stdout(), "\nacknowledged {n} then {why}").unwrap();
                return;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("the disk never filled up");
}

#[tokio::test]
async fn a_full_disk_ends_the_store_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    // A file size limit stands for the full disk: writes fail with EFBIG.
    let script = "trap '' XFSZ; ulimit -f 2048; exec \"$0\" --exact --nocapture \"$1\"";
    let child = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg("store::sled::tests::full_disk_child")
        .env(FULL, directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix("acknowledged "))
        .expect(&said);
    let count: u32 = line.split(' ').next().unwrap().parse().unwrap();
    assert!(count > 100, "{line}");
    let store = SledStore::open(directory.path()).unwrap();
    for n in 0..count {
        assert_eq!(
            store.read(&key(n)).await,
            Ok(Some(value(n))),
            "row {n} of {count}"
        );
    }
    assert_eq!(
        store.commit(put(count + 10)).await,
        Ok(Outcome::APPLIED),
        "there is room again"
    );
}

fn files_allowed(soft: u64) -> u64 {
    let before = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: Some(soft),
        ..before
    };
    setrlimit(Resource::Nofile, wanted).unwrap();
    before.current.unwrap()
}

/// The child of the test below: commits while it has no free descriptor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::disallowed_methods,
    reason = "the parent of this test process speaks to it so"
)]
async fn no_descriptor_child() {
    let Ok(path) = std::env::var(LACKING) else {
        return;
    };
    let store = Arc::new(SledStore::open(Path::new(&path)).unwrap());
    store.commit(put(0)).await.unwrap();
    let before = files_allowed(3);
    assert!(is_lack(&File::open("/dev/null").unwrap_err()));
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.commit(put(1)).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "it waits");
    assert_eq!(store.read(&key(0)).await, Ok(Some(value(0))), "reads go on");
    files_allowed(before);
    assert_eq!(waiting.await.unwrap(), Ok(Outcome::APPLIED));
    assert_eq!(store.commit(put(2)).await, Ok(Outcome::APPLIED));
    store.close().await;
    writeln!(std::io::stdout(), "\nwent on").unwrap();
}

#[tokio::test]
async fn a_lack_of_descriptors_is_waited_out_and_no_doubt() {
    let directory = tempfile::tempdir().unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--nocapture",
            "store::sled::tests::no_descriptor_child",
        ])
        .env(LACKING, directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(said.contains("went on"), "{said}");
    let store = SledStore::open(directory.path()).unwrap();
    for n in 0..3 {
        assert_eq!(store.read(&key(n)).await, Ok(Some(value(n))));
    }
}

/// Modes of `directory` and of all that is in it.
fn modes(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let mut all = vec![(directory.to_owned(), mode(directory))];
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(modes(&entry.path())),
            false => all.push((entry.path(), mode(&entry.path()))),
        }
    }
    all
}

#[tokio::test]
async fn only_its_owner_may_open_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/store");
    fill(&path, 2).await;
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, open).unwrap();
    fill(&path, 0).await;
    for (path, mode) in modes(&directory.path().join("deep")) {
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, wanted, "{path:?}");
    }
    let data = directory.path().join("deep");
    for loose in [0o750, 0o701, 0o770, 0o704, 0o1777] {
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(loose)).unwrap();
        let error = home(&data, Making::Allowed).unwrap_err();
        assert!(matches!(error, OpenError::Loose { mode, .. } if mode == loose));
        assert!(error.to_string().contains("chmod 700"), "{error}");
    }
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(home(&data, Making::Refused).is_ok());
}

#[tokio::test]
async fn a_store_that_is_not_there_is_not_made_unless_it_may_be() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let missing = SledStore::existing(&path).err().unwrap();
    assert!(matches!(missing, OpenError::Missing(_)), "{missing}");
    assert!(!path.exists());
    fill(&path, 1).await;
    assert!(SledStore::existing(&path).is_ok());
}

/// Opens the store in `path` and checks that it has exactly the fixture's rows.
async fn holds_the_scene(path: &Path) -> bool {
    let wanted = crate::store::memory::MemoryStore::new();
    fixtures::fill(&wanted, fixtures::rows()).await;
    let store = SledStore::open(path).unwrap();
    let same = same(&store, &wanted).await.unwrap();
    store.close().await;
    same
}

async fn scene_in(path: &Path) {
    let store = SledStore::open(path).unwrap();
    fixtures::fill(&store, fixtures::rows()).await;
    for n in 0..50 {
        // Deleted again, so that the copy has something to leave out.
        store.commit(put(n)).await.unwrap();
        store.commit(Batch::new().delete(key(n))).await.unwrap();
    }
    store.close().await;
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_compacted_store_has_the_same_rows_in_a_fresh_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    scene_in(&path).await;
    for _ in 0..2 {
        assert_eq!(SledStore::compact(&path).await.unwrap(), fixtures::count());
        assert!(holds_the_scene(&path).await);
        assert_eq!(names(directory.path()), ["store"]);
    }
    let store = SledStore::open(&path).unwrap();
    assert_eq!(store.commit(put(1)).await, Ok(Outcome::APPLIED));
    let held = SledStore::compact(&path).await;
    assert!(matches!(
        held,
        Err(ReplaceError::Open(OpenError::Locked(_)))
    ));
}

#[tokio::test]
async fn a_compaction_that_was_cut_off_leaves_the_store_and_the_next_one_tidies_up() {
    let directory = tempfile::tempdir().unwrap();
    let (path, fresh) = (
        directory.path().join("store"),
        directory.path().join("store.compacting"),
    );
    scene_in(&path).await;
    // Interrupted while the fresh store was written: half of it exists.
    std::fs::create_dir(&fresh).unwrap();
    std::fs::write(fresh.join("db"), "half").unwrap();
    assert!(holds_the_scene(&path).await);
    assert_eq!(SledStore::compact(&path).await.unwrap(), fixtures::count());
    assert_eq!(names(directory.path()), ["store"]);
    // Interrupted after the swap: the old store exists.
    fill(&fresh, 3).await;
    assert!(holds_the_scene(&path).await);
    assert_eq!(SledStore::compact(&path).await.unwrap(), fixtures::count());
    assert_eq!(names(directory.path()), ["store"]);
}

#[tokio::test]
async fn a_damaged_store_is_not_compacted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    scene_in(&path).await;
    let log = path.join("db");
    let bytes = std::fs::read(&log).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    std::fs::write(&log, &bytes[..used / 2]).unwrap();
    let refused = SledStore::compact(&path).await;
    assert!(matches!(
        refused,
        Err(ReplaceError::Open(OpenError::Damaged { .. }))
    ));
    assert_eq!(names(directory.path()), ["store"]);
    assert!(matches!(open_error(&path), OpenError::Damaged { .. }));
}

#[tokio::test]
async fn a_store_is_created_whole_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data/store");
    let failed = SledStore::create(&path, PAIR, async |store: &Arc<SledStore>| {
        fixtures::fill(&**store, fixtures::rows()).await;
        Err::<(), _>(ReplaceError::Different)
    });
    assert!(matches!(failed.await, Err(ReplaceError::Different)));
    assert_eq!(names(&directory.path().join("data")), [""; 0]);
    // An earlier try was killed.
    fill(&directory.path().join("data/store.importing"), 3).await;
    let made = SledStore::create(&path, PAIR, async |store: &Arc<SledStore>| {
        fixtures::fill(&**store, fixtures::rows()).await;
        Ok::<_, ReplaceError>(())
    });
    made.await.unwrap();
    assert!(holds_the_scene(&path).await);
    assert_eq!(names(&directory.path().join("data")), ["store"]);
    let again = SledStore::create(&path, PAIR, async |_: &Arc<SledStore>| {
        Ok::<_, ReplaceError>(())
    });
    assert!(matches!(again.await, Err(ReplaceError::Taken(_))));
    assert!(holds_the_scene(&path).await);
}

#[tokio::test]
async fn a_lock_of_a_directory_that_was_replaced_meanwhile_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let held = lock(directory.path()).unwrap();
    std::fs::rename(directory.path().join("lock"), directory.path().join("gone")).unwrap();
    assert!(!open::is_at(&held, directory.path()).unwrap_or(false));
    let other = lock(directory.path()).unwrap();
    assert!(open::is_at(&other, directory.path()).unwrap());
    assert!(!open::is_at(&held, directory.path()).unwrap());
}
