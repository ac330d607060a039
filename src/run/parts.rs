//! The parts of a daemon that the environment and its files define. They are read without a network, but for a key
//! service, and every mistake is gathered before anything is started.

use std::sync::Arc;

use futures::future::join_all;
use secrecy::ExposeSecret;
use vm::{EvmAddress, Family};

use super::{
    rules::judge,
    signer::{ed25519, former, signer},
};
use crate::{
    api::intents::{access, retirement::Retirement},
    attest::{finality, journal::Journal, shadow::Shadow},
    chains::Chains,
    config::{ApiKey, Config, Integrator, Mistakes, Names, SolverOracle},
    http::Keys,
    hub::Settings,
    market::Market,
    sign::{self, FormerKey, KeyRing, Signer},
    solver::{chain::TradingChainError, judge::Patience},
    store::Store,
    webhook::guard::Reach,
};

/// A daemon before it is opened: what does not need a network or a store.
pub struct Parts {
    pub signer: Arc<dyn Signer>,
    pub chains: Arc<Chains>,
    pub settings: Settings,
    /// `None`: an oracle only.
    pub trading: Option<Trading>,
}

/// The other oracle of a daemon that lets no signature out.
pub fn shadow(config: &Config) -> anyhow::Result<Option<Arc<Shadow>>> {
    let Some(setting) = &config.shadow else {
        return Ok(None);
    };
    tracing::warn!("SHADOW: every claim is judged and recorded, and no signature is let out");
    let report = config.data_dir.join("shadow.jsonl");
    Ok(Some(Arc::new(Shadow::new(setting.of.clone(), report)?)))
}

/// The journal of what `chains` and `config` have judged.
pub fn journal(
    config: &Config,
    chains: &Chains,
    (store, signer): (Arc<dyn Store>, Arc<dyn Signer>),
) -> Arc<Journal> {
    Arc::new(Journal::new(store, signer).judged_by(judge(config, chains)))
}

/// What the integrator API and its solver are made of.
pub struct Trading {
    pub market: Arc<Market>,
    pub keys: KeyRing,
    /// Keys that it had before.
    pub former: Vec<FormerKey>,
    /// The network whose account the solver is paid on.
    pub solver_chain: String,
    /// That network's family: orders name their solver by an account of it.
    pub solver_family: &'static Family,
    /// Real money moves: what is for development only is off.
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
            funds: 300,
            forced_by_all: !self.production,
        }
    }
}

impl Parts {
    /// Reads the parts; an error with all mistakes, `mistakes` first. A key service is asked for its public key.
    pub async fn of(config: &Config, mut mistakes: Mistakes) -> Result<Self, Mistakes> {
        let signer = signer(&config.signing, Names::ORACLE, &mut mistakes).await;
        let rates = config.listen.rates.iter();
        for rate in rates.filter(|rate| !access::is_limit(&rate.name)) {
            let what = format!("{}: no limit has this name", rate.name);
            mistakes.add("RATE_LIMITS", what);
        }
        let mut chains = Chains::gather(config, &mut mistakes);
        let (mut settings, mut trading) = (None, None);
        if let Some(chains) = &mut chains {
            if let Some(wanted) = &config.integrator {
                trading = self::trading(wanted, chains, &mut mistakes).await;
            }
            if let Some(trading) = &trading {
                accept_routers(chains, &trading.market);
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

/// The routers that the solver fills through count.
pub(super) fn accept_routers(chains: &mut Chains, market: &Market) {
    for network in market.networks() {
        for router in network.fill_routers() {
            chains.accept_router(&network.name, router);
        }
    }
}

/// The settlement contracts as the hub file names them.
pub(super) fn hub(chains: &Chains, mistakes: &mut Mistakes) -> Option<Settings> {
    // The mistake of an unreadable file is there already.
    if chains.hub_entry().is_empty() && !mistakes.0.is_empty() {
        return None;
    }
    Settings::parse(chains.hub_entry())
        .map_err(|error| mistakes.add("HUB_FILE", error.to_string()))
        .ok()
}

/// The fast mode of each chain that can be read, and whether the hub can limit it.
pub(super) fn finalities(chains: &Chains, settings: Option<&Settings>, mistakes: &mut Mistakes) {
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

/// The solver's keys; a bad one is a mistake that does not repeat it.
async fn solver_keys(wanted: &Integrator, mistakes: &mut Mistakes) -> Option<KeyRing> {
    let secp256k1 = signer(&wanted.solver_signing, Names::SOLVER, mistakes).await;
    let ed25519 = match &wanted.ed25519_signing {
        Some(signing) => Some(ed25519(signing, Names::ED25519, mistakes).await?),
        None => None,
    };
    Some(KeyRing {
        secp256k1: secp256k1?,
        ed25519,
    })
}

/// The keys that the solver had before, without those that are mistakes.
async fn former_keys(wanted: &Integrator, mistakes: &mut Mistakes) -> Vec<FormerKey> {
    let opened = join_all(wanted.previous_keys.iter().map(former)).await;
    let keys = opened.into_iter().filter_map(|key| {
        key.map_err(|error| mistakes.add(Names::PREVIOUS.raw, error))
            .ok()
    });
    keys.collect()
}

/// A mistake for every network of the market whose accounts have keys of a scheme that the solver has none of.
fn keyless_networks(
    market: &Market,
    keys: &KeyRing,
    family: impl Fn(&str) -> Option<&'static Family>,
    mistakes: &mut Mistakes,
) {
    for network in market.networks().iter().filter(|network| !network.disabled) {
        let family = family(&network.name);
        let scheme = family.and_then(|family| Some(family.keys?.scheme));
        if let Some(scheme) = scheme.filter(|scheme| keys.of(*scheme).is_none()) {
            let what = format!("must be set: {} has accounts with such keys", network.name);
            mistakes.add(sign::variable(scheme), what);
        }
    }
}

/// A mistake for every network of the market whose family does not trade in this build.
fn untraded_networks(
    market: &Market,
    family: impl Fn(&str) -> Option<&'static Family>,
    mistakes: &mut Mistakes,
) {
    for network in market.networks().iter().filter(|network| !network.disabled) {
        if family(&network.name).is_some_and(|family| family.providers.is_none()) {
            let error = TradingChainError::Unsupported(network.name.clone());
            mistakes.add("MARKET_FILE", error.to_string());
        }
    }
}

/// Whether the solver's account on chains of a family is the one that its promises are signed with.
fn promises(family: &Family) -> bool {
    let any = EvmAddress::repeat_byte(0x11);
    let named = family.account(&format!("{any:#x}"));
    named.is_ok_and(|named| named.bytes() == any.as_slice())
}

/// The first network of the market by whose accounts orders can name the solver; a mistake where there is none.
fn promising_network(
    market: &Market,
    family: impl Fn(&str) -> Option<&'static Family>,
    mistakes: &mut Mistakes,
) -> Option<String> {
    let promising = |name: &str| family(name).is_some_and(promises);
    let mut networks = market.networks().iter();
    let found = networks.find(|network| promising(&network.name));
    if found.is_none() {
        let what = "no network of the market has accounts that sign the solver's promises";
        mistakes.add("SOLVER_CHAIN", what);
    }
    found.map(|network| network.name.clone())
}

/// Why orders cannot name the solver by an account of a chain.
fn unfit_for_promises(loaded: bool, family: Option<&Family>) -> Option<&'static str> {
    match family {
        _ if !loaded => Some("is not a chain of the chains file"),
        None => Some("is of a family that this build does not have"),
        Some(family) if !promises(family) => {
            Some("is of a family whose accounts cannot sign the solver's promises")
        }
        Some(_) => None,
    }
}

/// The market of the market file.
pub(super) fn market(
    wanted: &Integrator,
    chains: &Chains,
    mistakes: &mut Mistakes,
) -> Option<Market> {
    let path = &wanted.market_file;
    let text = std::fs::read_to_string(path)
        .map_err(|error| mistakes.add("MARKET_FILE", format!("{}: {error}", path.display())))
        .ok()?;
    Market::parse(&text, |name| chains.get(name)?.family())
        .map_err(|error| mistakes.add("MARKET_FILE", error.to_string()))
        .ok()
}

/// The market, the solver's keys and where it is paid.
async fn trading(wanted: &Integrator, chains: &Chains, mistakes: &mut Mistakes) -> Option<Trading> {
    let keys = solver_keys(wanted, mistakes).await;
    let former = former_keys(wanted, mistakes).await;
    let family = |name: &str| chains.get(name)?.family();
    let market = market(wanted, chains, mistakes)?;
    if let Some(keys) = &keys {
        keyless_networks(&market, keys, family, mistakes);
    }
    untraded_networks(&market, family, mistakes);
    let solver_chain = match &wanted.solver_chain {
        Some(name) => name.clone(),
        None => promising_network(&market, family, mistakes)?,
    };
    let loaded = chains.get(&solver_chain).is_some();
    if let Some(why) = unfit_for_promises(loaded, family(&solver_chain)) {
        mistakes.add("SOLVER_CHAIN", format!("{solver_chain} {why}"));
    }
    Some(Trading {
        market: Arc::new(market),
        keys: keys?,
        former,
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use vm::{FamilyKeys, trade::Scheme};

    use super::*;

    const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
    const SEED: &str = "0x9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";

    fn integrator(set: &[(&str, &str)]) -> Integrator {
        let base = [
            ("ENVIRONMENT", "test"),
            ("ECDSA_PRIVATE_KEY", KEY),
            ("INTEGRATOR_HTTP_PORT", "1"),
            ("MARKET_FILE", "market.json"),
            ("SOLVER_PRIVATE_KEY", KEY),
        ];
        let all = base.iter().chain(set);
        let all = all.map(|(name, value)| ((*name).into(), (*value).into()));
        Config::from_variables(all).unwrap().integrator.unwrap()
    }

    /// A family like the settlement chain's whose accounts have ed25519 keys.
    fn ed25519_family() -> &'static Family {
        let keys = vm::SETTLEMENT.keys.unwrap();
        let scheme = Scheme::Ed25519;
        let keys = Some(FamilyKeys { scheme, ..keys });
        Box::leak(Box::new(Family {
            keys,
            ..*vm::SETTLEMENT
        }))
    }

    /// A market of these networks.
    fn market_of(names: &[&str], family: impl Fn(&str) -> Option<&'static Family>) -> Market {
        let native = format!("0x{}", "00".repeat(20));
        let networks = names.iter().zip(1..).map(|(name, number)| {
            json!({
                "name": name, "chainId": number, "displayName": name,
                "currencies": [{"address": native, "symbol": "ETH", "name": "Ether", "decimals": 18,
                                "group": "eth", "class": "major", "solver": true}],
            })
        });
        let file = networks.collect::<serde_json::Value>().to_string();
        Market::parse(&file, family).unwrap()
    }

    #[test]
    fn promises_are_signed_with_an_account_of_the_solvers_chain() {
        for name in ["bitcoin", "solana", "tron"] {
            let family = vm::FAMILIES
                .iter()
                .find(|family| family.name.starts_with(name));
            let why = unfit_for_promises(true, Some(family.unwrap())).unwrap();
            assert!(why.contains("cannot sign"), "{name}: {why}");
        }
        assert_eq!(unfit_for_promises(true, Some(vm::SETTLEMENT)), None);
        assert!(unfit_for_promises(true, None).is_some());
        assert!(unfit_for_promises(false, Some(vm::SETTLEMENT)).is_some());
    }

    #[test]
    fn a_market_without_a_network_for_promises_is_a_mistake() {
        let market = market_of(&["base", "own"], |_| Some(vm::SETTLEMENT));
        let mut mistakes = Mistakes::default();
        let found = promising_network(&market, |_| Some(vm::SETTLEMENT), &mut mistakes);
        assert_eq!((found.as_deref(), mistakes.0.len()), (Some("base"), 0));
        let other = |_: &str| vm::family("solana-vm");
        assert_eq!(promising_network(&market, other, &mut mistakes), None);
        assert_eq!(mistakes.0[0].variable, "SOLVER_CHAIN");
    }

    #[tokio::test]
    async fn keys_that_are_none_are_mistakes_which_do_not_repeat_them() {
        let wrong = integrator(&[
            ("SOLVER_ED25519_KEY", "0xs3cret"),
            ("SOLVER_PREVIOUS_KEYS", "s3cret,ed25519:s3cret"),
        ]);
        let mut mistakes = Mistakes::default();
        assert!(solver_keys(&wrong, &mut mistakes).await.is_none());
        assert_eq!(former_keys(&wrong, &mut mistakes).await.len(), 0);
        let named = mistakes.0.iter().map(|mistake| &mistake.variable[..]);
        let [ed25519, former] = ["SOLVER_ED25519_KEY", "SOLVER_PREVIOUS_KEYS"];
        assert_eq!(named.collect::<Vec<_>>(), [ed25519, former, former]);
        assert!(!mistakes.to_string().contains("s3cret"), "{mistakes}");
    }

    #[tokio::test]
    async fn a_network_whose_accounts_have_no_key_of_ours_is_a_mistake() {
        let (ordinary, own) = (vm::SETTLEMENT, ed25519_family());
        let families = |name: &str| Some(if name == "own" { own } else { ordinary });
        let market = market_of(&["base", "own"], families);
        let mistakes = async |set: &[(&str, &str)]| {
            let mut mistakes = Mistakes::default();
            let keys = solver_keys(&integrator(set), &mut mistakes).await.unwrap();
            keyless_networks(&market, &keys, families, &mut mistakes);
            let texts = mistakes.0.iter();
            let texts = texts.map(|one| format!("{}: {}", one.variable, one.what));
            texts.collect::<Vec<_>>()
        };
        let missing = "SOLVER_ED25519_KEY: must be set: own has accounts with such keys";
        assert_eq!(mistakes(&[]).await, [missing]);
        assert_eq!(mistakes(&[("SOLVER_ED25519_KEY", SEED)]).await, [""; 0]);
    }

    #[test]
    fn a_network_of_a_family_that_does_not_trade_is_a_mistake() {
        let untraded: &Family = Box::leak(Box::new(Family {
            providers: None,
            ..*vm::SETTLEMENT
        }));
        let families = |name: &str| {
            Some(if name == "own" {
                untraded
            } else {
                vm::SETTLEMENT
            })
        };
        let market = market_of(&["base", "own"], families);
        let mut mistakes = Mistakes::default();
        untraded_networks(&market, families, &mut mistakes);
        let texts = mistakes.0.iter();
        let texts = texts.map(|one| format!("{}: {}", one.variable, one.what));
        let why = "MARKET_FILE: own: this version sends no transactions there";
        assert_eq!(texts.collect::<Vec<_>>(), [why]);
    }
}
