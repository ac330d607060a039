//! What depositors take back by themselves once everything is at rest: what nobody can be paid from at
//! once, the rest on the solver's word at the hub, or after seven days without anybody's. What was paid
//! for never goes back.

use std::collections::BTreeSet;

use alloy::{
    primitives::{B256, U256},
    sol_types::SolCall,
};
use serde_json::{Value, json};
use vm::{
    ChainId,
    protocol::{hub::alias, mapping},
};

use crate::{
    chain::abi,
    clock,
    history::{Deal, History, Who},
    invariants::{self, Violation},
    market::MAPPING,
    stored::{self, Placed},
};

/// Seconds after which a deposit goes back without its order, and some more.
const PATIENCE: u64 = 604_800 + 600;
/// Seconds until what was sent to the hub is final there.
const FINAL: u64 = 60;

/// A deposit, and the deal that it names.
type Left = (Deal, Placed);

/// (b) and (e) of a history that came to its end.
pub async fn check(history: &mut History) -> Vec<Violation> {
    if !history.plan.recovers || !history.rested {
        return Vec::new();
    }
    let mut wrong = Vec::new();
    let left = unpaid(history).await;
    for (deal, placed) in &left {
        let found = json!({ "chainId": placed.chain, "transactionId": placed.transaction });
        history
            .hand_in("depository-deposits", &found, deal.account)
            .await;
    }
    history.pass(FINAL).await;
    let at_once = asked(history, &left, true).await;
    let words = gives_word(history, &left).await;
    history.pass(FINAL).await;
    let given_up: Vec<Left> = left
        .iter()
        .filter(|(deal, _)| words.contains(&deal.order))
        .cloned()
        .collect();
    expect(
        &given_up,
        &asked(history, &given_up, true).await,
        "on the solver's word",
        &mut wrong,
    );
    history.skip(PATIENCE);
    history.pass(FINAL).await;
    let left = unpaid(history).await;
    let signed = asked(history, &left, false).await;
    expect(&left, &signed, "after seven days", &mut wrong);
    history.pass(FINAL).await;
    let signed: BTreeSet<B256> = signed.union(&at_once).copied().collect();
    wrong.extend(kept(history, &signed).await);
    wrong
}

/// Deposits that nobody was paid from, nor will be.
async fn unpaid(history: &History) -> Vec<Left> {
    let mut left = Vec::new();
    for (deal, placed) in deposits(history) {
        let used = is_paid(history, &deal, &placed).await;
        if !used && !is_gone(history, &placed) {
            left.push((deal, placed));
        }
    }
    left
}

fn deposits(history: &History) -> Vec<Left> {
    let chains = history.world.deposit_chains();
    let all = chains.flat_map(|(chain, _)| history.world.placed(chain));
    let foreign = history.rivals.values().map(|rival| &rival.deal);
    let foreign: Vec<&Deal> = foreign.filter(|deal| deal.of != Who::Rival).collect();
    let deal = |placed: &Placed| {
        let mut deals = history.deals.values().chain(foreign.iter().copied());
        deals.find(|deal| deal.order == placed.order).cloned()
    };
    all.filter_map(|placed| Some((deal(&placed)?, placed)))
        .collect()
}

/// Whether a payment was made for a deposit, or may be.
async fn is_paid(history: &History, deal: &Deal, placed: &Placed) -> bool {
    if let Some(rival) = history.rivals.get(&deal.of) {
        return rival.paid.contains_key(&placed.id);
    }
    let uses = stored::uses(&history.world, deal.request).await;
    uses.iter().any(|(_, deposit)| *deposit == placed.id)
}

fn is_gone(history: &History, placed: &Placed) -> bool {
    let relay = history.world.chain("relay").lock();
    let executed = &relay.state().executed;
    executed.contains(&stored::recovery(placed)) || executed.contains(&invariants::outcome(placed))
}

/// Asks both oracles; the deposits that both let go.
async fn asked(history: &History, left: &[Left], with_order: bool) -> BTreeSet<B256> {
    let mut signed = BTreeSet::new();
    for (deal, placed) in left {
        let mut body = json!({
            "chainId": placed.chain, "transactionId": placed.transaction, "onchainId": placed.id,
        });
        if with_order {
            body["order"] = deal.wire.clone();
            body["orderSignature"] = json!(deal.signature);
        }
        let mut both = true;
        for elsewhere in [false, true] {
            let path = "/attestations/recover/v1";
            let answer = history.claim((elsewhere, None), path, &body).await;
            both &= answer.is_some_and(|(status, _)| status.is_success());
        }
        if both {
            signed.insert(placed.id);
        }
    }
    signed
}

/// The operator leaves the solver's word for orders of which nothing was paid; those.
async fn gives_word(history: &History, left: &[Left]) -> BTreeSet<B256> {
    let mut words = BTreeSet::new();
    let solver = history.world.solver;
    let user = alias(
        &ChainId::new("alpha"),
        &vm::SETTLEMENT.address(&solver.to_string()).unwrap(),
    );
    // The other solver leaves none.
    for (deal, _) in left.iter().filter(|(deal, _)| !deal.is_of_another()) {
        let uses = stored::uses(&history.world, deal.request).await;
        let waits = stored::claim(&history.world, deal.request).await["pauses"]
            .as_array()
            .is_some_and(|pauses| !pauses.is_empty());
        if !uses.is_empty() || waits || !words.insert(deal.order) {
            continue;
        }
        let entry = mapping::no_fill_or_refund(&user.to_checksum(None), &deal.order.to_string());
        let entry = entry.unwrap();
        let call = abi::leaveCall {
            user: entry.user,
            id: entry.id,
        };
        let relay = history.world.chain("relay");
        relay.send(solver, MAPPING, U256::ZERO, call.abi_encode().into());
    }
    words
}

fn expect(left: &[Left], signed: &BTreeSet<B256>, when: &str, wrong: &mut Vec<Violation>) {
    for (deal, placed) in left {
        if !signed.contains(&placed.id) {
            let what = format!("{:?}: {placed:?} does not go back {when}", deal.of);
            wrong.push(Violation {
                invariant: 'b',
                what,
            });
        }
    }
}

/// What was paid for does not go back, and what goes back is not paid for.
async fn kept(history: &History, signed: &BTreeSet<B256>) -> Vec<Violation> {
    let mut wrong = Vec::new();
    for (deal, placed) in deposits(history) {
        if !is_paid(history, &deal, &placed).await {
            continue;
        }
        let body = json!({
            "chainId": placed.chain, "transactionId": placed.transaction, "onchainId": placed.id,
        });
        let path = "/attestations/recover/v1";
        let answer = history.claim((false, None), path, &body).await;
        let again = answer.is_some_and(|(status, _): (_, Value)| status.is_success());
        if again || signed.contains(&placed.id) {
            let what = format!("{:?}: {placed:?} is paid for and goes back", deal.of);
            wrong.push(Violation {
                invariant: 'e',
                what,
            });
        }
    }
    wrong
}

impl History {
    /// So much time in which nobody looks.
    fn skip(&mut self, seconds: u64) {
        clock::skip(seconds);
        for chain in &self.world.chains {
            chain.stand(seconds);
        }
        for ledger in &self.world.ledgers {
            ledger.stand(seconds);
        }
    }
}
