//! How requests end, with strangers and without them.

use std::{collections::BTreeMap, slice};

use alloy::primitives::{Address, U256};
use hyper::Method;
use serde_json::{Value, json};

use crate::{
    chain::provider::Manners,
    history::{Deal, History, Who},
    invariants::Violation,
    market::CHAINS,
    plan::{Extra, Plan, Power, Stranger, Weather},
    stored,
};

/// The status of who asked for a quote while feeds did not tell the same.
const DOUBTED: &str = "doubted";

const MILLION: u64 = 1_000_000;

/// How a request ended for its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub status: String,
    /// Unix seconds.
    pub quoted: u64,
    /// When its user deposited, and when the chain of the deposits had a reorg (unix seconds).
    moments: [Vec<u64>; 2],
    /// It waited when it could have been decided.
    waited: bool,
    /// What everybody is told of it: the record, and its events.
    pub public: Value,
    /// The same in words, without what depends on when something was sent.
    told: Vec<String>,
    /// The recipient's balance of the wanted currency; the user's of the deposited one, and of the wanted one.
    has: [U256; 3],
    /// What the order wants deposited.
    asked: U256,
    /// The recipient's balance of the deposited currency: deposits are given back to him.
    back: U256,
}

impl Ending {
    /// The same, whenever what led to it happened.
    fn timeless(&self) -> Self {
        Self {
            moments: Default::default(),
            ..self.clone()
        }
    }
}

/// The words of a JSON text. In place of a transaction stands who sent it, and of another hash its number among them.
fn words(public: &Value, senders: &BTreeMap<String, Address>) -> Vec<String> {
    let mut hashes = Vec::new();
    let text = public.to_string();
    let words = text.split('"').map(|word| match senders.get(word) {
        Some(sender) => format!("a transaction of {sender}"),
        None if word.len() == 66 && word.starts_with("0x") => {
            let known = hashes.iter().position(|known| *known == word);
            let number = known.unwrap_or_else(|| {
                hashes.push(word);
                hashes.len() - 1
            });
            format!("hash {number}")
        }
        None => word.to_owned(),
    });
    words.collect()
}

/// Whether two texts say the same, but for amounts that are a thousandth apart.
fn is_alike(one: &[String], other: &[String]) -> bool {
    let alike = |(one, other): (&String, &String)| {
        // Losses are negative.
        let signs = [one, other].map(|word| word.starts_with('-'));
        let [one, other] = [one, other].map(|word| word.strip_prefix('-').unwrap_or(word));
        let near = || Some(is_near(units(one)?, units(other)?));
        signs[0] == signs[1] && (one == other || near().unwrap_or_default())
    };
    one.len() == other.len() && one.iter().zip(other).all(alike)
}

fn is_near(one: U256, other: U256) -> bool {
    one.abs_diff(other) <= one.max(other) / U256::from(1_000)
}

/// A decimal number with 18 digits behind its point, as one number.
fn units(word: &str) -> Option<U256> {
    let (whole, part) = word.split_once('.').unwrap_or((word, ""));
    let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    let is_number = !whole.is_empty() && part.len() <= 18 && digits(whole) && digits(part);
    let padded = format!("{whole}{part:0<18}");
    is_number.then(|| padded.parse().ok()).flatten()
}

/// Who sent each transaction of the EVM chains.
fn senders(history: &History) -> BTreeMap<String, Address> {
    let mut all = BTreeMap::new();
    for chain in &history.world.chains {
        let chain = chain.lock();
        let sent = chain.history().map(|(_, done)| &done.tx);
        all.extend(sent.map(|tx| (tx.hash.to_string(), tx.from)));
    }
    all
}

/// How the ending of a user differs from the one without strangers.
pub struct Difference {
    at: usize,
    /// Everybody is told something else, of the same end.
    told: bool,
    pub violation: Violation,
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
    let senders = senders(history);
    for deal in history.deals.values() {
        let Who::Honest(at) = deal.of else { continue };
        let target = format!("/requests/v2?id={}", deal.request);
        let record = history.ask(Method::GET, &target, &Value::Null).await;
        let record = record.map_or(Value::Null, |(_, record)| record);
        let events = stored::events(&history.world, deal.request).await;
        let mut public = json!({ "record": record, "events": events });
        timeless(&mut public);
        let ending = Ending {
            status: status(history, deal).await,
            quoted: deal.quoted,
            moments: moments(history, at, deal.trade.from.0),
            waited: stored::claim(&history.world, deal.request).await["waits"].is_u64(),
            told: words(&public, &senders),
            public,
            has: has(history, deal),
            asked: history.asked(deal),
            back: balance(history, deal.recipient, deal.trade.from),
        };
        all.insert(at, ending);
    }
    for at in &history.doubted {
        let ending = Ending {
            status: DOUBTED.into(),
            quoted: 0,
            moments: Default::default(),
            waited: false,
            public: Value::Null,
            told: Vec::new(),
            has: [U256::ZERO; 3],
            asked: U256::ZERO,
            back: U256::ZERO,
        };
        all.insert(*at, ending);
    }
    all
}

fn moments(history: &History, at: usize, chain: &str) -> [Vec<u64>; 2] {
    let deposits = history.deposited.get(&at).cloned();
    let reorgs = history.reorgs.iter().filter(|(at, _)| is_at(*at, chain));
    let reorgs = reorgs.map(|(_, time)| *time).collect();
    [deposits.unwrap_or_default(), reorgs]
}

fn has(history: &History, deal: &Deal) -> [U256; 3] {
    let ends = [
        (deal.recipient, deal.trade.to),
        (deal.account, deal.trade.from),
        (deal.account, deal.trade.to),
    ];
    ends.map(|(owner, coin)| balance(history, owner, coin))
}

fn balance(history: &History, owner: Address, (chain, currency): (&str, Address)) -> U256 {
    let world = history.world.chain(chain).lock();
    world.state().balance(owner, currency)
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

/// Strangers who do anything to our own solver's orders, or to its chains. The others are not seen by its users, whatever
/// they do.
fn near(plan: &Plan) -> impl Iterator<Item = &Stranger> {
    plan.strangers.iter().filter(|one| !one.is_abroad())
}

/// Whether a stranger only talks.
fn talks(one: &Stranger) -> bool {
    use Power::{Asker, Corroborator, Forcer, Keyholder, Teller};
    matches!(
        one.power,
        Teller | Forcer | Asker | Corroborator | Keyholder
    )
}

/// Whether these strangers must not be seen at all: they only talk.
fn only_talk(plan: &Plan) -> bool {
    // A crash comes at another moment where more is written; gas is priced when it is looked at.
    let shifts = |weather: &Weather| matches!(weather, Weather::Crash(..) | Weather::Gas(..));
    let abroad = plan.strangers.iter().any(Stranger::is_abroad);
    let waits = abroad && is_slow(plan);
    near(plan).all(talks) && !waits && !plan.weather.iter().any(|(_, weather)| shifts(weather))
}

/// Whether a provider is slow. Whoever asks then waits for it, and everybody after them acts at another moment.
fn is_slow(plan: &Plan) -> bool {
    let slow = |(_, weather): &(u64, Weather)| {
        matches!(
            weather,
            Weather::Provider(_, _, Manners::Hangs | Manners::Late, _)
        )
    };
    plan.weather.iter().any(slow)
}

/// Whether what a user gets depends on nothing but what he does: it is priced at the same moment from the
/// same prices, and nothing dies on the way.
fn has_one_amount(plan: &Plan, at: usize) -> bool {
    let moves = |(_, weather): &(u64, Weather)| match weather {
        Weather::Gas(..) | Weather::Crash(_) | Weather::Feed(..) => true,
        Weather::Price(..) => has_prices_read(plan),
        _ => false,
    };
    is_plain(plan, at) && !plan.weather.iter().any(moves)
}

/// Whether a user has less than without strangers, by more than the age of prices explains. He may have more:
/// strangers may give him something.
fn has_less(plan: &Plan, at: usize, with: &Ending, without: &Ending) -> bool {
    with.quoted == without.quoted && is_worse(plan, at, with, without)
}

/// The same, whenever he was quoted.
fn is_worse(plan: &Plan, at: usize, with: &Ending, without: &Ending) -> bool {
    let trade = &plan.honest[at].trade;
    let part = trade.amount / U256::from(1_000);
    let same = trade.from.1 == trade.to.1;
    // Whoever does anything may have prices read sooner, and their age is in what is quoted. Who deposits may have them read
    // where they stand for a moment only, and so have them swing more.
    let deposits = near(plan).any(|one| !talks(one));
    let seen = if deposits { swing(plan) } else { 0 };
    let quoted = without.has[0] / U256::from(10_000);
    let quoted = quoted + without.has[0] * U256::from(seen) / U256::from(MILLION);
    let slack = [quoted, part, if same { part } else { U256::ZERO }];
    let mut pairs = with.has.iter().zip(&without.has).zip(slack);
    pairs.any(|((with, without), slack)| *with + slack < *without)
}

/// How far prices swing in a history, in millionths: each symbol's from its least to its most, all together.
fn swing(plan: &Plan) -> u64 {
    let mut prices: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for (_, weather) in &plan.weather {
        let Weather::Price(symbol, parts) = weather else {
            continue;
        };
        let [now, least, most] = prices.entry(symbol).or_insert([MILLION; 3]);
        *now = *now * parts / 10_000;
        (*least, *most) = ((*least).min(*now), (*most).max(*now));
    }
    let apart = prices
        .values()
        .map(|[_, least, most]| (most - least) * MILLION / least.max(&1));
    apart.sum()
}

/// Whether a user's ending is one that he may have without strangers, too, at another moment: this one of
/// [`Plan::at_other_moments`] has it. An order that waits for ever is explained by a lost deposit only.
pub fn explains(plan: &Plan, found: &Difference, with: &Endings, other: &Endings) -> bool {
    let at = found.at;
    match (with.get(&at), other.get(&at)) {
        (None, None) => true,
        (Some(with), Some(other)) => {
            let lost = with.status == "waiting" && loses(plan, plan.honest[at].trade.from.0);
            let told = !found.told || is_alike(&with.told, &other.told);
            let back = with.back >= other.back || is_near(with.back, other.back);
            let ends = is_end(&with.status) || lost;
            ends && told && back && with.status == other.status && !is_worse(plan, at, with, other)
        }
        _ => false,
    }
}

/// The words in which two texts differ, but for amounts that are nearly the same.
fn difference(one: &[String], other: &[String]) -> String {
    let pairs = one.iter().zip(other);
    let differs = |(one, other): &(&String, &String)| {
        !is_alike(slice::from_ref(*one), slice::from_ref(*other))
    };
    let words: Vec<_> = pairs.filter(differs).collect();
    format!("the second of each without strangers: {words:?}")
}

/// Whether what is told of a request depends on nothing but its one deposit. With a second one, what is
/// told first depends on when the index looks, which is sooner where somebody tells it of something.
/// Who asks what the solver holds has prices read at other moments, on which amounts depend.
fn is_plain(plan: &Plan, at: usize) -> bool {
    let asks = |one: &Stranger| one.power == Power::Asker;
    let alone = plan.honest[at].again.is_none() && !near(plan).any(asks);
    alone && !is_repriced(plan, at)
}

/// Whether no provider invents a second deposit for an order, which is told until a quorum has looked, and not told
/// where somebody has it look sooner.
fn is_told_once(plan: &Plan, at: usize) -> bool {
    let invents = |(_, weather): &(u64, Weather)| match weather {
        Weather::Provider(chain, _, Manners::InventsDeposits, _) => {
            is_at(*chain, plan.honest[at].trade.from.0)
        }
        _ => false,
    };
    is_plain(plan, at) && !plan.weather.iter().any(invents)
}

/// Whether a deposit is priced anew, and so depends on when prices were read: it comes late, or its
/// chain makes no block for a while.
fn is_repriced(plan: &Plan, at: usize) -> bool {
    let one = &plan.honest[at];
    let stands = |(_, weather): &(u64, Weather)| match weather {
        Weather::Stand(chain, _) => is_at(*chain, one.trade.from.0),
        _ => false,
    };
    one.pause + one.again.unwrap_or_default() > 50 || plan.weather.iter().any(stands)
}

/// Whether both are good ends of one request that may have two: of a deposit that came late, whose
/// price depends on when prices were read, and so on who else asked for some or deposited something, on when the
/// process died, and on who waited for a slow provider; of an order that waited, which is priced anew after a while; and of one that was quoted at
/// another time because the process was dead.
fn is_open(plan: &Plan, at: usize, one: &Ending, other: &Ending) -> bool {
    let crash = |(_, weather): &(u64, Weather)| matches!(weather, Weather::Crash(_));
    let crashes = plan.weather.iter().any(crash);
    let late = is_repriced(plan, at) || one.waited || other.waited;
    let read = has_prices_read(plan) || near(plan).any(|one| !talks(one));
    let late = late && (read || crashes || is_slow(plan));
    let apart = crashes && one.quoted != other.quoted;
    // Who deposits at another moment, or whose chain has its reorg at another one, may lose the deposit for good: whatever
    // takes time, as questions do, shifts what comes after it.
    let shifted = one.moments != other.moments;
    let lost = shifted && loses(plan, plan.honest[at].trade.from.0);
    let ends = |one: &Ending| is_end(&one.status) || lost && one.status == "waiting";
    (late || apart || lost) && ends(one) && ends(other)
}

/// Whether weather that is at the chain of this number is at the chain of this name.
fn is_at(number: usize, name: &str) -> bool {
    CHAINS.get(number).is_some_and(|(known, ..)| *known == name)
}

/// Whether a reorg of a chain loses transactions for good.
fn loses(plan: &Plan, chain: &str) -> bool {
    let mut weather = plan.weather.iter();
    weather.any(|(_, weather)| match weather {
        Weather::Reorg(at, _, lost) => is_at(*at, chain) && *lost > 0,
        _ => false,
    })
}

/// Who asks what the solver holds has prices read, too, and who deposits another currency has its worth
/// looked up, as has the operator who releases a stranger's deposit that is parked. Their age is in what a refund
/// pays for its settlement, to a millionth.
fn has_prices_read(plan: &Plan) -> bool {
    let verbs = |(_, weather): &(u64, Weather)| matches!(weather, Weather::Verbs);
    let released = plan.weather.iter().any(verbs);
    let asks = |power| matches!(power, Power::Asker | Power::OtherCurrency);
    let reads = |one: &Stranger| one.has_own_order() || asks(one.power) || released && !talks(one);
    near(plan).any(reads)
}

/// Whether a user has his deposit back, and most of a stranger's, who had a late order priced at another
/// moment by paying for it.
fn is_given_more(plan: &Plan, at: usize, with: &Ending, without: &Ending) -> bool {
    let given = without.back + with.asked + with.asked / U256::from(2);
    let ends = (without.status.as_str(), with.status.as_str());
    is_repriced(plan, at) && ends == ("success", "refund") && with.back > given
}

fn is_end(status: &str) -> bool {
    matches!(status, "success" | "refund")
}

/// (c): everybody else's ending is the same without the strangers. Nothing is compared where strangers may use up
/// what an hour's limit leaves: they pay for it.
pub fn compare(plan: &Plan, with: &Endings, without: &Endings) -> Vec<Difference> {
    let mut wrong = Vec::new();
    let gifts = near(plan).any(Stranger::pays);
    let sooner = near(plan).any(|one| one.early && one.pays());
    let buys = near(plan).any(Stranger::has_own_order);
    if plan.cap.is_some() && (buys || sooner) {
        return wrong;
    }
    for (at, ending) in without {
        let other = with.get(at);
        let status = other.map_or("nothing", |other| other.status.as_str());
        // While feeds do not tell the same, who asks is refused unless somebody has asked just before.
        if status == DOUBTED || ending.status == DOUBTED {
            continue;
        }
        // Who deposits as much as a user whose own deposit is lost for good pays for that user.
        if gifts && ending.status == "waiting" && is_end(status) {
            continue;
        }
        // A stranger who does so before the user has an order filled for which the user's own deposit comes too late.
        if sooner && ending.status == "refund" && status == "success" {
            continue;
        }
        let more = |other: &Ending| is_given_more(plan, *at, other, ending);
        if sooner && other.is_some_and(more) {
            continue;
        }
        let mut differs = |told, what| {
            wrong.push(Difference {
                at: *at,
                told,
                violation: Violation {
                    invariant: 'c',
                    what,
                },
            });
        };
        if other.is_some_and(|other| is_open(plan, *at, other, ending)) {
            continue;
        }
        let less =
            |other: &&Ending| has_one_amount(plan, *at) && has_less(plan, *at, other, ending);
        if let Some(other) = other.filter(less)
            && status == ending.status
        {
            let (with, without) = (&other.has, &ending.has);
            let what = format!("honest {at} has {with:?}, and {without:?} without strangers");
            differs(false, what);
        }
        let priced = status == "refund" && has_prices_read(plan);
        let exact = only_talk(plan) && is_told_once(plan, *at) && !priced;
        if status != ending.status {
            let before = &ending.status;
            let what = format!("honest {at} ends in {status}, and in {before} without strangers");
            differs(false, what);
        } else if exact && other.map(Ending::timeless) != Some(ending.timeless()) {
            let other = other.map(|other| other.told.as_slice());
            let what = difference(other.unwrap_or_default(), &ending.told);
            differs(true, format!("honest {at} is told otherwise, {what}"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use alloy::primitives::B256;

    use super::*;
    use crate::plan::Allowed;

    fn ending(status: &str, reorg: u64) -> Endings {
        let ending = Ending {
            status: status.into(),
            quoted: 0,
            moments: [vec![77], vec![reorg]],
            waited: false,
            public: Value::Null,
            told: Vec::new(),
            has: [U256::ZERO; 3],
            asked: U256::ZERO,
            back: U256::ZERO,
        };
        BTreeMap::from([(0, ending)])
    }

    /// A transaction is whose it is, whatever its hash; an amount is what it is to a thousandth.
    #[test]
    fn texts_are_alike_that_name_the_same_senders_and_nearly_the_same_amounts() {
        let [one, two, three] = [1, 2, 3].map(|byte| B256::repeat_byte(byte).to_string());
        let [user, stranger] = [Address::repeat_byte(1), Address::repeat_byte(2)];
        let sent = [
            (one.clone(), user),
            (two.clone(), user),
            (three.clone(), stranger),
        ];
        let senders = BTreeMap::from(sent);
        let told = |hash: &str, amount: &str| {
            words(&json!({ "inTxHashes": [hash], "amount": amount }), &senders)
        };
        let first = told(&one, "1000000");
        assert!(is_alike(&first, &told(&two, "1000900")));
        assert!(!is_alike(&first, &told(&three, "1000000")), "another's");
        assert!(!is_alike(&first, &told(&one, "1002000")), "too much");
        assert!(is_alike(&told(&one, "1.5"), &told(&one, "1.4999")));
        assert!(is_alike(&told(&one, "-3.243623"), &told(&one, "-3.243581")));
        assert!(!is_alike(&told(&one, "-1.5"), &told(&one, "1.5")), "a gain");
        let ids = |list: [&str; 2]| words(&json!(list), &BTreeMap::new());
        assert!(is_alike(&ids([&one, &two]), &ids([&two, &three])));
        assert!(
            !is_alike(&ids([&one, &two]), &ids([&one, &one])),
            "one is named twice"
        );
    }

    /// It is nobody's doing where it comes without strangers, too; less money is explained by less only.
    #[test]
    fn an_ending_is_explained_by_one_that_comes_without_strangers_at_another_moment() {
        let mut plan = plan(Power::Forcer);
        plan.weather.clear();
        let (with, without) = (ending("refund", 0), ending("success", 0));
        let found = compare(&plan, &with, &without);
        assert_eq!(found.len(), 1);
        let by = |other: &Endings| explains(&plan, &found[0], &with, other);
        assert!(by(&with));
        assert!(!by(&without));
        assert!(!by(&Endings::new()), "he was quoted");
        let mut rich = with.clone();
        rich.get_mut(&0).unwrap().has[0] = U256::from(10).pow(U256::from(30));
        assert!(!by(&rich), "he had more without them");
        let mut given = with.clone();
        given.get_mut(&0).unwrap().back = U256::ONE;
        assert!(!by(&given), "he had more back");
        let stuck = ending("waiting", 0);
        let found = compare(&plan, &stuck, &without);
        assert!(
            !explains(&plan, &found[0], &stuck, &stuck),
            "it waits for ever"
        );
    }

    fn plan(power: Power) -> Plan {
        let allowed = Allowed {
            powers: vec![power],
            abroad: Vec::new(),
            manners: Vec::new(),
            depeg: false,
            late: false,
        };
        let mut plan = Plan::of(1, &allowed);
        plan.cap = None;
        plan
    }

    /// It is priced when it is confirmed, which waits for a provider that hangs.
    #[test]
    fn a_late_deposit_beside_a_slow_provider_has_two_good_ends_and_no_other_has() {
        let mut plan = plan(Power::Forcer);
        plan.honest[0].again = None;
        let mut compared = |pause: u64, manners: Manners| {
            plan.honest[0].pause = pause;
            plan.weather = vec![(199, Weather::Provider(1, 1, manners, 78))];
            compare(&plan, &ending("refund", 0), &ending("success", 0)).len()
        };
        assert_eq!(compared(88, Manners::Hangs), 0);
        assert_eq!(compared(5, Manners::Hangs), 1, "it is not late");
        assert_eq!(compared(88, Manners::Honest), 1, "nobody waits");
    }

    /// The worth of what is deposited is looked up, and an exact output may be a wei more than the late price allows.
    #[test]
    fn a_late_deposit_has_two_good_ends_where_somebody_else_deposits() {
        let compared = |power: Power, pause: u64| {
            let mut plan = plan(power);
            plan.strangers.truncate(1);
            plan.strangers[0].early = false;
            plan.honest[0].again = None;
            plan.honest[0].pause = pause;
            plan.weather.clear();
            compare(&plan, &ending("refund", 0), &ending("success", 0)).len()
        };
        assert_eq!(compared(Power::Dust, 88), 0);
        assert_eq!(compared(Power::Dust, 5), 1, "it is not late");
        assert_eq!(compared(Power::Forcer, 88), 1, "nobody deposits");
    }

    /// A price is the less certain, the more it was seen to move.
    #[test]
    fn a_user_may_have_less_where_prices_move_and_somebody_has_them_read() {
        let differs = |power: Power, weather: &[Weather], has: u64| {
            let mut plan = plan(power);
            plan.strangers.truncate(1);
            plan.strangers[0].early = false;
            plan.honest[0].again = None;
            plan.honest[0].pause = 5;
            plan.weather = weather.iter().map(|what| (96, *what)).collect();
            let [mut with, mut without] = [ending("success", 0), ending("success", 0)];
            with.get_mut(&0).unwrap().has[0] = U256::from(has);
            without.get_mut(&0).unwrap().has[0] = U256::from(1_000_000);
            !compare(&plan, &with, &without).is_empty()
        };
        let moves = [Weather::Price("ETH", 9_402), Weather::Price("ETH", 10_258)];
        assert!(!differs(Power::Dust, &moves, 940_000));
        assert!(differs(Power::Dust, &moves, 930_000), "they moved less");
        assert!(differs(Power::Teller, &moves, 990_000), "nobody reads");
        assert!(differs(Power::Dust, &[], 990_000), "nothing moves");
    }

    /// It is there for a moment, and whoever tells the index of anything has it seen at another moment.
    #[test]
    fn what_is_told_of_a_deposit_may_differ_only_while_a_provider_invents_others() {
        let mut plan = plan(Power::Teller);
        plan.honest[0].again = None;
        plan.honest[0].pause = 5;
        plan.honest[0].trade.from.0 = CHAINS[1].0;
        let ended = |public: Value| {
            let mut all = ending("success", 0);
            all.get_mut(&0).unwrap().public = public;
            all
        };
        let (one, two) = (ended(json!(["0x1"])), ended(json!(["0x1", "0x2"])));
        let mut compared = |chain: usize, manners: Manners| {
            plan.weather = vec![(154, Weather::Provider(chain, 0, manners, 28))];
            compare(&plan, &two, &one).len()
        };
        assert_eq!(compared(1, Manners::InventsDeposits), 0);
        assert_eq!(compared(0, Manners::InventsDeposits), 1, "another chain's");
        assert_eq!(compared(1, Manners::Honest), 1, "nothing is invented");
    }

    /// A stranger asks for so long that the reorg comes a second later, when the deposit is below it.
    #[test]
    fn a_deposit_may_be_lost_where_a_reorg_came_at_another_moment_only() {
        let mut plan = plan(Power::Asker);
        plan.honest[0].trade.from.0 = CHAINS[1].0;
        let mut compared = |lost: u64, reorg: u64| {
            plan.weather = vec![(73, Weather::Reorg(1, 3, lost))];
            compare(&plan, &ending("success", reorg), &ending("waiting", 83))
        };
        assert!(compared(1, 84).is_empty());
        assert_eq!(compared(1, 83).len(), 1, "nothing explains it");
        assert_eq!(compared(0, 84).len(), 1, "nothing is lost in it");
    }
}
