use serde_json::{Value, json};

use super::*;
use crate::quote::fixtures::{self, OTHER, ROUTER, TOKEN, USDC, USER, WETH, other};

fn read(body: &Value, keyed: bool) -> Result<(), Refused> {
    let market = fixtures::market();
    let basis = Basis {
        keyed,
        ..basis(&market)
    };
    let body = Body::read(body.clone())?;
    Intent::of(&body, &basis).map(drop)
}

fn basis(market: &Market) -> Basis<'_, 'static> {
    Basis {
        market,
        chain: &chain,
        keyed: false,
    }
}

fn chain(name: &str) -> Option<Traded> {
    fixtures::traded(name, fixtures::family())
}

fn with(changes: &Value) -> Value {
    let mut body = fixtures::body();
    for (field, value) in changes.as_object().unwrap() {
        body[field] = value.clone();
    }
    body
}

#[test]
fn plain_body_and_its_harmless_variations_are_taken() {
    for changes in [
        json!({}),
        json!({"unknown": {"deep": [1]}, "maxRouteLength": 4, "refundOnOrigin": true}),
        json!({"amount": "000100000000"}),
        json!({"amount": U256::MAX.to_string()}),
        json!({"originGasOverhead": "300000", "ttl": 60, "slippageTolerance": "0"}),
        json!({"originGasOverhead": 80000, "ttl": 604_800, "slippageTolerance": "10000"}),
        json!({"protocolVersion": "v2", "usePermit": false, "topupGas": false, "strict": false}),
        json!({"recipient": OTHER, "refundTo": OTHER, "referrerAddress": OTHER, "referrer": "me"}),
        json!({"appFees": [{"recipient": OTHER, "fee": "1.5"}, {"recipient": USER, "fee": "0"}]}),
        json!({"txs": [{"to": OTHER, "data": "0x12"}], "txsGasLimit": 90_000}),
        json!({"authorizationList": [authorization()]}),
        json!({"recipient": null, "txs": null, "unknown": null, "appFees": null}),
        json!({"amount": 5}),
        json!({"amount": "0x5f5e100"}),
        json!({"originChainId": "31001", "destinationChainId": "0x791a"}),
        json!({"ttl": "60", "originGasOverhead": "0x10", "txsGasLimit": null}),
        json!({"slippageTolerance": 50, "latePaymentSlippageTolerance": "0x32"}),
        json!({"strict": "false", "usePermit": 0, "overridePriceImpact": "true"}),
        json!({"appFees": [{"recipient": OTHER, "fee": 100}]}),
        json!({"txs": [{"to": OTHER, "data": "0x12", "value": "0x0", "originalTxValue": 0}]}),
        json!({"txs": [{"to": OTHER, "data": "0x12", "value": "0x00"}], "txsGasLimit": "90000"}),
        json!({"additionalData": {"userPublicKey": "02", "more": 1}}),
        json!({"additionalData": {}}),
        json!({"maxRouteLength": "1", "useSharedAccounts": false, "includeComputeUnitLimit": 0}),
        json!({"depositFeePayer": USER, "permitExpiry": 600, "usePermit": false}),
        json!({"depositFeePayer": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}),
        json!({"permitExpiry": "0x258", "includeComputeUnitLimit": "false"}),
        json!({"maxRouteLength": null, "depositFeePayer": null, "permitExpiry": null}),
        json!({"includedSwapSources": [], "excludedSwapSources": vec!["x".repeat(64); 64]}),
        json!({"includedSwapSources": ["", "Uniswap V3", "0x", "1inch", "a-b_c.d:e/f+g"]}),
    ] {
        assert_eq!(read(&with(&changes), false), Ok(()), "{changes}");
    }
}

fn authorization() -> Value {
    json!({"chainId": 31_002, "address": OTHER, "nonce": 0, "yParity": 1, "r": "0x1", "s": "2"})
}

/// With one field of it as `value`.
fn changed(field: &str, value: &Value) -> Value {
    let mut authorization = authorization();
    authorization[field] = value.clone();
    json!({"authorizationList": [authorization]})
}

/// guide: protocol 12.5: what is wrong, and the one code that says so.
#[expect(clippy::too_many_lines, reason = "a table")]
fn refusals() -> Vec<(Code, Vec<Value>)> {
    use Code::*;
    let zero = fixtures::NATIVE;
    let digits = |count| json!({"amount": "9".repeat(count)});
    let tx = |tx: Value| json!({"txs": [tx]});
    let max = U256::MAX.to_string();
    let solana = "11111111111111111111111111111111";
    vec![
        (
            AmountTooLow,
            vec![
                json!({"amount": "0"}),
                json!({"amount": "000"}),
                json!({"amount": "0x0"}),
                json!({"amount": 0}),
            ],
        ),
        (
            InvalidAmount,
            vec![
                json!({"amount": ""}),
                json!({"amount": "1e18"}),
                json!({"amount": "-1"}),
                json!({"amount": "1.0"}),
                json!({"amount": "0x"}),
                json!({"amount": format!("0x1{}", "0".repeat(64))}),
                json!({"amount": " 1"}),
                json!({"amount": "٣"}),
                json!({"amount": 1.5}),
                json!({"amount": -5}),
                json!({"amount": 1e18}),
                json!({"amount": 9_007_199_254_740_993_u64}),
                tx(json!({"to": OTHER, "value": "1e18", "data": "0x12"})),
                tx(json!({"to": OTHER, "value": "9".repeat(78), "data": "0x12"})),
                tx(json!({"to": OTHER, "data": "0x12", "originalTxValue": "x"})),
                changed("r", &json!("x")),
            ],
        ),
        (
            MissingField,
            vec![
                json!({"user": null}),
                json!({"amount": null}),
                json!({"tradeType": null}),
                tx(json!({"data": "0x12"})),
                json!({"appFees": [{"recipient": OTHER}]}),
                changed("chainId", &Value::Null),
                changed("s", &Value::Null),
            ],
        ),
        (
            InvalidField,
            vec![
                json!({"amount": true}),
                json!({"amount": ["1"]}),
                json!({"user": 7}),
                json!({"originChainId": 1.5}),
                json!({"originChainId": "x"}),
                json!({"destinationChainId": -1}),
                json!({"destinationCurrency": 1}),
                json!({"topupGasAmount": {}}),
                json!({"txs": 5}),
                json!({"txs": [5]}),
                json!({"authorizationList": [1]}),
                changed("yParity", &json!({})),
                json!({"gasLimitForDepositSpecifiedTxs": "x"}),
                json!({"includedSwapSources": [null]}),
                json!({"includedSwapSources": vec!["x"; 65]}),
                json!({"excludedSwapSources": ["x".repeat(65)]}),
                json!({"excludedSwapSources": ["\u{1}"]}),
                json!({"includedSwapSources": ["x", "\""]}),
                json!({"includedDestinationSwapSources": ["\u{202e}x"]}),
                json!({"includedOriginSwapSources": "x"}),
                json!({"includedDestinationSwapSources": {}}),
                json!({"additionalData": 5}),
                json!({"additionalData": "02"}),
                json!({"additionalData": ["02"]}),
                json!({"additionalData": {"userPublicKey": 5}}),
                json!({"txs": [[OTHER, "0", "0x12", "0"]]}),
                json!({"appFees": [[USER, "1"]]}),
                json!({"authorizationList": [[31_002, OTHER, 0, 1, "1", "2"]]}),
                json!({"permitExpiry": "soon"}),
                json!({"maxRouteLength": -1}),
                json!({"maxRouteLength": 0}),
                json!({"maxRouteLength": 1.5}),
                json!({"maxRouteLength": "long"}),
                json!({"useSharedAccounts": "yes"}),
                json!({"includeComputeUnitLimit": 2}),
                json!({"depositFeePayer": 5}),
                json!({"strict": "yes"}),
                json!({"tradeType": "EXACT"}),
                json!({"protocolVersion": "v1"}),
                json!({"ttl": 0}),
                json!({"ttl": 604_801}),
                json!({"ttl": -1}),
                json!({"originGasOverhead": "-1"}),
                json!({"originGasOverhead": "1e5"}),
                json!({"originGasOverhead": 10_000_000_000_u64}),
                json!({"appFees": [{"recipient": USER, "fee": "1e2"}]}),
                json!({"appFees": [{"recipient": USER, "fee": "-1"}]}),
                json!({"appFees": [{"recipient": USER, "fee": 1.5}]}),
                json!({"appFees": [{"recipient": USER, "fee": "0.0000000"}]}),
                json!({"appFees": vec![json!({"recipient": USER, "fee": "0"}); 17]}),
                json!({"appFees": [{"recipient": USER, "fee": "9999.9999999"}]}),
                json!({"appFees": [
                    {"recipient": USER, "fee": "6000"}, {"recipient": OTHER, "fee": "4000.1"},
                ]}),
                json!({"referrer": "x".repeat(300)}),
            ],
        ),
        (
            InsufficientLiquidity,
            vec![digits(78), digits(79), digits(5_000)],
        ),
        (
            InvalidSlippageTolerance,
            vec![
                json!({"slippageTolerance": "-1"}),
                json!({"slippageTolerance": "10001"}),
                json!({"slippageTolerance": "5.0"}),
                json!({"slippageTolerance": ""}),
                json!({"slippageTolerance": 10_001}),
                json!({"slippageTolerance": 0.5}),
                json!({"latePaymentSlippageTolerance": "99999999999999"}),
                json!({"slippageTolerance": {}}),
                json!({"slippageTolerance": {"percent": "1"}}),
                json!({"slippageTolerance": true}),
                json!({"slippageTolerance": ["50"]}),
                json!({"latePaymentSlippageTolerance": {}}),
                json!({"latePaymentSlippageTolerance": [null]}),
            ],
        ),
        (
            InvalidRecipient,
            vec![
                json!({"recipient": USDC}),
                json!({"recipient": zero}),
                json!({"recipient": ROUTER}),
                json!({"recipient": fixtures::DEPOSITORY}),
                json!({"recipient": fixtures::SOLVER}),
            ],
        ),
        (
            InvalidAddress,
            vec![
                json!({"user": ""}),
                json!({"user": zero}),
                json!({"user": "0x12"}),
                json!({"user": USER.replacen("0x", "0X", 1)}),
                json!({"recipient": solana}),
                json!({"recipient": "0x52908400098527886e0f7030069857D2E4169EE7"}),
                json!({"refundTo": "somebody"}),
                json!({"refundTo": zero}),
                json!({"refundTo": USDC}),
                json!({"refundTo": fixtures::DEPOSITORY}),
                json!({"refundTo": fixtures::SOLVER}),
                json!({"user": fixtures::SOLVER}),
                // Whom the refund would fall back to.
                json!({"user": fixtures::SOLVER, "originChainId": 31_002, "destinationChainId": 31_001,
                       "recipient": ROUTER}),
                json!({"user": fixtures::DEPOSITORY}),
                json!({"referrerAddress": "0x12"}),
                json!({"appFees": [{"recipient": solana, "fee": "1"}]}),
                json!({"appFees": [{"recipient": solana, "fee": "0"}]}),
                json!({"appFees": [{"recipient": USER, "fee": "1"}, {"recipient": "0x12", "fee": 0}]}),
                json!({"depositFeePayer": solana}),
                json!({"depositFeePayer": ""}),
                json!({"depositFeePayer": zero}),
            ],
        ),
        (
            UnsupportedChain,
            vec![
                json!({"originChainId": 5}),
                json!({"destinationChainId": "5"}),
                json!({"destinationChainId": "0x5"}),
            ],
        ),
        (ChainDisabled, vec![json!({"destinationChainId": 31_003})]),
        (
            InvalidInputCurrency,
            vec![
                json!({"originCurrency": "usdc"}),
                json!({"originCurrency": ""}),
            ],
        ),
        (
            InvalidOutputCurrency,
            vec![json!({"destinationCurrency": "usdc"})],
        ),
        (
            UnsupportedCurrency,
            vec![
                json!({"originCurrency": OTHER}),
                json!({"destinationCurrency": OTHER}),
            ],
        ),
        (
            UnsupportedRoute,
            vec![
                json!({"destinationChainId": 31_001}),
                json!({"useExternalLiquidity": true}),
                json!({"originChainId": 1337}),
                json!({"destinationChainId": 8_253_038}),
                json!({"destinationChainId": 792_703_809}),
                json!({"destinationChainId": 31_004}),
                // What they tune is on a chain that is refused.
                json!({"originChainId": 792_703_809, "depositFeePayer": solana}),
                json!({"originChainId": 792_703_809, "maxRouteLength": 3}),
                json!({"originChainId": 792_703_809, "useSharedAccounts": true}),
                json!({"originChainId": 792_703_809, "includeComputeUnitLimit": true}),
            ],
        ),
        (
            UserRecipientMismatch,
            vec![json!({
                "destinationChainId": 31_001, "originCurrency": zero, "destinationCurrency": WETH,
                "recipient": OTHER,
            })],
        ),
        (
            ExtraTxsNotSupported,
            vec![
                json!({"txs": [{"to": OTHER, "data": "0x12"}], "tradeType": "EXPECTED_OUTPUT"}),
                json!({
                    "txs": [{"to": OTHER, "data": "0x12"}], "originChainId": 31_002,
                    "destinationChainId": 31_001,
                }),
            ],
        ),
        (
            InvalidExtraTxs,
            vec![
                tx(json!({"to": "0x12", "data": "0x12"})),
                tx(json!({"to": OTHER, "data": "0x123"})),
                tx(json!({"to": OTHER, "data": "12"})),
                tx(json!({"to": OTHER, "value": "1", "data": "0x12"})),
                tx(json!({"to": OTHER, "value": "0x1", "data": "0x12"})),
                tx(json!({"to": OTHER, "value": 1, "data": "0x12"})),
                tx(json!({"to": OTHER})),
                json!({
                    "destinationCurrency": zero,
                    "txs": [{"to": OTHER, "value": max}, {"to": OTHER, "value": "1"}],
                }),
                json!({"txs": vec![json!({"to": OTHER, "data": "0x12"}); 51]}),
                json!({"txs": [{"to": OTHER, "data": format!("0x{}", "00".repeat(131_073))}]}),
                json!({"txs": [{"to": OTHER, "data": "0x12"}], "txsGasLimit": 0}),
                changed("yParity", &json!(2)),
                changed("address", &json!("0x12")),
            ],
        ),
        (
            InvalidGasLimitForDepositSpecifiedTxs,
            vec![
                json!({"gasLimitForDepositSpecifiedTxs": 5}),
                json!({
                    "gasLimitForDepositSpecifiedTxs": 0, "txs": [{"to": OTHER, "data": "0x12"}],
                }),
                json!({"gasLimitForDepositSpecifiedTxs": 5, "txs": []}),
            ],
        ),
        (Unauthorized, vec![json!({"subsidizeFees": true})]),
        (
            NoSwapRoutesFound,
            vec![json!({
                "destinationChainId": 31_001, "destinationCurrency": TOKEN,
                "disableOriginSwaps": true,
            })],
        ),
        (
            UnsupportedExecutionType,
            vec![
                json!({"sponsoredFeeComponents": ["swap", "swap"]}),
                json!({"maxSubsidizationAmount": "1"}),
                json!({"subsidizeRent": true}),
                json!({"usePermit": true}),
                json!({"topupGas": true}),
                json!({"topupGasAmount": "1"}),
                json!({"useDepositAddress": true}),
                json!({"strict": true}),
                json!({"useDepositAddress": true, "strict": true}),
                json!({"recoveryAddress": USER}),
                json!({"fixedRate": "1:1"}),
                json!({"usePermit": true, "permitExpiry": 600}),
                json!({"permitExpiry": 0}),
                json!({"permitExpiry": 60}),
                json!({"permitExpiry": "601", "usePermit": false}),
                json!({"depositFeePayer": OTHER}),
                json!({"useSharedAccounts": true}),
                json!({"includeComputeUnitLimit": "true"}),
            ],
        ),
    ]
}

#[test]
fn everything_wrong_has_its_one_code() {
    for (code, cases) in refusals() {
        for changes in cases {
            let refused = read(&with(&changes), false).expect_err(&changes.to_string());
            assert_eq!(refused.code, code, "{changes}: {}", refused.message);
            assert!(refused.message.contains(':'), "{}", refused.message);
        }
    }
    let array = read(&json!([]), false).unwrap_err();
    assert_eq!(array.code, Code::InvalidField);
    let sponsored = read(&with(&json!({"subsidizeFees": true})), true).unwrap_err();
    assert_eq!(sponsored.code, Code::UnsupportedExecutionType);
}

#[test]
fn what_must_be_there_is_named() {
    for field in [
        "user",
        "originChainId",
        "destinationChainId",
        "originCurrency",
        "destinationCurrency",
        "amount",
        "tradeType",
    ] {
        let mut body = fixtures::body();
        body.as_object_mut().unwrap().remove(field);
        let refused = read(&body, false).unwrap_err();
        assert_eq!(refused.code, Code::MissingField);
        assert_eq!(refused.message, format!("{field}: required"));
    }
}

fn refuses(changes: &Value, message: &str) {
    let refused = read(&with(changes), false).unwrap_err();
    assert_eq!(refused.message, message, "{changes}");
}

#[test]
fn a_misspelled_address_is_named_with_its_field() {
    let misspelled = "0x52908400098527886e0F7030069857D2E4169EE7";
    for (changes, field) in [
        (json!({"user": misspelled}), "user"),
        (json!({"recipient": misspelled}), "recipient"),
        (json!({"refundTo": misspelled}), "refundTo"),
        (json!({"referrerAddress": misspelled}), "referrerAddress"),
        (
            json!({"appFees": [{"recipient": misspelled, "fee": "1"}]}),
            "appFees.recipient",
        ),
        (
            json!({"txs": [{"to": misspelled, "data": "0x12"}]}),
            "txs[0].to",
        ),
    ] {
        refuses(
            &changes,
            &format!("{field}: checksum of the address is wrong"),
        );
    }
}

#[test]
fn letters_of_one_case_are_no_checksum() {
    for text in [OTHER, USER] {
        let capital = format!("0x{}", text[2..].to_ascii_uppercase());
        let parsed = vm::protocol::text::evm_address(&capital);
        assert!(parsed.is_err(), "the oracle takes no such text");
        for changes in [
            json!({"user": capital}),
            json!({"recipient": capital}),
            json!({"refundTo": capital}),
            json!({"referrerAddress": capital}),
            json!({"appFees": [{"recipient": capital, "fee": "1"}]}),
            json!({"txs": [{"to": capital, "data": "0x12"}]}),
        ] {
            assert_eq!(read(&with(&changes), false), Ok(()), "{changes}");
        }
        let mut delegated = authorization();
        delegated["address"] = capital.clone().into();
        let changes = json!({"authorizationList": [delegated]});
        assert_eq!(read(&with(&changes), false), Ok(()), "{changes}");
        // One digit less, and one letter of another case.
        refuses(
            &json!({"user": capital[..41]}),
            "user: expected an address of its chain",
        );
        refuses(
            &json!({"referrerAddress": capital[..41]}),
            "referrerAddress: expected 0x and 40 hex digits",
        );
        let at = capital.rfind(|letter: char| letter.is_ascii_uppercase());
        let at = at.unwrap();
        let mixed = [&capital[..at], &text[at..=at], &capital[at + 1..]].concat();
        refuses(
            &json!({"recipient": mixed}),
            "recipient: checksum of the address is wrong",
        );
    }
}

#[test]
fn messages_speak_json() {
    for (changes, message) in [
        (
            json!({"user": "0x12"}),
            "user: expected an address of its chain",
        ),
        (json!({"recipient": 5}), "recipient: expected a string"),
        (json!({"txs": {}}), "txs: expected an array"),
        (json!({"txs": [1]}), "txs[0]: expected an object"),
        (
            json!({"additionalData": ["02"]}),
            "additionalData: expected an object",
        ),
        (
            json!({"additionalData": {"userPublicKey": 5}}),
            "additionalData.userPublicKey: expected a string",
        ),
        (
            json!({"appFees": [{"recipient": OTHER, "fee": "1"}, [OTHER, "1"]]}),
            "appFees[1]: expected an object",
        ),
        (json!({"txs": [{}]}), "txs[0].to: required"),
        (json!({"strict": "yes"}), "strict: expected a boolean"),
        (
            json!({"depositFeePayer": OTHER}),
            "depositFeePayer: expected the user, who pays for the deposit on the origin chain",
        ),
        (
            json!({"useSharedAccounts": true}),
            "useSharedAccounts: expected false: the origin chain has nothing of the kind",
        ),
        (
            json!({"includeComputeUnitLimit": true}),
            "includeComputeUnitLimit: expected false: the origin chain has nothing of the kind",
        ),
        (
            json!({"permitExpiry": 60}),
            "permitExpiry: not supported yet",
        ),
        (
            json!({"maxRouteLength": 0}),
            "maxRouteLength: expected at least 1",
        ),
        (
            json!({"amount": "1e18"}),
            "amount: expected digits, 0x and hex digits, or a whole number from 0 to \
             9007199254740991",
        ),
        (
            json!({"ttl": "soon"}),
            "ttl: expected a whole number from 0 to 9007199254740991",
        ),
    ] {
        refuses(&changes, message);
    }
}

#[test]
fn numbers_mean_the_same_however_they_are_written() {
    let market = fixtures::market();
    let basis = basis(&market);
    let value = |value: Value| {
        json!({"destinationCurrency": fixtures::NATIVE, "ttl": 60,
               "txs": [{"to": OTHER, "data": "0x12", "value": value}]})
    };
    for (changes, amount, sent) in [
        (json!({"amount": "4096"}), 4096, 0),
        (json!({"amount": "0x1000"}), 4096, 0),
        (json!({"amount": "0004096"}), 4096, 0),
        (json!({"amount": 4096}), 4096, 0),
        (value(json!("16")), 100_000_000, 16),
        (value(json!("0x10")), 100_000_000, 16),
        (value(json!(16)), 100_000_000, 16),
    ] {
        let body = Body::read(with(&changes)).unwrap();
        let intent = Intent::of(&body, &basis).unwrap();
        assert_eq!(intent.amount, U256::from(amount), "{changes}");
        let total = total(&intent.calls).unwrap();
        assert_eq!(total, U256::from(sent), "{changes}");
    }
}

#[test]
fn the_lower_of_two_limits_of_calls_counts() {
    let market = fixtures::market();
    let basis = basis(&market);
    let (all, deposit) = ("txsGasLimit", "gasLimitForDepositSpecifiedTxs");
    for (limits, wanted) in [
        (json!({}), None),
        (json!({ all: 90_000 }), Some(90_000)),
        (json!({ deposit: "80000" }), Some(80_000)),
        (json!({ all: 90_000, deposit: 80_000 }), Some(80_000)),
        (json!({ all: 70_000, deposit: 80_000 }), Some(70_000)),
    ] {
        let mut changes = limits.clone();
        changes["txs"] = json!([{"to": OTHER, "data": "0x12"}]);
        let body = Body::read(with(&changes)).unwrap();
        let intent = Intent::of(&body, &basis).unwrap();
        assert_eq!(intent.calls_work, wanted, "{limits}");
    }
    let much = json!({"txs": [{"to": OTHER, "data": "0x12"}], deposit: 10_000_000_000_u64});
    let refused = read(&with(&much), false).unwrap_err();
    assert_eq!(
        refused.message,
        "gasLimitForDepositSpecifiedTxs: expected at most 1000000000"
    );
}

#[test]
fn same_chain_is_executed_by_the_user_unless_the_solver_must() {
    let market = fixtures::market();
    let basis = basis(&market);
    let fees = json!([{"recipient": USER, "fee": "1"}]);
    for (changes, operation, own) in [
        (json!({}), Operation::Swap, false),
        (
            json!({"destinationChainId": 31_001, "recipient": OTHER}),
            Operation::Send,
            true,
        ),
        (
            json!({"destinationChainId": 31_001, "destinationCurrency": TOKEN}),
            Operation::Swap,
            true,
        ),
        (
            json!({"destinationChainId": 31_001, "destinationCurrency": TOKEN, "appFees": fees}),
            Operation::Swap,
            false,
        ),
        (
            json!({
                "destinationChainId": 31_001, "destinationCurrency": TOKEN,
                "forceSolverExecution": true,
            }),
            Operation::Swap,
            false,
        ),
        (
            json!({
                "destinationChainId": 31_001, "originCurrency": WETH,
                "destinationCurrency": fixtures::NATIVE,
            }),
            Operation::Unwrap,
            true,
        ),
        // Calls never run in the user's own transaction, on one chain neither.
        (
            json!({
                "originChainId": 31_002, "destinationCurrency": TOKEN,
                "txs": [{"to": OTHER, "data": "0x12"}], "gasLimitForDepositSpecifiedTxs": 90_000,
            }),
            Operation::Swap,
            false,
        ),
    ] {
        let body = Body::read(with(&changes)).unwrap();
        let intent = Intent::of(&body, &basis).unwrap();
        assert_eq!(
            (intent.operation, intent.own),
            (operation, own),
            "{changes}"
        );
    }
}

#[test]
fn app_fees_that_take_nothing_are_as_if_they_were_not_there() {
    let market = fixtures::market();
    let basis = basis(&market);
    for (fees, own, left) in [
        (vec![], true, vec![]),
        (vec!["0"], true, vec![]),
        (vec!["0.000000", "000"], true, vec![]),
        (vec!["0", "0.000001", "0.0"], false, vec!["0.000001"]),
    ] {
        let each = fees
            .iter()
            .map(|fee| json!({"recipient": OTHER, "fee": fee}));
        let changes = json!({
            "destinationChainId": 31_001, "destinationCurrency": TOKEN,
            "appFees": each.collect::<Vec<_>>(),
        });
        let body = Body::read(with(&changes)).unwrap();
        let intent = Intent::of(&body, &basis).unwrap();
        assert_eq!(intent.own, own, "{fees:?}");
        let found: Vec<_> = intent.app_fees.iter().map(|fee| &*fee.bps).collect();
        assert_eq!(found, left, "{fees:?}");
    }
}

#[test]
fn refunds_fall_back_to_whom_the_origin_can_pay() {
    let market = fixtures::market();
    let basis = basis(&market);
    for (changes, wanted) in [
        (json!({}), USER),
        (json!({"recipient": OTHER}), OTHER),
        (json!({"recipient": OTHER, "refundTo": USER}), USER),
        // A contract of ours on the origin only.
        (
            json!({"originChainId": 31_002, "destinationChainId": 31_001, "recipient": ROUTER}),
            USER,
        ),
    ] {
        let body = Body::read(with(&changes)).unwrap();
        let intent = Intent::of(&body, &basis).unwrap();
        assert_eq!(intent.refund_to.text(), wanted, "{changes}");
    }
}

/// From `origin`, which is as ever, to `destination`, whose accounts have 32 bytes.
fn between_families(changes: &Value) -> Result<(String, String), Refused> {
    let family = |name: &str| match name {
        "destination" => other::family(),
        _ => fixtures::family(),
    };
    let market = fixtures::parsed(&other::market(fixtures::market_file(), 1), family);
    let basis = Basis {
        market: &market,
        chain: &|name| fixtures::traded(name, family(name)),
        keyed: false,
    };
    let mut body = with(&json!({"destinationCurrency": other::USDC}));
    for (field, value) in changes.as_object().unwrap() {
        body[field] = value.clone();
    }
    let intent = Intent::of(&Body::read(body).unwrap(), &basis)?;
    let [recipient, refund_to] = [intent.recipient, intent.refund_to].map(|one| one.to_string());
    Ok((recipient, refund_to))
}

#[test]
fn between_families_each_side_has_accounts_of_its_own() {
    let checksum = "0x52908400098527886e0f7030069857D2E4169EE7";
    for (changes, code) in [
        // An account of the origin is none of the destination.
        (json!({}), Code::InvalidRecipient),
        (json!({"refundTo": OTHER}), Code::InvalidRecipient),
        (json!({"recipient": OTHER}), Code::InvalidAddress),
        (json!({"recipient": checksum}), Code::InvalidAddress),
        (json!({"recipient": other::SOLVER}), Code::InvalidRecipient),
        (json!({"recipient": other::USDC}), Code::InvalidRecipient),
        (json!({"recipient": other::NATIVE}), Code::InvalidRecipient),
        (
            json!({"recipient": other::DEPOSITORY}),
            Code::InvalidRecipient,
        ),
        (
            json!({"recipient": other::USER, "refundTo": other::USER}),
            Code::InvalidAddress,
        ),
        (
            json!({"recipient": other::USER, "user": fixtures::SOLVER}),
            Code::InvalidAddress,
        ),
        (
            json!({"recipient": other::USER, "user": other::USER}),
            Code::InvalidAddress,
        ),
        (
            json!({"recipient": other::USER, "destinationCurrency": USDC}),
            Code::InvalidOutputCurrency,
        ),
        (
            json!({"recipient": other::USER, "txs": [{"to": OTHER, "data": "0x12"}]}),
            Code::ExtraTxsNotSupported,
        ),
    ] {
        let refused = between_families(&changes).unwrap_err();
        assert_eq!(refused.code, code, "{changes}: {refused}");
    }
    for (changes, refund_to) in [
        (json!({"recipient": other::USER}), USER),
        (json!({"recipient": other::USER, "refundTo": OTHER}), OTHER),
    ] {
        let wanted = (other::USER.to_owned(), refund_to.to_owned());
        assert_eq!(between_families(&changes), Ok(wanted), "{changes}");
    }
    let refused = between_families(&json!({})).unwrap_err();
    assert!(refused.message.starts_with("recipient: "), "{refused}");
}

/// The networks of all tests, of which the first acts early on 100 USDC, and those of the guide's example.
fn guided_file() -> Value {
    let guide = include_str!("../../guide/solver.md");
    let blocks = guide.split("```json\n").skip(1);
    let mut blocks = blocks.filter_map(|rest| rest.split("```").next());
    let example = blocks.find(|block| block.contains("\"bitcoin\"")).unwrap();
    let example: Vec<Value> = serde_json::from_str(example).unwrap();
    let mut file = fixtures::market_file();
    file[0]["currencies"][1]["oneBlockUpTo"] = json!("100000000");
    file.as_array_mut().unwrap().extend(example);
    file
}

fn guided_family(name: &str) -> &'static vm::Family {
    match name {
        "bitcoin" | "solana" => vm::family(&format!("{name}-vm")).unwrap(),
        _ => fixtures::family(),
    }
}

/// The chain of such a network; of the guide's ones `blocks` is `finalizationBlocks` of its entry.
fn guided_chain(name: &str, blocks: Option<u64>) -> Option<Traded> {
    let (depository, solver) = match name {
        "bitcoin" => (
            "1KT3zCYUrmQxjcveUNs1Rs7WcXDcPQZ4av",
            "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH",
        ),
        "solana" => (
            "99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2",
            other::SOLVER,
        ),
        _ => return chain(name),
    };
    let entry = json!({
        "id": name, "hubChainId": "1", "depository": depository,
        "additionalData": {"finalizationBlocks": blocks},
    });
    let entry: vm::ChainEntry = serde_json::from_value(entry).unwrap();
    let spec = entry.spec(guided_family(name), false).unwrap();
    let solver = spec.family.account(solver).unwrap();
    Some(Traded { spec, solver })
}

/// The estimate for a body with `changes`.
fn estimated(file: &Value, blocks: Option<u64>, changes: &Value) -> u64 {
    estimated_on(file, &|name| guided_chain(name, blocks), changes)
}

fn estimated_on(
    file: &Value,
    chain: &(dyn Fn(&str) -> Option<Traded> + Sync),
    changes: &Value,
) -> u64 {
    let market = fixtures::parsed(file, guided_family);
    let basis = Basis {
        market: &market,
        chain,
        keyed: false,
    };
    let body = Body::read(with(changes)).unwrap();
    Intent::of(&body, &basis).unwrap().seconds()
}

const BITCOIN: &str = "bc1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqmql8k8";
const BITCOIN_USER: &str = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";

/// Two blocks of the destination are added, the fill's own and one on top: twice two seconds, or twice ten minutes.
#[test]
fn the_estimate_is_a_block_up_to_the_threshold_and_the_chains_finality_above() {
    let from = |amount: &str| {
        json!({"originChainId": 8_253_038, "originCurrency": BITCOIN, "user": BITCOIN_USER,
               "recipient": OTHER, "amount": amount})
    };
    let mut outputs = from("100000000");
    outputs["tradeType"] = json!("EXACT_OUTPUT");
    let to = json!({"destinationChainId": 8_253_038, "destinationCurrency": BITCOIN,
                    "recipient": BITCOIN_USER});
    let solana = json!({"originChainId": 792_703_809, "originCurrency": other::NATIVE,
                        "user": other::USER, "recipient": OTHER, "amount": "1000000000"});
    let to_solana = json!({"destinationChainId": 792_703_809, "destinationCurrency": other::NATIVE,
                           "recipient": other::USER});
    let mut within_solana = solana.clone();
    for (field, value) in to_solana.as_object().unwrap() {
        within_solana[field] = value.clone();
    }
    within_solana["destinationCurrency"] = other::USDC.into();
    let file = guided_file();
    for (blocks, changes, seconds) in [
        (None, from("1"), 600 + 4),
        (None, from("5000000"), 600 + 4),
        (Some(4), from("5000000"), 600 + 4),
        // Where its entry is silent, Bitcoin asks for two confirmations; the bundled list asks for four.
        (None, from("5000001"), 1_200 + 4),
        (Some(4), from("5000001"), 2_400 + 4),
        (Some(1), from("5000001"), 600 + 4),
        // How much will be deposited is not known yet.
        (None, outputs, 1_200 + 4),
        // Ten blocks of two seconds are younger than a minute.
        (None, json!({"amount": "100000000"}), 2 + 4),
        (None, json!({"amount": "100000001"}), 60 + 4),
        (None, to.clone(), 2 + 1_200),
        // Finalized blocks are shown after 13 seconds: the deposit's, the fill's, and the one of the user alone.
        (None, solana, 1 + 13 + 4),
        (None, to_solana, 2 + 2 + 13),
        (None, within_solana, 1 + 13),
    ] {
        let found = estimated(&file, blocks, &changes);
        assert_eq!(found, seconds, "{blocks:?} {changes}");
    }
    // The fill's own block is waited for where none is asked for on top of it.
    for (on_top, seconds) in [(0, 600), (2, 1_800)] {
        let mut file = file.clone();
        let mut networks = file.as_array_mut().unwrap().iter_mut();
        let bitcoin = networks.find(|network| network["name"] == "bitcoin");
        bitcoin.unwrap()["fillConfirmations"] = json!(on_top);
        assert_eq!(estimated(&file, None, &to), 2 + seconds, "{on_top}");
    }
    // Without a threshold every deposit waits for finality.
    let mut never = file;
    for network in never.as_array_mut().unwrap() {
        for currency in network["currencies"].as_array_mut().unwrap() {
            currency.as_object_mut().unwrap().remove("oneBlockUpTo");
        }
    }
    assert_eq!(estimated(&never, None, &from("1")), 1_200 + 4);
    let least = json!({"amount": "1"});
    assert_eq!(estimated(&never, None, &least), 60 + 4);
}

/// What the chain itself calls final is not counted in blocks.
#[test]
fn the_estimate_is_half_an_hour_where_the_chains_tag_is_waited_for() {
    let tagged = |name: &str| {
        let mut traded = chain(name)?;
        Arc::make_mut(&mut traded.spec).finality.tag = Some(vm::FinalityTag::Finalized);
        Some(traded)
    };
    let of = |amount: &str| estimated_on(&guided_file(), &tagged, &json!({ "amount": amount }));
    assert_eq!(of("100000001"), 1_800 + 4);
    // Up to the threshold nothing is waited for.
    assert_eq!(of("100000000"), 2 + 4);
}
