use alloy::hex;

use super::*;
use crate::{
    ethereum::{FAMILY, suffix},
    trade::{Choices, FeeRate, Payout},
    types::U256,
};

const ORDER: B256 = B256::repeat_byte(0xb6);
const NATIVE: u8 = 0;
const USER: u8 = 1;
const DEPOSITORY: u8 = 2;
const TOKEN: u8 = 3;
const SOLVER: u8 = 4;
const ROUTER: u8 = 5;
const PROXY: u8 = 0x99;
const RECIPIENT: u8 = 6;

fn address(byte: u8) -> Address {
    let text = EvmAddress::repeat_byte(byte).to_string();
    FAMILY.address(&text).unwrap()
}

/// `currency`, `explicit`, `approved`, `reset` of a deposit of 5.
fn deposit(
    currency: u8,
    explicit: bool,
    approved: u64,
    reset: bool,
) -> Result<Vec<Step>, CodecError> {
    Steps.deposit(&DepositTerms {
        user: &address(USER),
        depository: &address(DEPOSITORY),
        currency: &address(currency),
        amount: Amount::from(5),
        order: ORDER,
        explicit,
        approved: Amount::from(approved),
        reset,
        funds: &[],
        before: &[],
        choices: &Choices::default(),
    })
}

fn word(byte: u8) -> String {
    hex::encode(EvmAddress::repeat_byte(byte).into_word())
}

fn number(n: u64) -> String {
    format!("{n:064x}")
}

/// Step, target, calldata and value of each.
fn shown(steps: &[Step]) -> Vec<(StepKind, Address, String, u64)> {
    steps
        .iter()
        .map(|step| {
            let call = step.draft.as_call().unwrap();
            assert_eq!(call.from, address(USER));
            (
                step.kind,
                call.to,
                hex::encode(&call.data),
                u64::try_from(call.value).unwrap(),
            )
        })
        .collect()
}

fn approve(amount: u64) -> (StepKind, Address, String, u64) {
    let data = format!("095ea7b3{}{}", word(DEPOSITORY), number(amount));
    (StepKind::Approve, address(TOKEN), data, 0)
}

#[test]
fn native_deposits_carry_the_value() {
    let data = format!("49290c1c{}{}", word(USER), hex::encode(ORDER));
    let expected = vec![(StepKind::Deposit, address(DEPOSITORY), data, 5)];
    for explicit in [true, false] {
        assert_eq!(
            shown(&deposit(NATIVE, explicit, 0, true).unwrap()),
            expected
        );
    }
}

#[test]
fn explicit_deposits_want_an_allowance_first() {
    let data = format!(
        "e8017952{}{}{}{}",
        word(USER),
        word(TOKEN),
        number(5),
        hex::encode(ORDER)
    );
    let last = (StepKind::Deposit, address(DEPOSITORY), data, 0);
    for (allowance, reset, before) in [
        (0, false, vec![approve(5)]),
        (0, true, vec![approve(5)]),
        (4, false, vec![approve(5)]),
        (4, true, vec![approve(0), approve(5)]),
        (5, true, vec![]),
        (6, false, vec![]),
    ] {
        let expected: Vec<_> = before.into_iter().chain([last.clone()]).collect();
        let found = deposit(TOKEN, true, allowance, reset).unwrap();
        assert_eq!(shown(&found), expected, "{allowance} {reset}");
    }
}

#[test]
fn implicit_deposits_are_transfers_that_the_decoder_reads() {
    let steps = deposit(TOKEN, false, 0, true).unwrap();
    let data = format!(
        "a9059cbb{}{}{}",
        word(DEPOSITORY),
        number(5),
        hex::encode(ORDER)
    );
    assert_eq!(
        shown(&steps),
        [(StepKind::Deposit, address(TOKEN), data, 0)]
    );
    let depository = EvmAddress::repeat_byte(DEPOSITORY);
    let found = suffix::deposit_id(&data_of(&steps[0].draft), depository, U256::from(5));
    assert_eq!(found, ORDER);
}

#[test]
fn sends_name_the_order_behind_their_calldata() {
    let from = |user: u8, currency| {
        Steps.send(&PaymentTerms {
            from: &address(user),
            to: &address(RECIPIENT),
            currency: &address(currency),
            amount: Amount::from(5),
            order: ORDER,
        })
    };
    let send = |currency| from(USER, currency);
    for currency in [NATIVE, TOKEN] {
        assert!(from(RECIPIENT, currency).is_err(), "it would pay nobody");
    }
    let native = (StepKind::Send, address(RECIPIENT), hex::encode(ORDER), 5);
    assert_eq!(sent(send(NATIVE)), [native]);
    let data = format!(
        "a9059cbb{}{}{}",
        word(RECIPIENT),
        number(5),
        hex::encode(ORDER)
    );
    assert_eq!(
        sent(send(TOKEN)),
        [(StepKind::Send, address(TOKEN), data, 0)]
    );
}

/// As [`shown`] shows a step.
fn sent(draft: Result<Draft, CodecError>) -> Vec<(StepKind, Address, String, u64)> {
    shown(&[Step {
        kind: StepKind::Send,
        draft: draft.unwrap(),
    }])
}

fn data_of(draft: &Draft) -> Bytes {
    draft.as_call().unwrap().data
}

fn payout(to: u8, currency: u8, amount: u64) -> Payout {
    Payout {
        to: address(to),
        currency: address(currency),
        amount: Amount::from(amount),
    }
}

fn ordered_call(data: &'static [u8], value: u64) -> OrderCall {
    OrderCall {
        to: address(RECIPIENT),
        data: Bytes::from_static(data),
        value: U256::from(value),
    }
}

fn fill(payments: &[Payout], calls: &[OrderCall]) -> Result<Call, CodecError> {
    let fill = Steps.fill(&FillTerms {
        solver: &address(SOLVER),
        router: Some(&address(ROUTER)),
        proxy: Some(&address(PROXY)),
        payments,
        calls,
        authorizations: &[],
        order: ORDER,
    })?;
    let call = fill.draft.as_call().unwrap();
    let proxied = fill.spender.is_some();
    assert_eq!(proxied, call.to == address(PROXY));
    assert_eq!(fill.routed, proxied || call.to == address(ROUTER));
    Ok(call)
}

#[test]
fn one_payment_goes_straight_to_its_recipient() {
    let native = fill(&[payout(RECIPIENT, NATIVE, 7)], &[]).unwrap();
    assert_eq!(native.to, address(RECIPIENT));
    assert_eq!(native.data.as_ref(), ORDER.as_slice());
    assert_eq!(native.value, U256::from(7));
    let token = fill(&[payout(RECIPIENT, TOKEN, 7)], &[]).unwrap();
    assert_eq!(token.to, address(TOKEN));
    assert_eq!(token.from, address(SOLVER));
    assert!(token.value.is_zero());
    assert_eq!(
        hex::encode(&token.data),
        format!(
            "a9059cbb{}{}{}",
            word(RECIPIENT),
            number(7),
            hex::encode(ORDER)
        )
    );
}

#[test]
fn several_payments_and_calls_go_through_the_router() {
    let payments = [payout(RECIPIENT, NATIVE, 7), payout(ROUTER, TOKEN, 9)];
    let call = fill(&payments, &[ordered_call(b"call", 2)]).unwrap();
    assert_eq!((call.from, call.to), (address(SOLVER), address(PROXY)));
    assert_eq!(call.value, U256::from(9));
    let (arguments, order) = call.data.split_at(call.data.len() - 32);
    assert_eq!(order, ORDER.as_slice());
    let made = ApprovalProxy::fillCall::abi_decode_validate(arguments).unwrap();
    let [paid] = made.payments.as_slice() else {
        panic!("one token is paid");
    };
    let to = EvmAddress::repeat_byte(ROUTER);
    assert_eq!(
        (paid.token, paid.to, paid.amount),
        (EvmAddress::repeat_byte(TOKEN), to, U256::from(9))
    );
    let shown: Vec<_> = made
        .calls
        .iter()
        .map(|call| (call.to, hex::encode(&call.data), call.value))
        .collect();
    assert_eq!(
        shown,
        [
            (
                EvmAddress::repeat_byte(RECIPIENT),
                String::new(),
                U256::from(7)
            ),
            (
                EvmAddress::repeat_byte(RECIPIENT),
                hex::encode(b"call"),
                U256::from(2)
            ),
        ]
    );
}

#[test]
fn what_the_router_is_paid_pays_its_calls() {
    for (kept, spent, value) in [(10, 4, 10), (10, 10, 10), (3, 10, 10), (0, 0, 0)] {
        let paid = [payout(ROUTER, NATIVE, kept)];
        let call = fill(&paid, &[ordered_call(b"call", spent)]).unwrap();
        assert_eq!(call.to, address(ROUTER));
        assert_eq!(call.value, U256::from(value), "{kept} {spent}");
    }
}

#[test]
fn terms_that_would_lose_money_are_refused() {
    let one = payout(RECIPIENT, NATIVE, 7);
    assert!(fill(&[], &[]).is_err());
    assert!(fill(&[payout(SOLVER, NATIVE, 7)], &[]).is_err());
    // The router would report it as a payment, and no oracle would find the call.
    assert!(fill(std::slice::from_ref(&one), &[ordered_call(b"", 1)]).is_err());
    let most = Payout {
        amount: U256::MAX,
        ..one.clone()
    };
    assert!(fill(&[most, one.clone()], &[]).is_err());
    let without = |router, proxy, payments: &[Payout]| {
        let terms = FillTerms {
            solver: &address(SOLVER),
            router,
            proxy,
            payments,
            calls: &[],
            authorizations: &[],
            order: ORDER,
        };
        Steps.fill(&terms).is_err()
    };
    let (router, proxy) = (address(ROUTER), address(PROXY));
    assert!(without(None, Some(&proxy), &[one.clone(), one.clone()]));
    let token = payout(RECIPIENT, TOKEN, 7);
    assert!(without(Some(&router), None, &[one, token]));
}

#[test]
fn ids_that_the_decoder_takes_for_padding_are_refused() {
    let mut padded = [0; 32];
    padded[16..].fill(0x11);
    for order in [B256::ZERO, B256::new(padded)] {
        let terms = PaymentTerms {
            from: &address(USER),
            to: &address(RECIPIENT),
            currency: &address(TOKEN),
            amount: Amount::from(5),
            order,
        };
        assert!(Steps.send(&terms).is_err(), "{order}");
    }
}

#[test]
fn native_currencies_have_no_allowances() {
    let spend = |currency| {
        let terms = Spend {
            spender: &address(DEPOSITORY),
            currency: &address(currency),
            amount: Amount::from(5),
        };
        Steps.approve(&address(USER), &terms, true)
    };
    assert!(spend(NATIVE).is_err());
    assert_eq!(shown(&spend(TOKEN).unwrap()), [approve(0), approve(5)]);
}

#[test]
fn addresses_of_another_length_are_refused() {
    let odd = Address::from_parts("0x1234", vec![0x12, 0x34]);
    let terms = PaymentTerms {
        from: &address(USER),
        to: &odd,
        currency: &address(NATIVE),
        amount: Amount::from(5),
        order: ORDER,
    };
    assert!(Steps.send(&terms).is_err());
}

#[test]
fn a_users_exchange_names_its_order_behind_its_data() {
    let exchange = Draft::call(call(
        &address(USER),
        &address(ROUTER),
        vec![1, 2],
        U256::ONE,
    ));
    let named = Steps.name(exchange.clone(), ORDER).unwrap();
    let data = data_of(&named);
    assert_eq!((&data[..2], &data[2..]), (&[1, 2][..], ORDER.as_slice()));
    assert_eq!((&named.from, named.value), (&exchange.from, exchange.value));
    assert!(Steps.name(exchange, B256::ZERO).is_err());
}

#[test]
fn what_is_not_of_this_family_is_neither_named_nor_shown() {
    let foreign = Draft {
        from: address(USER),
        value: Amount::ZERO,
        body: Body::Own(Bytes::from_static(b"x")),
    };
    let shown = StepFee {
        number: 1,
        work: 21_000,
        limit: Some(26_250),
        rate: FeeRate::new(10, 3),
    };
    assert!(Steps.name(foreign.clone(), ORDER).is_err());
    assert!(Steps.render(&foreign, shown).is_err());
    let payment = Draft::call(call(
        &address(USER),
        &address(TOKEN),
        vec![9],
        U256::from(7),
    ));
    let unknown = StepFee {
        limit: None,
        ..shown
    };
    let rendered = Steps.render(&payment, unknown).unwrap();
    assert_eq!(rendered["gas"], "63000");
    let rendered = Steps.render(&payment, shown).unwrap();
    assert_eq!(
        rendered,
        json!({
            "from": address(USER).text(), "to": address(TOKEN).text(), "data": "0x09", "value": "7",
            "chainId": 1, "gas": "26250", "maxFeePerGas": "23", "maxPriorityFeePerGas": "3",
        })
    );
    // One provider says a base of 10 and no bid, where another one says a base of 20: nobody replaces it for the user.
    let lied = StepFee {
        rate: FeeRate {
            above: 10,
            ..FeeRate::new(10, 0)
        },
        ..shown
    };
    let rendered = Steps.render(&payment, lied).unwrap();
    assert_eq!(rendered["maxFeePerGas"], "40");
    assert_eq!(rendered["maxPriorityFeePerGas"], "1");
}
