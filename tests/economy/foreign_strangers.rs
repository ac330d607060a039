//! What strangers do to orders between families besides what they do to every order.

use alloy::primitives::{B256, U256, keccak256};
use serde_json::{Value, json};
use vm::protocol::order::Order;

use crate::{
    chain::ledger::{Move, Target},
    claims::nothing,
    clock,
    history::{Act, Deal, History, Who},
    world::key,
};

/// The key of a stranger who is a solver, too.
const IMPOSTOR: &str = "0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e";
/// Rounds of one stranger, and seconds between them.
const ROUNDS: u8 = 12;
const PAUSE: u64 = 7;

impl History {
    /// Fills an order of its own, which asks for next to nothing, and claims the victim's deposit for that.
    pub async fn claim_under_own_order(&mut self, at: usize, round: u8, victim: &Deal) {
        let stranger = self.plan.strangers[at].clone();
        let own = self.imitated(victim).await;
        let (chain, currency) = victim.trade.to;
        if round == 0 {
            let from = (stranger.account, chain, currency);
            self.pay(from, (victim.recipient, U256::from(1)), own.order);
        } else if let Some(fill) = self.paid_by(own.order, chain, stranger.account)
            && let Some(deposit) = self.deposited(victim, victim.account)
        {
            let body = json!({
                "order": own.wire, "orderSignature": own.signature, "inputs": [deposit],
                "fill": { "transactionId": fill },
            });
            self.submitted("solver-fills", &body, &stranger).await;
        }
        self.tries_once_more(at, round);
    }

    /// The victim's order under the impostor's name.
    async fn imitated(&self, victim: &Deal) -> Deal {
        let mut order: Order = serde_json::from_value(victim.wire.clone()).unwrap();
        order.solver = key(IMPOSTOR).address().to_string();
        for payment in &mut order.output.payments {
            payment.minimum_amount = "1".into();
            payment.expected_amount = "1".into();
        }
        order.fees.clear();
        let Who::Foreign(at) = victim.of else {
            unreachable!("only orders between families are imitated")
        };
        let wanted = (victim.of, victim.account, victim.recipient);
        let foreign = &self.plan.foreign[at];
        self.world
            .promised(wanted, foreign, (order, IMPOSTOR))
            .await
    }

    /// Deposits for an order of nobody's, and claims that before it is final; takes it back while it waits.
    pub async fn claim_before_it_is_gone(&mut self, at: usize, round: u8, victim: &Deal) {
        let stranger = self.plan.strangers[at].clone();
        let (chain, currency) = victim.trade.from;
        if round == 0 {
            let order = keccak256([victim.order.as_slice(), stranger.account.as_slice()].concat());
            let from = (stranger.account, chain, currency);
            let sent = self.put(from, victim.trade.amount, order);
            self.sent.insert(at, sent);
        }
        let Some(sent) = self.sent.get(&at).cloned() else {
            return;
        };
        let found = json!({ "chainId": chain, "transactionId": sent });
        if self
            .submitted("depository-deposits", &found, &stranger)
            .await
        {
            return;
        }
        if round == 1 + stranger.account[19] % 4
            && let Some(ledger) = self.world.ledger(chain)
        {
            let back = |what: Move| Move {
                to: Target::Account(stranger.account),
                order: B256::ZERO,
                ..what
            };
            ledger.replace(&sent, back);
        }
        self.tries_once_more(at, round);
    }

    /// Pays in the solver's place, and claims that at both oracles.
    pub async fn claim_own_fill(&mut self, at: usize, round: u8, victim: &Deal) {
        let stranger = self.plan.strangers[at].clone();
        let (chain, currency) = victim.trade.to;
        if round == 0 {
            let from = (stranger.account, chain, currency);
            self.pay(from, (victim.recipient, victim.minimum), victim.order);
        } else if let Some(fill) = self.paid_by(victim.order, chain, stranger.account)
            && let Some(deposit) = self.deposited(victim, victim.account)
        {
            let body = json!({
                "order": victim.wire, "orderSignature": victim.signature, "inputs": [deposit],
                "fill": { "transactionId": fill },
            });
            let mut signed = true;
            for elsewhere in [false, true] {
                let route = ("solver-fills", (elsewhere, None));
                signed &= self.handed_in(route, &body, stranger.account).await;
            }
            if signed {
                return;
            }
        }
        self.tries_once_more(at, round);
    }

    /// Deposits into what looks like the depository, and claims that.
    pub async fn deposit_elsewhere(&mut self, at: usize, round: u8, victim: &Deal) {
        let stranger = self.plan.strangers[at].clone();
        let (chain, currency) = victim.trade.from;
        if round == 0 {
            let (amount, order) = (victim.trade.amount, victim.order);
            let to = Target::LookAlike;
            let sent = match self.world.ledger(chain) {
                Some(ledger) => {
                    let what = Move {
                        to,
                        currency,
                        amount,
                        order,
                    };
                    ledger.send(stranger.account, what)
                }
                None => {
                    let from = (stranger.account, chain, currency);
                    self.pay(from, (stranger.account, amount), order)
                }
            };
            self.sent.insert(at, sent);
        } else if let Some(sent) = self.sent.get(&at).cloned() {
            let hints = [
                json!({ "bitcoin-vm": { "lt": 1 }, "solana-vm": "0x" }),
                json!({ "ton-vm": { "lt": "1" } }),
                json!([]),
                Value::Null,
            ];
            let hints = &hints[usize::from(round) % hints.len()];
            let found = json!({ "chainId": chain, "transactionId": sent, "hints": hints });
            self.submitted("depository-deposits", &found, &stranger)
                .await;
            let fill = self.paid(victim, victim.trade.to.0);
            let input =
                json!({ "transactionId": sent, "onchainId": victim.order, "inputIndex": 0 });
            let body = json!({
                "order": victim.wire, "orderSignature": victim.signature, "inputs": [input],
                "fill": { "transactionId": fill.unwrap_or_else(nothing) }, "hints": hints,
            });
            self.submitted("solver-fills", &body, &stranger).await;
        }
        self.tries_once_more(at, round);
    }

    /// Claims the solver's fill as a refund, too.
    pub async fn claim_both_ways(&mut self, at: usize, round: u8, victim: &Deal) {
        let stranger = self.plan.strangers[at].clone();
        let fill = self.paid(victim, victim.trade.to.0);
        if let Some(deposit) = self.deposited(victim, victim.account) {
            let payment = fill.unwrap_or_else(nothing);
            let body = json!({
                "order": victim.wire, "orderSignature": victim.signature, "inputs": [deposit],
                "fill": { "transactionId": payment },
                "refunds": [{ "transactionId": payment, "inputIndex": 0, "refundIndex": 0 }],
            });
            let elsewhere = stranger.elsewhere != round.is_multiple_of(2);
            for route in ["solver-refunds", "solver-fills"] {
                self.handed_in((route, (elsewhere, None)), &body, stranger.account)
                    .await;
            }
        }
        self.tries_once_more(at, round);
    }

    fn tries_once_more(&mut self, at: usize, round: u8) {
        if round < ROUNDS {
            self.at(clock::seconds() + PAUSE, Act::Strike(at, round + 1));
        }
    }
}
