//! Strangers, who have no key of ours, act while users trade between all families and processes die as in
//! [`crate::crash`]. A seed decides a history. They deposit for somebody's order, before his deposit or after, the whole
//! amount, a part or dust; deposit for orders that nobody quoted; tell the index of transactions that are not the
//! user's; ask and never deposit; pay the recipient or the solver themselves; replace their deposits; deposit late, or a
//! unit too little; give their accounts away before they are paid; claim at oracles what is theirs and what is not. What
//! native currencies are worth moves meanwhile, one side's at a time.
//!
//! The invariants have the letters of `tests/economy`:
//! - (a) the solver pays for no order more than was deposited for it, within a share and a fixed sum, at the prices of its
//!   quote or, where a deposit came late, of then, each side's by itself; and strangers get no more than they deposited;
//! - (b) each deposit of some worth for a quoted order is filled or given back, and nothing is under way;
//! - (c) each user's request ends as it does without strangers, at the promised price; one that a chain or a process has
//!   delayed may be given back where prices have moved. What strangers deposit for his order goes where his own would; the
//!   whole amount may fill an order for which he deposited too little;
//! - (d) no payment is for no order, and no deposit is paid for twice;
//! - (e) the solver's oracle and its peer sign each of its payments as it claims them, whatever strangers claimed at either
//!   before; and nothing that strangers claim without its word.
//!
//! `INTENTD_STRANGERS` says how many histories there are (16); `INTENTD_STRANGERS_SEED` is the seed of the first one:
//! `INTENTD_STRANGERS=1000 cargo test --release --test families -- --nocapture strangers::`

mod claims;

use std::sync::Arc;

use alloy::primitives::{B256, U256};
use fastrand::Rng;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    Pair, Verdict,
    bitcoin::FINAL,
    crash::{self, USERS, User},
    deal::{Answer, Asset, Assets, Deal},
    invariants::{AGAIN, PATIENCE, open},
    lived,
    machine::{COINS, Machine, symbol},
    market::Prices,
    name, pairs, set,
    side::{About, Act, Party, Seen},
    together,
};

const HISTORIES: u64 = 16;
/// Users' deals of a history at most, and rounds behind the one in which the last of them begins.
const DEALS: usize = 3;
const ROUNDS: usize = 2;
/// Cents of a dollar that a stranger's own deal is worth, that he deposits for a part of somebody's order, and dust.
const OWN: u64 = 10_000;
const PART: u64 = 5_000;
const DUST: u64 = 4;
/// Deposits of some worth in a history: all payments are within the hour's cap.
const DEPOSITS: usize = 4;
/// The same for one order: more of one depositor's are the operator's to give back.
const DOUBLES: u64 = 2;
/// Seconds between a stranger's deposit and the user's, at most, and after which a quote's price holds no more.
const PAUSE: u64 = 12;
const LATE: u64 = 90;
/// What a deposit is worth at least, in 10^-8 dollars, that is never too little to give back.
const LEAST: u64 = 10 * 100_000_000;
/// What an order may lose: parts of ten thousand of what was deposited, and this, in 10^-8 dollars.
const SHARE: u64 = 30;
const FIXED: u64 = 150_000_000;
/// How often the price of a native currency moves in a history, at most, and parts of ten thousand by which: more than what an
/// order may lose, and far less than what makes a deposit too little to give back.
const MOVES: usize = 2;
const MOVE: u64 = 500;
const WHOLE: u64 = 10_000;
/// Seconds for which a quote's price holds, and that it may have been old by.
const VALID: u64 = 60;
const STALE: u64 = 30;
/// Seconds behind its deposit within which an order is decided about at the price of its quote, at least.
const PROMPT: u64 = 250;

/// What a stranger does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Power {
    /// Deposits the whole amount for somebody's order.
    Double,
    Part,
    Dust,
    /// Deposits for an order that nobody quoted.
    Unquoted,
    /// Tells the index of transactions that are not the user's, or of his for another request.
    Teller,
    /// Asks for quotes in the user's name, and for whatever the API tells.
    Asker,
    /// Pays the recipient or the user, and names the order.
    ThirdParty,
    /// Pays the solver, and names the order.
    Donor,
    /// Replaces his own deposit while it waits.
    Replacer,
    /// Deposits when the price of his quote holds no more.
    OptionTaker,
    /// Deposits one unit too little.
    Short,
    /// Has his account belong to somebody else for a while behind his deposit.
    GiveAway,
    /// Claims at both oracles, for somebody's order and for his own.
    Claimer,
}

const POWERS: [Power; 13] = [
    Power::Double,
    Power::Part,
    Power::Dust,
    Power::Unquoted,
    Power::Teller,
    Power::Asker,
    Power::ThirdParty,
    Power::Donor,
    Power::Replacer,
    Power::OptionTaker,
    Power::Short,
    Power::GiveAway,
    Power::Claimer,
];
/// What comes between somebody's quote and his deposit.
const EARLY: [Power; 8] = [
    Power::Double,
    Power::Part,
    Power::Dust,
    Power::Teller,
    Power::Asker,
    Power::ThirdParty,
    Power::Donor,
    Power::Claimer,
];

impl Power {
    /// Whether the solver may have to pay for it.
    fn deposits(self) -> bool {
        use Power::{Double, GiveAway, OptionTaker, Part, Replacer, Short};
        matches!(
            self,
            Double | Part | Replacer | OptionTaker | Short | GiveAway
        )
    }
}

/// A payment with its worth in 10^-8 dollars, at the first prices.
#[derive(Clone, Debug)]
struct Entry {
    seen: Seen,
    usd: U256,
    /// One of [`COINS`]: the native currency of its chain.
    coin: &'static str,
}

/// From when to when in unix seconds.
type Times = (u64, u64);
const EVER: Times = (0, u64::MAX);

/// The quote of an order: its order, and unix seconds until which its price holds.
type Quoted = (B256, u64);

impl Entry {
    fn of(about: &About, seen: Seen) -> Self {
        let asset = if seen.native {
            Asset::Native
        } else {
            Asset::Token
        };
        let usd = seen.amount * U256::from(100_000_000) / asset.units(about, 100);
        let coin = symbol(about);
        Self { seen, usd, coin }
    }

    /// Whether the solver pays somebody.
    fn is_paid(&self) -> bool {
        let somebody = matches!(
            self.seen.to,
            Party::User | Party::Recipient | Party::Stranger
        );
        somebody && self.seen.by == Party::Solver
    }

    fn is_deposited(&self) -> bool {
        self.seen.to == Party::Depository
    }

    fn is_worth_something(&self) -> bool {
        self.usd >= U256::from(LEAST)
    }
}

/// All payments on both chains, and what native currencies were worth when.
struct Payments {
    all: Vec<Entry>,
    prices: Arc<Prices>,
}

impl Payments {
    fn of(m: &Machine) -> Self {
        let mut entries = Vec::new();
        for side in [&m.origin, &m.destination] {
            let seen = side.seen().into_iter();
            entries.extend(seen.map(|seen| Entry::of(side.about(), seen)));
        }
        Self {
            all: entries,
            prices: m.prices.clone(),
        }
    }

    /// The least and the most that a payment was worth, by the prices of its own chain's coin.
    fn worth(&self, one: &Entry, (from, to): Times) -> [U256; 2] {
        if !one.seen.native {
            return [one.usd; 2];
        }
        let first = U256::from(self.prices.at(one.coin, 0));
        let (least, most) = self.prices.between(one.coin, from, to);
        [least, most].map(|price| one.usd * U256::from(price) / first)
    }

    /// The least that they were worth together.
    fn least<'a>(&self, entries: impl Iterator<Item = &'a Entry>, times: Times) -> U256 {
        entries.map(|one| self.worth(one, times)[0]).sum()
    }

    /// The most that they were worth together.
    fn most<'a>(&self, entries: impl Iterator<Item = &'a Entry>, times: Times) -> U256 {
        entries.map(|one| self.worth(one, times)[1]).sum()
    }

    /// The times whose prices may have decided an order: that of its quote, and until its payment where a deposit came
    /// late.
    fn times_of(&self, (order, until): Quoted) -> Times {
        let [deposited, paid] = self.about(order);
        let times = || deposited.iter().map(|one| one.seen.time);
        let quoted = until.saturating_sub(VALID);
        let first = times().min().filter(|first| *first > until);
        let last = times().max().filter(|last| *last > until);
        let paid = paid.iter().map(|one| one.seen.time).max();
        let end = last.map(|last| last.max(paid.unwrap_or(last)));
        let begin = first.unwrap_or(quoted).saturating_sub(STALE);
        (begin, end.unwrap_or(quoted))
    }

    /// Whether an order may have been priced anew by other prices than those of its quote.
    fn is_repriced(&self, (order, until): Quoted) -> bool {
        let [deposited, paid] = self.about(order);
        let times = || deposited.iter().map(|one| one.seen.time);
        let Some(paid) = paid.iter().map(|one| one.seen.time).max() else {
            return false;
        };
        let late = times().any(|time| time > until);
        let slow = times().any(|time| paid > time + PROMPT);
        let quoted = until.saturating_sub(VALID + STALE);
        let moves = |coin: &str| {
            let (least, most) = self.prices.between(coin, quoted, paid);
            least < most
        };
        (late || slow) && COINS.into_iter().any(moves)
    }

    /// The deposits for an order, and the solver's payments that name it.
    fn about(&self, order: B256) -> [Vec<&Entry>; 2] {
        let own = |one: &&Entry| one.seen.order == Some(order);
        let deposited = self.all.iter().filter(own).filter(|one| one.is_deposited());
        let paid = self.all.iter().filter(own).filter(|one| one.is_paid());
        [deposited.collect(), paid.collect()]
    }

    /// What is wrong with the payments of the solver, who has quoted these orders.
    fn unsound(&self, orders: &[Quoted]) -> Vec<String> {
        let mut wrong = Vec::new();
        let is_quoted = |order: B256| orders.iter().any(|(known, _)| *known == order);
        let quoted = |one: &&Entry| one.seen.order.is_some_and(is_quoted);
        let nameless = self.all.iter().filter(|one| one.is_paid() && !quoted(one));
        wrong.extend(nameless.map(|one| format!("(d) for no order: {:?}", one.seen)));
        for (order, until) in orders {
            let [deposited, paid] = self.about(*order);
            let times = self.times_of((*order, *until));
            let most = self.most(deposited.iter().copied(), times);
            let most = most + most * U256::from(SHARE) / U256::from(WHOLE) + U256::from(FIXED);
            let given = self.least(paid.iter().copied(), times);
            if given > most {
                wrong.push(format!("(a) {order}: {given} of {most} paid"));
            }
            let worth = deposited.iter().filter(|one| one.is_worth_something());
            let (worth, count) = (worth.count(), paid.len());
            if count != worth {
                wrong.push(format!(
                    "(b, d) {order}: {count} payments for {worth} deposits"
                ));
            }
        }
        let strangers = |one: &&Entry| one.is_paid() && one.seen.to == Party::Stranger;
        // What is deposited for an order that nobody quoted is given back by nobody.
        let for_orders = self.all.iter().filter(quoted);
        let theirs = |one: &&Entry| one.is_deposited() && one.seen.by == Party::Stranger;
        let got = self.least(self.all.iter().filter(strangers), EVER);
        let put = self.most(for_orders.filter(theirs), EVER);
        if got > put {
            wrong.push(format!("(a) strangers have got {got} for {put}"));
        }
        wrong
    }
}

/// A user's deal, and what strangers deposited for it.
struct Honest {
    deal: Deal,
    user: User,
    doubles: u64,
    /// Some of it pays for the order.
    whole: bool,
}

impl Honest {
    fn quoted(&self) -> Quoted {
        (self.deal.order, self.deal.until)
    }

    /// The statuses that it may end in.
    fn endings(&self, payments: &Payments) -> &'static [&'static str] {
        match self.user {
            User::Deposits | User::DepositsTwice if payments.is_repriced(self.quoted()) => {
                &["refund", "success"]
            }
            User::Deposits | User::DepositsTwice => &["success"],
            User::DepositsTooLittle if self.whole => &["refund", "success"],
            User::IsRefunded | User::DepositsTooLittle => &["refund"],
        }
    }

    /// What is wrong with how it ended.
    fn wrong(&self, m: &Machine, payments: &Payments, status: &str) -> Vec<String> {
        let (order, least) = (self.deal.order, self.deal.minimum);
        let mut wrong = Vec::new();
        if !self.endings(payments).contains(&status) {
            let user = self.user;
            wrong.push(format!("(c) {order} whose user {user:?} ends in {status}"));
        }
        let filled = m.filled(&self.deal);
        if filled.len() != usize::from(status == "success") {
            wrong.push(format!("(c) {order} ends in {status}: {filled:?}"));
        }
        let short = filled.iter().filter(|one| one.amount < least);
        wrong.extend(short.map(|one| format!("(c) {order}: {} of {least}", one.amount)));
        let [deposited, paid] = payments.about(order);
        let worth = deposited.into_iter().filter(|one| one.is_worth_something());
        let due = payments.least(worth, EVER);
        let given = payments.most(paid.into_iter(), EVER);
        if given * U256::from(10) < due * U256::from(9) {
            wrong.push(format!("(c) {order}: {given} given of {due}"));
        }
        wrong
    }
}

/// What users and strangers have begun.
#[derive(Default)]
struct History {
    deals: Vec<Honest>,
    own: Vec<Deal>,
    /// Transactions of strangers at the origin.
    sent: Vec<String>,
    /// Orders of strangers' own.
    written: Vec<claims::Promised>,
    deposits: usize,
    moves: usize,
    wrong: Vec<String>,
}

impl History {
    /// A user trades; a stranger may come first.
    async fn begin(&mut self, m: &mut Machine, rng: &mut Rng) {
        let user = rng.choice(USERS).unwrap();
        let deal = user.quote(m, rng).await;
        self.deals.push(Honest {
            deal: deal.clone(),
            user,
            doubles: 0,
            whole: false,
        });
        self.turn(m, rng);
        if rng.bool() {
            let power = rng.choice(EARLY).unwrap();
            self.strike(m, rng, (self.deals.len() - 1, power)).await;
            m.pass(rng.u64(0..=PAUSE)).await;
        }
        user.take(m, &deal).await;
    }

    /// The price of one side may move.
    fn turn(&mut self, m: &mut Machine, rng: &mut Rng) {
        if self.moves < MOVES && rng.bool() {
            self.moves += 1;
            let coin = rng.choice(COINS).unwrap();
            m.move_price(coin, rng.u64(WHOLE - MOVE..=WHOLE + MOVE));
        }
    }

    /// A stranger does something about one of the deals.
    async fn strike(&mut self, m: &mut Machine, rng: &mut Rng, (at, power): (usize, Power)) {
        if power.deposits() {
            if self.deposits == DEPOSITS {
                return;
            }
            self.deposits += 1;
        }
        let victim = self.deals[at].deal.clone();
        m.note(format!("a stranger strikes at {}: {power:?}", victim.order));
        let assets = crash::any(rng);
        match power {
            Power::Double | Power::Part => self.double(m, at, power == Power::Double).await,
            Power::Dust => self.dust(m, victim.order).await,
            Power::Unquoted => {
                let mut order = [0; 32];
                rng.fill(&mut order);
                let mut deal = m.quote_stranger(assets, OWN).await;
                deal.rename(B256::new(order));
                self.sent.extend(m.send(Party::Stranger, &deal));
            }
            Power::Teller => self.tell(m, rng, &victim).await,
            Power::Asker => self.ask(m, &victim).await,
            Power::Claimer => self.claim(m, rng, &victim).await,
            Power::ThirdParty | Power::Donor => give(m, rng, (&victim, power)),
            Power::Replacer => {
                self.deposit(m, rng, (assets, 0)).await;
                m.pass(rng.u64(0..=PAUSE)).await;
                m.origin.blocks().act(Act::Replace(Party::Stranger));
            }
            Power::OptionTaker => self.deposit(m, rng, (assets, LATE)).await,
            Power::Short => {
                let deal = m.quote_stranger(Asset::Native, OWN).await;
                let sent = m.send_less(Party::Stranger, &deal, U256::ONE);
                self.index(m, &deal, sent).await;
            }
            Power::GiveAway => {
                self.deposit(m, rng, (Asset::Token.into(), 0)).await;
                for own in [false, true] {
                    m.pass(rng.u64(0..=LATE)).await;
                    let act = Act::Own(Party::Stranger, own);
                    m.destination.blocks().act(act);
                    m.note(format!("{act:?}"));
                }
            }
        }
    }

    /// Deposits more than the order asks for, or a part of it: never as much as before.
    async fn double(&mut self, m: &mut Machine, at: usize, whole: bool) {
        let one = &mut self.deals[at];
        if one.doubles == DOUBLES {
            return;
        }
        one.doubles += 1;
        one.whole |= whole;
        // The user's own second deposit is a cent more.
        let cents = one.doubles + if whole { one.deal.cents + 1 } else { PART };
        let (assets, order) = (one.deal.assets, one.deal.order);
        let mut deal = m.quote_stranger(assets, cents).await;
        deal.rename(order);
        self.sent.extend(m.send(Party::Stranger, &deal));
    }

    async fn dust(&mut self, m: &mut Machine, order: B256) {
        let mut deal = m.quote_stranger(Asset::Native, OWN).await;
        deal.rename(order);
        let missing = deal.amount - m.units(Asset::Native, DUST);
        self.sent
            .extend(m.send_less(Party::Stranger, &deal, missing));
    }

    /// Deposits for a quote of his own after so many seconds, and tells the index.
    async fn deposit(&mut self, m: &mut Machine, rng: &mut Rng, (assets, pause): (Assets, u64)) {
        let deal = m.quote_stranger(assets, OWN).await;
        self.turn(m, rng);
        m.pass(pause).await;
        let sent = m.send(Party::Stranger, &deal);
        self.index(m, &deal, sent).await;
    }

    async fn index(&mut self, m: &Machine, deal: &Deal, sent: Vec<String>) {
        for transaction in &sent {
            let answer = m.index(deal, transaction).await;
            self.hear(transaction, answer);
        }
        self.sent.extend(sent);
        self.own.push(deal.clone());
    }

    /// Tells what is not true of the victim's request.
    async fn tell(&mut self, m: &Machine, rng: &mut Rng, victim: &Deal) {
        let [here, there] = [&m.origin, &m.destination].map(|side| side.about().number);
        let other = self.own.last();
        let other = other.map_or_else(|| B256::repeat_byte(rng.u8(1..)), |own| own.request);
        let request = victim.request;
        let mut told: Vec<(u64, String, B256)> = Vec::new();
        let newest = self.sent.iter().rev().take(2).cloned();
        told.extend(newest.map(|sent| (here, sent, request)));
        let all = m.origin.seen().into_iter();
        let own = all.filter(|one| one.to == Party::Depository && one.order == Some(victim.order));
        for one in own.filter(|one| one.by == Party::User) {
            told.push((here, spoiled(&one.transaction), request));
            told.push((here, one.transaction, other));
        }
        for fill in m.filled(victim) {
            told.push((here, fill.transaction.clone(), request));
            told.push((there, fill.transaction, request));
        }
        for (chain, sent, request) in told {
            let body = json!({ "chainId": chain, "txHash": sent, "requestId": request });
            let answer = m.ask(Method::POST, "/transactions/index", &body).await;
            self.hear(&body.to_string(), answer);
        }
    }

    /// Asks for quotes in the victim's name, takes none, and asks for whatever the API tells.
    async fn ask(&mut self, m: &Machine, victim: &Deal) {
        for cents in [PART, OWN, victim.cents] {
            let amount = m.units(victim.assets.paid, cents);
            let answer = m.asked(victim.assets, amount, json!({})).await;
            self.hear("a quote", Some(answer));
        }
        let request = victim.request;
        let targets = [
            format!("/intents/status/v3?requestId={request}"),
            format!("/intents/status/v2?requestId={request}"),
            format!("/requests/v3?requestId={request}"),
            format!("/requests/v3?term={}", victim.order),
            "/requests/v3?limit=50".to_owned(),
        ];
        for target in targets {
            let answer = m.ask(Method::GET, &target, &Value::Null).await;
            let fails = |(status, _): &Answer| status.is_server_error();
            let failed = answer.filter(fails);
            self.wrong
                .extend(failed.map(|answer| format!("{target}: {answer:?}")));
        }
    }

    /// No question has the daemon fail. Chains that tell different things may be a reason to answer nothing.
    fn hear(&mut self, asked: &str, answer: Option<Answer>) {
        let fails = |(status, _): &Answer| *status == StatusCode::INTERNAL_SERVER_ERROR;
        let failed = answer.filter(fails);
        self.wrong
            .extend(failed.map(|answer| format!("{asked}: {answer:?}")));
    }

    fn orders(&self) -> Vec<Quoted> {
        let own = self.own.iter().map(|deal| (deal.order, deal.until));
        self.deals.iter().map(Honest::quoted).chain(own).collect()
    }

    /// What has not ended yet.
    async fn rest(&self, m: &Machine) -> Option<String> {
        let payments = Payments::of(m);
        for one in &self.deals {
            let status = m.status(&one.deal).await;
            if !one.endings(&payments).contains(&status.as_str()) {
                return Some(format!("(b) {} is {status}", one.deal.order));
            }
        }
        let open = open(m).await;
        if !open.is_empty() {
            return Some(format!("(b) open: {open:?}"));
        }
        payments.unsound(&self.orders()).into_iter().next()
    }

    /// Waits until everything has ended; what is wrong then.
    async fn ended(mut self, m: &mut Machine, rng: &mut Rng) -> Vec<String> {
        // Strangers' deposits end behind the users'.
        let ended = m.until(2 * PATIENCE, async |m: &Machine| {
            self.rest(m).await.is_none()
        });
        ended.await;
        for side in [&m.origin, &m.destination] {
            side.blocks().act(Act::Resend);
        }
        m.pass(AGAIN).await;
        // A stranger's deposit may have come into a block only now.
        let ended = m.until(PATIENCE, async |m: &Machine| self.rest(m).await.is_none());
        ended.await;
        self.claim_last(m, rng).await;
        let mut wrong = std::mem::take(&mut self.wrong);
        wrong.extend(self.rest(m).await);
        let payments = Payments::of(m);
        wrong.extend(payments.unsound(&self.orders()));
        wrong.extend(claims::unsigned(m, &payments).await);
        for one in &self.deals {
            let status = m.status(&one.deal).await;
            wrong.extend(one.wrong(m, &payments, &status));
        }
        wrong.sort();
        wrong.dedup();
        wrong
    }
}

/// Pays the order's recipient, its user or the solver, and names the order.
fn give(m: &mut Machine, rng: &mut Rng, (victim, power): (&Deal, Power)) {
    let at_origin = rng.bool();
    let side = if at_origin { &m.origin } else { &m.destination };
    let (to, cents) = match power {
        Power::Donor => (Party::Solver, DUST),
        _ if at_origin => (Party::User, victim.cents),
        _ => (Party::Recipient, victim.cents),
    };
    let amount = Asset::Native.units(side.about(), cents);
    let sent = side.give(to, amount, victim.order);
    m.note(format!("a stranger gives {to:?} {amount}: {sent}"));
}

/// The id of another transaction, which no chain has.
fn spoiled(id: &str) -> String {
    let (rest, last) = id.split_at(id.len() - 1);
    let other = if last == "1" { "2" } else { "1" };
    format!("{rest}{other}")
}

/// The pair of a history: all of them in turn.
fn pair(seed: u64) -> Pair {
    let turn = usize::try_from(seed).unwrap() % pairs().count();
    pairs().nth(turn).unwrap()
}

/// Lets the history of a seed happen.
fn run(seed: u64) -> Verdict {
    let called = format!("strangers {seed}");
    let made = async || Machine::new(pair(seed), &called, FINAL).await;
    lived(seed, made, async |m: &mut Machine| {
        played(m, Rng::with_seed(seed)).await
    })
}

async fn played(m: &mut Machine, mut rng: Rng) -> Vec<String> {
    let mut history = History::default();
    let deals = rng.usize(1..=DEALS);
    for round in 0..deals + ROUNDS {
        if round < deals {
            history.begin(m, &mut rng).await;
        }
        for _ in 0..rng.u8(1..=2) {
            let at = rng.usize(..history.deals.len());
            let power = rng.choice(POWERS).unwrap();
            history.strike(m, &mut rng, (at, power)).await;
        }
        history.turn(m, &mut rng);
        crash::cut(m, &mut rng).await;
    }
    crash::calm(m);
    history.ended(m, &mut rng).await
}

#[test]
fn strangers_gain_nothing_and_change_nobodys_ending_between_any_families() {
    let number = |name: &str| set(name).map(|text| text.parse::<u64>().unwrap());
    let histories = number("INTENTD_STRANGERS").unwrap_or(HISTORIES);
    let seed = number("INTENTD_STRANGERS_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("INTENTD_STRANGERS_SEED={seed}");
    let all = (0..histories).map(|place| seed.wrapping_add(place));
    let ended = together(all.collect(), |seed: u64| {
        let Verdict { wrong, log, deaths } = run(seed);
        if !wrong.is_empty() {
            // `.ci/patches` looks for this line.
            println!("seed {seed} breaks {}", wrong[0]);
            let (log, wrong, pair) = (log.join("\n"), wrong.join("\nWRONG "), name(pair(seed)));
            println!("== INTENTD_STRANGERS_SEED={seed}, {pair}\n{log}\nWRONG {wrong}");
        }
        (wrong.is_empty(), deaths)
    });
    let failed = ended.iter().filter(|(right, _)| !right).count();
    let deaths: usize = ended.iter().map(|(_, deaths)| deaths).sum();
    println!(
        "{} histories with {deaths} deaths, {failed} of them wrong",
        ended.len()
    );
    assert_eq!(failed, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOLLAR: u64 = 100_000_000;

    fn entry(by: Party, to: Party, (order, dollars): (u8, u64)) -> Entry {
        Entry {
            seen: Seen {
                by,
                to,
                native: true,
                amount: U256::ZERO,
                order: Some(B256::repeat_byte(order)),
                transaction: String::new(),
                time: 0,
            },
            usd: U256::from(dollars * DOLLAR),
            coin: COINS[0],
        }
    }

    /// What is wrong with these payments beside a user's deposit of 200 dollars for order 1, which is filled, and a
    /// stranger's of 100 for order 2, which is given back.
    fn wrong(more: &[Entry]) -> Vec<String> {
        use Party::{Depository, Recipient, Solver, Stranger, User};
        let mut all = vec![
            entry(User, Depository, (1, 200)),
            entry(Solver, Recipient, (1, 196)),
            entry(Stranger, Depository, (2, 100)),
            entry(Solver, Stranger, (2, 97)),
        ];
        all.extend_from_slice(more);
        let prices = Prices::new();
        let orders = [1, 2].map(|order| (B256::repeat_byte(order), VALID));
        Payments { all, prices }.unsound(&orders)
    }

    /// What is wrong with a fill of 190 dollars for a deposit of 200, each in its side's coin, that came so many seconds behind
    /// its quote; and whether it may have been priced anew. Coins have moved when it comes, by parts of ten thousand.
    fn moved(seconds: u64, parts: [u64; 2]) -> (Vec<String>, bool) {
        use Party::{Depository, Recipient, Solver, User};
        let (quoted, order) = (1_000, B256::repeat_byte(1));
        let prices = Prices::new();
        for (coin, parts) in COINS.into_iter().zip(parts) {
            prices.move_by(coin, parts, quoted + 1);
        }
        let mut all = vec![
            entry(User, Depository, (1, 200)),
            entry(Solver, Recipient, (1, 190)),
        ];
        (all[0].seen.time, all[1].seen.time) = (quoted + seconds, quoted + seconds + 9);
        all[1].coin = COINS[1];
        let payments = Payments { all, prices };
        let quote = (order, quoted + VALID);
        (payments.unsound(&[quote]), payments.is_repriced(quote))
    }

    #[test]
    fn price_of_the_quote_counts_for_what_comes_in_time_only() {
        for parts in [[9_000, WHOLE], [WHOLE, 11_000]] {
            assert_eq!(moved(VALID, parts), (Vec::new(), false), "{parts:?}");
            let (found, repriced) = moved(VALID + STALE + 2, parts);
            assert!(found.len() == 1 && found[0].starts_with("(a)"), "{found:?}");
            assert!(repriced, "{parts:?}");
        }
    }

    #[test]
    fn late_fill_is_no_loss_where_its_own_side_has_not_gained_on_the_other() {
        for parts in [[11_000, WHOLE], [WHOLE, 9_000], [9_000; 2], [11_000; 2]] {
            let late = moved(VALID + STALE + 2, parts);
            assert_eq!(late, (Vec::new(), true), "{parts:?}");
        }
        assert_eq!(moved(VALID + STALE + 2, [WHOLE; 2]), (Vec::new(), false));
    }

    #[test]
    fn what_strangers_give_and_what_is_dust_is_no_fault() {
        use Party::{Depository, Recipient, Solver, Stranger};
        let more = [
            entry(Stranger, Recipient, (1, 200)),
            entry(Stranger, Solver, (1, 5)),
            entry(Stranger, Depository, (1, 0)),
            entry(Stranger, Depository, (9, 100)),
        ];
        assert_eq!(wrong(&more), Vec::<String>::new());
    }

    #[test]
    fn gain_of_a_stranger_and_a_payment_beyond_the_deposit_are_found() {
        use Party::{Depository, Recipient, Solver, Stranger, User};
        // He put 100 dollars in, and gets 97 and 9 back. What he put in for nobody's order does not count.
        let gain = [
            entry(User, Depository, (1, 10)),
            entry(Solver, Stranger, (1, 9)),
            entry(Stranger, Depository, (9, 100)),
        ];
        let found = wrong(&gain);
        assert!(
            found.len() == 1 && found[0].contains("strangers have got"),
            "{found:?}"
        );
        let beyond = [
            entry(User, Depository, (1, 10)),
            entry(Solver, Recipient, (1, 17)),
        ];
        let found = wrong(&beyond);
        assert!(found.len() == 1 && found[0].starts_with("(a)"), "{found:?}");
    }

    #[test]
    fn deposits_that_are_paid_for_twice_or_never_are_found() {
        use Party::{Depository, Recipient, Solver, User};
        let never = wrong(&[entry(User, Depository, (1, 200))]);
        let twice = wrong(&[entry(Solver, Recipient, (1, 1))]);
        let nameless = wrong(&[entry(Solver, User, (9, 1))]);
        for (found, letters) in [(never, "(b, d)"), (twice, "(b, d)"), (nameless, "(d)")] {
            assert!(
                found.len() == 1 && found[0].starts_with(letters),
                "{found:?}"
            );
        }
    }
}
