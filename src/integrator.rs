//! Who may use the integrator API under a name: keys, what they open, where events go. Pure.
//!
//! The store keeps only the SHA-256 of a key. Events are signed with the key all the same: HMAC-SHA256 replaces a key
//! of more than 64 bytes by its SHA-256 (RFC 2104), and every key is longer than that, so the digest signs what the
//! key verifies.

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
    /// Its unique name, by which texts refer to the integrator and its keys.
    pub label: String,
    pub scopes: BTreeSet<Scope>,
    pub tier: Tier,
    /// The newest last; several while a rotation is under way.
    pub keys: Vec<Key>,
    pub webhook: Option<Webhook>,
    /// The sponsorship wallet, once it has been proved.
    pub wallet: Option<Wallet>,
    /// The time (unix seconds) of the last message that linked a wallet. Only a newer message can link one again.
    #[serde(default)]
    pub proved_at: u64,
    /// Unix milliseconds.
    pub created_at: u64,
    /// Unix milliseconds; from then on none of its keys is known.
    pub revoked_at: Option<u64>,
}

/// A key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// SHA-256 of the key's text.
    #[serde(with = "alloy::hex::serde")]
    pub digest: [u8; 32],
    /// Unix milliseconds.
    pub created_at: u64,
    /// Unix milliseconds; set when a newer key has replaced it.
    pub expires_at: Option<u64>,
}

/// What a key opens (guide: protocol 11.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Quotes under the key's name.
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

/// How much a key may ask for (guide: protocol 11.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    #[default]
    Default,
    Elevated,
    /// Nothing is counted: the operator's own.
    Unlimited,
}

/// A word that names no scope or tier.
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

    /// The word for it, everywhere.
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

    /// The word for it, everywhere.
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

/// Where events go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    pub url: url::Url,
    /// Sent along with every delivery; never one of ours.
    pub headers: BTreeMap<String, String>,
}

/// A wallet that signed for its link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wallet {
    /// As its chain spells it.
    pub address: String,
    /// Unix milliseconds.
    pub linked_at: u64,
}

impl Integrator {
    /// Whether any of its keys can be used at `now` (unix milliseconds).
    pub fn active(&self, now: u64) -> bool {
        self.signing(now).is_some()
    }

    /// The digest that signs its events at `now`: that of the newest key that has not expired.
    pub fn signing(&self, now: u64) -> Option<&[u8; 32]> {
        self.usable(now).last().map(|key| &key.digest)
    }

    /// The keys that can be used at `now`, the newest last.
    pub fn usable(&self, now: u64) -> impl Iterator<Item = &Key> {
        let revoked = self.revoked_at.is_some_and(|at| at <= now);
        let usable = move |key: &&Key| !revoked && key.expires_at.is_none_or(|end| now < end);
        self.keys.iter().filter(usable)
    }

    /// When the next of its keys ends after `now`.
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
