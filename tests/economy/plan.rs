//! What happens in a history, as far as the seed decides it. What one actor does never depends on
//! which others there are: leaving actors out changes nobody else's plan.

use alloy::primitives::{Address, U256, keccak256};
use fastrand::Rng;

use crate::{
    chain::{FINAL, ledger::HABITS, ledger_provider, provider::Manners},
    fuse::Death,
    history::Who,
    market::{BRIDGED, CHAINS, JUNK, NATIVE, USDC},
    rival,
};

/// Seconds in which actors begin.
const WINDOW: u64 = 160;
/// Seconds by which a stranger's questions may have others act sooner or later.
const SHIFT: u64 = 4;
/// Histories with the same users in the same weather: the first has no strangers.
pub const FAMILY: u64 = 5;

/// What happens in a history, drawn from its seed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What users and weather follow from.
    pub family: u64,
    pub honest: Vec<Honest>,
    /// Of another solver that the same oracles sign for.
    pub customer: Option<Honest>,
    /// Of the same one, with orders between families.
    pub foreign: Vec<Foreign>,
    pub strangers: Vec<Stranger>,
    /// What happens to everybody, by seconds since the beginning.
    pub weather: Vec<(u64, Weather)>,
    /// Dollars that the solver may pay on a network in an hour.
    pub cap: Option<u64>,
    /// Depositors take back in the end what nobody was paid for.
    pub recovers: bool,
}

/// A user who wants what is quoted.
#[derive(Clone, Debug)]
pub struct Honest {
    pub account: Address,
    pub recipient: Address,
    /// Seconds since the beginning.
    pub at: u64,
    /// Seconds between the quote and the deposit.
    pub pause: u64,
    /// Percent that are deposited too much.
    pub over: u64,
    /// Seconds after which the same is deposited once more.
    pub again: Option<u64>,
    /// Basis points that an app takes.
    pub fee: u64,
    pub trade: Trade,
}

/// A customer of another solver's, whose order has its ends in two families.
#[derive(Clone, Debug)]
pub struct Foreign {
    pub account: Address,
    pub recipient: Address,
    /// Seconds since the beginning.
    pub at: u64,
    pub trade: Trade,
    /// What the recipient gets.
    pub gives: U256,
    /// Percent that are deposited too much.
    pub over: u64,
    /// The order asks for its solver's word in every claim.
    pub vouched: bool,
    /// The deposit is replaced by another one while it waits for a block.
    pub replaced: bool,
}

/// What is exchanged for what.
#[derive(Clone, Copy, Debug)]
pub struct Trade {
    pub from: (&'static str, Address),
    pub to: (&'static str, Address),
    /// Of what is given.
    pub amount: U256,
    pub extra: Extra,
}

/// What a request wants besides a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    Nothing,
    /// The destination transaction buys something.
    Till,
    /// The refund path.
    Refund,
    /// Its call, with so many bytes of data, burns gas that is paid for.
    Burner(usize),
}

/// Somebody without a key and without scruples.
#[derive(Clone, Debug)]
pub struct Stranger {
    pub account: Address,
    pub power: Power,
    pub victim: Who,
    /// Seconds after the victim's deposit was sent (may come before it is in a block).
    pub after: u64,
    /// Comes before the victim's deposit instead.
    pub early: bool,
    /// Asks the peer of the solver's oracle.
    pub elsewhere: bool,
    /// Has a key, though not one that may use `force`.
    pub keyed: bool,
    pub trade: Trade,
}

/// What a stranger can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Power {
    /// Deposits one unit under the victim's order, on the same chain; a hundredth of it some who come early.
    Dust,
    /// The same on the other chain, or as much there as the victim deposits here.
    DustElsewhere,
    /// Deposits a token that nobody lists under the victim's order.
    Junk,
    /// Deposits another currency under the victim's order.
    OtherCurrency,
    /// Deposits as much as the victim under the victim's order, once or more.
    Double,
    /// Deposits a hundredth of an order of its own first, the rest later.
    PercentFirst,
    /// Tells of foreign transactions as the victim's.
    Teller,
    /// Deposits dust, and claims the victim's fill for it at the oracle.
    DustClaim,
    /// Pays the victim's refund address one unit and claims the refund.
    RefundClaim,
    /// Claims with `force`.
    Forcer,
    /// Orders calls that burn gas.
    GasBurner,
    /// Takes quotes and deposits only when the market has moved its way.
    OptionTaker,
    /// Wants deposits back through the hub: its own in another currency, and the victim's.
    Recoverer,
    /// Deposits as much as the victim, and claims the refund of that for the victim's deposit.
    Crosswise,
    /// Asks the API whatever it tells.
    Asker,
    /// A peer, with its key: asks both oracles what the solver asks its own.
    Corroborator,
    /// Has a key that may force.
    Keyholder,
    /// A solver with an order of its own, under which it claims the victim's deposit.
    Impostor,
    /// Claims a deposit of its own until that is replaced, or undone by a reorg.
    Replacer,
    /// Pays what the victim was promised, and claims that the order was filled.
    ThirdParty,
    /// Deposits into what looks like the depository, and claims that with hints of all kinds.
    Misnamer,
    /// Claims that the order was filled and given back, both by the same payment, at both oracles.
    BothWays,
}

/// Every power.
pub const POWERS: [Power; 17] = [
    Power::Dust,
    Power::DustElsewhere,
    Power::Junk,
    Power::OtherCurrency,
    Power::Double,
    Power::PercentFirst,
    Power::Teller,
    Power::DustClaim,
    Power::RefundClaim,
    Power::Forcer,
    Power::GasBurner,
    Power::OptionTaker,
    Power::Recoverer,
    Power::Crosswise,
    Power::Asker,
    Power::Corroborator,
    Power::Keyholder,
];

/// What can be done to orders of another solver.
const AT_RIVALS: [Power; 6] = [
    Power::Dust,
    Power::DustClaim,
    Power::RefundClaim,
    Power::Forcer,
    Power::Recoverer,
    Power::Crosswise,
];

/// What can be done to orders between families.
pub const AT_FOREIGN: [Power; 13] = [
    Power::Dust,
    Power::OtherCurrency,
    Power::Double,
    Power::DustClaim,
    Power::RefundClaim,
    Power::Forcer,
    Power::Recoverer,
    Power::Crosswise,
    Power::Impostor,
    Power::Replacer,
    Power::ThirdParty,
    Power::Misnamer,
    Power::BothWays,
];

/// What happens to everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// A price becomes so many parts of ten thousand of what it was.
    Price(&'static str, u64),
    /// Gas costs so many percent of what it did.
    Gas(usize, u128),
    /// The newest blocks of a chain give way; of what was in them one in so many is gone (0: none).
    Reorg(usize, u64, u64),
    /// A provider of a chain behaves so for a while (seconds).
    Provider(usize, usize, Manners, u64),
    Crash(Death),
    /// No block is made on a chain for so many seconds.
    Stand(usize, u64),
    /// Nodes of a chain forget what waits.
    Forget(usize),
    /// A chain's feed of a symbol tells so many parts of ten thousand of the price for a while (seconds).
    Feed(&'static str, &'static str, u64, u64),
    /// The operator holds fills for a while (seconds).
    Pause(u64),
    /// The operator goes through what is listed: releases, asks again, heals.
    Verbs,
    /// The operator takes everything from the lists: dismisses, and writes off.
    Clearing,
}

/// What a history may hold.
#[derive(Clone, Debug)]
pub struct Allowed {
    pub powers: Vec<Power>,
    /// Against orders between families.
    pub abroad: Vec<Power>,
    pub manners: Vec<Manners>,
    /// A listed token may lose its worth.
    pub depeg: bool,
    /// Honest users may deposit long after their quote.
    pub late: bool,
}

/// A stream of its own for each actor.
fn stream(seed: u64, name: &str) -> Rng {
    let hash = keccak256(format!("{seed}/{name}"));
    let mut word = [0; 8];
    word.copy_from_slice(&hash[..8]);
    Rng::with_seed(u64::from_be_bytes(word))
}

fn account(seed: u64, name: &str) -> Address {
    Address::from_word(keccak256(format!("account {seed}/{name}")))
}

impl Plan {
    pub fn of(seed: u64, allowed: &Allowed) -> Self {
        let family = seed / FAMILY;
        let users = stream(family, "size").usize(1..=4);
        let honest = (0..users).map(|at| Honest::of(family, at, allowed.late));
        let honest: Vec<_> = honest.collect();
        let strangers = match allowed.powers.is_empty() || seed.is_multiple_of(FAMILY) {
            true => 0,
            false => stream(seed, "strangers").usize(1..=3),
        };
        let customer = family.is_multiple_of(3).then(|| Honest::customer(family));
        let victims = (users, customer.is_some());
        let strangers = (0..strangers).map(|at| Stranger::of(seed, at, victims, &allowed.powers));
        let foreign = Foreign::all(family);
        let abroad = match allowed.abroad.is_empty() || seed.is_multiple_of(FAMILY) {
            true => 0,
            false => stream(seed, "strangers abroad").usize(0..=2),
        };
        let abroad = (0..abroad).map(|at| Stranger::abroad(seed, at, &foreign, &allowed.abroad));
        let strangers = strangers.chain(abroad).collect();
        let mut weather = weather(family, allowed, &honest);
        weather.extend(stands(family));
        weather.extend(clearing(family));
        weather.extend(weather_abroad(family, allowed, &foreign));
        weather.sort_by_key(|(at, _)| *at);
        Self {
            family,
            weather,
            honest,
            customer,
            foreign,
            strangers,
            recovers: family % 4 == 1,
            cap: (family % 8 == 7).then(|| stream(family, "cap").u64(1_000..6_000)),
        }
    }

    /// The same without the strangers.
    pub fn without_strangers(&self) -> Self {
        Self {
            strangers: Vec::new(),
            ..self.clone()
        }
    }

    /// The same without strangers, in which deposits and weather come some seconds sooner or later, and deaths some
    /// commits: a stranger's questions take time, and his orders are commits. `turn` tells such plans apart.
    pub fn at_other_moments(&self, turn: u64) -> Self {
        let mut rng = stream(self.family, &format!("moments {turn}"));
        let mut shifted = |at: u64| (at + rng.u64(0..=2 * SHIFT)).saturating_sub(SHIFT);
        let mut plan = self.without_strangers();
        for one in &mut plan.honest {
            one.pause = shifted(one.pause);
        }
        for (at, what) in &mut plan.weather {
            *at = shifted(*at);
            if let Weather::Crash(death) = what {
                death.commits = shifted(death.commits).max(1);
            }
        }
        plan
    }

    /// Everybody who sends transactions.
    pub fn accounts(&self) -> Vec<Address> {
        let honest = self.honest.iter().map(|one| one.account);
        honest
            .chain(self.customer.iter().map(|one| one.account))
            .chain(self.strangers.iter().map(|one| one.account))
            .chain(self.foreign.iter().map(|one| one.account))
            .chain([rival::account()])
            .collect()
    }

    /// The chains without contracts on which anything happens.
    pub fn ledgers(&self) -> Vec<&'static str> {
        let used = |name: &&str| {
            let mut orders = self.foreign.iter();
            orders.any(|one| one.trade.from.0 == *name || one.trade.to.0 == *name)
        };
        HABITS
            .map(|habits| habits.name)
            .into_iter()
            .filter(used)
            .collect()
    }

    /// Who acts for orders between families, or against them.
    pub fn accounts_abroad(&self) -> Vec<Address> {
        let strangers = self.strangers.iter().filter(|one| one.is_abroad());
        let users = self.foreign.iter().map(|one| one.account);
        users
            .chain(strangers.map(|one| one.account))
            .chain((!self.foreign.is_empty()).then(rival::account))
            .collect()
    }
}

impl Honest {
    fn of(seed: u64, at: usize, late: bool) -> Self {
        let mut rng = stream(seed, &format!("honest {at}"));
        let trade = Trade::of(&mut rng);
        let extra = match rng.u8(0..10) {
            0 => Extra::Refund,
            1 | 2 => Extra::Till,
            _ => Extra::Nothing,
        };
        Self {
            account: account(seed, &format!("honest {at}")),
            recipient: account(seed, &format!("recipient {at}")),
            at: rng.u64(0..WINDOW),
            pause: match rng.u8(0..8) {
                0 if late => rng.u64(70..200),
                _ => rng.u64(2..30),
            },
            trade: Trade { extra, ..trade },
            over: match rng.u8(0..8) {
                0 => rng.u64(1..100),
                _ => 0,
            },
            again: (rng.u8(0..10) == 0).then(|| rng.u64(0..40)),
            fee: 0,
        }
        .besides(seed, at)
    }

    /// Some send on one chain by themselves, and some pay an app.
    fn besides(mut self, seed: u64, at: usize) -> Self {
        let mut rng = stream(seed, &format!("honest {at} besides"));
        match rng.u8(0..12) {
            0 => {
                self.trade.to = self.trade.from;
                self.trade.extra = Extra::Nothing;
                self.over = 0;
                self.again = None;
            }
            1 | 2 => self.fee = rng.u64(1..300),
            _ => {}
        }
        self
    }
}

impl Honest {
    /// Of another solver.
    fn customer(seed: u64) -> Self {
        let mut rng = stream(seed, "customer");
        Self {
            account: account(seed, "customer"),
            recipient: account(seed, "customer's recipient"),
            at: rng.u64(0..WINDOW),
            pause: 0,
            over: 0,
            again: None,
            fee: 0,
            trade: Trade::of(&mut rng),
        }
    }

    /// One end of the trade, as chains are counted.
    fn end(&self, rng: &mut Rng) -> usize {
        let (name, _) = match rng.bool() {
            true => self.trade.from,
            false => self.trade.to,
        };
        usize::from(name != "alpha")
    }
}

impl Trade {
    /// Nobody but the user acts.
    pub fn is_own(&self) -> bool {
        self.from.0 == self.to.0
    }

    fn of(rng: &mut Rng) -> Self {
        let (here, there) = match rng.bool() {
            true => ("alpha", "beta"),
            false => ("beta", "alpha"),
        };
        let any = |rng: &mut Rng, chain| match rng.u8(0..9) {
            0..4 => NATIVE,
            8 if chain == "alpha" => BRIDGED,
            _ => USDC,
        };
        let from = any(rng, here);
        let to = any(rng, there);
        let dollars = rng.u64(50..5_000);
        Self {
            from: (here, from),
            to: (there, to),
            amount: worth(from, dollars),
            extra: Extra::Nothing,
        }
    }
}

/// The two ends of orders between families: a chain without contracts and an EVM chain, or two of the former.
const ENDS: [[&str; 2]; 6] = [
    ["bitcoin", "evm"],
    ["evm", "bitcoin"],
    ["solana", "evm"],
    ["evm", "solana"],
    ["bitcoin", "solana"],
    ["solana", "bitcoin"],
];

impl Foreign {
    /// One order in every history, in some two.
    fn all(seed: u64) -> Vec<Self> {
        let count = if seed % 3 == 1 { 2 } else { 1 };
        (0..count).map(|at| Self::of(seed, at)).collect()
    }

    fn of(seed: u64, at: usize) -> Self {
        let mut rng = stream(seed, &format!("foreign {at}"));
        let evm = if rng.bool() { "alpha" } else { "beta" };
        let turn = usize::try_from(seed).unwrap_or_default() + at * 3;
        let [from, to] = ENDS[turn % ENDS.len()].map(|name| match name {
            "evm" => evm,
            other => other,
        });
        let mut any = |chain: &str| match chain {
            "bitcoin" => NATIVE,
            _ if rng.bool() => USDC,
            _ => NATIVE,
        };
        let trade = Trade {
            from: (from, any(from)),
            to: (to, any(to)),
            amount: U256::ZERO,
            extra: Extra::Nothing,
        };
        let dollars = rng.u64(50..5_000);
        Self {
            account: account(seed, &format!("foreign {at}")),
            recipient: account(seed, &format!("foreign recipient {at}")),
            at: rng.u64(0..WINDOW),
            gives: units(trade.to, dollars) * U256::from(99) / U256::from(100),
            trade: Trade {
                amount: units(trade.from, dollars),
                ..trade
            },
            over: if rng.u8(0..6) == 0 { rng.u64(1..10) } else { 0 },
            vouched: rng.bool(),
            replaced: rng.u8(0..5) == 0,
        }
    }
}

/// So many dollars' worth in units of a chain's currency.
fn units((chain, currency): (&str, Address), dollars: u64) -> U256 {
    match (chain, currency) {
        ("bitcoin", _) => U256::from(dollars * 1_000),
        ("solana", NATIVE) => U256::from(dollars * 5_000_000),
        _ => worth(currency, dollars),
    }
}

/// Some of another currency of a chain, if it has one.
pub fn other(chain: &str, currency: Address) -> Option<(Address, U256)> {
    match chain {
        "bitcoin" => None,
        "solana" => Some((JUNK, U256::from(40_000_000))),
        _ => {
            let other = if currency == NATIVE { USDC } else { NATIVE };
            Some((other, worth(other, 40)))
        }
    }
}

/// So many dollars at the first prices.
pub fn worth(currency: Address, dollars: u64) -> U256 {
    let dollars = U256::from(dollars);
    match currency {
        NATIVE => dollars * U256::from(500_000_000_000_000_u64),
        _ => dollars * U256::from(1_000_000),
    }
}

impl Stranger {
    fn of(seed: u64, at: usize, (users, rival): (usize, bool), powers: &[Power]) -> Self {
        let mut rng = stream(seed, &format!("stranger {at}"));
        let power = powers[rng.usize(0..powers.len())];
        let victim = Who::Honest(rng.usize(0..users));
        let other = rival && AT_RIVALS.contains(&power) && rng.bool();
        Self {
            account: account(seed, &format!("stranger {at}")),
            power,
            victim: if other { Who::Rival } else { victim },
            after: match rng.u8(0..3) {
                0 => 0,
                1 => rng.u64(0..20),
                _ => rng.u64(0..200),
            },
            trade: Trade::of(&mut rng),
            elsewhere: rng.bool(),
            keyed: rng.bool(),
            early: rng.u8(0..3) == 0,
        }
    }
}

impl Stranger {
    /// Against an order between families.
    fn abroad(seed: u64, at: usize, foreign: &[Foreign], powers: &[Power]) -> Self {
        let mut rng = stream(seed, &format!("stranger abroad {at}"));
        let victim = rng.usize(0..foreign.len());
        let power = match powers[rng.usize(0..powers.len())] {
            // Of two deposits that are whole anybody chooses one, unless the order asks for a word.
            Power::Double if !foreign[victim].vouched => Power::DustClaim,
            power => power,
        };
        Self {
            account: account(seed, &format!("stranger abroad {at}")),
            power,
            victim: Who::Foreign(victim),
            after: match rng.u8(0..3) {
                0 => 0,
                1 => rng.u64(0..20),
                _ => rng.u64(0..100),
            },
            trade: foreign[victim].trade,
            elsewhere: rng.bool(),
            keyed: rng.bool(),
            early: rng.u8(0..3) == 0,
        }
    }
}

/// What happens on the chains without contracts.
fn weather_abroad(seed: u64, allowed: &Allowed, foreign: &[Foreign]) -> Vec<(u64, Weather)> {
    let mut rng = stream(seed, "weather abroad");
    let known = allowed.manners.iter().copied();
    let known: Vec<Manners> = known
        .filter(|one| ledger_provider::MANNERS.contains(one))
        .collect();
    let liar = rng.usize(0..3);
    let mut all = Vec::new();
    for _ in 0..rng.usize(0..4) {
        let one = &foreign[rng.usize(0..foreign.len())];
        let ends = [one.trade.from.0, one.trade.to.0];
        let is_end = |at: &usize| ends.contains(&HABITS[*at].name);
        let here: Vec<usize> = (0..HABITS.len()).filter(is_end).collect();
        let chain = CHAINS.len() + here[rng.usize(0..here.len())];
        let what = match rng.u8(0..8) {
            5 | 6 if !known.is_empty() => {
                let manners = known[rng.usize(0..known.len())];
                Weather::Provider(chain, liar, manners, rng.u64(5..200))
            }
            7 if rng.bool() => Weather::Stand(chain, rng.u64(10..60)),
            7 => Weather::Forget(chain),
            _ => Weather::Reorg(chain, rng.u64(1..=FINAL), rng.u64(0..3)),
        };
        all.push((one.at + rng.u64(0..80), what));
    }
    all
}

fn weather(seed: u64, allowed: &Allowed, honest: &[Honest]) -> Vec<(u64, Weather)> {
    let mut rng = stream(seed, "weather");
    // Whoever is asked first can do most.
    let liar = rng.usize(0..4).saturating_sub(1);
    let pauses = seed.is_multiple_of(2);
    let mut all = Vec::new();
    for _ in 0..rng.usize(0..8) {
        // What happens hurts most where somebody deposits.
        let one = &honest[rng.usize(0..honest.len())];
        let (at, chain) = match rng.bool() {
            true => (one.at + one.pause + rng.u64(0..40), one.end(&mut rng)),
            false => (rng.u64(15..WINDOW * 2), rng.usize(0..3)),
        };
        let what = match rng.u8(0..15) {
            0..3 => Weather::Price("ETH", rng.u64(9_700..10_300)),
            3 => Weather::Price("ETH", rng.u64(8_500..11_700)),
            4 => Weather::Gas(chain, rng.u128(30..500)),
            5 | 6 => Weather::Reorg(chain, rng.u64(1..=FINAL), rng.u64(0..3)),
            7 | 8 if !allowed.manners.is_empty() => {
                let manners = allowed.manners[rng.usize(0..allowed.manners.len())];
                let (provider, most) = match manners {
                    Manners::Down | Manners::Hangs | Manners::Late => (rng.usize(0..3), 120),
                    _ => (liar, 300),
                };
                Weather::Provider(chain, provider, manners, rng.u64(5..most))
            }
            9 => Weather::Forget(chain),
            12 if pauses => Weather::Pause(rng.u64(10..400)),
            13 => Weather::Verbs,
            14 => feed(&mut rng, liar),
            10 if allowed.depeg => Weather::Price("USDCb", rng.u64(5_000..9_500)),
            _ if pauses && rng.bool() => Weather::Verbs,
            _ => Weather::Crash(death(&mut rng)),
        };
        all.push((at.saturating_sub(15), what));
    }
    all.extend(lie(seed, allowed, liar));
    all.sort_by_key(|(at, _)| *at);
    all
}

/// Settling costs what a provider of the hub's chain says.
fn lie(seed: u64, allowed: &Allowed, liar: usize) -> Option<(u64, Weather)> {
    let mut rng = stream(seed, "lie");
    let lies = Manners::LiesAboutFees;
    let (at, seconds) = (rng.u64(0..WINDOW), rng.u64(60..300));
    let happens = rng.u8(0..10) == 0 && allowed.manners.contains(&lies);
    happens.then_some((at, Weather::Provider(2, liar, lies, seconds)))
}

fn death(rng: &mut Rng) -> Death {
    let paying = rng.bool();
    Death {
        commits: rng.u64(1..if paying { 5 } else { 25 }),
        paying,
        late: rng.bool(),
        down: match rng.bool() {
            true => rng.u64(2..90),
            false => 0,
        },
    }
}

/// The settlement chain, or another, makes no block for a while.
fn stands(seed: u64) -> Option<(u64, Weather)> {
    let mut rng = stream(seed, "stands");
    let chain = if rng.bool() { 2 } else { rng.usize(0..2) };
    let stand = Weather::Stand(chain, rng.u64(20..200));
    let at = rng.u64(0..WINDOW * 2);
    (rng.u8(0..4) == 0).then_some((at, stand))
}

fn clearing(seed: u64) -> Option<(u64, Weather)> {
    let mut rng = stream(seed, "clearing");
    let at = rng.u64(60..WINDOW * 2);
    // Who begins again does not know what was cleared.
    (seed.is_multiple_of(2) && rng.u8(0..4) == 0).then_some((at, Weather::Clearing))
}

/// The feeds of one chain lie, never those of both.
fn feed(rng: &mut Rng, liar: usize) -> Weather {
    let chain = if liar == 0 { "alpha" } else { "beta" };
    let symbol = if rng.bool() { "ETH" } else { "USDC" };
    let parts = match rng.u8(0..3) {
        0 => rng.u64(5_000..20_000),
        _ => rng.u64(9_750..10_250),
    };
    Weather::Feed(chain, symbol, parts, rng.u64(10..200))
}
