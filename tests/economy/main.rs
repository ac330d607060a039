//! The machine: quotes, index, solver, settlement and oracle of one process over scripted chains,
//! attacked by strangers and chance. Every history follows from its seed.
//!
//! `INTENTD_SEED=… cargo test --test economy replay -- --nocapture` prints one history;
//! `INTENTD_HISTORIES=n` sets how many are tried.
//!
//! A program of its own: it takes all cores for long, and `.ci/patches` builds it alone, once for each rule.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod chain;
mod claims;
mod clock;
mod customer;
mod endings;
#[path = "../support/engine.rs"]
mod engine;
mod foreign;
mod foreign_strangers;
mod fuse;
mod history;
mod inbox;
mod invariants;
mod limits;
mod market;
mod onchain;
mod operator;
mod plan;
mod process;
mod promises;
mod recovery;
mod rival;
mod rotation;
mod stored;
mod strangers;
mod sums;
mod talkers;
mod users;
mod world;

use std::{
    num::NonZero,
    panic::AssertUnwindSafe,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use chain::provider::{MANNERS, Manners};
use endings::Endings;
use history::History;
use invariants::Violation;
use plan::{AT_FOREIGN, Allowed, FAMILY, POWERS, Plan, Power};

/// As the daemon has it: a history is many small values that other tasks let go of.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Histories of the test command.
const HISTORIES: u64 = 1_000;

/// Histories that may explain a difference.
const OTHER_MOMENTS: u64 = 24;

/// What strangers can do that is not mended yet, and why.
const NOT_YET: &[(Power, &str)] = &[];
/// What a provider can do that is not mended yet.
const MANNERS_NOT_YET: &[(Manners, &str)] = &[];

fn allowed(powers: &[Power]) -> Allowed {
    let named = set("INTENTD_MANNERS");
    let on = |manners: &Manners| match &named {
        Some(named) => named.split(',').any(|name| name == format!("{manners:?}")),
        None => MANNERS_NOT_YET.iter().all(|(known, _)| known != manners),
    };
    Allowed {
        powers: powers.to_vec(),
        abroad: on_of(&AT_FOREIGN),
        manners: MANNERS.into_iter().filter(on).collect(),
        depeg: true,
        late: true,
    }
}

/// What one history came to.
struct Verdict {
    wrong: Vec<Violation>,
    log: Vec<String>,
    endings: Endings,
}

/// One history by itself.
fn alone(plan: &Plan) -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let plan = plan.clone();
    runtime.block_on(async {
        let mut history = History::of(plan).await;
        // Who has not died by now does not.
        history.world.store.set(None);
        let mut wrong = invariants::check(&history).await;
        let endings = endings::all(&history).await;
        wrong.extend(recovery::check(&mut history).await);
        Verdict {
            wrong,
            log: history.lines(),
            endings,
        }
    })
}

/// The same; what panics is wrong.
fn survived(plan: &Plan) -> Verdict {
    std::panic::catch_unwind(AssertUnwindSafe(|| alone(plan))).unwrap_or_else(|_| Verdict {
        wrong: vec![Violation {
            invariant: '!',
            what: "a panic".into(),
        }],
        log: Vec::new(),
        endings: Endings::default(),
    })
}

/// A history beside the same one without strangers, of which `twin` keeps the endings.
fn beside(plan: &Plan, twin: &mut Option<Endings>) -> Verdict {
    let mut verdict = survived(plan);
    if plan.strangers.is_empty() {
        *twin = Some(verdict.endings.clone());
    } else if verdict.wrong.is_empty() {
        let twin = twin.get_or_insert_with(|| survived(&plan.without_strangers()).endings);
        verdict.wrong = unexplained(plan, &verdict.endings, twin);
    }
    verdict
}

/// How the endings differ from those without strangers; empty where one sound history without strangers, in which all comes
/// some seconds sooner or later, explains every difference.
fn unexplained(plan: &Plan, with: &Endings, twin: &Endings) -> Vec<Violation> {
    let found = endings::compare(plan, with, twin);
    let explains = |turn: u64| {
        let other = survived(&plan.at_other_moments(turn));
        let mut all = found.iter();
        other.wrong.is_empty() && all.all(|one| endings::explains(plan, one, with, &other.endings))
    };
    if found.is_empty() || (0..OTHER_MOMENTS).any(explains) {
        return Vec::new();
    }
    found.into_iter().map(|one| one.violation).collect()
}

fn lived(plan: &Plan) -> Verdict {
    beside(plan, &mut None)
}

/// Leaves out what the violation does not need.
fn shrunk(plan: &Plan, invariant: char) -> Plan {
    let still = |plan: &Plan| {
        let verdict = lived(plan);
        verdict
            .wrong
            .iter()
            .any(|found| found.invariant == invariant)
    };
    let mut least = plan.clone();
    for at in (0..least.strangers.len()).rev() {
        let mut less = least.clone();
        less.strangers.remove(at);
        if still(&less) {
            least = less;
        }
    }
    for at in (0..least.weather.len()).rev() {
        let mut less = least.clone();
        less.weather.remove(at);
        if still(&less) {
            least = less;
        }
    }
    least
}

fn report(plan: &Plan, found: &Violation) {
    let least = shrunk(plan, found.invariant);
    let verdict = lived(&least);
    eprintln!(
        "strangers {:?}\nweather {:?}",
        least.strangers, least.weather
    );
    for line in &verdict.log {
        eprintln!("{line}");
    }
    for found in &verdict.wrong {
        eprintln!("({}) {}", found.invariant, found.what);
    }
}

/// What whoever runs the machine asks of it.
#[allow(clippy::disallowed_methods)]
fn set(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn count() -> u64 {
    set("INTENTD_HISTORIES")
        .and_then(|text| text.parse().ok())
        .unwrap_or(HISTORIES)
}

fn first() -> u64 {
    set("INTENTD_SEED")
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// Tries histories on all cores; the first seed that breaks something, and how.
fn machine(powers: &[Power]) -> Option<(u64, Violation)> {
    let (begin, end) = (first(), first() + count());
    let (families, began) = (AtomicU64::new(begin / FAMILY), Instant::now());
    let found: Mutex<Option<(u64, Violation)>> = Mutex::new(None);
    let work = || {
        loop {
            let from = families.fetch_add(1, Ordering::Relaxed) * FAMILY;
            if from >= end {
                return;
            }
            let mut twin = None;
            for seed in from.max(begin)..(from + FAMILY).min(end) {
                if found.lock().unwrap().is_some() {
                    return;
                }
                let verdict = beside(&Plan::of(seed, &allowed(powers)), &mut twin);
                if let Some(wrong) = verdict.wrong.into_iter().next() {
                    found.lock().unwrap().get_or_insert((seed, wrong));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(work);
        }
    });
    let found = found.into_inner().unwrap();
    if found.is_none() {
        let seconds = began.elapsed().as_secs();
        println!("seeds {begin} to {} clean in {seconds} s", end - 1);
    }
    found
}

fn nothing_breaks(powers: &[Power]) {
    if let Some((seed, wrong)) = machine(powers) {
        let tried = seed - first() + 1;
        eprintln!(
            "seed {seed} breaks ({}) after {tried} histories: {}",
            wrong.invariant, wrong.what
        );
        report(&Plan::of(seed, &allowed(powers)), &wrong);
        panic!("seed {seed} breaks an invariant");
    }
}

/// What is on: all that is mended, or what `INTENTD_POWERS` names (debug names, commas).
fn on() -> Vec<Power> {
    on_of(&POWERS)
}

fn on_of(powers: &[Power]) -> Vec<Power> {
    let named = set("INTENTD_POWERS");
    let on = |power: &Power| match &named {
        Some(named) => named.split(',').any(|name| name == format!("{power:?}")),
        None => NOT_YET.iter().all(|(known, _)| known != power),
    };
    powers.iter().copied().filter(on).collect()
}

/// Every fifth history is without strangers, the others are beside it.
#[test]
fn strangers_gain_nothing_and_change_nobody_s_ending() {
    nothing_breaks(&on());
}

/// Prints what everybody is told of honest users' requests.
fn told(endings: &Endings) {
    for (at, ending) in endings {
        println!("honest {at} is told {}", ending.public);
    }
}

/// Prints the history of `INTENTD_SEED`; with `INTENTD_TWIN` the one without strangers, too.
#[test]
fn replay() {
    if set("INTENTD_SEED").is_none() {
        return;
    }
    let plan = Plan::of(first(), &allowed(&on()));
    println!("{plan:#?}");
    let verdict = lived(&plan);
    for line in &verdict.log {
        println!("{line}");
    }
    for found in &verdict.wrong {
        println!("({}) {}", found.invariant, found.what);
    }
    told(&verdict.endings);
    if set("INTENTD_TWIN").is_some() {
        println!("== without strangers");
        let twin = alone(&plan.without_strangers());
        for line in &twin.log {
            println!("{line}");
        }
        told(&twin.endings);
    }
}

/// One seed has one history.
#[test]
fn a_seed_has_one_history() {
    for seed in 5..8 {
        let plan = Plan::of(seed, &allowed(&on()));
        let (one, two) = (alone(&plan).log, alone(&plan).log);
        assert_eq!(one, two, "seed {seed}");
    }
}
