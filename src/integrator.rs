//! The integrators of the API: their keys, scopes, tiers and webhooks. Pure.
//!
//! The store keeps only the SHA-256 of a key. That digest can still sign events: HMAC-SHA256 replaces a key of more
//! than 64 bytes by its SHA-256 (RFC 2104), and every API key is longer, so the holder verifies with the key itself.

pub mod change;
pub mod header;
pub mod key;
pub mod link;
pub mod webhook;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// An integrator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Integrator {
    /// The unique name of the integrator, by which texts refer to it and its keys.
    pub label: String,
    pub scopes: BTreeSet<Scope>,
    pub tier: Tier,
    /// Oldest first; several during a rotation.
    pub keys: Vec<Key>,
    pub webhook: Option<Webhook>,
    /// The sponsorship wallet, once its holder has proved it.
    pub wallet: Option<Wallet>,
    /// The time (unix seconds) of the last message that linked a wallet; only a newer message can link one.
    #[serde(default)]
    pub proved_at: u64,
    /// Unix milliseconds.
    pub created_at: u64,
    /// Unix milliseconds; from this time on all keys are invalid.
    pub revoked_at: Option<u64>,
}

/// A key as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// SHA-256 of the key's text.
    #[serde(with = "alloy::hex::serde")]
    pub digest: [u8; 32],
    /// Unix milliseconds.
    pub created_at: u64,
    /// Unix milliseconds; set when a newer key replaces this one.
    pub expires_at: Option<u64>,
}

/// What a key may do (guide: protocol 11.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Quotes under the key's label.
    Quote,
    #[serde(rename = "requests:read")]
    RequestsRead,
    FastFill,
    Execute,
    Sponsor,
    Claims,
    #[serde(rename = "usage:read")]
    UsageRead,
    #[serde(rename = "webhooks:write")]
    WebhooksWrite,
    Admin,
}

/// The rate limits of a key (guide: protocol 11.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    #[default]
    Default,
    Elevated,
    /// No limit: for the operator's own keys.
    Unlimited,
}

/// A word that is not a scope or tier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected one of {0}")]
pub struct Unknown(String);

impl Scope {
    pub const ALL: [Self; 9] = [
        Self::Quote,
        Self::RequestsRead,
        Self::FastFill,
        Self::Execute,
        Self::Sponsor,
        Self::Claims,
        Self::UsageRead,
        Self::WebhooksWrite,
        Self::Admin,
    ];

    /// The scope's word in the API, the store and commands.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Quote => "quote",
            Self::RequestsRead => "requests:read",
            Self::FastFill => "fast-fill",
            Self::Execute => "execute",
            Self::Sponsor => "sponsor",
            Self::Claims => "claims",
            Self::UsageRead => "usage:read",
            Self::WebhooksWrite => "webhooks:write",
            Self::Admin => "admin",
        }
    }
}

impl Tier {
    pub const ALL: [Self; 3] = [Self::Default, Self::Elevated, Self::Unlimited];

    /// The tier's word in the API, the store and commands.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Elevated => "elevated",
            Self::Unlimited => "unlimited",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl FromStr for Scope {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let found = Self::ALL.into_iter().find(|scope| scope.text() == text);
        found.ok_or_else(|| Unknown(Self::ALL.map(Self::text).join(", ")))
    }
}

impl FromStr for Tier {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let found = Self::ALL.into_iter().find(|tier| tier.text() == text);
        found.ok_or_else(|| Unknown(Self::ALL.map(Self::text).join(", ")))
    }
}

/// Where an integrator's events go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    pub url: url::Url,
    /// Headers that every delivery carries; none of [`header`]'s reserved ones.
    pub headers: BTreeMap<String, String>,
}

/// A linked wallet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wallet {
    /// The address as its chain spells it.
    pub address: String,
    /// Unix milliseconds.
    pub linked_at: u64,
}

impl Integrator {
    /// Whether the integrator has a valid key at `now` (unix milliseconds).
    pub fn active(&self, now: u64) -> bool {
        self.signing(now).is_some()
    }

    /// The digest that signs events at `now`: that of the newest valid key.
    pub fn signing(&self, now: u64) -> Option<&[u8; 32]> {
        self.usable(now).last().map(|key| &key.digest)
    }

    /// The valid keys at `now`, the newest last.
    pub fn usable(&self, now: u64) -> impl Iterator<Item = &Key> {
        let revoked = self.revoked_at.is_some_and(|at| at <= now);
        let usable = move |key: &&Key| !revoked && key.expires_at.is_none_or(|end| now < end);
        self.keys.iter().filter(usable)
    }

    /// When the first of the valid keys expires.
    pub fn ends(&self, now: u64) -> Option<u64> {
        self.usable(now).filter_map(|key| key.expires_at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_everywhere() {
        for scope in Scope::ALL {
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.text());
            assert_eq!(scope.text().parse(), Ok(scope));
        }
        for tier in Tier::ALL {
            assert_eq!(serde_json::to_value(tier).unwrap(), tier.text());
            assert_eq!(tier.text().parse(), Ok(tier));
        }
        for word in ["", "Quote", "quote ", "all"] {
            assert!(word.parse::<Scope>().is_err() && word.parse::<Tier>().is_err());
        }
    }
}
