//! The changes that an operator can make to an integrator. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use url::Url;

use super::{
    Integrator, Key, Scope, Tier, Wallet, Webhook, header::HeaderError, link::LinkError,
    webhook::UrlError,
};

/// The most keys of one integrator that are valid at the same time.
const KEYS: usize = 8;
/// The most characters of a label.
const LABEL: usize = 64;

/// Why a change is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("a label has 1 to {LABEL} characters: letters, digits, and after the first also . _ -")]
    Label,
    #[error("there is an integrator called {0} already, or there was one")]
    Taken(String),
    #[error("there is no integrator called {0}")]
    Missing(String),
    #[error("{0} has been revoked")]
    Revoked(String),
    #[error("{0} has {KEYS} keys that are still valid: rotate with a grace of 0")]
    Keys(String),
    #[error("there is no endpoint yet: give its --url")]
    NoUrl,
    #[error("there is no header {0}")]
    NoHeader(String),
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// A change of a webhook; `None` and empty fields change nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookChange {
    pub url: Option<Url>,
    /// Headers to set; each replaces the one of the same name.
    pub set: BTreeMap<String, String>,
    /// Names of headers to remove.
    pub removed: BTreeSet<String>,
}

impl HookChange {
    /// The webhook after this change.
    pub fn of(self, before: Option<&Webhook>) -> Result<Webhook, ChangeError> {
        let url = self.url.or_else(|| before.map(|hook| hook.url.clone()));
        let url = url.ok_or(ChangeError::NoUrl)?;
        let mut headers = before.map(|hook| hook.headers.clone()).unwrap_or_default();
        for name in &self.removed {
            if !remove(&mut headers, name) {
                return Err(ChangeError::NoHeader(name.clone()));
            }
        }
        for (name, value) in self.set {
            remove(&mut headers, &name);
            headers.insert(name, value);
        }
        Ok(Webhook { url, headers })
    }
}

/// Removes a header, ignoring case; returns whether there was one.
fn remove(headers: &mut BTreeMap<String, String>, name: &str) -> bool {
    let before = headers.len();
    headers.retain(|known, _| !known.eq_ignore_ascii_case(name));
    headers.len() < before
}

/// The default scopes of a new integrator.
pub fn usual_scopes() -> BTreeSet<Scope> {
    [Scope::Quote, Scope::RequestsRead].into()
}

/// Whether `label` can name an integrator. Labels appear in logs, tables and signed messages.
fn check_label(label: &str) -> Result<(), ChangeError> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let starts = label
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    let fine = starts && label.len() <= LABEL && label.bytes().all(inner);
    fine.then_some(()).ok_or(ChangeError::Label)
}

impl Integrator {
    /// A new integrator with the key whose SHA-256 is `digest`. `now` in unix milliseconds, as in all of these
    /// methods.
    pub fn new(
        label: &str,
        scopes: BTreeSet<Scope>,
        tier: Tier,
        digest: [u8; 32],
        now: u64,
    ) -> Result<Self, ChangeError> {
        check_label(label)?;
        Ok(Self {
            label: label.to_owned(),
            scopes,
            tier,
            keys: vec![Key {
                digest,
                created_at: now,
                expires_at: None,
            }],
            webhook: None,
            wallet: None,
            proved_at: 0,
            created_at: now,
            revoked_at: None,
        })
    }

    /// Revokes the integrator: all its keys become invalid.
    pub fn revoked(self, now: u64) -> Result<Self, ChangeError> {
        Ok(Self {
            revoked_at: Some(now),
            ..self.living()?
        })
    }

    /// Adds a key; the other keys expire `grace` milliseconds from now, or earlier if they already expire earlier.
    pub fn rotated(self, digest: [u8; 32], grace: u64, now: u64) -> Result<Self, ChangeError> {
        let mut changed = self.living()?;
        let end = now.saturating_add(grace);
        for key in &mut changed.keys {
            key.expires_at = Some(key.expires_at.map_or(end, |set| set.min(end)));
        }
        changed
            .keys
            .retain(|key| key.expires_at.is_some_and(|end| now < end));
        if changed.keys.len() >= KEYS {
            return Err(ChangeError::Keys(changed.label));
        }
        changed.keys.push(Key {
            digest,
            created_at: now,
            expires_at: None,
        });
        Ok(changed)
    }

    /// Changes the scopes or the tier.
    pub fn allowed(
        self,
        scopes: Option<BTreeSet<Scope>>,
        tier: Option<Tier>,
    ) -> Result<Self, ChangeError> {
        let before = self.living()?;
        Ok(Self {
            scopes: scopes.unwrap_or_else(|| before.scopes.clone()),
            tier: tier.unwrap_or(before.tier),
            ..before
        })
    }

    /// Sets or removes the webhook. The caller has checked it.
    pub fn with_webhook(self, webhook: Option<Webhook>) -> Result<Self, ChangeError> {
        Ok(Self {
            webhook,
            ..self.living()?
        })
    }

    /// Links a wallet that was proved by a message of `time` (unix seconds); refuses a `time` that is not newer than
    /// the last.
    pub fn linked(self, wallet: Wallet, time: u64) -> Result<Self, ChangeError> {
        let before = self.living()?;
        if time <= before.proved_at {
            return Err(LinkError::Used.into());
        }
        Ok(Self {
            wallet: Some(wallet),
            proved_at: time,
            ..before
        })
    }

    /// Unlinks the wallet.
    pub fn unlinked(self) -> Result<Self, ChangeError> {
        Ok(Self {
            wallet: None,
            ..self.living()?
        })
    }

    fn living(self) -> Result<Self, ChangeError> {
        match self.revoked_at {
            None => Ok(self),
            Some(_) => Err(ChangeError::Revoked(self.label)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app() -> Integrator {
        Integrator::new("app", usual_scopes(), Tier::Default, [1; 32], 10).unwrap()
    }

    fn live(integrator: &Integrator, now: u64) -> Vec<u8> {
        let live = integrator
            .keys
            .iter()
            .filter(|key| key.expires_at.is_none_or(|end| now < end));
        live.map(|key| key.digest[0]).collect()
    }

    #[test]
    fn labels_are_plain_words() {
        let long = "a".repeat(LABEL + 1);
        for label in [
            "",
            "-a",
            ".",
            "__proto__",
            "a b",
            "a\n",
            "a\"",
            "é",
            "a/b",
            "a:b",
            &long,
        ] {
            assert_eq!(check_label(label), Err(ChangeError::Label), "{label:?}");
        }
        for label in ["a", "7", "my-app_2.test", &long[1..]] {
            assert_eq!(check_label(label), Ok(()), "{label:?}");
        }
    }

    #[test]
    fn a_rotation_ends_older_keys_after_the_grace_and_never_later() {
        let one = app().rotated([2; 32], 100, 20).unwrap();
        assert_eq!(
            (live(&one, 20), live(&one, 119), live(&one, 120)),
            (vec![1, 2], vec![1, 2], vec![2])
        );
        assert_eq!(one.signing(20), Some(&[2; 32]));
        // The first key keeps its earlier expiry.
        let two = one.rotated([3; 32], 1000, 50).unwrap();
        assert_eq!(
            (live(&two, 119), live(&two, 120), live(&two, 1050)),
            (vec![1, 2, 3], vec![2, 3], vec![3])
        );
        let now = two.rotated([4; 32], 0, 60).unwrap();
        assert_eq!((now.keys.len(), live(&now, 60)), (1, vec![4]));
        let forever = now.rotated([5; 32], u64::MAX, 60).unwrap();
        assert_eq!(live(&forever, u64::MAX - 1), [4, 5]);
    }

    #[test]
    fn keys_in_their_grace_are_bounded() {
        let mut one = app();
        for digest in 2..=8 {
            one = one.rotated([digest; 32], 100, 20).unwrap();
        }
        let full = Err(ChangeError::Keys("app".into()));
        assert_eq!(one.clone().rotated([9; 32], 100, 20), full);
        assert!(one.clone().rotated([9; 32], 0, 20).is_ok());
        assert!(one.rotated([9; 32], 100, 120).is_ok());
    }

    #[test]
    fn what_is_revoked_stays_so() {
        let gone = app().revoked(30).unwrap();
        assert_eq!((gone.active(29), gone.active(30)), (true, false));
        let no = Err(ChangeError::Revoked("app".into()));
        assert_eq!(gone.clone().revoked(31), no);
        assert_eq!(gone.clone().rotated([2; 32], 0, 31), no);
        assert_eq!(gone.clone().allowed(None, None), no);
        assert_eq!(gone.clone().with_webhook(None), no);
        assert_eq!(gone.unlinked(), no);
    }

    #[test]
    fn a_message_links_a_wallet_once() {
        let wallet = Wallet {
            address: "0x1".into(),
            linked_at: 7,
        };
        let one = app().linked(wallet.clone(), 100).unwrap();
        let used = Err(ChangeError::Link(LinkError::Used));
        assert_eq!(one.clone().linked(wallet.clone(), 100), used);
        let without = one.unlinked().unwrap();
        assert_eq!(without.clone().linked(wallet.clone(), 100), used);
        assert_eq!(without.clone().linked(wallet.clone(), 99), used);
        assert!(without.linked(wallet, 101).is_ok());
    }

    #[test]
    fn what_is_not_named_of_a_webhook_stays() {
        let headers = |all: &[(&str, &str)]| {
            let all = all.iter();
            all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let url = |text: &str| text.parse::<url::Url>().unwrap();
        let none = HookChange {
            url: None,
            set: headers(&[("x-a", "1")]),
            removed: BTreeSet::new(),
        };
        assert_eq!(none.clone().of(None), Err(ChangeError::NoUrl));
        let first = HookChange {
            url: Some(url("https://one/")),
            set: headers(&[("Authorization", "Bearer x"), ("x-a", "1")]),
            ..HookChange::default()
        };
        let one = first.of(None).unwrap();
        let moved = HookChange {
            url: Some(url("https://two/")),
            ..HookChange::default()
        };
        let two = moved.of(Some(&one)).unwrap();
        assert_eq!(
            (two.url.as_str(), &two.headers),
            ("https://two/", &one.headers)
        );
        let changed = HookChange {
            set: headers(&[("X-A", "2")]),
            removed: ["AUTHORIZATION".to_owned()].into(),
            url: None,
        };
        let three = changed.of(Some(&two)).unwrap();
        assert_eq!(three.headers, headers(&[("X-A", "2")]));
        let unknown = HookChange {
            removed: ["x-b".to_owned()].into(),
            ..HookChange::default()
        };
        assert_eq!(
            unknown.of(Some(&three)),
            Err(ChangeError::NoHeader("x-b".into()))
        );
    }

    #[test]
    fn only_what_is_named_changes() {
        let one = app().allowed(None, Some(Tier::Elevated)).unwrap();
        assert_eq!((one.tier, &one.scopes), (Tier::Elevated, &usual_scopes()));
        let one = one.allowed(Some([Scope::Claims].into()), None).unwrap();
        assert_eq!((one.tier, one.scopes.len()), (Tier::Elevated, 1));
        assert_eq!(
            Integrator {
                scopes: usual_scopes(),
                tier: Tier::Default,
                ..one
            },
            app()
        );
    }
}
