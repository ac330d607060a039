//! What strangers try with quotes: each history has the outcome that it has without them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use alloy::primitives::{B256, U256, keccak256};
use serde_json::{Value, json};
use vm::{ChainId, protocol::order::Order, trade::Work};

use super::{order, quoted, refused, stored};
use crate::{
    attest::{
        deposit::Message,
        order::{Difference, Terms},
    },
    quote::{
        code::{Code, Refused},
        context::Caller,
        fixtures::{
            Fixture, GAS, NATIVE, NOW, OTHER, PASSED, ROUTER, SOLVER, TOKEN, USDC, USER, WETH,
            address, changed, market_file,
        },
        pricing_chain::{Admission, Hands},
        service::Quoter,
    },
    request::{self, fact::Facts, reason::FailReason},
    store::{Batch, large::Budget, requests::Requests, reserve::Reserve},
};

/// The least refund that an oracle attests where so much was deposited.
fn least(order: &Order, deposited: U256) -> U256 {
    let terms = Terms::new(order, &|_| Some(vm::SETTLEMENT)).unwrap();
    let deposit = vm::Deposit {
        index: 0,
        depository: address(USER),
        depositor: address(USER),
        currency: terms.inputs[0].currency.clone(),
        amount: deposited,
        id: terms.name().into(),
        named_by_other: false,
        by_depositor: false,
    };
    let message = Message {
        chain: ChainId::new("origin"),
        transaction: Arc::from("0x1"),
        onchain_id: B256::ZERO,
        deposit,
        timestamp: 1,
    };
    let difference = Difference::of(&terms, &[message]).unwrap();
    let least = difference.scale(terms.inputs[0].refunds[0].minimum);
    U256::from_limbs_slice(&least.as_limbs()[..4])
}

#[tokio::test]
async fn a_single_unit_is_no_refund_and_what_fees_leave_is_one() {
    for (currency, amount) in [(NATIVE, "1000000000000000000"), (USDC, "100000000")] {
        let changes = json!({"originCurrency": currency, "destinationCurrency": currency,
                             "amount": amount, "tradeType": "EXACT_OUTPUT"});
        let (_, answer) = quoted(changes).await;
        let order = order(&answer);
        let paid: U256 = order.inputs[0].payment.amount.parse().unwrap();
        for (up, down) in [(1, 1), (99, 100), (1, 2), (10, 1), (1, 1_000)] {
            let deposited = paid * U256::from(up) / U256::from(down);
            let least = least(&order, deposited);
            assert!(least > U256::from(1), "{least} of {deposited}");
            // Fees may take 99 % of it.
            assert!(
                least <= deposited.div_ceil(U256::from(100)),
                "{least} of {deposited}"
            );
        }
    }
}

#[tokio::test]
async fn refund_of_what_the_solver_gives_has_a_minimum_too() {
    let changes = json!({"originCurrency": NATIVE, "amount": "1000000000000000000"});
    let (_, answer) = quoted(changes).await;
    let order = order(&answer);
    let given: U256 = order.output.payments[0].expected_amount.parse().unwrap();
    let least: U256 = order.inputs[0].refunds[1].minimum_amount.parse().unwrap();
    assert_eq!(least, given / U256::from(100));
}

async fn ask(quoter: &Quoter, changes: Value) -> Result<(), Refused> {
    quoter.quote(&changed(changes), None).await.map(drop)
}

#[tokio::test]
async fn quote_in_the_routers_name_switches_no_token_off() {
    for own in [
        json!({}),
        json!({"destinationChainId": 31_001, "destinationCurrency": TOKEN}),
    ] {
        let fixture = Fixture::default();
        // Money that the router sends to itself is not back afterwards.
        fixture.with(|world| {
            world.fails = |calls| calls.len() > 1 && calls[0].from.text() == ROUTER;
        });
        let quoter = fixture.quoter();
        let mut stranger = own.clone();
        stranger["user"] = json!(ROUTER);
        stranger["recipient"] = json!(OTHER);
        let tried = ask(&quoter, stranger.clone()).await;
        assert!(tried.is_err_and(|refused| refused.code == Code::UnsupportedCurrency));
        assert_eq!(ask(&quoter, own).await, Ok(()));
        // His own verdict stays his.
        assert!(ask(&quoter, stranger).await.is_err());
    }
}

/// Somebody moves a pool for a block: only the first simulation comes too early.
#[tokio::test]
async fn price_that_moves_between_two_simulations_is_no_fee() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    let fixture = Fixture::default();
    fixture.with(|world| {
        world.fails = |calls| {
            let back = calls.len() == 2 && calls[0].from.text() == SOLVER;
            back && SEEN.fetch_add(1, Ordering::Relaxed) == 0
        };
    });
    let quoter = fixture.quoter();
    assert_eq!(ask(&quoter, json!({})).await, Ok(()));
    assert_eq!(SEEN.load(Ordering::Relaxed), 2);
    // What is so every time is one.
    let fixture = Fixture::default();
    fixture.with(|world| {
        world.fails = |calls| calls.len() == 2 && calls[0].from.text() == SOLVER;
    });
    let refused = ask(&fixture.quoter(), json!({})).await;
    assert!(refused.is_err_and(|refused| refused.code == Code::UnsupportedCurrency));
}

#[tokio::test]
async fn tiny_amount_vouches_for_no_larger_one() {
    let fixture = Fixture::default();
    // A fee of a hundredth, which rounding hides in small amounts.
    fixture.with(|world| {
        world.fails = |calls| {
            let large = calls[0].value > U256::from(100);
            calls.len() == 2 && calls[0].from.text() == SOLVER && large
        };
    });
    let quoter = fixture.quoter();
    let _ = ask(&quoter, json!({"amount": "1", "tradeType": "EXACT_OUTPUT"})).await;
    let larger = ask(&quoter, json!({})).await;
    assert!(larger.is_err_and(|refused| refused.code == Code::UnsupportedCurrency));
    // What the caller pays is tried with no more than that: a little of it vouches for a little.
    let fixture = Fixture::default();
    fixture.with(|world| {
        world.fails = |calls| {
            let large = calls[0].value > U256::from(50_000_000);
            calls.len() == 2 && calls[0].from.text() == USER && large
        };
    });
    let quoter = fixture.quoter();
    assert_eq!(ask(&quoter, json!({"amount": "1000000"})).await, Ok(()));
    let larger = ask(&quoter, json!({})).await;
    assert!(larger.is_err_and(|refused| refused.code == Code::UnsupportedCurrency));
}

#[tokio::test]
async fn token_that_spares_the_router_its_fee_is_not_quoted() {
    let fixture = Fixture::default();
    fixture.with(|world| {
        world.fails = |calls| {
            let routed = |text: &str| text == ROUTER;
            calls.len() == 2
                && calls[0].from.text() == SOLVER
                && !calls
                    .iter()
                    .any(|call| routed(call.from.text()) || routed(call.to.text()))
        };
    });
    assert_eq!(
        refused(&fixture, json!({})).await.code,
        Code::UnsupportedCurrency
    );
}

#[tokio::test]
async fn app_fees_are_owed_only_where_they_are_taken() {
    let fees = json!([{"recipient": OTHER, "fee": "50"}]);
    for changes in [
        json!({"destinationChainId": 31_001, "recipient": OTHER}),
        json!({"destinationChainId": 31_001, "originCurrency": NATIVE, "destinationCurrency": WETH}),
    ] {
        let mut changes = changes;
        changes["appFees"] = fees.clone();
        let (fixture, answer) = quoted(changes).await;
        assert_eq!(answer["fees"]["app"]["amount"], "0");
        let request = stored(&fixture, &answer).await;
        assert_eq!(super::kept(&request)["appFees"], json!([]));
    }
}

/// Those of the exchanges that were built.
fn deadlines(fixture: &Fixture) -> Vec<u64> {
    fixture.with(|world| std::mem::take(&mut world.deadlines))
}

#[tokio::test]
async fn exchanges_live_for_minutes() {
    for (changes, least, most) in [
        // The user's own, and the one before a deposit.
        (
            json!({"destinationChainId": 31_001, "destinationCurrency": TOKEN}),
            60,
            600,
        ),
        (
            json!({"originCurrency": TOKEN, "amount": "1000000000000000000"}),
            60,
            600,
        ),
        // The fill's: the deposit has to be final first.
        (json!({"destinationCurrency": TOKEN}), 600, 3_600),
    ] {
        let fixture = Fixture::default();
        fixture.quote(changes.clone()).await.unwrap();
        let deadlines = deadlines(&fixture);
        assert!(!deadlines.is_empty());
        for deadline in deadlines {
            let seconds = deadline - NOW / 1_000;
            assert!((least..=most).contains(&seconds), "{seconds} of {changes}");
        }
    }
}

#[tokio::test]
async fn poor_offer_of_one_provider_lowers_no_minimum_below_the_price_sources() {
    let own = |token: &str| json!({"destinationChainId": 31_001, "destinationCurrency": token});
    let least = async |changes: Value, loss: u64| {
        let fixture = Fixture::default();
        fixture.with(|world| world.loss = Some(loss));
        let answer = fixture.quote(changes).await.unwrap();
        let of = |field: &str| super::amount(&answer, &format!("/details/currencyOut/{field}"));
        (of("minimumAmount") * super::I256::try_from(10_000).unwrap()) / of("amount")
    };
    let bps = |number: i64| super::I256::try_from(number).unwrap();
    // 2 % of what is offered, while that is near the market.
    assert_eq!(least(own(NATIVE), 10).await, bps(9_800));
    // A poor offer is held to 5 % below the market, or to itself.
    assert_eq!(least(own(NATIVE), 400).await, bps(9_895));
    assert_eq!(least(own(NATIVE), 900).await, bps(10_000));
    // What is hardly traded may lose more.
    assert_eq!(least(own(TOKEN), 900).await, bps(9_800));
    assert_eq!(least(own(TOKEN), 1_400).await, bps(9_883));
    let mut taken = own(NATIVE);
    taken["overridePriceImpact"] = json!(true);
    assert_eq!(least(taken, 900).await, bps(9_800));
}

#[tokio::test]
async fn quotes_say_when_the_solver_may_not_pay() {
    let fixture = Fixture::default();
    for (admission, code) in [
        (Admission::Capped, Code::RouteTemporarilyRestricted),
        (Admission::Held, Code::RouteTemporarilyRestricted),
        (Admission::Paused, Code::ServiceUnavailable),
    ] {
        fixture.with(|world| world.admission = admission);
        assert_eq!(refused(&fixture, json!({})).await.code, code);
        // The user's own transactions are nobody's exposure.
        let own = json!({"destinationChainId": 31_001, "recipient": OTHER});
        assert!(fixture.quote(own).await.is_ok());
    }
}

/// Exchanges to plain accounts do not wait for what runs code, nor the other way round; what pays a token waits
/// for nothing.
#[tokio::test]
async fn quotes_wait_for_what_hands_over_as_they_do() {
    let fixture = Fixture::default();
    let [native, exchange] = [NATIVE, TOKEN].map(|to| json!({"destinationCurrency": to}));
    let calls = json!({"txs": [{"to": OTHER, "value": "0", "data": "0x01"}]});
    let plain = json!({});
    let every = [&native, &exchange, &calls, &plain];
    for (held, code, waits) in [
        (Hands::Code, false, [false, false, true, false]),
        (Hands::Account, false, [true, true, false, false]),
        (Hands::Code, true, [true, true, true, false]),
        (Hands::Account, true, [false; 4]),
    ] {
        fixture.with(|world| (world.held, world.code) = (Some(held), code));
        for (with, waits) in every.into_iter().zip(waits) {
            let refused = fixture.quote(with.clone()).await.err();
            let restricted = waits.then_some(Code::RouteTemporarilyRestricted);
            let why = refused.map(|refused| refused.code);
            assert_eq!(why, restricted, "{held:?} {code} {with}");
        }
    }
}

/// What pays a token plainly has what is kept, too.
#[tokio::test]
async fn who_makes_calls_is_quoted_only_while_their_gas_is_there() {
    let fixture = Fixture::default();
    let calls = json!({"txs": [{"to": OTHER, "value": "0", "data": "0x01"}]});
    let native = json!({"destinationCurrency": NATIVE});
    let short = Some(Code::InsufficientLiquidity);
    for (there, fees, code, plain) in [
        (U256::ZERO, U256::ZERO, short, short),
        (U256::ZERO, U256::MAX, short, None),
        (U256::MAX, U256::MAX, None, None),
    ] {
        fixture.with(|world| (world.native, world.fees) = (there, fees));
        for (with, code) in [(&calls, code), (&native, code), (&json!({}), plain)] {
            let refused = fixture.quote(with.clone()).await.err();
            assert_eq!(refused.map(|refused| refused.code), code, "{with}");
        }
    }
}

#[tokio::test]
async fn no_quote_is_taken_below_the_reserve() {
    let fixture = Fixture::default();
    let directory = tempfile::tempdir().unwrap();
    let reserve = |least| {
        let reserve = Reserve::new(vec![directory.path().to_owned()], least);
        reserve.look().unwrap();
        Arc::new(reserve)
    };
    let known = request::fixtures::request(9);
    let all = fixture.requests();
    all.insert(&known, Batch::new()).await.unwrap();
    for (least, code) in [(u64::MAX, Some(Code::DiskReserve)), (1, None)] {
        fixture.with(|world| world.reserve = reserve(least));
        let refused = fixture.quote(json!({})).await.err();
        assert_eq!(refused.map(|refused| refused.code), code);
        // What was promised goes on.
        let all = fixture.requests();
        let fail = |facts: &mut Facts| facts.failure = Some(FailReason::Unknown);
        let recorded = all.record(&known.id, 1, Batch::new(), fail);
        assert!(recorded.await.is_ok());
    }
}

#[tokio::test]
async fn callers_with_much_data_are_refused_when_their_part_is_full_and_nobody_else() {
    let fixture = Fixture::default();
    let store = fixture.with(|world| world.store.clone());
    let budget = Budget {
        each: 20_000,
        all: 1 << 20,
    };
    let requests = Requests::open_within(store, budget).await.unwrap();
    fixture.with(|world| world.requests = Some(requests));
    let quoter = fixture.quoter();
    let ask = async |by: u64, bytes: usize| {
        let words = (0..bytes.div_ceil(32))
            .map(|at| keccak256([at.to_be_bytes(), by.to_be_bytes()].concat()));
        let data: Vec<u8> = words.flat_map(|word| word.0).collect();
        let data = alloy::hex::encode_prefixed(data);
        let body = changed(json!({"txs": [{"to": OTHER, "data": data}]}));
        let asked = quoter.quote_for(&body, Caller { key: None, by }).await;
        asked
            .map(drop)
            .map_err(|refused| (refused.code, refused.status_code))
    };
    let full = Err((Code::TooManyLargeQuotes, 429));
    assert_eq!(ask(1, 12_000).await, Ok(()));
    assert_eq!(ask(1, 12_000).await, full);
    assert_eq!(ask(1, 500).await, Ok(()));
    assert_eq!(ask(2, 12_000).await, Ok(()));
}

#[tokio::test]
async fn of_authorizations_nothing_is_kept_but_what_is_used() {
    let one = super::authorization(|_| ());
    let mut padded = one.clone();
    padded["note"] = json!("x".repeat(100_000));
    let fixture = Fixture::default();
    let answer = fixture.quote(json!({"authorizationList": [padded]})).await;
    let request = super::stored(&fixture, &answer.unwrap()).await;
    assert_eq!(request.authorizations, [one]);
}

#[tokio::test]
async fn a_quote_looks_for_the_same_way_once() {
    let fixture = Fixture::default();
    let swapped = json!({"originCurrency": TOKEN, "destinationCurrency": TOKEN,
                         "tradeType": "EXACT_OUTPUT", "amount": "1000000000000000000"});
    fixture.quote(swapped).await.unwrap();
    // What goes in on one side, what comes out on the other; the rest goes the ways that were found.
    let searches = fixture.with(|world| world.searches);
    assert_eq!(searches, 2);
}

#[tokio::test]
async fn strangers_quotes_hold_nothing_and_those_of_keys_their_part() {
    let fixture = Fixture::default();
    let there = U256::from(1_000_000_000_u64);
    fixture.with(|world| world.available = Some(there));
    let quoter = fixture.quoter();
    let ask = async |key: Option<&str>, amount: &str| {
        let body = changed(json!({"amount": amount}));
        quoter.quote(&body, key).await.map(drop)
    };
    // All of it, again and again.
    for _ in 0..3 {
        assert_eq!(ask(None, "1000000000").await, Ok(()));
    }
    assert_eq!(ask(Some("app"), "90000000").await, Ok(()));
    let refused = ask(None, "1000000000").await.unwrap_err();
    assert_eq!(refused.code, Code::InsufficientLiquidity);
    assert_eq!(ask(None, "900000000").await, Ok(()));
    // More than a key's part is quoted, and not held.
    assert_eq!(ask(Some("app"), "900000000").await, Ok(()));
    assert_eq!(ask(None, "900000000").await, Ok(()));
}

/// A key that deposits nothing holds nothing for as long as its deposit might wait for a block.
#[tokio::test]
async fn what_a_key_holds_is_free_when_its_quotes_time_is_over() {
    let market = || {
        let mut file = market_file();
        file[0]["currencies"][1]["priceHolds"] = json!({"seconds": 120, "waiting": 3_600});
        file
    };
    let fixture = Fixture::default();
    fixture.with(|world| {
        world.market = market;
        world.available = Some(U256::from(1_000_000_000_u64));
    });
    let quoter = fixture.quoter();
    let held = changed(json!({"amount": "90000000"}));
    quoter.quote(&held, Some("app")).await.unwrap();
    let all = changed(json!({"amount": "1000000000"}));
    for (passed, code) in [(120, Some(Code::InsufficientLiquidity)), (121, None)] {
        PASSED.set(passed);
        let refused = quoter.quote(&all, None).await.err();
        PASSED.set(0);
        assert_eq!(refused.map(|refused| refused.code), code, "{passed}");
    }
}

#[tokio::test]
async fn poor_offer_of_one_provider_raises_no_maximum_above_the_price_sources() {
    let most = async |loss: u64| {
        let fixture = Fixture::default();
        fixture.with(|world| world.loss = Some(loss));
        let changes = json!({"destinationChainId": 31_001, "destinationCurrency": NATIVE,
                             "tradeType": "EXACT_OUTPUT", "amount": "1000000000000000000"});
        let answer = fixture.quote(changes).await.unwrap();
        let of = |pointer: &str| super::amount(&answer, pointer);
        let more = of("/details/slippageTolerance/origin/value");
        let input = of("/details/currencyIn/amount");
        (more * super::I256::try_from(10_000).unwrap()) / input
    };
    let bps = |number: i64| super::I256::try_from(number).unwrap();
    assert_eq!(most(10).await, bps(200));
    assert_eq!(most(900).await, bps(0));
}

#[tokio::test]
async fn what_its_chain_charges_for_a_fills_bytes_is_charged() {
    for changes in [json!({}), json!({"txs": [{"to": OTHER, "data": "0x12"}]})] {
        let gas = async |fee: Option<u64>| {
            let fixture = Fixture::default();
            fixture.with(|world| world.data_fee = fee);
            let answer = fixture.quote(changes.clone()).await.unwrap();
            let request = super::stored(&fixture, &answer).await;
            assert_eq!(request.fill_besides, U256::from(fee.unwrap_or_default()));
            super::amount(&answer, "/fees/relayerGas/amount")
        };
        // A thousandth of an ether at $2,500.
        let more = gas(Some(1_000_000_000_000_000)).await - gas(None).await;
        assert_eq!(more, super::I256::try_from(2_500_000).unwrap(), "{changes}");
    }
}

#[tokio::test]
async fn the_real_payment_is_simulated() {
    let changes = json!({"originCurrency": NATIVE, "destinationCurrency": NATIVE,
                         "amount": "1000000000000000000"});
    let fixture = Fixture::default();
    // The recipient's code wakes up for more than one unit.
    fixture.with(|world| world.gas_of_more = Some(500_000));
    let answer = fixture.quote(changes).await.unwrap();
    assert_eq!(super::stored(&fixture, &answer).await.fill_work, 500_000);
    let cost = super::amount(&answer, "/fees/relayerGas/amount");
    assert_eq!(
        cost,
        super::I256::try_from(500_000_u64 * 1_100_000_000).unwrap()
    );
}

#[tokio::test]
async fn where_no_node_estimates_a_payment_takes_what_is_usual_if_that_is_all() {
    let fixture = Fixture::default();
    fixture.with(|world| world.mute = true);
    let answer = fixture.quote(json!({})).await.unwrap();
    assert_eq!(super::stored(&fixture, &answer).await.fill_work, 75_000);
    let calls = json!({"txs": [{"to": OTHER, "data": "0x12"}]});
    assert_eq!(refused(&fixture, calls).await.code, Code::RpcHttpError);
    // Nobody knows what bytes usually cost.
    fixture.with(|world| world.data_fee = Some(1));
    assert_eq!(refused(&fixture, json!({})).await.code, Code::RpcHttpError);
}

#[tokio::test]
async fn one_provider_of_three_prices_no_gas() {
    let honest = quoted_gas(None).await;
    for lie in [0, 1_000_000_000_000] {
        let fixture = Fixture::default();
        fixture.with(|world| {
            world.others = Some(world.fee);
            world.fee = lie;
        });
        let answer = fixture.quote(json!({})).await.unwrap();
        let gas = super::amount(&answer, "/fees/relayerGas/amount");
        assert_eq!(gas, honest, "{lie}");
    }
}

/// It says that everything is allowed already, and that a contract is a plain account.
#[tokio::test]
async fn one_provider_of_three_leaves_no_step_out() {
    for code in [false, true] {
        let mut steps = Vec::new();
        for lies in [false, true] {
            let fixture = Fixture::default();
            fixture.with(|world| {
                (world.others, world.lies, world.code) = (Some(world.fee), lies, code);
            });
            let answer = fixture
                .quote(json!({"explicitDeposit": !code}))
                .await
                .unwrap();
            steps.push(super::ids(&answer).join(" "));
        }
        assert_eq!(steps[0], "approve deposit", "{code}");
        assert_eq!(steps[0], steps[1], "{code}");
    }
}

/// With less than it takes a transaction fails, and its sender pays for it all the same.
#[tokio::test]
async fn one_provider_of_three_does_not_decide_the_gas_to_sign() {
    for lies in [false, true] {
        let fixture = Fixture::default();
        fixture.with(|world| {
            (world.others, world.lies, world.gas) = (Some(world.fee), lies, 2 * GAS);
        });
        let answer = fixture.quote(json!({})).await.unwrap();
        assert_eq!(super::ids(&answer), ["approve", "deposit"]);
        let gas = |at: usize| answer["steps"][at]["items"][0]["data"].get("gas");
        let roomy = json!((2 * GAS + GAS / 2).to_string());
        assert_eq!(gas(0), Some(&roomy), "{lies}");
        // What comes after it cannot be estimated yet.
        let usual = fixture.repricer().chains["origin"].providers.usual;
        let most = json!((3 * usual(Work::Deposit)).to_string());
        assert_eq!(gas(1), Some(&most), "{lies}");
    }
}

#[tokio::test]
async fn one_provider_of_two_has_nobody_sign_less_gas_than_is_usual() {
    for spares in [1, GAS / 2 - 1, GAS / 2, GAS * 3 / 5] {
        let fixture = Fixture::default();
        fixture.with(|world| world.spares = Some(spares));
        let answer = fixture.quote(json!({})).await.unwrap();
        let usual = fixture.repricer().chains["origin"].providers.usual;
        for (at, work) in [Work::Approve, Work::Deposit].into_iter().enumerate() {
            let gas = &answer["steps"][at]["items"][0]["data"]["gas"];
            let gas: u64 = gas.as_str().unwrap().parse().unwrap();
            assert!(gas >= usual(work), "{spares}: {gas}");
        }
    }
}

async fn quoted_gas(others: Option<u128>) -> super::I256 {
    let fixture = Fixture::default();
    fixture.with(|world| world.others = others);
    let answer = fixture.quote(json!({})).await.unwrap();
    super::amount(&answer, "/fees/relayerGas/amount")
}

#[tokio::test]
async fn nothing_is_quoted_where_the_market_file_is_not_what_the_chain_says() {
    for network in ["origin", "destination"] {
        let fixture = Fixture::default();
        fixture.with(|world| world.unsound = Some(network.into()));
        let refused = refused(&fixture, json!({})).await;
        assert_eq!(refused.code, Code::ServiceUnavailable, "{network}");
    }
}

#[tokio::test]
async fn nothing_is_quoted_where_no_blocks_are_made() {
    for network in ["origin", "destination", "elsewhere"] {
        let fixture = Fixture::default();
        fixture.with(|world| world.stalled = Some(network.into()));
        let asked = ask(&fixture.quoter(), json!({})).await;
        let said = asked.err().map(|refused| (refused.code, refused.message));
        let expected = (Code::ServiceUnavailable, format!("{network} stands"));
        assert_eq!(said, Some(expected).filter(|_| network != "elsewhere"));
    }
}

/// From USDC to ETH, whose price moves, or to USDC, which is level with it.
#[tokio::test]
async fn who_can_let_his_own_fill_fail_pays_for_the_choice() {
    let calls = json!([{"to": OTHER, "data": "0x12"}]);
    let with = |fields: Value, more: Value| {
        let mut changes = fields;
        for (name, value) in more.as_object().unwrap() {
            changes[name] = value.clone();
        }
        changes
    };
    let given = async |changes: Value, code: bool| {
        let fixture = Fixture::default();
        fixture.with(|world| (world.code, world.gas) = (code, 100_000));
        let answer = fixture.quote(changes).await.unwrap();
        super::amount(&answer, "/details/currencyOut/amount")
    };
    let eth = json!({"destinationCurrency": NATIVE, "recipient": OTHER});
    let plain = given(eth.clone(), false).await;
    let coded = given(eth.clone(), true).await;
    let called = given(with(eth, json!({"txs": calls})), false).await;
    // What a major currency and a stable one may move by until the deposit is final.
    for less in [coded, called] {
        let (lost, all) = ((plain - less).into_raw(), plain.into_raw());
        let lost = (lost * U256::from(1_000_000) / all).to::<u64>();
        assert!((300..=1_500).contains(&lost), "{lost}");
    }
    let level = json!({"recipient": OTHER});
    let plain = given(level.clone(), false).await;
    assert_eq!(given(level.clone(), true).await, plain);
    assert_eq!(
        given(with(level, json!({"txs": calls})), false).await,
        plain
    );
}

/// From USDC to what the solver has ETH exchanged for: whoever has the pool may let that fail until the deposit
/// is final.
#[tokio::test]
async fn who_may_own_the_pool_pays_for_the_choice() {
    fn paced(seconds: u64) -> Value {
        let mut file = market_file();
        file[0]["blockSeconds"] = json!(seconds);
        file[1]["currencies"][1]["solver"] = json!(false);
        file
    }
    fn quick() -> Value {
        paced(1)
    }
    fn slow() -> Value {
        paced(900)
    }
    let given = async |market: fn() -> Value, to: &str| {
        let fixture = Fixture::default();
        fixture.with(|world| world.market = market);
        let answer = fixture.quote(json!({"destinationCurrency": to})).await;
        super::amount(&answer.unwrap(), "/details/currencyOut/amount")
    };
    let (most, less) = (given(quick, TOKEN).await, given(slow, TOKEN).await);
    let lost = ((most - less).into_raw() * U256::from(1_000_000) / most.into_raw()).to::<u64>();
    assert!((2_000..=5_500).contains(&lost), "{lost}");
    // Who is paid in ETH itself, or in what it is wrapped in, waits for no pool.
    for to in [NATIVE, WETH] {
        assert_eq!(given(slow, to).await, given(quick, to).await, "{to}");
    }
}
