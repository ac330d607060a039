//! Environment variables → [`Config`]. The only reader of the environment: it reports all mistakes at once and never
//! prints secrets. It opens nothing and reads no chain list ([`crate::chains`] does).

mod claims;
mod directories;
mod integrator;
mod listen;
mod logs;
mod mistake;
mod read;
mod shadow;
mod signing;
mod variables;

use std::{collections::BTreeMap, fmt, path::PathBuf, str::FromStr, time::Duration};

use secrecy::SecretString;
use serde::Deserialize;
use vm::EvmAddress;

use self::read::Reader;
pub use self::{
    claims::Claims,
    directories::{data_dir, directories},
    integrator::{Integrator, RequestsV2, SolverOracle},
    listen::{Listen, Rate, TrustedProxies},
    logs::{LogFormat, LogIntake},
    mistake::{Mistake, Mistakes},
    shadow::ShadowSetting,
    signing::{AwsKms, GcpKms, Names, PreviousKey, Signing},
    variables::Variables,
};

/// The default of `DATA_DIR`.
const DATA_DIR: &str = "./data";
/// The default of `DISK_RESERVE`: a gibibyte.
const DISK_RESERVE: u64 = 1 << 30;
/// The default of `FINALITY_PROFILE`.
const FINALITY: FinalityProfile = FinalityProfile::Network;

/// The variables of fixed name, as text. Chain variables (`<ID>_RPC_URL`, `<ID>_RPC_QUORUM` and
/// those that a chains file names with `$`) are looked up by name.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Raw {
    environment: Option<String>,
    data_dir: Option<String>,
    journal_dir: Option<String>,
    disk_reserve: Option<String>,
    chains_file: Option<String>,
    hub_file: Option<String>,
    chains: Option<String>,
    finality_profile: Option<String>,
    api_keys: Option<SecretString>,
    force_api_keys: Option<String>,
    short_claim_tolerance_bps: Option<String>,
    withdrawal_nonces: Option<String>,
    shadow: Option<String>,
    shadow_of: Option<String>,
    unauthenticated_rate_limit_max: Option<String>,
    unauthenticated_rate_limit_window_ms: Option<String>,
    peers: Option<SecretString>,
    peer_request_timeout_ms: Option<String>,
    oracle_signers: Option<String>,
    oracle_signers_threshold: Option<String>,
    signing_module: Option<String>,
    ecdsa_private_key: Option<SecretString>,
    gcp_kms_key_version: Option<String>,
    gcp_kms_endpoint: Option<String>,
    aws_kms_signer_key_id: Option<String>,
    aws_kms_signer_key_region: Option<String>,
    aws_kms_endpoint: Option<String>,
    image_tag: Option<String>,
    service: Option<String>,
    log_format: Option<String>,
    datadog_api_key: Option<SecretString>,
    datadog_endpoint: Option<String>,
    integrator_http_port: Option<String>,
    market_file: Option<String>,
    solver_signing_module: Option<String>,
    solver_private_key: Option<SecretString>,
    solver_gcp_kms_key_version: Option<String>,
    solver_aws_kms_key_id: Option<String>,
    solver_aws_kms_key_region: Option<String>,
    solver_ed25519_signing_module: Option<String>,
    solver_ed25519_key: Option<SecretString>,
    solver_ed25519_gcp_kms_key_version: Option<String>,
    solver_ed25519_aws_kms_key_id: Option<String>,
    solver_ed25519_aws_kms_key_region: Option<String>,
    solver_previous_keys: Option<SecretString>,
    solver_chain: Option<String>,
    solver_oracle_url: Option<String>,
    solver_oracle_key: Option<SecretString>,
    solver_gap_limit_usd: Option<String>,
    webhook_allow_private: Option<String>,
    quote_validity: Option<String>,
    requests_v2_deprecated_at: Option<String>,
    requests_v2_throttled_from: Option<String>,
    requests_v2_sunset_at: Option<String>,
}

/// A configuration that can be started.
#[derive(Debug)]
pub struct Config {
    pub environment: String,
    pub listen: Listen,
    pub data_dir: PathBuf,
    /// The directory of the signing journal; `None`: `data_dir`.
    pub journal_dir: Option<PathBuf>,
    /// Bytes that stay free on the disks of both; below, no quotes are taken.
    pub disk_reserve: u64,
    pub chains_file: Option<PathBuf>,
    pub hub_file: Option<PathBuf>,
    /// The chains that this oracle serves; `None`: those that have providers.
    pub chains: Option<Vec<String>>,
    pub finality_profile: FinalityProfile,
    /// `None`: no key is needed.
    pub api_keys: Option<Vec<ApiKey>>,
    /// There when it judges and lets no signature out.
    pub shadow: Option<ShadowSetting>,
    /// `None`: callers without a key are refused (when there are keys) or free (when there are none).
    pub keyless_limit: Option<KeylessLimit>,
    pub claims: Claims,
    pub peers: Vec<PeerSetting>,
    pub peer_timeout: Duration,
    pub multisig: Option<Multisig>,
    pub signing: Signing,
    pub image_tag: Option<String>,
    pub service: Option<String>,
    pub log_format: LogFormat,
    /// Where log lines are sent besides standard error.
    pub log_intake: Option<LogIntake>,
    /// `None`: this daemon is an oracle only.
    pub integrator: Option<Integrator>,
    /// Variables for the chain lists.
    pub variables: Variables,
    /// Variables that are set without effect: the daemon warns about them.
    pub unused: Vec<&'static str>,
}

/// Whether the chains' own finality tags are demanded everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FinalityProfile {
    /// Depth and age as the network uses them; a tag where the chain's entry asks for it.
    #[default]
    Network,
    /// Additionally the chain's `finalized` tag everywhere.
    Strict,
}

/// A key that opens the protected routes.
#[derive(Clone, Debug)]
pub struct ApiKey {
    pub key: SecretString,
    pub label: String,
}

/// Fixed window for callers without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeylessLimit {
    pub max: u32,
    pub window: Duration,
}

/// One entry of `PEERS`.
#[derive(Clone)]
pub struct PeerSetting {
    /// May hold credentials.
    pub url: url::Url,
    pub key: PeerKey,
}

impl fmt::Debug for PeerSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.host_str().unwrap_or_default();
        write!(f, "PeerSetting({host}, {:?})", self.key)
    }
}

/// What is sent to a peer as `x-api-key`.
#[derive(Clone, Debug)]
pub enum PeerKey {
    /// Nothing: the peer is open, or knows this daemon by its address.
    None,
    Own(SecretString),
    /// The caller's own header.
    PassThrough,
}

/// `ORACLE_SIGNERS` and `ORACLE_SIGNERS_THRESHOLD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multisig {
    pub members: Vec<EvmAddress>,
    /// Distinct members among the peers whose signatures are waited for; 0 asks no peer at all.
    pub threshold: usize,
}

impl Multisig {
    /// Whether the members are too few for the threshold: then all peers are always waited for.
    pub fn is_unreachable(&self) -> bool {
        self.threshold > self.members.len()
    }
}

impl Config {
    /// Reads a configuration from `(name, value)` pairs, usually [`std::env::vars`].
    pub fn from_variables(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Mistakes> {
        let (config, mistakes) = Self::draft(variables);
        mistakes.or(Some(config))
    }

    /// As [`Self::from_variables`], for callers that gather more mistakes. A variable with a mistake has its default,
    /// or is empty: a configuration with mistakes must not be started.
    pub fn draft(variables: impl IntoIterator<Item = (String, String)>) -> (Self, Mistakes) {
        let variables: BTreeMap<_, _> = variables
            .into_iter()
            .filter(|(_, value)| !value.trim().is_empty())
            .collect();
        let mut mistakes = Mistakes::default();
        let raw: Raw = texts(&variables, &mut mistakes);
        let listen = texts(&variables, &mut mistakes);
        let listen = Reader::new(&mut mistakes).listen(listen);
        let config = Self::checked((raw, listen), variables, &mut mistakes);
        (config, mistakes)
    }

    fn checked(
        (mut raw, listen): (Raw, Listen),
        variables: BTreeMap<String, String>,
        mistakes: &mut Mistakes,
    ) -> Self {
        let mut read = Reader::new(mistakes);
        let environment = read.required("ENVIRONMENT", raw.environment.take());
        let environment = environment.unwrap_or_default();
        let trades = raw.integrator_http_port.is_some();
        let shadow = read.shadow(raw.shadow.take(), raw.shadow_of.take(), trades);
        let own = raw.signing();
        let signing = read.signing_of(shadow.as_ref(), |read| {
            read.signing(own, is_production(&environment), &variables)
        });
        let of_integrator = raw.integrator(is_production(&environment));
        let keyless_limit = read.keyless_limit(
            raw.unauthenticated_rate_limit_max,
            raw.unauthenticated_rate_limit_window_ms,
        );
        let nonces = raw.withdrawal_nonces;
        let allowed = [raw.force_api_keys, raw.short_claim_tolerance_bps, nonces];
        let (api_keys, peers, claims) = read.callers(raw.api_keys, raw.peers, allowed);
        let integrator = read.integrator(of_integrator, &variables);
        let intake = (raw.datadog_api_key, raw.datadog_endpoint);
        let log_intake = read.log_intake(intake, &environment, &variables);
        let mut unused = unused(&variables, &signing, integrator.as_ref());
        unused.extend(LogIntake::unused(&variables, &environment));
        Self {
            unused,
            integrator,
            listen,
            data_dir: raw.data_dir.unwrap_or_else(|| DATA_DIR.into()).into(),
            journal_dir: raw.journal_dir.map(Into::into),
            disk_reserve: read.parse("DISK_RESERVE", raw.disk_reserve, DISK_RESERVE),
            chains_file: raw.chains_file.map(Into::into),
            hub_file: raw.hub_file.map(Into::into),
            chains: raw.chains.as_deref().map(read::list),
            finality_profile: read.parse("FINALITY_PROFILE", raw.finality_profile, FINALITY),
            api_keys,
            claims,
            shadow,
            keyless_limit,
            peers,
            peer_timeout: read.peer_timeout(raw.peer_request_timeout_ms),
            multisig: read.multisig(raw.oracle_signers, raw.oracle_signers_threshold),
            image_tag: raw.image_tag,
            service: raw.service,
            log_format: read.parse("LOG_FORMAT", raw.log_format, LogFormat::Auto),
            log_intake,
            variables: Variables::new(variables),
            signing,
            environment,
        }
    }

    /// Whether webhooks may be plain HTTP.
    pub fn plain_webhooks(&self) -> bool {
        let integrator = self.integrator.as_ref();
        integrator.is_some_and(|integrator| integrator.webhook_allow_private)
    }

    /// Whether the operator runs this for others, by the environment's name; `testnets.prod` is production, too.
    pub fn is_production(&self) -> bool {
        is_production(&self.environment)
    }

    /// Whether a withdrawal's nonce must commit to the withdrawal.
    pub fn bound_nonces(&self) -> bool {
        let chosen = self.claims.bound_nonces;
        chosen.unwrap_or_else(|| self.moves_real_money())
    }

    /// Whether statements move real money: production, and not a testnet's.
    pub fn moves_real_money(&self) -> bool {
        let name = self.environment.to_ascii_lowercase();
        self.is_production() && (name.contains("mainnet") || !name.contains("testnet"))
    }
}

/// The variables that `T` has fields for.
fn texts<T: Default + serde::de::DeserializeOwned>(
    variables: &BTreeMap<String, String>,
    mistakes: &mut Mistakes,
) -> T {
    envy::from_iter(variables.clone()).unwrap_or_else(|error| {
        mistakes.add("environment", error.to_string());
        T::default()
    })
}

fn unused(
    variables: &BTreeMap<String, String>,
    signing: &Signing,
    integrator: Option<&Integrator>,
) -> Vec<&'static str> {
    let set = |name: &&str| variables.contains_key(*name);
    let solver = integrator.into_iter().flat_map(|it| {
        let ed25519 = it.ed25519_signing.as_ref();
        let ed25519 = ed25519.and_then(|key| key.unused(Names::ED25519));
        [it.solver_signing.unused(Names::SOLVER), ed25519]
    });
    let solver = solver.flatten();
    let names = signing.unused(Names::ORACLE).into_iter().chain(solver);
    names.filter(set).collect()
}

/// Whether the name contains `prod` or `mainnet`, in any case. A name in doubt counts as production.
fn is_production(environment: &str) -> bool {
    let name = environment.to_ascii_lowercase();
    ["prod", "mainnet"].iter().any(|word| name.contains(word))
}

impl FromStr for FinalityProfile {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "network" => Ok(Self::Network),
            "strict" => Ok(Self::Strict),
            _ => Err("expected network or strict"),
        }
    }
}

#[cfg(test)]
mod tests;
