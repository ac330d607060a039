//! The operator's commands about integrators. The daemon carries them out where one runs, otherwise the command line
//! does so on the store itself.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    integrator::{
        Integrator, Key, Scope, Tier, Wallet, Webhook,
        change::{ChangeError, HookChange},
        header::headers,
        key::ApiKey,
        link::{self, Link, LinkError},
        webhook::check,
    },
    store::integrators::{Integrators, IntegratorsError},
};

/// Hex digits of a digest that are shown.
const SHOWN: usize = 8;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    List {},
    Add {
        label: String,
        scopes: BTreeSet<Scope>,
        tier: Tier,
    },
    /// Absent fields stay as they are.
    Set {
        label: String,
        scopes: Option<BTreeSet<Scope>>,
        tier: Option<Tier>,
    },
    Revoke {
        label: String,
    },
    /// `grace` in milliseconds.
    Rotate {
        label: String,
        grace: u64,
    },
    /// Fields that are not named stay as they are.
    Webhook {
        label: String,
        change: HookChange,
    },
    Unhook {
        label: String,
    },
    /// `None` asks for the message to sign.
    Link {
        label: String,
        address: String,
        proof: Option<Proof>,
    },
    Unlink {
        label: String,
    },
}

/// A wallet's signature over the message of a time (unix seconds).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    pub time: u64,
    pub signature: String,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    Listed {
        integrators: Vec<Listed>,
    },
    /// The key is shown only here.
    Key {
        key: ApiKey,
    },
    /// What the wallet is to sign, with the time (unix seconds) that it names.
    Sign {
        message: String,
        time: u64,
    },
    Done {},
}

/// An integrator as lists show it. Times in unix milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    pub label: String,
    pub scopes: BTreeSet<Scope>,
    pub tier: Tier,
    /// Keys that have not expired.
    pub keys: Vec<ListedKey>,
    /// Host and port of its URL.
    pub webhook: Option<String>,
    pub wallet: Option<String>,
    pub created_at: u64,
    pub revoked_at: Option<u64>,
}

/// A key as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedKey {
    /// The first hex digits of its SHA-256: enough to tell keys apart, and for nothing else.
    pub digest: String,
    pub created_at: u64,
    pub expires_at: Option<u64>,
}

/// Why a command is not carried out.
#[derive(Debug, thiserror::Error)]
pub enum IntegratorAdminError {
    #[error(transparent)]
    Store(#[from] IntegratorsError),
    #[error(transparent)]
    Change(#[from] ChangeError),
    #[error("the operating system gives no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
    #[error("the message names the service by its signer: ECDSA_PRIVATE_KEY must be set")]
    Nameless,
}

impl From<LinkError> for IntegratorAdminError {
    fn from(error: LinkError) -> Self {
        Self::Change(error.into())
    }
}

/// Carries out commands about integrators.
#[derive(Clone)]
pub struct IntegratorAdmin {
    pub integrators: Integrators,
    /// The service's name in the messages that wallets sign; no other service has it.
    pub service: Option<String>,
    /// Webhooks may be plain HTTP.
    pub plain: bool,
    /// Unix milliseconds.
    pub clock: fn() -> u64,
}

impl IntegratorAdmin {
    /// Carries out `order`; its effect is durable when this returns.
    pub async fn carry_out(&self, order: Order) -> Result<Outcome, IntegratorAdminError> {
        let now = (self.clock)();
        match order {
            Order::List {} => Ok(self.list(now)),
            Order::Add {
                label,
                scopes,
                tier,
            } => self.add(&label, scopes, tier).await,
            Order::Set {
                label,
                scopes,
                tier,
            } => {
                let set = |found: Integrator| found.allowed(scopes.clone(), tier);
                self.change(&label, set).await
            }
            Order::Revoke { label } => self.change(&label, |found| found.revoked(now)).await,
            Order::Rotate { label, grace } => self.rotate(&label, grace).await,
            Order::Webhook { label, change } => self.set_webhook(&label, change).await,
            Order::Unhook { label } => self.change(&label, |found| found.with_webhook(None)).await,
            Order::Link {
                label,
                address,
                proof,
            } => self.link(&label, &address, proof).await,
            Order::Unlink { label } => self.change(&label, Integrator::unlinked).await,
        }
    }

    fn list(&self, now: u64) -> Outcome {
        let integrators = self.integrators.all();
        Outcome::Listed {
            integrators: integrators.values().map(|one| listed(one, now)).collect(),
        }
    }

    async fn add(
        &self,
        label: &str,
        scopes: BTreeSet<Scope>,
        tier: Tier,
    ) -> Result<Outcome, IntegratorAdminError> {
        let (key, now) = (key()?, (self.clock)());
        let add = |found: Option<Integrator>| match found {
            Some(_) => Err(ChangeError::Taken(label.to_owned()).into()),
            None => Ok(Integrator::new(
                label,
                scopes.clone(),
                tier,
                key.digest(),
                now,
            )?),
        };
        self.integrators
            .change::<IntegratorAdminError>(label, add)
            .await?;
        Ok(Outcome::Key { key })
    }

    async fn rotate(&self, label: &str, grace: u64) -> Result<Outcome, IntegratorAdminError> {
        let (key, now) = (key()?, (self.clock)());
        let rotate = |found: Integrator| found.rotated(key.digest(), grace, now);
        self.change(label, rotate).await?;
        Ok(Outcome::Key { key })
    }

    async fn set_webhook(
        &self,
        label: &str,
        change: HookChange,
    ) -> Result<Outcome, IntegratorAdminError> {
        let plain = self.plain;
        let set = |found: Integrator| {
            let webhook = change.clone().of(found.webhook.as_ref())?;
            check(&webhook.url, plain)?;
            headers(&webhook.headers)?;
            found.with_webhook(Some(webhook))
        };
        self.change(label, set).await
    }

    async fn link(
        &self,
        label: &str,
        address: &str,
        proof: Option<Proof>,
    ) -> Result<Outcome, IntegratorAdminError> {
        let service = self
            .service
            .as_deref()
            .ok_or(IntegratorAdminError::Nameless)?;
        let wallet = link::address(address)?;
        let now = (self.clock)();
        let Some(proof) = proof else {
            self.living(label)?;
            let time = now / 1000;
            let link = Link {
                service,
                label,
                wallet: &wallet,
                time,
            };
            let message = link.message();
            return Ok(Outcome::Sign { message, time });
        };
        let link = Link {
            service,
            label,
            wallet: &wallet,
            time: proof.time,
        };
        link.verify(&proof.signature, now / 1000)?;
        let linked = Wallet {
            address: wallet.clone(),
            linked_at: now,
        };
        let change = |found: Integrator| found.linked(linked.clone(), proof.time);
        self.change(label, change).await
    }

    /// Whether the integrator can still be changed.
    fn living(&self, label: &str) -> Result<(), ChangeError> {
        let missing = || ChangeError::Missing(label.to_owned());
        let found = self.integrators.all().get(label).cloned();
        let found = found.ok_or_else(missing)?;
        Integrator::clone(&found).allowed(None, None).map(drop)
    }

    async fn change(
        &self,
        label: &str,
        change: impl Fn(Integrator) -> Result<Integrator, ChangeError>,
    ) -> Result<Outcome, IntegratorAdminError> {
        let change = |found: Option<Integrator>| {
            let found = found.ok_or_else(|| ChangeError::Missing(label.to_owned()))?;
            Ok(change(found)?)
        };
        let changed = self
            .integrators
            .change::<IntegratorAdminError>(label, change);
        changed.await.map(|_| Outcome::Done {})
    }
}

fn key() -> Result<ApiKey, getrandom::Error> {
    let mut random = zeroize::Zeroizing::new([0; 32]);
    getrandom::fill(&mut random[..])?;
    Ok(ApiKey::new(&random))
}

fn listed(one: &Integrator, now: u64) -> Listed {
    let live = |key: &&Key| key.expires_at.is_none_or(|end| now < end);
    let host = |webhook: &Webhook| {
        let host = webhook.url.host_str().unwrap_or_default();
        let port = webhook.url.port().map(|port| format!(":{port}"));
        format!("{host}{}", port.unwrap_or_default())
    };
    Listed {
        label: one.label.clone(),
        scopes: one.scopes.clone(),
        tier: one.tier,
        keys: one.keys.iter().filter(live).map(listed_key).collect(),
        webhook: one.webhook.as_ref().map(host),
        wallet: one.wallet.as_ref().map(|wallet| wallet.address.clone()),
        created_at: one.created_at,
        revoked_at: one.revoked_at,
    }
}

fn listed_key(key: &Key) -> ListedKey {
    let mut digest = alloy::hex::encode(key.digest);
    digest.truncate(SHOWN);
    ListedKey {
        digest,
        created_at: key.created_at,
        expires_at: key.expires_at,
    }
}
