//! Asks other oracles for their signatures while this one works (guide: protocol 10.3).
//!
//! Best effort: a slow, wrong or hostile peer is skipped, logged and counted; it never makes an answer fail. The
//! oracle trusts nothing in a peer's answer but a signature that it recovers over its own digest.

pub mod answer;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use reqwest::{StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use url::Url;
use vm::{
    EvmAddress, http,
    protocol::{limits, message::Execution},
};

use answer::{Corroborated, Seal, Tally};

/// One entry of `PEERS`.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The base URL; the original request target is appended.
    pub url: Url,
    pub key: Key,
}

/// The `x-api-key` for a peer.
#[derive(Clone, Debug)]
pub enum Key {
    None,
    Own(SecretString),
    /// The caller's own header, if there is one.
    PassThrough,
}

/// `ORACLE_SIGNERS` and `ORACLE_SIGNERS_THRESHOLD`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Multisig {
    pub members: Vec<EvmAddress>,
    /// How many distinct members' signatures [`Asked::collect`] waits for; 0 asks no peer.
    pub threshold: usize,
}

/// The configured peers.
#[derive(Clone, Debug)]
pub struct Peers {
    client: reqwest::Client,
    list: Arc<[Peer]>,
    timeout: Duration,
    multisig: Option<Arc<Multisig>>,
}

/// The request that peers get.
#[derive(Clone, Debug)]
pub struct Question {
    /// Path and query as the caller sent them.
    pub target: String,
    /// The caller's body; a JSON object.
    pub body: Bytes,
    /// The caller's `x-api-key`.
    pub key: Option<SecretString>,
    pub shown: Shown,
}

/// Which peers are asked, by the key that they get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Any,
    /// Peers that get the caller's own key: our key must not authorize a caller that needs authorization.
    Callers,
    /// Peers that get our key: they count the request as ours, not as that of other callers at our address.
    Own,
}

/// Running requests to peers; dropping this aborts them.
#[derive(Debug, Default)]
pub struct Asked {
    /// The answers as JSON texts, with the peer's index.
    answers: JoinSet<(usize, Option<Vec<u8>>)>,
    multisig: Option<Arc<Multisig>>,
}

impl Peers {
    /// Opens the peers; each has `timeout` for a complete answer.
    pub fn new(
        list: Vec<Peer>,
        timeout: Duration,
        multisig: Option<Multisig>,
    ) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .pool_idle_timeout(Duration::from_secs(60))
            .build()?;
        Ok(Self {
            client,
            list: list.into(),
            timeout,
            multisig: multisig.map(Arc::new),
        })
    }

    /// The number of members' signatures that are wanted, for `x-oracle-signers`.
    pub fn threshold(&self) -> usize {
        self.multisig.as_ref().map_or(0, |m| m.threshold)
    }

    /// Starts the requests to the peers that may get the question.
    pub fn ask(&self, question: &Question) -> Asked {
        let mut asked = Asked {
            multisig: self.multisig.clone(),
            ..Asked::default()
        };
        let enough = self.multisig.as_ref().is_some_and(|m| m.threshold == 0);
        let Some(body) = unasked(&question.body).filter(|_| !enough) else {
            return asked;
        };
        for (at, peer) in self.list.iter().enumerate() {
            if !question.shown.is(&peer.key) {
                continue;
            }
            let request = self.request(peer, question, body.clone());
            let (timeout, name) = (self.timeout, peer.url.host_str().unwrap_or("?").to_owned());
            asked.answers.spawn(async move {
                let answer = match tokio::time::timeout(timeout, read(request)).await {
                    Ok(answer) => answer,
                    Err(_) => Err("no answer in time"),
                };
                (at, counted(&name, answer))
            });
        }
        asked
    }

    fn request(&self, peer: &Peer, question: &Question, body: Bytes) -> reqwest::RequestBuilder {
        let base = peer.url.as_str().trim_end_matches('/');
        let request = self
            .client
            .post(format!("{base}{}", question.target))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/plain, */*")
            .body(body);
        let key = match &peer.key {
            Key::None => None,
            Key::Own(key) => Some(key),
            Key::PassThrough => question.key.as_ref(),
        };
        match key {
            Some(key) => request.header("x-api-key", key.expose_secret()),
            None => request,
        }
    }
}

impl Shown {
    fn is(self, key: &Key) -> bool {
        match self {
            Self::Any => true,
            Self::Callers => matches!(key, Key::PassThrough),
            Self::Own => matches!(key, Key::Own(_)),
        }
    }
}

impl Asked {
    /// The peers' signatures over `execution`, in the order of `PEERS`. Returns early when enough members have
    /// answered.
    pub async fn collect(
        mut self,
        execution: &Execution,
        seal: &Seal,
        own: EvmAddress,
    ) -> Vec<Corroborated> {
        let members = self.multisig.as_deref();
        let mut tally = Tally::new(execution, seal, own, members.map(|m| m.members.as_slice()));
        let threshold = members.map_or(usize::MAX, |m| m.threshold);
        while let Some(joined) = self.answers.join_next().await {
            let Ok((peer, Some(answer))) = joined else {
                continue;
            };
            tally.add(peer, &answer);
            if tally.len() >= threshold {
                break;
            }
        }
        tally.signatures()
    }
}

/// The caller's body with `requestPeerSignatures` off and everything else unchanged.
fn unasked(body: &[u8]) -> Option<Bytes> {
    type Fields<'a> = std::collections::BTreeMap<String, &'a RawValue>;
    let mut fields: Fields<'_> = serde_json::from_slice(body).ok()?;
    let off = serde_json::value::to_raw_value(&false).ok()?;
    fields.insert("requestPeerSignatures".to_owned(), &off);
    serde_json::to_vec(&fields).ok().map(Bytes::from)
}

/// Reads a JSON text without decoding it: decoded it would take more memory.
async fn read(request: reqwest::RequestBuilder) -> Result<Vec<u8>, &'static str> {
    let mut response = request.send().await.map_err(|error| {
        if error.is_connect() {
            "not reachable"
        } else {
            "no answer"
        }
    })?;
    if response.status() != StatusCode::OK {
        return Err("an answer other than 200");
    }
    let body = http::capped(&mut response, limits::ANSWER).await;
    let body = body.map_err(|error| error.what())?;
    match serde_json::from_slice::<IgnoredAny>(&body) {
        Ok(_) => Ok(body),
        Err(_) => Err("an answer that is not JSON"),
    }
}

fn counted(peer: &str, answer: Result<Vec<u8>, &'static str>) -> Option<Vec<u8>> {
    let outcome = if answer.is_ok() {
        "answered"
    } else {
        "skipped"
    };
    metrics::counter!("intentd_peer_answers_total", "peer" => peer.to_owned(), "outcome" => outcome)
        .increment(1);
    answer
        .inspect_err(|why| tracing::warn!(peer, why, "the oracle skips a peer"))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_is_asked_depends_on_the_key_that_is_shown() {
        let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let keys = [Key::None, Key::Own("k".into()), Key::PassThrough];
        let list = keys.map(|key| Peer {
            url: "http://127.0.0.1:9".parse().unwrap(),
            key,
        });
        let peers = Peers::new(list.to_vec(), Duration::from_secs(1), None).unwrap();
        for (shown, expected) in [(Shown::Any, 3), (Shown::Callers, 1), (Shown::Own, 1)] {
            let asked = peers.ask(&Question {
                target: "/".into(),
                body: "{}".into(),
                key: None,
                shown,
            });
            assert_eq!(asked.answers.len(), expected, "{shown:?}");
        }
    }
}
