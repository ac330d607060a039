use serde_json::{Value, json};

use super::*;
use crate::quote::scene::{self, OTHER, ROUTER, TOKEN, USDC, USER, WETH};

fn read(body: &Value, keyed: bool) -> Result<(), Refused> {
    let market = scene::market();
    let solver = scene::address(scene::SOLVER);
    let ground = Ground {
        market: &market,
        spec: &scene::spec,
        solver: &solver,
        keyed,
    };
    let body = Body::read(body.clone())?;
    Intent::of(&body, &ground).map(drop)
}

fn with(changes: &Value) -> Value {
    let mut body = scene::body();
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
        json!({"recipient": null, "txs": null}),
    ] {
        assert_eq!(read(&with(&changes), false), Ok(()), "{changes}");
    }
}

fn authorization() -> Value {
    json!({"chainId": 31_002, "address": OTHER, "nonce": 0, "yParity": 1, "r": "0x1", "s": "2"})
}

fn without(field: &str) -> Value {
    let mut authorization = authorization();
    authorization.as_object_mut().unwrap().remove(field);
    json!({"authorizationList": [authorization]})
}

/// hostile.md, "Quotes": what is wrong, and the one code that says so.
#[expect(clippy::too_many_lines, reason = "a table")]
fn refusals() -> Vec<(Code, Vec<Value>)> {
    use Code::*;
    let zero = scene::NATIVE;
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
                json!({"amount": ""}),
                json!({"amount": "1e18"}),
                json!({"amount": "-1"}),
                json!({"amount": "1.0"}),
                json!({"amount": "0x10"}),
                json!({"amount": " 1"}),
                json!({"amount": "٣"}),
                json!({"amount": 5}),
                json!({"amount": null}),
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
                json!({"slippageTolerance": 5}),
                json!({"latePaymentSlippageTolerance": "99999999999999"}),
            ],
        ),
        (
            InvalidRecipient,
            vec![
                json!({"recipient": USDC}),
                json!({"recipient": zero}),
                json!({"recipient": ROUTER}),
                json!({"recipient": scene::DEPOSITORY}),
                json!({"recipient": scene::SOLVER}),
            ],
        ),
        (
            InvalidAddress,
            vec![
                json!({"user": ""}),
                json!({"user": zero}),
                json!({"user": "0x12"}),
                json!({"user": 7}),
                json!({"recipient": solana}),
                json!({"recipient": "0x52908400098527886e0f7030069857D2E4169EE7"}),
                json!({"refundTo": "somebody"}),
                json!({"refundTo": zero}),
                json!({"refundTo": USDC}),
                json!({"refundTo": scene::DEPOSITORY}),
                json!({"refundTo": scene::SOLVER}),
                json!({"user": scene::SOLVER}),
                // Whom the refund would fall back to.
                json!({"user": scene::SOLVER, "originChainId": 31_002, "destinationChainId": 31_001,
                       "recipient": ROUTER}),
                json!({"user": scene::DEPOSITORY}),
                json!({"referrerAddress": "0x12"}),
                json!({"appFees": [{"recipient": solana, "fee": "1"}]}),
            ],
        ),
        (
            UnsupportedChain,
            vec![
                json!({"originChainId": 5}),
                json!({"destinationChainId": "31002"}),
                json!({"destinationChainId": -1}),
                json!({"originChainId": 1.5}),
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
            vec![json!({"destinationCurrency": 1})],
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
                tx(json!({"to": OTHER, "value": "1e18", "data": "0x12"})),
                tx(json!({"to": OTHER, "value": "1", "data": "0x12"})),
                tx(json!({"to": OTHER, "value": 1, "data": "0x12"})),
                tx(json!({"to": OTHER})),
                tx(json!({"to": OTHER, "data": "0x12", "originalTxValue": "x"})),
                json!({
                    "destinationCurrency": zero,
                    "txs": [{"to": OTHER, "value": max}, {"to": OTHER, "value": "1"}],
                }),
                json!({"txs": 5}),
                json!({"txs": vec![json!({"to": OTHER, "data": "0x12"}); 51]}),
                json!({"txs": [{"to": OTHER, "data": format!("0x{}", "00".repeat(131_073))}]}),
                json!({"txs": [{"to": OTHER, "data": "0x12"}], "txsGasLimit": 0}),
                without("chainId"),
                without("s"),
                json!({"authorizationList": [1]}),
            ],
        ),
        (
            InvalidGasLimitForDepositSpecifiedTxs,
            vec![
                json!({"gasLimitForDepositSpecifiedTxs": 5}),
                json!({"gasLimitForDepositSpecifiedTxs": "x"}),
                json!({
                    "gasLimitForDepositSpecifiedTxs": 0, "txs": [{"to": OTHER, "data": "0x12"}],
                }),
            ],
        ),
        (Unauthorized, vec![json!({"subsidizeFees": true})]),
        (
            NoSwapRoutesFound,
            vec![
                json!({"includedSwapSources": [null]}),
                json!({
                    "destinationChainId": 31_001, "destinationCurrency": TOKEN,
                    "disableOriginSwaps": true,
                }),
            ],
        ),
        (
            UnsupportedExecutionType,
            vec![
                json!({"tradeType": "EXACT"}),
                json!({"tradeType": null}),
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
                json!({"protocolVersion": "v1"}),
                json!({"ttl": 0}),
                json!({"ttl": 604_801}),
                json!({"ttl": "60"}),
                json!({"ttl": -1}),
                json!({"originGasOverhead": "-1"}),
                json!({"originGasOverhead": "1e5"}),
                json!({"originGasOverhead": 10_000_000_000_u64}),
                json!({"appFees": [{"recipient": USER, "fee": "1e2"}]}),
                json!({"appFees": [{"recipient": USER, "fee": "-1"}]}),
                json!({"appFees": [{"recipient": USER, "fee": "9999.9999999"}]}),
                json!({"appFees": [
                    {"recipient": USER, "fee": "6000"}, {"recipient": OTHER, "fee": "4000.1"},
                ]}),
                json!({"referrer": "x".repeat(300)}),
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
    assert_eq!(array.code, Code::UnsupportedExecutionType);
    let sponsored = read(&with(&json!({"subsidizeFees": true})), true).unwrap_err();
    assert_eq!(sponsored.code, Code::UnsupportedExecutionType);
    for field in [
        "user",
        "originCurrency",
        "destinationCurrency",
        "amount",
        "tradeType",
    ] {
        let mut body = scene::body();
        body.as_object_mut().unwrap().remove(field);
        let refused = read(&body, false).unwrap_err();
        assert!(refused.message.starts_with(field), "{}", refused.message);
    }
}

#[test]
fn same_chain_is_executed_by_the_user_unless_the_solver_must() {
    let market = scene::market();
    let solver = scene::address(scene::SOLVER);
    let ground = Ground {
        market: &market,
        spec: &scene::spec,
        solver: &solver,
        keyed: false,
    };
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
                "destinationCurrency": scene::NATIVE,
            }),
            Operation::Unwrap,
            true,
        ),
    ] {
        let body = Body::read(with(&changes)).unwrap();
        let intent = Intent::of(&body, &ground).unwrap();
        assert_eq!(
            (intent.operation, intent.own),
            (operation, own),
            "{changes}"
        );
    }
}

#[test]
fn refunds_fall_back_to_whom_the_origin_can_pay() {
    let market = scene::market();
    let solver = scene::address(scene::SOLVER);
    let ground = Ground {
        market: &market,
        spec: &scene::spec,
        solver: &solver,
        keyed: false,
    };
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
        let intent = Intent::of(&body, &ground).unwrap();
        assert_eq!(intent.refund_to.text(), wanted, "{changes}");
    }
}
