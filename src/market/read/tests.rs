use serde_json::{Value, json};

use super::*;

fn parse(change: impl FnOnce(&mut Value)) -> Result<Market, String> {
    let zero = format!("0x{}", "00".repeat(20));
    let mut file = json!([{
        "name": "base", "chainId": 8453, "displayName": "Base",
        "currencies": [
            {"address": zero, "symbol": "ETH", "name": "Ether", "decimals": 18, "group": "eth",
             "class": "major", "solver": true, "prices": [{"kind": "peg", "usd": "2500"}]},
            {"address": "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", "symbol": "USDC",
             "name": "USD Coin", "decimals": 6, "group": "usdc"},
        ],
    }]);
    change(&mut file[0]);
    let families = |name: &str| (name == "base").then_some(vm::SETTLEMENT);
    Market::parse(&file.to_string(), families).map_err(|error| error.to_string())
}

#[test]
fn networks_and_currencies_are_found() {
    let market = parse(|_| {}).unwrap();
    let base = market.by_number(8453).unwrap();
    assert_eq!(
        market.by_name("base").unwrap().display_name,
        base.display_name
    );
    let usdc = base
        .currency("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913")
        .unwrap();
    assert_eq!((usdc.decimals, usdc.solver), (6, false));
    assert_eq!(base.native().unwrap().symbol, "ETH");
    assert!(market.by_number(1).is_none());
}

#[test]
fn mistakes_are_named() {
    for (pointer, value, wanted) in [
        ("/name", json!("nowhere"), "not a chain of the chains file"),
        ("/chainId", json!("x"), "[0].chainId"),
        ("/chainId", json!(1_u64 << 53), "2^53"),
        ("/blockSeconds", json!(3_601), "blockSeconds: expected"),
        ("/blockSeconds", json!(0), "[0].blockSeconds"),
        ("/currencies", json!([]), "must not be empty"),
        ("/currencies/0/address", json!("ether"), "ETH"),
        ("/currencies/0/decimals", json!(6), "ETH has 18 decimals"),
        (
            "/currencies/1/hourlycap",
            json!("1"),
            "unknown field `hourlycap`",
        ),
        ("/hourlycap", json!("1"), "unknown field `hourlycap`"),
        (
            "/currencies/1/priceHolds",
            json!({"seconds": 0}),
            "priceHolds: seconds",
        ),
        (
            "/currencies/1/priceHolds",
            json!({"seconds": 3_601}),
            "priceHolds: seconds",
        ),
        (
            "/currencies/1/priceHolds",
            json!({"seconds": 60, "waiting": 7_201}),
            "priceHolds: waiting",
        ),
        (
            "/currencies/1/priceHolds",
            json!({"seconds": 60, "spread": 1_001}),
            "priceHolds: spread",
        ),
        (
            "/currencies/1/address",
            json!(format!("0x{}", "00".repeat(20))),
            "twice",
        ),
        ("/fillRouter", json!("router"), "router"),
        ("/previousFillRouters", json!(["before"]), "before"),
        ("/approvalProxy", json!("proxy"), "proxy"),
        ("/limits", json!({"maxfee": 3}), "unknown field `maxfee`"),
        ("/limits", json!({"gas": "x"}), "limits: invalid type"),
        ("/limits", json!(3), "[0].limits"),
    ] {
        let error = parse(|network| {
            if let Some(found) = network.pointer_mut(pointer) {
                *found = value;
                return;
            }
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            network.pointer_mut(parent).unwrap()[field] = value;
        })
        .unwrap_err();
        assert!(error.contains(wanted), "{pointer}: {error}");
    }
}

/// Each is looked up by its number and by its name.
#[test]
fn a_network_stands_once() {
    let zero = format!("0x{}", "00".repeat(20));
    let network = |name: &str, number: u64| {
        json!({
            "name": name, "chainId": number, "displayName": "Net",
            "currencies": [
                {"address": zero, "symbol": "ETH", "name": "Ether", "decimals": 18, "group": "eth"},
            ],
        })
    };
    let read = |second: Value| {
        let file = json!([network("one", 1), second]).to_string();
        let market = Market::parse(&file, |_| Some(vm::SETTLEMENT));
        market.map_err(|error| error.to_string())
    };
    for (name, number) in [("two", 1), ("one", 2)] {
        let error = read(network(name, number)).unwrap_err();
        assert_eq!(error, format!("{name}: stands there twice"));
    }
    let market = read(network("two", 2)).unwrap();
    for (name, number) in [("one", 1), ("two", 2)] {
        assert_eq!(market.by_name(name).unwrap().chain_id, number);
        assert_eq!(market.by_number(number).unwrap().name, name);
    }
}

/// Payments have time to land before deadlines by it: with a wrong one they are begun too late.
#[test]
fn blocks_come_as_in_their_family_where_the_file_is_silent() {
    for (family, said, pace) in [
        ("ethereum-vm", None, 2),
        ("solana-vm", None, 1),
        ("bitcoin-vm", None, 600),
        ("bitcoin-vm", Some(5), 5),
    ] {
        let family = vm::family(family).unwrap();
        let native = family.native().unwrap();
        let mut network = json!({
            "name": "net", "chainId": 1, "displayName": "Net",
            "currencies": [{
                "address": native.text(), "symbol": "N", "name": "N", "group": "n",
                "decimals": family.native_decimals.unwrap_or(18),
            }],
        });
        if let Some(said) = said {
            network["blockSeconds"] = json!(said);
        }
        let file = json!([network]).to_string();
        let market = Market::parse(&file, |_| Some(family)).unwrap();
        let found = market.by_name("net").unwrap().block_seconds;
        assert_eq!(found, pace, "{} {said:?}", family.name);
    }
}

#[test]
fn a_limit_that_stands_twice_is_refused() {
    let read = |text: &str| {
        let mut reader = serde_json::Deserializer::from_str(text);
        crate::market::each_once(&mut reader)
    };
    let error = read(r#"{"maxFee": 1, "maxFee": 2}"#)
        .unwrap_err()
        .to_string();
    assert!(error.contains("maxFee stands twice"), "{error}");
    assert_eq!(read(r#"{"maxFee": 1, "gas": 2}"#).unwrap().len(), 2);
    assert!(read("[]").is_err());
}

#[test]
fn limits_of_the_file_are_those_of_transactions() {
    let fees = "0x420000000000000000000000000000000000000f";
    let limits = json!({"gas": 1, "callsGas": 2, "maxFee": 3, "bytes": 4, "authorizations": true, "dataFees": fees});
    let market = parse(|network| network["limits"] = limits).unwrap();
    let base = market.by_name("base").unwrap();
    let wanted = vm::trade::Limits {
        work: 1,
        calls_work: 2,
        rate: 3,
        besides: true,
    };
    assert_eq!(base.limits(vm::SETTLEMENT), Ok(Some(wanted)));
    // Nobody sends transactions of such a family: it has no limits, whatever they are called.
    let idle = vm::Family {
        limits: None,
        ..*vm::SETTLEMENT
    };
    let error = base.limits(&idle).unwrap_err().to_string();
    assert!(error.contains("limits"), "{error}");
    let market = parse(|_| {}).unwrap();
    let base = market.by_name("base").unwrap();
    assert_eq!(base.limits(&idle), Ok(None));
    assert!(base.limits(vm::SETTLEMENT).is_ok());
}

#[test]
fn caps_are_dollars_as_texts() {
    use crate::market::Dollars;

    for (text, micro) in [
        ("1", Some(1_000_000)),
        ("50000.5", Some(50_000_500_000)),
        ("0.000001", Some(1)),
        ("0.0000001", None),
        ("1e3", None),
        ("-1", None),
        ("", None),
        ("1.", None),
        ("99999999999999999999", None),
    ] {
        let read = serde_json::from_value::<Dollars>(serde_json::json!(text)).ok();
        assert_eq!(read.map(|dollars| dollars.0), micro, "{text}");
    }
    let caps = |json| serde_json::from_value::<crate::market::Caps>(json).is_ok();
    assert!(caps(
        serde_json::json!({"hourly": "1", "hourlyPerUser": "2"})
    ));
    // A limit that is misspelled is none.
    assert!(!caps(serde_json::json!({"hourlyCap": "1"})));
}

#[test]
fn currencies_with_one_source_are_told() {
    let currency = |symbol: &str, prices: serde_json::Value| {
        serde_json::json!({
            "address": format!("0x{:040x}", symbol.len() - 1), "symbol": symbol, "name": symbol,
            "decimals": 18, "group": symbol, "prices": prices,
        })
    };
    let peg = || serde_json::json!({"kind": "peg", "usd": "1"});
    let pyth = || serde_json::json!({"kind": "pyth", "url": "http://x", "id": "1", "maxAge": 1});
    let file = serde_json::json!([{
        "name": "one", "chainId": 1, "displayName": "One",
        "currencies": [
            currency("A", serde_json::json!([peg()])),
            currency("BB", serde_json::json!([peg(), pyth()])),
            currency("CCC", serde_json::json!([peg(), peg()])),
            currency("DDDD", serde_json::json!([])),
        ],
    }]);
    let market = Market::parse(&file.to_string(), |_| Some(&vm::ethereum::FAMILY)).unwrap();
    assert_eq!(market.lonely(), [("one", "A"), ("one", "CCC")]);
    assert_eq!(market.uncapped(), ["one"]);
    let mut capped = file.clone();
    capped[0]["caps"] = serde_json::json!({"hourly": "1"});
    let market = Market::parse(&capped.to_string(), |_| Some(&vm::ethereum::FAMILY)).unwrap();
    assert_eq!(market.uncapped(), [""; 0]);
}

#[test]
fn a_network_stands_after_ten_blocks_where_money_is_real_or_when_its_file_says_so() {
    let mut network = parse(|_| {}).unwrap().by_name("base").unwrap().clone();
    for (pace, said, production, test) in [
        (2, None, Some(60), None),
        (12, None, Some(120), None),
        (600, None, Some(6_000), None),
        (2, Some(30), Some(30), Some(30)),
        (2, Some(0), None, None),
    ] {
        (network.block_seconds, network.stalled_after) = (pace, said);
        assert_eq!(network.stalled_after(true), production);
        assert_eq!(network.stalled_after(false), test);
    }
}
