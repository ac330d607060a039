//! Swaps over the real contracts: what is offered can be built, and what is built gives it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed unwrap is a failed test"
)]

mod swaps {
    pub mod rig;
}

use alloy::{
    primitives::{Address, B256, U256},
    sol,
    sol_types::SolCall,
};
use devnet::{contracts::FillRouter, world::Pool};
use intentd::quote::swap::{
    Allowed, SwapError, SwapOffer, SwapOrder, SwapSource, SwapTerms, UniswapV3, Wrap,
};
use swaps::rig::{ETHER, Rig, USD, vm_address};

const RECIPIENT: Address = Address::repeat_byte(0x99);

sol! {
    function transfer(address to, uint256 amount) returns (bool);
}

fn all() -> Allowed<'static> {
    Allowed::default()
}

fn unavailable<T>(what: &str) -> Result<T, SwapError> {
    Err(SwapError::Unavailable(what.to_owned()))
}

async fn only(rig: &Rig, terms: &SwapTerms) -> SwapOffer {
    let mut offers = rig.routing.offers(terms, all()).await.unwrap();
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

/// Makes the exchange and checks every balance.
async fn exchange(rig: &Rig, terms: &SwapTerms) {
    let offer = only(rig, terms).await;
    let order = rig.order(RECIPIENT, limit(&offer)).await;
    let swap = rig.routing.build(&offer, &order).unwrap();
    let native = Address::from_slice(terms.input.bytes()).is_zero();
    assert_eq!(swap.spender.is_none(), native, "{terms:?}");
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
    let least = 21_000 + 16 * swap.call.data.len() as u64;
    assert!(
        receipt.gas_used < offer.gas + least,
        "{terms:?}: {} of {}",
        receipt.gas_used,
        offer.gas
    );
    for currency in [Address::ZERO, input, output] {
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
        let swap = rig.routing.build(&offer, &order).unwrap();
        assert_eq!(swap.spender, None);
        let receipt = rig.send(&swap).await;
        assert!(receipt.status() && receipt.gas_used < 21_000 + offer.gas);
        assert_eq!(rig.held(weth, user).await, held);
        let order = rig.order(RECIPIENT, offer.output).await;
        let refused = unavailable("the recipient of a wrap is who pays");
        assert_eq!(rig.routing.build(&offer, &order), refused);
    }
    let none = rig.terms(eth, rig.site.token, 1, true);
    let wrap = Wrap::new(&rig.market, |_| Some(vm::SETTLEMENT)).unwrap();
    assert_eq!(wrap.offer(&none).await, Err(SwapError::NoRoute));
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
    let cheap = [
        only(&rig, &terms(true)).await,
        only(&rig, &terms(false)).await,
    ];
    assert!(cheap[0].output > dear[0].output && cheap[1].input < dear[1].input);
    exchange(&rig, &terms(true)).await;
    exchange(&rig, &terms(false)).await;
}

#[tokio::test]
async fn what_nobody_can_exchange() {
    let rig = Rig::start().await;
    let (weth, usd) = (rig.uniswap.wrapped, rig.site.token);
    let stranger = rig.site.deploy_token("Token").await.unwrap();
    for terms in [
        rig.terms(weth, stranger, ETHER, true),
        rig.terms(Address::repeat_byte(1), usd, ETHER, true),
        rig.terms(weth, usd, 0, true),
        rig.terms(usd, usd, USD, true),
        // More than the pool has, and so much that it would be emptied.
        rig.terms(weth, usd, 2_500_001 * USD, false),
        rig.terms(weth, usd, u128::MAX, true),
        SwapTerms {
            network: "elsewhere".to_owned(),
            ..rig.terms(weth, usd, ETHER, true)
        },
    ] {
        let offers = rig.routing.offers(&terms, all()).await;
        assert_eq!(offers, Err(SwapError::NoRoute), "{terms:?}");
    }
    let terms = rig.terms(weth, usd, ETHER, true);
    let wrap = ["wrap".to_owned()];
    let allowed = Allowed {
        included: Some(&wrap),
        ..Allowed::default()
    };
    let offers = rig.routing.offers(&terms, allowed).await;
    assert_eq!(offers, Err(SwapError::NoRoute));
    let dead = UniswapV3::new(&rig.market, |_| Some(rig.views_of("http://127.0.0.1:9/"))).unwrap();
    let offer = dead.offer(&terms).await;
    assert!(matches!(offer, Err(SwapError::Unavailable(_))), "{offer:?}");
    let unread = UniswapV3::new(&rig.market, |_| None).unwrap();
    assert!(!unread.serves("origin"));
}

#[tokio::test]
async fn offers_that_are_not_built() {
    let rig = Rig::start().await;
    let (weth, usd) = (rig.uniswap.wrapped, rig.site.token);
    let offer = only(&rig, &rig.terms(weth, usd, ETHER, true)).await;
    let wanted = only(&rig, &rig.terms(weth, usd, USD, false)).await;
    for magic in [0, 1, 2] {
        let order = rig
            .order(Address::with_last_byte(magic), offer.output)
            .await;
        assert_eq!(
            rig.routing.build(&offer, &order),
            unavailable("not a recipient")
        );
    }
    for (offer, limit) in [
        (&offer, offer.output + U256::ONE),
        (&wanted, wanted.input - U256::ONE),
    ] {
        let order = rig.order(RECIPIENT, limit).await;
        let refused = unavailable("the offer is beyond the limit");
        assert_eq!(rig.routing.build(offer, &order), refused);
    }
    let order = rig.order(RECIPIENT, offer.output).await;
    let other = only(&rig, &rig.terms(weth, rig.third, ETHER, true)).await;
    for (route, why) in [
        (offer.route[..42].to_vec(), "not a route"),
        (Vec::new(), "not a route"),
        (other.route, "another exchange's offer"),
    ] {
        let changed = SwapOffer {
            route,
            ..offer.clone()
        };
        assert_eq!(rig.routing.build(&changed, &order), unavailable(why));
    }
}

#[tokio::test]
async fn exchange_that_came_too_late_or_got_worse_reverts() {
    let rig = Rig::start().await;
    let (eth, usd) = (Address::ZERO, rig.site.token);
    let offer = only(&rig, &rig.terms(eth, usd, 10 * ETHER, true)).await;
    let order = rig.order(RECIPIENT, offer.output).await;
    let late = SwapOrder {
        deadline: rig.site.node.tip().await.unwrap().time - 1,
        ..order.clone()
    };
    let late = rig.routing.build(&offer, &late).unwrap();
    assert!(!rig.send(&late).await.status());
    let swap = rig.routing.build(&offer, &order).unwrap();
    assert!(rig.send(&swap).await.status());
    // The first exchange has moved the price.
    assert!(!rig.send(&swap).await.status());
    assert_eq!(rig.held(usd, RECIPIENT).await, offer.output);
}

#[tokio::test]
async fn destination_swap_goes_through_the_fill_router() {
    let rig = Rig::start().await;
    let (site, usd) = (&rig.site, rig.site.token);
    let offer = only(&rig, &rig.terms(Address::ZERO, usd, 1_000 * USD, false)).await;
    let order = SwapOrder {
        payer: vm_address(site.router),
        ..rig.order(site.router, limit(&offer)).await
    };
    let swap = rig.routing.build(&offer, &order).unwrap();
    let (to, value) = (RECIPIENT, swap.call.value);
    let amount = offer.output;
    let calls = vec![
        FillRouter::Call {
            to: rig.uniswap.router,
            data: swap.call.data.clone(),
            value,
        },
        FillRouter::Call {
            to: usd,
            data: transferCall { to, amount }.abi_encode().into(),
            value: U256::ZERO,
        },
    ];
    let receipt = site
        .fill(&rig.user, calls, B256::repeat_byte(7))
        .await
        .unwrap();
    assert!(receipt.status());
    assert_eq!(rig.held(usd, RECIPIENT).await, amount);
    assert!(rig.held(usd, site.router).await.is_zero());
    // What the exchange did not need came back to who sent it along.
    assert_eq!(
        rig.held(Address::ZERO, site.router).await,
        value - offer.input
    );
}
