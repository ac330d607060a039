//! Who only talks: asks the API everything, asks both oracles what the solver asks its own, or uses a
//! key that may force.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    claims::nothing,
    clock,
    history::{Act, Deal, History, number},
    invariants::Violation,
    plan::Stranger,
    world::{FORCER, PEERS},
};

/// Seconds between two rounds.
const PAUSE: u64 = 9;

impl History {
    /// Asks whatever the API tells of the victim, and of everybody.
    pub async fn ask_around(&mut self, at: usize, round: u8, victim: &Deal) {
        let (request, user) = (victim.request, victim.account);
        let targets = [
            format!("/intents/status/v3?requestId={request}"),
            format!("/requests/v2?id={request}"),
            format!("/requests/v2?user={user}&limit=50"),
            format!("/requests/v3?requestId={request}"),
            "/requests/v3?limit=50".to_owned(),
            format!("/intents/status/v2?requestId={request}"),
            format!("/chains/health?chainId={}", number(victim.trade.from.0)),
            "/chains/liquidity?chainId=31001".to_owned(),
            "/config/v2".to_owned(),
        ];
        for target in &targets {
            if self.ask(Method::GET, target, &Value::Null).await.is_none() {
                break;
            }
        }
        if round < 16 {
            self.at(clock::seconds() + PAUSE, Act::Strike(at, round + 1));
        }
    }

    /// Asks both oracles what the solver has asked its own: they say the same, or nothing.
    pub async fn corroborate(&mut self, at: usize, round: u8) {
        let asked = self.world.asked.lock().unwrap().clone();
        // The newest, and others in turn.
        let turn = usize::from(round);
        let picked = [asked.last(), asked.get(turn % asked.len().max(1))];
        for (path, body) in picked.into_iter().flatten().cloned().collect::<Vec<_>>() {
            let (one, other) = (
                self.claim((false, Some(PEERS)), &path, &body).await,
                self.claim((true, Some(PEERS)), &path, &body).await,
            );
            if let (Some(one), Some(other)) = (signed(one), signed(other))
                && one != other
            {
                self.breaks(format!("two oracles sign {one} and {other} at {path}"));
            }
        }
        if round < 16 {
            self.at(clock::seconds() + PAUSE, Act::Strike(at, round + 1));
        }
    }

    /// Forces what is true, and what is not: only the first is signed, and is what would be without
    /// force; where the key may not force nothing is.
    pub async fn force_with_key(&mut self, stranger: &Stranger, round: u8, victim: &Deal) {
        let own = (false, Some(FORCER));
        let inputs: Vec<_> = self.deposited(victim, victim.account).into_iter().collect();
        let fill = self.paid(victim, victim.trade.to.0);
        let refund = self.paid(victim, victim.trade.from.0);
        let body = |inputs: &[Value], signature: &str| {
            json!({
                "order": victim.wire, "orderSignature": signature, "inputs": inputs,
                "fill": { "transactionId": fill.clone().unwrap_or_else(nothing) },
                "refunds": refunds(refund.clone()), "force": true,
            })
        };
        let route = |name: &str| format!("/attestations/{name}/v1");
        let route = match fill {
            None => route("solver-refunds"),
            Some(_) => route("solver-fills"),
        };
        let foreign = format!("0x{}1b", "5a".repeat(64));
        let lies = [
            (own, body(&[], &victim.signature)),
            (own, body(&inputs, &foreign)),
            ((true, Some(FORCER)), body(&inputs, &victim.signature)),
        ];
        for (whose, body) in &lies {
            let answer = self.claim(*whose, &route, body).await;
            if let Some(execution) = signed(answer) {
                self.breaks(format!("forced for nothing: {execution}"));
            }
        }
        let paid = fill.is_some() || refund.is_some();
        let told = match paid && !inputs.is_empty() {
            true => {
                self.claim(own, &route, &body(&inputs, &victim.signature))
                    .await
            }
            false => None,
        };
        if let Some((status, answer)) = &told {
            self.note(format!("forced: {status} {}", answer["code"]));
        }
        if signed(told).is_none() && round < 25 {
            let mut strangers = self.plan.strangers.iter();
            let at = strangers.position(|one| one.account == stranger.account);
            self.at(
                clock::seconds() + PAUSE,
                Act::Strike(at.unwrap(), round + 1),
            );
        }
    }

    /// Something that must never be was seen.
    fn breaks(&mut self, what: String) {
        self.broken.push(Violation {
            invariant: 'e',
            what,
        });
    }
}

fn refunds(transaction: Option<Arc<str>>) -> Value {
    let transaction = transaction.unwrap_or_else(nothing);
    json!([{ "transactionId": transaction, "inputIndex": 0, "refundIndex": 0 }])
}

/// What an answer lets the hub do.
fn signed(answer: Option<(StatusCode, Value)>) -> Option<Value> {
    let (status, answer) = answer?;
    let execution = &answer["execution"];
    let said = json!([execution["idempotencyKey"], execution["actions"]]);
    status.is_success().then_some(said)
}
