//! `intentd store` as a process, and what a start says over a directory that it cannot use.

mod older;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use alloy::primitives::B256;
use intentd::store::{
    Batch, Key, Kind, Making, Store,
    pair::{Directories, Pair},
    rows::{entry, halt, slot, watch},
    sled::SledStore,
};
use tempfile::TempDir;

const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
const DAMAGED: i32 = 65;
const IN_USE: i32 = 75;

/// A DATA_DIR.
struct DataDir(TempDir);

impl DataDir {
    fn new() -> Self {
        let closed = fs::Permissions::from_mode(0o700);
        let made = tempfile::Builder::new().permissions(closed).tempdir();
        Self(made.unwrap())
    }

    /// One whose store has been written by a daemon, as far as it goes.
    async fn filled() -> Self {
        let place = Self::new();
        place.put(rows()).await;
        place
    }

    async fn put(&self, rows: Vec<(Key, Vec<u8>)>) {
        let both = self.open();
        for (key, value) in rows {
            both.commit(Batch::new().put(key, value)).await.unwrap();
        }
        both.close().await;
    }

    fn open(&self) -> Pair {
        Pair::open(&Directories::new(self.0.path(), None), Making::Allowed).unwrap()
    }

    /// The store that all rows of these tests are in.
    fn journal(&self) -> PathBuf {
        self.0.path().join("journal")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/recorded");
        let mut command = Command::new(env!("CARGO_BIN_EXE_intentd"));
        command
            .args(arguments)
            .env_clear()
            .env("DATA_DIR", self.0.path())
            .env("ENVIRONMENT", "test")
            .env("ECDSA_PRIVATE_KEY", KEY)
            .env("CHAINS_FILE", format!("{fixtures}/chains.json"))
            .env("HUB_FILE", format!("{fixtures}/hub.json"))
            .env("HTTP_HOST", "127.0.0.1")
            .env("HTTP_PORT", "0")
            .env("OPS_HTTP_PORT", "0")
            .env("RUST_LOG", "off");
        command
    }

    /// What it says when all is well.
    fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Exit code and message of a refusal.
    fn bad(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments);
        let text = said(&output);
        for noise in ["panicked", "RUST_BACKTRACE", "::Err("] {
            assert!(!text.contains(noise), "{arguments:?}: {text}");
        }
        let code = output.status.code();
        assert_ne!(code, Some(0), "{arguments:?}: {text}");
        (
            code.unwrap_or_else(|| panic!("{arguments:?}: {text}")),
            text,
        )
    }
}

fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{out}{err}")
}

fn statement(number: u8) -> String {
    format!("deposit/base/{number}")
}

fn rows() -> Vec<(Key, Vec<u8>)> {
    let mut rows = Vec::new();
    for number in 0..40 {
        let fact = entry::Fact {
            chain: "base".into(),
            transaction: number.to_string(),
            number: number.into(),
            hash: B256::repeat_byte(number),
            parent: B256::ZERO,
            time: 5,
        };
        let name = format!("slot/{number}");
        let stands = entry::Entry {
            own: false,
            digest: B256::repeat_byte(number),
            at: 300,
            slot: Some(name.clone()),
            consumes: Vec::new(),
            facts: vec![fact.clone()],
            shown: Vec::new(),
            payload: vec![number; 300].into(),
        };
        let statement = statement(number);
        rows.push((slot::key(&name), slot::encode(&statement)));
        rows.push((watch::key(&fact, &statement), watch::encode(&fact, false)));
        rows.push((entry::key(&statement), stands.encode().unwrap()));
    }
    let why = "reorg".into();
    let halt = halt::Halt {
        why,
        at: 5,
        also: Vec::new(),
        more: 0,
    };
    rows.push((halt::key("base"), halt.encode().unwrap()));
    rows
}

fn names(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_store_is_verified_exported_imported_and_compacted() {
    let place = DataDir::filled().await;
    let counted = place.good(&["store", "verify"]);
    assert!(counted.contains("entry                40"), "{counted}");
    assert!(counted.contains("121 rows, 0 defects"), "{counted}");
    let compacted = place.good(&["store", "compact"]);
    assert!(compacted.starts_with("121 rows, "), "{compacted}");
    assert_eq!(place.good(&["store", "verify"]), counted);

    let (files, other) = (DataDir::new(), DataDir::new());
    let file = |name: &str| files.0.path().join(name).display().to_string();
    let (first, second) = (file("first"), file("second"));
    place.good(&["store", "export", &first]);
    let (code, text) = place.bad(&["store", "export", &first]);
    assert_eq!(code, 1);
    assert!(text.contains("cannot write"), "{text}");
    other.good(&["store", "import", &first]);
    assert_eq!(other.good(&["store", "verify"]), counted);
    other.good(&["store", "export", &second]);
    assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap());
    assert_eq!(names(other.0.path()), ["journal", "store"]);

    let (code, text) = other.bad(&["store", "import", &first]);
    assert_eq!(code, 1);
    assert!(text.contains("there is something in"), "{text}");
    assert_eq!(other.good(&["store", "verify"]), counted);
}

#[tokio::test]
async fn an_import_that_fails_leaves_nothing() {
    let (place, files) = (DataDir::filled().await, DataDir::new());
    let file = |name: &str, bytes: &[u8]| {
        let path = files.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let good = files.0.path().join("good");
    place.good(&["store", "export", good.to_str().unwrap()]);
    let bytes = fs::read(&good).unwrap();
    // Whole as a file, but somebody holds a slot who does not stand.
    let gone = Batch::new().delete(entry::key(&statement(7)));
    let both = place.open();
    both.commit(gone).await.unwrap();
    both.close().await;
    drop(both);
    let torn = files.0.path().join("torn");
    // Export refuses it as import does; this is what an export of other hands is like.
    let (code, text) = place.bad(&["store", "export", torn.to_str().unwrap()]);
    assert_eq!(code, DAMAGED, "{text}");
    assert!(text.contains("which does not stand"), "{text}");
    assert!(!torn.exists());
    let both = place.open();
    let mut out = fs::File::create(&torn).unwrap();
    intentd::store::dump::write(&both, &mut out).await.unwrap();
    both.close().await;
    let mut changed = bytes.clone();
    let digit = changed.iter().rposition(|byte| *byte == b'"').unwrap() - 1;
    changed[digit] = if changed[digit] == b'0' { b'1' } else { b'0' };
    let cases = [
        (file("cut", &bytes[..bytes.len() / 2]), "not whole", 1),
        (file("changed", &changed), "was changed", 1),
        (file("foreign", b"hello\n"), "no export of a store", 1),
        (torn.display().to_string(), "which does not stand", DAMAGED),
        ("/none".to_owned(), "cannot read /none", 1),
    ];
    for (file, wanted, wanted_code) in cases {
        let fresh = DataDir::new();
        let (code, text) = fresh.bad(&["store", "import", &file]);
        assert_eq!(code, wanted_code, "{text}");
        assert!(text.contains(wanted), "{wanted}: {text}");
        assert_eq!(names(fresh.0.path()), [""; 0], "{file}");
    }
}

#[tokio::test]
async fn defects_are_told_and_fail() {
    let place = DataDir::filled().await;
    let mut newer = entry::Entry {
        own: false,
        digest: B256::ZERO,
        at: 0,
        slot: None,
        consumes: Vec::new(),
        facts: Vec::new(),
        shown: Vec::new(),
        payload: Vec::new().into(),
    }
    .encode()
    .unwrap();
    newer[0] = 9;
    place
        .put(vec![
            (entry::key("newer"), newer),
            (Key::new(Kind(99), "x"), vec![1]),
            (slot::key("free"), slot::encode("nobody")),
        ])
        .await;
    let (code, text) = place.bad(&["store", "verify"]);
    assert_eq!(code, DAMAGED);
    for wanted in [
        "entry                41",
        "DEFECT entry newer: unreadable entry row: format 9 is not known to this version",
        "DEFECT unknown x: ",
        "DEFECT slot free: it is held by nobody, which does not stand",
        "124 rows, 3 defects",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[tokio::test]
async fn a_store_in_use_or_missing_is_said_so() {
    let place = DataDir::filled().await;
    let file = place.0.path().join("file").display().to_string();
    let held = SledStore::open(&place.journal()).unwrap();
    for arguments in [
        &["store", "verify"][..],
        &["store", "compact"],
        &["store", "export", &file],
        &["journal", "trust"],
        &["serve"],
    ] {
        let (code, text) = place.bad(arguments);
        assert_eq!(code, IN_USE, "{text}");
        assert!(text.contains("in use by another process"), "{text}");
    }
    held.close().await;
    assert!(!Path::new(&file).exists());
    for arguments in [&["store", "verify"][..], &["store", "compact"]] {
        let (code, text) = DataDir::new().bad(arguments);
        assert_eq!(code, 1);
        assert!(text.contains("there is no store in"), "{text}");
    }
}

#[tokio::test]
async fn a_data_dir_that_others_may_open_is_refused_and_what_is_made_is_closed() {
    let place = DataDir::filled().await;
    let journal = DataDir::new();
    let moved = journal.journal();
    fs::rename(place.journal(), &moved).unwrap();
    let open = |place: &DataDir, mode| {
        fs::set_permissions(place.0.path(), fs::Permissions::from_mode(mode)).unwrap();
    };
    let apart = ("JOURNAL_DIR", journal.0.path());
    for loose in [&place, &journal] {
        open(loose, 0o755);
        for command in [
            &["serve"][..],
            &["store", "verify"],
            &["store", "compact"],
            &["journal", "trust"],
        ] {
            let output = place.command(command).env(apart.0, apart.1).output();
            let output = output.unwrap();
            let text = said(&output);
            assert_eq!(output.status.code(), Some(1), "{command:?}: {text}");
            assert!(
                text.contains("open to other users (mode 755)"),
                "{command:?}: {text}"
            );
        }
        open(loose, 0o700);
    }
    fs::rename(&moved, place.journal()).unwrap();
    let file = place.0.path().join("file");
    place.good(&["store", "compact"]);
    place.good(&["store", "export", file.to_str().unwrap()]);
    let mut left = vec![place.0.path().to_owned()];
    while let Some(path) = left.pop() {
        let about = fs::metadata(&path).unwrap();
        assert_eq!(about.permissions().mode() & 0o077, 0, "{path:?}");
        if about.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
}

/// Puts `bytes` over a copy of `place` and asks for both kinds of opening.
fn refused(place: &DataDir, name: &str, bytes: &[u8]) -> Option<String> {
    let copy = DataDir::new();
    for one in ["store", "journal"] {
        let (from, to) = (place.0.path().join(one), copy.0.path().join(one));
        fs::create_dir_all(to.join("blobs")).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        }
    }
    fs::write(copy.journal().join(name), bytes).unwrap();
    let verified = copy.run(&["store", "verify"]);
    if verified.status.success() {
        // What was hit holds nothing: then nothing is missing either.
        assert!(
            said(&verified).contains("121 rows, 0 defects"),
            "{name}: {}",
            said(&verified)
        );
        return None;
    }
    let (code, text) = copy.bad(&["store", "verify"]);
    assert_eq!(code, DAMAGED, "{name}: {text}");
    Some(text)
}

#[tokio::test]
async fn a_damaged_directory_is_a_message_and_never_a_panic() {
    let place = DataDir::filled().await;
    // Opened once more, there is a snapshot, too.
    place.good(&["store", "verify"]);
    let mut seen = 0;
    for name in names(&place.journal()) {
        let path = place.journal().join(&name);
        if name == "lock" || path.is_dir() {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) + 1;
        let mut garbled = bytes.clone();
        for (at, byte) in garbled[..used].iter_mut().enumerate().step_by(5) {
            *byte ^= u8::try_from(at % 251).unwrap();
        }
        let mut huge = bytes.clone();
        huge[used / 3..used / 3 + 8.min(used / 2)].fill(0xff);
        for damage in [&bytes[..used / 2], &[], &garbled, &huge] {
            seen += usize::from(refused(&place, &name, damage).is_some());
        }
    }
    assert!(seen >= 6, "{seen}");
    let log = fs::read(place.journal().join("db")).unwrap();
    fs::write(place.journal().join("db"), &log[..log.len() / 512]).unwrap();
    for command in [&["serve"][..], &["store", "compact"], &["store", "verify"]] {
        let (code, text) = place.bad(command);
        assert_eq!(code, DAMAGED, "{text}");
        assert!(text.contains("is damaged"), "{text}");
    }
}

#[tokio::test]
async fn a_store_of_another_version_is_refused() {
    for (found, whose) in [
        (5, "a newer version"),
        (3, "an older version"),
        (2, "an older version"),
        (1, "older"),
    ] {
        let place = DataDir::new();
        let format = Key::new(Kind(0), "format");
        place.put(vec![(format, vec![found])]).await;
        let file = place.0.path().join("file");
        for command in [
            &["serve"][..],
            &["store", "verify"],
            &["store", "compact"],
            &["store", "export", file.to_str().unwrap()],
        ] {
            let (code, text) = place.bad(command);
            assert_eq!(code, DAMAGED, "{text}");
            let why = format!("has format {found}, this version knows format 4");
            assert!(text.contains(&why) && text.contains(whose), "{text}");
            assert_eq!(
                [1, 3].contains(&found),
                text.contains("`intentd store import`"),
                "{text}"
            );
        }
        assert!(!file.exists());
    }
}

#[tokio::test]
async fn a_compaction_that_is_killed_leaves_a_whole_store() {
    let place = DataDir::filled().await;
    let counted = place.good(&["store", "verify"]);
    let beside = place.0.path().join("journal.compacting");
    let mut killed = 0;
    for round in 0..12_u32 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_intentd"))
            .args(["store", "compact"])
            .env_clear()
            .env("DATA_DIR", place.0.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // From its beginning on, each round a little later: while it is written, swapped, removed.
        let mut looks = 1 << round;
        while looks > 0 && child.try_wait().unwrap().is_none() {
            looks -= u32::from(beside.exists());
        }
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        assert_eq!(place.good(&["store", "verify"]), counted, "round {round}");
    }
    assert!(killed > 0, "none was killed");
    place.good(&["store", "compact"]);
    assert_eq!(place.good(&["store", "verify"]), counted);
    assert_eq!(names(place.0.path()), ["journal", "store"]);
}
