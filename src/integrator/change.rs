//! What an operator may change of an integrator. Pure: what is refused changes nothing.

use std::collections::BTreeSet;

use super::{
    Integrator, Key, Scope, Tier, Wallet, Webhook, header::HeaderError, link::LinkError,
    webhook::UrlError,
};

/// Keys of one integrator that are good at the same time.
const KEYS: usize = 8;
/// Characters of a label.
const LABEL: usize = 64;

/// Why nothing is changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error(
        "a label has 1 to {LABEL} characters: letters, digits, and behind the first also . _ -"
    )]
    Label,
    #[error("there is an integrator called {0} already, or there was one")]
    Taken(String),
    #[error("there is no integrator called {0}")]
    Missing(String),
    #[error("{0} has been revoked")]
    Revoked(String),
    #[error("{0} has {KEYS} keys that have not ended yet: rotate with a grace of 0")]
    Keys(String),
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// What new integrators may do unless they are told something else.
pub fn usual_scopes() -> BTreeSet<Scope> {
    [Scope::Quote, Scope::RequestsRead].into()
}

/// Whether `label` can name an integrator. It stands in logs, tables and signed messages.
pub fn check_label(label: &str) -> Result<(), ChangeError> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let starts = label
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    let fine = starts && label.len() <= LABEL && label.bytes().all(inner);
    fine.then_some(()).ok_or(ChangeError::Label)
}

impl Integrator {
    /// One with a key whose SHA-256 is `digest`. `now` in unix milliseconds, here and below.
    pub fn new(
        label: &str,
        scopes: BTreeSet<Scope>,
        tier: Tier,
        (digest, now): ([u8; 32], u64),
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
            created_at: now,
            revoked_at: None,
        })
    }

    /// From now on no key of it is known.
    pub fn revoked(self, now: u64) -> Result<Self, ChangeError> {
        Ok(Self {
            revoked_at: Some(now),
            ..self.living()?
        })
    }

    /// With a new key; the others end `grace` milliseconds from now, if they do not end before.
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

    /// With other scopes or another tier.
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

    /// With its events sent elsewhere or nowhere. The webhook has been checked.
    pub fn telling(self, webhook: Option<Webhook>) -> Result<Self, ChangeError> {
        Ok(Self {
            webhook,
            ..self.living()?
        })
    }

    /// With a wallet that has proved itself, or without one.
    pub fn linked(self, wallet: Option<Wallet>) -> Result<Self, ChangeError> {
        Ok(Self {
            wallet,
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
        Integrator::new("app", usual_scopes(), Tier::Default, ([1; 32], 10)).unwrap()
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
        // The first key keeps its earlier end.
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
        assert_eq!(gone.clone().telling(None), no);
        assert_eq!(gone.linked(None), no);
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
