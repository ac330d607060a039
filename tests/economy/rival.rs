//! Another solver, for which the same oracles sign. Its orders are as those that ask for no word of
//! their solver: anybody may claim them, and they owe fees. It pays what is due, gives small deposits
//! back, and can prove each payment in the end, whatever strangers claimed before.

use std::collections::BTreeMap;

use alloy::primitives::{Address, B256, U256, keccak256};
use hyper::{Method, StatusCode};
use serde_json::json;
use vm::protocol::{
    order::{Fee, Order},
    signature::eip191,
};

use crate::{
    chain::FINAL,
    clock,
    history::{Act, Deal, History, Who, number},
    invariants::{Paid, Violation, signable},
    stored::{self, Placed},
    world::key,
};

pub const RIVAL: &str = "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6";
/// Seconds between two looks at its deposits.
const PAUSE: u64 = 4;
/// How often it looks.
const LOOKS: u16 = 300;
/// Small deposits of an order that it gives back.
const REFUNDS: usize = 3;

/// Another solver's order, with what it paid for it.
pub struct Rival {
    pub deal: Deal,
    /// What it paid for which deposit.
    pub paid: BTreeMap<B256, Payment>,
}

/// A payment of its own.
#[derive(Clone, Copy, Debug)]
pub struct Payment {
    pub chain: &'static str,
    pub transaction: B256,
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
        self.rival = Some(Rival {
            deal: deal.clone(),
            paid: BTreeMap::new(),
        });
        for at in self.early(Who::Rival) {
            self.strike(at, 0).await;
        }
        let (chain, currency) = trade.from;
        self.put((deal.account, chain, currency), trade.amount, deal.order);
        self.note(format!(
            "the other solver's customer deposits for {}",
            deal.order
        ));
        self.at(clock::seconds() + PAUSE, Act::Rival(0));
        self.after_deposit(Who::Rival);
    }

    /// Pays for deposits that are final, and again for what a reorg took.
    pub fn rival_looks(&mut self, round: u16) {
        let Some(mut rival) = self.rival.take() else {
            return;
        };
        let deal = rival.deal.clone();
        let deposits = self.rival_deposits(&deal);
        rival.paid.retain(|_, payment| {
            let world = self.world.chain(payment.chain).lock();
            world.find(&payment.transaction).is_some() || world.waits(&payment.transaction)
        });
        for placed in &deposits {
            if let Some(payment) = self.rival_pays(&rival, placed) {
                self.note(format!("the other solver pays {payment:?}"));
                rival.paid.insert(placed.id, payment);
            }
        }
        let ended = |payment: &Payment| self.is_final(payment.chain, payment.transaction);
        let filled = rival.paid.values().any(|payment| payment.fills);
        let waits = self
            .plan
            .strangers
            .iter()
            .any(|one| one.victim == Who::Rival);
        let least = if waits { LOOKS / 4 } else { 0 };
        let rests = filled && rival.paid.values().all(ended) && round > least;
        self.rival = Some(rival);
        if !rests && round < LOOKS {
            self.at(clock::seconds() + PAUSE, Act::Rival(round + 1));
        }
    }

    /// The final deposits of its order, as far as they are in the order's currency.
    pub fn rival_deposits(&self, deal: &Deal) -> Vec<Placed> {
        let (chain, currency) = deal.trade.from;
        let all = stored::deposits(self.world.chain(chain)).into_iter();
        all.filter(|one| one.order == deal.order && one.currency == currency)
            .filter(|one| self.is_final(chain, one.transaction))
            .collect()
    }

    fn is_final(&self, chain: &str, transaction: B256) -> bool {
        let world = self.world.chain(chain).lock();
        let found = world.find(&transaction);
        found.is_some_and(|(block, done)| done.success && block.number + FINAL <= world.head())
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
            let to = text(&payment["recipient"])?;
            return Some(self.rival_sends(deal, deal.trade.to, (to, amount)));
        }
        let refunds = rival.paid.values().filter(|one| !one.fills).count();
        let small = placed.amount * U256::from(100) < deal.trade.amount;
        let worth = placed.amount * U256::from(1_000) >= deal.trade.amount;
        if !small || !worth || refunds >= REFUNDS {
            return None;
        }
        let to = text(&deal.wire["inputs"][0]["refunds"][0]["recipient"])?;
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

/// (e): both oracles sign each of its payments, whatever strangers had them sign before.
pub async fn proved(history: &History) -> Vec<Violation> {
    let Some(rival) = &history.rival else {
        return Vec::new();
    };
    let mut wrong = Vec::new();
    for placed in history.rival_deposits(&rival.deal) {
        let Some(payment) = rival.paid.get(&placed.id) else {
            continue;
        };
        if !history.is_final(payment.chain, payment.transaction) {
            continue;
        }
        let paid = Paid::new(payment.chain, payment.transaction);
        for elsewhere in [false, true] {
            let signed = signable(history, &rival.deal, (&paid, &placed), elsewhere).await;
            if let Err(why) = signed {
                let what = format!("the other solver's {payment:?} is not signed: {why}");
                wrong.push(Violation {
                    invariant: 'e',
                    what,
                });
            }
        }
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
