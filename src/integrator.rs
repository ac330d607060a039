//! Who may use the integrator API under a name: keys, what they open, where events go. Pure.
//!
//! Keys are never stored, only their SHA-256. Events are signed with the key itself all the same:
//! HMAC-SHA256 replaces a key of more than 64 bytes by its SHA-256 (RFC 2104), and every key that is
//! given out is longer than that, so that the digest signs what the key verifies.

pub mod header;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// An integrator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Integrator {
    /// Its name; unique, and shown wherever its key is meant.
    pub label: String,
    pub scopes: BTreeSet<Scope>,
    pub tier: Tier,
    /// Newest last; several while a rotation is under way.
    pub keys: Vec<Key>,
    pub webhook: Option<Webhook>,
    /// The sponsorship wallet that proved itself.
    pub wallet: Option<Wallet>,
    /// Unix milliseconds.
    pub created_at: u64,
    /// Unix milliseconds; from then on no key of it is known.
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
    /// Unix milliseconds; set when a newer key has taken its place.
    pub expires_at: Option<u64>,
}

/// What a key opens (integrator-api.md 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
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

/// How much a key may ask for (integrator-api.md 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    #[default]
    Default,
    Elevated,
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
        let live = |key: &&Key| key.expires_at.is_none_or(|end| now < end);
        let newest = self.keys.iter().rev().find(live);
        let revoked = self.revoked_at.is_some_and(|at| at <= now);
        newest.filter(|_| !revoked).map(|key| &key.digest)
    }
}
