//! A process of every family is cut at commits of any kind, again and again, and started on what it left: nobody is paid
//! twice, and everything ends.
//!
//! `INTENTD_CRASHES` says how many times for each family (10); `INTENTD_CRASH_SEED` repeats the choices of a run:
//! `INTENTD_CRASHES=300 cargo test --release --test families -- --nocapture crash::`

use fastrand::Rng;

use crate::{
    KINDS, Pair, Verdict, deal::Asset, fuse::Death, invariants::Ending, lived, machine::Machine,
    name, set, side::Kind, together,
};

const ROUNDS: u64 = 10;
/// What a deal is worth, in cents of a dollar.
const CENTS: u64 = 20_000;
/// How often a process dies in a round, at most.
const CUTS: u64 = 6;
/// Seconds of a process after which the next one dies.
const LIFE: u64 = 90;
/// The last commit of a process.
const COMMITS: u64 = 40;

/// A family, a round of its, and what decides everything in it.
struct Round {
    kind: Kind,
    number: u64,
    seed: u64,
}

impl Round {
    /// By turns as origin, as destination, and as both.
    fn pair(&self) -> Pair {
        match self.number % 3 {
            0 => (self.kind, self.kind),
            1 => (Kind::Evm, self.kind),
            _ => (self.kind, Kind::Evm),
        }
    }

    fn run(self) -> (Self, Verdict) {
        let called = format!("crash {}", self.number);
        let verdict = lived(
            self.pair(),
            &called,
            self.seed,
            async |machine: &mut Machine| survived(machine, Rng::with_seed(self.seed)).await,
        );
        (self, verdict)
    }
}

/// Two fills and a refund, begun while the process dies; what is wrong with their ends.
async fn survived(m: &mut Machine, mut rng: Rng) -> Vec<String> {
    let (mut deals, mut wanted) = (Vec::new(), vec![false, true, false]);
    for _ in 0..CUTS {
        // A quote for a user with outputs holds until the user's next transaction: each is taken at once.
        if let Some(forced) = wanted.pop() {
            let asset = rng.choice([Asset::Native, Asset::Token]).unwrap();
            let deal = m.quote(asset, CENTS, forced).await;
            m.deposit(&deal);
            deals.push((deal, forced));
        }
        let paying = rng.bool();
        let death = Death {
            commits: if paying { 1 } else { rng.u64(1..=COMMITS) },
            paying,
            late: rng.bool(),
            down: 0,
        };
        m.note(format!("{death:?}"));
        m.store.set(Some(death));
        let deaths = m.deaths;
        m.until(LIFE, async |m: &Machine| m.deaths > deaths).await;
        m.store.set(None);
    }
    let mut wrong = Vec::new();
    if m.deaths == 0 {
        wrong.push("it never died".to_owned());
    }
    for (deal, forced) in &deals {
        let ending = if *forced {
            Ending::Refunded
        } else {
            Ending::Filled
        };
        wrong.extend(m.ends(deal, ending).await);
    }
    wrong
}

#[test]
fn nobody_is_paid_twice_however_often_a_process_dies() {
    let number = |name: &str| set(name).map(|text| text.parse::<u64>().unwrap());
    let rounds = number("INTENTD_CRASHES").unwrap_or(ROUNDS);
    let seed = number("INTENTD_CRASH_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("INTENTD_CRASH_SEED={seed}");
    let all = (0..rounds).flat_map(|number| {
        let seed = seed.wrapping_add(number);
        KINDS.map(|kind| Round { kind, number, seed })
    });
    let ended = together(all.collect(), Round::run);
    let mut failed = 0;
    for (round, Verdict { wrong, log }) in &ended {
        if wrong.is_empty() {
            continue;
        }
        failed += 1;
        println!("== round {} of {}", round.number, name(round.pair()));
        log.iter().for_each(|line| println!("{line}"));
        for what in wrong {
            println!(
                "WRONG round {}, {}: {what}",
                round.number,
                name(round.pair())
            );
        }
    }
    println!("{} rounds, {failed} of them wrong", ended.len());
    assert_eq!(failed, 0);
}
