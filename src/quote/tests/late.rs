//! Deposits that come after the time that their quote held for.

use alloy::primitives::U256;
use serde_json::{Value, json};

use super::{families::beside, order, stored};
use crate::{
    quote::{
        code::Code,
        fixtures::{Fixture, NATIVE, NOW, OTHER, TOKEN, USDC, market_file, other},
        late::Offer,
        reprice::Burden,
    },
    request::Request,
};

const LATER: u64 = NOW / 1_000 + 600;
const PLAIN: Burden = Burden {
    besides: U256::ZERO,
    together: 1,
};

/// A quote of now, and what it is worth after `change`.
async fn later(changes: Value, change: fn(&mut super::fixtures::World)) -> (Request, Offer) {
    let fixture = Fixture::default();
    let answer = fixture.quote(changes).await.unwrap();
    let request = stored(&fixture, &answer).await;
    fixture.with(change);
    let offer = fixture
        .repricer()
        .offer(&request, PLAIN, LATER)
        .await
        .unwrap();
    (request, offer)
}

fn eth() -> Value {
    json!({"originCurrency": NATIVE, "amount": "1000000000000000000"})
}

/// Ether lost so many dollars of its 2,500.
fn fallen<const DOLLARS: u64>(symbol: &str) -> Result<u64, bool> {
    Ok(match symbol {
        "USDC" => 100,
        "TOKEN" => 200,
        _ => 250_000 - DOLLARS * 100,
    })
}

#[tokio::test]
async fn price_holds_for_a_minute_and_ttl_shortens_it() {
    for (ttl, seconds) in [(None, 60), (Some(10), 10), (Some(600), 60)] {
        let fixture = Fixture::default();
        let mut changes = json!({});
        if let Some(ttl) = ttl {
            changes["ttl"] = json!(ttl);
        }
        let answer = fixture.quote(changes).await.unwrap();
        let until = NOW / 1_000 + seconds;
        assert_eq!(answer["details"]["validUntil"], until);
        assert_eq!(stored(&fixture, &answer).await.valid_until, until);
        // The order can be filled, and given back, for days.
        assert_eq!(
            u64::from(order(&answer).output.deadline),
            NOW / 1_000 + 604_800
        );
    }
}

#[tokio::test]
async fn a_currency_s_price_holds_as_its_market_says_and_is_paid_for() {
    let market = || {
        let mut file = market_file();
        file[0]["currencies"][1]["priceHolds"] =
            json!({"seconds": 300, "waiting": 3_600, "spread": 30});
        file
    };
    let now = NOW / 1_000;
    let (usual, longer) = (Fixture::default(), Fixture::default());
    longer.with(|world| world.market = market);
    let fee = |answer: &Value| {
        let amount = answer["fees"]["relayerService"]["amount"].as_str().unwrap();
        amount.parse::<u64>().unwrap()
    };
    let before = usual.quote(json!({})).await.unwrap();
    let answer = longer.quote(json!({})).await.unwrap();
    // 0.3 % of 100 USDC.
    assert_eq!(fee(&answer) - fee(&before), 300_000);
    assert_eq!(answer["details"]["validUntil"], now + 300);
    let request = stored(&longer, &answer).await;
    let times = (request.valid_until, request.mined_until);
    assert_eq!(times, (now + 300, Some(now + 3_900)));
    let request = stored(&usual, &before).await;
    assert_eq!(request.mined_until, None);
    // Of another currency nothing changes.
    let eth = longer.quote(eth()).await.unwrap();
    assert_eq!(eth["details"]["validUntil"], now + 60);
}

#[tokio::test]
async fn market_that_stands_still_gives_what_was_promised() {
    for changes in [
        json!({}),
        eth(),
        json!({"destinationCurrency": TOKEN}),
        json!({"txs": [{"to": OTHER, "data": "0x12"}]}),
        json!({"tradeType": "EXACT_OUTPUT", "appFees": [{"recipient": OTHER, "fee": "12.5"}]}),
    ] {
        let (_, offer) = later(changes.clone(), |_| ()).await;
        assert_eq!(offer, Offer::Promised, "{changes}");
    }
}

#[tokio::test]
async fn late_deposit_is_worth_what_the_market_says_now() {
    // A percent less, within the slippage of 2 %: filled with what it is worth.
    let (request, offer) = later(eth(), |world| world.prices = fallen::<25>).await;
    let Offer::Less(amount) = offer else {
        panic!("{offer:?}");
    };
    assert!(amount < request.destination.amount && amount >= request.destination.minimum);
    let promised = request.destination.amount;
    assert_eq!(amount * U256::from(1_000) / promised, U256::from(989));
    // Five percent less: less than the minimum, so given back.
    let (_, offer) = later(eth(), |world| world.prices = fallen::<125>).await;
    assert_eq!(offer, Offer::Nothing);
}

#[tokio::test]
async fn market_that_rose_gives_no_more_than_was_promised() {
    let (_, offer) = later(eth(), |world| {
        world.prices = |symbol| Ok(if symbol == "USDC" { 100 } else { 300_000 });
    })
    .await;
    assert_eq!(offer, Offer::Promised);
}

#[tokio::test]
async fn amounts_that_calls_were_written_for_are_given_whole_or_not_at_all() {
    let exact = json!({"originCurrency": NATIVE, "amount": "100000000",
                       "tradeType": "EXACT_OUTPUT", "slippageTolerance": "500"});
    let mut calls = eth();
    calls["txs"] = json!([{"to": OTHER, "data": "0x12"}]);
    let mut swapped = eth();
    swapped["destinationCurrency"] = json!(TOKEN);
    for changes in [exact, calls, swapped] {
        let (_, offer) = later(changes.clone(), |world| world.prices = fallen::<25>).await;
        assert_eq!(offer, Offer::Nothing, "{changes}");
    }
}

#[tokio::test]
async fn dearer_gas_and_settlement_are_part_of_a_late_price() {
    // $2 more of $100, and the minimum is 2 % below.
    let dear = |world: &mut super::fixtures::World| world.fee = 18_000_000_000;
    let (_, offer) = later(json!({}), dear).await;
    assert!(matches!(offer, Offer::Less(_)), "{offer:?}");
    let dearer = |world: &mut super::fixtures::World| world.fee = 30_000_000_000;
    let (_, offer) = later(json!({}), dearer).await;
    assert_eq!(offer, Offer::Nothing);
    let settled = |world: &mut super::fixtures::World| world.settlement = crate::quote::usd::DOLLAR;
    let (request, offer) = later(json!({}), settled).await;
    let wanted = request.destination.amount - U256::from(1_000_000);
    assert_eq!(offer, Offer::Less(wanted));
}

#[tokio::test]
async fn tolerance_for_late_payments_widens_the_gas_part_alone() {
    let strict = json!({"slippageTolerance": "0"});
    let tolerant = json!({"slippageTolerance": "0", "latePaymentSlippageTolerance": "200"});
    let dear = |world: &mut super::fixtures::World| world.fee = 18_000_000_000;
    let (_, offer) = later(strict, dear).await;
    assert_eq!(offer, Offer::Nothing);
    let (request, offer) = later(tolerant.clone(), dear).await;
    let Offer::Less(amount) = offer else {
        panic!("{offer:?}");
    };
    // The oracle attests it: the order's own minimum says so.
    let least: U256 = request.order.output.payments[0]
        .minimum_amount
        .parse()
        .unwrap();
    assert!(least <= amount && amount < request.destination.minimum);
    assert_eq!(
        least,
        request.destination.amount * U256::from(98) / U256::from(100)
    );
    // Beyond the tolerance, and where it is the price that moved, nobody gave leave.
    let (_, offer) = later(tolerant.clone(), |world| world.fee = 30_000_000_000).await;
    assert_eq!(offer, Offer::Nothing);
    let mut sold = tolerant;
    sold["originCurrency"] = json!(NATIVE);
    sold["amount"] = json!("1000000000000000000");
    let (_, offer) = later(sold, |world| world.prices = fallen::<25>).await;
    assert_eq!(offer, Offer::Nothing);
}

#[tokio::test]
async fn nobody_prices_what_the_market_does_not_know_now() {
    let fixture = Fixture::default();
    let answer = fixture.quote(eth()).await.unwrap();
    let request = stored(&fixture, &answer).await;
    fixture.with(|world| world.prices = |_| Err(false));
    let refused = fixture
        .repricer()
        .offer(&request, PLAIN, LATER)
        .await
        .unwrap_err();
    assert_eq!(refused.code, Code::PriceFetchFailed);
    fixture.with(|world| world.down = true);
    assert!(
        fixture
            .repricer()
            .offer(&request, PLAIN, LATER)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn group_member_that_lost_its_peg_buys_what_it_is_worth() {
    let fixture = Fixture::default();
    // The origin's dollar is a bridge's.
    fixture.with(|world| {
        world.market = || {
            let mut file = super::fixtures::market_file();
            file[0]["currencies"][1]["symbol"] = json!("USDBC");
            file[0]["currencies"][1]["solver"] = json!(true);
            file
        };
    });
    let out = async |prices| {
        fixture.with(|world| world.prices = prices);
        let answer = fixture.quote(json!({})).await.unwrap();
        super::amount(&answer, "/details/currencyOut/amount").as_u64()
    };
    let even = |symbol: &str| {
        Ok(if symbol.starts_with("USD") {
            100
        } else {
            250_000
        })
    };
    let lost = |symbol: &str| {
        Ok(match symbol {
            "USDBC" => 97,
            "USDC" => 100,
            _ => 250_000,
        })
    };
    let gained = |symbol: &str| {
        Ok(match symbol {
            "USDBC" => 103,
            "USDC" => 100,
            _ => 250_000,
        })
    };
    assert_eq!(out(even).await, 99_870_000);
    assert_eq!(out(lost).await, 96_870_000);
    // Nobody gets more than a unit for a unit.
    assert!((99_860_000..=99_880_000).contains(&out(gained).await));
}

#[tokio::test]
async fn dearer_bytes_are_part_of_a_late_price() {
    let fixture = Fixture::default();
    fixture.with(|world| world.data_fee = Some(1_000_000_000_000_000));
    let answer = fixture.quote(eth()).await.unwrap();
    let request = stored(&fixture, &answer).await;
    let offer = async |data: u64| {
        let repricer = fixture.repricer();
        let burden = Burden {
            besides: U256::from(data),
            ..PLAIN
        };
        repricer.offer(&request, burden, LATER).await
    };
    let charged = 1_000_000_000_000_000;
    assert_eq!(request.fill_besides, U256::from(charged));
    assert_eq!(offer(charged).await, Ok(Offer::Promised));
    // A thousandth of an ether more, at $2,500.
    let Ok(Offer::Less(amount)) = offer(2 * charged).await else {
        panic!("it is promised all the same");
    };
    let lost = request.destination.amount - amount;
    assert!(
        lost.abs_diff(U256::from(2_500_000)) <= U256::from(1),
        "{lost}"
    );
    assert_eq!(offer(100 * charged).await, Ok(Offer::Nothing));
}

/// What a symbol costs, in cents.
type Prices = fn(&str) -> Result<u64, bool>;

/// The destination's native currency gained a hundredth.
fn risen(symbol: &str) -> Result<u64, bool> {
    Ok(if symbol == "USDC" { 100 } else { 252_500 })
}

/// What a quote of now is worth later, at other prices: where its recipient cannot decline the fill, and where he can.
async fn repriced((from, amount): (&str, &str), to: &str, prices: Prices) -> [Offer; 2] {
    let fixture = beside("destination");
    let changes = json!({"originCurrency": from, "amount": amount, "destinationCurrency": to,
                         "recipient": other::USER});
    let answer = fixture.quote(changes).await.unwrap();
    let request = stored(&fixture, &answer).await;
    fixture.with(|world| world.prices = prices);
    let offer = async |declinable: bool| {
        fixture.with(|world| world.declinable = declinable);
        let offer = fixture.repricer().offer(&request, PLAIN, LATER).await;
        offer.unwrap()
    };
    [offer(false).await, offer(true).await]
}

#[tokio::test]
async fn who_can_decline_a_late_fill_pays_for_the_choice() {
    let (dollars, ether) = ((USDC, "100000000"), (NATIVE, "100000000000000000"));
    let fallen_by_25: Prices = fallen::<25>;
    for (from, to, prices) in [
        (ether, other::USDC, fallen_by_25),
        (dollars, other::NATIVE, risen),
    ] {
        let offers = repriced(from, to, prices).await;
        let [Offer::Less(all), Offer::Less(less)] = offers else {
            panic!("{to}: {offers:?}");
        };
        // In 425 seconds and 151 blocks of a second, 2,000 millionths of the major currency and 200 of the stable one.
        let wanted = all * U256::from(1_000_000) / U256::from(1_002_200);
        let apart = less.abs_diff(wanted);
        assert!(apart <= U256::from(1), "{to}: {less} of {all}");
    }
    // So where the market stands still, and not where a unit is given for a unit.
    let [whole, less] = repriced(ether, other::USDC, fallen::<0>).await;
    assert_eq!(whole, Offer::Promised);
    assert!(matches!(less, Offer::Less(_)), "{less:?}");
    let level = repriced(dollars, other::USDC, fallen::<0>).await;
    assert_eq!(level, [Offer::Promised; 2]);
}
