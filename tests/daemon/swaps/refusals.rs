//! What is not offered, what is not built, and what the chain turns down.

use std::num::NonZero;

use alloy::{
    primitives::{Address, U256},
    sol_types::{Revert, SolError, SolValue},
};
use intentd::quote::swaps::Swaps;
use vm::trade::{SwapError, SwapOffer, SwapOrder, SwapTerms};

use super::rig::{ETHER, Rig, USD, offer_of};
use super::{RECIPIENT, limit, only};

const UNISWAP: &str = "uniswap-v3";
/// No provider listens there.
const NOWHERE: &str = "http://127.0.0.1:9/";

fn unavailable<T>(what: &str) -> Result<T, SwapError> {
    Err(SwapError::Unavailable(what.to_owned()))
}

#[tokio::test]
async fn what_nobody_can_exchange() {
    let rig = Rig::start().await;
    let (weth, usd) = (rig.uniswap.wrapped, rig.site.token);
    let stranger = rig.site.deploy_token("Token").await.unwrap();
    for terms in [
        rig.terms(weth, stranger, ETHER, true),
        rig.terms(weth, stranger, ETHER, false),
        rig.terms(Address::repeat_byte(1), usd, ETHER, true),
        rig.terms(weth, usd, 0, true),
        rig.terms(Address::ZERO, weth, 0, true),
        rig.terms(usd, usd, USD, true),
        // More than the pool has, and so much that it would be emptied.
        rig.terms(weth, usd, 2_500_001 * USD, false),
        rig.terms(weth, usd, u128::MAX, true),
        SwapTerms {
            network: "elsewhere".to_owned(),
            ..rig.terms(weth, usd, ETHER, true)
        },
        // There are two pools on the way.
        SwapTerms {
            most_pools: NonZero::new(1),
            ..rig.terms(weth, rig.third, ETHER, true)
        },
    ] {
        let offers = rig.swaps.offers(&terms, |_| true).await;
        assert_eq!(offers, Err(SwapError::NoRoute), "{terms:?}");
    }
    for (from, to) in [(Address::ZERO, usd), (weth, usd), (usd, weth), (weth, weth)] {
        let terms = rig.terms(from, to, ETHER, true);
        let offer = offer_of(&rig.swaps, "wrap", &terms).await;
        assert_eq!(offer, Err(SwapError::NoRoute));
    }
    let unread = Swaps::open(&rig.market, |_| None).unwrap();
    assert_eq!(unread.names("origin").count(), 0);
}

#[tokio::test]
async fn caller_chooses_among_the_sources() {
    let rig = Rig::start().await;
    let (eth, weth, usd) = (Address::ZERO, rig.uniswap.wrapped, rig.site.token);
    let wraps = rig.terms(eth, weth, ETHER, true);
    let swaps = rig.terms(eth, usd, ETHER, true);
    for (terms, chosen, expected) in [
        (&swaps, "uniswap-v3", Some("uniswap-v3")),
        (&swaps, "wrap", None),
        (&wraps, "wrap", Some("wrap")),
        (&wraps, "uniswap-v3", None),
    ] {
        let offers = rig.swaps.offers(terms, |name| name == chosen).await;
        let names = offers.map(|offers| offers.iter().map(|offer| offer.source).collect());
        let expected = expected.map(|name| vec![name]).ok_or(SwapError::NoRoute);
        assert_eq!(names, expected, "{chosen}");
    }
}

#[tokio::test]
async fn provider_that_is_down_offers_nothing() {
    let rig = Rig::start().await;
    let terms = rig.terms(rig.uniswap.wrapped, rig.site.token, ETHER, true);
    for providers in [&[NOWHERE][..], &[]] {
        let offer = offer_of(&rig.seen_through(providers), UNISWAP, &terms).await;
        assert!(matches!(offer, Err(SwapError::Unavailable(_))), "{offer:?}");
    }
    let next = rig.seen_through(&[NOWHERE, rig.site.node.url.as_str()]);
    let offer = offer_of(&next, UNISWAP, &terms).await;
    assert_eq!(offer, Ok(only(&rig, &terms).await));
    let unread = Swaps::open(&rig.market, |_| None).unwrap();
    assert_eq!(unread.names("origin").count(), 0);
    let offer = offer_of(&unread, UNISWAP, &terms).await;
    assert_eq!(offer, Err(SwapError::NoRoute));
}

#[tokio::test]
async fn quoter_that_refuses_or_answers_rubbish_offers_nothing() {
    let rig = Rig::start().await;
    let (weth, usd) = (rig.uniswap.wrapped, rig.site.token);
    let word = U256::from(ETHER);
    let beyond = U256::from(u64::MAX) + U256::ONE;
    let refusal = Revert::from("no").abi_encode();
    let mut quoters = vec![RECIPIENT, rig.site.token];
    for (answer, reverts) in [
        (Vec::new(), true),
        (refusal, true),
        ([word; 4].abi_encode(), true),
        (Vec::new(), false),
        (word.abi_encode(), false),
        ([word; 4].abi_encode()[..127].to_vec(), false),
        // Nothing comes out; more gas than there can be; a price, then a count, out of range.
        ([U256::ZERO, word, U256::ONE, word].abi_encode(), false),
        ([word, word, U256::ONE, beyond].abi_encode(), false),
        ([word, U256::MAX, U256::ONE, word].abi_encode(), false),
        ([word, word, U256::MAX, word].abi_encode(), false),
        (vec![0xff; 4096], false),
    ] {
        quoters.push(rig.contract_that_says(&answer, reverts).await);
    }
    for (number, quoter) in quoters.into_iter().enumerate() {
        let uniswap = rig.quoted_by(quoter);
        for (output, exact_input) in [(usd, true), (usd, false), (rig.third, true)] {
            let terms = rig.terms(weth, output, ETHER, exact_input);
            let offer = offer_of(&uniswap, UNISWAP, &terms).await;
            assert_eq!(offer, Err(SwapError::NoRoute), "{number}: {terms:?}");
        }
    }
}

#[tokio::test]
async fn quoter_that_lies_costs_no_more_than_gas() {
    let rig = Rig::start().await;
    let terms = rig.terms(rig.uniswap.wrapped, rig.site.token, ETHER, true);
    let honest = only(&rig, &terms).await;
    let gas = U256::from(u64::MAX);
    let price = U256::ONE;
    let lie = [honest.output + U256::ONE, price, price, gas].abi_encode();
    let uniswap = rig.quoted_by(rig.contract_that_says(&lie, false).await);
    // The lie is the same for every pool; the route of the real one shows who reverts.
    let offer = SwapOffer {
        route: honest.route.clone(),
        ..offer_of(&uniswap, UNISWAP, &terms).await.unwrap()
    };
    assert_eq!(offer.work, u64::MAX);
    let order = rig.order(RECIPIENT, offer.output).await;
    let lied = uniswap.build(&offer, &order).await.unwrap();
    assert!(!rig.send(&lied).await.status());
    assert!(rig.held(rig.site.token, RECIPIENT).await.is_zero());
    let order = rig.order(RECIPIENT, honest.output).await;
    let told = uniswap.build(&offer, &order).await.unwrap();
    assert!(rig.send(&told).await.status());
}

#[tokio::test]
async fn offers_that_are_not_built() {
    let rig = Rig::start().await;
    let (weth, usd) = (rig.uniswap.wrapped, rig.site.token);
    let offer = only(&rig, &rig.terms(weth, usd, ETHER, true)).await;
    let wanted = only(&rig, &rig.terms(weth, usd, USD, false)).await;
    for magic in [0, 1, 2] {
        let recipient = Address::with_last_byte(magic);
        let order = rig.order(recipient, offer.output).await;
        let refused = unavailable("not a recipient");
        assert_eq!(rig.swaps.build(&offer, &order).await, refused);
    }
    for (offer, limit) in [
        (&offer, offer.output + U256::ONE),
        (&wanted, wanted.input - U256::ONE),
    ] {
        let order = rig.order(RECIPIENT, limit).await;
        let refused = unavailable("the offer is beyond the limit");
        assert_eq!(rig.swaps.build(offer, &order).await, refused);
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
        assert_eq!(rig.swaps.build(&changed, &order).await, unavailable(why));
    }
    assert!(rig.swaps.build(&offer, &order).await.is_ok());
}

#[tokio::test]
async fn wraps_that_are_not_built() {
    let rig = Rig::start().await;
    let (weth, user) = (rig.uniswap.wrapped, rig.user.address());
    for (from, to) in [(Address::ZERO, weth), (weth, Address::ZERO)] {
        let offer = only(&rig, &rig.terms(from, to, ETHER, true)).await;
        let wanted = only(&rig, &rig.terms(from, to, ETHER, false)).await;
        let (amount, one) = (offer.output, U256::ONE);
        let better = SwapOffer {
            output: amount + one,
            ..offer.clone()
        };
        for (offer, recipient, limit, why) in [
            (
                &offer,
                RECIPIENT,
                amount,
                "the recipient of a wrap is who pays",
            ),
            (&offer, user, amount + one, "the offer is beyond the limit"),
            (&wanted, user, amount - one, "the offer is beyond the limit"),
            (&better, user, amount, "another exchange's offer"),
        ] {
            let order = rig.order(recipient, limit).await;
            assert_eq!(rig.swaps.build(offer, &order).await, unavailable(why));
        }
    }
}

#[tokio::test]
async fn exchange_that_comes_too_late_reverts() {
    let rig = Rig::start().await;
    let terms = rig.terms(Address::ZERO, rig.site.token, ETHER, true);
    let offer = only(&rig, &terms).await;
    let order = rig.order(RECIPIENT, limit(&offer)).await;
    let late = SwapOrder {
        deadline: rig.site.node.tip().await.unwrap().time - 1,
        ..order.clone()
    };
    let late = rig.swaps.build(&offer, &late).await.unwrap();
    assert!(!rig.send(&late).await.status());
    assert!(rig.held(rig.site.token, RECIPIENT).await.is_zero());
    let swap = rig.swaps.build(&offer, &order).await.unwrap();
    assert!(rig.send(&swap).await.status());
}

#[tokio::test]
async fn exchange_whose_price_moved_beyond_its_limit_reverts() {
    let rig = Rig::start().await;
    let (eth, usd, third) = (Address::ZERO, rig.site.token, rig.third);
    for terms in [
        rig.terms(eth, usd, ETHER, true),
        rig.terms(eth, usd, 1_000 * USD, false),
        rig.terms(eth, third, ETHER, true),
        rig.terms(usd, eth, ETHER, false),
    ] {
        let offer = only(&rig, &terms).await;
        let exact = if terms.exact_input {
            offer.output
        } else {
            offer.input
        };
        let tight = rig.order(RECIPIENT, exact).await;
        let loose = rig.order(RECIPIENT, limit(&offer)).await;
        let [tight, loose] = [
            rig.swaps.build(&offer, &tight).await.unwrap(),
            rig.swaps.build(&offer, &loose).await.unwrap(),
        ];
        assert!(rig.send(&tight).await.status(), "{terms:?}");
        // The first exchange has moved the price, by less than what the second may lose.
        let output = Address::from_slice(terms.output.bytes());
        let held = rig.held(output, RECIPIENT).await;
        assert!(!rig.send(&tight).await.status(), "{terms:?}");
        assert_eq!(rig.held(output, RECIPIENT).await, held);
        assert!(rig.send(&loose).await.status(), "{terms:?}");
    }
}
