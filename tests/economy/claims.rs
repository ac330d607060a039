//! What strangers claim at oracles: the solver's, or its peer.

use std::sync::Arc;

use alloy::{
    primitives::{Address, B256, Bytes, U256},
    sol_types::SolCall,
};
use serde_json::{Value, json};

use crate::{
    chain::abi,
    clock,
    history::{Act, Deal, History},
    market::ORACLE,
    plan::{self, Stranger},
};

/// A transaction that there is not.
pub fn nothing() -> Arc<str> {
    B256::repeat_byte(9).to_string().into()
}

impl History {
    /// First the dust, then the claim that the victim's fill was for it.
    pub async fn claim_for_dust(&mut self, at: usize, round: u8, victim: &Deal) {
        let stranger = self.plan.strangers[at].clone();
        if round == 0 {
            let (chain, currency) = victim.trade.from;
            self.put(
                (stranger.account, chain, currency),
                U256::from(1),
                victim.order,
            );
        } else if let Some(fill) = self.paid(victim, victim.trade.to.0)
            && let Some(dust) = self.deposited(victim, stranger.account)
        {
            let body = json!({
                "order": victim.wire, "orderSignature": victim.signature,
                "inputs": [dust], "fill": { "transactionId": fill },
            });
            if self.submitted("solver-fills", &body, &stranger).await {
                return;
            }
        }
        // Whoever claims first: it tries as soon as it can, and again.
        self.tries_again(at, round);
    }

    /// Pays the victim's refund address one unit, or enough for a refund, then claims that the order was refunded.
    pub async fn claim_refund(&mut self, at: usize, round: u8, victim: &Deal) {
        let stranger = self.plan.strangers[at].clone();
        let (chain, currency) = victim.trade.from;
        if round == 0 {
            let amount = match stranger.keyed {
                true => U256::from(1),
                false => victim.trade.amount / U256::from(50),
            };
            let to = &victim.wire["inputs"][0]["refunds"][0]["recipient"];
            let to: Address = to
                .as_str()
                .unwrap_or_default()
                .parse()
                .unwrap_or(victim.account);
            let from = (stranger.account, chain, currency);
            let sent = self.pay(from, (to, amount), victim.order);
            self.note(format!("{amount} for the refund in {sent}"));
        } else if let Some(deposit) = self.deposited(victim, victim.account)
            && let Some(refund) = self.paid_by(victim.order, chain, stranger.account)
        {
            let body = json!({
                "order": victim.wire, "orderSignature": victim.signature, "inputs": [deposit],
                "refunds": [{ "transactionId": refund, "inputIndex": 0, "refundIndex": 0 }],
            });
            if self.submitted("solver-refunds", &body, &stranger).await {
                return;
            }
        }
        self.tries_again(at, round);
    }

    /// Claims whatever it likes, by force: for nothing at first, then for the victim's deposit.
    pub async fn force(&mut self, stranger: &Stranger, round: u8, victim: &Deal) {
        let inputs: Vec<_> = match round {
            0 => Vec::new(),
            _ => self.deposited(victim, victim.account).into_iter().collect(),
        };
        for route in ["solver-fills", "solver-refunds"] {
            let body = json!({
                "order": victim.wire, "orderSignature": victim.signature, "inputs": inputs,
                "fill": { "transactionId": nothing() }, "refunds": [], "force": true,
            });
            self.submitted(route, &body, stranger).await;
        }
        if round < 8 {
            let at = self
                .plan
                .strangers
                .iter()
                .position(|one| one.account == stranger.account);
            self.at(clock::seconds() + 3, Act::Strike(at.unwrap(), round + 1));
        }
    }

    /// Deposits another currency for the victim's order; then wants that back, and the victim's deposit
    /// for the victim, who is paid twice if that works.
    pub async fn recover(&mut self, at: usize, round: u8, victim: &Deal) {
        let stranger = self.plan.strangers[at].clone();
        let (chain, currency) = victim.trade.from;
        if round == 0
            && let Some((other, amount)) = plan::other(chain, currency)
        {
            self.put((stranger.account, chain, other), amount, victim.order);
        }
        let whose = if round.is_multiple_of(2) {
            victim.account
        } else {
            stranger.account
        };
        if let Some(deposit) = self.deposited(victim, whose) {
            let found = json!({ "chainId": chain, "transactionId": deposit["transactionId"] });
            if round < 8 {
                self.submitted("depository-deposits", &found, &stranger)
                    .await;
            }
            let body = json!({
                "chainId": chain, "transactionId": deposit["transactionId"],
                "onchainId": deposit["onchainId"],
                "order": victim.wire, "orderSignature": victim.signature,
            });
            self.submitted("recover", &body, &stranger).await;
        }
        let (most, pause) = if stranger.is_abroad() {
            (12, 7)
        } else {
            (24, 4)
        };
        if round < most {
            self.at(clock::seconds() + pause, Act::Strike(at, round + 1));
        }
    }

    /// Deposits what the victim did, so that it is given back; claims that as the refund of the victim's
    /// own deposit. Of the other solver, whose orders do not ask for its word, it wants little back: less
    /// than is a refund.
    pub async fn claim_crosswise(&mut self, at: usize, round: u8, victim: &Deal) {
        let stranger = self.plan.strangers[at].clone();
        let (chain, currency) = victim.trade.from;
        if round == 0 {
            let from = (stranger.account, chain, currency);
            let part = if victim.is_of_another() { 200 } else { 1 };
            self.put(from, victim.trade.amount / U256::from(part), victim.order);
        } else if let Some(refund) = self.paid(victim, chain)
            && let Some(deposit) = self.deposited(victim, victim.account)
        {
            let body = json!({
                "order": victim.wire, "orderSignature": victim.signature, "inputs": [deposit],
                "refunds": [{ "transactionId": refund, "inputIndex": 0, "refundIndex": 0 }],
            });
            if self.submitted("solver-refunds", &body, &stranger).await {
                return;
            }
        }
        self.tries_again(at, round);
    }

    /// As soon as something may have changed; more slowly what was refused for long.
    pub fn tries_again(&mut self, at: usize, round: u8) {
        let (most, least) = match self.plan.strangers[at].is_abroad() {
            true => (16, 6),
            false => (45, 2),
        };
        if round < most {
            let pause = least + u64::from(round / 8);
            self.at(clock::seconds() + pause, Act::Strike(at, round + 1));
        }
    }

    /// Claims, and hands what is signed to the hub's contract; whether anything was signed.
    pub async fn submitted(&mut self, route: &str, body: &Value, stranger: &Stranger) -> bool {
        let key = stranger.keyed.then_some("stranger");
        let whose = (stranger.elsewhere, key);
        self.handed_in((route, whose), body, stranger.account).await
    }

    /// The same at the solver's oracle, without a key.
    pub async fn hand_in(&mut self, route: &str, body: &Value, account: Address) -> bool {
        self.handed_in((route, (false, None)), body, account).await
    }

    /// The same at either oracle, with a key or without.
    pub async fn handed_in(
        &mut self,
        (route, whose): (&str, (bool, Option<&'static str>)),
        body: &Value,
        account: Address,
    ) -> bool {
        let path = format!("/attestations/{route}/v1");
        let Some((status, answer)) = self.claim(whose, &path, body).await else {
            return false;
        };
        let execution = &answer["execution"];
        self.note(format!("claim at {route}: {status} {}", answer["code"]));
        let bytes = |value: &Value| value.as_str().and_then(|text| text.parse::<Bytes>().ok());
        let each = |field: &str| -> Vec<Value> {
            execution[field].as_array().cloned().unwrap_or_default()
        };
        let Some(key) = execution["idempotencyKey"].as_str() else {
            return false;
        };
        let call = abi::executeCall {
            idempotencyKey: key.parse().unwrap(),
            actions: each("actions").iter().filter_map(bytes).collect(),
            signatures: each("signatures")
                .iter()
                .filter_map(|signed| bytes(&signed["signature"]))
                .collect(),
        };
        let relay = self.world.chain("relay").clone();
        relay.send(account, ORACLE, U256::ZERO, call.abi_encode().into());
        true
    }

    /// The solver's payment for an order on a chain.
    pub fn paid(&self, deal: &Deal, chain: &str) -> Option<Arc<str>> {
        self.paid_by(deal.order, chain, deal.solver)
    }

    /// An account's deposit under an order, as claims name it.
    pub fn deposited(&self, deal: &Deal, account: Address) -> Option<Value> {
        let found = self.world.placed(deal.trade.from.0);
        let mut mine = found
            .into_iter()
            .filter(|one| one.order == deal.order && one.depositor == account);
        let one = mine.next()?;
        Some(json!({
            "transactionId": &*one.transaction, "onchainId": one.id, "inputIndex": 0,
        }))
    }
}
