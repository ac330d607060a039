use std::collections::BTreeSet;

use alloy::primitives::U256;
use serde_json::{Value, json};
use vm::{EvmAddress, protocol::action::Action};

use super::*;
use crate::request::{
    Execution,
    fact::{Applied, Attempt, Purpose, Settlement, Standing, State},
    fixtures::{self, attempt, deposit, place, sent},
    reason::{FailReason, RefundFailReason},
    summary::Summary,
    tx_details::{Change, Worth},
};

const NATIVE: &str = "0x0000000000000000000000000000000000000000";
const WETH: &str = "0x4200000000000000000000000000000000000006";

fn amount(chain: u64, symbol: &str, units: &str, usd: &str) -> Value {
    let native = symbol == "ETH";
    let (address, decimals) = match symbol {
        "USDC" => (fixtures::USDC, 6),
        "WETH" => (WETH, 18),
        _ => ("0x0000000000000000000000000000000000000000", 18),
    };
    json!({
        "currency": {"chainId": chain, "address": address, "symbol": symbol, "name": symbol,
            "decimals": decimals, "metadata": {"logoURI": "", "verified": true, "isNative": native}},
        "amount": units, "amountFormatted": "x", "amountUsd": usd, "minimumAmount": units,
    })
}

/// 100 USDC for 0.05 ETH of 2,000 dollars.
fn request() -> Request {
    let mut request = fixtures::request(1);
    let input = || amount(31_001, "USDC", "100000000", "100.000000");
    let output = || amount(31_002, "ETH", "50000000000000000", "100.000000");
    let fee = |units: &str, usd: &str| amount(31_001, "USDC", units, usd);
    request.destination.currency = "0x0000000000000000000000000000000000000000".into();
    request.api_key = Some("app".into());
    request.referrer = Some("somebody".into());
    request.quoted = json!({
        "fees": {
            "gas": amount(31_001, "ETH", "1000000000000", "0.002000"),
            "relayer": fee("130000", "0.130000"), "relayerGas": fee("100000", "0.100000"),
            "relayerService": fee("30000", "0.030000"), "app": fee("500000", "0.500000"),
            "subsidized": fee("0", "0"),
        },
        "appFees": [{"recipient": fixtures::USER, "bps": "50", "amount": "500000"}],
        "details": {
            "currencyIn": input(), "currencyOut": output(), "refundCurrency": input(),
            "expandedPriceImpact": {"swap": {"usd": "0"}, "execution": {"usd": "-0.12"},
                "relay": {"usd": "-0.01"}, "app": {"usd": "-0.5"}},
            "slippageTolerance": {"origin": {"usd": "0", "value": "0", "percent": "0.00"},
                "destination": {"usd": "2", "value": "1", "percent": "2.00"}},
            "rate": "0.0005", "timeEstimate": 30, "isFixedRate": false,
            "route": {
                "origin": {"inputCurrency": input(), "outputCurrency": input(), "router": "relay"},
                "destination": {"inputCurrency": output(), "outputCurrency": output(), "router": "relay"},
            },
        },
    })
    .into();
    request
}

fn paid(number: u8, standing: Standing) -> crate::request::fact::Deposit {
    deposit(number, standing)
}

fn fill(state: State) -> crate::request::fact::Attempt {
    crate::request::fact::Attempt {
        currency: "0x0000000000000000000000000000000000000000".into(),
        amount: U256::from(49_000_000_000_000_000_u64),
        ..attempt(Purpose::Fill, state)
    }
}

fn tx_details(number: u64, fee: u64) -> TxDetails {
    TxDetails {
        from: fixtures::USER.into(),
        to: Some(WETH.into()),
        data: Some(vec![1, 2].into()),
        value: U256::from(5),
        fee: U256::from(fee),
        place: place(number),
        success: true,
        changes: vec![Change {
            address: fixtures::USER.into(),
            currency: fixtures::USDC.into(),
            negative: true,
            amount: U256::from(6),
        }],
        prices: Vec::new(),
    }
}

/// With so many dollars for a coin.
fn priced(mut tx_details: TxDetails, (currency, decimals): (&str, u8), dollars: u64) -> TxDetails {
    tx_details.prices.push(Worth {
        currency: currency.into(),
        native: currency == NATIVE,
        decimals,
        usd: U256::from(dollars) * U256::from(1_000_000_000_000_000_000_u64),
    });
    tx_details
}

/// Of the market's networks the one that no request here names.
fn number(network: &str) -> Option<u64> {
    (network == "third").then_some(31_003)
}

struct Rendered {
    v3: Value,
    v2: Value,
    v1: Value,
}

fn rendered(request: &Request, facts: &Facts, seen: &[(&str, &str, TxDetails)]) -> Rendered {
    let seen = seen.iter();
    let seen = seen.map(|(network, hash, tx_details)| {
        let name = ((*network).to_owned(), (*hash).to_owned());
        (name, std::sync::Arc::new(tx_details.clone()))
    });
    let tx_details = seen.collect();
    let case = Case {
        request,
        facts,
        tx_details: &tx_details,
        number: &number,
        own: false,
        authenticated: false,
        order: false,
    };
    Rendered {
        v3: serde_json::to_value(v3(&case)).unwrap(),
        v2: serde_json::to_value(v2(&case)).unwrap(),
        v1: serde_json::to_value(v1(&case)).unwrap(),
    }
}

fn filled() -> Facts {
    Facts {
        deposits: vec![paid(3, Standing::Final)],
        attempts: vec![fill(State::Confirmed(place(9)))],
        updated_at: 1_700_000_009_000,
        ..Facts::default()
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a_filled_request_is_told_in_full() {
    let hash = deposit(3, Standing::Final).transaction;
    // 30,000,000,000,000 units of 2,000 dollars each 10^18: six cents.
    let gas = tx_details(9, 30_000_000_000_000);
    let seen = [
        ("origin", hash.as_str(), tx_details(3, 7)),
        ("destination", "0xf111", gas),
    ];
    let rendered = rendered(&request(), &filled(), &seen).v3;
    let root = [
        ("status", json!("success")),
        ("user", json!(fixtures::USER)),
        ("sender", json!(fixtures::USER)),
        ("refundTo", json!(fixtures::USER)),
        ("depositAddress", Value::Null),
        ("requestType", json!("Crosschain Swap")),
        ("features", json!(["app_fees"])),
        ("supersededByRequestId", Value::Null),
        ("createdAt", json!("2023-11-14T22:13:20.000Z")),
        ("updatedAt", json!("2023-11-14T22:13:29.000Z")),
    ];
    for (name, wanted) in root {
        assert_eq!(rendered.get(name), Some(&wanted), "{name}");
    }
    let data = &rendered["data"];
    let change = json!([{"address": fixtures::USER, "change": {"kind": "token",
        "data": {"tokenKind": "ft", "tokenAddress": fixtures::USDC}, "balanceDiff": "-6"}}]);
    let incoming = json!([{
        "txHash": hash, "fee": "7", "block": 3, "type": "onchain", "chainId": 31_001,
        "timestamp": 1_700_000_003, "status": "success", "stateChanges": change,
        "data": {"from": fixtures::USER, "to": WETH, "data": "0x0102", "value": "5"},
    }]);
    assert_eq!(data["inTxs"], incoming);
    assert_eq!(data["outTxs"][0]["txHash"], "0xf111");
    assert_eq!(data["outTxs"][0]["chainId"], 31_002);
    assert_eq!(data["slippageTolerance"], "200");
    assert_eq!(data["timeEstimate"], 30);
    let execution = &data["fees"]["actual"]["execution"];
    assert_eq!(
        data["fees"]["quoted"]["execution"],
        json!({"usd": "-0.12", "amount": "120000", "amountFormatted": "0.12"})
    );
    assert_eq!(
        execution["usd"], "-0.08",
        "ten quoted cents of gas were six"
    );
    assert_eq!(data["fees"]["quoted"]["platform"]["usd"], "-0.01");
    assert_eq!(data["fees"]["quoted"]["sponsored"]["usd"], "0");
    assert_eq!(data["fees"]["currency"]["symbol"], "USDC");
    let owed = json!([{"recipient": fixtures::USER, "bps": "50", "amount": "500000",
        "amountFormatted": "0.5", "amountUsd": "0.500000"}]);
    assert_eq!(data["appFees"]["actual"], owed);
    assert!(data["appFees"]["quoted"][0].get("amountUsd").is_none());
    let actual = &data["route"]["actual"];
    assert_eq!(
        actual["destination"]["outputCurrency"]["amountFormatted"],
        "0.049"
    );
    assert_eq!(
        actual["destination"]["outputCurrency"]["amountUsd"],
        "98.000000"
    );
    assert_eq!(actual["rate"], "0.00049");
    assert_eq!(
        data["route"]["quoted"]["destination"]["outputCurrency"]["amount"],
        "50000000000000000"
    );
    for name in [
        "failReason",
        "refundFailReason",
        "failedTxHash",
        "failedTxBlockNumber",
        "failedCallData",
        "triggeredByFastFill",
        "quoteOraclePrice",
        "refundCurrencyData",
        "feeSponsorship",
        // The owner's.
        "platformFee",
    ] {
        assert_eq!(data.get(name), Some(&Value::Null), "{name}");
    }
    assert_eq!(data["externalMetadata"], json!({"moonpayId": null}));
    for name in ["referrer", "apiKeyName"] {
        assert_eq!(data.get(name), None, "{name} is the owner's");
    }
    let protocol = &rendered["protocol"];
    assert_eq!(protocol["deposit"]["origin"]["transactionId"], json!(hash));
    assert_eq!(protocol["deposit"]["origin"]["amount"], "100000000");
    assert_eq!(protocol["solver"]["chainId"], 31_002);
    let fills = json!({"fills": [{"chainId": 31_002, "transactionId": "0xf111"}], "refunds": []});
    assert_eq!(protocol["settlement"]["destination"], fills);
    assert_eq!(protocol["isWithdrawable"], false);
}

#[test]
fn what_has_not_been_seen_is_null_or_not_there() {
    let told_of = |facts: &Facts| rendered(&request(), facts, &[]).v3;
    let waiting = told_of(&Facts::default());
    assert_eq!(waiting["status"], "waiting");
    assert_eq!(waiting["data"]["fees"]["actual"], Value::Null);
    assert_eq!(
        waiting["data"]["route"]["actual"]["destination"],
        waiting["data"]["route"]["quoted"]["destination"]
    );
    assert_eq!(waiting["protocol"]["deposit"]["origin"], Value::Null);
    let mut more = paid(3, Standing::Included);
    more.amount = U256::from(101_000_000);
    let deposited = told_of(&Facts {
        deposits: vec![more],
        ..Facts::default()
    });
    let actual = &deposited["data"]["route"]["actual"];
    assert_eq!(
        actual["origin"]["inputCurrency"]["amountFormatted"],
        "101.0"
    );
    assert_eq!(actual["origin"]["outputCurrency"], Value::Null);
    assert_eq!(deposited["data"]["inTxs"][0]["fee"], Value::Null);
    assert_eq!(deposited["data"]["inTxs"][0]["stateChanges"], Value::Null);
    // The fill was seen in another block than the one that counts.
    let other = [("destination", "0xf111", tx_details(8, 1))];
    let moved = rendered(&request(), &filled(), &other).v3;
    assert_eq!(moved["data"]["outTxs"][0]["fee"], Value::Null);
    assert_eq!(moved["data"]["fees"]["actual"]["execution"]["usd"], "-0.12");
    // A quote of an older version.
    let bare = rendered(&fixtures::request(1), &filled(), &[]);
    assert_eq!(bare.v3["data"]["fees"], Value::Null);
    assert_eq!(bare.v3["data"]["route"], Value::Null);
    assert_eq!(bare.v2["data"]["metadata"]["currencyIn"], Value::Null);
}

/// The names of what is null in `value`.
fn nulls(value: &Value) -> BTreeSet<String> {
    let of = |(name, field): (&String, &Value)| match field {
        Value::Null => BTreeSet::from([name.clone()]),
        field => nulls(field),
    };
    match value {
        Value::Object(fields) => fields.iter().flat_map(of).collect(),
        Value::Array(items) => items.iter().flat_map(nulls).collect(),
        _ => BTreeSet::new(),
    }
}

#[test]
fn null_stands_only_where_the_published_types_have_it() {
    let failed = Facts {
        attempts: vec![fill(State::Reverted {
            place: place(9),
            reason: None,
        })],
        ..filled()
    };
    // guide: protocol 11.11.
    let old = [
        "depositAddress",
        "supersededByRequestId",
        "expandedPriceImpact",
        "platformFee",
        "integratorFeeRecipient",
    ];
    let new = [
        "depositAddress",
        "supersededByRequestId",
        "failReason",
        "refundFailReason",
        "failedTxHash",
        "failedTxBlockNumber",
        "failedCallData",
        "timeEstimate",
        "triggeredByFastFill",
        "feeSponsorship",
        "fees",
        "platformFee",
        "integratorFeeRecipient",
        "route",
        "origin",
        "destination",
        "inputCurrency",
        "outputCurrency",
        "quoteOraclePrice",
        "refundCurrencyData",
        "moonpayId",
    ];
    for request in [request(), fixtures::request(1)] {
        for facts in [Facts::default(), filled(), failed.clone()] {
            let all = rendered(&request, &facts, &[]);
            for (edition, allowed) in [
                (&all.v3, &new[..]),
                (&all.v2, &old[..]),
                (&all.v1, &old[..]),
            ] {
                for null in nulls(edition) {
                    assert!(allowed.contains(&null.as_str()), "{null}: {edition}");
                }
            }
        }
    }
}

#[test]
fn what_ended_is_worth_what_it_was_then() {
    let hash = deposit(3, Standing::Final).transaction;
    let gas = tx_details(9, 30_000_000_000_000);
    // Gas that was quoted at 2,000 dollars a coin is paid at 3,000; a dollar has become two.
    let seen = [
        (
            "origin",
            hash.as_str(),
            priced(tx_details(3, 7), (fixtures::USDC, 6), 2),
        ),
        (
            "destination",
            "0xf111",
            priced(gas.clone(), (NATIVE, 18), 3_000),
        ),
    ];
    let data = rendered(&request(), &filled(), &seen).v3["data"].clone();
    assert_eq!(data["outTxs"][0]["feeUsd"], "0.090000");
    assert_eq!(
        data["inTxs"][0].get("feeUsd"),
        None,
        "nobody told its price"
    );
    assert_eq!(data["fees"]["actual"]["execution"]["usd"], "-0.11");
    assert_eq!(data["appFees"]["actual"][0]["amountUsd"], "1.000000");
    // In another block nobody has seen it: the quote's prices stay.
    let moved = [
        (
            "origin",
            hash.as_str(),
            priced(tx_details(4, 7), (fixtures::USDC, 6), 2),
        ),
        (
            "destination",
            "0xf111",
            priced(gas, (fixtures::USDC, 6), 3_000),
        ),
    ];
    let data = rendered(&request(), &filled(), &moved).v3["data"].clone();
    assert_eq!(data["outTxs"][0].get("feeUsd"), None);
    assert_eq!(data["fees"]["actual"]["execution"]["usd"], "-0.08");
    assert_eq!(data["appFees"]["actual"][0]["amountUsd"], "0.500000");
}

#[test]
fn exchanges_that_the_caller_named_are_told() {
    let lists = |rendered: &Rendered| {
        let route = &rendered.v3["data"]["route"];
        [
            "includedSwapSources",
            "includedOriginSwapSources",
            "includedDestinationSwapSources",
            "excludedSwapSources",
        ]
        .map(|name| route.get(name).cloned())
    };
    let of_sides = |rendered: &Rendered| {
        let route = &rendered.v2["data"]["metadata"]["route"];
        ["origin", "destination"].map(|side| route[side]["includedSwapSources"].clone())
    };
    let mut request = request();
    let plain = rendered(&request, &Facts::default(), &[]);
    let none = Some(json!([]));
    assert_eq!(lists(&plain), [none.clone(), none.clone(), none, None]);
    assert_eq!(of_sides(&plain), [json!([]), json!([])]);
    let side = &plain.v3["data"]["route"]["quoted"]["origin"];
    assert_eq!(side.get("includedSwapSources"), None);
    let mut quoted: Value = serde_json::from_str(request.quoted.json()).unwrap();
    quoted["swapSources"] =
        json!({"included": ["a", "b"], "excluded": ["c"], "destination": ["b"]});
    request.quoted = quoted.into();
    for facts in [Facts::default(), filled()] {
        let rendered = rendered(&request, &facts, &[]);
        let wanted = [json!(["a", "b"]), json!([]), json!(["b"]), json!(["c"])];
        assert_eq!(lists(&rendered), wanted.map(Some));
        assert_eq!(of_sides(&rendered), [json!(["a", "b"]), json!(["b"])]);
    }
}

#[test]
fn what_an_exchange_gave_is_told_as_it_came_out() {
    let mut facts = filled();
    // The solver paid the router, which exchanges it.
    facts.attempts[0].currency = WETH.into();
    let told_of = |seen: &[(&str, &str, TxDetails)]| {
        rendered(&request(), &facts, seen).v3["data"]["route"]["actual"].clone()
    };
    let unseen = told_of(&[]);
    let output = &unseen["destination"]["outputCurrency"];
    assert_eq!(output["amount"], "50000000000000000");
    assert_eq!(unseen["rate"], "0.0005");
    let mut seen = tx_details(9, 1);
    seen.changes.push(Change {
        address: fixtures::USER.into(),
        currency: NATIVE.into(),
        negative: false,
        amount: U256::from(48_000_000_000_000_000_u64),
    });
    let seen = told_of(&[("destination", "0xf111", seen)]);
    let output = &seen["destination"]["outputCurrency"];
    assert_eq!(output["amountFormatted"], "0.048");
    assert_eq!(seen["rate"], "0.00048");
}

#[test]
fn failures_and_refunds_say_why() {
    let reverted = State::Reverted {
        place: place(9),
        reason: None,
    };
    let mut refund = attempt(Purpose::Refund, State::Confirmed(place(12)));
    refund.amount = U256::from(99_000_000);
    let facts = Facts {
        deposits: vec![paid(3, Standing::Final)],
        attempts: vec![fill(reverted), refund],
        failure: Some(FailReason::Slippage),
        ..Facts::default()
    };
    let seen = [("destination", "0xf111", tx_details(9, 1))];
    let all = rendered(&request(), &facts, &seen);
    let data = &all.v3["data"];
    assert_eq!(all.v3["status"], "refund");
    assert_eq!(data["failReason"], "SLIPPAGE");
    assert_eq!(data["refundFailReason"], Value::Null);
    assert_eq!(data["failedTxHash"], "0xf111");
    assert_eq!(data["failedTxBlockNumber"], 9);
    assert_eq!(data["failedCallData"]["data"], "0x0102");
    assert_eq!(data["outTxs"][0]["status"], "failure");
    assert_eq!(data["outTxs"][1]["chainId"], 31_001);
    assert_eq!(data["refundCurrencyData"]["amountFormatted"], "99.0");
    let actual = &data["fees"]["actual"];
    assert_eq!(
        actual["execution"],
        json!({"usd": "-1", "amount": "1000000", "amountFormatted": "1.0"})
    );
    assert_eq!(actual["app"]["usd"], "0", "nobody is owed anything");
    assert_eq!(data["appFees"]["actual"], json!([]));
    let gone = Facts {
        deposits: vec![paid(3, Standing::Reorged)],
        failure: Some(FailReason::TtlExpired),
        refund_failure: Some(RefundFailReason::AmountTooLowToRefund),
        ..Facts::default()
    };
    let all = rendered(&request(), &gone, &[]);
    assert_eq!(all.v3["data"]["inTxs"][0]["status"], "failure");
    assert_eq!(
        all.v3["data"]["refundFailReason"],
        "AMOUNT_TOO_LOW_TO_REFUND"
    );
    assert_eq!(
        all.v2["data"]["refundFailReason"],
        "AMOUNT_TOO_LOW_TO_REFUND"
    );
}

#[test]
fn transactions_out_are_fills_or_what_went_back_to_the_user() {
    let users = paid(3, Standing::Final);
    let mut strangers = paid(4, Standing::Final);
    (strangers.own, strangers.amount) = (false, U256::from(1));
    let back = |purpose, deposit: &crate::request::fact::Deposit, transaction: &str| {
        crate::request::fact::Attempt {
            deposit: Some(deposit.onchain_id),
            transaction: transaction.into(),
            ..attempt(purpose, State::Confirmed(place(9)))
        }
    };
    let mut refund = back(Purpose::Refund, &users, "0x1");
    refund.amount = U256::from(99_000_000);
    let others = back(Purpose::Refund, &strangers, "0x2");
    let excess = back(Purpose::Excess, &users, "0x3");
    let filling = || fill(State::Confirmed(place(9)));
    let failed = fill(State::Reverted {
        place: place(8),
        reason: None,
    });
    let failed = crate::request::fact::Attempt {
        transaction: "0xfa".into(),
        ..failed
    };
    for (attempts, told) in [
        (vec![others.clone(), refund.clone()], vec!["0x1"]),
        (vec![others.clone()], vec![]),
        (vec![excess.clone(), filling()], vec!["0xf111"]),
        (vec![fill(State::Replaced), excess.clone()], vec!["0x3"]),
        (vec![failed.clone(), refund.clone()], vec!["0xfa", "0x1"]),
        (vec![failed, others, filling()], vec!["0xfa", "0xf111"]),
    ] {
        let facts = Facts {
            deposits: vec![users.clone(), strangers.clone()],
            attempts,
            ..Facts::default()
        };
        let data = rendered(&request(), &facts, &[]).v3["data"].take();
        let shown = data["outTxs"].as_array().unwrap().iter();
        let shown: Vec<_> = shown.map(|one| one["txHash"].as_str().unwrap()).collect();
        assert_eq!(shown, told, "{:?}", facts.attempts);
        let refunded = data["refundCurrencyData"]["amountFormatted"].as_str();
        let expected = told.contains(&"0x1").then_some("99.0");
        assert_eq!(refunded, expected, "{:?}", facts.attempts);
    }
}

#[test]
fn what_is_left_and_what_was_too_much_is_told() {
    let mut facts = filled();
    let place = place(9);
    facts.attempts.push(crate::request::fact::Attempt {
        transaction: "0xe".into(),
        ..attempt(Purpose::Excess, State::Confirmed(place))
    });
    let left = paid(7, Standing::Final);
    facts.end(crate::request::fact::Ending {
        deposit: left.onchain_id,
        reason: FailReason::IncorrectDepositCurrency,
        refused: Some(RefundFailReason::ManualRefundRequired),
        minor: false,
    });
    let (id, time) = (left.onchain_id, left.place.time);
    facts.deposits.push(left);
    let rendered = rendered(&request(), &facts, &[]);
    let refunds = &rendered.v3["protocol"]["settlement"]["destination"]["refunds"];
    assert_eq!(refunds[0]["transactionId"], "0xe", "{refunds}");
    let text = rendered.v3.to_string();
    let from = crate::format::iso((time + 604_800) * 1_000);
    for wanted in [
        "parkedDeposits",
        "/attestations/recover/v1",
        &from,
        &id.to_string(),
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[test]
fn older_editions_say_it_in_their_words() {
    let all = rendered(&request(), &filled(), &[]);
    let data = &all.v2["data"];
    assert_eq!(data["failReason"], "N/A");
    assert_eq!(data["inTxs"][0].get("txHash"), None);
    assert_eq!(
        data["inTxs"][0]["hash"],
        json!(deposit(3, Standing::Final).transaction)
    );
    assert_eq!(
        data["expandedPriceImpact"]["quoted"]["relay"]["usd"],
        "-0.01"
    );
    assert_eq!(data["currency"], "usdc");
    assert_eq!(data["feesUsd"]["gas"], "0.100000");
    assert_eq!(data["subsidizedRequest"], false);
    assert_eq!(data["metadata"]["sender"], json!(fixtures::USER));
    assert_eq!(data["metadata"]["currencyOut"]["amountFormatted"], "0.049");
    assert_eq!(data["paidAppFees"][0]["amountUsdCurrent"], Value::Null);
    assert_eq!(all.v2["referrer"], Value::Null, "the key's owner's only");
    assert_eq!(all.v2.get("orderData"), None);
    let states = [
        (Facts::default(), ["waiting", "waiting", "pending"]),
        (
            Facts {
                attempts: Vec::new(),
                ..filled()
            },
            ["pending", "pending", "received"],
        ),
        (
            Facts {
                attempts: vec![fill(State::Broadcast)],
                ..filled()
            },
            ["submitted", "pending", "pending"],
        ),
        (filled(), ["success", "success", "success"]),
        (
            Facts {
                attempts: vec![attempt(Purpose::Refund, State::Confirmed(place(9)))],
                failure: Some(FailReason::Slippage),
                ..filled()
            },
            ["refund", "refund", "fallback"],
        ),
    ];
    for (facts, wanted) in states {
        let all = rendered(&request(), &facts, &[]);
        let found = [&all.v3, &all.v2, &all.v1].map(|one| one["status"].clone());
        assert_eq!(found, wanted);
    }
}

#[test]
fn the_owner_is_shown_more() {
    let (request, facts) = (request(), filled());
    let tx_details = TxDetailsMap::new();
    let case = |authenticated| Case {
        request: &request,
        facts: &facts,
        tx_details: &tx_details,
        number: &number,
        own: true,
        authenticated,
        order: true,
    };
    let unasked = serde_json::to_value(v3(&case(false))).unwrap()["data"].clone();
    assert_eq!(unasked.get("referrer"), None);
    assert_eq!(unasked.get("apiKeyName"), None);
    assert_eq!(unasked.get("platformFee"), Some(&Value::Null));
    let unasked = serde_json::to_value(v2(&case(false))).unwrap()["data"].clone();
    assert_eq!(unasked.get("platformFee"), Some(&Value::Null));
    let case = case(true);
    let data = serde_json::to_value(v3(&case)).unwrap()["data"].clone();
    assert_eq!(data["referrer"], "somebody");
    assert_eq!(data["apiKeyName"], "app");
    assert_eq!(data["platformFee"]["relayFeeBps"], 1);
    assert_eq!(data["platformFee"]["totalPlatformFee"]["amount"], "10000");
    let v2 = serde_json::to_value(v2(&case)).unwrap();
    assert_eq!(v2["referrer"], "somebody");
    assert_eq!(v2["orderData"]["salt"], "1");
    assert_eq!(v2["data"]["platformFee"]["relayFeeBps"], 1);
}

/// A stranger's deposit for the request, a block before the user's.
fn strangers(amount: u64) -> Deposit {
    Deposit {
        own: false,
        amount: U256::from(amount),
        ..paid(2, Standing::Final)
    }
}

fn of(deposit: &Deposit, attempt: Attempt) -> Attempt {
    Attempt {
        deposit: Some(deposit.onchain_id),
        ..attempt
    }
}

/// What is told of the deposit wherever it is told: its transaction, and its amount in three places.
fn told_deposit(rendered: &Rendered) -> (Value, [Value; 3]) {
    let data = &rendered.v3["data"];
    let origin = &rendered.v3["protocol"]["deposit"]["origin"];
    let amounts = [
        origin["amount"].clone(),
        data["route"]["actual"]["origin"]["inputCurrency"]["amount"].clone(),
        rendered.v2["data"]["metadata"]["currencyIn"]["amount"].clone(),
    ];
    (origin["transactionId"].clone(), amounts)
}

#[test]
fn the_deposit_that_pays_is_told_whoever_came_first() {
    let mut users = paid(3, Standing::Final);
    users.amount = U256::from(101_000_000);
    let filling = || of(&users, fill(State::Confirmed(place(9))));
    let others = |deposit: &Deposit| Attempt {
        transaction: "0x2".into(),
        amount: U256::from(1),
        ..of(
            deposit,
            attempt(Purpose::Refund, State::Confirmed(place(8))),
        )
    };
    let (dust, full) = (strangers(1), strangers(100_000_000));
    for (first, attempts, time) in [
        (&dust, vec![], None),
        (&dust, vec![others(&dust)], None),
        (&dust, vec![filling()], Some(6)),
        (&dust, vec![others(&dust), filling()], Some(6)),
        // Both pay: the fill says which one it is for.
        (&full, vec![filling()], Some(6)),
        // An older row does not say so.
        (&dust, vec![fill(State::Confirmed(place(9)))], Some(6)),
    ] {
        let facts = Facts {
            deposits: vec![first.clone(), users.clone()],
            attempts,
            ..Facts::default()
        };
        let (transaction, amounts) = told_deposit(&rendered(&request(), &facts, &[]));
        assert_eq!(transaction, json!(users.transaction), "{facts:?}");
        assert_eq!(amounts, ["101000000"; 3].map(Value::from), "{facts:?}");
        let summary = Summary::of(&request(), &facts);
        assert_eq!(summary.fill_time, time, "{facts:?}");
    }
    // What the fill was for has left the chain, and what else pays is told.
    users.standing = Standing::Reorged;
    let facts = Facts {
        deposits: vec![dust, users.clone(), full],
        attempts: vec![of(&users, fill(State::Confirmed(place(9))))],
        ..Facts::default()
    };
    let (_, amounts) = told_deposit(&rendered(&request(), &facts, &[]));
    assert_eq!(amounts, ["100000000"; 3].map(Value::from));
}

#[test]
fn the_deposit_that_went_back_to_the_user_is_told() {
    let mut users = paid(3, Standing::Final);
    users.amount = U256::from(50_000_000);
    let dust = strangers(1);
    let back = |deposit: &Deposit, hash: &str, units: u64, state: State| Attempt {
        transaction: hash.into(),
        amount: U256::from(units),
        ..of(deposit, attempt(Purpose::Refund, state))
    };
    let others = back(&dust, "0x2", 1, State::Confirmed(place(8)));
    let mut again = paid(5, Standing::Final);
    again.amount = U256::from(7_000_000);
    let facts = Facts {
        deposits: vec![dust, again.clone(), users.clone()],
        attempts: vec![
            others,
            back(&again, "0x3", 6_000_000, State::Broadcast),
            back(&users, "0x1", 49_000_000, State::Confirmed(place(9))),
        ],
        failure: Some(FailReason::DepositedAmountTooLowToFill),
        ..Facts::default()
    };
    let rendered = rendered(&request(), &facts, &[]);
    assert_eq!(rendered.v3["status"], "refund");
    let (transaction, amounts) = told_deposit(&rendered);
    assert_eq!(transaction, json!(users.transaction));
    assert_eq!(amounts, ["50000000"; 3].map(Value::from));
    let data = &rendered.v3["data"];
    assert_eq!(data["refundCurrencyData"]["amount"], "49000000");
    let kept = &data["fees"]["actual"]["execution"]["amount"];
    assert_eq!(kept, "1000000");
}

#[test]
fn networks_of_neither_side_have_their_numbers() {
    let mut request = request();
    let mut facts = filled();
    for (network, wanted) in [("third", json!(31_003)), ("gone", Value::Null)] {
        request.order.solver_chain_id = network.into();
        facts.deposits[0].network = network.into();
        let told = rendered(&request, &facts, &[]).v3;
        let protocol = &told["protocol"];
        assert_eq!(protocol["solver"]["chainId"], wanted, "{network}");
        assert_eq!(protocol["deposit"]["origin"]["chainId"], wanted);
        assert_eq!(told["data"]["inTxs"][0]["chainId"], wanted);
        let fill = &protocol["settlement"]["destination"]["fills"][0];
        assert_eq!(fill["chainId"], 31_002);
    }
}

/// Native currencies have one address on many networks, and some tokens have.
#[test]
fn what_came_on_another_network_is_not_in_the_quoted_currency() {
    let hash = deposit(3, Standing::Final).transaction;
    let minted = || Applied::on(1_313, "0xd".into(), execution(&[mint(77, 7_000_000)]));
    for (network, quoted) in [
        ("origin", true),
        ("destination", false),
        ("third", false),
        ("gone", false),
    ] {
        let mut facts = filled();
        facts.deposits[0].network = network.into();
        facts.deposits[0].amount = U256::from(7_000_000);
        facts.settlement = Some(Settlement {
            deposit: Some(minted()),
            outcome: Some(minted()),
        });
        let seen = priced(tx_details(3, 7), (fixtures::USDC, 6), 2);
        let all = rendered(&request(), &facts, &[(network, hash.as_str(), seen)]);
        let data = &all.v3["data"];
        let input = &data["route"]["actual"]["origin"]["inputCurrency"];
        assert_eq!(input.is_null(), !quoted, "{network}: {input}");
        let input = if quoted { "7000000" } else { "100000000" };
        let older = &all.v2["data"]["metadata"]["currencyIn"];
        assert_eq!(older["amount"], input, "{network}");
        // At two dollars, or as quoted.
        let usd = if quoted { "1.000000" } else { "0.500000" };
        let owed = &data["appFees"]["actual"][0]["amountUsd"];
        assert_eq!(owed, usd, "{network}");
        let protocol = &all.v3["protocol"];
        assert_eq!(protocol["deposit"]["origin"]["amount"], "7000000");
        for side in ["deposit", "settlement"] {
            let token = protocol[side]["relay"].get("tokenMetadata");
            assert_eq!(token.is_some(), quoted, "{network}: {side}");
        }
    }
}

#[test]
fn a_refund_is_told_in_the_currency_of_its_network() {
    let told_of = |deposited: &str, (network, currency): (&str, &str)| {
        let mut deposit = paid(3, Standing::Final);
        deposit.network = deposited.into();
        let refund = Attempt {
            network: network.into(),
            currency: currency.into(),
            ..attempt(Purpose::Refund, State::Confirmed(place(9)))
        };
        let facts = Facts {
            deposits: vec![deposit],
            attempts: vec![refund],
            failure: Some(FailReason::DepositChainMismatch),
            ..Facts::default()
        };
        let told = rendered(&request(), &facts, &[]).v3;
        assert_eq!(told["status"], "refund");
        let data = &told["data"];
        let back = data["refundCurrencyData"]["currency"].clone();
        let kept = data["fees"]["actual"]["execution"]["amount"].clone();
        (back["chainId"].clone(), back["symbol"].clone(), kept)
    };
    let usdc = fixtures::USDC;
    assert_eq!(
        told_of("origin", ("origin", usdc)),
        (json!(31_001), json!("USDC"), json!("100000"))
    );
    // What was kept is not known where both are not of one currency.
    for deposited in ["destination", "third"] {
        assert_eq!(
            told_of(deposited, ("origin", usdc)),
            (json!(31_001), json!("USDC"), Value::Null)
        );
    }
    assert_eq!(
        told_of("destination", ("destination", NATIVE)),
        (json!(31_002), json!("ETH"), Value::Null)
    );
    for network in ["destination", "third", "gone"] {
        let told = told_of(network, (network, usdc));
        assert_eq!(told, (Value::Null, Value::Null, Value::Null), "{network}");
    }
}

fn execution(actions: &[String]) -> Value {
    json!({
        "idempotencyKey": "0x07", "actions": actions,
        "signatures": [{"oracleChainId": "1", "oracleContract": "0xc", "oracleSigner": "0xs",
                        "signature": "0x5"}],
    })
}

fn settled(deposit: Applied, outcome: Applied) -> Value {
    let facts = Facts {
        settlement: Some(Settlement {
            deposit: Some(deposit),
            outcome: Some(outcome),
        }),
        ..filled()
    };
    rendered(&request(), &facts, &[]).v3["protocol"].clone()
}

fn mint(token: u64, amount: u64) -> String {
    let action = Action::Mint {
        to: EvmAddress::repeat_byte(7),
        token: U256::from(token),
        amount: U256::from(amount),
    };
    action.encode().to_string()
}

#[test]
fn what_the_hub_took_is_told_whole() {
    let order = EvmAddress::repeat_byte(7);
    let moved = Action::Transfer {
        from: order,
        to: EvmAddress::repeat_byte(8),
        token: U256::from(77),
        amount: U256::from(100_000_000),
    };
    // Another order's deposit was in the same transaction.
    let minted = execution(&[mint(78, 5), mint(77, 100_000_000)]);
    let moved = execution(&[moved.encode().to_string()]);
    let protocol = settled(
        Applied::on(1_313, "0xd".into(), minted),
        Applied::on(1_313, "0xe".into(), moved),
    );
    assert_eq!(protocol["isWithdrawable"], true);
    let token = json!({"decimals": 6, "name": "USDC", "symbol": "USDC"});
    assert_eq!(
        protocol["deposit"]["relay"],
        json!({
            "amount": "100000000", "chainId": 1_313, "currency": "77", "hash": "0xd",
            "operation": "mint", "tokenMetadata": token,
        })
    );
    assert_eq!(
        protocol["settlement"]["relay"],
        json!({
            "amount": "100000000", "chainId": 1_313, "currency": "77", "hash": "0xe",
            "operation": "transfer", "solver": fixtures::USER, "tokenMetadata": token,
        })
    );
    let signed = json!([{"oracleChainId": "1", "oracleContract": "0xc", "signerAddress": "0xs",
                         "signature": "0x5"}]);
    assert_eq!(
        protocol["settlement"]["attestation"]["attestations"],
        signed
    );
    assert_eq!(
        protocol["settlement"]["attestation"]["execution"]["idempotencyKey"],
        "0x07"
    );
}

#[test]
fn what_is_not_known_of_the_hub_is_left_out() {
    // A row of before, and actions that nobody can read.
    let old = json!({"transaction": "0xd", "execution": execution(&[format!("0x{:064x}", 3)])});
    let old: Applied = serde_json::from_value(old).unwrap();
    let apart = execution(&[mint(77, 1), mint(78, 2)]);
    let protocol = settled(old, Applied::on(1_313, "0xe".into(), apart));
    assert_eq!(
        protocol["deposit"]["relay"],
        json!({"hash": "0xd", "operation": "mint"})
    );
    assert_eq!(
        protocol["settlement"]["relay"],
        json!({"chainId": 1_313, "hash": "0xe", "operation": "mint", "solver": fixtures::USER})
    );
    let together = execution(&[mint(77, 1), mint(77, 2)]);
    let both = || Applied::on(1_313, "0xe".into(), together.clone());
    let protocol = settled(both(), both());
    assert_eq!(protocol["deposit"]["relay"]["amount"], "3");
    let most = execution(&[U256::MAX, U256::from(1)].map(|amount| {
        let (to, token) = (EvmAddress::repeat_byte(7), U256::from(77));
        let action = Action::Mint { to, token, amount };
        action.encode().to_string()
    }));
    let most = || Applied::on(1_313, "0xe".into(), most.clone());
    assert_eq!(
        settled(most(), most())["deposit"]["relay"].get("amount"),
        None
    );
}

#[test]
fn one_asset_on_two_chains_is_a_bridge() {
    let kind = |change: fn(&mut Request)| {
        let mut request = request();
        let mut quoted: Value = serde_json::from_str(request.quoted.json()).unwrap();
        quoted["oneAsset"] = true.into();
        request.quoted = quoted.into();
        change(&mut request);
        let found = Summary::of(&request, &Facts::default()).kind;
        let rendered = rendered(&request, &filled(), &[]).v3["requestType"].clone();
        assert_eq!(rendered, found.text());
        rendered
    };
    assert_eq!(kind(|_| {}), "Bridge");
    assert_eq!(
        kind(|request| request.destination = request.origin.clone()),
        "Same-chain Swap"
    );
    let call = |request: &mut Request| request.calls = fixtures::large(1, 4).calls;
    assert_eq!(kind(call), "Call");
    assert_eq!(
        rendered(&request(), &filled(), &[]).v3["requestType"],
        "Crosschain Swap"
    );
}

#[test]
fn what_a_solver_does_on_one_chain_has_no_destination() {
    let mut request = request();
    request.destination = request.origin.clone();
    let route = |facts: &Facts| rendered(&request, facts, &[]).v3["data"]["route"].clone();
    let (done, open) = (route(&filled()), route(&Facts::default()));
    let paid = Facts {
        attempts: Vec::new(),
        ..filled()
    };
    let seen = route(&paid);
    for route in [&done, &open, &seen] {
        for side in ["quoted", "actual"] {
            assert_eq!(route[side]["destination"], Value::Null, "{route}");
            assert_eq!(
                route[side]["origin"]["inputCurrency"]["currency"]["symbol"],
                "USDC"
            );
        }
        let quoted = &route["quoted"]["origin"]["outputCurrency"];
        assert_eq!(quoted["amount"], "50000000000000000");
    }
    let came = |route: &Value| route["actual"]["origin"]["outputCurrency"]["amount"].clone();
    assert_eq!(came(&done), "49000000000000000");
    assert_eq!(came(&open), "50000000000000000");
    assert_eq!(came(&seen), Value::Null);
}

/// A swap of the user's own on one chain.
fn own_swap() -> Request {
    let mut request = request();
    request.execution = Execution::User;
    request.destination = request.origin.clone();
    let mut quoted: Value = serde_json::from_str(request.quoted.json()).unwrap();
    let details = &mut quoted["details"];
    let (input, output) = (
        details["currencyIn"].clone(),
        details["currencyOut"].clone(),
    );
    details["route"] =
        json!({"origin": {"inputCurrency": input, "outputCurrency": output, "router": "x"}});
    request.quoted = quoted.into();
    request
}

#[test]
fn what_the_user_did_alone_is_told_as_it_came_out() {
    let request = own_swap();
    let facts = Facts {
        own: vec![sent("0xa", State::Included(place(4)))],
        ..Facts::default()
    };
    let mut seen = tx_details(4, 1);
    seen.changes.push(Change {
        address: fixtures::USER.to_uppercase().replace("0X", "0x"),
        currency: "0x0000000000000000000000000000000000000000".into(),
        negative: false,
        amount: U256::from(48_000_000_000_000_000_u64),
    });
    let all = rendered(&request, &facts, &[("origin", "0xa", seen)]);
    let data = &all.v3["data"];
    assert_eq!(data["inTxs"], data["outTxs"]);
    assert_eq!(
        data["route"]["actual"]["origin"]["outputCurrency"]["amountFormatted"],
        "0.048"
    );
    assert_eq!(all.v3["requestType"], "Same-chain Swap");
    let unseen = rendered(&request, &facts, &[]);
    let quoted = &unseen.v3["data"]["route"]["actual"]["origin"]["outputCurrency"];
    assert_eq!(quoted["amount"], "50000000000000000");
}

#[test]
fn nothing_came_out_of_what_the_user_did_in_vain() {
    let reverted = || State::Reverted {
        place: place(4),
        reason: None,
    };
    let quoted = (json!("50000000000000000"), json!("0.0005"));
    let none = (Value::Null, Value::Null);
    for (states, status, wanted) in [
        (vec![], "waiting", &quoted),
        (vec![State::Broadcast], "pending", &quoted),
        (vec![reverted()], "failure", &none),
        (vec![reverted(), State::Broadcast], "pending", &quoted),
        (
            vec![reverted(), State::Included(place(4))],
            "success",
            &quoted,
        ),
    ] {
        let own = states.into_iter().enumerate();
        let own = own.map(|(at, state)| sent(&format!("0x{at}"), state));
        let facts = Facts {
            own: own.collect(),
            ..Facts::default()
        };
        let told = rendered(&own_swap(), &facts, &[]).v3;
        assert_eq!(told["status"], status);
        let actual = &told["data"]["route"]["actual"];
        let origin = &actual["origin"];
        let came = (
            origin["outputCurrency"]["amount"].clone(),
            actual["rate"].clone(),
        );
        assert_eq!(&came, wanted, "{status}");
        assert_eq!(origin["inputCurrency"]["amount"], "100000000", "{status}");
        assert_eq!(actual["destination"], Value::Null);
    }
}
