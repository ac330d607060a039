//! The integrator API, the index and the solver, put together. An oracle-only daemon has none of it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use alloy::primitives::U256;
use anyhow::Context;
use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use vm::{Address, B256, EvmAddress};

use super::{
    clock::unix_millis,
    parts::Trading,
    told::{Task, Telling},
};
use crate::{
    api::intents::{self, State, retirement::Throttle},
    chains::{Chains, Opened, Views},
    http::{
        Router,
        service::App,
        system::{self, System},
    },
    index::{
        Bell,
        confirm::{self, Confirmer},
        manual::{self, Transactions},
        tail::Tail,
        witness::Observer,
    },
    market::{Market, Network},
    price::{PriceSource, Prices, SPREAD},
    quote::{
        offers::Offers,
        service::{self, Quoter},
        swap::{SwapRouting, UniswapV3, Wrap},
        venue::{Capacity, CapacityError, Venue},
    },
    sign::Signer,
    solver::{
        Solver,
        judge::Patience,
        lane::{Gas, Lane},
        settle::{Settler, oracle::Oracle},
        site::Site,
        worker::{Pace, Worker},
    },
    store::{Store, integrators::Integrators, listing::Listing, requests::Requests},
    webhook::desk::Desk,
};

/// How long the oracle may take for an answer.
const ORACLE_PATIENCE: Duration = Duration::from_secs(20);

/// What is answered, and what runs behind it.
pub struct Opening {
    pub app: Arc<App>,
    pub tasks: Vec<Task>,
    pub webhooks: Desk,
}

/// A network of the market with its chain.
struct Place<'a> {
    network: &'a Network,
    opened: &'a Opened,
    bell: Arc<Bell>,
}

/// What all parts share.
struct Ground<'a> {
    trading: &'a Trading,
    places: Vec<Place<'a>>,
    requests: Requests,
    listing: Listing,
    signer: Arc<dyn Signer>,
    prices: Arc<dyn PriceSource>,
    shutdown: CancellationToken,
}

/// What it stands on.
pub struct Over<'a> {
    pub store: Arc<dyn Store>,
    pub system: &'a Arc<System>,
    pub integrators: Integrators,
}

/// Puts everything together. `contract` is where executions are settled.
pub async fn open(
    trading: &Trading,
    chains: &Chains,
    over: Over<'_>,
    contract: EvmAddress,
    shutdown: CancellationToken,
) -> anyhow::Result<Opening> {
    let places = places(&trading.market, chains);
    let ground = Ground {
        prices: Arc::new(priced(&trading.market, &places)?),
        listing: Listing::open(over.store.clone()).await?,
        requests: Requests::open(over.store).await?,
        signer: trading.signer.clone(),
        places,
        trading,
        shutdown,
    };
    let lanes = ground.lanes().await?;
    let settler = ground.settler(chains, &lanes, contract).await?;
    let solver = Arc::new(Solver {
        requests: ground.requests.clone(),
        lanes,
        prices: ground.prices.clone(),
        patience: Patience {
            margin: 60,
            funds: 300,
        },
    });
    let transactions = Arc::new(ground.transactions());
    let mut tasks = ground.index(&transactions);
    let worker = Worker {
        solver: solver.clone(),
        settler,
        pace: Pace::default(),
        clock: unix_millis,
    };
    tasks.push((
        "solver".into(),
        Box::pin(worker.run(ground.shutdown.clone())),
    ));
    let telling = Telling {
        requests: &ground.requests,
        integrators: &over.integrators,
        shutdown: &ground.shutdown,
    };
    let fanout = telling.streams(&mut tasks);
    let webhooks = telling.webhooks(trading.reach, &mut tasks)?;
    tasks.push(telling.listing(ground.listing.clone()));
    let state = Arc::new(ground.state(solver, transactions)?);
    let router = Router::default()
        .with(over.system, &system::LIVES)?
        .with(&state, intents::ROUTES)?
        .with(&fanout, &intents::events::ROUTES)?;
    let app = Arc::new(telling.surface(trading.retirement, router).open()?);
    Ok(Opening {
        app,
        tasks,
        webhooks,
    })
}

fn places<'a>(market: &'a Market, chains: &'a Chains) -> Vec<Place<'a>> {
    let opened = market.networks().iter().filter_map(|network| {
        let opened = chains.get(&network.name)?.chain.as_ref().ok()?;
        let traded = !opened.trades.is_empty();
        traded.then(|| Place {
            network,
            opened,
            bell: Arc::new(Bell::default()),
        })
    });
    opened.collect()
}

fn views(places: &[Place<'_>], network: &str) -> Option<Views> {
    let mut places = places.iter();
    let place = places.find(|place| place.network.name == network)?;
    Some(place.opened.views())
}

fn priced(market: &Market, places: &[Place<'_>]) -> anyhow::Result<Prices> {
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    Prices::new(market, &client, |name| views(places, name), SPREAD).context("MARKET_FILE")
}

fn swaps(market: &Market, places: &[Place<'_>]) -> anyhow::Result<SwapRouting> {
    let uniswap = UniswapV3::new(market, |name| views(places, name)).context("MARKET_FILE")?;
    let families = |name: &str| Some(views(places, name)?.family);
    let wrap = Wrap::new(market, families).context("MARKET_FILE")?;
    let second = UniswapV3::fallbacks(market, |name| views(places, name)).context("MARKET_FILE")?;
    let first = SwapRouting::new(vec![Arc::new(uniswap), Arc::new(wrap)]);
    Ok(first.or_else(vec![Arc::new(second)]))
}

impl Ground<'_> {
    async fn lanes(&self) -> anyhow::Result<HashMap<String, Arc<Lane>>> {
        let mut lanes = HashMap::new();
        for place in &self.places {
            let (chain, trades) = (place.opened.chain.clone(), place.opened.trades.clone());
            let site = Site::traded(place.network, chain, trades)?;
            let lane = self.lane(site).await?;
            lanes.insert(place.network.name.clone(), Arc::new(lane));
        }
        Ok(lanes)
    }

    async fn lane(&self, site: Site) -> anyhow::Result<Lane> {
        let (store, signer) = (self.requests.store().clone(), self.signer.clone());
        let name = site.name.clone();
        let lane = Lane::open(Arc::new(site), store, signer, Gas::default(), unix_millis()).await;
        lane.with_context(|| format!("the solver cannot work on {name}"))
    }

    async fn settler(
        &self,
        chains: &Chains,
        lanes: &HashMap<String, Arc<Lane>>,
        contract: EvmAddress,
    ) -> anyhow::Result<Option<Arc<Settler>>> {
        let Some(asked) = &self.trading.oracle else {
            tracing::warn!("SOLVER_ORACLE_URL is not set: what the solver pays is not settled");
            return Ok(None);
        };
        let hub = chains
            .hub()
            .map_err(|why| anyhow::anyhow!("settlement chain: {why}"))?;
        let spec = &hub.chain.spec;
        let number = u64::try_from(spec.hub_chain_id).context("evmChainId")?;
        // Where the settlement chain is traded on, too, its nonces are in that lane already.
        let traded = lanes.values().find(|lane| lane.site.number == number);
        let lane = match traded {
            Some(lane) => lane.clone(),
            None => {
                let (chain, trades) = (hub.chain.clone(), hub.trades.clone());
                let site = Site::plain(spec.id.as_str(), number, chain, trades)?;
                Arc::new(self.lane(site).await?)
            }
        };
        let key = asked.key.clone();
        Ok(Some(Arc::new(Settler {
            requests: self.requests.clone(),
            lane,
            oracle: Oracle::new(asked.url.clone(), key, ORACLE_PATIENCE)?,
            contract: Address::from_parts(&format!("{contract:#x}"), contract.to_vec()),
        })))
    }

    fn transactions(&self) -> Transactions {
        let networks = self.places.iter().map(|place| {
            let network = manual::Network {
                chain: place.opened.chain.clone(),
                bell: place.bell.clone(),
                block_seconds: place.network.block_seconds,
                fresh: true,
            };
            (place.network.name.clone(), network)
        });
        let market = self.trading.market.clone();
        Transactions::new(market, networks.collect(), self.requests.clone())
    }

    /// Who keeps the transactions of a network in full, for listings.
    fn observer(&self, place: &Place<'_>) -> Observer {
        let (family, trades) = (place.opened.chain.spec.family, &place.opened.trades);
        let providers = trades.iter().map(|trade| trade.witnesses.clone());
        let requests = self.requests.clone();
        Observer::new(&place.network.name, family, providers.collect(), requests)
    }

    /// Tails, observers, the confirmer, and the search for transactions that somebody told of.
    fn index(&self, transactions: &Arc<Transactions>) -> Vec<Task> {
        let mut tasks = Vec::<Task>::new();
        for place in &self.places {
            let scanners = place
                .opened
                .trades
                .iter()
                .map(|trade| trade.scanner.clone());
            let (network, bell) = (place.network.clone(), place.bell.clone());
            let tail = Tail::new(network, scanners.collect(), self.requests.clone(), bell);
            let name = format!("index of {}", place.network.name);
            tasks.push((name, Box::pin(tail.run(unix_millis, self.shutdown.clone()))));
            let observing = self.observer(place).run(unix_millis, self.shutdown.clone());
            let name = format!("witnesses of {}", place.network.name);
            tasks.push((name, Box::pin(observing)));
        }
        let confirmed = self.places.iter().map(|place| {
            let network = confirm::Network {
                chain: place.opened.chain.clone(),
                bell: place.bell.clone(),
            };
            (place.network.name.clone(), network)
        });
        let confirmer = Confirmer::new(self.requests.clone(), confirmed.collect());
        let confirming = confirmer.run(unix_millis, self.shutdown.clone());
        tasks.push(("confirmer".into(), Box::pin(confirming)));
        let looking = transactions.clone().run(unix_millis, self.shutdown.clone());
        tasks.push(("transactions".into(), Box::pin(looking)));
        tasks
    }

    fn state(&self, solver: Arc<Solver>, transactions: Arc<Transactions>) -> anyhow::Result<State> {
        let venues = self.places.iter().map(|place| {
            let venue = Venue {
                spec: place.opened.chain.spec.clone(),
                trades: place.opened.trades.clone(),
            };
            (place.network.name.clone(), venue)
        });
        let venues: HashMap<_, _> = venues.collect();
        let market = &self.trading.market;
        let capacity: Arc<dyn Capacity> = Arc::new(Funds {
            market: market.clone(),
            solver,
        });
        let swaps = swaps(market, &self.places)?;
        let quoter = Quoter::new(service::Parts {
            market: market.clone(),
            venues: venues.clone(),
            prices: self.prices.clone(),
            offers: Offers(swaps.clone()),
            capacity: capacity.clone(),
            signer: self.signer.clone(),
            solver_chain: self.trading.solver_chain.clone(),
            requests: self.requests.clone(),
            clock: unix_millis,
            entropy,
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
            solver: format!("{:#x}", self.signer.address()),
            clock: unix_millis,
        })
    }
}

/// What the solver can pay, as quotes ask for it.
struct Funds {
    market: Arc<Market>,
    solver: Arc<Solver>,
}

#[async_trait]
impl Capacity for Funds {
    async fn available(
        &self,
        network: &str,
        currency: &Address,
    ) -> Result<Option<U256>, CapacityError> {
        let listed = self.market.by_name(network);
        let listed = listed.and_then(|network| network.currency(currency.text()));
        if !listed.is_some_and(|currency| currency.solver) {
            return Ok(None);
        }
        let available = self.solver.available(network, currency.text()).await;
        available
            .map(Some)
            .map_err(|error| CapacityError(error.to_string()))
    }
}

/// 32 bytes of the operating system's randomness.
fn entropy() -> Option<B256> {
    let mut bytes = B256::ZERO;
    getrandom::fill(bytes.as_mut_slice())
        .inspect_err(|error| tracing::error!(%error, "no randomness"))
        .ok()
        .map(|()| bytes)
}
