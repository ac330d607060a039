//! One history: the plan of a seed, carried out against one process over scripted chains.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use alloy::primitives::{Address, B256, Bytes, U256};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use vm::Block;

use crate::{
    books,
    chain::{Done, Tx, provider::Manners},
    clock,
    market::CHAINS,
    plan::{Plan, Trade, Weather},
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
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Act {
    Quote(Who),
    Deposit(Who),
    /// An honest user deposits once more.
    Again(usize),
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
        let verbs = |what: &Weather| matches!(what, Weather::Pause(_) | Weather::Verbs);
        match self {
            Self::Quote(_) | Self::Resume => true,
            Self::Weather(what) => verbs(what),
            _ => false,
        }
    }
}

/// See the module.
pub struct History {
    pub plan: Plan,
    pub world: World,
    pub deals: BTreeMap<Who, Deal>,
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
}

impl History {
    /// Carries a plan out until everything is at rest, or should have been long ago.
    pub async fn of(plan: Plan) -> Self {
        clock::begin(plan.family);
        let mut history = Self {
            world: World::new(&plan.accounts(), plan.cap),
            plan,
            deals: BTreeMap::new(),
            log: Vec::new(),
            agenda: BTreeMap::new(),
            count: 0,
            last: clock::seconds(),
            down: 0,
            doubted: BTreeSet::new(),
            rested: false,
        };
        history.prepare();
        history.world.start().await;
        history.run().await;
        history
    }

    /// The log, with what stands on the chains, in the order of time.
    pub fn told(&self) -> Vec<String> {
        let mut all = self.log.clone();
        for chain in &self.world.chains {
            for (block, done) in chain.lock().history() {
                all.push(told(chain.name, block, done));
            }
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

    async fn run(&mut self) {
        let mut quiet = 0;
        loop {
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
            for chain in &self.world.chains {
                chain.mine_until(clock::seconds());
            }
            while let Some(entry) = self.agenda.first_entry() {
                if entry.key().0 > clock::seconds() {
                    break;
                }
                let act = entry.remove();
                self.last = clock::seconds();
                self.act(act).await;
            }
            if let Some(what) = self.world.is_broken() {
                self.note(what);
                self.die().await;
            }
            let open = !self.agenda.is_empty() || books::is_open(&self.world).await;
            quiet = if open { 0 } else { quiet + TICK };
            if quiet >= QUIET {
                self.rested = true;
                return;
            }
            if self.agenda.is_empty() && clock::seconds() > self.last + PATIENCE {
                return;
            }
        }
    }

    /// The process is dead, and begins again at once or later.
    async fn die(&mut self) {
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
            Act::Strike(at, round) => self.strike(at, round).await,
            Act::Weather(what) => self.weather(what).await,
            Act::Truth(chain, symbol) => self.world.prices.lie(chain, symbol, 10_000),
            Act::Resume => self.resume().await,
            Act::Mend(chain, provider) => {
                self.world.providers[chain][provider].set(Manners::Honest);
            }
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
            Weather::Reorg(chain, depth, lost) => {
                // What is lost does not depend on what else there is.
                let of = |tx: &Tx| (u64::from(tx.from[19]) + depth) % (lost + 1);
                let mut keep = |tx: &Tx| lost == 0 || of(tx) != 0;
                self.world.chains[chain].reorg(depth, &mut keep);
            }
            Weather::Provider(chain, provider, manners, seconds) => {
                self.world.providers[chain][provider].set(manners);
                self.at(now + seconds, Act::Mend(chain, provider));
            }
            Weather::Crash(death) => {
                self.down = death.down;
                self.world.store.set(Some(death));
            }
            Weather::Forget(chain) => self.world.chains[chain].forget(),
            Weather::Feed(chain, symbol, parts, seconds) => {
                self.world.prices.lie(chain, symbol, parts);
                self.at(now + seconds, Act::Truth(chain, symbol));
            }
            Weather::Pause(seconds) => self.pause(seconds).await,
            Weather::Verbs => self.go_through().await,
        }
    }

    /// An API call; `None` when the process died meanwhile.
    pub async fn ask(
        &self,
        method: Method,
        target: &str,
        body: &Value,
    ) -> Option<(StatusCode, Value)> {
        self.world.process.as_ref()?;
        tokio::select! {
            biased;
            () = self.world.store.died() => None,
            answer = self.world.api(method, target, body) => Some(answer),
        }
    }

    /// A question to an oracle, likewise: to the solver's or its peer, with a key or without.
    pub async fn claim(
        &self,
        whose: (bool, bool),
        path: &str,
        body: &Value,
    ) -> Option<(StatusCode, Value)> {
        self.world.process.as_ref()?;
        tokio::select! {
            biased;
            () = self.world.store.died() => None,
            answer = self.world.oracle(whose, path, body) => Some(answer),
        }
    }

    async fn quote(&mut self, who: Who) {
        let (account, recipient, pause, trade) = self.wants(who);
        let (from, to) = (number(trade.from.0), number(trade.to.0));
        let mut body = json!({
            "user": account, "recipient": recipient, "originChainId": from,
            "destinationChainId": to, "originCurrency": trade.from.1,
            "destinationCurrency": trade.to.1, "amount": trade.amount.to_string(),
            "tradeType": "EXACT_INPUT", "includeProtocolData": true,
        });
        trade.extra.into_body(&mut body, &trade);
        let quoted = clock::seconds();
        let answer = self.ask(Method::POST, "/quote/v2", &body).await;
        let Some((status, answer)) = answer else {
            self.die().await;
            self.at(clock::seconds() + 10, Act::Quote(who));
            return;
        };
        if status != StatusCode::OK {
            let code = answer["errorCode"].clone();
            self.note(format!("{who:?} is not quoted: {code}"));
            if let Who::Honest(at) = who
                && self.world.prices.are_doubtful()
            {
                self.doubted.insert(at);
            }
            return;
        }
        let deal = self.deal((who, account, recipient), trade, &answer, quoted);
        self.note(format!(
            "{who:?} is quoted {} for {:?} -> {:?}",
            deal.order, trade.from, trade.to
        ));
        self.deals.insert(who, deal);
        self.at(clock::seconds() + pause, Act::Deposit(who));
    }

    fn deal(
        &self,
        (of, account, recipient): (Who, Address, Address),
        trade: Trade,
        answer: &Value,
        quoted: u64,
    ) -> Deal {
        let v2 = &answer["protocol"]["v2"];
        let items = answer["steps"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let steps = items.flat_map(|step| step["items"].as_array().into_iter().flatten());
        let step = |item: &Value| {
            let data = &item["data"];
            Step {
                chain: data["chainId"].as_u64().unwrap(),
                to: text(&data["to"]).parse().unwrap(),
                value: text(&data["value"]).parse().unwrap(),
                data: text(&data["data"]).parse().unwrap(),
            }
        };
        let gas = self.world.chains.iter().map(|chain| {
            let world = chain.lock();
            (chain.name, world.base + world.tip)
        });
        Deal {
            gas: gas.collect(),
            of,
            request: text(&answer["steps"][0]["requestId"]).parse().unwrap(),
            order: text(&v2["orderId"]).parse().unwrap(),
            wire: v2["orderData"].clone(),
            signature: text(&v2["orderSignature"]),
            steps: steps.map(step).collect(),
            minimum: text(&answer["details"]["currencyOut"]["minimumAmount"])
                .parse()
                .unwrap(),
            quoted,
            trade,
            account,
            recipient,
        }
    }

    /// Account, recipient, the pause before the deposit, and the trade.
    fn wants(&self, who: Who) -> (Address, Address, u64, Trade) {
        match who {
            Who::Honest(at) => {
                let one = &self.plan.honest[at];
                (one.account, one.recipient, one.pause, one.trade)
            }
            Who::Stranger(at) => {
                let one = &self.plan.strangers[at];
                (one.account, one.account, one.pause(), one.trade)
            }
        }
    }

    fn deposit(&mut self, who: Who) {
        let Some(deal) = self.deals.get(&who).cloned() else {
            return;
        };
        if !self.goes_on(who, &deal) {
            return;
        }
        match who {
            Who::Honest(at) if self.plan.honest[at].over > 0 => {
                let (chain, currency) = deal.trade.from;
                let asked = self.asked(&deal);
                let over = asked * U256::from(self.plan.honest[at].over) / U256::from(100);
                self.put((deal.account, chain, currency), asked + over, deal.order);
            }
            _ => self.follow(&deal),
        }
        self.note(format!("{who:?} deposits for {}", deal.order));
        if let Who::Honest(at) = who {
            self.after_deposit(at);
            if let Some(pause) = self.plan.honest[at].again {
                self.at(clock::seconds() + pause, Act::Again(at));
            }
        }
    }

    fn again(&mut self, at: usize) {
        if let Some(deal) = self.deals.get(&Who::Honest(at)).cloned() {
            let (chain, currency) = deal.trade.from;
            let asked = self.asked(&deal);
            self.put((deal.account, chain, currency), asked, deal.order);
        }
    }
}

impl History {
    /// Sends what a quote wants sent.
    fn follow(&self, deal: &Deal) {
        for step in &deal.steps {
            let chain = self.world.by_number(step.chain);
            chain.send(deal.account, step.to, step.value, step.data.clone());
        }
    }

    /// What an order wants deposited.
    pub fn asked(&self, deal: &Deal) -> U256 {
        let asked = &deal.wire["inputs"][0]["payment"]["amount"];
        asked.as_str().unwrap_or_default().parse().unwrap()
    }
}

fn told(chain: &str, block: &Block, done: &Done) -> String {
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

/// The API's number of a chain.
pub fn number(name: &str) -> u64 {
    CHAINS
        .iter()
        .find(|(known, ..)| *known == name)
        .map_or(0, |(_, number, _)| *number)
}
