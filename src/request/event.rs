//! What is told of a request when its status changes (guide: protocol 11.15 and 11.16).
//! Webhooks and sockets send the same data; it is written once, when the change is committed.

use std::borrow::Cow;

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};

use super::{
    Execution, Request,
    fact::{Attempt, Facts, State},
    reason::{FailReason, RefundFailReason},
    render::{self, Reason},
    status::{self, Status},
};

/// The only kind of event there is.
pub const KIND: &str = "request.status.updated";

/// A change of a request's status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub request: B256,
    /// The label of the key that asked for the quote.
    pub key: Option<String>,
    /// Which change of the request's facts it tells: [`Facts::version`]. Of two events of one request
    /// the newer has the higher.
    pub version: u64,
    /// Unix milliseconds.
    pub at: u64,
    /// The event's `data` without its referrer: compact JSON that JavaScript would write back byte for
    /// byte, because receivers verify what they re-stringified.
    pub data: String,
    /// Whom the quote was asked for by: told to nobody but the key's owner.
    pub referrer: Option<String>,
}

/// Where `data` has no referrer. Texts in `data` cannot look like it: their quotes are escaped.
const HIDDEN: &str = r#""referrer":null"#;

impl Event {
    /// The body of a webhook; `own`: it goes to the owner of the event's key.
    pub fn body(&self, own: bool) -> String {
        let (at, data) = (self.at, self.data_for(own));
        format!(r#"{{"event":"{KIND}","timestamp":{at},"data":{data}}}"#)
    }

    /// What a socket says; as [`Event::body`].
    pub fn message(&self, own: bool) -> String {
        let (at, data) = (self.at, self.data_for(own));
        format!(r#"{{"event":"{KIND}","data":{data},"publishedAt":{at}}}"#)
    }

    fn data_for(&self, own: bool) -> Cow<'_, str> {
        let Some(referrer) = self.referrer.as_ref().filter(|_| own) else {
            return Cow::Borrowed(&self.data);
        };
        // A text can always be written.
        let text = serde_json::to_string(referrer).unwrap_or_default();
        let shown = format!(r#""referrer":{text}"#);
        Cow::Owned(self.data.replacen(HIDDEN, &shown, 1))
    }
}

/// The event of facts that changed, if the status or a reason did. A quote that nobody has acted on
/// is none.
pub fn of(request: &Request, before: &Facts, after: &Facts) -> Option<Event> {
    let changed = status::of(request, before) != status::of(request, after);
    changed.then(|| now(request, after))
}

/// Where a request stands, told as an event.
pub fn now(request: &Request, facts: &Facts) -> Event {
    let data = data(request, facts);
    Event {
        request: request.id,
        key: request.api_key.clone(),
        version: facts.version,
        at: data.updated_at,
        // Strings and numbers cannot fail to be written.
        data: serde_json::to_string(&data).unwrap_or_default(),
        referrer: request.referrer.clone(),
    }
}

/// Whether there may never be an event of it: no solver has a part in it, and nobody has said which transaction of the
/// user's it is. No chain shows that.
pub fn may_never_come(request: &Request, facts: &Facts) -> bool {
    request.execution == Execution::User && status::of(request, facts).status == Status::Waiting
}

/// Fields in the order of the guide's protocol 11.15. No number is above 2^53, no key looks like one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    status: &'static str,
    in_tx_hashes: Vec<String>,
    tx_hashes: Vec<String>,
    updated_at: u64,
    origin_chain_id: u64,
    destination_chain_id: u64,
    /// Always null: requests with a deposit address come with another feature.
    deposit_address: Option<()>,
    request_id: B256,
    /// Always null: see [`Event::referrer`].
    referrer: Option<()>,
    details: Option<Details<'a>>,
    fail_reason: Reason<FailReason>,
    refund_fail_reason: Reason<RefundFailReason>,
}

/// The transaction of the solver's that failed last, and what it said.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details<'a> {
    failed_tx_hash: &'a str,
    revert_reason: Option<&'a str>,
}

fn data<'a>(request: &'a Request, facts: &'a Facts) -> Data<'a> {
    let verdict = status::of(request, facts);
    Data {
        status: verdict.status.text(),
        in_tx_hashes: render::incoming(request, facts),
        tx_hashes: render::outgoing(request, facts),
        updated_at: render::updated_at(request, facts),
        origin_chain_id: request.origin.chain,
        destination_chain_id: request.destination.chain,
        deposit_address: None,
        request_id: request.id,
        referrer: None,
        details: facts.attempts.iter().rev().find_map(details),
        fail_reason: render::reason(verdict.fail_reason),
        refund_fail_reason: render::reason(verdict.refund_fail_reason),
    }
}

fn details(attempt: &Attempt) -> Option<Details<'_>> {
    match &attempt.state {
        State::Reverted { reason, .. } => Some(Details {
            failed_tx_hash: &attempt.transaction,
            revert_reason: reason.as_deref(),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::request::{
        fact::{Purpose, Standing},
        fixtures::{self, attempt, deposit},
    };

    fn deposited() -> Facts {
        Facts {
            deposits: vec![deposit(1, Standing::Included)],
            updated_at: 1_700_000_000_007,
            ..Facts::default()
        }
    }

    #[test]
    fn a_deposit_is_told_in_the_words_of_the_interface() {
        let mut request = fixtures::request(1);
        request.referrer = Some("caf\u{e9}/\"x\"\u{2028}".into());
        request.api_key = Some("app".into());
        let event = of(&request, &Facts::default(), &deposited()).unwrap();
        let parsed: Value = serde_json::from_str(&event.body(true)).unwrap();
        let wanted = json!({
            "event": "request.status.updated", "timestamp": 1_700_000_000_007_u64,
            "data": {
                "status": "pending", "inTxHashes": [deposit(1, Standing::Included).transaction],
                "txHashes": [], "updatedAt": 1_700_000_000_007_u64, "originChainId": 31_001,
                "destinationChainId": 31_002, "depositAddress": null, "requestId": request.id,
                "referrer": request.referrer, "details": null, "failReason": "N/A",
                "refundFailReason": "N/A",
            },
        });
        assert_eq!(parsed, wanted);
        assert_eq!(event.key.as_deref(), Some("app"));
        assert!(
            event.body(true).contains("caf\u{e9}/\\\"x\\\"\u{2028}"),
            "escaped too much"
        );
        let said: Value = serde_json::from_str(&event.message(true)).unwrap();
        assert_eq!(said["data"], wanted["data"]);
        assert_eq!(said["publishedAt"], wanted["timestamp"]);
    }

    #[test]
    fn a_referrer_is_told_to_its_owner_only() {
        let mut request = fixtures::request(1);
        request.referrer = Some(r#""referrer":null"#.into());
        let mut facts = deposited();
        let reason = Some(r#""referrer":null"#.to_owned());
        let place = fixtures::place(3);
        facts.attempts = vec![attempt(Purpose::Fill, State::Reverted { place, reason })];
        let event = now(&request, &facts);
        for (own, wanted) in [(true, json!(request.referrer)), (false, Value::Null)] {
            for text in [event.body(own), event.message(own)] {
                let parsed: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(parsed["data"]["referrer"], wanted);
                let reverted = &parsed["data"]["details"]["revertReason"];
                assert_eq!(reverted, r#""referrer":null"#);
            }
        }
    }

    #[test]
    fn only_a_change_of_the_verdict_is_an_event() {
        let request = fixtures::request(1);
        let mut deeper = deposited();
        deeper.deposits[0].standing = Standing::Final;
        assert_eq!(of(&request, &deposited(), &deeper), None);
        assert_eq!(of(&request, &Facts::default(), &Facts::default()), None);
        let mut filled = deeper.clone();
        filled.attempts = vec![attempt(Purpose::Fill, State::Broadcast)];
        assert!(of(&request, &deeper, &filled).is_some());
    }

    #[test]
    fn what_the_user_does_alone_may_never_be_told() {
        let solved = fixtures::request(1);
        let mut own = solved.clone();
        own.execution = Execution::User;
        assert!(may_never_come(&own, &Facts::default()));
        assert!(!may_never_come(&solved, &Facts::default()));
        let place = fixtures::place(3);
        for state in [
            State::Broadcast,
            State::Included(place.clone()),
            State::Confirmed(place.clone()),
            State::Reverted {
                place,
                reason: None,
            },
        ] {
            let known = Facts {
                own: vec![fixtures::sent("0x05", state)],
                ..Facts::default()
            };
            assert!(!may_never_come(&own, &known), "{known:?}");
        }
    }

    #[test]
    fn a_revert_is_told_with_what_it_said() {
        let place = fixtures::place(3);
        let reason = Some("too late".to_owned());
        let facts = Facts {
            attempts: vec![attempt(Purpose::Fill, State::Reverted { place, reason })],
            ..deposited()
        };
        let event = now(&fixtures::request(1), &facts);
        let parsed: Value = serde_json::from_str(&event.data).unwrap();
        let wanted = json!({"failedTxHash": "0xf111", "revertReason": "too late"});
        assert_eq!(parsed["details"], wanted);
    }
}
