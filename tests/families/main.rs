//! Every family trades with every other one and with itself in the same scenarios: fills, refunds, payments that fail,
//! expire or lose their block, crashes, and providers that are of no use. `scripted-vm` has none of EVM's habits, so
//! what both pass depends on none of them. `solana-vm` and `bitcoin-vm` trade over scripted nodes, which answer in this
//! process.
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

mod bitcoin;
mod crash;
mod deadlines;
mod deal;
mod evm;
mod invariants;
mod machine;
mod moved;
mod process;
mod quotes;
mod scenarios;
mod scripted;
mod side;
mod solana;
mod spelling;
mod strangers;
mod waiting;

use std::{num::NonZero, panic::AssertUnwindSafe, sync::Mutex};

use machine::Machine;
use scenarios::{SCENARIOS, Scenario};
use side::Kind;

/// Origin and destination.
type Pair = (Kind, Kind);

const KINDS: [Kind; 4] = [Kind::Evm, Kind::Scripted, Kind::Solana, Kind::Bitcoin];

fn pairs() -> impl Iterator<Item = Pair> {
    let to_all = |origin| KINDS.map(|destination| (origin, destination));
    KINDS.into_iter().flat_map(to_all)
}

/// The result of one scenario of one pair.
struct Verdict {
    wrong: Vec<String>,
    log: Vec<String>,
    /// How often its process has died.
    deaths: usize,
}

/// A variable of the environment.
#[allow(clippy::disallowed_methods)]
fn set(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Whether it is one of the pairs in which each family is once the origin and once the destination.
fn is_in_ring((origin, destination): Pair) -> bool {
    let place = KINDS.iter().position(|kind| *kind == origin);
    place.is_some_and(|place| KINDS[(place + 1) % KINDS.len()] == destination)
}

fn name((origin, destination): Pair) -> String {
    format!("{}-{}", origin.short(), destination.short())
}

/// Lets a machine live on a clock of its own; a panic is a result, too.
fn lived(
    seed: u64,
    made: impl AsyncFnOnce() -> Machine,
    play: impl AsyncFnOnce(&mut Machine) -> Vec<String>,
) -> Verdict {
    let live = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            clock::begin(seed);
            let mut machine = made().await;
            let mut wrong = play(&mut machine).await;
            wrong.extend(invariants::check(&machine).await);
            machine.stop().await;
            Verdict {
                wrong,
                log: machine.told(),
                deaths: machine.deaths,
            }
        })
    };
    let lived = std::panic::catch_unwind(AssertUnwindSafe(live));
    lived.unwrap_or_else(|_| Verdict {
        wrong: vec!["a panic".into()],
        log: Vec::new(),
        deaths: 0,
    })
}

/// Does something to each of these on all cores.
fn together<T: Send, R: Send>(all: Vec<T>, done: impl Fn(T) -> R + Sync) -> Vec<R> {
    let (all, results) = (Mutex::new(all.into_iter()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let Some(next) = all.lock().unwrap().next() else {
                return;
            };
            let result = done(next);
            results.lock().unwrap().push(result);
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    results.into_inner().unwrap()
}

/// A table for each origin: one row for each scenario, one column for each destination.
fn matrix(verdicts: &[(&'static str, Pair, Verdict)]) -> String {
    let told = |scenario: &Scenario, pair: Pair| {
        let mut all = verdicts.iter();
        let found = all.find(|(name, of, _)| *name == scenario.name && *of == pair);
        found.map_or("-", |(.., verdict)| match verdict.wrong.is_empty() {
            true => "ok",
            false => "WRONG",
        })
    };
    let mut text = String::new();
    for origin in KINDS {
        let from = format!("from {}", origin.short());
        text += &format!("{from:<34}");
        text.extend(KINDS.map(|to| format!("{:>10}", to.short())));
        for scenario in SCENARIOS {
            text += &format!("\n{:<34}", scenario.name);
            text.extend(KINDS.map(|to| format!("{:>10}", told(scenario, (origin, to)))));
        }
        text += "\n\n";
    }
    text
}

#[test]
fn every_family_trades_with_every_other_and_itself() {
    let (scenario, pair) = (set("INTENTD_SCENARIO"), set("INTENTD_PAIR"));
    let cells = SCENARIOS
        .iter()
        .flat_map(|scenario| pairs().map(move |pair| (scenario, pair)));
    let is_wanted = |(one, of): &(&Scenario, Pair)| {
        one.is_played(*of)
            && scenario.as_ref().is_none_or(|wanted| one.name == wanted)
            && pair.as_ref().is_none_or(|wanted| name(*of) == *wanted)
    };
    let cells: Vec<_> = cells.filter(is_wanted).collect();
    let verdicts = together(cells, |(scenario, pair): (&Scenario, Pair)| {
        let made = async || Machine::new(pair, scenario.name, scenario.depth()).await;
        let verdict = lived(1, made, async |machine: &mut Machine| {
            (scenario.play)(machine).await
        });
        (scenario.name, pair, verdict)
    });
    let is_single = verdicts.len() == 1;
    for (scenario, of, Verdict { wrong, log, .. }) in &verdicts {
        if !wrong.is_empty() || is_single {
            println!("== {scenario}, {}", name(*of));
            log.iter().for_each(|line| println!("{line}"));
        }
        for what in wrong {
            println!("WRONG {scenario}, {}: {what}", name(*of));
        }
    }
    print!("{}", matrix(&verdicts));
    assert!(!verdicts.is_empty(), "nothing is called so");
    let mut all = verdicts.iter();
    assert!(all.all(|(.., verdict)| verdict.wrong.is_empty()));
}
