//! The machine: quotes, index, solver, settlement and oracle of one process over scripted chains,
//! attacked by strangers and chance. Every history follows from its seed.
//!
//! `INTENTD_SEED=… cargo test --test economy replay -- --nocapture` prints one history;
//! `INTENTD_HISTORIES=n` sets how many are tried.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod books;
mod chain;
mod clock;
mod fuse;
mod history;
mod invariants;
mod market;
mod plan;
mod strangers;
mod world;

use std::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};

use chain::provider::{MANNERS, Manners};
use history::History;
use invariants::Violation;
use plan::{Allowed, POWERS, Plan, Power};

/// Histories of the test command.
const HISTORIES: u64 = 100;

/// What strangers can do that is not mended yet, and why.
const NOT_YET: &[(Power, &str)] = &[(Power::GasBurner, "estimates run at gas price 0")];
/// What a provider can do that is not mended yet.
const MANNERS_NOT_YET: &[(Manners, &str)] = &[
    (
        Manners::LiesAboutNonces,
        "nonces are the greatest that any provider claims",
    ),
    (
        Manners::EmptyLogs,
        "one provider moves a cursor over deposits",
    ),
    (
        Manners::LiesAboutFates,
        "fates are the friendliest provider's",
    ),
    (Manners::LiesAboutFees, "fees are the first provider's"),
    (
        Manners::LiesAboutReverts,
        "estimates are the first provider's",
    ),
];

fn allowed(powers: &[Power]) -> Allowed {
    let named = set("INTENTD_MANNERS");
    let on = |manners: &Manners| match &named {
        Some(named) => named.split(',').any(|name| name == format!("{manners:?}")),
        None => MANNERS_NOT_YET.iter().all(|(known, _)| known != manners),
    };
    Allowed {
        powers: powers.to_vec(),
        manners: MANNERS.into_iter().filter(on).collect(),
        depeg: true,
        late: true,
    }
}

/// What one history came to.
struct Verdict {
    wrong: Vec<Violation>,
    log: Vec<String>,
}

fn lived(plan: Plan) -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let strangers = !plan.strangers.is_empty();
        let alone = plan.without_strangers();
        let history = History::of(plan).await;
        let mut wrong = invariants::check(&history).await;
        let log = history.told();
        if strangers && wrong.is_empty() {
            let with = invariants::endings(&history).await;
            drop(history.world);
            let other = History::of(alone).await;
            wrong = invariants::compare(&with, &invariants::endings(&other).await);
        }
        Verdict { wrong, log }
    })
}

/// Leaves out what the violation does not need.
fn shrunk(plan: &Plan, invariant: char) -> Plan {
    let still = |plan: &Plan| {
        let verdict = lived(plan.clone());
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

fn report(seed: u64, plan: &Plan, found: &Violation) {
    let least = shrunk(plan, found.invariant);
    let verdict = lived(least.clone());
    eprintln!("seed {seed} breaks ({}): {}", found.invariant, found.what);
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
        .unwrap_or(1)
}

/// Tries histories on both cores; the first seed that breaks something, and how.
fn machine(powers: &[Power]) -> Option<(u64, Violation)> {
    let (next, end) = (AtomicU64::new(first()), first() + count());
    let found: Mutex<Option<(u64, Violation)>> = Mutex::new(None);
    let work = || {
        while found.lock().unwrap().is_none() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return;
            }
            let verdict = lived(Plan::of(seed, &allowed(powers)));
            if let Some(wrong) = verdict.wrong.into_iter().next() {
                found.lock().unwrap().get_or_insert((seed, wrong));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    found.into_inner().unwrap()
}

fn nothing_breaks(powers: &[Power]) {
    if let Some((seed, wrong)) = machine(powers) {
        report(seed, &Plan::of(seed, &allowed(powers)), &wrong);
        panic!("seed {seed} breaks an invariant");
    }
}

/// What is on: all that is mended, or what `INTENTD_POWERS` names (debug names, commas).
fn on() -> Vec<Power> {
    let named = set("INTENTD_POWERS");
    let on = |power: &Power| match &named {
        Some(named) => named.split(',').any(|name| name == format!("{power:?}")),
        None => NOT_YET.iter().all(|(known, _)| known != power),
    };
    POWERS.into_iter().filter(on).collect()
}

#[test]
fn honest_users_get_what_they_were_promised_in_any_weather() {
    nothing_breaks(&[]);
}

#[test]
fn strangers_gain_nothing_and_change_nobody_s_ending() {
    nothing_breaks(&on());
}

/// Prints the history of `INTENTD_SEED`.
#[test]
fn replay() {
    if set("INTENTD_SEED").is_none() {
        return;
    }
    let plan = Plan::of(first(), &allowed(&on()));
    println!("{plan:#?}");
    let verdict = lived(plan);
    for line in &verdict.log {
        println!("{line}");
    }
    for found in &verdict.wrong {
        println!("({}) {}", found.invariant, found.what);
    }
}

/// One seed has one history.
#[test]
fn a_seed_has_one_history() {
    for seed in 1..4 {
        let plan = Plan::of(seed, &allowed(&on()));
        let (one, two) = (lived(plan.clone()).log, lived(plan).log);
        assert_eq!(one, two, "seed {seed}");
    }
}
