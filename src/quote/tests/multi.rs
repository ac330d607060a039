//! Several inputs: each order is what it would be alone, and all are kept or none.

use alloy::primitives::{I256, U256};
use serde_json::{Value, json};

use super::{ETH, amount, ids, kept, micro, text};
use crate::{
    quote::{
        body::multi::MultiBody,
        code::{Code, Refused},
        context::Caller,
        fixtures::{DEPOSITORY, Fixture, NATIVE, NOW, OTHER, TOKEN, USDC, USER, WETH, changed},
        service::Quoter,
    },
    store::{Store, rows},
};

/// A hundred dollars of ETH.
const HUNDRED: &str = "40000000000000000";
/// Neither the user nor [`OTHER`].
const THIRD: &str = "0x7878787878787878787878787878787878787878";

fn origin(currency: &str, amount: &str) -> Value {
    json!({"chainId": 31_001, "currency": currency, "amount": amount})
}

/// A hundred USDC and a hundred dollars of ETH for USDC, changed.
async fn ask(quoter: &Quoter, key: Option<&str>, changes: Value) -> Result<Value, Refused> {
    let mut body = json!({
        "user": USER, "destinationChainId": 31_002, "destinationCurrency": USDC,
        "tradeType": "EXACT_INPUT",
        "origins": [origin(USDC, "100000000"), origin(NATIVE, HUNDRED)],
    });
    for (field, value) in changes.as_object().unwrap() {
        body[field] = value.clone();
    }
    let bodies = MultiBody::read(body)?;
    let answer = quoter.quote_all(bodies, Caller { key, by: 0 }).await?;
    Ok(serde_json::to_value(answer).unwrap())
}

async fn quote(fixture: &Fixture, changes: Value) -> Result<Value, Refused> {
    ask(&fixture.quoter(), None, changes).await
}

/// Quotes that are kept.
async fn count(fixture: &Fixture) -> usize {
    let store = fixture.with(|world| world.store.clone());
    store
        .scan(rows::quote::range(None, 99))
        .await
        .unwrap()
        .len()
}

#[tokio::test]
async fn each_order_is_what_it_would_be_alone_with_an_id_and_steps_of_its_own() {
    let fixture = Fixture::default();
    let answer = quote(&fixture, json!({"referrer": "me"})).await.unwrap();
    assert_eq!(ids(&answer), ["approve", "deposit", "deposit"]);
    let [first, second] = [0, 1].map(|at| text(&answer, &format!("/requests/{at}/requestId")));
    assert_ne!(first, second);
    let whose = [0, 1, 2].map(|at| text(&answer, &format!("/steps/{at}/requestId")));
    assert_eq!(whose, [first, first, second]);
    assert!(answer["steps"][0]["items"][0].get("check").is_none());
    for (step, id) in [(1, first), (2, second)] {
        let polled = text(&answer, &format!("/steps/{step}/items/0/check/endpoint"));
        assert_eq!(polled, format!("/intents/status/v3?requestId={id}"));
        let to = text(&answer, &format!("/steps/{step}/items/0/data/to"));
        assert_eq!(to, DEPOSITORY);
    }
    let native = json!({"originCurrency": NATIVE, "amount": HUNDRED});
    for (at, alone) in [json!({}), native].into_iter().enumerate() {
        let (joint, alone) = (&answer["requests"][at], fixture.quote(alone).await.unwrap());
        assert_eq!(joint["fees"], alone["fees"]);
        assert_eq!(joint["details"], alone["details"]);
        let id = text(joint, "/requestId").parse().unwrap();
        let request = fixture.requests().by_id(&id).await.unwrap().unwrap();
        assert_eq!(kept(&request)["details"], joint["details"]);
        assert_eq!(request.referrer.as_deref(), Some("me"));
        let order = text(joint, "/protocol/v2/orderId");
        assert_eq!(request.order_id.to_string(), order);
        // Its deposit names it, and no other.
        let deposit = text(&answer, &format!("/steps/{}/items/0/data/data", at + 1));
        assert_eq!(deposit, order);
    }
}

/// Dollars are added up, and what is of one currency.
fn sums(answer: &Value) {
    let parts = || answer["requests"].as_array().unwrap().iter();
    let details = [
        "currencyIn/amountUsd",
        "currencyOut/amountUsd",
        "refundCurrency/amountUsd",
        "totalImpact/usd",
        "swapImpact/usd",
        "expandedPriceImpact/swap/usd",
        "expandedPriceImpact/execution/usd",
        "expandedPriceImpact/relay/usd",
        "expandedPriceImpact/app/usd",
        "slippageTolerance/origin/usd",
        "slippageTolerance/destination/usd",
    ];
    let fees = ["gas", "relayer", "relayerGas", "relayerService", "app"];
    let details = details.map(|field| format!("/details/{field}"));
    let fees = fees.map(|field| format!("/fees/{field}/amountUsd"));
    for pointer in details.iter().chain(&fees) {
        let sum: i128 = parts().map(|part| micro(part, pointer)).sum();
        assert_eq!(micro(answer, pointer), sum, "{pointer}");
    }
    for pointer in [
        "/details/currencyOut/amount",
        "/details/currencyOut/minimumAmount",
        "/details/slippageTolerance/destination/value",
    ] {
        let sum = parts().fold(I256::ZERO, |sum, part| sum + amount(part, pointer));
        assert_eq!(amount(answer, pointer), sum, "{pointer}");
    }
    let fee = |name: &str| amount(answer, &format!("/fees/{name}/amount"));
    assert_eq!(fee("relayer"), fee("relayerGas") + fee("relayerService"));
}

#[tokio::test]
async fn answer_adds_up_what_its_orders_say() {
    let answer = quote(&Fixture::default(), json!({})).await.unwrap();
    sums(&answer);
    let input = &answer["details"]["currencyIn"];
    // A hundred dollars of ETH are a hundred USDC.
    assert_eq!(input["currency"]["symbol"], "USDC");
    assert_eq!(
        (&input["amount"], &input["amountUsd"]),
        (&json!("200000000"), &json!("200.000000"))
    );
    assert_eq!(answer["details"]["validUntil"], NOW / 1_000 + 60);
    assert!(answer["details"].get("route").is_none());
    assert_eq!(answer["fees"]["relayer"]["currency"]["symbol"], "USDC");
    assert_eq!(answer["fees"]["gas"]["currency"]["symbol"], "ETH");
    let all = json!([
        origin(NATIVE, HUNDRED),
        origin(USDC, "100000000"),
        origin(WETH, HUNDRED),
        origin(TOKEN, "50000000000000000000"),
    ]);
    for output in [NATIVE, USDC, WETH, TOKEN] {
        let fixture = Fixture::default();
        fixture.with(|world| world.loss = Some(30));
        let answer = quote(
            &fixture,
            json!({
                "origins": all, "destinationCurrency": output, "slippageTolerance": "70",
                "appFees": [{"recipient": OTHER, "fee": "5"}],
            }),
        );
        let answer = answer.await.unwrap();
        assert_eq!(answer["requests"].as_array().unwrap().len(), 4);
        sums(&answer);
        let recipients = answer["requests"].as_array().unwrap().iter();
        let mut recipients = recipients.map(|one| text(one, "/details/recipient"));
        assert!(recipients.all(|recipient| recipient == USER));
    }
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[tokio::test]
async fn where_one_cannot_be_quoted_nothing_is_kept_or_held() {
    let there = U256::from(1_000_000_000_u64);
    let second = |field: &str, value: Value| {
        let mut bad = origin(NATIVE, HUNDRED);
        bad[field] = value;
        json!({"origins": [origin(USDC, "50000000"), bad]})
    };
    let unknown = format!("0x{}", "77".repeat(20));
    for (changes, code, path) in [
        (
            second("currency", json!(unknown)),
            Code::UnsupportedCurrency,
            "origins[1].currency",
        ),
        (
            second("currency", json!("eth")),
            Code::InvalidInputCurrency,
            "origins[1].currency",
        ),
        (
            second("currency", json!(USDC)),
            Code::InvalidField,
            "origins[1].currency",
        ),
        (
            second("chainId", json!(5)),
            Code::UnsupportedChain,
            "origins[1].chainId",
        ),
        (
            second("chainId", json!(31_003)),
            Code::ChainDisabled,
            "origins[1].chainId",
        ),
        (
            second("amount", json!("0")),
            Code::AmountTooLow,
            "origins[1].amount",
        ),
        (
            second("amount", json!("1000")),
            Code::AmountTooLow,
            "origins[1].amount",
        ),
        (
            second("amount", json!(ETH)),
            Code::InsufficientLiquidity,
            "origins[1].amount",
        ),
        (
            second("user", json!("0x12")),
            Code::InvalidAddress,
            "origins[1]",
        ),
        (
            json!({"destinationChainId": 5}),
            Code::UnsupportedChain,
            "origins[0]",
        ),
        (
            json!({"recipient": USDC}),
            Code::InvalidRecipient,
            "origins[0]",
        ),
        (
            json!({"origins": [], "amount": "1"}),
            Code::InvalidField,
            "origins",
        ),
    ] {
        let fixture = Fixture::default();
        fixture.with(|world| world.available = Some(there));
        let quoter = fixture.quoter();
        let refused = ask(&quoter, Some("app"), changes.clone())
            .await
            .unwrap_err();
        assert_eq!(refused.code, code, "{changes}: {refused}");
        assert_eq!(
            refused.message.split(": ").next(),
            Some(path),
            "{changes}: {refused}"
        );
        assert_eq!(count(&fixture).await, 0);
        // All that is there is free.
        let whole = changed(json!({"amount": there.to_string()}));
        assert!(quoter.quote(&whole, None).await.is_ok(), "{changes}");
    }
    let fixture = Fixture::default();
    fixture.with(|world| world.loss = None);
    let origins = json!([origin(USDC, "100000000"), origin(TOKEN, ETH)]);
    let refused = quote(&fixture, json!({"origins": origins}))
        .await
        .unwrap_err();
    assert_eq!(refused.code, Code::NoSwapRoutesFound);
    assert!(
        refused.message.starts_with("origins[1]: no swap"),
        "{refused}"
    );
    assert_eq!(count(&fixture).await, 0);
    fixture.with(|world| world.store.fail("full"));
    let refused = quote(&fixture, json!({})).await.unwrap_err();
    assert_eq!(refused.code, Code::ServiceUnavailable);
    let nothing = fixture
        .quoter()
        .quote_all(Vec::new(), Caller { key: None, by: 0 })
        .await;
    assert_eq!(nothing.unwrap_err().code, Code::InvalidField);
}

#[tokio::test]
async fn what_each_alone_may_have_all_together_may_not() {
    let alone = async |fixture: &Fixture, to: &str| {
        for (from, amount) in [(USDC, "100000000"), (NATIVE, HUNDRED)] {
            let one = json!({"originCurrency": from, "destinationCurrency": to, "amount": amount});
            assert!(fixture.quote(one).await.is_ok(), "{from} {to}");
        }
    };
    let together = async |fixture: &Fixture, to: &str| {
        let refused = quote(fixture, json!({"destinationCurrency": to}))
            .await
            .unwrap_err();
        assert_eq!(refused.code, Code::InsufficientLiquidity, "{refused}");
        assert!(
            refused.message.starts_with("origins[1].amount: "),
            "{refused}"
        );
        // Those that were asked for alone.
        assert_eq!(count(fixture).await, 2);
    };
    // What the solver has.
    let fixture = Fixture::default();
    fixture.with(|world| world.available = Some(U256::from(150_000_000)));
    alone(&fixture, USDC).await;
    together(&fixture, USDC).await;
    // What it may give now: here, of the native currency.
    let fixture = Fixture::default();
    fixture.with(|world| world.native = U256::from(60_000_000_000_000_000_u64));
    alone(&fixture, NATIVE).await;
    together(&fixture, NATIVE).await;
}

/// The solver gives USDC for one and ETH for the other, which are exchanged for the token.
#[tokio::test]
async fn orders_paid_in_two_currencies_share_the_hours_limit() {
    let fixture = Fixture::default();
    let to = json!({"destinationCurrency": TOKEN});
    let dollars = |dollars: u64| U256::from(dollars) * U256::from(10).pow(U256::from(18));
    fixture.with(|world| world.hourly = dollars(150));
    for (from, amount) in [(USDC, "100000000"), (NATIVE, HUNDRED)] {
        let one = json!({"originCurrency": from, "destinationCurrency": TOKEN, "amount": amount});
        assert!(fixture.quote(one).await.is_ok(), "{from}");
    }
    let refused = quote(&fixture, to.clone()).await.unwrap_err();
    assert_eq!(refused.code, Code::RouteTemporarilyRestricted, "{refused}");
    assert!(
        refused.message.starts_with("origins[1].amount: "),
        "{refused}"
    );
    fixture.with(|world| world.hourly = dollars(250));
    let answer = quote(&fixture, to).await.unwrap();
    let given = |at| {
        let given =
            format!("/requests/{at}/details/route/destination/inputCurrency/currency/symbol");
        text(&answer, &given).to_owned()
    };
    assert_eq!([given(0), given(1)], ["USDC", "ETH"]);
}

#[tokio::test]
async fn orders_of_one_key_hold_what_they_promise_together() {
    let fixture = Fixture::default();
    let there = U256::from(1_000_000_000_u64);
    fixture.with(|world| world.available = Some(there));
    let quoter = fixture.quoter();
    let origins = json!([
        origin(USDC, "40000000"),
        origin(NATIVE, "16000000000000000")
    ]);
    let answer = ask(&quoter, Some("app"), json!({"origins": origins}))
        .await
        .unwrap();
    let held = amount(&answer, "/details/currencyOut/amount").into_raw();
    // A plain quote costs 13 cents.
    let free = there - held + U256::from(130_000);
    for (more, fits) in [(0, true), (1, false)] {
        let body = changed(json!({"amount": (free + U256::from(more)).to_string()}));
        assert_eq!(quoter.quote(&body, None).await.is_ok(), fits, "{more}");
    }
}

/// What a deposit takes of an approval is not there for the next one.
#[tokio::test]
async fn an_approval_serves_each_deposit_once() {
    let fixture = Fixture::default();
    fixture.with(|world| world.approved = U256::from(100_000_000));
    let (usdc, token) = (origin(USDC, "100000000"), origin(TOKEN, ETH));
    let mut others = usdc.clone();
    others["user"] = json!(OTHER);
    for (origins, bare, steps) in [
        // The exchange pays in USDC, too.
        (
            json!([usdc, token]),
            false,
            "deposit approve swap approve deposit",
        ),
        (
            json!([token, usdc]),
            false,
            "approve swap deposit approve deposit",
        ),
        // Transfers need none, and others have their own.
        (json!([usdc, token]), true, "deposit approve swap deposit"),
        (json!([usdc, others]), false, "deposit deposit"),
    ] {
        let changes = json!({"origins": origins, "explicitDeposit": !bare});
        let answer = quote(&fixture, changes).await.unwrap();
        assert_eq!(ids(&answer).join(" "), steps, "{origins} {bare}");
    }
}

#[tokio::test]
async fn what_the_user_does_alone_comes_last() {
    let own = json!({"chainId": 31_002, "currency": TOKEN, "amount": ETH});
    let origins = json!([own, origin(USDC, "100000000")]);
    let fixture = Fixture::default();
    let answer = quote(&fixture, json!({"origins": origins})).await.unwrap();
    assert_eq!(ids(&answer), ["approve", "deposit", "approve", "swap"]);
    let first = text(&answer, "/requests/0/requestId");
    assert_eq!(text(&answer, "/steps/3/requestId"), first);
    assert!(
        answer["requests"][0]["protocol"]["v2"]
            .get("paymentDetails")
            .is_none()
    );
    let chains = [0, 1, 2, 3].map(|at| &answer["steps"][at]["items"][0]["data"]["chainId"]);
    assert_eq!(
        chains,
        [
            &json!(31_001),
            &json!(31_001),
            &json!(31_002),
            &json!(31_002)
        ]
    );
    assert_eq!(count(&fixture).await, 2);
}

#[tokio::test]
async fn who_deposits_for_somebody_else_is_given_back_the_deposit() {
    let mut others = origin(NATIVE, HUNDRED);
    others["user"] = json!(OTHER);
    let origins = json!([origin(USDC, "100000000"), others]);
    for (changes, refunds) in [
        (json!({}), [USER, OTHER]),
        (json!({"refundTo": THIRD}), [THIRD, THIRD]),
        // As of one order: the recipient that was named comes first.
        (json!({"recipient": USER}), [USER, USER]),
    ] {
        let mut body = changes.clone();
        body["origins"] = origins.clone();
        let answer = quote(&Fixture::default(), body).await.unwrap();
        for (at, refund_to) in refunds.into_iter().enumerate() {
            let one = &answer["requests"][at];
            assert_eq!(text(one, "/details/recipient"), USER, "{changes}");
            for side in [0, 1] {
                let refund = format!("/protocol/v2/orderData/inputs/0/refunds/{side}/recipient");
                assert_eq!(text(one, &refund), refund_to, "{changes} {at}");
            }
        }
    }
}
