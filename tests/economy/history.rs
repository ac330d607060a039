//! One history: the plan of a seed, carried out against one process over scripted chains.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use alloy::primitives::{Address, B256, Bytes, U256};
use hyper::{Method, StatusCode};
use serde_json::Value;
use vm::Block;

use crate::{
    chain::{
        Done, Tx,
        ledger::{self, Fate, Ledger},
        provider::Manners,
    },
    clock,
    invariants::Violation,
    market::CHAINS,
    plan::{Plan, Trade, Weather},
    rival::Rival,
    stored,
    world::World,
};

/// Seconds between two looks at what is due.
const TICK: u64 = 2;
/// Seconds after the last thing that anybody did in which everything has to end.
const PATIENCE: u64 = 2_400;
/// Seconds for which nothing must be open before a history is at rest.
const QUIET: u64 = 40;

/// What a user was promised.
#[derive(Clone, Debug)]
pub struct Deal {
    /// Which honest user's, or which stranger's.
    pub of: Who,
    pub request: B256,
    pub order: B256,
    pub wire: Value,
    pub signature: String,
    pub steps: Vec<Step>,
    /// Unix seconds.
    pub quoted: u64,
    pub trade: Trade,
    pub account: Address,
    pub recipient: Address,
    /// Who promised it.
    pub solver: Address,
    /// What the recipient gets at least.
    pub minimum: U256,
    /// Wei per gas unit on each chain when it was quoted.
    pub gas: BTreeMap<&'static str, u128>,
}

/// One transaction that a quote wants sent.
#[derive(Clone, Debug)]
pub struct Step {
    pub chain: u64,
    pub to: Address,
    pub value: U256,
    pub data: Bytes,
}

/// Who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    Honest(usize),
    Stranger(usize),
    /// The other solver's customer.
    Rival,
    /// A customer of the other solver whose order is between families.
    Foreign(usize),
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Act {
    Quote(Who),
    Deposit(Who),
    /// An honest user deposits once more.
    Again(usize),
    /// Tells the index of a transaction of its own.
    Tell(Who, B256, u8),
    /// A customer of the other solver's asks, or the other solver looks at what was deposited.
    Order(Who),
    Rival(Who, u16),
    /// What a stranger does, step by step.
    Strike(usize, u8),
    Weather(Weather),
    Mend(usize, usize),
    /// A feed tells the truth again.
    Truth(&'static str, &'static str),
    Resume,
    /// The process begins again.
    Start,
}

impl Act {
    /// Whether it waits for the process.
    fn asks(&self) -> bool {
        let verbs =
            |what: &Weather| matches!(what, Weather::Pause(_) | Weather::Verbs | Weather::Clearing);
        match self {
            Self::Quote(_) | Self::Order(Who::Rival) | Self::Resume => true,
            Self::Weather(what) => verbs(what),
            _ => false,
        }
    }
}

/// A plan that is carried out, with what it did so far.
pub struct History {
    pub plan: Plan,
    pub world: World,
    pub deals: BTreeMap<Who, Deal>,
    /// Orders of the other solver, with what it paid for them.
    pub rivals: BTreeMap<Who, Rival>,
    /// What a stranger sent for itself.
    pub sent: BTreeMap<usize, Arc<str>>,
    pub log: Vec<String>,
    agenda: BTreeMap<(u64, u64), Act>,
    count: u64,
    /// Unix seconds at which somebody last did something.
    last: u64,
    /// Seconds that a dead process stays so.
    down: u64,
    /// Honest users who were not quoted while feeds did not tell the same.
    pub doubted: BTreeSet<usize>,
    pub rested: bool,
    /// Unix seconds until which a chain makes no block.
    stands: u64,
    /// The fills that were begun when the operator paused the solver.
    pub held: Option<BTreeMap<B256, usize>>,
    /// Unix seconds at which honest users deposited.
    pub deposited: BTreeMap<usize, Vec<u64>>,
    /// The chains that had a reorg, and when (unix seconds).
    pub reorgs: Vec<(usize, u64)>,
    /// What broke on the way.
    pub broken: Vec<Violation>,
    /// Deposits whose payments the operator wrote off.
    pub written_off: Vec<B256>,
    /// Deposits that the operator took from the list.
    pub dismissed: Vec<B256>,
}

impl History {
    /// Carries a plan out until everything is at rest, or should have been long ago.
    pub async fn of(plan: Plan) -> Self {
        clock::begin(plan.family);
        let mut history = Self {
            world: World::new(&plan.accounts(), plan.cap)
                .with_ledgers(&plan.ledgers(), &plan.accounts_abroad()),
            plan,
            deals: BTreeMap::new(),
            rivals: BTreeMap::new(),
            sent: BTreeMap::new(),
            log: Vec::new(),
            agenda: BTreeMap::new(),
            count: 0,
            last: clock::seconds(),
            down: 0,
            doubted: BTreeSet::new(),
            rested: false,
            stands: 0,
            held: None,
            deposited: BTreeMap::new(),
            reorgs: Vec::new(),
            broken: Vec::new(),
            written_off: Vec::new(),
            dismissed: Vec::new(),
        };
        history.prepare();
        history.world.start().await;
        history.run().await;
        history
    }

    /// The log, with what stands on the chains, in the order of time.
    pub fn lines(&self) -> Vec<String> {
        let mut all = self.log.clone();
        for chain in &self.world.chains {
            for (block, done) in chain.lock().history() {
                all.push(line(chain.name, block, done));
            }
        }
        for ledger in &self.world.ledgers {
            all.extend(ledger.lines());
        }
        all.sort();
        all
    }

    fn prepare(&mut self) {
        let begin = clock::GENESIS + 10;
        for (at, honest) in self.plan.honest.clone().into_iter().enumerate() {
            self.at(begin + honest.at, Act::Quote(Who::Honest(at)));
        }
        for (at, what) in self.plan.weather.clone() {
            self.at(begin + at, Act::Weather(what));
        }
        if let Some(customer) = &self.plan.customer {
            self.at(begin + customer.at, Act::Order(Who::Rival));
        }
        for (at, foreign) in self.plan.foreign.clone().iter().enumerate() {
            self.at(begin + foreign.at, Act::Order(Who::Foreign(at)));
        }
        self.prepare_strangers(begin);
    }

    pub fn at(&mut self, time: u64, act: Act) {
        self.count += 1;
        self.agenda.insert((time, self.count), act);
    }

    pub fn note(&mut self, what: String) {
        let since = clock::seconds() - clock::GENESIS;
        self.log.push(format!("{since:>5} {what}"));
    }

    /// What is due happens.
    async fn tick(&mut self) {
        let tick = tokio::time::sleep(Duration::from_secs(TICK));
        let died = tokio::select! {
            biased;
            () = self.world.store.died() => true,
            () = tick => false,
        };
        // A question may have heard of the death before this loop did.
        if died || self.world.store.is_dead() {
            self.die().await;
        }
        self.world.mine_until(clock::seconds());
        while let Some(entry) = self.agenda.first_entry() {
            if entry.key().0 > clock::seconds() {
                break;
            }
            let act = entry.remove();
            self.last = clock::seconds();
            self.act(act).await;
            // Nobody else hears of it: who asks the dead waits for ever.
            if self.world.store.is_dead() {
                self.die().await;
            }
        }
        if let Some(what) = self.world.is_broken() {
            self.note(what);
            self.die().await;
        }
    }

    /// So many seconds pass.
    pub async fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds / TICK {
            self.tick().await;
        }
    }

    async fn run(&mut self) {
        let mut quiet = 0;
        loop {
            self.tick().await;
            let stands = clock::seconds() < self.stands;
            let rests = |ledger: &Arc<Ledger>| ledger.rests();
            let still = self.agenda.is_empty() && self.world.ledgers.iter().all(rests);
            let open = stands || !still || stored::is_open(&self.world).await;
            quiet = if open { 0 } else { quiet + TICK };
            if quiet >= QUIET {
                self.rested = true;
                return;
            }
            if self.agenda.is_empty() && clock::seconds() > self.last.max(self.stands) + PATIENCE {
                return;
            }
        }
    }

    /// The process is dead, and begins again at once or later.
    pub async fn die(&mut self) {
        if self.world.process.is_none() {
            return;
        }
        self.world.stop().await;
        let down = std::mem::take(&mut self.down);
        self.note(format!("the process dies for {down} s"));
        match down {
            0 => self.world.start().await,
            _ => self.at(clock::seconds() + down, Act::Start),
        }
    }

    async fn act(&mut self, act: Act) {
        if self.world.process.is_none() && act.asks() {
            return self.at(clock::seconds() + TICK, act);
        }
        match act {
            Act::Start => self.world.start().await,
            Act::Quote(who) => self.quote(who).await,
            Act::Deposit(who) => self.deposit(who),
            Act::Again(at) => self.again(at),
            Act::Tell(who, sent, round) => self.tell_own(who, sent, round).await,
            Act::Order(Who::Foreign(at)) => self.foreign_order(at).await,
            Act::Order(_) => self.rival_quotes().await,
            Act::Rival(who, round) => self.rival_looks(who, round).await,
            Act::Strike(at, round) => self.strike(at, round).await,
            Act::Weather(what) => self.weather(what).await,
            Act::Truth(chain, symbol) => self.world.prices.lie(chain, symbol, 10_000),
            Act::Resume => self.resume().await,
            Act::Mend(chain, provider) => self.world.behave(chain, provider, Manners::Honest),
        }
    }

    async fn weather(&mut self, what: Weather) {
        let now = clock::seconds();
        self.note(format!("{what:?}"));
        match what {
            Weather::Price(symbol, parts) => self.world.prices.move_by(symbol, parts, now),
            Weather::Gas(chain, percent) => {
                let mut world = self.world.chains[chain].lock();
                world.base = (world.base * percent / 100).clamp(100_000_000, 100_000_000_000);
                world.tip = world.base / 10;
            }
            Weather::Reorg(chain, depth, lost) => self.reorg(chain, depth, lost),
            Weather::Provider(chain, provider, manners, seconds) => {
                self.world.behave(chain, provider, manners);
                self.at(now + seconds, Act::Mend(chain, provider));
            }
            Weather::Crash(death) => {
                self.down = death.down;
                self.world.store.set(Some(death));
            }
            Weather::Stand(chain, seconds) => match self.world.ledger_at(chain) {
                Some(ledger) => ledger.stand(seconds),
                None => {
                    self.world.chains[chain].stand(seconds);
                    self.stands = self.stands.max(clock::seconds()) + seconds;
                }
            },
            Weather::Forget(chain) => match self.world.ledger_at(chain) {
                Some(ledger) => ledger.forget(),
                None => self.world.chains[chain].forget(),
            },
            Weather::Feed(chain, symbol, parts, seconds) => {
                self.world.prices.lie(chain, symbol, parts);
                self.at(now + seconds, Act::Truth(chain, symbol));
            }
            Weather::Pause(seconds) => self.pause(seconds).await,
            Weather::Verbs => self.go_through().await,
            Weather::Clearing => self.clear().await,
        }
    }

    /// The newest blocks of a chain give way; what is lost does not depend on what else there is.
    fn reorg(&mut self, chain: usize, depth: u64, lost: u64) {
        self.reorgs.push((chain, clock::seconds()));
        let of = |from: Address| (u64::from(from[19]) + depth) % (lost + 1);
        let is_lost = |from: Address| lost > 0 && of(from) == 0;
        let Some(ledger) = self.world.ledger_at(chain) else {
            let mut keep = |tx: &Tx| !is_lost(tx.from);
            return self.world.chains[chain].reorg(depth, &mut keep);
        };
        let mut fate = |tx: &ledger::Tx| match is_lost(tx.from) {
            false => Fate::Returns,
            true if tx.from[18].is_multiple_of(2) => Fate::Lost,
            true => Fate::DoubleSpent,
        };
        ledger.reorg(depth, &mut fate);
    }

    /// An API call; `None` when the process died meanwhile.
    pub async fn ask(
        &self,
        method: Method,
        target: &str,
        body: &Value,
    ) -> Option<(StatusCode, Value)> {
        self.world.process.as_ref()?;
        if self.world.store.is_dead() {
            return None;
        }
        tokio::select! {
            biased;
            () = self.world.store.died() => None,
            answer = self.world.api(method, target, body) => Some(answer),
        }
    }

    /// A question to an oracle, likewise: to the solver's or its peer, with a key or without.
    pub async fn claim(
        &self,
        whose: (bool, Option<&'static str>),
        path: &str,
        body: &Value,
    ) -> Option<(StatusCode, Value)> {
        self.world.process.as_ref()?;
        if self.world.store.is_dead() {
            return None;
        }
        tokio::select! {
            biased;
            () = self.world.store.died() => None,
            answer = self.world.oracle(whose, path, body) => Some(answer),
        }
    }
}

fn line(chain: &str, block: &Block, done: &Done) -> String {
    let (tx, since) = (&done.tx, block.time - clock::GENESIS);
    let named = |from: usize, to: usize| tx.data.get(from..to).unwrap_or_default().to_vec();
    let selector = alloy::hex::encode(named(0, 4));
    let suffix = alloy::hex::encode(named(tx.data.len().saturating_sub(32), tx.data.len()));
    let whose = if tx.signed.is_some() {
        "solver"
    } else {
        "user"
    };
    let ended = if done.success { "" } else { ", fails" };
    format!(
        "{since:>5} {chain} #{} {whose} {} -> {}: {selector}…{suffix}, value {}, fee {}{ended}",
        block.number, tx.from, tx.to, tx.value, done.fee
    )
}

impl Deal {
    /// Whether another solver's than ours promised it.
    pub fn is_of_another(&self) -> bool {
        matches!(self.of, Who::Rival | Who::Foreign(_))
    }
}

/// The API's number of a chain.
pub fn number(name: &str) -> u64 {
    CHAINS
        .iter()
        .find(|(known, ..)| *known == name)
        .map_or(0, |(_, number, _)| *number)
}
