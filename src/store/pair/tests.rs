//! Two stores that open together or not at all.

use std::{
    fs,
    sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    time::Duration,
};

use super::*;
use crate::store::{
    Expect, check, dump, fixtures,
    rows::{OPEN, halt},
    walk::same,
};

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn directories(&self) -> Directories {
        Directories::new(self.0.path().join("data"), None)
    }

    fn open(&self) -> Result<Pair, OpenError> {
        Pair::open(&self.directories(), Making::Allowed)
    }
}

/// Puts the fixture's rows into both.
async fn filled(home: &Home) -> Directories {
    let both = home.open().unwrap();
    for (key, value) in fixtures::rows() {
        both.commit(Batch::new().put(key, value)).await.unwrap();
    }
    both.close().await;
    home.directories()
}

#[tokio::test]
async fn every_row_is_in_the_store_of_its_kind_and_read_through_both() {
    let home = Home::new();
    filled(&home).await;
    let both = home.open().unwrap();
    let wanted = crate::store::memory::MemoryStore::new();
    fixtures::fill(&wanted, fixtures::rows()).await;
    assert!(same(&both, &wanted).await.unwrap());
    assert_eq!(check::check(&both).await.unwrap().defects, 0);
    for (key, _) in fixtures::rows() {
        let (own, other): (&dyn Store, &dyn Store) = match rows::is_journal(key.kind) {
            true => (&*both.journal, &*both.store),
            false => (&*both.store, &*both.journal),
        };
        assert!(own.read(&key).await.unwrap().is_some());
        assert_eq!(other.read(&key).await.unwrap(), None);
        let foreign = Err(StoreError::Foreign(key.kind.0));
        let put = Batch::new().put(key.clone(), vec![1]);
        assert_eq!(other.commit(put).await, foreign);
        let expect = Batch::new().expect(key, Expect::Absent);
        assert_eq!(other.commit(expect).await, foreign);
    }
    both.close().await;
}

#[tokio::test]
async fn one_is_not_opened_without_the_other() {
    let home = Home::new();
    let directories = filled(&home).await;
    let other = Home::new();
    let others = filled(&other).await;
    let aside = home.0.path().join("aside");
    let apart = |making| {
        matches!(
            Pair::open(&directories, making),
            Err(OpenError::Apart { .. })
        )
    };
    for one in [directories.store(), directories.journal()] {
        fs::rename(&one, &aside).unwrap();
        for making in [Making::Allowed, Making::Refused] {
            assert!(apart(making), "without {one:?}");
            assert!(!one.exists(), "none is made");
        }
        fs::rename(&aside, &one).unwrap();
    }
    // A foreign or fresh journal does not know what was signed.
    fs::rename(directories.journal(), &aside).unwrap();
    fs::rename(others.journal(), directories.journal()).unwrap();
    assert!(apart(Making::Allowed));
    fs::remove_dir_all(directories.journal()).unwrap();
    SledStore::open(&directories.journal())
        .unwrap()
        .close()
        .await;
    assert!(apart(Making::Allowed));
    let error = home.open().err().unwrap().to_string();
    assert!(error.contains("do not belong together"), "{error}");
    fs::remove_dir_all(directories.journal()).unwrap();
    fs::rename(&aside, directories.journal()).unwrap();
    assert!(home.open().is_ok());
}

#[tokio::test]
async fn a_first_start_that_was_cut_off_is_begun_again() {
    let home = Home::new();
    let directories = home.directories();
    assert!(matches!(
        Pair::open(&directories, Making::Refused),
        Err(OpenError::Missing(_))
    ));
    assert!(!directories.data().exists());
    SledStore::paired(&directories.journal(), [3; 16])
        .unwrap()
        .close()
        .await;
    assert!(matches!(
        Pair::open(&directories, Making::Refused),
        Err(OpenError::Apart { .. })
    ));
    let both = home.open().unwrap();
    assert_eq!(both.store.origin().pair, Some([3; 16]));
    both.close().await;
    drop(both);
    assert!(home.open().is_ok());
}

#[tokio::test]
async fn a_journal_in_another_directory_is_one_of_the_pair() {
    let home = Home::new();
    let other = home.0.path().join("other");
    let directories = Directories::new(home.0.path().join("data"), Some(other.clone()));
    let both = Pair::open(&directories, Making::Allowed).unwrap();
    let halt = Batch::new().put(halt::key("base"), vec![1]);
    both.commit(halt).await.unwrap();
    both.close().await;
    drop(both);
    assert!(other.join("journal/db").exists());
    assert!(!home.0.path().join("data/journal").exists());
    // A start without JOURNAL_DIR does not sign with an empty journal.
    assert!(matches!(home.open(), Err(OpenError::Apart { .. })));
    assert!(Pair::open(&directories, Making::Allowed).is_ok());
}

#[tokio::test]
async fn both_are_exported_imported_and_compacted_together() {
    let (home, other) = (Home::new(), Home::new());
    let directories = filled(&home).await;
    assert_eq!(
        Pair::compact(&directories).await.unwrap(),
        fixtures::count()
    );
    let both = home.open().unwrap();
    let mut bytes = Vec::new();
    assert_eq!(
        dump::write(&both, &mut bytes).await.unwrap(),
        fixtures::count()
    );
    both.close().await;
    let others = other.directories();
    let failed = Pair::create(&others, async |both: &Pair| {
        dump::read(both, &mut &bytes[..]).await.unwrap();
        Err::<(), _>(ReplaceError::Different)
    });
    assert!(failed.await.is_err());
    assert!(!others.store().exists() && !others.journal().exists());
    let made = Pair::create(&others, async |both: &Pair| {
        dump::read(both, &mut &bytes[..]).await.unwrap();
        Ok::<_, ReplaceError>(())
    });
    made.await.unwrap();
    let again = Pair::create(&others, async |_: &Pair| Ok::<_, ReplaceError>(()));
    assert!(matches!(again.await, Err(ReplaceError::Taken(_))));
    let both = other.open().unwrap();
    let mut twice = Vec::new();
    dump::write(&both, &mut twice).await.unwrap();
    assert_eq!(bytes, twice);
    both.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_signed_does_not_wait_for_what_is_indexed() {
    /// Commits that wait at any time. In one queue a further one would wait for nearly all of them.
    const WAITING: u32 = 3_000;
    let home = Home::new();
    let both = Arc::new(home.open().unwrap());
    let going = Arc::new(AtomicBool::new(true));
    let ended = Arc::new(AtomicU32::new(0));
    let busy: Vec<_> = (0..WAITING)
        .map(|n| {
            let (store, going, ended) = (both.store.clone(), going.clone(), ended.clone());
            let row = Key::new(OPEN, n.to_be_bytes());
            tokio::spawn(async move {
                for round in (0_u32..).take_while(|_| going.load(Relaxed)) {
                    let value = round.to_be_bytes().repeat(1_000);
                    let index = Batch::new().put(row.clone(), value);
                    store.commit(index).await.unwrap();
                    ended.fetch_add(1, Relaxed);
                }
            })
        })
        .collect();
    while ended.load(Relaxed) < WAITING {
        assert!(busy.iter().all(|one| !one.is_finished()), "one failed");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // The store goes on meanwhile, by some groups. A slow machine may see the end late, but not always.
    let mut fewest = u32::MAX;
    for n in 0..20 {
        let before = ended.load(Relaxed);
        let sign = Batch::new().put(halt::key(&format!("chain {n}")), vec![1]);
        both.journal.commit(sign).await.unwrap();
        fewest = fewest.min(ended.load(Relaxed) - before);
        if fewest < WAITING / 2 {
            break;
        }
    }
    going.store(false, Relaxed);
    for one in busy {
        one.await.unwrap();
    }
    both.close().await;
    assert!(fewest < WAITING / 2, "it waited for {fewest}");
}
