use vm::U256;

use super::*;
use crate::{
    market::{Class, Currency},
    price::Price,
};

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
        one_block_up_to: None,
        price_holds: None,
        prices: Vec::new(),
    }
}

fn price(usd: U256) -> Price {
    Price::exact(usd, 0)
}

#[test]
fn gas_is_converted_and_rounded_up() {
    let (ether, usdc) = (currency(18), currency(6));
    let dollar = U256::from(10).pow(U256::from(18));
    let eth = price(dollar * U256::from(2_000));
    let in_usdc = |amount: u64| {
        let amount = U256::from(amount);
        converted(amount, (&ether, eth), (&usdc, price(dollar)))
    };
    // 0.001 ETH at 2 000 dollars.
    assert_eq!(in_usdc(1_000_000_000_000_000), Some(U256::from(2_000_000)));
    assert_eq!(in_usdc(1), Some(U256::ONE));
    assert_eq!(in_usdc(0), Some(U256::ZERO));
    let nothing = price(U256::ZERO);
    assert_eq!(converted(dollar, (&ether, eth), (&usdc, nothing)), None);
    assert_eq!(converted(U256::MAX, (&ether, eth), (&usdc, eth)), None);
    assert_eq!(converted(dollar, (&currency(78), eth), (&usdc, eth)), None);
}

fn given(amount: u64, minimum: u64, cost: u64, charged: u64) -> Option<u64> {
    let deposit = crate::request::fixtures::deposit(1, crate::request::fact::Standing::Final);
    let gift = Gift {
        deposit: &deposit,
        purpose: Purpose::Refund,
        reason: None,
        amount: U256::from(amount),
        minimum: U256::from(minimum),
    };
    left(&gift, U256::from(cost), U256::from(charged)).map(|left| left.to())
}

#[test]
fn nothing_is_given_back_where_nothing_is_left() {
    assert_eq!(given(5, 1, 2, 0), Some(3));
    assert_eq!(given(5, 0, 5, 0), None);
    assert_eq!(given(5, 0, 6, 0), None);
}

#[test]
fn what_oracles_take_for_no_refund_is_not_paid() {
    assert_eq!(given(5, 3, 2, 0), Some(3));
    assert_eq!(given(5, 3, 3, 0), None);
}

#[test]
fn what_failed_is_paid_as_far_as_the_least_refund_lets_it() {
    for (charged, back) in [(0, 100), (30, 70), (99, 1), (100, 1), (u64::MAX, 1)] {
        assert_eq!(given(100, 1, 0, charged), Some(back), "{charged}");
    }
    assert_eq!(given(100, 40, 10, 80), Some(40));
    assert_eq!(given(100, 0, 10, 100), Some(1));
}
