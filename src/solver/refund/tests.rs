use super::*;
use crate::market::Class;

fn currency(decimals: u8) -> Currency {
    Currency {
        address: "0x".into(),
        symbol: "X".into(),
        name: "X".into(),
        decimals,
        logo_uri: None,
        group: "x".into(),
        class: Class::Other,
        solver: true,
        approval_reset: false,
        hourly_cap: None,
        prices: Vec::new(),
    }
}

fn price(usd: U256) -> Price {
    Price::exact(usd, 0)
}

#[test]
fn gas_is_converted_and_rounded_up() {
    let (wei, usdc) = (currency(18), currency(6));
    let dollar = U256::from(10).pow(U256::from(18));
    let eth = price(dollar * U256::from(2_000));
    let in_usdc = |amount: u64| {
        let amount = U256::from(amount);
        converted(amount, (&wei, eth), (&usdc, price(dollar)))
    };
    // 0.001 ETH at 2 000 dollars.
    assert_eq!(in_usdc(1_000_000_000_000_000), Some(U256::from(2_000_000)));
    assert_eq!(in_usdc(1), Some(U256::ONE));
    assert_eq!(in_usdc(0), Some(U256::ZERO));
    let nothing = price(U256::ZERO);
    assert_eq!(converted(dollar, (&wei, eth), (&usdc, nothing)), None);
    assert_eq!(converted(U256::MAX, (&wei, eth), (&usdc, eth)), None);
    assert_eq!(converted(dollar, (&currency(78), eth), (&usdc, eth)), None);
}

#[test]
fn nothing_is_given_back_where_nothing_is_left() {
    let n = |number: u64| U256::from(number);
    assert_eq!(left(n(5), n(2), n(1)), Some(n(3)));
    assert_eq!(left(n(5), n(5), n(0)), None);
    assert_eq!(left(n(5), n(6), n(0)), None);
}

#[test]
fn what_oracles_take_for_no_refund_is_not_paid() {
    let n = |number: u64| U256::from(number);
    assert_eq!(left(n(5), n(2), n(3)), Some(n(3)));
    assert_eq!(left(n(5), n(3), n(3)), None);
}
