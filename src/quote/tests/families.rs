//! Quotes where a family lacks an ability, and between families whose accounts and transactions differ.

use alloy::primitives::{B256, I256, U256};
use serde_json::{Value, json};
use vm::{
    Family,
    trade::{Draft, Revert},
};

use super::{Code, amount, ids, order, refused, stored, text};
use crate::quote::fixtures::{
    self, Fixture, NATIVE, OTHER, SOLVER, TOKEN, USDC, USER, family, kept, other,
};

/// The destination's family, changed.
fn lacking(change: impl FnOnce(&mut Family)) -> Fixture {
    let fixture = Fixture::default();
    let mut changed = Family { ..*family() };
    change(&mut changed);
    fixture.with(|world| world.families.insert("destination", kept(changed)));
    fixture
}

#[tokio::test]
async fn what_a_family_cannot_do_is_refused() {
    let calls = || json!({"txs": [{"to": OTHER, "data": "0x12"}]});
    let swapped = || json!({"destinationCurrency": TOKEN});
    let own =
        || json!({"originChainId": 31_002, "originCurrency": USDC, "destinationCurrency": TOKEN});
    let steps: fn(&mut Family) = |family| family.steps = None;
    let orders: fn(&mut Family) = |family| family.orders = None;
    let approvals: fn(&mut Family) = |family| family.approvals = None;
    for (without, changes, code) in [
        (steps, json!({}), Code::UnsupportedRoute),
        (orders, calls(), Code::ExtraTxsNotSupported),
        (orders, swapped(), Code::UnsupportedRoute),
        (approvals, swapped(), Code::UnsupportedRoute),
        (approvals, own(), Code::UnsupportedRoute),
    ] {
        let fixture = lacking(without);
        let refused = refused(&fixture, changes.clone()).await;
        assert_eq!(refused.code, code, "{changes}: {refused}");
    }
    // Whoever needs none of it is quoted.
    for without in [orders, approvals] {
        let fixture = lacking(without);
        let quoted = fixture.quote(json!({})).await;
        assert!(quoted.is_ok(), "{quoted:?}");
    }
}

/// A chain of the other family, at one of both ends.
pub(super) fn beside(network: &'static str) -> Fixture {
    let fixture = Fixture::default();
    fixture.with(|world| {
        world.families.insert(network, other::family());
        world.market = match network {
            "origin" => || other::market(fixtures::market_file(), 0),
            _ => || other::market(fixtures::market_file(), 1),
        };
    });
    fixture
}

#[tokio::test]
async fn deposits_of_one_family_are_filled_in_another() {
    let fixture = beside("destination");
    let changes = json!({"destinationCurrency": other::USDC, "recipient": other::USER});
    let answer = fixture.quote(changes.clone()).await.unwrap();
    assert_eq!(ids(&answer), ["approve", "deposit"]);
    let promised = order(&answer);
    assert_eq!(promised.solver, SOLVER);
    assert_eq!(promised.output.payments[0].recipient, other::USER);
    assert_eq!(promised.output.payments[0].currency, other::USDC);
    // Nobody who is refunded has an account of the destination.
    let refunds = &promised.inputs[0].refunds;
    let refunds: Vec<_> = refunds
        .iter()
        .map(|one| (&*one.chain_id, &*one.recipient))
        .collect();
    assert_eq!(refunds, [("origin", USER)]);
    let request = stored(&fixture, &answer).await;
    assert_eq!(request.fill_work, other::WORK);
    // 7,000 units of work at 6 are 42,000 of a native currency of nine decimals at $2500: $0.105.
    assert_eq!(
        amount(&answer, "/fees/relayerGas/amount"),
        I256::try_from(105_000).unwrap()
    );
    // What makes no call shows none.
    let revert = Revert {
        reason: "frozen".into(),
        data: Default::default(),
    };
    fixture.with(|world| world.revert = Some(revert));
    let refused = refused(&fixture, changes).await;
    assert_eq!(refused.code, Code::DestinationTxFailed);
    assert_eq!(refused.error_data.as_deref(), Some("frozen"));
    assert_eq!(refused.failed_call_data, None);
}

/// Where a recipient closes its account, or gives it away, the deposit comes back whatever the prices are by then.
#[tokio::test]
async fn who_can_let_any_payment_fail_pays_for_the_choice() {
    let given = async |declinable: bool, (from, amount): (&str, &str), to: &str| {
        let fixture = beside("destination");
        fixture.with(|world| world.declinable = declinable);
        let changes = json!({"originCurrency": from, "amount": amount, "destinationCurrency": to,
                             "recipient": other::USER});
        let answer = fixture.quote(changes).await.unwrap();
        super::amount(&answer, "/details/currencyOut/amount").into_raw()
    };
    let (dollars, ether) = ((USDC, "100000000"), (NATIVE, "100000000000000000"));
    // Of the native currency and of tokens: what a major currency and a stable one may move by until the deposit is final.
    for (from, to) in [(dollars, other::NATIVE), (ether, other::USDC)] {
        let all = given(false, from, to).await;
        let lost = all - given(true, from, to).await;
        let lost = (lost * U256::from(1_000_000) / all).to::<u64>();
        assert!((300..=1_500).contains(&lost), "{to}: {lost}");
    }
    // What is level with what is deposited has no price.
    let level = given(false, dollars, other::USDC).await;
    assert_eq!(given(true, dollars, other::USDC).await, level);
}

/// Not so where recipients have code: `txs, recipient` is refused there.
#[tokio::test]
async fn a_payment_may_take_more_than_usual_where_nobody_runs_code() {
    let fixture = beside("destination");
    fixture.with(|world| world.gas_of_more = Some(5 * other::WORK));
    let changes = json!({"destinationCurrency": other::USDC, "recipient": other::USER});
    let answer = fixture.quote(changes).await.unwrap();
    assert_eq!(stored(&fixture, &answer).await.fill_work, 5 * other::WORK);
}

#[tokio::test]
async fn steps_of_a_family_are_shown_as_it_writes_them() {
    let fixture = beside("origin");
    let changes = json!({"user": other::USER, "originCurrency": other::USDC, "recipient": OTHER,
                         "destinationCurrency": NATIVE});
    let answer = fixture.quote(changes).await.unwrap();
    // Nobody takes anything there, so nothing is approved.
    assert_eq!(ids(&answer), ["deposit"]);
    let shown = &answer["steps"][0]["items"][0]["data"];
    assert_eq!(*shown, json!({"signer": other::USER, "units": other::WORK}));
    assert_eq!(
        text(&answer, "/fees/gas/amount"),
        (other::WORK * 6).to_string()
    );
    assert_eq!(text(&answer, "/fees/gas/currency/symbol"), "SOL");
    let promised = order(&answer);
    assert_eq!(promised.inputs[0].payment.currency, other::USDC);
    assert_eq!(promised.inputs[0].refunds[0].recipient, other::USER);
}

/// One of two providers says a rate of 5 and a bid, the other one 15.
#[tokio::test]
async fn gas_is_what_users_pay_where_that_is_what_they_sign() {
    for (pays_as_signed, other_rate, rate) in
        [(true, Some(15), 11), (true, None, 6), (false, Some(15), 6)]
    {
        let fixture = beside("origin");
        fixture.with(|world| {
            world.pays_as_signed = pays_as_signed;
            world.other_rate = other_rate;
        });
        let changes = json!({"user": other::USER, "originCurrency": other::USDC, "recipient": OTHER,
                             "destinationCurrency": NATIVE});
        let answer = fixture.quote(changes).await.unwrap();
        assert_eq!(
            text(&answer, "/fees/gas/amount"),
            (other::WORK * rate).to_string()
        );
    }
}

/// What is signed pays the middle of two rates, and the lower one is charged.
#[tokio::test]
async fn nothing_is_quoted_whose_fill_costs_more_than_twice_what_is_charged() {
    for (pays_as_signed, other_rate, quoted) in
        [(true, 15, true), (true, 20, false), (false, 20, true)]
    {
        let fixture = beside("destination");
        fixture.with(|world| {
            world.pays_as_signed = pays_as_signed;
            world.other_rate = Some(other_rate);
        });
        let changes = json!({"destinationCurrency": other::USDC, "recipient": other::USER});
        match quoted {
            true => assert!(fixture.quote(changes).await.is_ok(), "{other_rate}"),
            false => assert_eq!(refused(&fixture, changes).await.code, Code::RpcHttpError),
        }
    }
}

#[tokio::test]
async fn users_sign_what_is_usual_at_least_only_where_they_pay_for_what_is_taken() {
    for (pays_as_signed, estimated, units) in [
        (true, 12, 30),
        (true, other::WORK / 2, other::WORK),
        (false, 12, other::WORK),
        (true, 4 * other::WORK, 5 * other::WORK),
        (false, 4 * other::WORK, 5 * other::WORK),
    ] {
        let fixture = beside("origin");
        fixture.with(|world| {
            world.pays_as_signed = pays_as_signed;
            world.estimated = Some(estimated);
        });
        let changes = json!({"user": other::USER, "originCurrency": other::USDC, "recipient": OTHER,
                             "destinationCurrency": NATIVE});
        let answer = fixture.quote(changes).await.unwrap();
        let shown = &answer["steps"][0]["items"][0]["data"];
        assert_eq!(shown["units"], units, "{pays_as_signed}");
    }
}

#[tokio::test]
async fn users_own_payments_need_nothing_but_a_transaction() {
    let fixture = beside("origin");
    let own = json!({"user": other::USER, "originCurrency": other::USDC, "recipient": other::DEPOSITORY,
                     "destinationChainId": 31_001, "destinationCurrency": other::USDC});
    let kept_away = refused(&fixture, own.clone()).await;
    assert_eq!(kept_away.code, Code::InvalidRecipient);
    let mut own = own;
    own["recipient"] = Value::from("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");
    let answer = fixture.quote(own.clone()).await.unwrap();
    assert_eq!(ids(&answer), ["send"]);
    // Its digest tells it from any other, though it is no call.
    let request = stored(&fixture, &answer).await;
    assert!(request.own_call.is_some_and(|digest| !digest.is_zero()));
    // A family may say what of a draft its transaction shows.
    let shown = B256::repeat_byte(7);
    let told: fn(&Draft) -> B256 = |_| B256::repeat_byte(7);
    let telling = kept(Family {
        own_call: Some(told),
        ..*other::family()
    });
    fixture.with(|world| world.families.insert("origin", telling));
    let answer = fixture.quote(own).await.unwrap();
    assert_eq!(stored(&fixture, &answer).await.own_call, Some(shown));
}

#[tokio::test]
async fn callers_choose_how_transactions_are_made_where_a_family_lets_them() {
    let fixture = beside("origin");
    let chosen = |more: Value| {
        let mut changes = json!({
            "user": other::USER, "originCurrency": other::USDC, "recipient": OTHER, "destinationCurrency": NATIVE,
        });
        for (name, value) in more.as_object().unwrap() {
            changes[name] = value.clone();
        }
        changes
    };
    for more in [
        json!({"depositFeePayer": other::SOLVER}),
        json!({"depositFeePayer": other::USER}),
        json!({"useSharedAccounts": true, "includeComputeUnitLimit": true}),
        json!({"useSharedAccounts": false}),
    ] {
        let quoted = fixture.quote(chosen(more.clone())).await;
        assert!(quoted.is_ok(), "{more}: {quoted:?}");
    }
    let stranger = chosen(json!({"depositFeePayer": OTHER}));
    assert_eq!(refused(&fixture, stranger).await.code, Code::InvalidAddress);
    // A payment on one chain has no deposit that could be made in another way.
    let own = json!({
        "recipient": "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", "destinationChainId": 31_001,
        "destinationCurrency": other::USDC, "includeComputeUnitLimit": true,
    });
    let refused = refused(&fixture, chosen(own)).await;
    assert_eq!(refused.code, Code::UnsupportedExecutionType);
}

#[tokio::test]
async fn what_belongs_to_one_family_is_refused_for_another() {
    let fixture = beside("destination");
    let with = |more: Value| {
        let mut changes = json!({"destinationCurrency": other::USDC, "recipient": other::USER});
        for (name, value) in more.as_object().unwrap() {
            changes[name] = value.clone();
        }
        changes
    };
    for (more, code) in [
        (json!({"recipient": OTHER}), Code::InvalidAddress),
        (json!({"recipient": null}), Code::InvalidRecipient),
        (
            json!({"txs": [{"to": OTHER, "data": "0x12"}]}),
            Code::ExtraTxsNotSupported,
        ),
        (
            json!({"authorizationList": [super::authorization(|_| ())]}),
            Code::ExtraTxsNotSupported,
        ),
    ] {
        let refused = refused(&fixture, with(more.clone())).await;
        assert_eq!(refused.code, code, "{more}: {refused}");
        assert_eq!(refused.status_code, 400, "{more}");
    }
}

#[tokio::test]
async fn exchange_that_makes_a_transaction_too_long_is_refused_with_its_size() {
    let swapped = || json!({"originCurrency": TOKEN, "amount": "1000000000000000000"});
    let fixture = Fixture::default();
    assert!(fixture.quote(swapped()).await.is_ok());
    fixture.with(|world| world.padding = 1 << 20);
    let refused = refused(&fixture, swapped()).await;
    assert_eq!(
        (refused.code, refused.status_code),
        (Code::SolanaTxTooLarge, 400)
    );
    let words: Vec<u64> = refused
        .message
        .split(|digit: char| !digit.is_ascii_digit())
        .filter_map(|word| word.parse().ok())
        .collect();
    let [bytes, excess, most] = words[..] else {
        panic!("{refused}");
    };
    assert!(bytes > 1 << 20 && bytes == most + excess, "{refused}");
    // Who exchanges nothing is not concerned.
    assert!(fixture.quote(json!({})).await.is_ok());
}

/// An approval and a deposit.
#[tokio::test]
async fn what_the_origin_charges_besides_work_is_shown_to_the_user() {
    let gas = async |fee: Option<u64>| {
        let fixture = Fixture::default();
        fixture.with(|world| world.data_fee = fee);
        let answer = fixture.quote(json!({})).await.unwrap();
        assert_eq!(ids(&answer), ["approve", "deposit"]);
        amount(&answer, "/fees/gas/amount")
    };
    let more = gas(Some(1_000_000)).await - gas(None).await;
    assert_eq!(more, I256::try_from(2_000_000).unwrap());
}
