use proptest::prelude::*;

use super::*;

fn worth(micro: u64, decimals: u8) -> Worth {
    let price = U256::from(micro) * U256::from(1_000_000_000_000_u64);
    Worth { price, decimals }
}

fn fee(parts: u64) -> AppFee {
    AppFee {
        recipient: String::new(),
        bps: String::new(),
        parts,
    }
}

fn terms(app: &[AppFee]) -> Terms<'_> {
    Terms {
        paid: worth(999_832, 6),
        given: worth(1_000_323, 6),
        level: false,
        gas: DOLLAR / U256::from(400),
        bps: 1,
        app,
    }
}

#[test]
fn one_basis_point_of_a_hundred() {
    let sum = terms(&[]).forward(U256::from(99_999_999)).unwrap();
    assert_eq!(sum.flat, U256::from(20_003));
    assert_eq!(sum.relay, U256::from(9_999));
}

#[test]
fn five_basis_points_of_ten_thousand_for_the_app() {
    let app = [fee(5_000_000)];
    let sum = terms(&app).forward(U256::from(10_000_000_000_u64)).unwrap();
    assert_eq!(sum.app, U256::from(5_000_000));
}

#[test]
fn same_asset_exact_output_adds_the_fees() {
    let mut terms = terms(&[]);
    (terms.level, terms.bps, terms.given) = (true, 0, terms.paid);
    let sum = terms.backward(U256::from(50_000_000)).unwrap();
    assert_eq!(sum.paid, sum.given + sum.gas + sum.flat);
    assert_eq!(sum.relay, U256::ZERO);
}

#[test]
fn nothing_left_is_too_low_and_overflow_too_much() {
    assert_eq!(terms(&[]).forward(U256::from(22_000)), Err(Fault::TooLow));
    assert_eq!(terms(&[]).backward(U256::MAX), Err(Fault::TooMuch));
    let all = [fee(AppFee::WHOLE)];
    assert_eq!(
        terms(&all).forward(U256::from(1_000_000)),
        Err(Fault::TooLow)
    );
    assert_eq!(terms(&all).backward(U256::from(1)), Err(Fault::TooLow));
}

#[test]
fn slippage_floors() {
    assert_eq!(minimum(U256::from(9_999), 200), U256::from(9_799));
    assert_eq!(minimum(U256::MAX, 0), U256::MAX);
    assert_eq!(minimum(U256::from(5), 10_000), U256::from(1));
    assert_eq!(minimum(U256::ZERO, 200), U256::ZERO);
    assert_eq!(automatic(DOLLAR * U256::from(100)), 200);
    assert!(automatic(DOLLAR / U256::from(3)) > automatic(DOLLAR));
}

proptest! {
    #[test]
    fn nothing_is_lost_between_paid_and_given(
        paid in 1_u128.., price in 1_u64..10_000_000_000, other in 1_u64..10_000_000_000,
        decimals in 0_u8..24, others in 0_u8..24, gas in 0_u64.., bps in 0_u64..20,
        parts in 0_u64..1_000_000_000, level: bool,
    ) {
        let app = [fee(parts), fee(parts / 3)];
        let terms = Terms {
            paid: worth(price, decimals), given: worth(other, others), level,
            gas: U256::from(gas), bps, app: &app,
        };
        let Ok(sum) = terms.forward(U256::from(paid)) else { return Ok(()) };
        let net = sum.paid - sum.gas - sum.flat - sum.relay - sum.app;
        let given = terms.exchange(terms.paid, terms.given, net, Round::Down);
        prop_assert_eq!(given, Some(sum.given));
        // Asking for what came out never costs more than was paid, but for one unit per rounding.
        let Ok(back) = terms.backward(sum.given) else { return Ok(()) };
        prop_assert_eq!(back.given, sum.given);
        let fees = back.gas + back.flat + back.relay + back.app;
        let net = terms.exchange(terms.given, terms.paid, sum.given, Round::Up);
        prop_assert_eq!(back.paid, fees + net.unwrap());
        prop_assert!(back.paid <= sum.paid + U256::from(5));
        let again = terms.forward(back.paid).unwrap();
        prop_assert!(again.given >= sum.given, "{:?} {:?}", again, sum);
    }
}
