use super::*;
use crate::ethereum::FAMILY;

#[test]
fn an_order_asks_for_its_solvers_word_by_its_salt() {
    let salt = vouched_salt([7; 16]);
    assert_eq!(salt[16..], [7; 16]);
    assert!(is_vouched(U256::from_be_bytes(salt.0)));
    assert!(!is_vouched(
        U256::from_be_bytes(salt.0) - (U256::ONE << 128)
    ));
    assert!(!is_vouched(U256::from(1)));
}

#[test]
fn a_payment_promises_what_is_expected_and_never_less_than_its_minimum() {
    let promised = |minimum: &str, expected: &str| {
        let payment = OutputPayment {
            recipient: String::new(),
            currency: String::new(),
            minimum_amount: minimum.into(),
            expected_amount: expected.into(),
        };
        payment.promised().ok()
    };
    assert_eq!(promised("5", "7"), Some(U256::from(7)));
    assert_eq!(promised("7", "5"), Some(U256::from(7)));
    assert_eq!(promised("7", "many"), None);
    assert_eq!(promised("many", "7"), None);
}

fn order() -> Order {
    let address = |byte: &str| format!("0x{}", byte.repeat(20));
    Order {
        version: VERSION.into(),
        solver_chain_id: "base".into(),
        solver: address("01"),
        salt: "7".into(),
        inputs: vec![Input {
            payment: InputPayment {
                chain_id: "base".into(),
                currency: address("02"),
                amount: "8".into(),
                weight: "1".into(),
            },
            refunds: vec![Refund {
                chain_id: "base".into(),
                recipient: address("03"),
                currency: address("02"),
                minimum_amount: "8".into(),
                deadline: 9,
                extra_data: "0x".into(),
            }],
        }],
        output: Output {
            chain_id: "zora".into(),
            payments: vec![OutputPayment {
                recipient: address("04"),
                currency: address("05"),
                minimum_amount: "6".into(),
                expected_amount: "7".into(),
            }],
            calls: Vec::new(),
            deadline: 9,
            extra_data: "0x".into(),
        },
        fees: vec![Fee {
            recipient_chain_id: "base".into(),
            recipient: address("06"),
            currency_chain_id: "base".into(),
            currency: address("02"),
            amount: "1".into(),
        }],
    }
}

/// Of several errors the first is told.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn an_order_is_checked_and_typed_in_one_look() {
    type Change = fn(&mut Order);
    let changes: &[(Change, Option<&str>)] = &[
        (|_| {}, None),
        (
            |order| order.inputs[0].refunds[0].recipient = FAMILY.codec.native().into(),
            None,
        ),
        (
            |order| order.inputs[0].payment.currency = "0x12".into(),
            Some("/inputs/payment/currency"),
        ),
        (
            |order| order.inputs[0].refunds[0].recipient = "0x12".into(),
            Some("/inputs/refunds/recipient"),
        ),
        (
            |order| order.inputs[0].refunds[0].currency = "0x12".into(),
            Some("/inputs/refunds/currency"),
        ),
        (
            |order| order.output.payments[0].recipient = "0x12".into(),
            Some("/output/payments/recipient"),
        ),
        (
            |order| order.output.payments[0].currency = "0x12".into(),
            Some("/output/payments/currency"),
        ),
        (
            |order| order.fees[0].recipient = "0x12".into(),
            Some("/fees/recipient"),
        ),
        (
            |order| order.fees[0].currency = "0x12".into(),
            Some("/fees/currency"),
        ),
        (|order| order.salt = "many".into(), Some("/salt")),
        (
            |order| {
                order.salt = "many".into();
                order.fees[0].currency = "0x12".into();
            },
            Some("/fees/currency"),
        ),
        (
            |order| {
                order.salt = "many".into();
                order.output.chain_id = "mars".into();
            },
            Some("unknown chain"),
        ),
    ];
    let families = |chain: &str| (chain != "mars").then_some(&FAMILY);
    for (change, wrong) in changes {
        let mut order = order();
        change(&mut order);
        let one = order.checked(families).map(|typed| typed.id());
        let two = order.check(families).and_then(|()| order.id(families));
        assert_eq!(one, two);
        match (one, *wrong) {
            (Ok(_), None) => {}
            (Err(error), Some(start)) => {
                assert!(error.to_string().starts_with(start), "{error} {start}");
            }
            (one, wrong) => panic!("{one:?} {wrong:?}"),
        }
    }
}
