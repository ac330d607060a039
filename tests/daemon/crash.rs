//! SIGKILL, over and over in one directory: of the journal and, in [`daemon`], of the whole daemon
//! while it signs, whose every signature must stand afterwards, byte for byte; and in [`orders`] of
//! the daemon between quote and fill, which must pay for every deposit exactly once; and in [`webhooks`]
//! of whoever tells integrators.
//!
//! `INTENTD_CRASHES` says how many times (10), `INTENTD_CRASH_SEED` repeats the choices of a run:
//! `INTENTD_CRASHES=200 cargo test --release --test daemon -- --nocapture crash::`
#![allow(clippy::print_stdout, reason = "a run says how it is repeated")]

mod daemon;
mod orders;
mod victim;
mod webhooks;

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hasher, RandomState},
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use alloy::primitives::{Address, B256};
use async_trait::async_trait;
use intentd::{
    attest::{
        journal::{Journal, JournalError},
        statement::Statement,
    },
    sign::{SignError, Signer},
    store::{check, sled::SledStore},
};
use k256::{
    ecdsa::{SigningKey, signature::hazmat::RandomizedPrehashSigner},
    elliptic_curve::rand_core::OsRng,
};
use vm::protocol::signature::Signature;

/// Tells this test binary to be the one that is killed: the directory.
const PLACE: &str = "INTENTD_TEST_CRASH_PLACE";
/// The number of the first statement that it signs.
const FIRST: &str = "INTENTD_TEST_CRASH_FIRST";

/// Signs differently each time, so that only a stored signature can be given twice.
struct Service(SigningKey);

#[async_trait]
impl Signer for Service {
    fn address(&self) -> Address {
        Address::from_public_key(self.0.verifying_key())
    }

    fn public_key(&self) -> [u8; 33] {
        let point = self.0.verifying_key().to_encoded_point(true);
        point.as_bytes().try_into().unwrap()
    }

    fn deterministic(&self) -> bool {
        false
    }

    async fn sign(&self, digest: &B256) -> Result<Signature, SignError> {
        let signature: k256::ecdsa::Signature = self
            .0
            .sign_prehash_with_rng(&mut OsRng, &digest[..])
            .unwrap();
        let (r, s) = signature.split_bytes();
        let join = |odd| Signature::from_scalars(B256::from_slice(&r), B256::from_slice(&s), odd);
        let (even, odd) = (join(false).unwrap(), join(true).unwrap());
        Ok(if even.recover(digest) == Ok(self.address()) {
            even
        } else {
            odd
        })
    }
}

fn journal(place: &Path) -> Journal {
    let service = Service(SigningKey::from_slice(&[7; 32]).unwrap());
    Journal::new(Arc::new(SledStore::open(place).unwrap()), Arc::new(service))
}

fn word(n: u64) -> B256 {
    B256::left_padding_from(&n.to_be_bytes())
}

/// The `n`th order, filled from the `n`th deposit.
fn statement(n: u64, digest: u64) -> Statement {
    Statement::outcome(word(n), &[word(n)], word(digest))
}

/// The child: signs one statement after the other, four at a time, and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::disallowed_methods,
    reason = "the parent of this test process speaks to it so"
)]
async fn child() {
    let Ok(place) = std::env::var(PLACE) else {
        return;
    };
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let journal = Arc::new(journal(Path::new(&place)));
    let tasks = (0..4).map(|lane| {
        let journal = journal.clone();
        tokio::spawn(async move {
            for n in (first + lane..).step_by(4) {
                let signature = journal.sign(&statement(n, n), n).await.unwrap();
                let line = format!("\nsigned {n} {signature} .\n");
                std::io::stdout().write_all(line.as_bytes()).unwrap();
            }
        })
    });
    futures::future::join_all(tasks).await;
}

fn spawn(place: &Path, first: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "crash::child"])
        .env(PLACE, place)
        .env(FIRST, first.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills the child after about `count` signatures and returns all that it gave away.
fn kill_after(mut child: Child, count: usize) -> Vec<(u64, Signature)> {
    let mut given = Vec::new();
    let mut alive = true;
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in lines.map(Result::unwrap) {
        let words: Vec<_> = line.split(' ').collect();
        if let ["signed", n, signature, "."] = words[..] {
            given.push((n.parse().unwrap(), signature.parse().unwrap()));
        }
        if alive && given.len() >= count {
            child.kill().unwrap();
            alive = false;
        }
    }
    child.wait().unwrap();
    assert!(
        !alive,
        "the child died by itself after {} signatures",
        given.len()
    );
    given
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long the test runs is the caller's choice"
)]
fn crashes() -> u64 {
    std::env::var("INTENTD_CRASHES").map_or(10, |n| n.parse().unwrap())
}

/// Whether there is another round after so many. Chance and the machine's load decide how many kills
/// hit something: while those are fewer than `fewest`, there are up to four times as many rounds.
fn another_round(rounds: u64, hit: u64, fewest: u64) -> bool {
    rounds < crashes() || (hit < fewest && rounds < 4 * crashes())
}

/// Choices that follow from one seed, which is printed.
pub struct Dice(AtomicU64);

impl Dice {
    #[expect(
        clippy::disallowed_methods,
        reason = "which run is repeated is the caller's choice"
    )]
    fn new() -> Self {
        let random = || RandomState::new().build_hasher().finish();
        let seed = std::env::var("INTENTD_CRASH_SEED");
        let seed = seed.map_or_else(|_| random(), |seed| seed.parse().unwrap());
        println!("INTENTD_CRASH_SEED={seed}");
        Self(AtomicU64::new(seed))
    }

    /// A number below `end`, by splitmix64.
    fn below(&self, end: usize) -> usize {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }
}

#[tokio::test]
async fn what_was_given_away_stands_after_a_kill() {
    let (crashes, dice) = (crashes(), Dice::new());
    let place = tempfile::tempdir().unwrap();
    let mut given: HashMap<u64, Signature> = HashMap::new();
    for crash in 0..crashes {
        let first = (crash + 1) * 1_000_000;
        let count = 1 + dice.below(150);
        let before: Vec<_> = given.keys().copied().collect();
        given.extend(kill_after(spawn(place.path(), first), count));

        let journal = journal(place.path());
        // All of this life's, and one of each of the others'.
        let old = before.iter().filter(|n| *n % 1_000_000 < 4);
        for n in given.keys().filter(|n| **n >= first).chain(old) {
            assert_eq!(
                journal.sign(&statement(*n, *n), 0).await.unwrap(),
                given[n],
                "{n}"
            );
            let other = journal.sign(&statement(*n, n + 1), 0).await;
            assert!(
                matches!(other, Err(JournalError::Conflict { .. })),
                "{n}: {other:?}"
            );
        }
    }
    let journal = journal(place.path());
    for (n, signature) in &given {
        assert_eq!(
            journal.sign(&statement(*n, *n), 0).await.unwrap(),
            *signature,
            "{n}"
        );
    }
    assert!(given.len() >= usize::try_from(crashes).unwrap());
    drop(journal);
    let store = SledStore::open(place.path()).unwrap();
    let report = check::check(&store).await.unwrap();
    assert_eq!(report.defects, 0, "{report}");
}
