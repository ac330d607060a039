//! Every family trades with every other one and with itself in the same scenarios: fills, refunds, payments that fail,
//! expire or lose their block, crashes, and providers that are of no use. `scripted-vm` has none of EVM's habits, so
//! what both pass depends on none of them. `solana-vm` trades over scripted nodes, which answer in this process.
//!
//! `cargo test --test families -- --nocapture` prints the matrix. `INTENTD_SCENARIO=name` selects one scenario,
//! `INTENTD_PAIR=evm-scripted` one pair; both together print the log of that one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr
)]

#[allow(dead_code)]
#[path = "../economy/chain/mod.rs"]
mod chain;
#[allow(dead_code)]
#[path = "../economy/clock.rs"]
mod clock;
#[allow(dead_code)]
#[path = "../support/engine.rs"]
mod engine;
#[allow(dead_code)]
#[path = "../economy/fuse.rs"]
mod fuse;
#[allow(dead_code)]
#[path = "../economy/market.rs"]
mod market;

mod deal;
mod evm;
mod invariants;
mod machine;
mod process;
mod scenarios;
mod scripted;
mod side;
mod solana;

use std::{num::NonZero, panic::AssertUnwindSafe, sync::Mutex};

use machine::Machine;
use scenarios::{SCENARIOS, Scenario};
use side::Kind;

/// Origin and destination.
type Pair = (Kind, Kind);

const PAIRS: [Pair; 7] = [
    (Kind::Evm, Kind::Evm),
    (Kind::Evm, Kind::Scripted),
    (Kind::Scripted, Kind::Evm),
    (Kind::Scripted, Kind::Scripted),
    (Kind::Evm, Kind::Solana),
    (Kind::Solana, Kind::Evm),
    (Kind::Solana, Kind::Solana),
];

/// The result of one scenario of one pair.
struct Verdict {
    wrong: Vec<String>,
    log: Vec<String>,
}

/// A variable of the environment.
#[allow(clippy::disallowed_methods)]
fn set(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn name((origin, destination): Pair) -> String {
    format!("{}-{}", origin.short(), destination.short())
}

/// Runs one scenario on a clock of its own.
fn lived(scenario: &Scenario, pair: Pair) -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        clock::begin(1);
        let mut machine = Machine::new(pair, scenario.name).await;
        let mut wrong = (scenario.play)(&mut machine).await;
        wrong.extend(invariants::check(&machine).await);
        machine.stop().await;
        Verdict {
            wrong,
            log: machine.told(),
        }
    })
}

/// Runs one scenario; a panic is a result, too.
fn survived(scenario: &Scenario, pair: Pair) -> Verdict {
    let lived = std::panic::catch_unwind(AssertUnwindSafe(|| lived(scenario, pair)));
    lived.unwrap_or_else(|_| Verdict {
        wrong: vec!["a panic".into()],
        log: Vec::new(),
    })
}

/// Runs scenarios on all cores.
fn verdicts(cells: Vec<(&'static Scenario, Pair)>) -> Vec<(&'static str, Pair, Verdict)> {
    let (cells, verdicts) = (Mutex::new(cells.into_iter()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let Some((scenario, pair)) = cells.lock().unwrap().next() else {
                return;
            };
            let verdict = (scenario.name, pair, survived(scenario, pair));
            verdicts.lock().unwrap().push(verdict);
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    verdicts.into_inner().unwrap()
}

/// One row for each scenario, one column for each pair.
fn matrix(verdicts: &[(&'static str, Pair, Verdict)]) -> String {
    let wanted = |scenario: &str, pair: Pair| {
        let mut all = verdicts.iter();
        let found = all.find(|(name, of, _)| *name == scenario && *of == pair);
        found.map_or("-", |(.., verdict)| match verdict.wrong.is_empty() {
            true => "ok",
            false => "WRONG",
        })
    };
    let mut text = format!("{:<34}", "origin-destination");
    for pair in PAIRS {
        text += &format!("{:>20}", name(pair));
    }
    for scenario in SCENARIOS {
        text += &format!("\n{:<34}", scenario.name);
        for pair in PAIRS {
            text += &format!("{:>20}", wanted(scenario.name, pair));
        }
    }
    text
}

#[test]
fn every_family_trades_with_every_other_and_itself() {
    let (scenario, pair) = (set("INTENTD_SCENARIO"), set("INTENTD_PAIR"));
    let cells = SCENARIOS
        .iter()
        .flat_map(|scenario| PAIRS.map(|pair| (scenario, pair)));
    let is_wanted = |(one, of): &(&Scenario, Pair)| {
        scenario.as_ref().is_none_or(|wanted| one.name == wanted)
            && pair.as_ref().is_none_or(|wanted| name(*of) == *wanted)
    };
    let cells: Vec<_> = cells.filter(is_wanted).collect();
    let verdicts = verdicts(cells);
    let is_single = verdicts.len() == 1;
    for (scenario, of, Verdict { wrong, log }) in &verdicts {
        if !wrong.is_empty() || is_single {
            println!("== {scenario}, {}", name(*of));
            log.iter().for_each(|line| println!("{line}"));
        }
        for what in wrong {
            println!("WRONG {scenario}, {}: {what}", name(*of));
        }
    }
    println!("{}", matrix(&verdicts));
    assert!(!verdicts.is_empty(), "nothing is called so");
    let mut all = verdicts.iter();
    assert!(all.all(|(.., verdict)| verdict.wrong.is_empty()));
}
