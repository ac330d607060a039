//! What claims are judged by, and how evidence names it.

use serde_json::json;
use vm::{B256, SpecError};

use super::parts::{accept_routers, finalities, hub, market};
use crate::{
    attest::{backing::Tolerance, evidence::Judge, service::Attestor},
    chains::Chains,
    config::{Config, Mistakes},
    hub::Settings,
};

/// The version of what the digest of the rules is over. Version 1 was over the providers' numbers and the labels of
/// API keys as well, so that nobody but its maker could compute it.
const VERSION: u32 = 2;
/// What stands between the daemon's version and this one in evidence: `0.1.0+rules.2`. Without it the digest is of
/// version 1.
const MARK: &str = "+rules.";

/// What claims are judged by.
pub struct Rules {
    pub chains: Chains,
    pub settings: Settings,
    /// This version, and the digest of the rules.
    pub judge: Judge,
}

/// How the rules of some evidence differ from others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OtherRules {
    #[error(
        "judged by rules of another version: their digest is of version {0}, those of this daemon are of version \
         {VERSION}, and the two cannot be compared"
    )]
    Version(u32),
    #[error("judged by rules {then}, this configuration has {now}")]
    Digest { then: B256, now: B256 },
}

impl Rules {
    /// Reads the chains, the hub and the market's routers, and no key.
    pub fn of(config: &Config, mut mistakes: Mistakes) -> Result<Self, Mistakes> {
        let chains = Chains::gather(config, &mut mistakes).map(|mut chains| {
            if let Some(wanted) = &config.integrator
                && let Some(market) = market(wanted, &chains, &mut mistakes)
            {
                accept_routers(&mut chains, &market);
            }
            let settings = hub(&chains, &mut mistakes);
            finalities(&chains, settings.as_ref(), &mut mistakes);
            (chains, settings)
        });
        let whole = chains.and_then(|(chains, settings)| Some((chains, settings?)));
        mistakes.or(whole.map(|(chains, settings)| Self {
            judge: judge(config, &chains),
            chains,
            settings,
        }))
    }

    /// The same rules with nobody to ask about a chain ([`Chains::unasked`]).
    pub fn unasked(&self) -> Result<Self, SpecError> {
        Ok(Self {
            chains: self.chains.unasked()?,
            settings: self.settings.clone(),
            judge: self.judge.clone(),
        })
    }

    /// Whether a daemon of `version`, as evidence names it, whose rules had the digest `then`, judged by these.
    pub fn compare(&self, version: &str, then: B256) -> Result<(), OtherRules> {
        let now = self.judge.configuration;
        match version_of(version) {
            VERSION if then == now => Ok(()),
            VERSION => Err(OtherRules::Digest { then, now }),
            other => Err(OtherRules::Version(other)),
        }
    }
}

/// Who judges, for the evidence: this version, and the digest of what `chains` and `config` say about claims: the
/// sha256 of their compact JSON, names of fields sorted. It is equal for everybody who judges by these rules,
/// whichever providers and API keys he has.
pub fn judge(config: &Config, chains: &Chains) -> Judge {
    let rules = json!({
        "version": VERSION,
        "files": chains.rules(),
        "claims": config.claim_rules(),
    });
    let finality = chains.specs();
    let finality = finality.map(|spec| (spec.id.clone(), spec.finality.clone()));
    Judge {
        version: format!("{}{MARK}{VERSION}", env!("CARGO_PKG_VERSION")),
        configuration: vm::evidence::digest(&rules),
        finality: finality.collect(),
        replays: false,
    }
}

/// The oracle with the operator's rules for claims.
pub fn with_rules(config: &Config, oracle: Attestor) -> Attestor {
    Attestor {
        tolerance: Tolerance::new(config.claims.short_tolerance_bps).unwrap_or_default(),
        bound_nonces: config.bound_nonces(),
        shown_recoveries: config.moves_real_money(),
        ..oracle
    }
}

/// The version of the rules' digest that a daemon of `version` made.
fn version_of(version: &str) -> u32 {
    let named = version.split_once(MARK);
    let number = named.and_then(|(_, number)| number.parse().ok());
    number.unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;
    use crate::{
        attest::{journal::Journal, peers::Peers},
        run::oracle,
        sign::raw::RawKey,
        store::memory::MemoryStore,
    };

    /// The rules of testnets, or of this environment.
    fn rules(set: &[(&str, &str)]) -> Rules {
        configured(set).1
    }

    fn configured(set: &[(&str, &str)]) -> (Config, Rules) {
        let base = [
            ("ENVIRONMENT", "testnets.prod"),
            ("ECDSA_PRIVATE_KEY", "0x01"),
        ];
        let all = base.iter().chain(set);
        let all = all.map(|(name, value)| ((*name).into(), (*value).into()));
        let (config, mistakes) = Config::draft(all);
        let rules = Rules::of(&config, mistakes).unwrap();
        (config, rules)
    }

    /// `WITHDRAWAL_NONCES` changes nothing of what the hub has to say.
    #[tokio::test]
    async fn the_hub_shows_a_recovery_where_real_money_is_at_stake() {
        let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
        for (environment, nonces, expected) in [
            ("testnets.prod", "", false),
            ("testnets.prod", "bound", false),
            ("mainnets.prod", "", true),
            ("mainnets.prod", "any", true),
        ] {
            let set = [("ENVIRONMENT", environment), ("WITHDRAWAL_NONCES", nonces)];
            let (config, rules) = configured(&set);
            let store = Arc::new(MemoryStore::default());
            let journal = Journal::new(store.clone(), Arc::new(RawKey::nobody().unwrap()));
            let peers = Peers::new(Vec::new(), Duration::ZERO, None).unwrap();
            let settings = rules.settings.clone();
            let judged = oracle(&rules.chains, settings, Arc::new(journal), store, peers);
            let found = with_rules(&config, judged).shown_recoveries;
            assert_eq!(found, expected, "{environment} {nonces}");
        }
    }

    #[tokio::test]
    async fn rules_are_equal_for_everybody_who_judges_alike() {
        let own = rules(&[]).judge;
        let alike: [&[(&str, &str)]; 4] = [
            &[("SEPOLIA_RPC_URL", "https://a.example,https://b.example")],
            &[
                ("SEPOLIA_RPC_URL", "https://a.example,https://b.example"),
                ("SEPOLIA_RPC_QUORUM", "1"),
            ],
            &[("API_KEYS", "key:label"), ("FORCE_API_KEYS", "label")],
            // What it is here without it.
            &[("SHORT_CLAIM_TOLERANCE_BPS", "100"), ("CHAINS", "sepolia")],
        ];
        for set in alike {
            assert_eq!(rules(set).judge, own, "{set:?}");
        }
        let others: [&[(&str, &str)]; 4] = [
            &[("SHORT_CLAIM_TOLERANCE_BPS", "99")],
            &[("WITHDRAWAL_NONCES", "bound")],
            &[("FINALITY_PROFILE", "strict")],
            &[("ENVIRONMENT", "mainnets.prod")],
        ];
        for set in others {
            assert_ne!(rules(set).judge.configuration, own.configuration, "{set:?}");
        }
    }

    #[tokio::test]
    async fn a_digest_of_another_version_is_not_compared() {
        let rules = rules(&[]);
        let (own, other) = (rules.judge.clone(), B256::repeat_byte(1));
        assert_eq!(rules.compare(&own.version, own.configuration), Ok(()));
        let now = own.configuration;
        let differs = Err(OtherRules::Digest { then: other, now });
        assert_eq!(rules.compare(&own.version, other), differs);
        for (version, of) in [("0.1.0", 1), ("0.9.0+rules.3", 3), ("0.9.0+rules.x", 1)] {
            let cannot = Err(OtherRules::Version(of));
            assert_eq!(rules.compare(version, now), cannot, "{version}");
        }
        let why = OtherRules::Version(1).to_string();
        assert!(why.contains("rules of another version"), "{why}");
    }
}
