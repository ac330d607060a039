use alloy::{
    eips::eip7702::Authorization as Delegation,
    primitives::{B256, Bytes, I256, U256},
    signers::{SignerSync, local::PrivateKeySigner},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use vm::{
    protocol::order::Order,
    protocol::signature,
    trade::{Revert, Work},
};

use super::{
    code::Code,
    fixtures::{
        self, DEPOSITORY, EXCHANGE, Fixture, GAS, NATIVE, NOW, OTHER, ROUTER, SOLVER, TOKEN, USDC,
        USER, WETH,
    },
    usd::DOLLAR,
};
use crate::request::{Execution, Operation, Request, quoted::Quoted, summary::Feature};

mod families;
mod kept;
mod late;
mod multi;
mod strangers;

const ETH: &str = "1000000000000000000";

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("{pointer} in {value}"))
}

fn amount(value: &Value, pointer: &str) -> I256 {
    text(value, pointer).parse().unwrap()
}

fn ids(answer: &Value) -> Vec<&str> {
    let steps = answer["steps"].as_array().unwrap();
    steps.iter().map(|step| text(step, "/id")).collect()
}

async fn quoted(changes: Value) -> (Fixture, Value) {
    let fixture = Fixture::default();
    let answer = fixture.quote(changes).await.unwrap();
    (fixture, answer)
}

async fn refused(fixture: &Fixture, changes: Value) -> super::code::Refused {
    fixture.quote(changes).await.unwrap_err()
}

async fn stored(fixture: &Fixture, answer: &Value) -> Request {
    let id: B256 = text(answer, "/steps/0/requestId").parse().unwrap();
    fixture.requests().by_id(&id).await.unwrap().unwrap()
}

fn kept(request: &Request) -> Value {
    serde_json::from_str(request.quoted.json()).unwrap()
}

fn order(answer: &Value) -> Order {
    serde_json::from_value(answer["protocol"]["v2"]["orderData"].clone()).unwrap()
}

#[tokio::test]
async fn exact_input_of_a_token_is_approved_deposited_and_stored() {
    let (fixture, answer) = quoted(json!({"referrer": "me", "ttl": 60})).await;
    assert_eq!(ids(&answer), ["approve", "deposit"]);
    // 40,000 gas at 1.1 gwei and $2500, and $0.02.
    assert_eq!(text(&answer, "/fees/relayerGas/amount"), "110000");
    assert_eq!(text(&answer, "/fees/relayerService/amount"), "20000");
    assert_eq!(text(&answer, "/fees/relayer/amountUsd"), "0.130000");
    assert_eq!(text(&answer, "/fees/app/amountUsd"), "0");
    assert_eq!(text(&answer, "/details/currencyOut/amount"), "99870000");
    assert_eq!(
        text(&answer, "/details/currencyOut/minimumAmount"),
        "97872600"
    );
    assert_eq!(text(&answer, "/details/rate"), "0.9987");
    assert_eq!(text(&answer, "/details/totalImpact/usd"), "-0.130000");
    assert_eq!(
        text(&answer, "/details/expandedPriceImpact/execution/usd"),
        "-0.13"
    );
    let (approve, deposit) = (&answer["steps"][0], &answer["steps"][1]);
    assert!(approve["items"][0].get("check").is_none());
    // A quarter more than its estimate would be less.
    let usual = fixture.repricer().chains["origin"].providers.usual;
    let gas = usual(Work::Approve).to_string();
    assert_eq!(approve["items"][0]["data"]["gas"], gas);
    let id = text(deposit, "/requestId");
    assert_eq!(u64::from_str_radix(&id[2..14], 16), Ok(NOW));
    let endpoint = format!("/intents/status/v3?requestId={id}");
    assert_eq!(text(deposit, "/items/0/check/endpoint"), endpoint);
    assert_eq!(text(deposit, "/depositAddress"), "");
    assert_eq!(text(deposit, "/items/0/data/to"), DEPOSITORY);
    assert_eq!(
        text(deposit, "/items/0/data/data"),
        text(&answer, "/protocol/v2/orderId")
    );
    assert!(answer["protocol"]["v2"].get("orderSignature").is_none());
    let request = stored(&fixture, &answer).await;
    assert_eq!(
        (request.operation, request.execution),
        (Operation::Swap, Execution::Solver)
    );
    assert_eq!(request.expires_at, Some(NOW / 1000 + 60));
    assert_eq!(request.fill_work, GAS);
    assert_eq!(request.referrer.as_deref(), Some("me"));
    assert_eq!(kept(&request)["fees"], answer["fees"]);
    assert_eq!(kept(&request)["oneAsset"], true);
    assert_eq!(request.order, order(&answer));
    assert_ne!(request.id, request.order_id);
    let paid = json!({"chainId": "origin", "depository": DEPOSITORY, "currency": USDC,
                      "amount": "100000000"});
    assert_eq!(answer["protocol"]["v2"]["paymentDetails"], paid);
}

#[tokio::test]
async fn the_settlement_is_paid_by_whoever_has_a_solver_fill() {
    let fixture = Fixture::default();
    fixture.with(|world| world.settlement = DOLLAR / U256::from(2));
    let answer = fixture.quote(json!({})).await.unwrap();
    // As without a settlement, and half a dollar besides.
    for (pointer, wanted) in [
        ("/fees/relayerGas/amount", "110000"),
        ("/fees/relayerService/amount", "520000"),
        ("/fees/relayer/amountUsd", "0.630000"),
        ("/details/currencyOut/amount", "99370000"),
        ("/details/totalImpact/usd", "-0.630000"),
        ("/details/expandedPriceImpact/execution/usd", "-0.63"),
        ("/details/expandedPriceImpact/swap/usd", "0"),
        ("/details/expandedPriceImpact/relay/usd", "0"),
    ] {
        assert_eq!(text(&answer, pointer), wanted, "{pointer}");
    }
    // Where nobody fills, nothing is settled.
    let own = json!({"destinationChainId": 31_001, "destinationCurrency": TOKEN});
    let answer = fixture.quote(own).await.unwrap();
    for (pointer, wanted) in [
        ("/fees/relayer/amount", "0"),
        ("/fees/relayerService/amount", "0"),
        ("/details/expandedPriceImpact/execution/usd", "0"),
    ] {
        assert_eq!(text(&answer, pointer), wanted, "{pointer}");
    }
}

#[tokio::test]
async fn order_says_what_was_promised_and_the_solver_signs_it() {
    let changes = json!({"includeProtocolData": true, "recipient": OTHER, "refundTo": USER});
    let (fixture, answer) = quoted(changes).await;
    let order = order(&answer);
    let id: B256 = text(&answer, "/protocol/v2/orderId").parse().unwrap();
    assert_eq!(order.id(|_| Some(vm::SETTLEMENT)), Ok(id));
    assert_eq!(
        (order.solver_chain_id.as_str(), order.solver.as_str()),
        ("destination", SOLVER)
    );
    // Nobody but the solver claims for it.
    let salt = vm::protocol::text::number(&order.salt).unwrap();
    assert!(vm::protocol::order::is_vouched(salt));
    let refunds = &order.inputs[0].refunds;
    let chains = refunds
        .iter()
        .map(|one| one.chain_id.as_str())
        .collect::<Vec<_>>();
    assert_eq!(chains, ["origin", "destination"]);
    assert_eq!(
        (
            refunds[0].recipient.as_str(),
            refunds[0].minimum_amount.as_str()
        ),
        (USER, "1000000")
    );
    assert_eq!(refunds[0].extra_data, "0x");
    // What comes with the last block that can fill has a week to be given back.
    let (fill_by, refund_by) = (1_700_604_800, 1_701_209_600);
    let refunds_by = [refunds[0].deadline, refunds[1].deadline];
    assert_eq!(
        (order.output.deadline, refunds_by),
        (fill_by, [refund_by; 2])
    );
    assert_eq!(
        order.output.extra_data,
        format!("0x{}{}", "00".repeat(12), &ROUTER[2..])
    );
    assert_eq!(order.output.payments[0].recipient, OTHER);
    assert_eq!(order.output.payments[0].expected_amount, "99870000");
    assert_eq!(order.output.payments[0].minimum_amount, "97872600");
    let signed = stored(&fixture, &answer).await.order_signature;
    assert_eq!(
        text(&answer, "/protocol/v2/orderSignature"),
        signed.to_string()
    );
    let signed = signature::Signature::from_bytes(&signed).unwrap();
    let signer = signed.recover(&signature::eip191(id.as_slice())).unwrap();
    assert_eq!(format!("{signer:#x}"), SOLVER);
}

#[tokio::test]
async fn exact_output_costs_the_fees_more_and_loses_nothing() {
    let changes = json!({"tradeType": "EXACT_OUTPUT", "originCurrency": NATIVE,
                         "destinationCurrency": NATIVE, "amount": ETH});
    let (_, answer) = quoted(changes).await;
    assert_eq!(ids(&answer), ["deposit"]);
    let input = amount(&answer, "/details/currencyIn/amount");
    let fees = amount(&answer, "/fees/relayer/amount");
    assert_eq!(input, amount(&answer, "/details/currencyOut/amount") + fees);
    assert_eq!(text(&answer, "/details/currencyOut/amount"), ETH);
    assert_eq!(text(&answer, "/details/currencyOut/minimumAmount"), ETH);
    assert_eq!(
        text(&answer, "/details/slippageTolerance/destination/value"),
        "0"
    );
    assert_eq!(
        text(&answer, "/steps/0/items/0/data/value"),
        input.to_string()
    );
    let changes = json!({"tradeType": "EXPECTED_OUTPUT", "slippageTolerance": "50"});
    let (_, answer) = quoted(changes).await;
    assert_eq!(text(&answer, "/details/currencyOut/amount"), "100000000");
    assert_eq!(
        text(&answer, "/details/currencyOut/minimumAmount"),
        "99500000"
    );
    assert_eq!(
        text(&answer, "/details/slippageTolerance/destination/percent"),
        "0.50"
    );
}

#[tokio::test]
async fn deposit_is_bare_or_needs_no_approval() {
    let (_, bare) = quoted(json!({"explicitDeposit": false})).await;
    assert_eq!(ids(&bare), ["deposit"]);
    assert_eq!(text(&bare, "/steps/0/items/0/data/to"), USDC);
    let fixture = Fixture::default();
    fixture.with(|world| world.approved = U256::from(100_000_000));
    assert_eq!(ids(&fixture.quote(json!({})).await.unwrap()), ["deposit"]);
}

/// Anybody may send what a wallet with code has signed, with data of their own around it.
#[tokio::test]
async fn a_wallet_with_code_deposits_through_the_depository() {
    let fixture = Fixture::default();
    fixture.with(|world| world.code = true);
    let answer = fixture.quote(json!({"explicitDeposit": false})).await;
    assert_eq!(ids(&answer.unwrap()), ["approve", "deposit"]);
}

#[tokio::test]
async fn gas_of_a_poor_user_comes_from_the_table_with_the_overhead() {
    let fixture = Fixture::default();
    fixture.with(|world| world.balance = U256::ZERO);
    let answer = fixture
        .quote(json!({"originGasOverhead": "10000"}))
        .await
        .unwrap();
    let usual = fixture.repricer().chains["origin"].providers.usual;
    let whole = usual(Work::Approve) + usual(Work::Deposit) + 10_000;
    let cost = I256::try_from(whole * 1_100_000_000).unwrap();
    assert_eq!(amount(&answer, "/fees/gas/amount"), cost);
    // What users sign has room: the table does not know their chain.
    for (at, work) in [Work::Approve, Work::Deposit].into_iter().enumerate() {
        let gas = &answer["steps"][at]["items"][0]["data"]["gas"];
        assert_eq!(*gas, (3 * usual(work)).to_string());
    }
    assert_eq!(text(&answer, "/details/userBalance"), "0");
    assert_eq!(text(&answer, "/fees/gas/currency/symbol"), "ETH");
    assert_eq!(
        text(&answer, "/steps/0/items/0/data/maxFeePerGas"),
        "2100000000"
    );
}

#[tokio::test]
async fn app_fees_come_out_of_the_input() {
    let fees = json!([{"recipient": OTHER, "fee": "5"}, {"recipient": USER, "fee": "0.5"}]);
    let (fixture, answer) = quoted(json!({"appFees": fees})).await;
    let owed = kept(&stored(&fixture, &answer).await)["appFees"].clone();
    let first = json!({"recipient": OTHER, "bps": "5", "amount": "50000"});
    assert_eq!(
        owed,
        json!([first, {"recipient": USER, "bps": "0.5", "amount": "5000"}])
    );
    assert_eq!(text(&answer, "/fees/app/amount"), "55000");
    assert_eq!(text(&answer, "/details/currencyOut/amount"), "99815000");
    assert_eq!(
        text(&answer, "/details/expandedPriceImpact/app/usd"),
        "-0.055"
    );
    // One that takes nothing is not kept, and no listing shows the feature.
    let nothing = json!([{"recipient": OTHER, "fee": "0"}]);
    let (fixture, answer) = quoted(json!({"appFees": nothing})).await;
    let request = stored(&fixture, &answer).await;
    assert_eq!(kept(&request)["appFees"], json!([]));
    let listed = Quoted::of(&request);
    assert_eq!(Feature::of(&listed).count(), 0);
}

#[tokio::test]
async fn calls_are_paid_through_the_router_and_the_rest_reaches_the_recipient() {
    let txs = json!([
        {"to": OTHER, "data": "0x1234", "value": "100"},
        {"to": OTHER, "value": "7"},
        {"to": ROUTER, "data": "0x56"},
    ]);
    let changes = json!({"txs": txs, "destinationCurrency": NATIVE, "amount": "1000",
                         "tradeType": "EXACT_OUTPUT"});
    let (fixture, answer) = quoted(changes).await;
    let output = order(&answer).output;
    let payments = output.payments.iter();
    let paid = payments.map(|one| (one.recipient.as_str(), one.minimum_amount.as_str()));
    assert_eq!(
        paid.collect::<Vec<_>>(),
        [(ROUTER, "100"), (OTHER, "7"), (USER, "893")]
    );
    let orders = vm::SETTLEMENT.orders.unwrap();
    let calls = output.calls.iter().map(|call| {
        let call = orders
            .decode_call(&alloy::hex::decode(call).unwrap())
            .unwrap();
        (
            call.to.to_string(),
            call.data.to_string(),
            call.value.to_string(),
        )
    });
    let (to, data) = swept(NATIVE);
    let wanted = [
        (OTHER, "0x1234", "100"),
        (ROUTER, "0x56", "0"),
        (to.as_str(), data.as_str(), "0"),
    ];
    let wanted = wanted.map(|(to, data, value)| (to.into(), data.into(), value.into()));
    assert_eq!(calls.collect::<Vec<_>>(), wanted);
    assert_eq!(stored(&fixture, &answer).await.calls.len(), 3);
    let (_, token) = quoted(json!({"txs": [{"to": OTHER, "data": "0x12"}]})).await;
    let payments = order(&token).output.payments;
    assert_eq!(
        (payments.len(), payments[0].recipient.as_str()),
        (1, ROUTER)
    );
    assert_eq!(payments[0].minimum_amount, payments[0].expected_amount);
    assert_eq!(call_of(&token, 1), swept(USDC));
    assert_eq!(last_call(&token), swept(NATIVE));
}

/// Address and data of the order's last call.
fn last_call(answer: &Value) -> (String, String) {
    call_of(answer, order(answer).output.calls.len() - 1)
}

fn call_of(answer: &Value, at: usize) -> (String, String) {
    let call = alloy::hex::decode(&order(answer).output.calls[at]).unwrap();
    let call = vm::SETTLEMENT.orders.unwrap().decode_call(&call).unwrap();
    (call.to.to_string(), call.data.to_string())
}

/// What is left of a currency goes to the user.
fn swept(currency: &str) -> (String, String) {
    swept_to(currency, USER)
}

fn swept_to(currency: &str, to: &str) -> (String, String) {
    let address = |text| vm::SETTLEMENT.address(text).unwrap();
    let orders = vm::SETTLEMENT.orders.unwrap();
    let sweep = orders.sweep(&address(ROUTER), &address(currency), &address(to));
    let sweep = sweep.unwrap();
    (sweep.to.to_string(), sweep.data.to_string())
}

#[tokio::test]
async fn nobody_is_promised_tokens_through_the_router_before_the_proxy_may_take_them() {
    let fixture = Fixture::default();
    fixture.with(|world| world.proxy_approved = U256::from(1_000_000));
    for changes in [
        json!({"txs": [{"to": OTHER, "data": "0x12"}]}),
        json!({"destinationCurrency": TOKEN}),
    ] {
        let refused = refused(&fixture, changes).await;
        assert_eq!(refused.code, Code::ServiceUnavailable);
    }
    // The native currency needs nobody's permission, a payment alone no router.
    let native = json!({"txs": [{"to": OTHER, "data": "0x12"}], "destinationCurrency": NATIVE});
    for changes in [native, json!({})] {
        assert!(fixture.quote(changes).await.is_ok());
    }
}

#[tokio::test]
async fn calls_keep_to_their_gas_limit() {
    let fixture = Fixture::default();
    let txs = json!([{"to": OTHER, "data": "0x12"}]);
    fixture.with(|world| world.gas = 220_000);
    let limit = |gas: u64| json!({"txs": txs, "txsGasLimit": gas});
    assert!(fixture.quote(limit(20_000)).await.is_ok());
    assert_eq!(
        refused(&fixture, limit(19_999)).await.code,
        Code::DestinationTxFailed
    );
    let deposit = |gas: u64| json!({"txs": txs, "gasLimitForDepositSpecifiedTxs": gas});
    assert!(fixture.quote(deposit(20_000)).await.is_ok());
    let beyond = refused(&fixture, deposit(19_999)).await;
    assert_eq!(beyond.code, Code::DestinationTxFailed);
    assert!(
        beyond.message.contains("gasLimitForDepositSpecifiedTxs"),
        "{}",
        beyond.message
    );
    let mut swapped = limit(1);
    swapped["destinationCurrency"] = json!(TOKEN);
    assert!(fixture.quote(swapped).await.is_ok());
}

/// The user's authorization, signed.
fn authorization(change: impl FnOnce(&mut Delegation)) -> Value {
    let mut delegation = Delegation {
        chain_id: U256::from(31_002),
        address: OTHER.parse().unwrap(),
        nonce: 0,
    };
    change(&mut delegation);
    let user = PrivateKeySigner::from_bytes(&B256::repeat_byte(7)).unwrap();
    let signed = user.sign_hash_sync(&delegation.signature_hash()).unwrap();
    json!({"chainId": delegation.chain_id.to::<u64>(), "address": OTHER, "nonce": delegation.nonce,
           "yParity": u8::from(signed.v()), "r": signed.r(), "s": signed.s()})
}

#[tokio::test]
async fn authorizations_are_simulated_and_kept() {
    let one = authorization(|_| ());
    let (fixture, answer) = quoted(json!({"authorizationList": [one]})).await;
    let carried = fixture.with(|world| world.carried[0].clone());
    assert_eq!((carried.len(), carried[0].nonce), (1, 0));
    assert_eq!(stored(&fixture, &answer).await.authorizations, [one]);
}

#[tokio::test]
async fn nothing_is_promised_that_no_node_takes() {
    let fixture = Fixture::default();
    let mut forged = authorization(|_| ());
    forged["r"] = json!("0x5");
    let good = authorization(|_| ());
    for (one, taken) in [
        (authorization(|one| one.nonce = 1), true),
        (authorization(|one| one.chain_id = U256::from(31_001)), true),
        (forged, true),
        (good, false),
    ] {
        fixture.with(|world| world.authorizations = taken);
        let refused = refused(&fixture, json!({"authorizationList": [one]})).await;
        assert_eq!(refused.code, Code::InvalidExtraTxs);
        assert!(refused.message.contains("authorization"), "{refused}");
    }
}

#[tokio::test]
async fn calls_take_no_more_gas_than_their_chain_lets_them() {
    let fixture = Fixture::default();
    fixture.with(|world| world.gas = 5_200_001);
    let txs = json!({"txs": [{"to": OTHER, "data": "0x12"}]});
    let refused = self::refused(&fixture, txs.clone()).await;
    assert_eq!(refused.code, Code::DestinationTxFailed);
    fixture.with(|world| world.gas = 5_200_000);
    assert!(fixture.quote(txs).await.is_ok());
    // A recipient's own code is no other.
    fixture.with(|world| world.gas = 5_200_000);
    let native = json!({"destinationCurrency": fixtures::NATIVE, "recipient": OTHER});
    let refused = self::refused(&fixture, native.clone()).await;
    assert_eq!(refused.code, Code::DestinationTxFailed);
    fixture.with(|world| world.gas = 4_900_000);
    assert!(fixture.quote(native).await.is_ok());
}

#[tokio::test]
async fn user_executes_a_swap_on_one_chain() {
    let same = json!({"destinationChainId": 31_001, "destinationCurrency": TOKEN});
    let (fixture, answer) = quoted(same).await;
    assert_eq!(ids(&answer), ["approve", "swap"]);
    let swap = &answer["steps"][1]["items"][0];
    assert_eq!(text(swap, "/data/to"), EXCHANGE);
    let order_id = text(&answer, "/protocol/v2/orderId");
    assert!(text(swap, "/data/data").ends_with(&order_id[2..]));
    // Wallets that batch tell nobody of it.
    assert!(swap.get("check").is_none());
    assert_eq!(
        text(&answer, "/details/currencyOut/amountFormatted"),
        "50.0"
    );
    assert_eq!(
        text(&answer, "/details/currencyOut/minimumAmount"),
        "49000000000000000000"
    );
    assert_eq!(
        text(&answer, "/details/slippageTolerance/origin/percent"),
        "2.00"
    );
    assert_eq!(text(&answer, "/fees/relayer/amount"), "0");
    assert_eq!(text(&answer, "/details/route/origin/router"), "exchange");
    assert!(answer["details"]["route"].get("destination").is_none());
    assert!(answer["protocol"]["v2"].get("paymentDetails").is_none());
    assert_eq!(stored(&fixture, &answer).await.execution, Execution::User);
    let most = json!({"destinationChainId": 31_001, "destinationCurrency": TOKEN,
                      "tradeType": "EXACT_OUTPUT", "amount": ETH, "slippageTolerance": "100"});
    let (_, answer) = quoted(most).await;
    assert_eq!(text(&answer, "/details/currencyIn/amount"), "2000000");
    let approved = text(&answer, "/steps/0/items/0/data/data");
    assert!(
        approved.ends_with(&format!("{:x}", 2_020_000)),
        "{approved}"
    );
    assert_eq!(
        text(&answer, "/details/slippageTolerance/origin/value"),
        "20000"
    );
}

#[tokio::test]
async fn what_the_solver_does_on_one_chain_is_one_leg() {
    let hundred = "100000000";
    for (chain, input, output, units, router) in [
        (31_001, USDC, NATIVE, hundred, "relay"),
        // The user exchanges before the deposit, and the solver behind it.
        (31_001, TOKEN, USDC, ETH, "exchange"),
        (31_002, USDC, TOKEN, hundred, "exchange"),
    ] {
        let changes = json!({
            "originChainId": chain, "destinationChainId": chain, "originCurrency": input,
            "destinationCurrency": output, "amount": units, "forceSolverExecution": true,
        });
        let (fixture, answer) = quoted(changes).await;
        let request = stored(&fixture, &answer).await;
        assert_eq!(request.execution, Execution::Solver);
        let (details, route) = (&answer["details"], &answer["details"]["route"]);
        assert_eq!(text(route, "/origin/router"), router, "{route}");
        assert_eq!(route["origin"]["inputCurrency"], details["currencyIn"]);
        assert_eq!(route["origin"]["outputCurrency"], details["currencyOut"]);
        assert!(route.get("destination").is_none(), "{route}");
        assert_eq!(kept(&request)["details"]["route"], *route);
    }
    // On two chains both are told.
    let (_, answer) = quoted(json!({})).await;
    let (details, route) = (&answer["details"], &answer["details"]["route"]);
    assert_eq!(route["origin"]["inputCurrency"], details["currencyIn"]);
    assert_eq!(
        route["destination"]["outputCurrency"],
        details["currencyOut"]
    );
}

/// Above the threshold a deposit counts as a minute, up to it as one block of two seconds; the fill's are two.
#[tokio::test]
async fn the_estimate_is_by_what_is_deposited_whatever_the_amount_is_of() {
    fn limited() -> Value {
        let mut file = fixtures::market_file();
        file[0]["currencies"][1]["oneBlockUpTo"] = json!("100130000");
        file
    }
    let fixture = Fixture::default();
    fixture.with(|world| world.market = limited);
    let output = |amount: &str| json!({"tradeType": "EXACT_OUTPUT", "amount": amount});
    let expected = json!({"tradeType": "EXPECTED_OUTPUT", "amount": "100000000"});
    for (changes, paid, seconds) in [
        (json!({}), "100000000", 2 + 4),
        (json!({"amount": "100130001"}), "100130001", 60 + 4),
        (output("100000000"), "100130000", 2 + 4),
        (expected, "100130000", 2 + 4),
        (output("100000001"), "100130001", 60 + 4),
        // Of what the user exchanges only what comes out is deposited.
        (
            json!({"originCurrency": TOKEN, "amount": ETH}),
            "1918200",
            2 + 4,
        ),
    ] {
        let answer = fixture.quote(changes.clone()).await.unwrap();
        let deposited = text(&answer, "/details/refundCurrency/amount");
        assert_eq!(deposited, paid, "{changes}");
        assert_eq!(answer["details"]["timeEstimate"], seconds, "{changes}");
    }
    // Without a threshold every deposit waits for finality.
    let (_, answer) = quoted(output("100000000")).await;
    assert_eq!(answer["details"]["timeEstimate"], 60 + 4);
}

#[tokio::test]
async fn user_sends_wraps_and_unwraps() {
    let send = json!({"destinationChainId": 31_001, "recipient": OTHER});
    let (fixture, answer) = quoted(send).await;
    assert_eq!(ids(&answer), ["send"]);
    assert_eq!(text(&answer, "/details/operation"), "send");
    assert_eq!(text(&answer, "/details/currencyOut/amount"), "100000000");
    assert!(answer["steps"][0]["items"][0].get("check").is_some());
    assert_eq!(stored(&fixture, &answer).await.operation, Operation::Send);
    for (from, to, operation, steps) in [
        (NATIVE, WETH, "wrap", &["swap"][..]),
        (WETH, NATIVE, "unwrap", &["approve", "swap"][..]),
    ] {
        let changes = json!({"destinationChainId": 31_001, "originCurrency": from,
                             "destinationCurrency": to, "amount": "1"});
        let (_, answer) = quoted(changes).await;
        assert_eq!(text(&answer, "/details/operation"), operation);
        assert_eq!(ids(&answer), steps);
        let last = answer["steps"].as_array().unwrap().last().unwrap();
        let polled = last["items"][0].get("check").is_some();
        assert_eq!(polled, steps.len() == 1, "{operation}");
        assert_eq!(text(&answer, "/details/currencyOut/minimumAmount"), "1");
    }
}

#[tokio::test]
async fn solver_swaps_what_it_does_not_hold() {
    let fixture = Fixture::default();
    fixture.with(|world| world.loss = Some(100));
    let answer = fixture
        .quote(json!({"destinationCurrency": TOKEN}))
        .await
        .unwrap();
    assert_eq!(ids(&answer), ["approve", "deposit"]);
    let output = order(&answer).output;
    assert_eq!((output.payments.len(), output.calls.len()), (1, 4));
    // What the pools did not take is the solver's, who paid for it.
    assert_eq!(call_of(&answer, 2), swept_to(USDC, SOLVER));
    assert_eq!(last_call(&answer), swept(TOKEN));
    assert_eq!(output.payments[0].recipient, ROUTER);
    assert_eq!(output.payments[0].currency, USDC);
    let given = text(&answer, "/details/route/destination/inputCurrency/amount");
    assert_eq!(output.payments[0].minimum_amount, given);
    assert_eq!(
        text(&answer, "/details/route/destination/router"),
        "exchange"
    );
    // What the swap loses is part of the solver's fee.
    let service = amount(&answer, "/fees/relayerService/amount");
    assert!(service > I256::try_from(990_000).unwrap(), "{service}");
    let exact = json!({"destinationCurrency": TOKEN, "tradeType": "EXACT_OUTPUT", "amount": ETH});
    let answer = fixture.quote(exact.clone()).await.unwrap();
    assert_eq!(text(&answer, "/details/currencyOut/minimumAmount"), ETH);
    let mut surplus = exact;
    surplus["enableTrueExactOutput"] = json!(true);
    let kept = fixture.quote(surplus).await.unwrap();
    // Exactly that is bought, and what was not needed goes back before anything else happens.
    let calls = |answer: &Value| order(answer).output.calls.len();
    assert_eq!(calls(&kept), calls(&answer));
    assert_eq!(call_of(&kept, 2), swept_to(USDC, SOLVER));
    assert_eq!(last_call(&kept), swept(TOKEN));
}

/// An exchange's router gives back all native currency that it has, also a wei that a stranger left there: no recipient
/// of tokens has to take it.
#[tokio::test]
async fn native_currency_that_an_exchange_gives_back_is_the_solvers() {
    fn without() -> Value {
        let mut file = fixtures::market_file();
        file[1]["currencies"][0]["solver"] = json!(false);
        file
    }
    let mut changes =
        json!({"originCurrency": NATIVE, "destinationCurrency": TOKEN, "amount": ETH});
    let (_, answer) = quoted(changes.clone()).await;
    let back = swept_to(NATIVE, SOLVER);
    assert_eq!(call_of(&answer, 0).0, EXCHANGE);
    assert_eq!(call_of(&answer, 1), back);
    assert_eq!(call_of(&answer, 2), swept(TOKEN));
    assert_eq!(order(&answer).output.calls.len(), 3);
    // What the order's own calls leave is the recipient's.
    changes["txs"] = json!([{"to": OTHER, "data": "0x12"}]);
    let (_, answer) = quoted(changes).await;
    assert_eq!(call_of(&answer, 1), back);
    assert_eq!(call_of(&answer, 2).0, OTHER);
    assert_eq!(call_of(&answer, 3), swept(TOKEN));
    assert_eq!(last_call(&answer), swept(NATIVE));
    // So is native currency that was bought.
    let fixture = Fixture::default();
    fixture.with(|world| world.market = without);
    let bought = fixture.quote(json!({"destinationCurrency": NATIVE})).await;
    let bought = bought.unwrap();
    assert_eq!(call_of(&bought, 2), swept_to(USDC, SOLVER));
    assert_eq!(last_call(&bought), swept(NATIVE));
}

#[tokio::test]
async fn nothing_slips_where_the_native_currency_is_wrapped_or_unwrapped() {
    let given = async |output: &str, leaves: bool| {
        let changes = json!({
            "destinationCurrency": output, "tradeType": "EXACT_OUTPUT", "amount": ETH,
            "slippageTolerance": "100", "enableTrueExactOutput": leaves,
        });
        let (_, answer) = quoted(changes).await;
        order(&answer).output.payments[0].minimum_amount.clone()
    };
    for leaves in [false, true] {
        assert_eq!(given(WETH, leaves).await, ETH);
        assert_eq!(given(TOKEN, leaves).await, "2020000");
    }
    let wrapped = json!({"originCurrency": NATIVE, "destinationCurrency": WETH, "amount": ETH});
    let (_, answer) = quoted(wrapped).await;
    let out = |field: &str| amount(&answer, &format!("/details/currencyOut/{field}"));
    assert_eq!(out("minimumAmount"), out("amount"));
    // A user deposits all that comes out.
    let (_, answer) = quoted(json!({"originCurrency": WETH, "amount": ETH})).await;
    assert_eq!(ids(&answer), ["approve", "swap", "deposit"]);
    assert_eq!(text(&answer, "/protocol/v2/paymentDetails/amount"), ETH);
}

/// The solver takes and gives dollars of one group: what the user gets for them is the exchange's business.
#[tokio::test]
async fn share_is_of_what_the_solver_takes_and_gives() {
    let fixture = Fixture::default();
    fixture.with(|world| world.loss = Some(0));
    let answer = fixture
        .quote(json!({"destinationCurrency": TOKEN}))
        .await
        .unwrap();
    assert_eq!(text(&answer, "/fees/relayerService/amount"), "20000");
}

#[tokio::test]
async fn second_choices_are_asked_only_where_they_may_be_and_must() {
    let fixture = Fixture::default();
    fixture.with(|world| world.second_loss = Some(0));
    let with = |fallbacks: bool| json!({"destinationCurrency": TOKEN, "useFallbacks": fallbacks});
    let router = |answer: &Value| text(answer, "/details/route/destination/router").to_owned();
    // The first choice is asked alone, however much worse it is.
    fixture.with(|world| world.loss = Some(500));
    let answer = fixture.quote(with(true)).await.unwrap();
    assert_eq!(router(&answer), "exchange");
    fixture.with(|world| world.loss = None);
    let code = refused(&fixture, with(false)).await.code;
    assert_eq!(code, Code::NoInternalSwapRoutesFound);
    let answer = fixture.quote(with(true)).await.unwrap();
    assert_eq!(router(&answer), "second");
    let mut filtered = with(true);
    filtered["excludedSwapSources"] = json!(["second"]);
    let code = refused(&fixture, filtered).await.code;
    assert_eq!(code, Code::NoInternalSwapRoutesFound);
    fixture.with(|world| world.second_loss = None);
    let code = refused(&fixture, with(true)).await.code;
    assert_eq!(code, Code::NoInternalSwapRoutesFound);
}

#[tokio::test]
async fn token_that_arrives_short_is_not_quoted() {
    // Away works; back does not.
    let short = |calls: &[vm::trade::Call]| calls.len() == 2 && calls[0].from.text() == SOLVER;
    let fixture = Fixture::default();
    fixture.with(|world| world.fails = short);
    let code = refused(&fixture, json!({})).await.code;
    assert_eq!(code, Code::UnsupportedCurrency);
    let native = json!({"destinationCurrency": NATIVE});
    assert!(fixture.quote(native).await.is_ok(), "no token is given");
    // What the exchange pays arrives short.
    let bought = |calls: &[vm::trade::Call]| {
        calls.len() == 3 && calls[1].to.text() == EXCHANGE && calls[2].to.text() == SOLVER
    };
    let fixture = Fixture::default();
    fixture.with(|world| world.fails = bought);
    let code = refused(&fixture, json!({"destinationCurrency": TOKEN}))
        .await
        .code;
    assert_eq!(code, Code::UnsupportedCurrency);
    assert!(fixture.quote(json!({})).await.is_ok());
    // An owner who cannot pay proves nothing.
    let fixture = Fixture::default();
    fixture.with(|world| world.fails = |calls| calls[0].from.text() == SOLVER);
    assert!(fixture.quote(json!({})).await.is_ok());
}

#[tokio::test]
async fn user_swaps_into_what_can_be_deposited() {
    let changes = json!({"originCurrency": TOKEN, "amount": ETH});
    let (fixture, answer) = quoted(changes).await;
    assert_eq!(ids(&answer), ["approve", "swap", "approve", "deposit"]);
    assert!(answer["steps"][1]["items"][0].get("check").is_none());
    // What at least comes out of the swap is deposited.
    assert_eq!(
        text(&answer, "/protocol/v2/paymentDetails/amount"),
        "1918200"
    );
    assert_eq!(
        text(&answer, "/details/refundCurrency/currency/symbol"),
        "USDC"
    );
    let request = stored(&fixture, &answer).await;
    assert_eq!(request.origin.currency, TOKEN);
    assert_eq!(kept(&request)["oneAsset"], false);
    let off = json!({"originCurrency": TOKEN, "amount": ETH, "disableOriginSwaps": true});
    assert_eq!(refused(&fixture, off).await.code, Code::NoSwapRoutesFound);
    for filter in [
        "excludedSwapSources",
        "includedOriginSwapSources",
        "includedSwapSources",
    ] {
        let other = if filter.starts_with("ex") {
            "exchange"
        } else {
            "another"
        };
        let changes = json!({"originCurrency": TOKEN, "amount": ETH, filter: [other]});
        assert_eq!(
            refused(&fixture, changes).await.code,
            Code::NoSwapRoutesFound,
            "{filter}"
        );
    }
}

#[tokio::test]
async fn no_exchange_goes_through_more_pools_than_were_allowed() {
    let fixture = Fixture::default();
    fixture.with(|world| world.pools = 2);
    let own = json!({"destinationChainId": 31_001, "destinationCurrency": TOKEN});
    for (changes, code) in [
        (
            json!({"originCurrency": TOKEN, "amount": ETH}),
            Code::NoSwapRoutesFound,
        ),
        (
            json!({"destinationCurrency": TOKEN}),
            Code::NoInternalSwapRoutesFound,
        ),
        (own, Code::NoSwapRoutesFound),
    ] {
        let at_most = |pools: u64| {
            let mut changes = changes.clone();
            changes["maxRouteLength"] = json!(pools);
            changes
        };
        let refused = refused(&fixture, at_most(1)).await;
        assert_eq!(refused.code, code, "{changes}");
        for pools in [2, 3, u64::from(u32::MAX)] {
            let quoted = fixture.quote(at_most(pools)).await;
            assert!(quoted.is_ok(), "{pools} {changes}: {quoted:?}");
        }
    }
    // What needs no exchange goes through none.
    let plain = fixture.quote(json!({"maxRouteLength": 1})).await;
    assert!(plain.is_ok(), "{plain:?}");
}

#[tokio::test]
async fn exchanges_that_were_named_are_kept_with_the_request() {
    let named = json!({
        "destinationCurrency": TOKEN, "includedSwapSources": ["exchange", "unknown"],
        "excludedSwapSources": ["second"], "includedOriginSwapSources": [],
        "includedDestinationSwapSources": ["exchange"],
    });
    let (fixture, answer) = quoted(named).await;
    let router = text(&answer, "/details/route/destination/router");
    assert_eq!(router, "exchange");
    assert_eq!(
        kept(&stored(&fixture, &answer).await)["swapSources"],
        json!({
            "included": ["exchange", "unknown"], "excluded": ["second"], "destination": ["exchange"],
        })
    );
    // Who names none keeps nothing, and an empty list lets every exchange work.
    for changes in [
        json!({"destinationCurrency": TOKEN}),
        json!({"destinationCurrency": TOKEN, "includedSwapSources": []}),
    ] {
        let (fixture, answer) = quoted(changes).await;
        let kept = kept(&stored(&fixture, &answer).await);
        assert_eq!(kept.get("swapSources"), None);
    }
    let other =
        json!({"destinationCurrency": TOKEN, "includedDestinationSwapSources": ["another"]});
    let refused = refused(&Fixture::default(), other).await;
    assert_eq!(refused.code, Code::NoInternalSwapRoutesFound);
}

#[tokio::test]
async fn toll_is_what_a_plain_quote_takes() {
    let market = fixtures::market();
    let end = |number: u64, address: &str| {
        let network = market.by_number(number).unwrap();
        super::toll::End {
            network,
            currency: network.currency(address).unwrap(),
        }
    };
    let capacity = U256::from(50_000_000);
    for (currency, amount, native) in [(USDC, "100000000", false), (NATIVE, ETH, true)] {
        let fixture = Fixture::default();
        let providers = &fixture.repricer().chains["destination"].providers;
        let usual = (providers.usual)(Work::Payment { native });
        fixture.with(|world| world.gas = usual);
        let changes = json!({"originCurrency": currency, "destinationCurrency": currency,
                             "amount": amount, "recipient": OTHER});
        let answer = fixture.quote(changes).await.unwrap();
        let ends = (end(31_001, currency), end(31_002, currency));
        let toll = fixture
            .quoter()
            .toll(ends.0, ends.1, capacity)
            .await
            .unwrap();
        let taken = text(&answer, "/fees/relayer/amount");
        assert_eq!(toll.fee.to_string(), taken, "{currency}");
        assert_eq!(toll.most, capacity + toll.fee);
        // Less than the fee carries nothing, more than the solver has carries what it has.
        assert_eq!(toll.left(toll.fee), U256::ZERO);
        assert_eq!(toll.left(U256::MAX), capacity);
        assert_eq!(toll.left(toll.fee + U256::from(7)), U256::from(7));
    }
    let fixture = Fixture::default();
    let (here, there) = (end(31_001, USDC), end(31_002, USDC));
    let own = fixture.quoter().toll(here, here, capacity).await.unwrap();
    assert_eq!((own.fee, own.left(capacity)), (U256::ZERO, capacity));
    fixture.with(|world| world.prices = |_| Err(false));
    let refused = fixture.quoter().toll(here, there, capacity).await;
    assert_eq!(refused.unwrap_err().code, Code::PriceFetchFailed);
}

#[tokio::test]
async fn reverting_destination_is_told_with_its_reason() {
    let fixture = Fixture::default();
    let revert = |reason: &str| Revert {
        reason: reason.into(),
        data: Bytes::from_static(&[1, 2]),
    };
    for (reason, wanted) in [("paused", "paused"), ("", "0x0102")] {
        fixture.with(|world| world.revert = Some(revert(reason)));
        for changes in [json!({}), json!({"txs": [{"to": OTHER, "data": "0x12"}]})] {
            let refused = refused(&fixture, changes).await;
            assert_eq!(refused.code, Code::DestinationTxFailed);
            assert_eq!(refused.error_data.as_deref(), Some(wanted));
            assert_eq!(refused.approx_simulated_block, Some(77));
            assert_eq!(refused.failed_call_data.unwrap().from, SOLVER);
        }
    }
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[tokio::test]
async fn world_that_is_not_ready_refuses_with_its_code() {
    let changed = |change: fn(&mut fixtures::World)| {
        let fixture = Fixture::default();
        fixture.with(change);
        fixture
    };
    let token = json!({"destinationCurrency": TOKEN});
    let own = json!({"destinationCurrency": TOKEN, "destinationChainId": 31_001});
    let small = json!({"destinationCurrency": TOKEN, "destinationChainId": 31_001,
                       "amount": "49999"});
    for (fixture, changes, code) in [
        (
            changed(|w| w.available = None),
            json!({}),
            Code::InsufficientLiquidity,
        ),
        (
            changed(|w| w.available = Some(U256::from(99_869_999))),
            json!({}),
            Code::InsufficientLiquidity,
        ),
        (
            changed(|w| w.prices = |_| Err(false)),
            json!({}),
            Code::PriceFetchFailed,
        ),
        (
            changed(|w| w.prices = |_| Err(true)),
            json!({}),
            Code::UnsupportedCurrency,
        ),
        (changed(|w| w.down = true), json!({}), Code::RpcHttpError),
        (
            changed(|w| w.loss = None),
            token.clone(),
            Code::NoInternalSwapRoutesFound,
        ),
        (changed(|w| w.loss = None), own, Code::NoSwapRoutesFound),
        (
            changed(|w| w.loss = Some(2_000)),
            token.clone(),
            Code::SwapImpactTooHigh,
        ),
        (Fixture::default(), small, Code::AmountTooLow),
        (
            Fixture::default(),
            json!({"amount": "130000"}),
            Code::AmountTooLow,
        ),
        (
            Fixture::default(),
            json!({"amount": U256::MAX.to_string()}),
            Code::InsufficientLiquidity,
        ),
        (
            Fixture::default(),
            json!({"amount": U256::MAX.to_string(), "tradeType": "EXACT_OUTPUT"}),
            Code::InsufficientLiquidity,
        ),
        (
            Fixture::default(),
            json!({"txs": [{"to": OTHER, "data": "0x12", "value": "11"}], "amount": "10",
                   "tradeType": "EXACT_OUTPUT", "destinationCurrency": NATIVE}),
            Code::InvalidExtraTxs,
        ),
        (
            changed(|w| w.store.fail("full")),
            json!({}),
            Code::ServiceUnavailable,
        ),
    ] {
        let refused = refused(&fixture, changes.clone()).await;
        assert_eq!(refused.code, code, "{changes}: {}", refused.message);
    }
    let fixture = changed(|w| w.loss = Some(2_000));
    let mut taken = token;
    taken["overridePriceImpact"] = json!(true);
    assert!(fixture.quote(taken).await.is_ok());
}

#[tokio::test]
async fn price_is_the_quote_without_its_promise() {
    let fixture = Fixture::default();
    fixture.with(|world| world.store.fail("a price needs no store"));
    let price = fixture
        .quoter()
        .price(&fixtures::changed(json!({})), None)
        .await
        .unwrap();
    let price = serde_json::to_value(price).unwrap();
    assert_eq!(text(&price, "/details/currencyOut/amount"), "99870000");
    for absent in ["route", "isFixedRate", "expandedPriceImpact"] {
        assert!(price["details"].get(absent).is_none(), "{absent}");
    }
}

/// Millionths of a dollar.
fn micro(value: &Value, pointer: &str) -> i128 {
    let text = text(value, pointer);
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    sign * format!("{whole}{fraction:0<6}").parse::<i128>().unwrap()
}

/// guide: protocol 11.9, over one answer.
fn identities(answer: &Value) {
    let details = |field: &str| micro(answer, &format!("/details/{field}"));
    let fees = |field: &str| micro(answer, &format!("/fees/{field}/amountUsd"));
    let unit = |field: &str| amount(answer, &format!("/fees/{field}/amount"));
    let near = |one: i128, other: i128| assert!((one - other).abs() <= 1, "{one} {other}");
    let total = details("totalImpact/usd");
    assert_eq!(
        total,
        details("currencyOut/amountUsd") - details("currencyIn/amountUsd")
    );
    let swap = details("swapImpact/usd");
    assert_eq!(swap, total + fees("relayer") + fees("app"));
    let part = |field: &str| details(&format!("expandedPriceImpact/{field}/usd"));
    assert_eq!(
        total,
        part("swap") + part("execution") + part("relay") + part("app")
    );
    if unit("relayer").is_zero() {
        assert_eq!(part("execution"), 0);
    } else {
        near(-part("execution"), 20_000 + fees("relayerGas"));
    }
    assert_eq!(unit("relayer"), unit("relayerGas") + unit("relayerService"));
    let out = amount(answer, "/details/currencyOut/amount");
    let least = amount(answer, "/details/currencyOut/minimumAmount");
    let lost = amount(answer, "/details/slippageTolerance/destination/value");
    let own = amount(answer, "/details/slippageTolerance/origin/value");
    assert!(least <= out && (out - least == lost || out - least == own));
}

proptest! {
    #[test]
    fn identities_hold_in_every_quote(
        units in 1_u64.., trade in 0_usize..3, input in 0_usize..4, output in 0_usize..4,
        same: bool, loss in 0_u64..1_000, bps in 0_u64..300, slippage in 0_u64..2_000,
    ) {
        let currencies = [NATIVE, USDC, WETH, TOKEN];
        let types = ["EXACT_INPUT", "EXACT_OUTPUT", "EXPECTED_OUTPUT"];
        let changes = json!({
            "amount": units.to_string(), "tradeType": types[trade],
            "originCurrency": currencies[input], "destinationCurrency": currencies[output],
            "destinationChainId": if same { 31_001 } else { 31_002 },
            "appFees": [{"recipient": OTHER, "fee": bps.to_string()}],
            "slippageTolerance": slippage.to_string(), "overridePriceImpact": true,
        });
        let fixture = Fixture::default();
        fixture.with(|world| world.loss = Some(loss));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        match runtime.block_on(fixture.quote(changes)) {
            Ok(answer) => {
                identities(&answer);
                prop_assert_eq!(text(&answer, "/details/sender"), USER);
            }
            Err(refused) => prop_assert!(
                refused.code.status() == 400, "{:?}: {}", refused.code, refused.message
            ),
        }
    }
}
