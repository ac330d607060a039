//! Searches over a scripted quoter: the best way is found with few questions.

use std::{
    collections::{BTreeSet, HashMap},
    num::NonZero,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use alloy::{
    primitives::{Address as Token, U256},
    sol_types::{SolCall, SolValue},
};
use proptest::prelude::*;

use super::{
    super::quoter::{
        factoryCall, getPoolCall, quoteExactInputCall, quoteExactInputSingleCall,
        quoteExactOutputCall, quoteExactOutputSingleCall,
    },
    *,
};
use crate::{
    Address, Bytes,
    testing::{Answers, Script},
    trade::{Call, Called, Contracts, HeadCalls, Revert, SwapAccess, SwapContracts, SwapSpec},
};

tokio::task_local! {
    static KEYED: bool;
}

const FEES: [u32; 4] = [100, 500, 3000, 10_000];
const FACTORY: Token = Token::repeat_byte(9);
const INPUT: Token = Token::with_last_byte(20);
const OUTPUT: Token = Token::with_last_byte(21);
/// The wrapped currency, and three others.
const HUBS: [u8; 4] = [1, 4, 5, 6];

/// What a pool gives for a thousand, by where it leads from and to, and its fee.
type Pools = HashMap<(Token, Token, u32), u64>;

#[derive(Default)]
struct Node {
    pools: Mutex<Pools>,
    /// Questions about amounts, about pools, and round trips.
    quotes: AtomicUsize,
    looks: AtomicUsize,
    rounds: AtomicUsize,
    slow: bool,
    /// Says that there are no pools.
    hides: bool,
    /// Says that they are registered there.
    factory: Option<Token>,
    under_way: AtomicUsize,
    most: AtomicUsize,
}

impl Node {
    fn rate(&self, from: Token, to: Token, fee: u32) -> Option<U256> {
        let rate = self.pools.lock().unwrap().get(&(from, to, fee)).copied();
        rate.map(U256::from)
    }

    /// What the pool gives or takes, as the quoter says it.
    fn single(&self, ends: (Token, Token), fee: u32, amount: U256, exact: bool) -> Option<Bytes> {
        let rate = self.rate(ends.0, ends.1, fee)?;
        let whole = U256::from(1_000);
        let amount = match exact {
            true => amount * rate / whole,
            false => (amount * whole).div_ceil(rate),
        };
        let word = |number: u64| U256::from(number);
        Some(
            [amount, word(77), word(1), word(50_000)]
                .abi_encode()
                .into(),
        )
    }

    /// The same pool after pool, which way `path` leads.
    fn path(&self, path: &[u8], mut amount: U256, exact: bool) -> Option<Bytes> {
        let route = Route::decode(path)?;
        for (ends, fee) in route.tokens.windows(2).zip(&route.fees) {
            let ends = if exact {
                (ends[0], ends[1])
            } else {
                (ends[1], ends[0])
            };
            let said = self.single(ends, *fee, amount, exact)?;
            amount = U256::from_be_slice(&said[..32]);
        }
        let (prices, ticks) = (vec![U256::from(77)], vec![U256::from(1)]);
        Some(
            (amount, prices, ticks, U256::from(90_000))
                .abi_encode_params()
                .into(),
        )
    }

    fn said(&self, call: &Call) -> Option<Bytes> {
        let data = &call.data;
        let selector: [u8; 4] = data[..4].try_into().unwrap();
        if selector == factoryCall::SELECTOR {
            return Some(self.factory.unwrap_or(FACTORY).abi_encode().into());
        }
        if selector == getPoolCall::SELECTOR {
            self.looks.fetch_add(1, Relaxed);
            let asked = getPoolCall::abi_decode(data).unwrap();
            let fee = asked.fee.to::<u32>();
            let there = self.rate(asked.one, asked.other, fee).is_some()
                || self.rate(asked.other, asked.one, fee).is_some();
            let ours = call.to == address(FACTORY) && !self.hides;
            let pool = if there && ours {
                Token::repeat_byte(8)
            } else {
                Token::ZERO
            };
            return Some(pool.abi_encode().into());
        }
        self.quotes.fetch_add(1, Relaxed);
        match selector {
            quoteExactInputSingleCall::SELECTOR => {
                let asked = quoteExactInputSingleCall::abi_decode(data).unwrap().params;
                let ends = (asked.input, asked.output);
                self.single(ends, asked.fee.to(), asked.amount, true)
            }
            quoteExactOutputSingleCall::SELECTOR => {
                let asked = quoteExactOutputSingleCall::abi_decode(data).unwrap().params;
                let ends = (asked.input, asked.output);
                self.single(ends, asked.fee.to(), asked.amount, false)
            }
            quoteExactInputCall::SELECTOR => {
                let asked = quoteExactInputCall::abi_decode(data).unwrap();
                self.path(&asked.path, asked.amount, true)
            }
            quoteExactOutputCall::SELECTOR => {
                let asked = quoteExactOutputCall::abi_decode(data).unwrap();
                self.path(&asked.path, asked.amount, false)
            }
            other => panic!("{other:?}"),
        }
    }
}

/// What a provider says to several calls at once.
async fn answer(node: &Script<Arc<Node>>, calls: &[Call]) -> Vec<Called> {
    node.rounds.fetch_add(1, Relaxed);
    let now = node.under_way.fetch_add(calls.len(), Relaxed) + calls.len();
    node.most.fetch_max(now, Relaxed);
    if node.slow {
        tokio::time::sleep(Duration::from_millis(900)).await;
    }
    node.under_way.fetch_sub(calls.len(), Relaxed);
    let revert = || Revert {
        reason: String::new(),
        data: Bytes::new(),
    };
    let answers = calls
        .iter()
        .map(|call| Ok(node.said(call).ok_or_else(revert)));
    answers.collect()
}

/// A provider over `node`.
fn provider(node: &Arc<Node>) -> Arc<dyn Contracts> {
    let answers = Answers {
        calls: Some(|own, calls| Box::pin(answer(own, calls))),
        ..Answers::default()
    };
    Script::at(1).answering(node.clone(), answers)
}

fn address(token: Token) -> Address {
    crate::ethereum::FAMILY
        .address(&format!("{token:#x}"))
        .unwrap()
}

fn exchange(node: &Arc<Node>) -> UniswapV3 {
    over(std::slice::from_ref(node))
}

/// In the order in which they are asked.
fn over(nodes: &[Arc<Node>]) -> UniswapV3 {
    let text = |number: u8| format!("{:#x}", Token::with_last_byte(number));
    let [wrapped, hubs @ ..] = HUBS.map(text);
    let contracts = SwapContracts {
        quoter: text(2),
        router: text(3),
        fees: FEES.to_vec(),
    };
    let spec = SwapSpec {
        network: "one".into(),
        wrapped: Some(wrapped),
        hubs: hubs.to_vec(),
        ..SwapSpec::default()
    };
    let access = SwapAccess {
        head_calls: HeadCalls {
            family: &crate::ethereum::FAMILY,
            contracts: nodes.iter().map(provider).collect(),
        },
        keyed: || KEYED.try_with(|keyed| *keyed).unwrap_or_default(),
    };
    UniswapV3 {
        name: NAME,
        opened: vec![Deployment::open(&spec, &contracts, &access).unwrap()],
    }
}

fn terms(amount: u64, exact_input: bool) -> SwapTerms {
    SwapTerms {
        network: "one".into(),
        input: address(INPUT),
        output: address(OUTPUT),
        amount: U256::from(amount),
        exact_input,
        most_pools: None,
    }
}

/// Where pools can be on a way from one end to the other.
fn legs() -> Vec<(Token, Token)> {
    let hubs = HUBS.map(Token::with_last_byte);
    let legs = hubs.iter().flat_map(|hub| [(INPUT, *hub), (*hub, OUTPUT)]);
    legs.chain([(INPUT, OUTPUT)]).collect()
}

/// Every pool there can be; each gives something else.
fn everywhere() -> Pools {
    let pools = legs()
        .into_iter()
        .flat_map(|(from, to)| FEES.map(|fee| (from, to, fee)));
    let pools = pools.enumerate();
    pools.map(|(at, pool)| (pool, 900 + at as u64)).collect()
}

fn node(pools: Pools) -> Arc<Node> {
    Arc::new(Node {
        pools: Mutex::new(pools),
        ..Node::default()
    })
}

/// The best of every combination of pools.
fn exhaustive(pools: &Pools, amount: U256, exact: bool) -> Option<U256> {
    let node = Node {
        pools: Mutex::new(pools.clone()),
        ..Node::default()
    };
    let mut ways = FEES.map(|fee| (vec![INPUT, OUTPUT], vec![fee])).to_vec();
    for hub in HUBS.map(Token::with_last_byte) {
        for one in FEES {
            ways.extend(FEES.map(|two| (vec![INPUT, hub, OUTPUT], vec![one, two])));
        }
    }
    let given = ways.into_iter().filter_map(|(tokens, fees)| {
        let route = Route { tokens, fees };
        let path = if exact {
            route.path()
        } else {
            route.reversed()
        };
        let said = node.path(&path, amount, exact)?;
        Some(U256::from_be_slice(&said[..32])).filter(|amount| !amount.is_zero())
    });
    if exact { given.max() } else { given.min() }
}

#[test]
fn two_rounds_find_what_all_combinations_hold() {
    let rates = proptest::collection::vec(proptest::option::of(1_u64..3_000), 36);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let runtime = runtime.unwrap();
    let everything = (rates, 1_u64..1_000_000, any::<bool>());
    proptest!(|((rates, amount, exact) in everything)| {
        let pools = legs().into_iter().flat_map(|(from, to)| FEES.map(|fee| (from, to, fee)));
        let pools = pools.zip(rates);
        let pools: Pools = pools.filter_map(|(pool, rate)| Some((pool, rate?))).collect();
        let expected = exhaustive(&pools, U256::from(amount), exact);
        let uniswap = exchange(&node(pools));
        let offer = runtime.block_on(uniswap.offer(&terms(amount, exact)));
        let of = |offer: &SwapOffer| if exact { offer.output } else { offer.input };
        prop_assert_eq!(offer.as_ref().ok().map(of), expected);
        if let Ok(offer) = offer {
            // The way that is written down gives it, too.
            let again = runtime.block_on(uniswap.again(&offer, &offer.terms)).unwrap();
            prop_assert_eq!((again.input, again.output), (offer.input, offer.output));
        }
    });
}

/// All pools there: each is asked once. All combinations would be 4 + 4 · 16 questions.
#[tokio::test]
async fn a_search_asks_each_pool_once_and_a_way_that_is_known_alone() {
    for exact in [true, false] {
        let node = node(everywhere());
        let uniswap = exchange(&node);
        let offer = uniswap.offer(&terms(1_000_000, exact)).await.unwrap();
        assert_eq!(node.quotes.swap(0, Relaxed), 36);
        // Where the quoter says that pools are, where they are, and two rounds.
        assert_eq!(node.rounds.swap(0, Relaxed), 4);
        uniswap.offer(&terms(2_000_000, exact)).await.unwrap();
        assert_eq!(
            (node.quotes.swap(0, Relaxed), node.rounds.swap(0, Relaxed)),
            (36, 2)
        );
        uniswap
            .again(&offer, &terms(1_010_000, exact))
            .await
            .unwrap();
        assert_eq!(
            (node.quotes.load(Relaxed), node.rounds.load(Relaxed)),
            (1, 1)
        );
        assert_eq!(node.looks.load(Relaxed), 36);
    }
}

/// However much better a way over a hub is, it is not looked for where one pool is all that is allowed.
#[tokio::test]
async fn a_bound_on_pools_leaves_longer_ways_out() {
    let hub = Token::with_last_byte(4);
    let over = [((INPUT, hub, 500), 1_000), ((hub, OUTPUT, 500), 1_000)];
    let straight = ((INPUT, OUTPUT, 500), 500);
    for exact in [true, false] {
        let bounded = |pools: u64| SwapTerms {
            most_pools: NonZero::new(pools),
            ..terms(1_000, exact)
        };
        let both = node(over.into_iter().chain([straight]).collect());
        let uniswap = exchange(&both);
        for (most, pools) in [(1, 1), (2, 2), (9, 2)] {
            let offer = uniswap.offer(&bounded(most)).await.unwrap();
            let way = Route::decode(&offer.route[1..]).unwrap();
            assert_eq!(way.fees.len(), pools, "{most}");
        }
        let long = exchange(&node(Pools::from(over)));
        assert_eq!(long.offer(&bounded(1)).await, Err(SwapError::NoRoute));
        assert!(long.offer(&bounded(2)).await.is_ok());
        // Pools beside the straight ones are not even asked.
        let all = node(everywhere());
        exchange(&all).offer(&bounded(1)).await.unwrap();
        let asked = (all.quotes.load(Relaxed), all.looks.load(Relaxed));
        assert_eq!(asked, (FEES.len(), FEES.len()));
    }
}

#[tokio::test(start_paused = true)]
async fn pools_that_are_not_there_are_not_asked_until_they_may_be() {
    let straight = (INPUT, OUTPUT, 3000);
    let node = node(Pools::from([(straight, 900)]));
    let uniswap = exchange(&node);
    for _ in 0..3 {
        let offer = uniswap.offer(&terms(1_000_000, true)).await.unwrap();
        assert_eq!(offer.output, U256::from(900_000));
    }
    assert_eq!(
        (node.quotes.swap(0, Relaxed), node.looks.swap(0, Relaxed)),
        (3, 36)
    );
    // More than it has is no sign that it is not there.
    node.pools.lock().unwrap().insert(straight, 0);
    let nothing = uniswap.offer(&terms(1, true)).await;
    assert_eq!(nothing, Err(SwapError::NoRoute));
    node.pools
        .lock()
        .unwrap()
        .extend([(straight, 900), ((INPUT, OUTPUT, 500), 990)]);
    let offer = uniswap.offer(&terms(1_000_000, true)).await.unwrap();
    assert_eq!(offer.output, U256::from(900_000));
    tokio::time::advance(Duration::from_secs(600)).await;
    let offer = uniswap.offer(&terms(1_000_000, true)).await.unwrap();
    assert_eq!(offer.output, U256::from(990_000));
}

/// Many quotes together ask no more than there are permits; who waits too long is told to come back.
#[tokio::test(start_paused = true)]
async fn questions_under_way_have_an_end() {
    let node = Arc::new(Node {
        pools: Mutex::new(everywhere()),
        slow: true,
        ..Node::default()
    });
    let uniswap = exchange(&node);
    let asked = (0..40).map(|at| {
        let terms = terms(1_000_000 + at, true);
        let uniswap = &uniswap;
        async move { uniswap.offer(&terms).await }
    });
    let answers = futures::future::join_all(asked).await;
    assert!(
        node.most.load(Relaxed) <= 128,
        "{}",
        node.most.load(Relaxed)
    );
    let refused = answers.iter().filter_map(|answer| answer.as_ref().err());
    let refused: BTreeSet<_> = refused.map(ToString::to_string).collect();
    let why = "swap source unavailable: too many questions under way, try again";
    assert_eq!(refused, BTreeSet::from([why.to_owned()]));
    assert!(answers.iter().any(Result::is_ok));
    // Later there are permits again.
    assert!(uniswap.offer(&terms(5, true)).await.is_ok());
}

/// One provider's word hides no pool, and no factory, from anybody.
#[tokio::test]
async fn a_pool_is_not_there_when_two_providers_say_so() {
    let honest = || node(everywhere());
    let liar = |hides, factory| {
        Arc::new(Node {
            pools: Mutex::new(everywhere()),
            hides,
            factory,
            ..Node::default()
        })
    };
    let elsewhere = Some(Token::repeat_byte(7));
    for liars in [
        vec![liar(true, None)],
        vec![liar(false, elsewhere)],
        vec![liar(true, elsewhere)],
    ] {
        let nodes = [liars, vec![honest(), honest()]].concat();
        let offer = over(&nodes).offer(&terms(1_000_000, true)).await;
        assert!(offer.is_ok(), "{offer:?}");
    }
    // Two who say that there are none are believed, and so is the only one.
    for nodes in [
        vec![liar(true, None), liar(true, None), honest()],
        vec![liar(true, None)],
    ] {
        let offer = over(&nodes).offer(&terms(1_000_000, true)).await;
        assert_eq!(offer, Err(SwapError::NoRoute));
    }
}

/// However many ask without a key, half of the permits are for those who have one.
#[tokio::test(start_paused = true)]
async fn strangers_searches_leave_keys_their_permits() {
    let node = Arc::new(Node {
        pools: Mutex::new(everywhere()),
        slow: true,
        ..Node::default()
    });
    let uniswap = exchange(&node);
    let ask = |keyed, at: u64| {
        let (terms, uniswap) = (terms(1_000_000 + at, true), &uniswap);
        KEYED.scope(keyed, async move { uniswap.offer(&terms).await.is_ok() })
    };
    let strangers = futures::future::join_all((0..40).map(|at| ask(false, at)));
    let key = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        ask(true, 99).await
    };
    let (strangers, key) = tokio::join!(strangers, key);
    assert!(key && strangers.contains(&false));
}
