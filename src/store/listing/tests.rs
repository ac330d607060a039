//! Pages compared with a plain filter over whole requests that does not use summaries.

use std::collections::BTreeMap;

use alloy::primitives::{B256, U256};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    request::{
        Execution, Operation, Request,
        fact::{Facts, Purpose, Standing, State},
        filter::{Asked, Caller, Edition},
        fixtures::{self, attempt, deposit, sent},
        reason::{FailReason, RefundFailReason},
    },
    store::{Batch, check, memory::MemoryStore, requests::Requests, sled::SledStore},
};

const USERS: [&str; 4] = [
    "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
    "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
    "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
    "BC1QAR0SRRR7XFKVY5L643LYDNW9RE59GTZZWF5MDQ",
];
const SYMBOLS: [&str; 3] = ["USDC", "WETH", "Pepe"];
const CHAINS: [u64; 3] = [31_001, 31_002, 31_003];
const NOW: u64 = 1_700_000_000_000;

/// The parts of a random request.
#[derive(Clone, Debug)]
struct Made {
    number: u8,
    users: (usize, usize),
    chains: (usize, usize),
    symbols: (usize, usize),
    /// The outcome of the request.
    state: u8,
    created: u64,
    later: u64,
    amount: Option<u64>,
    app_fee: Option<u64>,
    key: Option<bool>,
    call: bool,
}

/// A request for the plain filter: the values of its fields, empty where there are none, and its numbers.
struct Plain {
    id: B256,
    order: B256,
    /// Whether nobody has acted on it.
    quote: bool,
    fields: BTreeMap<&'static str, Vec<String>>,
    numbers: BTreeMap<&'static str, Option<u64>>,
    origin_blocks: Vec<u64>,
    other_blocks: Vec<u64>,
    features: Vec<&'static str>,
}

fn usd(symbol: &str, micro: Option<u64>) -> Value {
    let text = micro.map(|micro| format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000));
    json!({
        "currency": {"chainId": 1, "address": "0x01", "symbol": symbol, "name": symbol,
                     "decimals": 6, "metadata": {"logoURI": "", "verified": true, "isNative": false}},
        "amount": "1", "amountFormatted": "0.000001",
        "amountUsd": text.unwrap_or_else(|| "unknown".into()), "minimumAmount": "1",
    })
}

impl Made {
    fn request(&self) -> Request {
        let mut request = fixtures::request(self.number);
        request.user = USERS[self.users.0].into();
        request.recipient = USERS[self.users.1].into();
        (request.origin.chain, request.destination.chain) =
            (CHAINS[self.chains.0], CHAINS[self.chains.1]);
        request.origin.network = "origin".into();
        request.destination.currency = format!("0x0{}", self.symbols.1);
        request.created_at = NOW + self.created * 500;
        request.operation = if self.number.is_multiple_of(2) {
            Operation::Swap
        } else {
            Operation::Bridge
        };
        if self.own() {
            request.execution = Execution::User;
        }
        if self.call {
            request.calls.push(crate::request::Call {
                to: USERS[0].into(),
                value: Default::default(),
                data: Default::default(),
            });
        }
        request.api_key = self.key.map(|own| if own { "app" } else { "other" }.into());
        let (input, output) = (SYMBOLS[self.symbols.0], SYMBOLS[self.symbols.1]);
        let fees = ["gas", "relayerGas", "relayerService", "app"];
        let fees: BTreeMap<_, _> = fees.map(|name| (name, usd(input, self.app_fee))).into();
        let owed = json!([{"recipient": "0x1", "bps": "1", "amount": "2"}]);
        request.quoted = json!({
            "fees": fees,
            "appFees": if self.app_fee.is_some() { owed } else { json!([]) },
            "details": {"currencyIn": usd(input, self.amount), "currencyOut": usd(output, None),
                "refundCurrency": usd(input, None), "rate": "1", "timeEstimate": 5,
                "isFixedRate": self.number.is_multiple_of(5)},
        })
        .into();
        request
    }

    fn own(&self) -> bool {
        self.state >= 6
    }

    fn fill(&self) -> String {
        format!("0xf111{:02x}", self.number)
    }

    fn change(&self, facts: &mut Facts) {
        let mut paid = deposit(self.number, Standing::Final);
        let mut fill = attempt(Purpose::Fill, State::Broadcast);
        let mut refund = attempt(
            Purpose::Refund,
            State::Confirmed(fixtures::place(self.number.into())),
        );
        fill.transaction = self.fill();
        refund.transaction = format!("0x4ef0{:02x}", self.number);
        let place = fixtures::place(u64::from(self.number) + 7);
        match self.state {
            1 => {}
            2 => facts.attempts.push(fill),
            3 => {
                fill.state = State::Confirmed(place);
                facts.attempts.push(fill);
            }
            4 => {
                fill.state = State::Reverted {
                    place,
                    reason: None,
                };
                facts.attempts.extend([fill, refund]);
                facts.failure = Some(FailReason::Slippage);
            }
            5 => {
                paid.standing = Standing::Reorged;
                facts.failure = Some(FailReason::TtlExpired);
                facts.refund_failure = Some(RefundFailReason::AmountTooLowToRefund);
            }
            6 => facts.own.push(sent(&self.fill(), State::Confirmed(place))),
            _ => facts.own.push(sent(
                &self.fill(),
                State::Reverted {
                    place,
                    reason: None,
                },
            )),
        }
        if !self.own() {
            facts.deposits.push(paid);
        }
    }

    /// Written from the API's description of each state.
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn plain(&self) -> Plain {
        let request = self.request();
        let (n, place) = (u64::from(self.number), u64::from(self.number) + 7);
        let hash = format!("0x{:064x}", self.number);
        let (fill, refund) = (self.fill(), format!("0x4ef0{:02x}", self.number));
        let own = |texts: &[&str]| texts.iter().map(|text| fold(text)).collect::<Vec<_>>();
        let solved = (1..=5).contains(&self.state);
        let status = [
            "waiting", "pending", "pending", "success", "refund", "failure", "success", "failure",
        ];
        let reason = [
            "",
            "",
            "",
            "",
            "SLIPPAGE",
            "TTL_EXPIRED",
            "",
            "TRANSACTION_REVERTED",
        ];
        let state = usize::from(self.state);
        let one = |text: &str| {
            if text.is_empty() {
                vec![]
            } else {
                vec![text.to_owned()]
            }
        };
        let deposits = match self.state {
            0 => vec![],
            1..=5 => own(&[&hash]),
            _ => own(&[&fill]),
        };
        let fills = if [2, 3, 6, 7].contains(&self.state) {
            own(&[&fill])
        } else {
            vec![]
        };
        let refunds = if self.state == 4 {
            own(&[&refund])
        } else {
            vec![]
        };
        let mut term = own(&[&request.id.to_string(), &request.user, &request.recipient]);
        term.extend(deposits.iter().chain(&fills).chain(&refunds).cloned());
        term.extend((self.state == 4).then(|| fold(&fill)));
        let chains =
            [request.origin.chain, request.destination.chain].map(|chain| chain.to_string());
        let same = self.chains.0 == self.chains.1;
        let kind = match (self.call, self.number % 2, same) {
            (true, ..) => "call",
            (_, 1, _) => "bridge",
            (_, _, true) => "same-chain swap",
            _ => "crosschain swap",
        };
        let symbol = |at: usize| one(&SYMBOLS[at].to_lowercase());
        let fields = BTreeMap::from([
            ("id", own(&[&request.id.to_string()])),
            ("orderId", own(&[&request.order_id.to_string()])),
            ("term", term),
            ("depositTxHash", deposits),
            ("fillTxHash", fills),
            ("refundTxHash", refunds),
            ("user", own(&[&request.user])),
            ("recipient", own(&[&request.recipient])),
            ("depositAddress", vec![]),
            ("originChainId", vec![chains[0].clone()]),
            ("destinationChainId", vec![chains[1].clone()]),
            ("chainId", chains.to_vec()),
            ("status", one(status[state])),
            ("failReason", one(reason[state])),
            (
                "refundFailReason",
                one(if self.state == 5 {
                    "AMOUNT_TOO_LOW_TO_REFUND"
                } else {
                    ""
                }),
            ),
            (
                "apiKey",
                one(request.api_key.as_deref().unwrap_or_default()),
            ),
            ("requestType", one(kind)),
            ("currencyInAddress", own(&[fixtures::USDC])),
            ("currencyOutAddress", own(&[&request.destination.currency])),
            ("currencyInSymbol", symbol(self.symbols.0)),
            ("currencyOutSymbol", symbol(self.symbols.1)),
        ]);
        let changed = NOW + self.created * 500 + if self.state == 0 { 0 } else { self.later };
        let fill_time = (self.state == 3).then_some(7);
        let numbers = BTreeMap::from([
            ("created", Some(request.created_at)),
            ("updated", Some(changed)),
            ("amount", self.amount),
            ("appFees", self.app_fee),
            ("fillTime", fill_time),
        ]);
        let mut origin_blocks = if solved && self.state != 5 {
            vec![n]
        } else {
            vec![]
        };
        let mut other_blocks = vec![];
        match self.state {
            3 | 4 => other_blocks.push(place),
            6 | 7 => origin_blocks.push(place),
            _ => {}
        }
        let mut features = vec![];
        features.extend((self.number.is_multiple_of(5)).then_some("fixed_rate"));
        features.extend(self.app_fee.map(|_| "app_fees"));
        Plain {
            id: request.id,
            order: request.order_id,
            quote: self.state == 0,
            fields,
            numbers,
            origin_blocks,
            other_blocks,
            features,
        }
    }
}

fn fold(text: &str) -> String {
    if text.starts_with("0x") {
        text.to_lowercase()
    } else {
        text.to_owned()
    }
}

/// A value in the form in which it is compared under `key`.
fn folded(key: &str, text: &str) -> String {
    match key {
        "currencyInSymbol" | "currencyOutSymbol" | "requestType" => text.to_lowercase(),
        _ => fold(text),
    }
}

fn within(figure: Option<u64>, from: Option<u64>, to: Option<u64>) -> bool {
    match figure {
        None => from.is_none() && to.is_none(),
        Some(figure) => from.is_none_or(|from| figure >= from) && to.is_none_or(|to| figure <= to),
    }
}

fn group_holds(plain: &Plain, group: &serde_json::Map<String, Value>) -> bool {
    let exact = group.contains_key("originChainId") || group.contains_key("destinationChainId");
    group.iter().all(|(key, wanted)| {
        let (not, name) = match key.strip_prefix("not:") {
            Some(name) => (true, name),
            None => (false, key.as_str()),
        };
        if key == "chainId" && exact {
            return true;
        }
        let has = &plain.fields[name];
        let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
        let is = match wanted {
            Value::Null => has.is_empty(),
            Value::Array(all) => all
                .iter()
                .any(|one| has.contains(&folded(name, &text(one)))),
            one => has.contains(&folded(name, &text(one))),
        };
        is != not
    })
}

fn holds(plain: &Plain, pairs: &BTreeMap<&str, String>) -> bool {
    let number = |name: &str, unit: u64| {
        pairs
            .get(name)
            .map(|text| text.parse::<u64>().unwrap() * unit)
    };
    let time = if pairs.get("sortBy").is_some_and(|sort| sort == "updatedAt") {
        "updated"
    } else {
        "created"
    };
    let exact = pairs.contains_key("originChainId") || pairs.contains_key("destinationChainId");
    let fields = pairs
        .iter()
        .all(|(name, text)| match plain.fields.get(name) {
            _ if *name == "chainId" && exact => true,
            Some(has) => has.contains(&folded(name, text)),
            None => true,
        });
    let mut blocks = plain.origin_blocks.clone();
    if !pairs.contains_key("originChainId") {
        blocks.extend(&plain.other_blocks);
    }
    let (start, end) = (number("startBlock", 1), number("endBlock", 1));
    let in_blocks = start.is_none() && end.is_none()
        || blocks.iter().any(|block| within(Some(*block), start, end));
    let to = number("endTimestamp", 1000).map(|to| to + 999);
    let dollars = 1_000_000;
    fields
        && in_blocks
        && within(plain.numbers[time], number("startTimestamp", 1000), to)
        && within(
            plain.numbers["amount"],
            number("amountUsdMin", dollars),
            number("amountUsdMax", dollars),
        )
        && within(
            plain.numbers["appFees"],
            number("appFeesAmountUsdMin", dollars),
            number("appFeesAmountUsdMax", dollars),
        )
        && within(
            plain.numbers["fillTime"],
            number("fillTimeMin", 1),
            number("fillTimeMax", 1),
        )
        && pairs
            .get("features")
            .is_none_or(|text| text.split(',').any(|one| plain.features.contains(&one)))
        && pairs.get("filters").is_none_or(|text| {
            let groups: Vec<Value> = serde_json::from_str(text).unwrap();
            groups.is_empty()
                || groups
                    .iter()
                    .any(|group| group_holds(plain, group.as_object().unwrap()))
        })
}

fn wanted(all: &[Plain], pairs: &BTreeMap<&str, String>) -> Vec<B256> {
    let sort = pairs.get("sortBy").map_or("createdAt", String::as_str);
    let value = |plain: &Plain| match sort {
        "updatedAt" => plain.numbers["updated"],
        // Unknown amounts come first.
        "amountUsd" => plain.numbers["amount"].map(|amount| amount + 1).or(Some(0)),
        _ => plain.numbers["created"],
    };
    // A quote is found by its own ids only.
    let lookups = parsed(pairs).lookups().unwrap_or_default();
    let listed = |plain: &&Plain| {
        let own = [Lookup::Id(plain.id), Lookup::Order(plain.order)];
        !plain.quote || own.iter().any(|one| lookups.contains(one))
    };
    let found = all.iter().filter(|plain| holds(plain, pairs));
    let mut found: Vec<_> = found.filter(listed).collect();
    found.sort_by_key(|plain| (value(plain), plain.id));
    let direction = pairs.get("sortDirection").map(String::as_str);
    if direction.map_or(sort != "amountUsd", |direction| direction == "desc") {
        found.reverse();
    }
    found.into_iter().map(|plain| plain.id).collect()
}

fn some<T: Clone + std::fmt::Debug + 'static>(of: Vec<T>) -> BoxedStrategy<T> {
    proptest::sample::select(of).boxed()
}

fn made() -> impl Strategy<Value = Made> {
    let pair = |n: usize| (0..n, 0..n);
    let rest = (
        0_u64..12,
        0_u64..4000,
        proptest::option::of((0_u64..5).prop_map(|n| n * 500_000)),
        proptest::option::of(0_u64..3_000_000),
        proptest::option::of(any::<bool>()),
        proptest::bool::weighted(0.2),
    );
    (pair(4), pair(3), pair(3), 0_u8..8, rest).prop_map(|(users, chains, symbols, state, rest)| {
        let (created, later, amount, app_fee, key, call) = rest;
        Made {
            number: 0,
            users,
            chains,
            symbols,
            state,
            created,
            later,
            amount,
            app_fee,
            key,
            call,
        }
    })
}

fn requests() -> impl Strategy<Value = Vec<Made>> {
    proptest::collection::vec(made(), 0..40).prop_map(|mut all| {
        for (number, one) in (1..).zip(&mut all) {
            one.number = number;
        }
        all
    })
}

/// A value that some requests have under a field.
#[expect(clippy::too_many_lines, reason = "a table")]
fn field() -> impl Strategy<Value = (&'static str, String)> {
    let hashes = || {
        let n = 0_u8..12;
        n.prop_flat_map(|n| {
            some(vec![
                format!("0x{n:064X}"),
                format!("0xF111{n:02x}"),
                format!("0x4ef0{n:02X}"),
            ])
        })
    };
    let ids = (0_u8..12).prop_map(|n| format!("0x{}", format!("{n:02x}").repeat(32)));
    let orders = (0_u8..12).prop_map(|n| format!("0x{}", format!("{:02X}", n ^ 0x80).repeat(32)));
    let users = || some(USERS.to_vec()).prop_map(str::to_owned);
    let named = |names: Vec<&'static str>, texts: BoxedStrategy<String>| (some(names), texts);
    let chains = some(CHAINS.to_vec()).prop_map(|chain| chain.to_string());
    let symbols = some(vec![
        "usdc".to_owned(),
        "WETH".into(),
        "PEPE".into(),
        "x".into(),
    ]);
    let status = ["success", "failure", "refund", "pending", "depositing"];
    let kinds = [
        "Bridge",
        "crosschain swap",
        "Same-chain Swap",
        "Call",
        "Send",
    ];
    prop_oneof![
        named(vec!["id", "term"], ids.boxed()),
        named(vec!["orderId"], orders.boxed()),
        named(
            vec!["term", "depositTxHash", "fillTxHash", "refundTxHash"],
            hashes().boxed()
        ),
        named(
            vec!["user", "recipient", "depositAddress", "term"],
            users().boxed()
        ),
        named(
            vec!["chainId", "originChainId", "destinationChainId"],
            chains.boxed()
        ),
        named(
            vec!["status"],
            some(status.to_vec()).prop_map(str::to_owned).boxed()
        ),
        named(
            vec!["failReason"],
            some(vec!["SLIPPAGE".to_owned(), "TTL_EXPIRED".into()])
        ),
        named(
            vec!["refundFailReason"],
            Just("AMOUNT_TOO_LOW_TO_REFUND".to_owned()).boxed()
        ),
        named(vec!["apiKey"], Just("app".to_owned()).boxed()),
        named(
            vec!["requestType"],
            some(kinds.to_vec()).prop_map(str::to_owned).boxed()
        ),
        named(vec!["currencyInSymbol", "currencyOutSymbol"], symbols),
        named(
            vec!["currencyOutAddress"],
            some(vec!["0x00".to_owned(), "0x01".into(), "0X02".into()])
                .prop_map(|text| text.replace("0X", "0x"))
                .boxed()
        ),
        named(
            vec!["currencyInAddress"],
            Just(fixtures::USDC.to_owned()).boxed()
        ),
    ]
}

fn groups() -> impl Strategy<Value = String> {
    let value = (field(), proptest::collection::vec(field(), 0..3), 0_u8..8);
    let clause = (value, any::<bool>()).prop_map(|(((name, text), more, how), not)| {
        let key = if not {
            format!("not:{name}")
        } else {
            name.to_owned()
        };
        let same = more
            .into_iter()
            .filter(|(other, _)| *other == name)
            .map(|(_, text)| text);
        let value = match how {
            0 if name != "apiKey" => Value::Null,
            1..=3 => std::iter::once(text).chain(same).collect(),
            _ => text.into(),
        };
        (key, value)
    });
    let group = proptest::collection::vec(clause, 1..4);
    proptest::collection::vec(group, 0..4).prop_map(|groups| {
        let groups = groups
            .into_iter()
            .map(|fields| Value::Object(fields.into_iter().collect()));
        groups.collect::<Value>().to_string()
    })
}

fn query() -> impl Strategy<Value = BTreeMap<&'static str, String>> {
    let seconds = (0_u64..9).prop_map(|n| (NOW / 1000 + n).to_string());
    let blocks = (0_u64..45).prop_map(|n| n.to_string());
    let dollars = (0_u64..3).prop_map(|n| n.to_string());
    let ranges = prop_oneof![
        (
            some(vec!["startTimestamp", "endTimestamp"]),
            seconds.boxed()
        ),
        (some(vec!["startBlock", "endBlock"]), blocks.boxed()),
        (
            some(vec![
                "amountUsdMin",
                "amountUsdMax",
                "appFeesAmountUsdMin",
                "appFeesAmountUsdMax"
            ]),
            dollars.boxed()
        ),
        (
            some(vec!["fillTimeMin", "fillTimeMax"]),
            some(vec!["6".to_owned(), "7".into(), "8".into()])
        ),
        (
            some(vec!["features"]),
            some(vec!["app_fees".to_owned(), "fixed_rate,fast_fill".into()])
        ),
    ];
    let order = prop_oneof![
        3 => Just(("features_none", String::new())),
        1 => (Just("sortDirection"), some(vec!["asc".to_owned(), "desc".into()])),
    ];
    (
        proptest::collection::vec(field(), 0..2),
        proptest::collection::vec(ranges, 0..2),
        proptest::option::weighted(0.4, groups()),
        proptest::option::of(some(vec![
            "createdAt".to_owned(),
            "updatedAt".into(),
            "amountUsd".into(),
        ])),
        order,
    )
        .prop_map(|(fields, ranges, groups, sort, order)| {
            let mut all: BTreeMap<_, _> = fields.into_iter().chain(ranges).collect();
            all.extend(groups.map(|groups| ("filters", groups)));
            all.extend(sort.map(|sort| ("sortBy", sort)));
            all.extend(Some(order).filter(|(name, _)| *name != "features_none"));
            all
        })
}

async fn stored(store: Arc<dyn Store>, all: &[Made]) -> Listing {
    let requests = Requests::new(store.clone());
    for one in all {
        requests.insert(&one.request(), Batch::new()).await.unwrap();
    }
    let changes = all.iter().filter(|one| one.state > 0).map(|one| {
        let request = one.request();
        let (requests, now) = (requests.clone(), request.created_at + one.later);
        async move {
            let change = |facts: &mut Facts| one.change(facts);
            requests
                .record(&request.id, now, Batch::new(), change)
                .await
                .unwrap();
        }
    });
    futures::future::join_all(changes).await;
    let listing = Listing::open(store).await.unwrap();
    listing.complete().await.unwrap();
    listing
}

fn parsed(pairs: &BTreeMap<&str, String>) -> Query {
    let pairs = pairs
        .iter()
        .map(|(name, text)| ((*name).to_owned(), text.clone()));
    let caller = Caller {
        label: Some("app"),
        key: None,
    };
    Asked::parse(Edition::V3, pairs, &caller, &[])
        .unwrap()
        .query
}

/// All pages of a query, in order.
async fn paged(listing: &Listing, query: &Query, limit: usize) -> (Vec<B256>, Option<u64>) {
    let (mut found, mut next, mut total) = (Vec::new(), None::<String>, None);
    loop {
        let cut = Cut {
            limit,
            continuation: next.as_deref(),
            total: next.is_none(),
        };
        let page = listing.page(query, cut).await.unwrap();
        assert!(page.found.len() <= limit);
        total = total.or(page.total);
        found.extend(page.found.iter().map(|one| one.id));
        next = page.continuation;
        if next.is_none() {
            return (found, total);
        }
        assert!(found.len() < 1_000, "it never ends");
    }
}

async fn agree(
    store: Arc<dyn Store>,
    all: &[Made],
    queries: &[BTreeMap<&str, String>],
    limit: usize,
) {
    let listing = stored(store.clone(), all).await;
    let plain: Vec<_> = all.iter().map(Made::plain).collect();
    for pairs in queries {
        let wanted = wanted(&plain, pairs);
        let (found, total) = paged(&listing, &parsed(pairs), limit).await;
        assert_eq!(found, wanted, "{pairs:?}");
        assert_eq!(total, Some(wanted.len() as u64));
    }
    let report = check::check(&*store).await.unwrap();
    assert_eq!(report.defects, 0, "{report}");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn pages_are_what_a_plain_filter_says(
        all in requests(), queries in proptest::collection::vec(query(), 1..24), limit in 1_usize..9,
    ) {
        runtime().block_on(agree(Arc::new(MemoryStore::new()), &all, &queries, limit));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]
    #[test]
    fn pages_from_the_disk_are_what_a_plain_filter_says(
        all in requests(), queries in proptest::collection::vec(query(), 40..60), limit in 1_usize..9,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(SledStore::open(directory.path()).unwrap());
        runtime().block_on(agree(store, &all, &queries, limit));
    }
}

fn simple(number: u8, created: u64) -> Made {
    Made {
        number,
        users: (0, 0),
        chains: (0, 1),
        symbols: (0, 0),
        state: 1,
        created,
        later: 10,
        amount: Some(number.into()),
        app_fee: None,
        key: None,
        call: false,
    }
}

/// A quote of that time, with its outcome.
async fn quoted(requests: &Requests, number: u8, change: Option<Standing>) -> B256 {
    let mut request = fixtures::request(number);
    request.created_at = NOW + u64::from(number / 3) * 1_000;
    request.id = crate::request::id(request.created_at, B256::repeat_byte(number));
    request.order_id = !request.id;
    request.api_key = Some("app".into());
    if number.is_multiple_of(2) {
        request.user = USERS[1].into();
    }
    requests.insert(&request, Batch::new()).await.unwrap();
    if let Some(standing) = change {
        let paid = |facts: &mut Facts| facts.deposits.push(deposit(number, standing));
        let now = request.created_at + 60_000;
        let recorded = requests.record(&request.id, now, Batch::new(), paid);
        recorded.await.unwrap();
    }
    request.id
}

/// Requests that wait for a deposit, and others, with their numbers.
async fn some_wait() -> (Listing, [Vec<(u8, B256)>; 2]) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let requests = Requests::new(store.clone());
    let (mut waiting, mut others) = (Vec::new(), Vec::new());
    for number in 1..=120_u8 {
        // Paid, or the payment left the chain, or nobody acted on it.
        let change = match number % 6 {
            0 => Some(Standing::Final),
            1 => Some(Standing::Reorged),
            _ => None,
        };
        let id = quoted(&requests, number, change).await;
        match change {
            Some(Standing::Final) => others.push((number, id)),
            _ => waiting.push((number, id)),
        }
    }
    let listing = Listing::open(store).await.unwrap();
    listing.complete().await.unwrap();
    (listing, [waiting, others])
}

/// All pages of a query.
async fn listed_for(listing: &Listing, pairs: &[(&str, &str)], limit: usize) -> Vec<B256> {
    let pairs = pairs.iter().map(|(name, text)| (*name, (*text).to_owned()));
    let query = parsed(&pairs.collect());
    paged(listing, &query, limit).await.0
}

const WAITING: (&str, &str) = ("status", "waiting");

#[tokio::test]
async fn what_waits_is_listed_in_the_order_asked_for() {
    let (listing, [waiting, _]) = some_wait().await;
    let mut all: Vec<B256> = waiting.iter().map(|(_, id)| *id).collect();
    let up = ("sortDirection", "asc");
    for limit in [1, 7, 50] {
        assert_eq!(listed_for(&listing, &[WAITING, up], limit).await, all);
        let mut down = listed_for(&listing, &[WAITING], limit).await;
        down.reverse();
        assert_eq!(down, all);
    }
    let query = parsed(&BTreeMap::from([("status", "waiting".to_owned())]));
    assert_eq!(paged(&listing, &query, 50).await.1, Some(100));
    // By last change, requests with facts come after all quotes.
    let changed = ("sortBy", "updatedAt");
    let mut changed = listed_for(&listing, &[WAITING, changed], 9).await;
    assert_ne!(changed.first(), all.last());
    changed.sort();
    all.sort();
    assert_eq!(changed, all);
}

#[tokio::test]
async fn a_quote_is_in_no_list_but_of_what_waits() {
    let (listing, [waiting, others]) = some_wait().await;
    // Combined with an account, and with a span of time.
    let own = |(number, id): &(u8, B256)| number.is_multiple_of(2).then_some(*id);
    let own: Vec<_> = waiting.iter().filter_map(own).collect();
    let by = [WAITING, ("user", USERS[1]), ("sortDirection", "asc")];
    assert_eq!(listed_for(&listing, &by, 4).await, own);
    let (from, to) = ((NOW / 1000 + 5).to_string(), (NOW / 1000 + 6).to_string());
    let span = [
        WAITING,
        ("startTimestamp", from.as_str()),
        ("endTimestamp", to.as_str()),
    ];
    let found = listed_for(&listing, &span, 2).await;
    let within = waiting
        .iter()
        .filter(|(number, _)| (15..21).contains(number));
    assert_eq!(found.len(), within.count());
    // Every other filter finds only requests that were acted on.
    let none: [(&str, &str); 0] = [];
    for pairs in [&none[..], &[("status", "pending")], &[("user", USERS[1])]] {
        let found = listed_for(&listing, pairs, 50).await;
        let mut quotes = waiting.iter().filter(|(number, _)| number % 6 != 1);
        assert!(!found.is_empty());
        assert!(quotes.all(|(_, quote)| !found.contains(quote)), "{pairs:?}");
    }
    let id = waiting[3].1.to_string();
    let named = listed_for(&listing, &[("id", id.as_str())], 5).await;
    assert_eq!(named, [waiting[3].1]);
    let pending = listed_for(&listing, &[("status", "pending")], 50).await;
    assert_eq!(pending.len(), others.len());
}

#[tokio::test]
async fn what_waits_is_listed_for_its_key_or_by_its_user() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let requests = Requests::new(store.clone());
    let mut ids = Vec::new();
    for (number, key) in (1..).zip([Some("app"), Some("other"), None]) {
        let mut request = fixtures::request(number);
        request.created_at = NOW + u64::from(number);
        request.id = crate::request::id(request.created_at, B256::repeat_byte(number));
        request.order_id = !request.id;
        request.api_key = key.map(str::to_owned);
        requests.insert(&request, Batch::new()).await.unwrap();
        ids.push(request.id);
    }
    let listing = Listing::open(store).await.unwrap();
    let up = ("sortDirection", "asc");
    let of = |user| [WAITING, ("user", user), up];
    assert_eq!(listed_for(&listing, &[WAITING, up], 5).await, ids[..1]);
    assert_eq!(listed_for(&listing, &of(fixtures::USER), 5).await, ids);
    let nobody: [B256; 0] = [];
    assert_eq!(listed_for(&listing, &of(USERS[1]), 5).await, nobody);
}

/// A page has few large quotes; one that has read its budget returns a continuation.
#[tokio::test]
async fn who_asks_for_large_quotes_gets_them_in_more_pages() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let requests = Requests::new(store.clone());
    let mut all = Vec::new();
    for number in 1..=40_u8 {
        let mut request = fixtures::large(number, 600_000);
        request.created_at = NOW + u64::from(number);
        request.id = crate::request::id(request.created_at, B256::repeat_byte(number));
        request.order_id = !request.id;
        request.api_key = Some("app".into());
        let stored = requests.insert_by(&request, number.into(), Batch::new());
        stored.await.unwrap();
        all.push(request.id);
    }
    let listing = Listing::open(store).await.unwrap();
    let pairs = [("status", "waiting"), ("sortDirection", "asc")];
    let pairs = pairs.map(|(name, text)| (name, text.to_owned()));
    let query = parsed(&pairs.into());
    let cut = Cut {
        limit: 50,
        continuation: None,
        total: true,
    };
    let first = listing.page(&query, cut).await.unwrap();
    assert!(first.found.len() < 40 && first.continuation.is_some());
    assert_eq!(first.total, None, "it would read all of them");
    assert_eq!(paged(&listing, &query, 50).await.0, all);
}

#[tokio::test]
async fn a_query_of_many_values_looks_at_fewer() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let requests = Requests::new(store.clone());
    for number in 0..2_100_u64 {
        let mut request = fixtures::request(1);
        request.id = B256::from(U256::from(number + 1));
        request.order_id = !request.id;
        requests.insert(&request, Batch::new()).await.unwrap();
        // Quotes have no rows in the orders.
        let paid = |facts: &mut Facts| facts.deposits.push(deposit(1, Standing::Final));
        let recorded = requests.record(&request.id, NOW, Batch::new(), paid);
        recorded.await.unwrap();
    }
    let listing = Listing::open(store).await.unwrap();
    listing.complete().await.unwrap();
    let values: Vec<_> = (0..64).map(|number| format!("s{number}")).collect();
    let group = serde_json::json!({ "currencyInSymbol": values });
    let page = async |groups: usize, total| {
        let filters = serde_json::json!(vec![group.clone(); groups]).to_string();
        let query = parsed(&BTreeMap::from([("filters", filters)]));
        let cut = Cut {
            limit: 1,
            continuation: None,
            total,
        };
        listing.page(&query, cut).await.unwrap()
    };
    // Nothing is found; the continuation contains how far the page read.
    let far = |page: &Page| page.continuation.is_some();
    assert!(far(&page(4, false).await));
    assert_eq!(page(1, true).await.total, Some(0));
    assert_eq!(page(4, true).await.total, None, "too many to compare");
    // Other tasks run meanwhile: nothing here waits for a disk.
    let turns = std::cell::Cell::new(0);
    let others = async {
        while turns.get() < 1_000_000 {
            turns.set(turns.get() + 1);
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        _ = page(1, true) => {}
        () = others => {}
    }
    assert!(turns.get() > 5, "{}", turns.get());
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story")]
async fn who_pages_while_requests_arrive_misses_none_and_gets_none_twice() {
    for (sort, direction) in [
        ("createdAt", "asc"),
        ("createdAt", "desc"),
        ("amountUsd", "asc"),
        ("amountUsd", "desc"),
    ] {
        for by in ["", "user"] {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
            let first: Vec<_> = (1..=40).map(|n| simple(n, u64::from(n % 7))).collect();
            let listing = stored(store.clone(), &first).await;
            let requests = Requests::new(store);
            let mut pairs = BTreeMap::from([
                ("sortBy", sort.to_owned()),
                ("sortDirection", direction.to_owned()),
            ]);
            if by == "user" {
                pairs.insert("user", USERS[0].into());
            }
            let (query, mut found, mut next) = (parsed(&pairs), Vec::new(), None::<String>);
            for number in 41..=200 {
                let cut = Cut {
                    limit: 3,
                    continuation: next.as_deref(),
                    total: false,
                };
                let page = listing.page(&query, cut).await.unwrap();
                found.extend(page.found.iter().map(|one| one.id));
                next = page.continuation;
                if next.is_none() {
                    break;
                }
                let fresh = simple(number, u64::from(number % 9));
                requests
                    .insert(&fresh.request(), Batch::new())
                    .await
                    .unwrap();
                // Somebody acts on it, and on one that exists.
                let now = NOW + 9_000 + u64::from(number);
                let paid = |facts: &mut Facts| fresh.change(facts);
                let id = fresh.request().id;
                let recorded = requests.record(&id, now, Batch::new(), paid);
                recorded.await.unwrap();
                let other = first[usize::from(number) % 40].request().id;
                let change = |facts: &mut Facts| {
                    let sent = State::Broadcast;
                    facts.attempts.push(attempt(Purpose::Fill, sent));
                };
                let recorded = requests.record(&other, now, Batch::new(), change);
                recorded.await.unwrap();
            }
            assert_eq!(next, None, "paged to the end");
            let count = found.len();
            for one in &first {
                let id = one.request().id;
                let times = found.iter().filter(|found| **found == id).count();
                assert_eq!(times, 1, "{id} {sort} {direction} {by}");
            }
            found.sort();
            found.dedup();
            assert_eq!(found.len(), count, "none twice");
        }
    }
}

#[tokio::test]
async fn a_page_looks_at_so_many_and_says_where_to_go_on() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let requests = Requests::new(store.clone());
    let total = 2 * LOOKED + 100;
    for number in 0..total {
        let mut request = simple(1, 0).request();
        request.id = B256::left_padding_from(&(number as u64 + 1).to_be_bytes());
        request.order_id = B256::repeat_byte(9) ^ request.id;
        request.created_at += number as u64;
        if number == 0 {
            request.destination.chain = 5;
        }
        requests.insert(&request, Batch::new()).await.unwrap();
        let change = |facts: &mut Facts| facts.deposits.push(deposit(1, Standing::Final));
        let recorded = requests.record(&request.id, NOW, Batch::new(), change);
        recorded.await.unwrap();
    }
    let listing = Listing::open(store).await.unwrap();
    listing.complete().await.unwrap();
    for by in [("chainId", "5"), ("user", USERS[0])] {
        let mut pairs = BTreeMap::from([("destinationChainId", "5".to_owned())]);
        pairs.insert(by.0, by.1.to_owned());
        let (query, mut next, mut pages) = (parsed(&pairs), None::<String>, Vec::new());
        loop {
            let cut = Cut {
                limit: 20,
                continuation: next.as_deref(),
                total: true,
            };
            let page = listing.page(&query, cut).await.unwrap();
            assert_eq!(page.total, Some(1), "few enough to count");
            pages.push(page.found.len());
            next = page.continuation;
            if next.is_none() {
                break;
            }
        }
        assert_eq!(pages, [0, 0, 1], "{by:?}");
    }
    let cut = Cut {
        limit: 5,
        continuation: None,
        total: true,
    };
    let all = listing.page(&parsed(&BTreeMap::new()), cut).await.unwrap();
    assert_eq!((all.found.len(), all.total), (5, Some(total as u64)));
}

#[tokio::test]
async fn a_walk_misses_nothing_however_often_anything_is_acted_on() {
    const ALL: u64 = 900;
    type Touched = fn(u64) -> bool;
    let mixtures: [Touched; 5] = [
        |n| n % 2 == 0,
        |n| n % 100 == 0,
        |n| n % 100 != 0,
        |n| n > 450,
        |n| n < 30,
    ];
    for touched in mixtures {
        let requests = Requests::new(Arc::new(MemoryStore::new()));
        let mut wanted = Vec::new();
        for n in 0..ALL {
            let mut request = simple(1, n).request();
            request.id = B256::left_padding_from(&(n * 7 % ALL).to_be_bytes());
            request.order_id = B256::repeat_byte(9) ^ request.id;
            requests.insert(&request, Batch::new()).await.unwrap();
            if touched(n) {
                let change = |facts: &mut Facts| facts.deposits.push(deposit(1, Standing::Final));
                let recorded = requests.record(&request.id, NOW, Batch::new(), change);
                recorded.await.unwrap();
                wanted.push(request.id);
            }
        }
        let listing = Listing::open(requests.store().clone()).await.unwrap();
        listing.complete().await.unwrap();
        for direction in ["asc", "desc"] {
            for limit in [7, 50] {
                let query = parsed(&BTreeMap::from([("sortDirection", direction.to_owned())]));
                let (found, total) = paged(&listing, &query, limit).await;
                let total = total.unwrap();
                assert_eq!(found, wanted);
                assert_eq!(total, wanted.len() as u64);
            }
            wanted.reverse();
        }
    }
}

#[tokio::test]
async fn continuations_are_of_one_query() {
    let all: Vec<_> = (1..=5).map(|n| simple(n, n.into())).collect();
    let listing = stored(Arc::new(MemoryStore::new()), &all).await;
    let query = |pairs: &[(&'static str, &str)]| {
        let pairs = pairs.iter().map(|(name, text)| (*name, (*text).to_owned()));
        parsed(&pairs.collect())
    };
    let page = async |query: &Query, continuation: Option<&str>| {
        let cut = Cut {
            limit: 2,
            continuation,
            total: false,
        };
        listing.page(query, cut).await
    };
    let first = page(&query(&[]), None).await.unwrap();
    let token = first.continuation.unwrap();
    assert!(page(&query(&[]), Some(&token)).await.is_ok());
    let cut = &token[..token.len() - 2];
    let other = query(&[("sortDirection", "asc")]);
    for (query, text) in [
        (&other, token.as_str()),
        (&query(&[]), cut),
        (&query(&[]), ""),
        (&query(&[]), "?"),
        (&query(&[]), "AAAA"),
    ] {
        assert_eq!(
            page(query, Some(text)).await,
            Err(ListingError::Foreign),
            "{text}"
        );
    }
}

#[tokio::test]
async fn requests_of_an_older_version_are_listed_once_they_are_read() {
    let all: Vec<_> = (1..=90)
        .map(|n| Made {
            state: n % 8,
            ..simple(n, n.into())
        })
        .collect();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let before = paged(
        &stored(store.clone(), &all).await,
        &parsed(&BTreeMap::new()),
        50,
    )
    .await;
    let mut batch = Batch::new().delete(rows::version::key(summaries::MADE));
    for kind in [rows::SUMMARY, rows::LISTED] {
        let mut walk = crate::store::walk::Walk::of(&*store, kind);
        loop {
            let rows = walk.page().await.unwrap();
            if rows.is_empty() {
                break;
            }
            // A request that exists may be of an older version.
            for (key, _) in rows.into_iter().skip(3) {
                batch = batch.delete(key);
            }
        }
    }
    store.commit(batch).await.unwrap();
    let report = check::check(&*store).await.unwrap();
    assert!(
        !report.to_string().contains("no summary"),
        "not said to be there: {report}"
    );
    let listing = Listing::open(store.clone()).await.unwrap();
    let cut = Cut {
        limit: 1,
        continuation: None,
        total: false,
    };
    let early = listing.page(&parsed(&BTreeMap::new()), cut).await;
    assert_eq!(early, Err(ListingError::Incomplete));
    listing.complete().await.unwrap();
    assert_eq!(paged(&listing, &parsed(&BTreeMap::new()), 50).await, before);
    let again = Listing::open(store).await.unwrap();
    assert!(again.page(&parsed(&BTreeMap::new()), cut).await.is_ok());
}

/// Orders of a victim, and of others in between: more than are read one by one.
async fn crowd(requests: &Requests, victims: u64, others: u64) {
    for number in 0..victims + others {
        let mut request = simple(1, 0).request();
        request.id = B256::left_padding_from(&(number + 1).to_be_bytes());
        request.order_id = B256::repeat_byte(9) ^ request.id;
        request.created_at += number;
        if number % 2 == 0 || number >= 2 * victims {
            request.user = USERS[1].into();
            request.recipient = USERS[1].into();
        }
        requests.insert(&request, Batch::new()).await.unwrap();
        let mut paid = deposit(1, Standing::Final);
        paid.transaction = format!("0x{number:064x}");
        let change = |facts: &mut Facts| facts.deposits.push(paid.clone());
        let recorded = requests.record(&request.id, NOW + number, Batch::new(), change);
        recorded.await.unwrap();
    }
}

#[tokio::test]
async fn a_names_requests_are_walked_in_every_order_without_anybody_elses() {
    let requests = Requests::new(Arc::new(MemoryStore::new()));
    crowd(&requests, FEW as u64 + 100, 3 * LOOKED as u64).await;
    let listing = Listing::open(requests.store().clone()).await.unwrap();
    listing.complete().await.unwrap();
    let own = ("user", USERS[0].to_owned());
    // One of the most accounts that a query may name; the others have few requests or none.
    let several = |count: u8| {
        let names = (2..=count).map(|number| format!("0x{number:040x}"));
        let names: Vec<_> = names.chain([USERS[0].to_owned()]).collect();
        ("filters", json!([{"user": names}]).to_string())
    };
    for (named, sort) in [own, several(9), several(64)]
        .into_iter()
        .flat_map(|named| ["createdAt", "updatedAt", "amountUsd"].map(|sort| (named.clone(), sort)))
    {
        for direction in ["asc", "desc"] {
            let pairs = BTreeMap::from([
                named.clone(),
                ("sortBy", sort.to_owned()),
                ("sortDirection", direction.to_owned()),
            ]);
            let cut = Cut {
                limit: 50,
                continuation: None,
                total: false,
            };
            let page = listing.page(&parsed(&pairs), cut).await.unwrap();
            assert_eq!(page.found.len(), 50, "{sort} {direction}");
            let own = Name::of(USERS[0]);
            assert!(page.found.iter().all(|one| one.sender == own));
        }
    }
}

/// Counts the rows and bytes of commits.
#[derive(Default)]
struct Counting {
    inner: MemoryStore,
    last: std::sync::Mutex<Vec<(Key, usize)>>,
}

#[async_trait::async_trait]
impl Store for Counting {
    async fn commit(&self, batch: Batch) -> Result<crate::store::Outcome, StoreError> {
        *self.last.lock().unwrap() = batch.sizes();
        self.inner.commit(batch).await
    }
    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.read(key).await
    }
    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        self.inner.scan(range).await
    }
    async fn close(&self) {
        self.inner.close().await;
    }
}

#[tokio::test]
async fn one_more_deposit_of_many_writes_no_more_than_the_first_ones_did_but_for_the_facts() {
    let store = Arc::new(Counting::default());
    let requests = Requests::new(store.clone());
    let request = simple(1, 0).request();
    requests.insert(&request, Batch::new()).await.unwrap();
    let mut written = Vec::new();
    for number in 0..256_u64 {
        let mut paid = deposit(1, Standing::Final);
        paid.transaction = format!("0x{number:064x}");
        paid.onchain_id = B256::left_padding_from(&number.to_be_bytes());
        paid.place.number += number;
        let change = |facts: &mut Facts| facts.deposits.push(paid.clone());
        let recorded = requests.record(&request.id, NOW + number, Batch::new(), change);
        recorded.await.unwrap();
        let last = store.last.lock().unwrap();
        // Apart from the facts, which have all deposits of a request in one row.
        let (facts, others): (Vec<_>, Vec<_>) =
            last.iter().partition(|(key, _)| key.kind == rows::FACTS);
        let sum = |rows: &[&(Key, usize)]| rows.iter().map(|(_, size)| size).sum::<usize>();
        let most = 1_000 + 600 * (number as usize + 1);
        assert!(sum(&facts) < most, "{number}: {}", sum(&facts));
        written.push((others.len(), sum(&others)));
    }
    // Three orders, one account in the order of changes, the summary, and the new transaction.
    assert!(
        written[9].0 <= 10 && written[9].1 < 6_000,
        "{:?}",
        written[9]
    );
    assert!(
        written[9..].iter().all(|one| *one <= written[9]),
        "{written:?}"
    );
}

#[tokio::test]
async fn a_transaction_is_found_however_many_there_are_before_it() {
    let requests = Requests::new(Arc::new(MemoryStore::new()));
    let request = simple(1, 0).request();
    requests.insert(&request, Batch::new()).await.unwrap();
    let change = |facts: &mut Facts| {
        for number in 0..100_u64 {
            let mut paid = deposit(1, Standing::Final);
            paid.transaction = format!("0x{number:064x}");
            paid.onchain_id = B256::left_padding_from(&number.to_be_bytes());
            facts.deposits.push(paid);
        }
    };
    let recorded = requests.record(&request.id, NOW, Batch::new(), change);
    recorded.await.unwrap();
    let listing = Listing::open(requests.store().clone()).await.unwrap();
    listing.complete().await.unwrap();
    let last = format!("0x{:064x}", 99);
    for (name, count) in [("depositTxHash", 1), ("term", 1), ("fillTxHash", 0)] {
        let pairs = BTreeMap::from([(name, last.clone())]);
        let (found, _) = paged(&listing, &parsed(&pairs), 9).await;
        assert_eq!(found.len(), count, "{name}");
    }
    let report = check::check(&**requests.store()).await.unwrap();
    assert_eq!(report.defects, 0, "{report}");
}
