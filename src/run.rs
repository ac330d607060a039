//! The composition root: the only place where the daemon's parts are made and joined.

mod background;
mod charts;
pub mod clock;
pub mod engine;
pub mod judging;
mod keys;
mod listening;
mod notify;
mod parts;
mod pricing;
mod ready;
pub mod rules;
mod signer;
mod trading;

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

use anyhow::Context;
use futures::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use tokio_util::sync::CancellationToken;
use vm::{ChainSpec, EvmAddress};

pub use self::listening::Listeners;
pub use self::parts::{Parts, Trading};
pub use self::signer::signer;
use self::{
    background::{Background, failure},
    clock::{unix_millis, unix_seconds},
    listening::Listening,
    notify::Front,
    trading::Deps,
};
use crate::{
    admin::{Admin, Handles, integrators::IntegratorAdmin},
    api::oracle::{self, Listed},
    attest::{
        backing::Tolerance,
        journal::Journal,
        peers::{Key, Multisig, Peer, Peers},
        service::{Attestor, Reachable},
        watch::Watcher,
    },
    chains::{Chains, Closed, Loaded, Opened},
    config::{Config, Mistakes, PeerKey},
    http::{
        Router, Surface, server,
        service::App,
        system::{self, System},
    },
    hub::{Hub, Settings},
    index::tail_states::TailStates,
    solver::settle::outcome_claim::OutcomeClaims,
    store::{
        Making, Store,
        integrators::Integrators,
        pair::{Directories, Pair},
        requests::Requests,
        reserve::Reserve,
    },
    telemetry::Metrics,
};

/// A daemon that is complete but not listening yet.
pub struct Daemon {
    app: Arc<App>,
    ops: Arc<App>,
    pair: Pair,
    reserve: Arc<Reserve>,
    journal: Arc<Journal>,
    watchers: Vec<Watcher>,
    data_dir: PathBuf,
    metrics: Metrics,
    chains: Arc<Chains>,
    system: Arc<System>,
    /// Where executions are settled.
    contract: EvmAddress,
    trading: Option<Trading>,
    /// The service's name in the messages that wallets sign.
    name: String,
    plain_webhooks: bool,
    tail_states: Arc<TailStates>,
    front: Front,
}

impl Daemon {
    /// Loads keys, chains and store. Whatever is wrong with them stops the start here.
    pub async fn open(config: &Config) -> anyhow::Result<Self> {
        Self::of(config, Parts::of(config, Mistakes::default()).await?)
    }

    /// As [`Self::open`], with parts that are read already.
    pub fn of(config: &Config, parts: Parts) -> anyhow::Result<Self> {
        let Parts {
            signer,
            chains,
            settings,
            trading,
        } = parts;
        let contract = settings.oracle_address;
        tracing::info!(address = %format_args!("{:#x}", signer.address()), "signer loaded");
        let metrics = Metrics::install()?;
        ready::log_served(&chains);
        ready::warn_about_chains(&chains, config);
        ready::warn_about_multisig(config);
        let (pair, reserve) = stores(config)?;
        let name = service(config, signer.address());
        let journal = parts::journal(config, &chains, (pair.journal.clone(), signer));
        let (store, peers) = (pair.store.clone(), peers(config)?);
        let judged = oracle(&chains, settings, journal.clone(), store, peers);
        let state = Arc::new(oracle::State {
            listed: chains.list().iter().map(listed).collect(),
            oracle: rules::with_rules(config, judged).with_reserve(reserve.clone()),
            force: config.claims.force.clone(),
            repeated: oracle::Repeated::default(),
            shadow: parts::shadow(config)?,
        });
        let rendered = metrics.clone();
        let tail_states = Arc::<TailStates>::default();
        let system = Arc::new(System {
            version: config.image_tag.clone(),
            readiness: ready::check(
                (chains.clone(), journal.clone(), tail_states.clone()),
                config.moves_real_money(),
            ),
            metrics: Arc::new(move || rendered.render()),
        });
        let listening = Listening::of(config, chains.providers());
        let (app, ops) = surfaces(config, &listening, (&system, &state))?;
        Ok(Self {
            app,
            ops,
            pair,
            reserve,
            watchers: watchers(&chains, &journal),
            journal,
            data_dir: config.data_dir.clone(),
            metrics,
            chains,
            system,
            contract,
            trading,
            name,
            plain_webhooks: config.plain_webhooks(),
            tail_states,
            front: Front::of(config, &listening),
        })
    }

    /// Answers until `shutdown`, drains, and closes the store. A background task that ends early is a shutdown, too,
    /// and an error. The future is boxed, so that no other crate compiles its body.
    pub fn serve(
        self,
        listeners: Listeners,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, anyhow::Result<()>> {
        self.answer(listeners, shutdown).boxed()
    }

    async fn answer(self, listeners: Listeners, shutdown: CancellationToken) -> anyhow::Result<()> {
        // This process has the store open, so no other one uses a socket that lies beside it.
        let admin = Admin::bind(&self.data_dir).context("cannot open the admin socket")?;
        tracing::info!(address = %listeners.ops.local_addr()?, "operations listening");
        tracing::info!(address = %listeners.oracle.local_addr()?, "oracle listening");
        let integrator_admin = self.integrator_admin().await?;
        let mut background = Background::new(shutdown.clone());
        background.spawn("metrics", self.metrics.keep(shutdown.clone()));
        background.spawn("disk", self.reserve.clone().watch(shutdown.clone()));
        for (name, store) in self.pair.both() {
            background.spawn(name, failure(name, store.failed(), shutdown.clone()));
        }
        for watcher in self.watchers {
            let name = format!("watcher of {}", watcher.chain());
            background.spawn(name, watcher.run(unix_seconds, shutdown.clone()));
        }
        let (mut webhooks, mut index, mut accounts, mut solver) = (None, None, Vec::new(), None);
        let (requests, mut keys) = (Requests::new(self.pair.store.clone()), None);
        let mut answering = vec![
            server::serve(listeners.oracle, self.app, shutdown.clone()).boxed(),
            server::serve(listeners.ops, self.ops, shutdown.clone()).boxed(),
        ];
        if let (Some(trading), Some(listener)) = (&self.trading, listeners.integrator) {
            let over = Deps {
                store: self.pair.store.clone(),
                reserve: self.reserve.clone(),
                system: &self.system,
                integrators: integrator_admin.integrators.clone(),
                tail_states: self.tail_states,
                front: self.front,
            };
            let opened =
                trading::open(trading, &self.chains, over, self.contract, shutdown.clone());
            let opened = opened.await?;
            for (name, task) in opened.tasks {
                background.spawn(name, task);
            }
            (webhooks, index) = (Some(opened.webhooks), Some(opened.index));
            accounts = opened.accounts;
            (solver, keys) = (Some(opened.solver), Some(opened.keys));
            tracing::info!(address = %listener.local_addr()?, "integrator API listening");
            answering.push(server::serve(listener, opened.app, shutdown.clone()).boxed());
        }
        let handles = Handles {
            journal: self.journal,
            integrator_admin,
            claims: OutcomeClaims { requests, keys },
            webhooks,
            accounts,
            solver,
            index,
        };
        background.spawn("admin socket", admin.serve(handles, shutdown));
        let ended = background.guard(join_all(answering).map(drop)).await;
        self.pair.close().await;
        ended?;
        tracing::info!("stopped");
        Ok(())
    }

    /// Carries out the operator's commands about integrators.
    async fn integrator_admin(&self) -> anyhow::Result<IntegratorAdmin> {
        Ok(IntegratorAdmin {
            integrators: Integrators::open(self.pair.store.clone()).await?,
            service: Some(self.name.clone()),
            plain: self.plain_webhooks,
            clock: unix_millis,
        })
    }
}

/// What the oracle's listener and the operator's answer with.
fn surfaces(
    config: &Config,
    listening: &Listening,
    (system, state): (&Arc<System>, &Arc<oracle::State>),
) -> anyhow::Result<(Arc<App>, Arc<App>)> {
    let router = Router::default()
        .with(system, &system::ALIVE)?
        .with(state, oracle::ROUTES)?;
    let oracle = Surface {
        gate: listening::gate(config),
        limits: listening.oracle,
        proxies: listening::proxies(config),
        errors: oracle::ERRORS,
        ..Surface::new("oracle", oracle::ABOUT, router)
    };
    let watched = Router::default().with(system, &system::OPERATIONS)?;
    let ops = Surface {
        limits: listening.ops,
        ..Surface::new("operations", system::ABOUT, watched)
    };
    Ok((Arc::new(oracle.open()?), Arc::new(ops.open()?)))
}

/// The name of a service with `signer` in the messages that wallets sign. It differs from every other service's, so
/// that no other service accepts the signature.
pub fn service(config: &Config, signer: EvmAddress) -> String {
    let name = config.service.as_deref().unwrap_or("intentd");
    format!("{name} {} {signer:#x}", config.environment)
}

/// The stores, and what is kept free on their disks.
fn stores(config: &Config) -> anyhow::Result<(Pair, Arc<Reserve>)> {
    let directories = directories(config);
    let pair = Pair::open(&directories, Making::Allowed)?;
    let reserve = Reserve::new(directories.homes(), config.disk_reserve);
    reserve.look().context("DISK_RESERVE")?;
    Ok((pair, Arc::new(reserve)))
}

/// Where the stores of a daemon are.
pub fn directories(config: &Config) -> Directories {
    Directories::new(&config.data_dir, config.journal_dir.clone())
}

/// The oracle over opened chains. It goes by the real time.
pub fn oracle(
    chains: &Chains,
    settings: Settings,
    journal: Arc<Journal>,
    store: Arc<dyn Store>,
    peers: Peers,
) -> Attestor {
    let chain = |opened: Result<&Opened, Closed>| {
        let opened = opened.map(|opened| opened.chain.clone());
        opened.map_err(|why| why.to_string())
    };
    let hub = Hub::new(settings, chain(chains.attested_hub()));
    let hub = hub.with_allocator(chain(chains.allocator()));
    let listed = chains.judged();
    let listed = listed.map(|(loaded, spec)| reachable(loaded, spec, chains.foundation()));
    Attestor {
        chains: listed.collect::<HashMap<_, _>>(),
        hub,
        journal,
        peers,
        requests: Requests::new(store),
        tolerance: Tolerance::default(),
        bound_nonces: false,
        shown_recoveries: false,
        clock: unix_seconds,
    }
}

fn reachable(
    loaded: &Loaded,
    spec: Option<&Arc<ChainSpec>>,
    foundation: Result<(), Closed>,
) -> (String, Reachable) {
    let spec = spec.filter(|_| foundation.is_ok()).cloned();
    let chain = loaded.attested().map(|opened| opened.chain.clone());
    let keys = loaded.owner_keys();
    let keys = keys.map(|keys| keys.and_then(|keys| foundation.clone().map(|()| keys)));
    let chain = chain.and_then(|chain| foundation.map(|()| chain));
    let reachable = Reachable {
        family: loaded.family(),
        hub_chain_id: loaded.hub_chain_id,
        spec,
        chain,
        keys,
    };
    (loaded.id.clone(), reachable)
}

/// A watcher for each readable chain, those of settlement included: what was signed before a setting changed is
/// watched, too.
pub fn watchers(chains: &Chains, journal: &Arc<Journal>) -> Vec<Watcher> {
    // The allocator's chain may be listed, too; its facts are watched by one.
    let mut known = HashSet::new();
    chains
        .opened()
        .filter(|opened| known.insert(opened.chain.spec.id.clone()))
        .map(|opened| Watcher::new(journal.clone(), opened.chain.clone()))
        .collect()
}

pub fn listed(loaded: &Loaded) -> Listed {
    Listed {
        id: loaded.id.clone(),
        vm_type: loaded.vm_type.clone(),
        depository: loaded.depository.clone(),
    }
}

fn peers(config: &Config) -> anyhow::Result<Peers> {
    let list = config
        .peers
        .iter()
        .map(|peer| Peer {
            url: peer.url.clone(),
            key: match &peer.key {
                PeerKey::None => Key::None,
                PeerKey::Own(key) => Key::Own(key.clone()),
                PeerKey::PassThrough => Key::PassThrough,
            },
        })
        .collect();
    let multisig = config.multisig.as_ref().map(|multisig| Multisig {
        members: multisig.members.clone(),
        threshold: multisig.threshold,
    });
    Ok(Peers::new(list, config.peer_timeout, multisig)?)
}
