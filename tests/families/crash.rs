//! A process of every family is cut at commits of any kind, again and again, and started on what it left, while chains
//! reorg, stand still and leave its payments out, and one provider of three is of no use. Users deposit too little, twice,
//! or not at all. Nobody is paid twice, and everything ends.
//!
//! `INTENTD_CRASHES` says how many rounds each family has (10); `INTENTD_CRASH_SEED` repeats the choices of a run:
//! `INTENTD_CRASHES=300 cargo test --release --test families -- --nocapture crash::`

use alloy::primitives::U256;
use fastrand::Rng;

use crate::{
    KINDS, Pair, Verdict,
    bitcoin::FINAL,
    deal::{Asset, Assets, Deal},
    fuse::Death,
    invariants::Ending,
    lived,
    machine::Machine,
    name, set,
    side::{Act, Kind, Manner, Weather},
    together,
};

const ROUNDS: u64 = 10;
/// What a deal is worth, in cents of a dollar.
const CENTS: u64 = 20_000;
/// Deals of a round.
const DEALS: u64 = 3;
/// How often a process dies in a round, at most.
const CUTS: u64 = 6;
/// The longest time that a chain stands still, in seconds, and how deep its reorgs are: none of what is final.
const STAND: u64 = 60;
const DEPTH: u64 = 3;
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
    /// By turns as origin and as destination, with every family in turn.
    fn pair(&self) -> Pair {
        let turn = usize::try_from(self.number).unwrap();
        let other = KINDS[turn / 2 % KINDS.len()];
        match turn % 2 {
            0 => (self.kind, other),
            _ => (other, self.kind),
        }
    }

    fn run(self) -> (Self, Verdict) {
        let called = format!("crash {}", self.number);
        let made = async || Machine::new(self.pair(), &called, FINAL).await;
        let verdict = lived(self.seed, made, async |machine: &mut Machine| {
            survived(machine, Rng::with_seed(self.seed)).await
        });
        (self, verdict)
    }
}

/// What a user does with a quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    Deposits,
    /// For a solver that gives everything back.
    IsRefunded,
    DepositsTooLittle,
    DepositsTwice,
}

pub const USERS: [User; 4] = [
    User::Deposits,
    User::IsRefunded,
    User::DepositsTooLittle,
    User::DepositsTwice,
];

/// Any currencies at both ends.
pub fn any(rng: &mut Rng) -> Assets {
    let mut asset = || rng.choice([Asset::Native, Asset::Token]).unwrap();
    Assets::of(asset(), asset())
}

impl User {
    /// A quote that this user asks for. One for a user with outputs holds until the user's next transaction: each is
    /// taken at once.
    pub async fn quote(self, m: &mut Machine, rng: &mut Rng) -> Deal {
        let mut assets = any(rng);
        if self == Self::DepositsTooLittle {
            assets.paid = Asset::Native;
        }
        m.quote(assets, CENTS, self == Self::IsRefunded).await
    }

    /// The user deposits as he does.
    pub async fn take(self, m: &mut Machine, deal: &Deal) {
        match self {
            Self::DepositsTooLittle => m.deposit_less(deal, U256::ONE),
            _ => {
                m.deposit(deal);
            }
        }
        if self == Self::DepositsTwice {
            m.deposit_again(deal).await;
        }
    }

    fn ending(self) -> Ending {
        match self {
            Self::Deposits => Ending::Filled,
            Self::IsRefunded | Self::DepositsTooLittle => Ending::Refunded,
            Self::DepositsTwice => Ending::Twice,
        }
    }
}

/// What happens to a chain.
fn chance(rng: &mut Rng) -> Act {
    let manner = |rng: &mut Rng| {
        let all = [Manner::Sound, Manner::Down, Manner::Late, Manner::Blind];
        rng.choice(all).unwrap()
    };
    match rng.u8(0..6) {
        0 => Act::Weather(Weather::Held),
        1 => Act::Weather(Weather::Fair),
        2 => Act::Provider(manner(rng)),
        3 => Act::Stand(rng.u64(1..=STAND)),
        4 => Act::Resend,
        _ => Act::Reorg {
            depth: rng.u64(1..=DEPTH),
            lost: rng.bool(),
        },
    }
}

fn act(m: &mut Machine, at_origin: bool, act: Act) {
    let side = if at_origin { &m.origin } else { &m.destination };
    side.blocks().act(act);
    let name = side.about().name;
    m.note(format!("{name}: {act:?}"));
}

/// Something happens to a chain, and the process dies at a commit, or lives for [`LIFE`].
pub async fn cut(m: &mut Machine, rng: &mut Rng) {
    let paying = rng.bool();
    let death = Death {
        commits: if paying { 1 } else { rng.u64(1..=COMMITS) },
        paying,
        late: rng.bool(),
        down: 0,
    };
    m.note(format!("{death:?}"));
    m.store.set(Some(death));
    act(m, rng.bool(), chance(rng));
    let deaths = m.deaths;
    m.until(LIFE, async |m: &Machine| m.deaths > deaths).await;
    m.store.set(None);
}

/// Nothing happens to the chains any more.
pub fn calm(m: &mut Machine) {
    for at_origin in [true, false] {
        act(m, at_origin, Act::Weather(Weather::Fair));
        act(m, at_origin, Act::Provider(Manner::Sound));
    }
}

/// Deals, begun while the process dies; what is wrong with their ends.
async fn survived(m: &mut Machine, mut rng: Rng) -> Vec<String> {
    let mut deals = Vec::new();
    for round in 0..CUTS {
        if round < DEALS {
            let user = rng.choice(USERS).unwrap();
            let deal = user.quote(m, &mut rng).await;
            user.take(m, &deal).await;
            deals.push((deal, user));
        }
        cut(m, &mut rng).await;
    }
    calm(m);
    let mut wrong = Vec::new();
    for (deal, user) in &deals {
        wrong.extend(m.ends(deal, user.ending()).await);
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
    for (round, Verdict { wrong, log, .. }) in &ended {
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
    let (rounds, deaths) = (ended.len(), ended.iter().map(|(_, it)| it.deaths));
    let deaths: usize = deaths.sum();
    println!("{rounds} rounds with {deaths} deaths, {failed} of them wrong");
    assert_eq!(failed, 0);
    assert!(deaths > rounds, "processes hardly die");
}
