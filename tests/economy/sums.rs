//! What adds up over a whole history: what the solver has, by currency, and what the hub owes, by account.

use std::collections::BTreeMap;

use alloy::primitives::{Address, U256};

use crate::{
    history::{Deal, History},
    invariants::{Account, Violation, deposit_key, outcome, violation},
    market::{BRIDGED, JUNK, NATIVE, USDC},
    stored::{self, Placed},
};

const CURRENCIES: [Address; 4] = [NATIVE, USDC, BRIDGED, JUNK];
/// Gas units that may be spent for no order: a new allowance, nonces that are used up or cancelled.
const NAMELESS: u64 = 1_000_000;

/// What all deals brought and cost, by chain and currency.
#[derive(Default)]
pub struct Sums {
    brought: Vec<Placed>,
    paid: BTreeMap<(&'static str, Address), U256>,
}

impl Sums {
    /// A deal's deposits that the solver has or can still get, and its payments.
    pub fn add(&mut self, account: &Account, got: &[Placed]) {
        self.brought.extend_from_slice(got);
        for paid in &account.paid {
            for (currency, amount) in &paid.moved {
                *self.paid.entry((paid.chain, *currency)).or_default() += *amount;
            }
        }
    }

    /// (a): on its chain, at the hub and in what it can claim, the solver has no less of a currency than it
    /// began with, more by what its deals brought, less by what it paid for them and by gas.
    pub fn inventory(&self, history: &History) -> Vec<Violation> {
        let mut wrong = Vec::new();
        let (world, solver) = (&history.world, history.world.solver);
        let relay = world.chain("relay").lock().state().clone();
        let account = world.holder("alpha", solver);
        for chain in &world.chains {
            let scripted = chain.lock();
            let (now, first) = (scripted.state(), scripted.state_at(0).unwrap());
            let own = scripted
                .history()
                .filter(|(_, done)| done.tx.from == solver);
            let fees: U256 = own.map(|(_, done)| done.fee).sum();
            for currency in CURRENCIES {
                let here =
                    |placed: &&Placed| placed.chain == chain.name && placed.currency == currency;
                let mine = self.brought.iter().filter(here);
                let brought: U256 = mine.clone().map(|placed| placed.amount).sum();
                let open = mine.filter(|placed| !relay.executed.contains(&outcome(placed)));
                let claimable: U256 = open.map(|placed| placed.amount).sum();
                let token = world.token(chain.name, currency);
                let has = now.balance(solver, currency) + relay.held(account, token) + claimable;
                let paid = self.paid.get(&(chain.name, currency)).copied();
                let gas = if currency == NATIVE { fees } else { U256::ZERO };
                let spent = paid.unwrap_or_default() + gas;
                let due = (first.balance(solver, currency) + brought).saturating_sub(spent);
                if has < due {
                    let what = format!(
                        "the solver has {has} of {currency} on {}, and {due} are due: {brought} brought, {spent} spent",
                        chain.name
                    );
                    wrong.push(violation('a', what));
                }
            }
        }
        wrong
    }
}

/// (e): an execution moves what its deposit brought and nothing else, to whom it must: the order's solver,
/// who owes the fees of a fill, or the depositor. The hub owes nobody more than depositories hold.
pub fn hub(history: &History) -> Vec<Violation> {
    let world = &history.world;
    let relay = world.chain("relay").lock().state().clone();
    let mut wrong = Vec::new();
    let mut due: BTreeMap<(Address, U256), U256> = BTreeMap::new();
    for (chain, currencies) in world.deposit_chains() {
        for currency in currencies.iter().copied() {
            let token = world.token(chain, currency);
            let owed = relay.hub.iter().filter(|((_, id), _)| *id == token);
            let owed = owed.fold(U256::ZERO, |sum, (_, amount)| sum + *amount);
            let held = world.held(chain, currency);
            if owed > held {
                let what =
                    format!("the hub owes {owed} of {currency} on {chain}, {held} are there");
                wrong.push(violation('e', what));
            }
        }
        for placed in world.placed(chain) {
            let token = world.token(chain, placed.currency);
            let given = relay.executed.contains(&outcome(&placed));
            let back = relay.executed.contains(&stored::recovery(&placed));
            if given && back {
                wrong.push(violation('e', format!("{placed:?} went both ways")));
            }
            if !relay.executed.contains(&deposit_key(&placed)) {
                continue;
            }
            let (mut left, mut to) = (placed.amount, placed.account);
            if back {
                to = world.holder(placed.chain, placed.depositor);
            }
            if given && let Some(deal) = of(history, &placed) {
                to = world.holder("alpha", deal.solver);
                for (account, fee) in fees(history, deal, &placed) {
                    left = left.saturating_sub(fee);
                    *due.entry((account, token)).or_default() += fee;
                }
            }
            *due.entry((to, token)).or_default() += left;
        }
    }
    due.retain(|_, amount| !amount.is_zero());
    let mut held = relay.hub.clone();
    held.retain(|_, amount| !amount.is_zero());
    if held != due {
        let what = format!("the hub's accounts hold {held:?}, and {due:?} are due");
        wrong.push(violation('e', what));
    }
    wrong
}

/// The deal that a deposit names.
fn of<'a>(history: &'a History, placed: &Placed) -> Option<&'a Deal> {
    let rivals = history.rivals.values().map(|rival| &rival.deal);
    let mut deals = history.deals.values().chain(rivals);
    deals.find(|deal| deal.order == placed.order)
}

/// What a fill's order owes of its deposit, by account at the hub: the other solver's does. What it did not give back
/// was filled, be it by somebody else.
fn fees(history: &History, deal: &Deal, placed: &Placed) -> Vec<(Address, U256)> {
    let Some(rival) = history.rivals.get(&deal.of) else {
        return Vec::new();
    };
    if rival
        .paid
        .get(&placed.id)
        .is_some_and(|payment| !payment.fills)
    {
        return Vec::new();
    }
    let fee = deal.trade.amount / U256::from(100);
    vec![(history.world.holder(placed.chain, deal.recipient), fee)]
}

/// (a): gas that the solver paid for no order.
pub fn nameless(gas: U256) -> Option<Violation> {
    (gas > U256::from(NAMELESS)).then(|| violation('a', format!("{gas} gas units for no order")))
}
