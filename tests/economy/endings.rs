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
    // A crash comes at another moment where more is written; gas is priced when it is looked at.
    let shifts = |weather: &Weather| matches!(weather, Weather::Crash(..) | Weather::Gas(..));
    plan.strangers.iter().all(|one| talk(&one.power))
        && !plan.weather.iter().any(|(_, weather)| shifts(weather))
}

/// From where on two texts differ.
fn difference(one: &str, other: &str) -> String {
    let pairs = one.bytes().zip(other.bytes());
    let same = pairs.take_while(|(one, other)| one == other).count();
    let from = |text: &str| -> String {
        let rest = text.chars().skip(same.saturating_sub(100));
        rest.take(400).collect()
    };
    format!("{}, and without strangers {}", from(one), from(other))
}

/// Whether a deposit is priced anew, and so depends on when prices were read.
fn is_repriced(plan: &Plan, at: usize) -> bool {
    plan.honest[at].pause > 50
}

/// Whether both are good ends of a deposit that came late: its price depends on when prices were read,
/// and so on who else asked for some.
fn is_late(plan: &Plan, at: usize, one: &str, other: &str) -> bool {
    let end = |status: &str| matches!(status, "success" | "refund");
    is_repriced(plan, at)
        && plan.strangers.iter().any(|one| one.has_own_order())
        && end(one)
        && end(other)
}

/// (c): everybody else's ending is the same without the strangers. Who buys what a limit leaves pays
/// for it.
pub fn compare(plan: &Plan, with: &Endings, without: &Endings) -> Vec<Violation> {
    let mut wrong = Vec::new();
    if plan.cap.is_some() && plan.strangers.iter().any(|one| one.has_own_order()) {
        return wrong;
    }
    for (at, ending) in without {
        let other = with.get(at);
        let status = other.map_or("nothing", |other| other.status.as_str());
        // What a feed told is remembered for some seconds, and whoever asks again then is quoted.
        let lies = |(_, weather): &(u64, Weather)| matches!(weather, Weather::Feed(..));
        if other.is_none() && plan.weather.iter().any(lies) {
            continue;
        }
        let mut violation = |what| {
            wrong.push(Violation {
                invariant: 'c',
                what,
            });
        };
        if is_late(plan, *at, status, &ending.status) {
            continue;
        }
        if status != ending.status {
            let before = &ending.status;
            violation(format!(
                "honest {at} ends in {status}, and in {before} without strangers"
            ));
        } else if only_talk(plan) && !is_repriced(plan, *at) && other != Some(ending) {
            let other = other.map(|other| other.public.to_string());
            let other = other.unwrap_or_default();
            let what = difference(&other, &ending.public.to_string());
            violation(format!("honest {at} reads {what}"));
        }
    }
    wrong
}
