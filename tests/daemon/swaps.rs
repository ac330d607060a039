//! Swaps over the real contracts: what is offered can be built, and what is built gives it.

mod refusals;
pub mod rig;

use std::time::Duration;

use self::rig::{ETHER, Rig, USD, vm_address};
use alloy::{
    primitives::{Address, B256, U256},
    sol,
    sol_types::SolCall,
};
use devnet::{contracts::FillRouter, world::Pool};
use serde_json::json;
use vm::trade::{Call, SwapDraft, SwapError, SwapOffer, SwapOrder, SwapTerms};

const RECIPIENT: Address = Address::repeat_byte(0x99);

sol! {
    function transfer(address to, uint256 amount) returns (bool);
}

async fn only(rig: &Rig, terms: &SwapTerms) -> SwapOffer {
    let mut offers = rig.swaps.offers(terms, |_| true).await.unwrap();
    assert_eq!(offers.len(), 1);
    offers.remove(0)
}

/// One percent worse than the offer.
fn limit(offer: &SwapOffer) -> U256 {
    let percent = U256::from(100);
    if offer.terms.exact_input {
        offer.output - offer.output / percent
    } else {
        offer.input + offer.input / percent
    }
}

fn call_of(swap: &SwapDraft) -> Call {
    swap.draft.as_call().unwrap()
}

/// Makes the exchange and checks every balance.
async fn exchange(rig: &Rig, terms: &SwapTerms) {
    let offer = only(rig, terms).await;
    let order = rig.order(RECIPIENT, limit(&offer)).await;
    let swap = rig.swaps.build(&offer, &order).await.unwrap();
    let native = Address::from_slice(terms.input.bytes()).is_zero();
    assert_eq!(offer.source, "uniswap-v3");
    assert_eq!(swap.spender.is_none(), native, "{terms:?}");
    assert_eq!(swap.draft.from, order.payer);
    let (input, output) = (terms.input.bytes(), terms.output.bytes());
    let [input, output] = [input, output].map(Address::from_slice);
    let user = rig.user.address();
    let before = (
        rig.held(input, user).await,
        rig.held(output, RECIPIENT).await,
    );
    let receipt = rig.send(&swap).await;
    assert!(receipt.status(), "{terms:?}");
    let fee = U256::from(receipt.gas_used) * U256::from(receipt.effective_gas_price);
    let fee = if native { fee } else { U256::ZERO };
    let spent = before.0 - rig.held(input, user).await - fee;
    let given = rig.held(output, RECIPIENT).await - before.1;
    assert_eq!((spent, given), (offer.input, offer.output), "{terms:?}");
    // 21,000 of the transaction itself, and at most 16 for each byte of its data.
    let sending = 21_000 + 16 * call_of(&swap).data.len() as u64;
    assert!(
        receipt.gas_used < offer.work + sending,
        "{terms:?}: {} of {}",
        receipt.gas_used,
        offer.work
    );
    for currency in [Address::ZERO, rig.uniswap.wrapped, input, output] {
        assert!(rig.held(currency, rig.uniswap.router).await.is_zero());
    }
}

#[tokio::test]
async fn both_trade_types_of_native_currency_and_tokens() {
    let rig = Rig::start().await;
    let (eth, weth) = (Address::ZERO, rig.uniswap.wrapped);
    let (usd, third) = (rig.site.token, rig.third);
    for (from, to, given, wanted) in [
        (eth, usd, ETHER, 1_000 * USD),
        (usd, eth, 1_000 * USD, ETHER),
        (weth, usd, ETHER, 1_000 * USD),
        (usd, weth, 1_000 * USD, ETHER),
        (eth, third, ETHER, 1_000 * USD),
        (third, eth, 1_000 * USD, ETHER),
        (third, usd, 1_000 * USD, 1_000 * USD),
    ] {
        exchange(&rig, &rig.terms(from, to, given, true)).await;
        exchange(&rig, &rig.terms(from, to, wanted, false)).await;
    }
}

#[tokio::test]
async fn wrapping_is_one_for_one() {
    let rig = Rig::start().await;
    let (eth, weth, user) = (Address::ZERO, rig.uniswap.wrapped, rig.user.address());
    let before = rig.held(weth, user).await;
    for (from, to, exact_input, held) in [
        (eth, weth, true, before + U256::from(ETHER)),
        (weth, eth, false, before),
        (eth, weth, false, before + U256::from(ETHER)),
        (weth, eth, true, before),
    ] {
        let offer = only(&rig, &rig.terms(from, to, ETHER, exact_input)).await;
        assert_eq!(
            (offer.source, offer.input, offer.output),
            ("wrap", offer.terms.amount, offer.terms.amount)
        );
        let order = rig.order(user, offer.output).await;
        let swap = rig.swaps.build(&offer, &order).await.unwrap();
        assert_eq!(swap.spender, None);
        let receipt = rig.send(&swap).await;
        assert!(receipt.status() && receipt.gas_used < 21_000 + offer.work);
        assert_eq!(rig.held(weth, user).await, held);
    }
}

#[tokio::test]
async fn cheapest_of_several_pools_is_taken() {
    let rig = Rig::start().await;
    let (weth, usd) = (rig.uniswap.wrapped, rig.site.token);
    let terms = |exact_input| {
        rig.terms(
            weth,
            usd,
            if exact_input { ETHER } else { USD },
            exact_input,
        )
    };
    let dear = [
        only(&rig, &terms(true)).await,
        only(&rig, &terms(false)).await,
    ];
    let pool = Pool {
        holds: [
            (weth, U256::from(1_000 * ETHER)),
            (usd, U256::from(2_500_000 * USD)),
        ],
        fee: 500,
    };
    rig.site.open_pool(&rig.uniswap, pool).await.unwrap();
    // A new pool is found in ten minutes.
    let found = only(&rig, &terms(true)).await;
    // A pool takes other gas in the second of its last exchange.
    let same = SwapOffer {
        work: dear[0].work,
        ..found
    };
    assert_eq!(same, dear[0]);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(600)).await;
    tokio::time::resume();
    let cheap = [
        only(&rig, &terms(true)).await,
        only(&rig, &terms(false)).await,
    ];
    assert!(cheap[0].output > dear[0].output && cheap[1].input < dear[1].input);
    exchange(&rig, &terms(true)).await;
    exchange(&rig, &terms(false)).await;
}

#[tokio::test]
async fn destination_swap_goes_through_the_fill_router() {
    let rig = Rig::start().await;
    let (site, usd) = (&rig.site, rig.site.token);
    let offer = only(&rig, &rig.terms(Address::ZERO, usd, 1_000 * USD, false)).await;
    let sent = fill(&rig, &offer, limit(&offer)).await;
    // What the exchange did not need came back to who sent it along.
    assert!(sent > offer.input);
    assert_eq!(
        rig.held(Address::ZERO, site.router).await,
        sent - offer.input
    );
}

#[tokio::test]
async fn destination_wrap_goes_through_the_fill_router() {
    let rig = Rig::start().await;
    let weth = rig.uniswap.wrapped;
    let offer = only(&rig, &rig.terms(Address::ZERO, weth, ETHER, true)).await;
    let sent = fill(&rig, &offer, offer.output).await;
    assert_eq!(sent, U256::from(ETHER));
    assert!(rig.held(Address::ZERO, rig.site.router).await.is_zero());
}

/// Exchanges the native currency in the fill router's name, pays the recipient exactly what comes
/// out, and returns what was sent along.
async fn fill(rig: &Rig, offer: &SwapOffer, limit: U256) -> U256 {
    let router = rig.site.router;
    let order = SwapOrder {
        payer: vm_address(router),
        ..rig.order(router, limit).await
    };
    let swap = call_of(&rig.swaps.build(offer, &order).await.unwrap());
    let output = Address::from_slice(offer.terms.output.bytes());
    let (to, amount) = (RECIPIENT, offer.output);
    let calls = vec![
        FillRouter::Call {
            to: Address::from_slice(swap.to.bytes()),
            data: swap.data,
            value: swap.value,
        },
        FillRouter::Call {
            to: output,
            data: transferCall { to, amount }.abi_encode().into(),
            value: U256::ZERO,
        },
    ];
    let filled = rig.site.fill(&rig.user, calls, B256::repeat_byte(7)).await;
    assert!(filled.unwrap().status());
    assert_eq!(rig.held(output, RECIPIENT).await, amount);
    assert!(rig.held(output, router).await.is_zero());
    swap.value
}

#[tokio::test]
async fn second_choices_are_exchanges_of_their_own() {
    let rig = Rig::start().await;
    let contracts = |fees: &[u32]| json!({"quoter": rig.uniswap.quoter, "router": rig.uniswap.router, "fees": fees});
    // No pool of the first has such a fee: the second exchange of the list makes the offer.
    let exchanges = json!([contracts(&[42]), contracts(&[500, 3000])]);
    let market = rig::with_fallbacks(&rig, exchanges);
    let swaps = rig::swaps(&market, &[rig.site.node.url.as_str()]);
    let terms = rig.terms(rig.third, rig.site.token, 1_000_000, true);
    let none = swaps.offers(&terms, |_| true).await;
    assert_eq!(none, Err(SwapError::NoRoute));
    let offer = swaps.seconds(&terms, |_| true).await.unwrap().remove(0);
    assert_eq!((offer.source, offer.route[0]), ("uniswap-v3-fallback", 1));
    let order = rig.order(RECIPIENT, limit(&offer)).await;
    let swap = swaps.build(&offer, &order).await.unwrap();
    assert!(rig.send(&swap).await.status());
    assert_eq!(rig.held(rig.site.token, RECIPIENT).await, offer.output);
    assert!(rig.swaps.build(&offer, &order).await.is_err());
}
