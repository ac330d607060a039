//! Quotes, index, solver and settlement, put together over chains, a store, and what is outside.

mod accounts;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use anyhow::Context;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use vm::{
    Address, B256, EvmAddress,
    trade::{Failover, SwapAccess, TradingProvider},
};

use super::{
    notify::Task,
    parts::Trading,
    pricing::{self, Funds, Late, Settlement},
};
use crate::{
    api::intents::{State, retirement::Throttle},
    chains::{Chains, HeadCalls, Opened, asking},
    index::{
        self, Wakeup,
        confirm::{self, Confirmer},
        submitted::{self, Transactions},
        tail::Tail,
        troubles::Troubles,
        tx_details::Observer,
    },
    market::{Market, Network},
    price::PriceSource,
    quote::{
        context::Deps,
        pricing_chain::{Capacity, PricingChain},
        reprice::Repricer,
        service::Quoter,
        swaps::Swaps,
    },
    sign::Signer,
    solver::{
        Solver,
        account::SolverAccount,
        breaker::Breaker,
        chain,
        exposure::Exposure,
        settle::{
            Settler,
            oracle::{Carrier, OracleClient},
        },
        worker::{Pace, Worker},
    },
    store::{Store, listing::Listing, requests::Requests, reserve::Reserve, retention::Sweep},
};

/// What the parts ask of the world besides chains and store.
#[derive(Clone)]
pub struct Outside {
    /// Unix milliseconds.
    pub clock: fn() -> u64,
    /// 32 bytes that nobody can guess; `None` where there are none.
    pub entropy: fn() -> Option<B256>,
    /// Asks HTTP services for prices; follows no redirects.
    pub client: reqwest::Client,
    /// Brings questions to the oracle that attests for the settler; `None`: settlements wait.
    pub oracle: Option<Arc<dyn Carrier>>,
    pub pace: Pace,
}

/// Quotes, index, solver and settlement at work; nobody is told of them yet.
pub struct Engine {
    pub state: Arc<State>,
    pub solver: Arc<Solver>,
    /// What the operator asks the index.
    pub index: index::admin::AdminHandle,
    pub tasks: Vec<Task>,
    /// Of every network, and of the settlement chain.
    pub lanes: Vec<Arc<SolverAccount>>,
}

/// What an engine stands on.
pub struct Base {
    pub store: Arc<dyn Store>,
    /// Below it no quotes are taken.
    pub reserve: Arc<Reserve>,
    /// Where executions are settled.
    pub contract: EvmAddress,
    pub outside: Outside,
    /// Where tails tell what keeps them from going on.
    pub troubles: Arc<Troubles>,
    pub shutdown: CancellationToken,
}

/// A network of the market with its chain.
struct TradedNetwork<'a> {
    network: &'a Network,
    opened: &'a Opened,
    providers: Failover,
    /// The same, for what strangers have asked.
    asking: Failover,
    wakeup: Arc<Wakeup>,
}

/// What all parts share.
struct EngineContext<'a> {
    trading: &'a Trading,
    places: Vec<TradedNetwork<'a>>,
    requests: Requests,
    listing: Listing,
    signer: Arc<dyn Signer>,
    prices: Arc<dyn PriceSource>,
    settlement: Settlement,
    outside: Outside,
    troubles: Arc<Troubles>,
    shutdown: CancellationToken,
}

/// Puts quotes, index, solver and settlement together.
pub async fn engine(trading: &Trading, chains: &Chains, base: Base) -> anyhow::Result<Engine> {
    let places = places(&trading.market, chains)?;
    let head_calls = |name: &str| head_calls(&places, name);
    let prices = pricing::prices(trading, head_calls, &base.outside.client)?;
    let prices: Arc<dyn PriceSource> = Arc::new(prices);
    let context = EngineContext {
        settlement: pricing::settlement(trading, chains, &prices),
        prices,
        listing: Listing::open(base.store.clone()).await?,
        requests: Requests::open(base.store).await?.with_reserve(base.reserve),
        signer: trading.signer.clone(),
        places,
        trading,
        outside: base.outside,
        troubles: base.troubles,
        shutdown: base.shutdown,
    };
    let lanes = context.lanes().await?;
    let exposure = Arc::new(Exposure::default());
    let settling = (base.contract, &exposure);
    let settler = context.settler(chains, &lanes, settling).await?;
    let mut every = accounts::all(&lanes, settler.as_ref());
    let former = context.former(&every).await?;
    every.extend(former.iter().cloned());
    let solver = Arc::new(Solver {
        requests: context.requests.clone(),
        lanes,
        former,
        keys: context.keys(),
        prices: context.prices.clone(),
        settlement: context.settlement.own.clone(),
        repricing: Arc::new(Late(context.repricer())),
        exposure,
        patience: trading.patience(),
        gap_limit: trading.gap_limit,
        breaker: Mutex::new(Breaker::of(&trading.market)),
        books: watch::Sender::new(None),
    });
    let transactions = Arc::new(context.transactions());
    let mut tasks = context.index(&transactions);
    let worker = Worker {
        solver: solver.clone(),
        settler,
        pace: context.outside.pace,
        clock: context.outside.clock,
    };
    tasks.push((
        "solver".into(),
        Box::pin(worker.run(context.shutdown.clone())),
    ));
    let state = Arc::new(context.state(solver.clone(), transactions)?);
    Ok(Engine {
        index: context.index_desk(),
        state,
        solver,
        tasks,
        lanes: every,
    })
}

fn places<'a>(market: &'a Market, chains: &'a Chains) -> anyhow::Result<Vec<TradedNetwork<'a>>> {
    let opened = market.networks().iter().filter_map(|network| {
        let opened = chains.get(&network.name)?.chain.as_ref().ok()?;
        let traded = !opened.trades.is_empty();
        traded.then_some((network, opened))
    });
    let places = opened.map(|(network, opened)| {
        let providers = |trades: &[TradingProvider]| {
            let trades = (trades.to_vec(), opened.required);
            chain::providers(network, &opened.chain, trades)
        };
        Ok(TradedNetwork {
            network,
            opened,
            providers: providers(&opened.trades)?,
            asking: providers(&opened.asking)?,
            wakeup: Arc::new(Wakeup::default()),
        })
    });
    places.collect()
}

fn head_calls(places: &[TradedNetwork<'_>], network: &str) -> Option<HeadCalls> {
    Some(placed(places, network)?.opened.head_calls())
}

fn placed<'p, 'a>(places: &'p [TradedNetwork<'a>], network: &str) -> Option<&'p TradedNetwork<'a>> {
    let mut places = places.iter();
    places.find(|place| place.network.name == network)
}

fn swaps(market: &Market, places: &[TradedNetwork<'_>]) -> anyhow::Result<Swaps> {
    let access = |name: &str| {
        Some(SwapAccess {
            head_calls: placed(places, name)?.opened.asking_head_calls(),
            keyed: asking::is_keyed,
        })
    };
    Swaps::open(market, access).context("MARKET_FILE")
}

impl EngineContext<'_> {
    async fn settler(
        &self,
        chains: &Chains,
        lanes: &HashMap<String, Arc<SolverAccount>>,
        (contract, exposure): (EvmAddress, &Arc<Exposure>),
    ) -> anyhow::Result<Option<Arc<Settler>>> {
        let Some(oracle) = self.outside.oracle.clone() else {
            tracing::warn!("SOLVER_ORACLE_URL is not set: what the solver pays is not settled");
            return Ok(None);
        };
        let hub = chains
            .hub()
            .map_err(|why| anyhow::anyhow!("settlement chain: {why}"))?;
        let site = pricing::settling(hub, &hub.trades)?;
        // Where the settlement chain is traded on, too, its nonces are in that lane already.
        let traded = lanes.values().find(|lane| lane.site.number == site.number);
        let lane = match traded {
            Some(lane) => lane.clone(),
            None => Arc::new(self.lane(site).await?),
        };
        Ok(Some(Arc::new(Settler {
            requests: self.requests.clone(),
            lane,
            oracle: OracleClient::over(oracle),
            keys: self.keys(),
            contract: Address::from_parts(&format!("{contract:#x}"), contract.to_vec()),
            exposure: exposure.clone(),
        })))
    }

    fn transactions(&self) -> Transactions {
        let networks = self.places.iter().map(|place| {
            let network = submitted::Network {
                chain: place.opened.chain.clone(),
                wakeup: place.wakeup.clone(),
                block_seconds: place.network.block_seconds,
                fresh: true,
            };
            (place.network.name.clone(), network)
        });
        let market = self.trading.market.clone();
        Transactions::new(market, networks.collect(), self.requests.clone())
    }

    /// Who keeps the transactions of a network in full, for listings.
    fn observer(&self, place: &TradedNetwork<'_>) -> Observer {
        let (family, trades) = (place.opened.chain.spec.family, &place.opened.trades);
        let providers = trades.iter().map(|trade| trade.inspector.clone());
        let requests = self.requests.clone();
        let prices = self.prices.clone();
        Observer::new(&place.network.name, family, providers.collect(), requests).pricing(
            place.network,
            prices,
            self.outside.clock,
        )
    }

    /// Tails, observers, the confirmer, and the search for transactions that somebody told of.
    fn index(&self, transactions: &Arc<Transactions>) -> Vec<Task> {
        let (mut tasks, clock) = (Vec::<Task>::new(), self.outside.clock);
        for place in &self.places {
            let scanners = place
                .opened
                .trades
                .iter()
                .map(|trade| trade.scanner.clone());
            let (network, wakeup) = (place.network.clone(), place.wakeup.clone());
            let tail = Tail::new(network, scanners.collect(), self.requests.clone(), wakeup)
                .alone(place.opened.required < 2)
                .telling(self.troubles.clone());
            let name = format!("index of {}", place.network.name);
            tasks.push((name, Box::pin(tail.run(clock, self.shutdown.clone()))));
            let observing = self.observer(place).run(clock, self.shutdown.clone());
            let name = format!("witnesses of {}", place.network.name);
            tasks.push((name, Box::pin(observing)));
        }
        let confirmed = self.places.iter().map(|place| {
            let network = confirm::Network {
                chain: place.opened.chain.clone(),
                wakeup: place.wakeup.clone(),
            };
            (place.network.name.clone(), network)
        });
        let confirmer = Confirmer::new(self.requests.clone(), confirmed.collect());
        let confirming = confirmer.run(clock, self.shutdown.clone());
        tasks.push(("confirmer".into(), Box::pin(confirming)));
        let looking = transactions.clone().run(clock, self.shutdown.clone());
        tasks.push(("transactions".into(), Box::pin(looking)));
        let store = self.requests.store().clone();
        let sweeping = Sweep::of(&self.requests).run(store, clock, self.shutdown.clone());
        tasks.push(("retention".into(), Box::pin(sweeping)));
        tasks
    }

    fn index_desk(&self) -> index::admin::AdminHandle {
        let wakeups = self.places.iter();
        let wakeups = wakeups.map(|place| (place.network.name.clone(), place.wakeup.clone()));
        index::admin::AdminHandle::new(
            self.requests.clone(),
            wakeups.collect(),
            self.troubles.clone(),
        )
    }

    /// As the solver asks of them, or else as strangers have them asked.
    fn venues(&self, own: bool) -> HashMap<String, PricingChain> {
        let venues = self.places.iter().map(|place| {
            let (trades, providers) = match own {
                true => (&place.opened.trades, &place.providers),
                false => (&place.opened.asking, &place.asking),
            };
            let venue = PricingChain {
                spec: place.opened.chain.spec.clone(),
                trades: trades.clone(),
                providers: providers.clone(),
            };
            (place.network.name.clone(), venue)
        });
        venues.collect()
    }

    fn repricer(&self) -> Repricer {
        Repricer {
            market: self.trading.market.clone(),
            venues: self.venues(true),
            prices: self.prices.clone(),
            settlement: self.settlement.own.clone(),
        }
    }

    fn state(&self, solver: Arc<Solver>, transactions: Arc<Transactions>) -> anyhow::Result<State> {
        let venues = self.venues(false);
        let market = &self.trading.market;
        let capacity: Arc<dyn Capacity> = Arc::new(Funds {
            market: market.clone(),
            solver,
            production: self.trading.production,
            clock: self.outside.clock,
        });
        let swaps = swaps(market, &self.places)?;
        let quoter = Quoter::new(Deps {
            market: market.clone(),
            venues: venues.clone(),
            prices: self.prices.clone(),
            settlement: self.settlement.asked.clone(),
            swaps: swaps.clone(),
            capacity: capacity.clone(),
            signer: self.signer.clone(),
            solver_chain: self.trading.solver_chain.clone(),
            requests: self.requests.clone(),
            validity: self.trading.quote_validity,
            clock: self.outside.clock,
            entropy: self.outside.entropy,
        });
        Ok(State {
            market: market.clone(),
            venues,
            prices: self.prices.clone(),
            swaps,
            capacity,
            quoter,
            requests: self.requests.clone(),
            listing: self.listing.clone(),
            retiring: Throttle::new(self.trading.retirement),
            transactions,
            recent: Default::default(),
            looks: Default::default(),
            troubles: self.troubles.clone(),
            solver: format!("{:#x}", self.signer.address()),
            clock: self.outside.clock,
        })
    }
}
