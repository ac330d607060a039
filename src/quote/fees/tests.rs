use proptest::prelude::*;

use super::*;
use crate::{market::PriceHolds, price::Price};

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
        level: Level::Apart,
        gas: DOLLAR / U256::from(400),
        flat: flat(),
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
    (terms.level, terms.bps, terms.given) = (Level::Even, 0, terms.paid);
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

fn currency(group: &str, class: Class) -> Currency {
    serde_json::from_value(serde_json::json!({
        "address": "0x", "symbol": "X", "name": "X", "decimals": 6, "group": group,
        "class": match class { Class::Stable => "stable", Class::Major => "major", Class::Other => "other" },
    }))
    .unwrap()
}

fn price(micro: u64) -> Price {
    Price::exact(worth(micro, 6).price, 1)
}

fn valued(currency: &Currency, micro: u64) -> Valued<'_> {
    Valued {
        currency,
        rated: Rated {
            price: price(micro),
            decimals: 6,
        },
    }
}

#[test]
fn members_of_a_group_are_level_while_they_are_worth_the_same() {
    let (stable, major) = (currency("a", Class::Stable), currency("a", Class::Major));
    for (one, other, class, wanted) in [
        (1_000_000, 1_000_000, &stable, Level::Even),
        (1_000_000, 997_600, &stable, Level::Even),
        (997_600, 1_000_000, &stable, Level::Even),
        (1_000_000, 997_000, &stable, Level::Worse),
        (997_000, 1_000_000, &stable, Level::Worse),
        (1_000_000, 995_100, &major, Level::Even),
        (1_000_000, 995_000, &major, Level::Worse),
    ] {
        let level = Level::of(valued(class, one), valued(class, other));
        assert_eq!(level, wanted, "{one} {other}");
    }
    let other = currency("b", Class::Stable);
    let level = Level::of(valued(&stable, 1), valued(&other, 1));
    assert_eq!(level, Level::Apart);
    // Sources of one currency that disagree are no depeg of the other, which has the same sources.
    let wide = Price {
        low: price(990_000).usd,
        ..price(1_000_000)
    };
    assert!(wide.agrees(&wide, 25) && !wide.agrees(&price(1_000_000), 25));
}

#[test]
fn who_may_wait_with_his_deposit_pays_for_what_prices_move_meanwhile() {
    let (stable, other) = (currency("usd", Class::Stable), currency("x", Class::Other));
    let coin = currency("btc", Class::Major);
    for (waiting, spread, output, bps) in [
        (None, 0, &stable, 6),
        (None, 30, &stable, 6 + 30),
        (Some(0), 0, &stable, 6),
        (Some(900), 0, &stable, 6 + 25),
        (Some(3_600), 0, &stable, 6 + 50),
        (Some(3_600), 30, &stable, 6 + 50),
        (Some(3_600), 80, &stable, 6 + 80),
        (Some(3_600), 30, &other, 15 + 200),
        // Whatever prices do, a unit is a unit.
        (Some(3_600), 30, &coin, 30),
    ] {
        let mut input = currency("btc", Class::Major);
        input.price_holds = Some(PriceHolds {
            seconds: 60,
            waiting,
            spread,
        });
        let (paid, given) = (valued(&input, 1_000_000), valued(output, 1_000_000));
        let terms = Terms::of(paid, given, U256::ZERO, U256::ZERO);
        assert_eq!(terms.bps, bps, "{waiting:?} {spread} {}", output.group);
    }
}

#[test]
fn member_that_lost_its_peg_buys_what_it_is_worth() {
    let mut terms = Terms {
        paid: worth(980_000, 6),
        given: worth(1_000_000, 6),
        level: Level::Worse,
        gas: U256::ZERO,
        flat: U256::ZERO,
        bps: 0,
        app: &[],
    };
    let given = |terms: &Terms<'_>| terms.forward(U256::from(1_000_000)).unwrap().given;
    assert_eq!(given(&terms), U256::from(980_000));
    assert_eq!(
        terms.backward(U256::from(980_000)).unwrap().paid,
        U256::from(1_000_000)
    );
    // The other way round nobody gets more than a unit.
    (terms.paid, terms.given) = (terms.given, terms.paid);
    assert_eq!(given(&terms), U256::from(1_000_000));
    assert_eq!(
        terms.backward(U256::from(980_000)).unwrap().paid,
        U256::from(980_000)
    );
}

proptest! {
    #[test]
    fn nothing_is_lost_between_paid_and_given(
        paid in 1_u128.., price in 1_u64..10_000_000_000, other in 1_u64..10_000_000_000,
        decimals in 0_u8..24, others in 0_u8..24, gas in 0_u64.., bps in 0_u64..20,
        parts in 0_u64..1_000_000_000, level in 0_usize..3,
    ) {
        let app = [fee(parts), fee(parts / 3)];
        let terms = Terms {
            paid: worth(price, decimals), given: worth(other, others),
            level: [Level::Apart, Level::Even, Level::Worse][level],
            gas: U256::from(gas), flat: flat(), bps, app: &app,
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
