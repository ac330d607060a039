//! The integrator API, the index and the solver, put together. An oracle-only daemon has none of it.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use vm::{B256, EvmAddress};

use super::{
    charts,
    clock::unix_millis,
    engine::{Base, Engine, Outside, engine},
    notify::{Front, Notifier, Task},
    parts::Trading,
};
use crate::{
    api::intents,
    chains::Chains,
    http::{
        Router,
        service::App,
        system::{self, System},
    },
    index::{self, tail_states::TailStates},
    solver::{
        self,
        account::SolverAccount,
        keys::Keys,
        settle::oracle::{Http, OracleTransport},
        worker::Pace,
    },
    store::{Store, integrators::Integrators, reserve::Reserve},
    webhook::admin::AdminHandle,
};

/// How long the oracle may take for an answer.
const ORACLE_PATIENCE: Duration = Duration::from_secs(20);

/// The integrator API, its background tasks and what the operator asks of them.
pub struct Opening {
    pub app: Arc<App>,
    pub tasks: Vec<Task>,
    pub webhooks: AdminHandle,
    pub accounts: Vec<Arc<SolverAccount>>,
    pub solver: solver::admin::AdminHandle,
    /// The solver's.
    pub keys: Keys,
    pub index: index::admin::AdminHandle,
}

/// What the integrator API is built from.
pub struct Deps<'a> {
    pub store: Arc<dyn Store>,
    pub reserve: Arc<Reserve>,
    pub system: &'a Arc<System>,
    pub integrators: Integrators,
    pub tail_states: Arc<TailStates>,
    /// Its listener's limits, proxies and plans.
    pub front: Front,
}

impl Outside {
    fn real(trading: &Trading) -> anyhow::Result<Self> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let asked = trading.oracle.as_ref();
        let oracle = asked.map(|asked| {
            let http = Http::new(asked.url.clone(), asked.key.clone(), ORACLE_PATIENCE)?;
            Ok::<_, anyhow::Error>(Arc::new(http) as Arc<dyn OracleTransport>)
        });
        Ok(Self {
            clock: unix_millis,
            entropy,
            client,
            oracle: oracle.transpose()?,
            pace: Pace::default(),
        })
    }
}

/// Puts everything together. `contract` is where executions are settled.
pub async fn open(
    trading: &Trading,
    chains: &Chains,
    deps: Deps<'_>,
    contract: EvmAddress,
    shutdown: CancellationToken,
) -> anyhow::Result<Opening> {
    let outside = Outside::real(trading)?;
    let client = outside.client.clone();
    let base = Base {
        store: deps.store,
        reserve: deps.reserve,
        contract,
        outside,
        tail_states: deps.tail_states,
        shutdown: shutdown.clone(),
    };
    let Engine {
        state,
        solver,
        index,
        mut tasks,
        accounts,
    } = engine(trading, chains, base).await?;
    let (charts, charting) = charts::open(trading, chains, &state, &client, &shutdown)?;
    tasks.extend(charting);
    let notifier = Notifier {
        requests: &state.requests,
        integrators: &deps.integrators,
        shutdown: &shutdown,
    };
    let fanout = notifier.streams(&mut tasks);
    let webhooks = notifier.webhooks(trading.reach, &mut tasks)?;
    tasks.push(notifier.listing(state.listing.clone()));
    let router = Router::default()
        .with(deps.system, &system::LIVES)?
        .with(&state, intents::ROUTES)?
        .with(&fanout, &intents::events::ROUTES)?
        .with(&charts, &intents::charts::ROUTES)?
        .with(&Arc::new(()), &intents::planned::ROUTES)?;
    let app = Arc::new(
        notifier
            .surface(trading.retirement, deps.front, router)
            .open()?,
    );
    Ok(Opening {
        app,
        tasks,
        webhooks,
        accounts,
        solver: solver::admin::AdminHandle {
            requests: state.requests.clone(),
            reconciliation: solver.reconciliation.subscribe(),
            clock: unix_millis,
        },
        keys: solver.keys.clone(),
        index,
    })
}

/// 32 bytes of the operating system's randomness.
fn entropy() -> Option<B256> {
    let mut bytes = B256::ZERO;
    getrandom::fill(bytes.as_mut_slice())
        .inspect_err(|error| tracing::error!(%error, "no randomness"))
        .ok()
        .map(|()| bytes)
}
