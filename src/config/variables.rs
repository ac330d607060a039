//! The environment as far as the chain lists may read it.

use std::{collections::BTreeMap, fmt};

use secrecy::{ExposeSecret, SecretString};

/// Secrets that no list needs: a file that names one finds it unset.
pub(super) const SECRETS: [&str; 11] = [
    "API_KEYS",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "DATADOG_API_KEY",
    "ECDSA_PRIVATE_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS_JSON",
    "PEERS",
    "SOLVER_ED25519_KEY",
    "SOLVER_ORACLE_KEY",
    "SOLVER_PREVIOUS_KEYS",
    "SOLVER_PRIVATE_KEY",
];

/// The environment as the chain lists see it: variables that are set and not empty, without this daemon's own
/// secrets. It holds providers' URLs and credentials, so it is never printed, and wiped when it is dropped.
#[derive(Clone, Default)]
pub struct Variables(BTreeMap<String, SecretString>);

impl Variables {
    pub(super) fn new(all: BTreeMap<String, String>) -> Self {
        let open = all
            .into_iter()
            .filter(|(name, _)| !SECRETS.contains(&name.as_str()));
        Self(open.map(|(name, value)| (name, value.into())).collect())
    }

    /// The variable's text, if it is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(ExposeSecret::expose_secret)
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} variables", self.0.len())
    }
}
