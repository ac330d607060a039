//! The three versions of the status body (guide: protocol 11.6).

use serde::Serialize;
use utoipa::ToSchema;
use vm::protocol::limits;

use crate::format;

use super::{
    Execution, Request,
    fact::{Attempt, Deposit, Ending, Facts, Purpose, Standing, State},
    reason::{FailReason, RefundFailReason},
    status::{self, Status, Verdict},
    tx_details::{SHOWN, paying_first},
    words,
};

/// `GET /intents/status/v3`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StatusV3)]
pub struct V3 {
    #[schema(schema_with = words::states)]
    status: &'static str,
    #[serde(flatten)]
    body: Body,
    /// Unix milliseconds of the last change.
    updated_at: u64,
    /// Unix milliseconds.
    quote_created_at: u64,
}

/// `GET /intents/status/v2`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StatusV2)]
pub struct V2 {
    #[schema(schema_with = words::second_states)]
    status: &'static str,
    #[serde(flatten)]
    body: Body,
    /// Unix milliseconds of the last change.
    time: u64,
    /// Unix milliseconds.
    quote_created_at: u64,
}

/// `GET /intents/status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StatusV1)]
pub struct V1 {
    #[schema(schema_with = words::first_states)]
    status: &'static str,
    #[serde(flatten)]
    body: Body,
    /// Unix milliseconds of the last change.
    time: u64,
}

/// What all versions tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StatusBody)]
struct Body {
    /// How deposits are recovered that are neither filled nor given back.
    details: Option<String>,
    in_tx_hashes: Vec<String>,
    tx_hashes: Vec<String>,
    origin_chain_id: u64,
    destination_chain_id: u64,
    /// Why it failed or was refunded; `N/A` otherwise.
    #[schema(value_type = String)]
    fail_reason: Reason<FailReason>,
    /// Why there was no refund; `N/A` otherwise.
    #[schema(value_type = String)]
    refund_fail_reason: Reason<RefundFailReason>,
    success: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Reason<T> {
    Known(T),
    None(&'static str),
}

/// The current version.
pub fn v3(request: &Request, facts: &Facts) -> V3 {
    let verdict = status::of(request, facts);
    V3 {
        status: verdict.status.text(),
        body: body(request, facts, verdict),
        updated_at: updated_at(request, facts),
        quote_created_at: request.created_at,
    }
}

/// Without `submitted`.
pub fn v2(request: &Request, facts: &Facts) -> V2 {
    let verdict = status::of(request, facts);
    V2 {
        status: match verdict.status {
            Status::Submitted => Status::Pending.text(),
            other => other.text(),
        },
        body: body(request, facts, verdict),
        time: updated_at(request, facts),
        quote_created_at: request.created_at,
    }
}

/// The five words of the first version: `received` is a deposit that was seen, `fallback` a refund.
pub fn v1(request: &Request, facts: &Facts) -> V1 {
    let verdict = status::of(request, facts);
    V1 {
        status: match verdict.status {
            Status::Waiting => "pending",
            Status::Depositing | Status::Pending if facts.standing().next().is_some() => "received",
            Status::Depositing | Status::Pending | Status::Submitted => "pending",
            Status::Success => "success",
            Status::Failure => "failure",
            Status::Refund => "fallback",
        },
        body: body(request, facts, verdict),
        time: updated_at(request, facts),
    }
}

fn body(request: &Request, facts: &Facts, verdict: Verdict) -> Body {
    Body {
        details: recovery(facts),
        in_tx_hashes: incoming(request, facts),
        tx_hashes: outgoing(request, facts),
        origin_chain_id: request.origin.chain,
        destination_chain_id: request.destination.chain,
        fail_reason: reason(verdict.fail_reason),
        refund_fail_reason: reason(verdict.refund_fail_reason),
        success: verdict.status == Status::Success,
    }
}

/// Route of the oracles through which a depositor takes back what nobody gives back.
pub(super) const RECOVER: &str = "/attestations/recover/v1";
/// Seconds after a deposit from which that needs no signature of the solver's (guide: protocol 7.6).
const UNSIGNED: u64 = 604_800;

/// The deposits that are neither filled nor given back, with why and from when on (unix seconds) their
/// depositors can take them back.
pub(super) fn left(facts: &Facts) -> impl Iterator<Item = (&Deposit, &Ending, u64)> {
    let left = facts
        .endings
        .iter()
        .filter(|ending| !ending.minor && ending.refused.is_some());
    left.filter_map(move |ending| {
        let mut all = facts.standing();
        let deposit = all.find(|deposit| deposit.onchain_id == ending.deposit)?;
        Some((deposit, ending, deposit.place.time.saturating_add(UNSIGNED)))
    })
}

/// Why no oracle gives a deposit back through the hub; `None`: oracles do.
pub(super) fn stuck(deposit: &Deposit) -> Option<String> {
    let together = deposit.together;
    if deposit.standing != Standing::Final {
        let why = "no quorum of its chain's providers agrees about it";
        return Some(why.to_owned());
    }
    let fits = limits::fits(usize::try_from(together).unwrap_or(usize::MAX));
    let why = format!("its transaction holds {together} deposits, more than the hub takes at once");
    fits.is_err().then_some(why)
}

/// Whether no claim can name a deposit, so that an order's solver is never paid from it.
fn unclaimable(deposit: &Deposit, ending: &Ending) -> bool {
    let other = matches!(
        ending.reason,
        FailReason::DepositChainMismatch | FailReason::IncorrectDepositCurrency
    );
    deposit.named_by_other || other
}

/// How what was not given back is recovered, in words.
fn recovery(facts: &Facts) -> Option<String> {
    let shown = left(facts).map(|(deposit, ending, from)| {
        let end = match stuck(deposit) {
            Some(why) => format!("{why}; the operator has it listed"),
            None => {
                let from = format::iso(from.saturating_mul(1_000));
                let sooner = match unclaimable(deposit, ending) {
                    true => "at once with its order and the signature of that, else ",
                    false => "",
                };
                format!("its depositor recovers it at an oracle's {RECOVER} {sooner}from {from} on")
            }
        };
        let (id, network) = (deposit.onchain_id, &deposit.network);
        format!("deposit {id} on {network} is not given back: {end}")
    });
    let shown: Vec<_> = shown.collect();
    (!shown.is_empty()).then(|| shown.join("; "))
}

pub(super) fn reason<T>(reason: Option<T>) -> Reason<T> {
    reason.map_or(Reason::None("N/A"), Reason::Known)
}

pub(super) fn updated_at(request: &Request, facts: &Facts) -> u64 {
    facts.updated_at.max(request.created_at)
}

/// The user's transactions, each once; not what strangers deposited beside them.
pub(super) fn incoming(request: &Request, facts: &Facts) -> Vec<String> {
    let speaks = |deposit: &&Deposit| status::speaks(request, facts, deposit);
    let deposits = facts.standing().filter(speaks);
    let deposits = deposits.map(|deposit| &deposit.transaction);
    match request.execution {
        Execution::Solver => each_once(sighted(facts).chain(deposits)),
        Execution::User => each_once(own(facts).chain(deposits)),
    }
}

/// What is [`paying`]; the user's own where nobody else acts.
pub(super) fn outgoing(request: &Request, facts: &Facts) -> Vec<String> {
    if request.execution == Execution::User {
        return each_once(own(facts));
    }
    let paying = paying(request, facts).into_iter();
    each_once(paying.map(|attempt| &attempt.transaction))
}

/// The solver's transactions that pay the recipient, or, where none may, pay back what was not a stranger's.
pub(super) fn paying<'a>(request: &Request, facts: &'a Facts) -> Vec<&'a Attempt> {
    let fills: Vec<_> = facts.alive(Purpose::Fill).collect();
    if !fills.is_empty() {
        return fills;
    }
    let back = [Purpose::Refund, Purpose::Excess].into_iter();
    let back = back.flat_map(|purpose| facts.alive(purpose));
    back.filter(|attempt| !is_strangers(request, facts, attempt))
        .collect()
}

/// The deposit that counts: the one that what is [`paying`] uses up or gives back, what is in a block first; else the
/// first standing one, as in [`paying_first`].
pub(super) fn counting<'a>(request: &Request, facts: &'a Facts) -> Option<&'a Deposit> {
    let mut paying = paying(request, facts);
    paying.sort_by_key(|attempt| attempt.state.place().is_none());
    let named = paying.iter().find_map(|attempt| {
        let mut all = facts.standing();
        all.find(|deposit| Some(deposit.onchain_id) == attempt.deposit)
    });
    let first = || {
        let mut all = paying_first(request, facts);
        all.find(|deposit| deposit.standing != Standing::Reorged)
    };
    named.or_else(first)
}

/// Whether it gives back what somebody deposited beside the user.
pub(super) fn is_strangers(request: &Request, facts: &Facts, attempt: &Attempt) -> bool {
    let mut deposits = facts.deposits.iter();
    let deposit = deposits.find(|deposit| Some(deposit.onchain_id) == attempt.deposit);
    deposit.is_some_and(|deposit| !status::speaks(request, facts, deposit))
}

/// The user's transactions that wait for a block.
fn sighted(facts: &Facts) -> impl Iterator<Item = &String> {
    let own = facts.own.iter();
    let own = own.filter(|sent| sent.state == State::Broadcast);
    own.map(|sent| &sent.transaction)
}

fn own(facts: &Facts) -> impl Iterator<Item = &String> {
    let there = facts
        .own
        .iter()
        .filter(|sent| sent.state != State::Replaced);
    there.map(|sent| &sent.transaction)
}

fn each_once<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::new();
    for one in all {
        if once.len() < SHOWN && !once.contains(one) {
            once.push(one.clone());
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use alloy::primitives::U256;
    use serde_json::{Value, json};

    use super::*;
    use crate::request::fixtures::{self, attempt, deposit, sent};

    fn body(status: &str, ins: Value, outs: Value) -> Value {
        json!({
            "status": status, "details": null, "inTxHashes": ins, "txHashes": outs,
            "originChainId": 31_001, "destinationChainId": 31_002, "failReason": "N/A",
            "refundFailReason": "N/A", "success": status == "success",
        })
    }

    fn with(mut body: Value, more: Value) -> Value {
        let more = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(more);
        body
    }

    #[test]
    fn a_quote_waits_since_it_was_given() {
        let (request, facts) = (fixtures::request(1), Facts::default());
        let created = request.created_at;
        let waiting = body("waiting", json!([]), json!([]));
        let v3_body = json!({"updatedAt": created, "quoteCreatedAt": created});
        assert_eq!(
            serde_json::to_value(v3(&request, &facts)).unwrap(),
            with(waiting.clone(), v3_body)
        );
        let v2_body = json!({"time": created, "quoteCreatedAt": created});
        assert_eq!(
            serde_json::to_value(v2(&request, &facts)).unwrap(),
            with(waiting, v2_body)
        );
        assert_eq!(
            serde_json::to_value(v1(&request, &facts)).unwrap(),
            with(
                body("pending", json!([]), json!([])),
                json!({"time": created})
            )
        );
    }

    #[test]
    fn every_version_says_it_in_its_words() {
        let request = fixtures::request(1);
        let fill = |state| vec![attempt(Purpose::Fill, state)];
        let refund = |state| vec![attempt(Purpose::Refund, state)];
        let place = fixtures::place(9);
        let cases = [
            (vec![], ["pending", "pending", "received"]),
            (fill(State::Broadcast), ["submitted", "pending", "pending"]),
            (
                fill(State::Confirmed(place.clone())),
                ["success", "success", "success"],
            ),
            (
                refund(State::Confirmed(place)),
                ["refund", "refund", "fallback"],
            ),
        ];
        for (attempts, words) in cases {
            let back = attempts.iter().any(|one| one.purpose == Purpose::Refund);
            let facts = Facts {
                deposits: vec![deposit(1, Standing::Final)],
                failure: back.then_some(FailReason::Slippage),
                attempts,
                updated_at: request.created_at + 5,
                ..Facts::default()
            };
            let shown = [
                v3(&request, &facts).status,
                v2(&request, &facts).status,
                v1(&request, &facts).status,
            ];
            assert_eq!(shown, words);
            assert_eq!(v3(&request, &facts).updated_at, request.created_at + 5);
        }
        let failed = Facts {
            refund_failure: Some(RefundFailReason::AmountTooLowToRefund),
            failure: Some(FailReason::Slippage),
            deposits: vec![deposit(1, Standing::Final)],
            ..Facts::default()
        };
        let shown = serde_json::to_value(v3(&request, &failed)).unwrap();
        assert_eq!(shown["status"], "failure");
        assert_eq!(shown["failReason"], "SLIPPAGE");
        assert_eq!(shown["refundFailReason"], "AMOUNT_TOO_LOW_TO_REFUND");
        assert_eq!(v1(&request, &failed).status, "failure");
    }

    #[test]
    fn transactions_are_told_once_while_they_count() {
        let request = fixtures::request(1);
        let mut twice = deposit(2, Standing::Included);
        twice.transaction = deposit(1, Standing::Final).transaction;
        let mut replaced = attempt(Purpose::Fill, State::Replaced);
        replaced.transaction = "0xdead".into();
        let facts = Facts {
            deposits: vec![
                deposit(1, Standing::Final),
                twice,
                deposit(3, Standing::Reorged),
            ],
            attempts: vec![replaced, attempt(Purpose::Fill, State::Broadcast)],
            ..Facts::default()
        };
        let shown = serde_json::to_value(v3(&request, &facts)).unwrap();
        let transaction = deposit(1, Standing::Final).transaction;
        assert_eq!(shown["inTxHashes"], json!([transaction]));
        assert_eq!(shown["txHashes"], json!(["0xf111"]));
    }

    #[test]
    fn clients_are_told_fills_or_what_went_back_to_the_user() {
        let request = fixtures::request(1);
        let mut strangers = deposit(2, Standing::Final);
        (strangers.own, strangers.amount) = (false, U256::from(1));
        let of = |deposit: Option<&Deposit>, transaction: &str| Attempt {
            deposit: deposit.map(|one| one.onchain_id),
            transaction: transaction.into(),
            ..attempt(Purpose::Refund, State::Broadcast)
        };
        let users = deposit(1, Standing::Final);
        let back = vec![of(Some(&strangers), "0x2"), of(Some(&users), "0x1")];
        // Older rows do not say whose it was.
        let old = vec![of(None, "0x2")];
        let filled = |state| [back.clone(), vec![attempt(Purpose::Fill, state)]].concat();
        for (attempts, told) in [
            (back.clone(), json!(["0x1"])),
            (back[..1].to_vec(), json!([])),
            (old, json!(["0x2"])),
            (filled(State::Broadcast), json!(["0xf111"])),
            (filled(State::Replaced), json!(["0x1"])),
        ] {
            let facts = Facts {
                deposits: vec![users.clone(), strangers.clone()],
                attempts,
                ..Facts::default()
            };
            let shown = serde_json::to_value(v3(&request, &facts)).unwrap();
            assert_eq!(shown["txHashes"], told, "{:?}", facts.attempts);
        }
    }

    #[test]
    fn no_route_is_named_that_gives_nothing_back() {
        let request = fixtures::request(1);
        let shown = |change: fn(&mut Deposit)| {
            let mut deposit = deposit(1, Standing::Final);
            change(&mut deposit);
            let mut facts = Facts::default();
            facts.end(Ending {
                deposit: deposit.onchain_id,
                reason: FailReason::Unknown,
                refused: Some(RefundFailReason::ManualRefundRequired),
                minor: false,
            });
            facts.deposits.push(deposit);
            let shown = serde_json::to_value(v3(&request, &facts)).unwrap();
            shown["details"].as_str().unwrap().to_owned()
        };
        let full = shown(|deposit| deposit.together = limits::ACTIONS as u32);
        assert!(full.contains(RECOVER), "{full}");
        let crowded = shown(|deposit| deposit.together = 1 + limits::ACTIONS as u32);
        let wanted = "its transaction holds 151 deposits, more than the hub takes at once; the operator has it listed";
        assert!(
            crowded.ends_with(wanted) && !crowded.contains(RECOVER),
            "{crowded}"
        );
        let doubtful = shown(|deposit| deposit.standing = Standing::Included);
        let wanted =
            "no quorum of its chain's providers agrees about it; the operator has it listed";
        assert!(
            doubtful.ends_with(wanted) && !doubtful.contains(RECOVER),
            "{doubtful}"
        );
    }

    #[test]
    fn what_no_claim_can_name_is_recovered_at_once() {
        let request = fixtures::request(1);
        let shown = |reason, named_by_other| {
            let deposit = Deposit {
                named_by_other,
                ..deposit(1, Standing::Final)
            };
            // At the latest after seven days.
            let from = format::iso((deposit.place.time + 7 * 86_400) * 1_000);
            let mut facts = Facts::default();
            facts.end(Ending {
                deposit: deposit.onchain_id,
                reason,
                refused: Some(RefundFailReason::ManualRefundRequired),
                minor: false,
            });
            facts.deposits.push(deposit);
            let shown = serde_json::to_value(v3(&request, &facts)).unwrap();
            let shown = shown["details"].as_str().unwrap();
            assert!(shown.contains(RECOVER), "{shown}");
            assert!(shown.contains(&format!("from {from} on")), "{shown}");
            shown.contains("at once with its order and the signature of that")
        };
        for (reason, named_by_other, at_once) in [
            (FailReason::IncorrectDepositCurrency, false, true),
            (FailReason::DepositChainMismatch, false, true),
            (FailReason::Unknown, true, true),
            (FailReason::DepositedAmountTooLowToFill, false, false),
            (FailReason::DoubleSpend, false, false),
        ] {
            let found = shown(reason, named_by_other);
            assert_eq!(found, at_once, "{reason:?} {named_by_other}");
        }
    }

    #[test]
    fn a_transaction_that_does_everything_goes_in_and_out() {
        let mut request = fixtures::request(1);
        request.execution = Execution::User;
        let facts = Facts {
            own: vec![
                sent("0x0", State::Replaced),
                sent("0x1", State::Included(fixtures::place(1))),
            ],
            ..Facts::default()
        };
        let shown = serde_json::to_value(v3(&request, &facts)).unwrap();
        assert_eq!(shown["status"], "success");
        assert_eq!(
            (&shown["inTxHashes"], &shown["txHashes"]),
            (&json!(["0x1"]), &json!(["0x1"]))
        );
    }
}
