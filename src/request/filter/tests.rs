use serde_json::json;

use super::*;
use crate::request::{
    fact::{Facts, Purpose, Standing, State},
    fixtures::{self, attempt, deposit},
    reason::FailReason,
};

fn parse(pairs: &[(&str, &str)]) -> Result<Asked, Wrong> {
    edition(Edition::V3, pairs)
}

fn edition(edition: Edition, pairs: &[(&str, &str)]) -> Result<Asked, Wrong> {
    let pairs = pairs.iter();
    let pairs = pairs.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    let caller = Caller {
        label: Some("app"),
        key: Some("secret"),
    };
    Asked::parse(edition, pairs, &caller, &[7, 8])
}

/// Why these filters are refused.
fn refused(filters: &str) -> String {
    let wrong = parse(&[("filters", filters)]).unwrap_err();
    assert_eq!(
        (wrong.code, wrong.parameter.as_str()),
        ("INVALID_FILTERS", "filters")
    );
    wrong.why
}

fn summary() -> Summary {
    let mut request = fixtures::request(1);
    request.api_key = Some("app".into());
    request.quoted = json!({"appFees": [{"recipient": "0x1", "bps": "1", "amount": "2"}]}).into();
    let facts = Facts {
        deposits: vec![deposit(3, Standing::Final)],
        attempts: vec![attempt(Purpose::Fill, State::Confirmed(fixtures::place(9)))],
        updated_at: request.created_at + 9_000,
        ..Facts::default()
    };
    Summary::of(&request, &facts)
}

fn means(pairs: &[(&str, &str)]) -> bool {
    matches(&parse(pairs).unwrap().query, &summary())
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn every_parameter_means_what_it_says() {
    let (id, order) = (
        "0x".to_owned() + &"01".repeat(32),
        "0x".to_owned() + &"81".repeat(32),
    );
    let hash = format!("0x{:064X}", 3);
    let upper = fixtures::USER.to_uppercase().replace("0X", "0x");
    let fits = [
        ("id", id.as_str()),
        ("orderId", &order),
        ("term", &id),
        ("term", &hash),
        ("term", &upper),
        ("term", "0xF111"),
        ("depositTxHash", &hash),
        ("fillTxHash", "0xf111"),
        ("originChainId", "31001"),
        ("originChainId", "0x7919"),
        ("startBlock", "0x9"),
        ("destinationChainId", "31002"),
        ("chainId", "31002"),
        ("user", &upper),
        ("recipient", fixtures::USER),
        ("status", "success"),
        ("failReason", "N/A"),
        ("apiKey", "app"),
        ("apiKey", "secret"),
        ("requestType", "crosschain swap"),
        ("currencyInChainId", "31001"),
        ("currencyOutChainId", "31002"),
        ("currencyInAddress", fixtures::USDC),
        ("startTimestamp", "1700000000"),
        ("endTimestamp", "1700000000"),
        ("startBlock", "9"),
        ("endBlock", "3"),
        ("fillTimeMin", "6"),
        ("fillTimeMax", "6"),
        ("features", "fast_fill,app_fees"),
    ];
    for (name, text) in fits {
        assert!(means(&[(name, text)]), "{name}={text}");
    }
    let others = [
        ("id", order.as_str()),
        ("orderId", &id),
        ("term", &order),
        ("fillTxHash", &hash),
        ("depositTxHash", "0xf111"),
        ("refundTxHash", "0xf111"),
        ("originChainId", "31002"),
        ("chainId", "31003"),
        ("depositAddress", fixtures::USER),
        ("status", "pending"),
        ("failReason", "SLIPPAGE"),
        ("requestType", "Bridge"),
        ("currencyInSymbol", "usdc"),
        ("startTimestamp", "1700000001"),
        ("endTimestamp", "1699999999"),
        ("startBlock", "10"),
        ("endBlock", "2"),
        ("amountUsdMin", "0"),
        ("fillTimeMax", "5"),
        ("features", "fast_fill"),
    ];
    for (name, text) in others {
        assert!(!means(&[(name, text)]), "{name}={text}");
    }
    assert!(
        means(&[("chainId", "5"), ("originChainId", "31001")]),
        "overridden"
    );
    assert!(
        !means(&[("startBlock", "9"), ("originChainId", "31001")]),
        "only there"
    );
    assert!(means(&[
        ("startTimestamp", "1700000009"),
        ("sortBy", "updatedAt")
    ]));
}

#[test]
fn parameters_that_mean_nothing_are_refused_by_name() {
    for (name, text) in [
        ("limit", "0"),
        ("limit", "51"),
        ("limit", "x"),
        ("id", "0x1"),
        ("orderId", "81"),
        ("term", ""),
        ("user", ""),
        ("chainId", "-1"),
        ("chainId", "+1"),
        ("chainId", "0x"),
        ("startBlock", "0xg"),
        ("originChainId", "9007199254740992"),
        ("status", "fallback"),
        ("status", "submitted"),
        ("status", "Success"),
        ("requestType", "swap"),
        ("apiKey", "other"),
        ("apiKey", "app,other"),
        ("features", "app_fees,"),
        ("sortBy", "status"),
        ("sortDirection", "up"),
        ("amountUsdMin", "1e18"),
        ("amountUsdMin", "-1"),
        ("fillTimeMin", "1.5"),
        ("startTimestamp", "2020-01-01"),
        ("includeTotal", "yes"),
        ("includeChildRequests", "2"),
        ("privateChainsToInclude", "base"),
    ] {
        let wrong = parse(&[(name, text)]).unwrap_err();
        assert_eq!(wrong.parameter, name, "{name}={text}");
    }
    let long = "x".repeat(513);
    assert!(parse(&[("user", &long)]).is_err());
    assert!(parse(&[("user", "a"), ("user", "a")]).is_err());
    let own = parse(&[("apiKey", "other")]).unwrap_err();
    assert_eq!(own.code, "API_KEY_NOT_OWNED");
}

#[test]
fn groups_are_ored_and_their_fields_anded() {
    let fits = [
        json!([{"status": "success"}]),
        json!([{"status": "refund"}, {"status": ["failure", "success"]}]),
        json!([{"status": "success", "originChainId": 31_001, "destinationChainId": "31002"}]),
        json!([{"not:status": "refund"}]),
        json!([{"failReason": null, "not:fillTxHash": null, "depositAddress": null}]),
        json!([{"not:user": ["0x01", "0x02"], "user": fixtures::USER}]),
        json!([{"chainId": 5, "originChainId": 31_001}]),
        json!([]),
    ];
    for filters in fits {
        assert!(means(&[("filters", &filters.to_string())]), "{filters}");
    }
    let others = [
        json!([{"status": "refund"}]),
        json!([{"status": "success", "originChainId": 1}]),
        json!([{"not:status": ["refund", "success"]}]),
        json!([{"not:failReason": null}, {"fillTxHash": null}]),
    ];
    for filters in others {
        assert!(!means(&[("filters", &filters.to_string())]), "{filters}");
    }
    assert!(!means(&[
        ("filters", r#"[{"status":"success"}]"#),
        ("status", "refund")
    ]));
}

/// guide: protocol 12.5.
#[test]
fn bombs_are_refused_cheaply() {
    let group = |n: usize| {
        let fields: Vec<_> = (0..n).map(|n| format!(r#""x{n}":1"#)).collect();
        format!("{{{}}}", fields.join(","))
    };
    let many = |n: usize, one: &str| format!("[{}]", vec![one; n].join(","));
    let values = format!(r#"[{{"chainId":{}}}]"#, many(65, "1"));
    let full = format!(r#"{{"currencyInSymbol":{}}}"#, many(64, r#""a""#));
    for (filters, why) in [
        ("x".repeat(8193), "8192 bytes"),
        ("[".repeat(8000), "expected a JSON array"),
        (many(17, r#"{"chainId":1}"#), "more than 16 groups"),
        (format!("[{}]", group(33)), "more than 32 fields"),
        (values, "at most 64 values"),
        (many(5, &full), "at most 256 values in all"),
        ("{}".into(), "expected a JSON array"),
        ("[1]".into(), "expected a JSON array"),
        ("[{}]".into(), "must have a field"),
        (r#"[{"not:not:status":"success"}]"#.into(), "stands twice"),
        (
            r#"[{"status":["success",null]}]"#.into(),
            "null stands alone",
        ),
        (r#"[{"status":[null]}]"#.into(), "null stands alone"),
        (r#"[{"status":[]}]"#.into(), "expected a value"),
        (
            r#"[{"status":["success",["refund"]]}]"#.into(),
            "texts or numbers",
        ),
        (r#"[{"status":{"a":1}}]"#.into(), "texts or numbers"),
        (r#"[{"status":true}]"#.into(), "texts or numbers"),
        (r#"[{"chainId":1.5}]"#.into(), "texts or numbers"),
        (r#"[{"status":"waiting"}]"#.into(), "beside groups only"),
        (r#"[{"user":""}]"#.into(), "must not be empty"),
        (
            r#"[{"features":"app_fees"}]"#.into(),
            "a parameter of its own",
        ),
        (r#"[{"not:startBlock":1}]"#.into(), "a parameter of its own"),
        (r#"[{"amountUsdMin":1}]"#.into(), "a parameter of its own"),
        (r#"[{"filters":"[]"}]"#.into(), "a parameter of its own"),
        (r#"[{"referrer":"x"}]"#.into(), "is not a field"),
        (r#"[{"__proto__":1}]"#.into(), "is not a field"),
        (
            r#"[{"status":"success","status":"refund"}]"#.into(),
            "stands twice",
        ),
        (r#"[{"apiKey":"other"}]"#.into(), "own key"),
        (r#"[{"not:apiKey":"other"}]"#.into(), "own key"),
        (r#"[{"not:apiKey":null}]"#.into(), "own key"),
        (r#"[{"apiKey":null}]"#.into(), "own key"),
        (
            "[{\"status\":\"success\"}] x".into(),
            "expected a JSON array",
        ),
    ] {
        let found = refused(&filters);
        let shown: String = filters.chars().take(60).collect();
        assert!(found.contains(why), "{shown}: {found}");
        assert!(found.len() < 300, "{found}");
    }
}

#[test]
fn older_editions_have_fewer_parameters() {
    let of = |version, pairs: &[(&str, &str)]| edition(version, pairs).unwrap().query;
    let found = of(
        Edition::V2,
        &[("hash", "0xF111"), ("referrer", "x"), ("filters", "x")],
    );
    // Whose request it was is asked of the caller's own requests.
    let own = &of(Edition::V2, &[("apiKey", "app")]).all[0];
    assert_eq!(found.all.len(), 3);
    assert!(found.all.contains(own));
    assert!(matches(
        &of(Edition::V2, &[("user", fixtures::USER)]),
        &summary()
    ));
    assert_eq!(
        of(Edition::V1, &[("status", "success"), ("sortBy", "x")]),
        of(Edition::V1, &[])
    );
    assert!(edition(Edition::V2, &[("sortBy", "amountUsd")]).is_err());
    let whole = edition(
        Edition::V2,
        &[("includeOrderData", "true"), ("limit", "50")],
    )
    .unwrap();
    assert_eq!((whole.order, whole.limit), (true, 50));
}

#[test]
fn what_is_no_parameter_is_refused_with_the_right_one() {
    for (name, code, hint) in [
        ("hash", "REMOVED_PARAMETER", "depositTxHash"),
        ("referrer", "REMOVED_PARAMETER", "apiKey"),
        ("includeOrderData", "REMOVED_PARAMETER", "protocol"),
        ("depositTxhash", "UNKNOWN_PARAMETER", "depositTxHash?"),
        ("users", "UNKNOWN_PARAMETER", "user?"),
        ("orignChainId", "UNKNOWN_PARAMETER", "originChainId?"),
        ("filter", "UNKNOWN_PARAMETER", "filters?"),
        ("__proto__", "UNKNOWN_PARAMETER", "no parameter of this"),
        ("", "UNKNOWN_PARAMETER", "no parameter of this"),
    ] {
        let wrong = parse(&[("user", fixtures::USER), (name, "0x1")]).unwrap_err();
        assert_eq!((wrong.code, wrong.parameter.as_str()), (code, name));
        assert!(wrong.why.contains(hint), "{name}: {wrong}");
    }
    let long = "x".repeat(10_000);
    let wrong = parse(&[(&long, "1")]).unwrap_err().to_string();
    assert!(wrong.len() < 200, "{wrong}");
    // Every name of an edition is known to it, and stands there once.
    for version in [Edition::V1, Edition::V2, Edition::V3] {
        let names: Vec<_> = table::all(version).map(|one| one.name).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(table::of(version, name).is_some(), "{name}");
            assert!(!names[..at].contains(name), "{name} twice");
        }
    }
    let counts = [Edition::V1, Edition::V2, Edition::V3].map(|one| table::all(one).count());
    assert_eq!(counts, [10, 23, 43]);
}

#[test]
fn a_referrer_is_asked_for_by_the_owner_only() {
    let pairs = [("referrer".to_owned(), "somebody".to_owned())];
    let asked = Asked::parse(Edition::V2, pairs, &Caller::default(), &[]);
    assert_eq!(asked.unwrap_err().code, "API_KEY_NOT_OWNED");
    let mut summary = summary();
    summary.referrer = Some("somebody".into());
    let query = edition(Edition::V2, &[("referrer", "somebody")]).unwrap();
    assert!(matches(&query.query, &summary));
    summary.api_key = Some("other".into());
    assert!(!matches(&query.query, &summary));
}

#[test]
fn private_chains_are_named_or_hidden() {
    let mut private = summary();
    private.destination.chain = 8;
    let query = |pairs: &[(&str, &str)]| parse(pairs).unwrap().query;
    assert!(!matches(&query(&[]), &private));
    assert!(!matches(&query(&[("destinationChainId", "8")]), &private));
    assert!(matches(
        &query(&[("privateChainsToInclude", "8, 9")]),
        &private
    ));
    assert!(!matches(
        &query(&[("privateChainsToInclude", "7")]),
        &private
    ));
}

#[test]
fn dollars_between_millionths_are_rounded_inwards() {
    let spans = |from: &str, to: &str| {
        let asked = parse(&[("amountUsdMin", from), ("amountUsdMax", to)]).unwrap();
        (asked.query.ranges.amount.from, asked.query.ranges.amount.to)
    };
    assert_eq!(spans("1.5", "2"), (Some(1_500_000), Some(2_000_000)));
    assert_eq!(spans("0.0000001", "0.0000019"), (Some(1), Some(1)));
    assert_eq!(spans("0.0000000", "1.0000000"), (Some(0), Some(1_000_000)));
}

#[test]
fn what_waits_is_asked_for_by_its_own_status() {
    let query = |pairs: &[(&str, &str)]| parse(pairs).unwrap().query;
    let quote = Summary::of(&fixtures::request(2), &Facts::default());
    let user = ("user", fixtures::USER);
    let waiting = query(&[("status", "waiting"), user]);
    assert!(waiting.waits() && matches(&waiting, &quote) && !matches(&waiting, &summary()));
    // Of no user those of the caller's key; without a key nobody's.
    let mut own = fixtures::request(2);
    own.api_key = Some("app".into());
    let own = Summary::of(&own, &Facts::default());
    for asked in [Edition::V2, Edition::V3] {
        let of = |pairs: &[(&str, &str)]| edition(asked, pairs).unwrap().query;
        let mine = of(&[("status", "waiting")]);
        assert!(mine.waits() && matches(&mine, &own) && !matches(&mine, &quote));
        let theirs = of(&[("status", "waiting"), user]);
        assert!(matches(&theirs, &own) && matches(&theirs, &quote));
        let pairs = [("status", "waiting"), user];
        for pairs in [&pairs[..1], &pairs] {
            let pairs = pairs.iter();
            let pairs = pairs.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
            let wrong = Asked::parse(asked, pairs, &Caller::default(), &[]).unwrap_err();
            let refused = (wrong.code, wrong.parameter.as_str());
            assert_eq!(refused, ("API_KEY_NOT_OWNED", "status"));
        }
        let pairs = [("status".to_owned(), "pending".to_owned())];
        assert!(Asked::parse(asked, pairs, &Caller::default(), &[]).is_ok());
    }
    assert!(!query(&[("status", "pending")]).waits() && !query(&[]).waits());
    // No order has what quotes are worth.
    let wrong = parse(&[("status", "waiting"), ("sortBy", "amountUsd")]).unwrap_err();
    assert_eq!(
        (wrong.code, wrong.parameter.as_str()),
        ("INVALID_FIELD", "sortBy")
    );
    assert!(query(&[("status", "waiting"), ("sortBy", "updatedAt")]).waits());
    let old = edition(Edition::V2, &[("status", "waiting")]).unwrap();
    assert!(old.query.waits());
    for (group, why) in [
        (r#"[{"not:status":"waiting"}]"#, "beside groups only"),
        (r#"[{"status":"fallback"}]"#, "expected success"),
    ] {
        assert!(refused(group).contains(why), "{group}");
    }
    // The oldest edition has no such parameter.
    let oldest = edition(Edition::V1, &[("status", "waiting")]).unwrap();
    assert!(!oldest.query.waits());
}

#[test]
fn what_is_named_is_looked_up() {
    let of = |pairs: &[(&str, &str)]| parse(pairs).unwrap().query.lookups();
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[("status", "success"), ("chainId", "1")]), None);
    let id = "0x".to_owned() + &"01".repeat(32);
    let by_id = vec![Lookup::Id(alloy::primitives::B256::repeat_byte(1))];
    assert_eq!(of(&[("id", &id), ("user", fixtures::USER)]), Some(by_id));
    let named = |text: &str| Lookup::Name(Name::of(text));
    let hash = [("user", fixtures::USER), ("fillTxHash", id.as_str())];
    assert_eq!(of(&hash), Some(vec![named(&id)]));
    let groups = json!([{"user": ["0x01", "0x02"]}, {"status": "success", "recipient": "0x02"}]);
    let both = Some(vec![named("0x01"), named("0x02")]);
    assert_eq!(of(&[("filters", &groups.to_string())]), both);
    let half = json!([{"user": "0x01"}, {"status": "success"}]);
    assert_eq!(of(&[("filters", &half.to_string())]), None);
    let not = json!([{"not:user": "0x01"}]);
    assert_eq!(of(&[("filters", &not.to_string())]), None);
}

#[test]
fn reasons_of_failures_are_found() {
    let facts = Facts {
        deposits: vec![deposit(1, Standing::Final)],
        attempts: vec![attempt(
            Purpose::Refund,
            State::Confirmed(fixtures::place(9)),
        )],
        failure: Some(FailReason::Slippage),
        ..Facts::default()
    };
    let refunded = Summary::of(&fixtures::request(1), &facts);
    let query = parse(&[("failReason", "SLIPPAGE"), ("refundTxHash", "0x4ef0")])
        .unwrap()
        .query;
    assert!(matches(&query, &refunded));
    assert!(!matches(
        &parse(&[("failReason", "N/A")]).unwrap().query,
        &refunded
    ));
}
