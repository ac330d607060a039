//! What has to be true at the end of every history.

use std::collections::{BTreeMap, BTreeSet};

use alloy::{
    primitives::{Address, B256, U256},
    sol_types::SolCall,
};
use serde_json::{Value, json};
use vm::protocol::{id, signature::eip191};

use crate::{
    chain::{Done, abi},
    endings,
    history::{Deal, History, Who},
    market::{self, NATIVE},
    promises,
    rival::{self, Payment, RIVAL},
    stored::{self, Placed},
    sums::{self, Sums},
    world::{SOLVER, key},
};

/// Seconds of a deposit's block time after its quote until which the quoted price holds.
const VALID: u64 = 60;
/// Seconds that a price may be old when it is used.
const STALE: u64 = 15;
/// What a deal may lose: parts of ten thousand of what was deposited, and this, in 10^-8 dollars.
const SHARE: i128 = 30;
const FIXED: i128 = 150_000_000;

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// a to f, as the machine's description has them.
    pub invariant: char,
    pub what: String,
}

/// A payment of the solver's for an order.
pub struct Paid {
    pub chain: &'static str,
    pub transaction: B256,
    time: u64,
    pub moved: Vec<(Address, U256)>,
    /// Gives back what was deposited too much: the fill's settlement pays for it.
    excess: bool,
}

impl Paid {
    /// The payment as claims name it.
    fn of(&self) -> Payment {
        Payment {
            chain: self.chain,
            transaction: format!("{:#x}", self.transaction).into(),
            fills: !self.excess,
        }
    }
}

/// How an order stands on the chains.
#[derive(Default)]
pub struct Account {
    pub deposits: Vec<Placed>,
    pub paid: Vec<Paid>,
    /// What each of its transactions cost.
    pub gas: Vec<Gas>,
}

/// What a transaction cost.
#[derive(Clone, Copy, Debug)]
pub struct Gas {
    chain: &'static str,
    fee: U256,
    /// Of a unit, and what it should have been at most.
    price: U256,
    fair: U256,
}

impl Gas {
    fn of(chain: &'static str, done: &Done) -> Self {
        Self {
            chain,
            fee: done.fee,
            price: done.price,
            fair: done.fair,
        }
    }

    /// What it should have cost at most.
    pub fn due(&self) -> U256 {
        match self.price.is_zero() {
            true => self.fee,
            false => self.fee * self.fair.min(self.price) / self.price,
        }
    }

    /// What the quote charged for, and what was paid above the chain's own price. A price holds while
    /// gas moves: what a unit truly cost more than when it was quoted is nobody's loss.
    fn lost(&self, quoted: U256) -> U256 {
        if self.price.is_zero() {
            return self.fee;
        }
        let above = self.price.saturating_sub(self.fair.max(quoted));
        self.fee * (quoted.min(self.price) + above) / self.price
    }
}

/// Everything that is wrong.
pub async fn check(history: &History) -> Vec<Violation> {
    let mut wrong = history.broken.clone();
    if !history.rested {
        let open = stored::open(&history.world).await;
        wrong.push(violation('b', format!("not at rest: {open}")));
    }
    let (mut accounts, strange) = accounts(history);
    wrong.extend(strange);
    wrong.extend(sums::hub(history));
    wrong.extend(rival::proved(history).await);
    let mut sums = Sums::default();
    for deal in history.deals.values() {
        let mut account = accounts.remove(&deal.order).unwrap_or_default();
        let excesses = stored::excesses(&history.world, deal.request).await;
        for paid in &mut account.paid {
            paid.excess = excesses.contains_key(&paid.transaction);
        }
        let account = &account;
        let claimable = settled(history, deal, account, &mut wrong).await;
        wrong.extend(returned(history, deal, account, &excesses));
        wrong.extend(balance(history, deal, account, &claimable));
        sums.add(account, &claimable);
        wrong.extend(believed(history, deal, account).await);
        ended(history, deal, account, &mut wrong).await;
    }
    wrong.extend(sums.inventory(history));
    wrong
}

pub fn violation(invariant: char, what: String) -> Violation {
    Violation { invariant, what }
}

/// What chains hold about each order; and what moved the solver's money for nobody.
fn accounts(history: &History) -> (BTreeMap<B256, Account>, Vec<Violation>) {
    let mut all: BTreeMap<B256, Account> = BTreeMap::new();
    let mut wrong = Vec::new();
    let (solver, mut nameless) = (history.world.solver, U256::ZERO);
    for chain in &history.world.chains[..2] {
        for placed in stored::deposits(chain) {
            all.entry(placed.order).or_default().deposits.push(placed);
        }
        let world = chain.lock();
        for (block, done) in world.history() {
            let lost: Vec<_> = done
                .moved
                .iter()
                .filter(|(_, before, after)| after < before)
                .map(|(currency, before, after)| (*currency, before - after))
                .collect();
            if done.tx.from != solver {
                if !lost.is_empty() {
                    let what = format!("{:?} takes {lost:?} from the solver", done.tx);
                    wrong.push(violation('a', what));
                }
                continue;
            }
            let data = &done.tx.data;
            let order = data
                .len()
                .checked_sub(32)
                .map(|at| B256::from_slice(&data[at..]));
            let known =
                order.filter(|order| history.deals.values().any(|deal| deal.order == *order));
            let Some(order) = known else {
                nameless += done.fee / done.fair;
                if !lost.is_empty() {
                    wrong.push(violation('a', format!("{lost:?} paid for no order")));
                }
                continue;
            };
            let account = all.entry(order).or_default();
            account.gas.push(Gas::of(chain.name, done));
            if !lost.is_empty() {
                account.paid.push(Paid {
                    chain: chain.name,
                    transaction: done.tx.hash,
                    time: block.time,
                    moved: lost,
                    excess: false,
                });
            }
        }
    }
    for (order, gas) in settling(history, &all) {
        all.entry(order).or_default().gas.push(gas);
    }
    wrong.extend(sums::nameless(nameless));
    (all, wrong)
}

/// What settling cost, by order.
fn settling(history: &History, all: &BTreeMap<B256, Account>) -> Vec<(B256, Gas)> {
    let deposits = all.values().flat_map(|account| &account.deposits);
    let keys = deposits.flat_map(|placed| {
        [
            (deposit_key(placed), placed.order),
            (outcome(placed), placed.order),
        ]
    });
    let keys: BTreeMap<B256, B256> = keys.collect();
    let relay = history.world.chain("relay").lock();
    let own = relay
        .history()
        .filter(|(_, done)| done.tx.from == history.world.solver);
    let of = |done: &Done| {
        let call = abi::executeCall::abi_decode(&done.tx.data).ok()?;
        let order = keys.get(&call.idempotencyKey)?;
        Some((*order, Gas::of("relay", done)))
    };
    own.filter_map(|(_, done)| of(done)).collect()
}

/// The key of what gives a deposit to its solver.
pub fn outcome(placed: &Placed) -> B256 {
    id::outcome(&[placed.id], placed.order)
}

pub fn deposit_key(placed: &Placed) -> B256 {
    id::deterministic(&[placed.chain, &*placed.transaction])
}

/// (d) and the second half of (e): each payment is for a deposit of its own, which the solver has, or
/// has listed and can still get. Answers with these deposits.
async fn settled(
    history: &History,
    deal: &Deal,
    account: &Account,
    wrong: &mut Vec<Violation>,
) -> Vec<Placed> {
    let done = |placed: &&Placed| {
        let relay = history.world.chain("relay").lock();
        relay.state().executed.contains(&outcome(placed))
    };
    let mut got: Vec<Placed> = account.deposits.iter().filter(done).cloned().collect();
    let listed = stored::listed(&history.world, deal.request).await;
    let uses = stored::uses(&history.world, deal.request).await;
    let named = |invariant, what: String| {
        violation(invariant, format!("{:?} {}: {what}", deal.of, deal.order))
    };
    let mut used = BTreeSet::new();
    for paid in account.paid.iter().filter(|paid| !paid.excess) {
        let leg = uses
            .iter()
            .find(|(sent, _)| *sent == Some(paid.transaction));
        let of = |(_, id): &(Option<B256>, B256)| {
            account.deposits.iter().find(|placed| placed.id == *id)
        };
        let Some(placed) = leg.and_then(of) else {
            wrong.push(named(
                'd',
                format!("{} is for no deposit", paid.transaction),
            ));
            continue;
        };
        if !used.insert(placed.id) {
            wrong.push(named('d', format!("{placed:?} is paid for twice")));
        }
        if done(&placed) {
            continue;
        }
        if !listed.contains(&placed.id) && !history.written_off.contains(&placed.id) {
            wrong.push(named(
                'd',
                format!("{placed:?} is neither settled nor listed"),
            ));
        }
        match signable(history, deal, (&paid.of(), placed), false).await {
            Ok(()) => got.push(placed.clone()),
            Err(why) => wrong.push(named('e', format!("{placed:?} is not signable: {why}"))),
        }
    }
    got
}

/// The rest of (d): what is called too much is what a fill's deposit brought beyond the order, once.
fn returned(
    history: &History,
    deal: &Deal,
    account: &Account,
    excesses: &BTreeMap<B256, B256>,
) -> Vec<Violation> {
    let (mut wrong, mut used) = (Vec::new(), BTreeSet::new());
    for paid in &account.paid {
        let Some(id) = excesses.get(&paid.transaction) else {
            continue;
        };
        let placed = account.deposits.iter().find(|placed| placed.id == *id);
        let brought = placed.map_or(U256::ZERO, |placed| placed.amount);
        let most = brought.saturating_sub(history.asked(deal));
        let back: U256 = paid.moved.iter().map(|(_, amount)| *amount).sum();
        let (chain, currency) = deal.trade.from;
        let here = paid.chain == chain && paid.moved.iter().all(|(one, _)| *one == currency);
        if !used.insert(*id) || !here || back > most {
            let what = format!("{:?} {}: {back} of {most} back", deal.of, deal.order);
            wrong.push(violation('d', what));
        }
    }
    wrong
}

/// The rest of (e): the peer of the solver's oracle signs every payment, whatever strangers had it sign
/// before; and what was paid for did not go back through the hub.
async fn believed(history: &History, deal: &Deal, account: &Account) -> Vec<Violation> {
    let mut wrong = Vec::new();
    for (transaction, deposit) in stored::uses(&history.world, deal.request).await {
        let placed = account.deposits.iter().find(|one| one.id == deposit);
        let Some(placed) = placed else { continue };
        let relay = history.world.chain("relay").lock().state().clone();
        if relay.executed.contains(&stored::recovery(placed)) {
            wrong.push(violation(
                'e',
                format!("{placed:?} is paid for and has gone back"),
            ));
        }
        let paid = account.paid.iter();
        let Some(paid) = paid
            .clone()
            .find(|paid| Some(paid.transaction) == transaction)
        else {
            continue;
        };
        if let Err(why) = signable(history, deal, (&paid.of(), placed), true).await {
            let what = format!(
                "{:?} {}: the peer does not sign: {why}",
                deal.of, deal.order
            );
            wrong.push(violation('e', what));
        }
    }
    wrong
}

/// Whether the oracle signs that `paid` is what `placed` was for.
pub async fn signable(
    history: &History,
    deal: &Deal,
    (paid, placed): (&Payment, &Placed),
    elsewhere: bool,
) -> Result<(), String> {
    let (route, body) = claim(history, deal, (paid, placed)).await;
    let path = format!("/attestations/{route}/v1");
    match history.claim((elsewhere, None), &path, &body).await {
        Some((status, _)) if status.is_success() => Ok(()),
        Some((status, answer)) => Err(format!("{route} {status} {}", answer["code"])),
        None => Err("the process is dead".into()),
    }
}

/// What the solver asks an oracle to sign about a payment and its deposit: the route, and the body.
pub async fn claim(
    history: &History,
    deal: &Deal,
    (paid, placed): (&Payment, &Placed),
) -> (&'static str, Value) {
    let mut body = json!({
        "order": deal.wire, "orderSignature": deal.signature,
        "inputs": [{ "transactionId": placed.transaction, "onchainId": placed.id, "inputIndex": 0 }],
    });
    let route = if paid.chain == deal.trade.to.0 && placed.chain != paid.chain {
        body["fill"] = json!({ "transactionId": paid.transaction });
        "solver-fills"
    } else {
        let refund = usize::from(paid.chain != deal.trade.from.0);
        body["refunds"] = json!([{
            "transactionId": paid.transaction, "inputIndex": 0, "refundIndex": refund,
        }]);
        "solver-refunds"
    };
    let outcome = if route == "solver-fills" {
        "fill"
    } else {
        "refund"
    };
    // Where an order does not ask for its solver's word, only what is short of it needs that, and what is given back
    // where nobody's account is the solver's.
    let whole = placed.amount >= history.asked(deal);
    let asks = match deal.of {
        Who::Rival => false,
        Who::Foreign(at) => {
            let unknown = history.world.ledger(paid.chain).is_some();
            history.plan.foreign[at].vouched || unknown && outcome == "refund"
        }
        _ => true,
    };
    if asks || !whole {
        let claim = id::claim(outcome, &[placed.id], deal.order);
        let solver = if deal.is_of_another() { RIVAL } else { SOLVER };
        let word = key(solver).sign(&eip191(claim.as_slice())).await.unwrap();
        body["solverSignature"] = json!(alloy::hex::encode_prefixed(word.as_bytes()));
    }
    (route, body)
}

/// (a): what a deal brought against what it cost, at its own prices.
fn balance(history: &History, deal: &Deal, account: &Account, got: &[Placed]) -> Option<Violation> {
    if account.paid.is_empty() && account.gas.is_empty() {
        return None;
    }
    // What strangers deposit, and nobody is paid for, is priced by nobody.
    let priced = if got.is_empty() {
        &account.deposits
    } else {
        got
    };
    let first = priced.iter().map(|placed| placed.time).min()?;
    let last = priced.iter().map(|placed| placed.time).max()?;
    let paid = account.paid.iter().map(|paid| paid.time).max();
    let is_timely = |time| time <= deal.quoted + VALID;
    let timely = is_timely(last);
    let from = if is_timely(first) { deal.quoted } else { first };
    let window = match timely {
        true => (deal.quoted - STALE, deal.quoted),
        false => (from - STALE, paid.unwrap_or(last).max(last)),
    };
    let value = |chain: &str, currency: Address, amount: U256, best: bool| -> i128 {
        let Some((symbol, decimals)) = market::currency(chain, currency) else {
            return 0;
        };
        let (least, most) = history.world.prices.between(symbol, window.0, window.1);
        let price = U256::from(if best { most } else { least });
        let unit = U256::from(10).pow(U256::from(decimals));
        i128::try_from(amount * price / unit).unwrap_or(i128::MAX)
    };
    let credit: i128 = got
        .iter()
        .map(|placed| value(placed.chain, placed.currency, placed.amount, true))
        .sum();
    let debit: i128 = account
        .paid
        .iter()
        .flat_map(|paid| paid.moved.iter().map(move |moved| (paid.chain, moved)))
        .map(|(chain, (currency, amount))| value(chain, *currency, *amount, false))
        .sum();
    let lost = |gas: &Gas| {
        let quoted = U256::from(deal.gas.get(gas.chain).copied().unwrap_or_default());
        value(bought_on(gas.chain), NATIVE, gas.lost(quoted), false)
    };
    let gas: i128 = account.gas.iter().map(lost).sum();
    let bound = credit.max(debit) * SHARE / 10_000 + FIXED;
    let owed = owed(history, deal, account, |amount| {
        value(deal.trade.from.0, deal.trade.from.1, amount, false)
    });
    let left = credit - debit - gas - owed;
    (left < -bound).then(|| {
        let what = format!(
            "{:?} {}: {} brought, {} paid, {} for gas (10^-8 dollars); timely: {timely}",
            deal.of, deal.order, credit, debit, gas
        );
        violation('a', what)
    })
}

/// Where gas has its price: the settlement chain's is worth what the solver's chain's is.
fn bought_on(chain: &'static str) -> &'static str {
    if chain == "relay" { "alpha" } else { chain }
}

/// What an app is owed of a filled order.
fn owed(history: &History, deal: &Deal, account: &Account, value: impl Fn(U256) -> i128) -> i128 {
    let Who::Honest(at) = deal.of else { return 0 };
    let filled = account
        .paid
        .iter()
        .any(|paid| paid.chain == deal.trade.to.0);
    let fee = i128::from(history.plan.honest[at].fee);
    match filled {
        true => value(history.asked(deal)) * fee / 10_000,
        false => 0,
    }
}

/// (b): every deposit ended; an honest one in a fill or a refund.
async fn ended(history: &History, deal: &Deal, account: &Account, wrong: &mut Vec<Violation>) {
    if account.deposits.is_empty() {
        return;
    }
    let claim = stored::claim(&history.world, deal.request).await;
    // Where the user acts by himself no solver decides: what is deposited is listed, and goes back through
    // the hub.
    let left = stored::left(&history.world, deal.request).await;
    let parked = stored::parked(&history.world, deal.request).await;
    let executed = history.world.chain("relay").lock().state().executed.clone();
    for placed in &account.deposits {
        let away = parked.contains(&placed.id) || history.dismissed.contains(&placed.id);
        let again = || stored::again(&claim, placed.id);
        let decided = match deal.trade.is_own() {
            true => left.contains(&placed.id) && away,
            false => {
                stored::is_paid(&claim, placed.id)
                    || away
                    || again().is_some_and(|until| !stored::is_long_due(until))
            }
        };
        if !decided && !executed.contains(&stored::recovery(placed)) {
            let what = format!(
                "{:?} {}: nobody decided about {placed:?}: {claim}",
                deal.of, deal.order
            );
            wrong.push(violation('b', what));
        }
    }
    let own = account
        .deposits
        .iter()
        .any(|placed| placed.depositor == deal.account);
    if !matches!(deal.of, Who::Honest(_)) || !own || deal.trade.is_own() {
        return;
    }
    let ending = endings::status(history, deal).await;
    let kept = promises::kept(history, deal, account, &ending);
    wrong.extend(kept.err().map(|why| {
        violation(
            'b',
            format!("{:?} {}: {ending}: {why}: {claim}", deal.of, deal.order),
        )
    }));
}
