//! What a daemon is made of, as far as the environment and its files tell: read without a network,
//! every mistake gathered before anything is started.

use std::sync::Arc;

use secrecy::ExposeSecret;
use vm::Family;

use crate::{
    api::intents::{access, retirement::Retirement},
    attest::finality,
    chains::Chains,
    config::{ApiKey, Config, Integrator, Mistakes, Signing, SolverOracle},
    http::Keys,
    hub::Settings,
    market::Market,
    sign::{Signer, raw::RawKey},
    solver::judge::Patience,
    webhook::guard::Reach,
};

/// See the module.
pub struct Parts {
    pub signer: Arc<dyn Signer>,
    pub chains: Arc<Chains>,
    pub settings: Settings,
    /// `None`: an oracle only.
    pub trading: Option<Trading>,
}

/// What the integrator API and its solver are made of.
pub struct Trading {
    pub market: Arc<Market>,
    pub signer: Arc<dyn Signer>,
    /// Keys that it had before.
    pub previous: Vec<Arc<dyn Signer>>,
    /// The network whose account the solver is paid on.
    pub solver_chain: String,
    /// That network's family: orders name their solver by an account of it.
    pub solver_family: &'static Family,
    /// Real money: nobody without a key gets what is for trying things out.
    pub production: bool,
    /// Seconds for which a quote's price holds.
    pub quote_validity: u64,
    pub oracle: Option<SolverOracle>,
    pub retirement: Retirement,
    /// Dollars that may be paid and not be owed before fills are paused.
    pub gap_limit: u64,
    /// Where webhooks may go.
    pub reach: Reach,
}

impl Trading {
    pub fn patience(&self) -> Patience {
        Patience {
            margin: 60,
            funds: 300,
            forced_by_all: !self.production,
        }
    }
}

impl Parts {
    /// Reads them; `mistakes` are those that are known already. Each check adds its own and goes on.
    /// Opens HTTP clients, so that it needs a runtime.
    pub fn of(config: &Config, mut mistakes: Mistakes) -> Result<Self, Mistakes> {
        let signer = signer(config, &mut mistakes);
        let rates = config.listen.rates.iter();
        for rate in rates.filter(|rate| !access::is_limit(&rate.name)) {
            let what = format!("{}: no limit has this name", rate.name);
            mistakes.add("RATE_LIMITS", what);
        }
        let mut chains = Chains::gather(config, &mut mistakes);
        let (mut settings, mut trading) = (None, None);
        if let Some(chains) = &mut chains {
            let integrator = config.integrator.as_ref();
            trading = integrator.and_then(|wanted| self::trading(wanted, chains, &mut mistakes));
            for network in trading.iter().flat_map(|trading| trading.market.networks()) {
                for router in network.fill_routers() {
                    chains.accept_router(&network.name, router);
                }
            }
            settings = hub(chains, &mut mistakes);
            finalities(chains, settings.as_ref(), &mut mistakes);
        }
        let whole = signer.zip(chains).zip(settings);
        mistakes.or(whole.map(|((signer, chains), settings)| Self {
            signer,
            chains: Arc::new(chains),
            settings,
            trading,
        }))
    }
}

/// The configured signer; a bad key is a mistake that does not repeat it.
pub fn signer(config: &Config, mistakes: &mut Mistakes) -> Option<Arc<dyn Signer>> {
    let Signing::RawPrivateKey(key) = &config.signing;
    if ["SIGNING_MODULE", "ECDSA_PRIVATE_KEY"]
        .iter()
        .any(|name| mistakes.concern(name))
    {
        return None;
    }
    RawKey::parse(key.expose_secret())
        .map(|key| Arc::new(key) as Arc<dyn Signer>)
        .map_err(|error| mistakes.add("ECDSA_PRIVATE_KEY", error.to_string()))
        .ok()
}

/// The settlement contracts as the hub file names them.
fn hub(chains: &Chains, mistakes: &mut Mistakes) -> Option<Settings> {
    // What could not be read has no fields to complain about.
    if chains.hub_entry().is_empty() && !mistakes.0.is_empty() {
        return None;
    }
    Settings::parse(chains.hub_entry())
        .map_err(|error| mistakes.add("HUB_FILE", error.to_string()))
        .ok()
}

/// The fast mode of each chain that can be read, and whether the hub can limit it.
fn finalities(chains: &Chains, settings: Option<&Settings>, mistakes: &mut Mistakes) {
    let unlimited = settings.is_some_and(|settings| settings.rate_limiter.is_none());
    for opened in chains.list().iter().flat_map(|loaded| &loaded.chain) {
        let spec = &opened.chain.spec;
        match finality::check(spec) {
            Err(error) => mistakes.add("CHAINS_FILE", format!("chain {}: {error}", spec.id)),
            Ok(true) if unlimited => {
                let what = format!("rateLimiter: chain {} has a fastMode", spec.id);
                mistakes.add("HUB_FILE", what);
            }
            Ok(_) => {}
        }
    }
}

/// Keys with their labels.
pub fn keys(list: &[ApiKey]) -> Keys {
    let pairs = list.iter();
    Keys::new(pairs.map(|key| (key.key.expose_secret(), key.label.as_str())))
}

/// The market, the solver's key and where it is paid.
fn trading(wanted: &Integrator, chains: &Chains, mistakes: &mut Mistakes) -> Option<Trading> {
    let key = RawKey::parse(wanted.solver_key.expose_secret())
        .map_err(|error| mistakes.add("SOLVER_PRIVATE_KEY", error.to_string()))
        .ok();
    let previous = wanted.previous_keys.iter().filter_map(|key| {
        RawKey::parse(key.expose_secret())
            .map(|key| Arc::new(key) as Arc<dyn Signer>)
            .map_err(|error| mistakes.add("SOLVER_PREVIOUS_KEYS", error.to_string()))
            .ok()
    });
    let previous = previous.collect();
    let path = &wanted.market_file;
    let text = std::fs::read_to_string(path)
        .map_err(|error| mistakes.add("MARKET_FILE", format!("{}: {error}", path.display())))
        .ok()?;
    let family = |name: &str| vm::family(&chains.get(name)?.vm_type);
    let market = Market::parse(&text, family)
        .map_err(|error| mistakes.add("MARKET_FILE", error.to_string()))
        .ok()?;
    let solver_chain = match &wanted.solver_chain {
        Some(name) => name.clone(),
        None => market.networks().first()?.name.clone(),
    };
    if chains.get(&solver_chain).is_none() {
        let what = format!("{solver_chain} is not a chain of the chains file");
        mistakes.add("SOLVER_CHAIN", what);
    } else if family(&solver_chain).is_none() {
        let what = format!("{solver_chain} is of a family that this build does not have");
        mistakes.add("SOLVER_CHAIN", what);
    }
    Some(Trading {
        market: Arc::new(market),
        signer: Arc::new(key?),
        previous,
        solver_family: family(&solver_chain)?,
        solver_chain,
        production: wanted.production,
        quote_validity: wanted.quote_validity,
        oracle: wanted.oracle.clone(),
        gap_limit: wanted.gap_limit,
        retirement: Retirement {
            deprecated_at: wanted.requests_v2.deprecated_at,
            throttled_from: wanted.requests_v2.throttled_from,
            sunset_at: wanted.requests_v2.sunset_at,
        },
        reach: match wanted.webhook_allow_private {
            true => Reach::Anywhere,
            false => Reach::Public,
        },
    })
}
