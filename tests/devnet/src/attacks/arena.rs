//! Where it happens: the story's world, with a second pair of currencies whose prices move, blocks every
//! half second at a gas price that means something, and three providers of each chain for the solver's
//! daemon, of which the first can be told to lie.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use alloy::{
    primitives::{Address, B256, U256},
    providers::{DynProvider, Provider},
    rpc::types::TransactionReceipt,
};
use anyhow::{Context, Result, bail};
use devnet::{
    account::Account,
    contracts::{Feed, Token},
    node::{Node, Payload, arguments},
    proxy::LyingProxy,
    world::{DevChain, Devnet, Options, order::text},
};
use intentd::admin::{self, Answer, Question, solver};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};
use url::Url;

use super::wealth::Coin;
use crate::demo::{
    api::Api,
    oracles::{API_KEY, Oracles, Setup},
};

/// Between blocks.
const BLOCK: Duration = Duration::from_millis(500);
/// Wei per gas unit of every block: a burnt million of gas is some dollars.
const BASE_FEE: u64 = 1_000_000_000;
/// Two for each attack and some more.
const PEOPLE: usize = 44;
/// Seconds for which quotes hold.
const VALIDITY: u64 = 10;
/// A key of the oracle that its operator gave to a guest, and the one that may use `force`.
pub const GUEST: &str = "guest";
pub const TRUSTED: &str = "trusted";

/// How long the solver must have done nothing.
const STILL: usize = 6;
const PATIENCE: usize = 120;

/// The devnet with the solver's daemon, its API, and the providers that can be told to lie.
pub struct Arena {
    pub world: Devnet,
    pub api: Api,
    pub gold: Address,
    pub bridged: Address,
    pub client: reqwest::Client,
    /// Providers that lie when told to: of the origin, the destination and the settlement chain.
    pub liars: [LyingProxy; 3],
    oracle: Url,
    data_dir: PathBuf,
    feeds: BTreeMap<Coin, Address>,
    /// Millionths of a dollar.
    prices: Mutex<BTreeMap<Coin, u64>>,
    people: AtomicUsize,
    gas: Mutex<HashMap<Address, U256>>,
    pub recovered: Mutex<HashSet<B256>>,
    _blocks: JoinSet<()>,
}

impl Arena {
    pub async fn start(directory: &Path) -> Result<(Arc<Self>, Oracles)> {
        let options = Options {
            finality_blocks: 1,
            customers: PEOPLE,
            ..Options::default()
        };
        let world = Devnet::with(options).await?;
        let (gold, bridged) = (
            minted(&world, "Gold").await?,
            minted(&world, "Bridged").await?,
        );
        let mut feeds = BTreeMap::new();
        for coin in [Coin::Gold, Coin::Bridged] {
            feeds.insert(coin, world.origin.deploy("Feed", &[]).await?);
        }
        let liars = [
            LyingProxy::start(&world.origin.node.url).await?,
            LyingProxy::start(&world.destination.node.url).await?,
            LyingProxy::start(&world.hub.node.url).await?,
        ];
        let setup = setup(&world, [gold, bridged], &feeds, &liars)?;
        let mut blocks = JoinSet::new();
        for node in nodes(&world) {
            node.automine(false).await?;
            blocks.spawn(mine(node.provider.clone()));
        }
        for (coin, feed) in &feeds {
            set_price(&world, *feed, coin.usual()).await?;
        }
        let oracles = Oracles::start(&world, &setup, directory).await?;
        let arena = Self {
            api: oracles.api.clone(),
            oracle: oracles.urls[0].clone(),
            data_dir: oracles.data_dir.clone(),
            client: reqwest::Client::new(),
            prices: Mutex::new(Coin::ALL.map(|coin| (coin, coin.usual())).into()),
            people: AtomicUsize::new(0),
            gas: Mutex::default(),
            recovered: Mutex::default(),
            _blocks: blocks,
            world,
            gold,
            bridged,
            liars,
            feeds,
        };
        arena.quiet().await?;
        Ok((Arc::new(arena), oracles))
    }

    /// Somebody whom nobody knows yet, with money on both chains.
    pub fn somebody(&self) -> Result<Account> {
        let number = self.people.fetch_add(1, Ordering::Relaxed);
        let found = self.world.customers.get(number).cloned();
        found.context("no more people")
    }

    /// Millionths of a dollar for one of `coin`.
    pub fn price(&self, coin: Coin) -> u64 {
        lock(&self.prices).get(&coin).copied().unwrap_or_default()
    }

    /// The market moves.
    pub async fn moves(&self, coin: Coin, price: u64) -> Result<()> {
        let feed = self.feeds.get(&coin).context("its price stands still")?;
        set_price(&self.world, *feed, price).await?;
        lock(&self.prices).insert(coin, price);
        Ok(())
    }

    /// Sends for `who`, counting what gas costs it.
    pub async fn send(
        &self,
        node: &Node,
        who: Address,
        payload: Payload,
    ) -> Result<TransactionReceipt> {
        let receipt = node.send(who, payload).await?;
        let price = U256::from(receipt.effective_gas_price);
        let paid = price.saturating_mul(U256::from(receipt.gas_used));
        *lock(&self.gas).entry(who).or_default() += paid;
        Ok(receipt)
    }

    /// What `who` has paid for gas, in wei.
    pub fn gas(&self, who: Address) -> U256 {
        lock(&self.gas).get(&who).copied().unwrap_or_default()
    }

    /// A route of the oracle that is asked.
    pub fn oracle(&self, route: &str) -> Result<Url> {
        Ok(self.oracle.join(route)?)
    }

    /// What the operator is told of the solver.
    pub async fn operator(&self, question: solver::Question) -> Result<solver::Answer> {
        match admin::ask(&self.data_dir, &Question::Solver(question)).await? {
            Answer::Solver(answer) => Ok(answer),
            other => bail!("no answer of the solver, but {other:?}"),
        }
    }

    /// Waits until the solver has nothing left to do: what it paid is settled, it sends nothing.
    pub async fn quiet(&self) -> Result<()> {
        let (mut last, mut still) = (None, 0);
        for _ in 0..PATIENCE {
            let now = self.doing().await?;
            still = match last == Some(now) && now.1 == 0 {
                true => still + 1,
                false => 0,
            };
            if still >= STILL {
                return Ok(());
            }
            last = Some(now);
            sleep(BLOCK).await;
        }
        bail!(
            "the solver does not come to rest: {:?}",
            self.operator(solver::Question::Unsettled {}).await?
        )
    }

    /// Transactions sent, payments that are not settled, deposits left to the operator.
    async fn doing(&self) -> Result<(u64, usize, usize)> {
        let solver = self.world.solver.address();
        let mut sent = 0;
        for node in nodes(&self.world) {
            sent += node.provider.get_transaction_count(solver).await?;
        }
        let unsettled = match self.operator(solver::Question::Unsettled {}).await? {
            solver::Answer::Unsettled { unsettled } => unsettled.len(),
            other => bail!("{other:?}"),
        };
        let parked = match self
            .operator(solver::Question::Parked { all: true, skip: 0 })
            .await?
        {
            solver::Answer::Parked { parked, .. } => parked.len(),
            other => bail!("{other:?}"),
        };
        Ok((sent, unsettled, parked))
    }
}

/// One of a site's chains and of the settlement's.
pub fn nodes(world: &Devnet) -> [&Node; 3] {
    [&world.origin.node, &world.destination.node, &world.hub.node]
}

/// A poisoned lock still holds sound data here: every critical section is one assignment.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Blocks at their own pace, at one price of gas; ends with its task.
async fn mine(provider: DynProvider) {
    loop {
        let fee: Result<Value, _> = provider
            .raw_request(
                "anvil_setNextBlockBaseFeePerGas".into(),
                (U256::from(BASE_FEE),),
            )
            .await;
        let block: Result<Value, _> = provider.raw_request("evm_mine".into(), ()).await;
        if let Err(error) = fee.and(block) {
            tracing::warn!(%error, "no block");
        }
        sleep(BLOCK).await;
    }
}

/// A token of the origin that the solver has much of.
async fn minted(world: &Devnet, symbol: &str) -> Result<Address> {
    let site = &world.origin;
    let symbol = Token::constructorCall {
        symbol: symbol.to_owned(),
    };
    let token = site.deploy("Token", &arguments(&symbol)).await?;
    let much = U256::from(1_000_000_000_000u64);
    site.mint(token, world.solver.address(), much).await?;
    Ok(token)
}

/// The feed tells `price`, in millionths of a dollar.
async fn set_price(world: &Devnet, feed: Address, price: u64) -> Result<()> {
    let to = i64::try_from(price * 100)?.try_into()?;
    let call = Payload::call(feed, &Feed::setCall { to });
    let site = &world.origin;
    site.node.transact(site.deployer, call).await.map(drop)
}

fn setup(
    world: &Devnet,
    [gold, bridged]: [Address; 2],
    feeds: &BTreeMap<Coin, Address>,
    liars: &[LyingProxy; 3],
) -> Result<Setup> {
    let mut files = world.files();
    let feed = |coin: Coin| {
        json!([{"kind": "chainlink", "network": world.origin.id, "maxAge": 3_600,
                "address": text(feeds.get(&coin).copied().unwrap_or_default())}])
    };
    let currencies = files.market[0]["currencies"].as_array_mut();
    currencies.context("no currencies")?.extend([
        json!({"address": text(gold), "symbol": "GOLD", "name": "Gold", "decimals": 6,
               "group": "gold", "class": "major", "solver": true, "prices": feed(Coin::Gold)}),
        json!({"address": text(bridged), "symbol": "USDB", "name": "Bridged Dollar", "decimals": 6,
               "group": "usd", "class": "stable", "solver": true, "prices": feed(Coin::Bridged)}),
    ]);
    // The first of three may lie; the other two are one node, spelled in two ways.
    let providers =
        |liar: &LyingProxy, node: &Node| format!("{},{},{}?", liar.url, node.url, node.url);
    let [origin, destination, hub] = liars;
    let sites = [(origin, &world.origin), (destination, &world.destination)];
    let named = |(liar, site): (&LyingProxy, &DevChain)| {
        (
            format!("{}_RPC_URL", site.id.to_uppercase()),
            providers(liar, &site.node),
        )
    };
    files.environment.extend(sites.map(named));
    let hubs = ["RELAY_RPC_URL", "AURORA_RPC_URL"];
    files
        .environment
        .extend(hubs.map(|name| (name.to_owned(), providers(hub, &world.hub.node))));
    let keys = [API_KEY, GUEST, TRUSTED].map(|key| format!("{key}:{key}"));
    let more = [
        ("API_KEYS", keys.join(";")),
        ("FORCE_API_KEYS", TRUSTED.to_owned()),
        // Nobody is kept out by his address: whoever has many has as much.
        ("UNAUTHENTICATED_RATE_LIMIT_MAX", "1000000".to_owned()),
        (
            "RATE_LIMITS",
            "keyless.quotes=1000/m,keyless.others=1000/m".to_owned(),
        ),
        ("QUOTE_CALLS_PER_SECOND", "100000".to_owned()),
        ("QUOTE_VALIDITY", VALIDITY.to_string()),
    ];
    Ok(Setup {
        files,
        more: more.map(|(name, value)| (name.to_owned(), value)).into(),
    })
}
