//! Another solver, for which the same oracles sign. Its orders are as those that ask for no word of
//! their solver: anybody may claim them, and they owe fees. It pays what is due, gives small deposits
//! back, and can prove each payment in the end, whatever strangers claimed before.

use std::{collections::BTreeMap, sync::Arc};

use alloy::primitives::{Address, B256, U256, keccak256};
use hyper::{Method, StatusCode};
use serde_json::json;
use vm::protocol::{
    order::{Fee, Order},
    signature::eip191,
};

use crate::{
    clock,
    history::{Act, Deal, History, Who, number},
    invariants::{Violation, claim, deposit_key, outcome, signable, violation},
    stored::{self, Placed},
    world::key,
};

pub const RIVAL: &str = "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6";
/// Seconds between two looks at its deposits.
const PAUSE: u64 = 4;
/// How often it looks.
const LOOKS: u16 = 300;
/// How often it looks for a deposit that is neither in a block nor waits for one.
const HOPES: u16 = 8;
/// Seconds between two claims of one order.
const AGAIN: u64 = 12;
/// Small deposits of an order that it gives back.
const REFUNDS: usize = 3;

/// Another solver's order, with what it paid for it.
pub struct Rival {
    pub deal: Deal,
    /// What it paid for which deposit.
    pub paid: BTreeMap<B256, Payment>,
    /// Unix seconds of its last claim.
    claimed: u64,
}

impl Rival {
    pub fn of(deal: &Deal) -> Self {
        Self {
            deal: deal.clone(),
            paid: BTreeMap::new(),
            claimed: 0,
        }
    }
}

/// A payment of its own.
#[derive(Clone, Debug)]
pub struct Payment {
    pub chain: &'static str,
    /// As its chain spells it.
    pub transaction: Arc<str>,
    pub fills: bool,
}

/// Its account.
pub fn account() -> Address {
    key(RIVAL).address()
}

impl History {
    /// Its customer gets an order as our quotes write them, under its own name, and deposits at once.
    pub async fn rival_quotes(&mut self) {
        let Some(customer) = self.plan.customer.clone() else {
            return;
        };
        let trade = customer.trade;
        let body = json!({
            "user": customer.account, "recipient": customer.recipient,
            "originChainId": number(trade.from.0), "destinationChainId": number(trade.to.0),
            "originCurrency": trade.from.1, "destinationCurrency": trade.to.1,
            "amount": trade.amount.to_string(), "tradeType": "EXACT_INPUT",
            "includeProtocolData": true,
        });
        let answer = self.ask(Method::POST, "/quote/v2", &body).await;
        let Some((StatusCode::OK, answer)) = answer else {
            return self.note("the other solver has no order".into());
        };
        let of = (Who::Rival, customer.account, customer.recipient);
        let mut deal = self.deal(of, trade, &answer, clock::seconds());
        renamed(&mut deal, self.plan.family).await;
        self.rivals.insert(Who::Rival, Rival::of(&deal));
        for at in self.early(Who::Rival) {
            self.strike(at, 0).await;
        }
        let (chain, currency) = trade.from;
        self.put((deal.account, chain, currency), trade.amount, deal.order);
        self.note(format!(
            "the other solver's customer deposits for {}",
            deal.order
        ));
        self.at(clock::seconds() + PAUSE, Act::Rival(Who::Rival, 0));
        self.after_deposit(Who::Rival);
    }

    /// Pays for deposits that are final, and again for what a reorg took.
    pub async fn rival_looks(&mut self, who: Who, round: u16) {
        let Some(mut rival) = self.rivals.remove(&who) else {
            return;
        };
        let deal = rival.deal.clone();
        let deposits = self.rival_deposits(&deal);
        let known = |one: &Payment| self.world.is_known(one.chain, &one.transaction);
        rival.paid.retain(|_, payment| known(payment));
        for placed in &deposits {
            if let Some(payment) = self.rival_pays(&rival, placed) {
                self.note(format!("the other solver pays {payment:?}"));
                rival.paid.insert(placed.id, payment);
            }
        }
        if matches!(who, Who::Foreign(_)) {
            self.rival_claims(&mut rival, &deposits, round).await;
        }
        let rests = self.rival_rests(&rival, &deposits, round);
        self.rivals.insert(who, rival);
        if !rests && round < LOOKS {
            self.at(clock::seconds() + PAUSE, Act::Rival(who, round + 1));
        }
    }

    /// Whether nothing is left to do for an order.
    fn rival_rests(&self, rival: &Rival, deposits: &[Placed], round: u16) -> bool {
        let mut strangers = self.plan.strangers.iter();
        let waits = strangers.any(|one| one.victim == rival.deal.of);
        let filled = rival.paid.values().any(|payment| payment.fills);
        let settled = |one: &Payment| self.world.is_settled(one.chain, &one.transaction);
        let settled = rival.paid.values().all(settled);
        let Who::Foreign(_) = rival.deal.of else {
            let least = if waits { LOOKS / 4 } else { 0 };
            return filled && settled && round > least;
        };
        let least = if waits { LOOKS / 12 } else { 0 };
        let mut paid = deposits.iter().filter(|it| rival.paid.contains_key(&it.id));
        let claimed = paid.all(|placed| self.world.is_executed_for_good(outcome(placed)));
        let lost = round > HOPES && !self.world.expects(&rival.deal);
        settled && claimed && round > least && (filled || lost)
    }

    /// Has the hub give it what it has paid for: by both oracles in turn.
    async fn rival_claims(&mut self, rival: &mut Rival, deposits: &[Placed], round: u16) {
        if clock::seconds() < rival.claimed + AGAIN {
            return;
        }
        let whose = (round % 2 == 1, None);
        for placed in deposits {
            let Some(payment) = rival.paid.get(&placed.id) else {
                continue;
            };
            if self.world.is_executed(outcome(placed))
                || !self.world.is_settled(payment.chain, &payment.transaction)
            {
                continue;
            }
            rival.claimed = clock::seconds();
            if !self.world.is_executed(deposit_key(placed)) {
                let found = json!({ "chainId": placed.chain, "transactionId": placed.transaction });
                let route = ("depository-deposits", whose);
                self.handed_in(route, &found, account()).await;
            }
            let (route, body) = claim(self, &rival.deal, (payment, placed)).await;
            self.handed_in((route, whose), &body, account()).await;
        }
    }

    /// The final deposits of its order, as far as they are in the order's currency.
    pub fn rival_deposits(&self, deal: &Deal) -> Vec<Placed> {
        let (chain, currency) = deal.trade.from;
        let all = self.world.placed(chain).into_iter();
        all.filter(|one| one.order == deal.order && one.currency == currency)
            .filter(|one| self.world.is_settled(chain, &one.transaction))
            .collect()
    }

    fn rival_pays(&self, rival: &Rival, placed: &Placed) -> Option<Payment> {
        let deal = &rival.deal;
        if rival.paid.contains_key(&placed.id) {
            return None;
        }
        let filled = rival.paid.values().any(|payment| payment.fills);
        let text = |value: &serde_json::Value| value.as_str()?.parse::<Address>().ok();
        if placed.amount >= deal.trade.amount && placed.depositor == deal.account && !filled {
            let payment = &deal.wire["output"]["payments"][0];
            let amount = payment["expectedAmount"].as_str()?.parse().ok()?;
            let to = text(&payment["recipient"]).unwrap_or(deal.recipient);
            return Some(self.rival_sends(deal, deal.trade.to, (to, amount)));
        }
        let refunds = rival.paid.values().filter(|one| !one.fills).count();
        let small = placed.amount * U256::from(100) < deal.trade.amount;
        let worth = placed.amount * U256::from(1_000) >= deal.trade.amount;
        if !small || !worth || refunds >= REFUNDS {
            return None;
        }
        let to = text(&deal.wire["inputs"][0]["refunds"][0]["recipient"]);
        let to = to.unwrap_or(deal.account);
        let amount = placed.amount * U256::from(9) / U256::from(10);
        let payment = self.rival_sends(deal, deal.trade.from, (to, amount));
        Some(Payment {
            fills: false,
            ..payment
        })
    }

    fn rival_sends(
        &self,
        deal: &Deal,
        (chain, currency): (&'static str, Address),
        (to, amount): (Address, U256),
    ) -> Payment {
        let from = (account(), chain, currency);
        Payment {
            chain,
            transaction: self.pay(from, (to, amount), deal.order),
            fills: true,
        }
    }
}

/// (e): both oracles sign each of its payments, whatever strangers had them sign before; what was paid for did not go
/// back. (b): what it claimed is its own.
pub async fn proved(history: &History) -> Vec<Violation> {
    let mut wrong = Vec::new();
    for rival in history.rivals.values() {
        for placed in history.rival_deposits(&rival.deal) {
            if let Some(payment) = rival.paid.get(&placed.id)
                && history
                    .world
                    .is_settled(payment.chain, &payment.transaction)
            {
                wrong.extend(proof(history, &rival.deal, (payment, &placed)).await);
            }
        }
    }
    wrong
}

/// The same of one payment.
async fn proof(
    history: &History,
    deal: &Deal,
    (payment, placed): (&Payment, &Placed),
) -> Vec<Violation> {
    let mut wrong = Vec::new();
    for elsewhere in [false, true] {
        let signed = signable(history, deal, (payment, placed), elsewhere).await;
        if let Err(why) = signed {
            let what = format!("the other solver's {payment:?} is not signed: {why}");
            wrong.push(violation('e', what));
        }
    }
    if history.world.is_executed(stored::recovery(placed)) {
        let what = format!("{placed:?} is paid for by {payment:?} and has gone back");
        wrong.push(violation('e', what));
    }
    let claims = matches!(deal.of, Who::Foreign(_));
    if claims && !history.world.is_executed(outcome(placed)) {
        let what = format!("{placed:?} is paid for by {payment:?}, and not given");
        wrong.push(violation('b', what));
    }
    wrong
}

/// The order of a quote under the other solver's name: with a fee of a hundredth, and without asking for
/// its word.
async fn renamed(deal: &mut Deal, family: u64) {
    let signer = key(RIVAL);
    let mut order: Order = serde_json::from_value(deal.wire.clone()).unwrap();
    order.solver = signer.address().to_string();
    let random = keccak256(format!("order {family}"));
    order.salt = U256::from_be_slice(&random[16..]).to_string();
    let payment = &order.inputs[0].payment;
    order.fees = vec![Fee {
        recipient_chain_id: payment.chain_id.clone(),
        recipient: deal.recipient.to_string(),
        currency_chain_id: payment.chain_id.clone(),
        currency: payment.currency.clone(),
        amount: (deal.trade.amount / U256::from(100)).to_string(),
    }];
    deal.order = order.id(|_| Some(vm::SETTLEMENT)).unwrap();
    let signature = signer.sign(&eip191(deal.order.as_slice())).await.unwrap();
    deal.signature = alloy::hex::encode_prefixed(signature.as_bytes());
    deal.wire = serde_json::to_value(&order).unwrap();
    deal.solver = signer.address();
    deal.request = B256::ZERO;
    deal.steps.clear();
}
