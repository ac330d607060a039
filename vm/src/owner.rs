//! Signatures of owners (guide: protocol 6.3), and the keys that only the owners' chains know.

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use crate::{
    ChainReader, ChainSpec, Endpoint, Provider, ReadError, SpecError,
    http::{Body, Channel, PostError},
    protocol::text,
    spec::setting,
    types::{Address, Block, Bytes, Head, Refusal, Transaction, TxRef},
};

/// What an owner signed, and with what.
#[derive(Clone, Debug, Default)]
pub struct OwnerClaim<'a> {
    /// sha256 of the canonical operation.
    pub digest: [u8; 32],
    pub owner: &'a str,
    pub signature: &'a str,
    /// The key that the owner's chain has, where the family reads it: see [`KeyReader`].
    pub key: Option<&'a Bytes>,
    /// What the caller says of how it was signed: of `signatureMetadata` the part of the family. TON
    /// `{timestamp, domain}`.
    pub metadata: Option<&'a Value>,
    /// The `additionalData` of the owner's chain. TON `signDataDomain`.
    pub settings: Option<&'a Map<String, Value>>,
}

/// Owner signatures of a family.
pub trait OwnerVerifier: Send + Sync {
    /// Refuses, without the owner's key, a claim that no key makes good: before the chain is asked for one.
    fn check(&self, _: &OwnerClaim<'_>) -> Result<(), Refusal> {
        Ok(())
    }
    /// `Err` holds the oracle's own text for the caller.
    fn verify(&self, claim: &OwnerClaim<'_>) -> Result<(), Refusal>;
}

/// Keys of owners on one chain. Implemented by a family for one provider, and by the quorum for several.
#[async_trait]
pub trait KeyReader: Send + Sync {
    /// What signatures of `owner` are verified with, as the chain has it now: on TON the 32 bytes of an ed25519 key, on
    /// Lighter the 20 bytes of an account on Ethereum. `None`: the chain has none.
    async fn owner_key(&self, owner: &Address) -> Result<Option<Bytes>, ReadError>;
}

/// A chain whose owners' keys are read.
#[derive(Clone)]
pub struct OwnerKeys {
    pub spec: Arc<ChainSpec>,
    pub reader: Arc<dyn KeyReader>,
}

impl Provider {
    /// A provider of which nothing but keys of owners is read; `checks_network` is that of [`Provider`].
    pub(crate) fn of_keys(
        endpoint: &Endpoint,
        checks_network: bool,
        keys: impl KeyReader + 'static,
    ) -> Self {
        Self {
            name: endpoint.name().into(),
            reader: Arc::new(KeysOnly),
            state: None,
            keys: Some(Arc::new(keys)),
            checks_network,
        }
    }
}

/// The reader of a chain that is not read.
struct KeysOnly;

fn unread() -> ReadError {
    ReadError::Unavailable("of this chain only keys of owners are read".into())
}

#[async_trait]
impl ChainReader for KeysOnly {
    async fn head(&self) -> Result<Head, ReadError> {
        Err(unread())
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        Err(unread())
    }

    async fn contains(&self, _: &Block) -> Result<bool, ReadError> {
        Err(unread())
    }

    async fn transaction(&self, _: &TxRef, _: &Head) -> Result<Transaction, ReadError> {
        Err(unread())
    }
}

/// One provider's HTTP API, asked within its limits.
pub(crate) struct KeyApi {
    channel: Channel,
    headers: HeaderMap,
    /// What the network is known by; `None` where the entry does not say.
    network: Option<String>,
    /// Whether the provider has shown that.
    identified: OnceCell<()>,
}

impl KeyApi {
    /// An API of the network that is known by `network`. The entry's `additionalData.rpcApiKey` is sent in the header
    /// `x-api-key`. It is one provider's secret, so there is one provider then.
    pub fn new(
        spec: &ChainSpec,
        endpoint: &Endpoint,
        network: Option<String>,
    ) -> Result<Self, SpecError> {
        let json = HeaderValue::from_static("application/json");
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, json)]);
        if let Some(key) = setting(&spec.additional, "rpcApiKey")? {
            let wrong = |what: &str| SpecError(format!("additionalData.rpcApiKey: {what}"));
            if endpoint.position > 1 {
                let what =
                    "several providers would get it: put the keys of several into their URLs";
                return Err(wrong(what));
            }
            let key = HeaderValue::from_str(key);
            let mut key = key.map_err(|_| wrong("expected a text for a header"))?;
            key.set_sensitive(true);
            headers.insert("x-api-key", key);
        }
        Ok(Self {
            channel: Channel::new(&spec.id, endpoint),
            headers,
            network,
            identified: OnceCell::new(),
        })
    }

    /// Whether a provider of another network is noticed.
    pub fn checks_network(&self) -> bool {
        self.network.is_some()
    }

    /// Makes sure, until it has been shown once, that the provider is of our network: `show` asks what that is known by.
    pub async fn identify(
        &self,
        show: impl Future<Output = Result<String, ReadError>> + Send,
    ) -> Result<(), ReadError> {
        let Some(network) = &self.network else {
            return Ok(());
        };
        let shown = self.identified.get_or_try_init(|| async {
            let shown = show.await?;
            match shown == *network {
                true => Ok(()),
                false => Err(ReadError::Doubtful(format!(
                    "another network: {}, not {network}",
                    text::short(&shown)
                ))),
            }
        });
        shown.await.copied()
    }

    /// Posts a JSON body to the provider's URL.
    pub async fn post(&self, body: &Value) -> Result<Body, PostError> {
        let body = body.to_string().into_bytes();
        self.channel.admit(1)?;
        self.channel.post_with(self.headers.clone(), body).await
    }

    /// Gets what stands at `path` below the provider's URL.
    pub async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Body, PostError> {
        self.channel.admit(1)?;
        let headers = self.headers.clone();
        self.channel.query(path, query, headers).await
    }
}

/// A provider's answer. What is wrong with it is said in few words, since evidence keeps them.
pub(crate) fn answer<T: DeserializeOwned>(body: &[u8]) -> Result<T, ReadError> {
    serde_json::from_slice(body).map_err(|error| unavailable(&error))
}

/// Why a provider gave no answer, in few words.
pub(crate) fn unavailable(why: &impl ToString) -> ReadError {
    ReadError::Unavailable(text::short(&why.to_string()))
}
