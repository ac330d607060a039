//! How requests end, with strangers and without them.

use std::collections::BTreeMap;

use hyper::Method;
use serde_json::{Value, json};

use crate::{
    books,
    history::{Deal, History, Who},
    invariants::Violation,
    plan::{Extra, Plan, Power, Weather},
};

/// How a request ended for its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub status: String,
    /// What everybody is told of it: the record, and its events.
    pub public: Value,
}

/// By honest user.
pub type Endings = BTreeMap<usize, Ending>;

/// How a request ended, as its user sees it.
pub async fn status(history: &History, deal: &Deal) -> String {
    let target = format!("/intents/status/v3?requestId={}", deal.request);
    let answer = history.ask(Method::GET, &target, &Value::Null).await;
    let status = answer.map_or(Value::Null, |(_, body)| body["status"].clone());
    let status = status.as_str().unwrap_or("none").to_owned();
    let got = history.world.chain(deal.trade.to.0).lock();
    let got = got.state().balance(deal.recipient, deal.trade.to.1);
    match status.as_str() {
        "success" if got.is_zero() && deal.trade.extra == Extra::Nothing => {
            "success without a payment".into()
        }
        _ => status,
    }
}

/// How every honest request ended.
pub async fn all(history: &History) -> Endings {
    let mut all = Endings::new();
    for deal in history.deals.values() {
        let Who::Honest(at) = deal.of else { continue };
        let target = format!("/requests/v2?id={}", deal.request);
        let record = history.ask(Method::GET, &target, &Value::Null).await;
        let record = record.map_or(Value::Null, |(_, record)| record);
        let events = books::events(&history.world, deal.request).await;
        let mut public = json!({ "record": record, "events": events });
        timeless(&mut public);
        let ending = Ending {
            status: status(history, deal).await,
            public,
        };
        all.insert(at, ending);
    }
    all
}

/// Leaves out when things were seen: whoever tells of a transaction has the index look sooner.
fn timeless(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !matches!(name.as_str(), "updatedAt" | "timestamp" | "block"));
            fields.values_mut().for_each(timeless);
        }
        Value::Array(values) => values.iter_mut().for_each(timeless),
        _ => {}
    }
}

/// Whether these strangers must not be seen at all: they only talk.
fn only_talk(plan: &Plan) -> bool {
    let talk = |power: &Power| matches!(power, Power::Teller | Power::Forcer);
    // A crash comes at another moment where more is written.
    let crash = |weather: &Weather| matches!(weather, Weather::Crash(..));
    plan.strangers.iter().all(|one| talk(&one.power))
        && !plan.weather.iter().any(|(_, weather)| crash(weather))
}

/// Whether both are good ends of a deposit that came late: its price depends on when prices were read,
/// and so on who else asked for some.
fn is_late(plan: &Plan, at: usize, one: &str, other: &str) -> bool {
    let end = |status: &str| matches!(status, "success" | "refund");
    plan.honest[at].pause > 50
        && plan.strangers.iter().any(|one| one.has_own_order())
        && end(one)
        && end(other)
}

/// (c): everybody else's ending is the same without the strangers. Who buys what a limit leaves pays
/// for it. Nothing ends that nobody deposited for.
pub fn compare(plan: &Plan, with: &Endings, without: &Endings) -> Vec<Violation> {
    let mut wrong = Vec::new();
    if plan.cap.is_some() && plan.strangers.iter().any(|one| one.has_own_order()) {
        return wrong;
    }
    for (at, ending) in without {
        let other = with.get(at);
        let status = other.map_or("nothing", |other| other.status.as_str());
        let mut violation = |what| {
            wrong.push(Violation {
                invariant: 'c',
                what,
            })
        };
        if ending.status == "waiting" || is_late(plan, *at, status, &ending.status) {
            continue;
        }
        if status != ending.status {
            let before = &ending.status;
            violation(format!(
                "honest {at} ends in {status}, and in {before} without strangers"
            ));
        } else if only_talk(plan) && other != Some(ending) {
            let other = other.map(|other| &other.public);
            let other = other.map(Value::to_string).unwrap_or_default();
            let public = &ending.public;
            violation(format!(
                "honest {at} reads {other}, and without strangers {public}"
            ));
        }
    }
    wrong
}
