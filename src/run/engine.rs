//! Quotes, index, solver and settlement, put together over chains, a store, and the rest of the world.

mod accounts;
mod networks;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use vm::{Address, B256, EvmAddress, trade::Mempool};

use self::networks::{TradedNetwork, traded_networks};
use super::{
    notify::Task,
    parts::Trading,
    pricing::{self, Funds, Late},
};
use crate::{
    api::intents::{State, retirement::Throttle},
    chains::Chains,
    index::{
        self,
        confirm::{self, Confirmer},
        mempool::{Pools, Watcher},
        submitted::{self, Transactions},
        tail::Tail,
        tail_states::TailStates,
        tx_details::Observer,
    },
    price::{PriceSource, SettlementPrice},
    quote::{
        context::Deps,
        pricing_chain::{Capacity, PricingChain},
        reprice::Repricer,
        service::Quoter,
    },
    solver::{
        Solver,
        account::SolverAccount,
        breaker::Breaker,
        exposure::Exposure,
        settle::{
            SENDING, Settler,
            oracle::{OracleClient, OracleTransport},
        },
        worker::{Pace, Worker},
    },
    store::{Store, listing::Listing, requests::Requests, reserve::Reserve, retention::Sweep},
};

/// What the parts use of the world besides chains and store.
#[derive(Clone)]
pub struct Outside {
    /// Unix milliseconds.
    pub clock: fn() -> u64,
    /// 32 bytes that nobody can guess; `None` where there are none.
    pub entropy: fn() -> Option<B256>,
    /// Asks HTTP services for prices; follows no redirects.
    pub client: reqwest::Client,
    /// Brings questions to the oracle that attests for the settler; `None`: settlements wait.
    pub oracle: Option<Arc<dyn OracleTransport>>,
    pub pace: Pace,
}

/// Quotes, index, solver and settlement. The caller runs the tasks and serves the state.
pub struct Engine {
    pub state: Arc<State>,
    pub solver: Arc<Solver>,
    /// The operator's access to the index.
    pub index: index::admin::AdminHandle,
    pub tasks: Vec<Task>,
    /// Of every network, and of the settlement chain.
    pub accounts: Vec<Arc<SolverAccount>>,
}

/// What an engine is built from.
pub struct Base {
    pub store: Arc<dyn Store>,
    /// Below it no quotes are taken.
    pub reserve: Arc<Reserve>,
    /// Where executions are settled.
    pub contract: EvmAddress,
    pub outside: Outside,
    /// Takes what keeps a network from being indexed.
    pub tail_states: Arc<TailStates>,
    pub shutdown: CancellationToken,
}

/// What all parts share.
struct EngineContext<'a> {
    trading: &'a Trading,
    networks: Vec<TradedNetwork<'a>>,
    requests: Requests,
    listing: Listing,
    prices: Arc<dyn PriceSource>,
    settlement: Arc<dyn SettlementPrice>,
    outside: Outside,
    tail_states: Arc<TailStates>,
    shutdown: CancellationToken,
}

/// Puts quotes, index, solver and settlement together.
pub async fn engine(trading: &Trading, chains: &Chains, base: Base) -> anyhow::Result<Engine> {
    trading.warn_about_networks(chains);
    let contract = base.contract;
    let context = context(trading, chains, base).await?;
    let present = context.solver_accounts().await?;
    let exposure = Arc::new(Exposure::default());
    let settler = context.settler(chains, &present, (contract, &exposure));
    let settler = settler.await?;
    let settling = accounts::settling(&present, settler.as_ref());
    let mut every = accounts::all(&present, settling.as_ref());
    let former = context.former(&every).await?;
    every.extend(former.iter().cloned());
    let solver = Arc::new(Solver {
        requests: context.requests.clone(),
        accounts: present,
        former,
        settling,
        families: networks::families(chains),
        keys: context.keys(),
        prices: context.prices.clone(),
        settlement: context.settlement.clone(),
        repricing: Arc::new(Late(context.repricer())),
        exposure,
        patience: trading.patience(),
        gap_limit: trading.gap_limit,
        breaker: Mutex::new(context.breaker()),
        reconciliation: watch::Sender::new(None),
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
        index: context.index_admin_handle(),
        state,
        solver,
        tasks,
        accounts: every,
    })
}

async fn context<'a>(
    trading: &'a Trading,
    chains: &'a Chains,
    base: Base,
) -> anyhow::Result<EngineContext<'a>> {
    let networks = traded_networks(trading, chains)?;
    let head_calls = |name: &str| networks::head_calls(&networks, name);
    let prices = pricing::prices(trading, head_calls, &base.outside.client)?;
    let prices: Arc<dyn PriceSource> = Arc::new(prices);
    Ok(EngineContext {
        settlement: pricing::settlement(trading, chains, &prices),
        prices,
        listing: Listing::open(base.store.clone()).await?,
        requests: Requests::open(base.store).await?.with_reserve(base.reserve),
        networks,
        trading,
        outside: base.outside,
        tail_states: base.tail_states,
        shutdown: base.shutdown,
    })
}

/// What the providers of a network show of transactions that wait for a block.
fn pools(network: &TradedNetwork<'_>) -> Vec<Arc<dyn Mempool>> {
    let providers = network.opened.trading_providers.iter();
    providers
        .filter_map(|provider| provider.mempool.clone())
        .collect()
}

impl EngineContext<'_> {
    async fn settler(
        &self,
        chains: &Chains,
        accounts: &HashMap<String, Arc<SolverAccount>>,
        (contract, exposure): (EvmAddress, &Arc<Exposure>),
    ) -> anyhow::Result<Option<Arc<Settler>>> {
        let Some(oracle) = self.outside.oracle.clone() else {
            tracing::warn!("SOLVER_ORACLE_URL is not set: what the solver pays is not settled");
            return Ok(None);
        };
        let hub = chains
            .hub()
            .map_err(|why| anyhow::anyhow!("settlement chain: {why}"))?;
        let chain = pricing::settling(hub)?;
        // Where the settlement chain is traded on, too, its account there has its attempts already.
        let known = accounts
            .values()
            .find(|account| account.chain.number == chain.number);
        let account = match known {
            Some(account) => account.clone(),
            None => Arc::new(self.solver_account(chain).await?),
        };
        Ok(Some(Arc::new(Settler {
            requests: self.requests.clone(),
            account,
            oracle: OracleClient::over(oracle),
            keys: self.keys(),
            contract: Address::from_parts(&format!("{contract:#x}"), contract.to_vec()),
            exposure: exposure.clone(),
            sending: Semaphore::new(SENDING),
        })))
    }

    fn breaker(&self) -> Breaker {
        let networks = self.networks.iter();
        let families = networks.map(|network| {
            let family = network.opened.chain.spec.family;
            (network.name().to_owned(), family)
        });
        Breaker::of(&self.trading.market, families.collect())
    }

    fn transactions(&self) -> Transactions {
        let networks = self.networks.iter().map(|network| {
            let watched = submitted::Network {
                chain: network.opened.chain.clone(),
                wakeup: network.wakeup.clone(),
                block_seconds: network.listed.block_seconds,
                pool_watched: !pools(network).is_empty(),
            };
            (network.name().to_owned(), watched)
        });
        let market = self.trading.market.clone();
        Transactions::new(market, networks.collect(), self.requests.clone())
    }

    /// Stores the details of a network's transactions, for listings.
    fn observer(&self, network: &TradedNetwork<'_>) -> Observer {
        let (family, providers) = (
            network.opened.chain.spec.family,
            &network.opened.trading_providers,
        );
        let inspectors = providers.iter().map(|provider| provider.inspector.clone());
        let (requests, prices) = (self.requests.clone(), self.prices.clone());
        Observer::new(network.name(), family, inspectors.collect(), requests).pricing(
            network.listed,
            prices,
            self.outside.clock,
        )
    }

    /// Tails, observers, the confirmer, and the search for submitted transactions.
    fn index(&self, transactions: &Arc<Transactions>) -> Vec<Task> {
        let (mut tasks, clock) = (Vec::<Task>::new(), self.outside.clock);
        for network in &self.networks {
            let providers = network.opened.trading_providers.iter();
            let scanners = providers.map(|provider| provider.scanner.clone());
            let (listed, wakeup) = (network.listed.clone(), network.wakeup.clone());
            let tail = Tail::new(listed, scanners.collect(), self.requests.clone(), wakeup)
                .alone(network.opened.required < 2)
                .with_states(self.tail_states.clone());
            let name = format!("index of {}", network.name());
            tasks.push((name, Box::pin(tail.run(clock, self.shutdown.clone()))));
            let observing = self.observer(network).run(clock, self.shutdown.clone());
            let name = format!("witnesses of {}", network.name());
            tasks.push((name, Box::pin(observing)));
            tasks.extend(self.watcher(network));
        }
        let confirmed = self.networks.iter().map(|network| {
            let watched = confirm::Network {
                chain: network.opened.chain.clone(),
                wakeup: network.wakeup.clone(),
                listed: Some(Arc::new(network.listed.clone())),
            };
            (network.name().to_owned(), watched)
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

    /// Watches for deposits that wait for a block, where providers show them.
    fn watcher(&self, network: &TradedNetwork<'_>) -> Option<Task> {
        let pools = pools(network);
        if pools.is_empty() {
            return None;
        }
        let chain = network.opened.chain.clone();
        let pools = Pools {
            all: pools,
            required: network.opened.required,
        };
        let watcher = Watcher::new(network.name(), chain, pools, self.requests.clone());
        let pace = network.listed.block_seconds;
        let watching = watcher.run(pace, self.outside.clock, self.shutdown.clone());
        let name = format!("waiting deposits of {}", network.name());
        Some((name, Box::pin(watching)))
    }

    fn index_admin_handle(&self) -> index::admin::AdminHandle {
        let wakeups = self.networks.iter();
        let wakeups = wakeups.map(|network| (network.name().to_owned(), network.wakeup.clone()));
        index::admin::AdminHandle::new(
            self.requests.clone(),
            wakeups.collect(),
            self.tail_states.clone(),
        )
    }

    fn pricing_chains(
        &self,
        of: fn(&TradedNetwork<'_>) -> PricingChain,
    ) -> HashMap<String, PricingChain> {
        let networks = self.networks.iter();
        networks
            .map(|network| (network.name().to_owned(), of(network)))
            .collect()
    }

    fn repricer(&self) -> Repricer {
        Repricer {
            market: self.trading.market.clone(),
            chains: self.pricing_chains(|network| network.pricing_chain()),
            prices: self.prices.clone(),
            settlement: self.settlement.clone(),
            patience: self.trading.patience().funds,
        }
    }

    fn state(&self, solver: Arc<Solver>, transactions: Arc<Transactions>) -> anyhow::Result<State> {
        let chains = self.pricing_chains(|network| network.asking_pricing_chain());
        let market = &self.trading.market;
        let capacity: Arc<dyn Capacity> = Arc::new(Funds {
            market: market.clone(),
            solver,
            production: self.trading.production,
            clock: self.outside.clock,
        });
        let swaps = networks::swaps(market, &self.networks)?;
        let quoter = Quoter::new(Deps {
            market: market.clone(),
            chains: chains.clone(),
            prices: self.prices.clone(),
            settlement: self.settlement.clone(),
            swaps: swaps.clone(),
            capacity: capacity.clone(),
            signer: self.trading.keys.secp256k1.clone(),
            solver_chain: self.trading.solver_chain.clone(),
            requests: self.requests.clone(),
            validity: self.trading.quote_validity,
            clock: self.outside.clock,
            entropy: self.outside.entropy,
        });
        Ok(State {
            market: market.clone(),
            chains,
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
            tail_states: self.tail_states.clone(),
            solver: format!("{:#x}", self.trading.keys.secp256k1.address()),
            clock: self.outside.clock,
        })
    }
}
