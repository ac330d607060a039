//! What strangers claim at the solver's oracle and at its peer, without a key: that somebody's deposit was filled or given
//! back, by whatever payment, or by force; the same under orders of their own; that the solver gives an order up; a deposit
//! back; and once more what the solver has claimed. Oracles sign nothing of it that is not so, and in the end what the
//! solver claims.

#[cfg(test)]
mod tests;

use alloy::{
    hex,
    primitives::{B256, U256},
};
use fastrand::Rng;
use hyper::StatusCode;
use serde_json::{Value, json};
use vm::protocol::{
    id,
    message::{Domain, NoFillOrRefund, TypedMessage},
    order::Order,
    signature::eip191,
};

use super::{DUST, History, OWN, Payments};
use crate::{
    deal::{Answer, Asset, Deal},
    machine::{CHAINS, Machine, key},
    side::{Party, Seen},
};

/// The key of a stranger who is a solver, too.
const IMPOSTOR: &str = "0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e";
/// Claims at a time.
const CLAIMS: usize = 4;
const DEPOSITS: &str = "/attestations/depository-deposits/v1";
/// Where claims name their payment.
const PAYMENTS: [&str; 2] = ["/fill/transactionId", "/refunds/0/transactionId"];

/// What is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimKind {
    /// That a payment is the order's fill, or the refund of its deposit.
    Fill,
    Refund,
    /// That the order was filled, by force.
    Forced,
    /// That the order's solver gives it up.
    GivenUp,
    /// A deposit back.
    Recovery,
    /// What the solver has claimed, of its payment or of another one.
    Again,
}

const KINDS: [ClaimKind; 6] = [
    ClaimKind::Fill,
    ClaimKind::Refund,
    ClaimKind::Forced,
    ClaimKind::GivenUp,
    ClaimKind::Recovery,
    ClaimKind::Again,
];

/// A question to an oracle.
#[derive(Clone, Debug)]
struct Claim {
    path: String,
    body: Value,
    /// No oracle may sign it.
    lie: bool,
}

impl Claim {
    fn at(route: &str, body: Value, lie: bool) -> Self {
        let path = format!("/attestations/{route}/v1");
        Self { path, body, lie }
    }

    /// What is wrong with an oracle's answer.
    fn fault(&self, (status, answer): &Answer) -> Option<String> {
        let is_signed = self.lie && status.is_success();
        let wrong = is_signed || *status == StatusCode::INTERNAL_SERVER_ERROR;
        wrong.then(|| format!("(e) {} {}: {status} {answer}", self.path, self.body))
    }
}

/// An order with its solver's signature.
#[derive(Clone, Debug)]
pub(super) struct Promised {
    id: B256,
    order: Value,
    signature: String,
    /// The stranger is its solver.
    own: bool,
}

impl Promised {
    fn of(deal: &Deal) -> Self {
        let signature = deal.protocol["orderSignature"].as_str().unwrap();
        Self {
            id: deal.order,
            order: deal.protocol["orderData"].clone(),
            signature: signature.to_owned(),
            own: false,
        }
    }

    /// The victim's order under the stranger's name, which wants next to nothing for the deposit.
    async fn imitated(m: &Machine, rng: &mut Rng, victim: &Deal) -> Self {
        let order = victim.protocol["orderData"].clone();
        let mut order: Order = serde_json::from_value(order).unwrap();
        order.solver = key(IMPOSTOR).address().to_string();
        order.salt = rng.u64(..).to_string();
        for payment in &mut order.output.payments {
            payment.minimum_amount = "1".into();
            payment.expected_amount = "1".into();
        }
        let ends = [m.origin.about(), m.destination.about()];
        let family = |chain: &str| {
            let mut ends = ends.iter();
            ends.find(|about| about.name == chain)
                .map(|about| about.family)
        };
        let id = order.id(family).unwrap();
        Self {
            id,
            order: serde_json::to_value(&order).unwrap(),
            signature: signed(&eip191(id.as_slice())).await,
            own: true,
        }
    }

    /// A claim at random; `None` while there is nothing to claim.
    async fn any(&self, m: &Machine, rng: &mut Rng, elsewhere: bool) -> Option<Claim> {
        let kind = rng.choice(KINDS)?;
        let (deposits, payments) = seen(m);
        let payment = any(rng, &payments, self.id);
        if kind == ClaimKind::Again {
            return again(m, rng, payment);
        }
        let deposit = any(rng, &deposits, self.id)?;
        let onchain = onchain(m, elsewhere, deposit).await;
        let payment = payment.unwrap_or(deposit);
        Some(self.claim(kind, (deposit, onchain), payment).await)
    }

    /// A claim about this order with a deposit, its onchain id, and a payment.
    async fn claim(
        &self,
        kind: ClaimKind,
        (deposit, onchain): (&Seen, B256),
        payment: &Seen,
    ) -> Claim {
        let (route, outcome) = match kind {
            ClaimKind::GivenUp => return self.given_up().await,
            ClaimKind::Recovery => return self.recovery(deposit, onchain),
            ClaimKind::Refund => ("solver-refunds", "refund"),
            _ => ("solver-fills", "fill"),
        };
        let mut body = json!({
            "order": self.order, "orderSignature": self.signature,
            "inputs": [{
                "transactionId": deposit.transaction, "onchainId": onchain, "inputIndex": 0,
            }],
            "fill": { "transactionId": payment.transaction },
            "refunds": [{
                "transactionId": payment.transaction, "inputIndex": 0, "refundIndex": 0,
            }],
        });
        if self.own {
            let claim = id::claim(outcome, &[onchain], self.id);
            let word = signed(&eip191(claim.as_slice())).await;
            body["solverSignature"] = json!(word);
        }
        let forced = kind == ClaimKind::Forced;
        if forced {
            body["force"] = json!(true);
        }
        let names = |one: &Seen| one.order == Some(self.id);
        let may_be = self.own && names(deposit) && names(payment);
        Claim::at(route, body, forced || !may_be)
    }

    /// The stranger signs that the order's solver gives it up.
    async fn given_up(&self) -> Claim {
        let (chain, number, _) = CHAINS[2];
        let solver = self.order["solver"].as_str().unwrap();
        let message = NoFillOrRefund {
            chain_id: chain.into(),
            solver: solver.parse().unwrap(),
            order_id: self.id,
        };
        let digest = message.digest(&Domain::no_fill_or_refund(U256::from(number)));
        let signature = signed(&digest).await;
        let body = json!({
            "solverChainId": chain, "solver": solver, "orderId": self.id, "signature": signature,
        });
        Claim::at("signatures/no-fill-or-refund", body, !self.own)
    }

    /// What goes back while nobody was paid for it may be signed.
    fn recovery(&self, deposit: &Seen, onchain: B256) -> Claim {
        let body = json!({
            "chainId": self.order["inputs"][0]["payment"]["chainId"],
            "transactionId": deposit.transaction, "onchainId": onchain,
            "order": self.order, "orderSignature": self.signature,
        });
        Claim::at("recover", body, false)
    }
}

/// The stranger's signature of a digest.
async fn signed(digest: &B256) -> String {
    let signature = key(IMPOSTOR).sign(digest).await.unwrap();
    hex::encode_prefixed(signature.as_bytes())
}

/// All deposits, and all other payments.
fn seen(m: &Machine) -> (Vec<Seen>, Vec<Seen>) {
    let all = m.origin.seen().into_iter().chain(m.destination.seen());
    all.partition(|one| one.to == Party::Depository)
}

/// One of these at random, mostly one that names the order.
fn any<'a>(rng: &mut Rng, all: &'a [Seen], order: B256) -> Option<&'a Seen> {
    let named = all.iter().filter(|one| one.order == Some(order));
    let named: Vec<&Seen> = named.collect();
    let named = rng.choice(named).filter(|_| rng.u8(0..4) > 0);
    named.or_else(|| rng.choice(all))
}

/// The id of a deposit, as an oracle tells it; a guess while it does not.
async fn onchain(m: &Machine, elsewhere: bool, deposit: &Seen) -> B256 {
    let chain = m.origin.about().name;
    let body = json!({ "chainId": chain, "transactionId": deposit.transaction });
    let answer = m.claim(elsewhere, DEPOSITS, &body).await;
    let shown: Option<B256> = answer.and_then(|(_, answer)| {
        let shown = answer["messages"][0]["result"]["onchainId"].as_str()?;
        shown.parse().ok()
    });
    shown.unwrap_or_else(|| id::deterministic(&[chain, &deposit.transaction, "0"]))
}

/// What the solver has claimed, of its payment or of this one.
fn again(m: &Machine, rng: &mut Rng, payment: Option<&Seen>) -> Option<Claim> {
    let (path, mut body) = rng.choice(m.claimed())?;
    if let Some(payment) = payment.filter(|_| rng.bool()) {
        for pointer in PAYMENTS {
            if let Some(named) = body.pointer_mut(pointer) {
                *named = json!(payment.transaction);
            }
        }
    }
    let lie = false;
    Some(Claim { path, body, lie })
}

impl History {
    /// A stranger may write an order of his own, deposit for it and fill it; he claims.
    pub(super) async fn claim(&mut self, m: &mut Machine, rng: &mut Rng, victim: &Deal) {
        if rng.bool() {
            self.write(m, rng, victim).await;
        }
        self.claim_any(m, rng, victim).await;
    }

    async fn write(&mut self, m: &mut Machine, rng: &mut Rng, victim: &Deal) {
        let own = Promised::imitated(m, rng, victim).await;
        let mut deal = m.quote_stranger(victim.assets, OWN).await;
        deal.rename(own.id);
        self.sent.extend(m.send(Party::Stranger, &deal));
        let there = &m.destination;
        let little = Asset::Native.units(there.about(), DUST);
        let filled = there.give(Party::Recipient, little, own.id);
        m.note(format!("a stranger fills his own {}: {filled}", own.id));
        self.written.push(own);
    }

    /// Strangers claim once more when everything has ended.
    pub(super) async fn claim_last(&mut self, m: &Machine, rng: &mut Rng) {
        let deals: Vec<Deal> = self.deals.iter().map(|one| one.deal.clone()).collect();
        for deal in deals {
            self.claim_any(m, rng, &deal).await;
        }
    }

    async fn claim_any(&mut self, m: &Machine, rng: &mut Rng, victim: &Deal) {
        for _ in 0..CLAIMS {
            let own = rng.choice(&self.written).cloned();
            let own = own.filter(|_| rng.bool());
            let order = own.unwrap_or_else(|| Promised::of(victim));
            let elsewhere = rng.bool();
            let Some(claim) = order.any(m, rng, elsewhere).await else {
                continue;
            };
            let answer = m.claim(elsewhere, &claim.path, &claim.body).await;
            self.wrong
                .extend(answer.and_then(|answer| claim.fault(&answer)));
        }
    }
}

/// (e): the solver's payments that one of both oracles does not sign as the solver has claimed them.
pub(super) async fn unsigned(m: &Machine, payments: &Payments) -> Vec<String> {
    let paid = payments.all.iter().filter(|one| one.is_paid());
    let paid: Vec<&Seen> = paid.map(|one| &one.seen).collect();
    let claimed = m.claimed();
    // Another one's claim may hold a payment until it is shown its own.
    drop(refused(m, &claimed, &paid).await);
    refused(m, &claimed, &paid).await
}

async fn refused(m: &Machine, claimed: &[(String, Value)], paid: &[&Seen]) -> Vec<String> {
    let mut wrong = Vec::new();
    for payment in paid {
        let mut newest = claimed.iter().rev();
        let Some((path, body)) = newest.find(|(_, body)| pays(body, payment)) else {
            wrong.push(format!("(e) the solver has not claimed {payment:?}"));
            continue;
        };
        for elsewhere in [false, true] {
            let answer = m.claim(elsewhere, path, body).await;
            let is_signed = |(status, _): &Answer| status.is_success();
            if !answer.as_ref().is_some_and(is_signed) {
                let whose = if elsewhere { "the peer" } else { "the oracle" };
                wrong.push(format!("(e) {whose} signs no {payment:?}: {answer:?}"));
            }
        }
    }
    wrong
}

/// Whether a claim is about this payment.
fn pays(body: &Value, payment: &Seen) -> bool {
    let named = |pointer: &&str| body.pointer(pointer)?.as_str();
    let mut named = PAYMENTS.iter().filter_map(named);
    named.any(|transaction| transaction == payment.transaction)
}
