//! Asks other oracles for their signatures while this one works (guide: protocol 10.3).
//!
//! Best effort: a slow, wrong or hostile peer is skipped, logged and counted; it never makes an answer fail. The
//! oracle trusts nothing in a peer's answer but a signature that it recovers over its own digest.

pub mod answer;
mod late;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use reqwest::{StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};
use url::Url;
use vm::{EvmAddress, http, protocol::limits};

use answer::{Corroborated, Spelled, Tally};
use late::Late;

/// How long an answer waits for peers that are all late.
const GRACE: Duration = Duration::from_millis(300);

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
    list: Arc<[(Peer, Arc<Late>)]>,
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

/// Running requests to peers; dropping this aborts them, but one to each late peer.
#[derive(Debug, Default)]
pub struct Asked {
    answers: JoinSet<Answered>,
    /// How many of them are waited for.
    awaited: usize,
    /// Until when the others are, where there are no such.
    until: Option<Instant>,
    multisig: Option<Arc<Multisig>>,
}

/// The end of a request to a peer.
#[derive(Debug)]
struct Answered {
    /// The peer's index.
    peer: usize,
    /// Whether it is waited for.
    awaited: bool,
    /// A JSON text.
    answer: Option<Vec<u8>>,
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
            list: list.into_iter().map(|one| (one, Arc::default())).collect(),
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
        for (at, (peer, late)) in self.list.iter().enumerate() {
            if !question.shown.is(&peer.key) {
                continue;
            }
            let request = self.request(peer, question, body.clone());
            let name = peer.url.host_str().unwrap_or("?").to_owned();
            let answer = answered((name, late.clone()), request, self.timeout);
            // Enough members are waited for, whoever was late.
            let awaited = self.multisig.is_some() || !late.is_late();
            let probe = if awaited { None } else { late.probe() };
            asked.awaited += usize::from(awaited);
            asked.answers.spawn(async move {
                let answer = match probe {
                    None => answer.await,
                    Some(probe) => {
                        let probed = tokio::spawn(async move {
                            let _probe = probe;
                            answer.await
                        });
                        probed.await.ok().flatten()
                    }
                };
                Answered {
                    peer: at,
                    awaited,
                    answer,
                }
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
    /// The peers' signatures over each of `messages`, in the order of `PEERS`. Returns early when enough members have
    /// answered. Where no members are named, a late peer has as much time as the others take, or [`GRACE`] where all are
    /// late.
    pub async fn collect(
        mut self,
        messages: &[Spelled],
        own: EvmAddress,
    ) -> Vec<Vec<Corroborated>> {
        self.begin_waiting();
        let multisig = self.multisig.take();
        let members = multisig.as_deref();
        let mut tally = Tally::new(messages, own, members.map(|m| m.members.as_slice()));
        let threshold = members.map_or(usize::MAX, |m| m.threshold);
        while let Some(answered) = self.next().await {
            if let Some(answer) = answered.answer {
                tally.add(answered.peer, &answer);
            }
            if tally.len() >= threshold {
                break;
            }
        }
        tally.signatures()
    }

    /// From now on late peers have a little time, if there are no others.
    fn begin_waiting(&mut self) {
        if self.awaited == 0 {
            self.until = Some(Instant::now() + GRACE);
        }
    }

    /// The next answer; `None` when all that are waited for are there, and nothing else is yet.
    async fn next(&mut self) -> Option<Answered> {
        loop {
            let joined = match (self.awaited, self.until) {
                (0, None) => self.answers.try_join_next(),
                (0, Some(until)) => {
                    let joined = timeout_at(until, self.answers.join_next());
                    joined.await.ok().flatten()
                }
                _ => self.answers.join_next().await,
            };
            // A request that panicked is waited for no more.
            let Ok(answered) = joined? else {
                self.awaited = self.awaited.saturating_sub(1);
                continue;
            };
            self.awaited = self.awaited.saturating_sub(usize::from(answered.awaited));
            return Some(answered);
        }
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

/// What a peer answers within `timeout`; whether it does is noted.
async fn answered(
    (name, late): (String, Arc<Late>),
    request: reqwest::RequestBuilder,
    timeout: Duration,
) -> Option<Vec<u8>> {
    let asked = Instant::now();
    let answer = tokio::time::timeout(timeout, read(request)).await;
    match &answer {
        Ok(Ok(_)) => late.answered(),
        // A refusal says nothing about the time that an attestation takes.
        Ok(Err(_)) => {}
        Err(_) => late.missed(asked),
    }
    counted(&name, answer.unwrap_or(Err("no answer in time")))
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
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        sync::watch,
    };

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

    /// A peer that answers when `open` says so.
    async fn peer(open: watch::Receiver<bool>) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut open = open.clone();
                tokio::spawn(async move {
                    let mut asked = [0; 4096];
                    let _read = stream.read(&mut asked).await.unwrap();
                    open.wait_for(|open| *open).await.unwrap();
                    let answer =
                        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                    let _sent = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        Peer {
            url: url.parse().unwrap(),
            key: Key::None,
        }
    }

    /// Which peers answer.
    async fn answering(peers: &Peers) -> Vec<usize> {
        let mut asked = peers.ask(&Question {
            target: "/".into(),
            body: "{}".into(),
            key: None,
            shown: Shown::Any,
        });
        asked.begin_waiting();
        let mut all = Vec::new();
        while let Some(answered) = asked.next().await {
            all.extend(answered.answer.map(|_| answered.peer));
        }
        all.sort_unstable();
        all
    }

    #[tokio::test]
    async fn late_peer_is_asked_and_not_waited_for_until_it_answers_again() {
        let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let (open, opened) = watch::channel(false);
        let (_always, prompt) = watch::channel(true);
        let list = vec![peer(opened).await, peer(prompt).await];
        let patience = Duration::from_secs(5);
        let peers = Peers::new(list.clone(), patience, None).unwrap();
        assert_eq!(answering(&peers).await, [1]);
        let late = &peers.list[0].1;
        assert!(late.is_late());
        for _ in 0..3 {
            let soon = tokio::time::timeout(patience / 2, answering(&peers));
            assert_eq!(soon.await, Ok(vec![1]));
        }
        // What was asked before the last answer says nothing about now.
        let (other, before) = (Arc::new(Late::default()), Instant::now());
        other.answered();
        other.missed(before);
        assert!(!other.is_late());
        // The one request that went on tells that the peer is back.
        open.send(true).unwrap();
        let back = async {
            while late.is_late() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(patience, back).await.unwrap();
        assert_eq!(answering(&peers).await, [0, 1]);
        assert!(late.probe().is_some(), "the probe is over");
    }

    #[tokio::test]
    async fn where_members_are_named_late_peers_are_waited_for() {
        let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let (_open, opened) = watch::channel(true);
        let multisig = Multisig {
            members: Vec::new(),
            threshold: 2,
        };
        let list = vec![peer(opened).await];
        let peers = Peers::new(list, Duration::from_secs(5), Some(multisig)).unwrap();
        peers.list[0].1.missed(Instant::now());
        assert_eq!(answering(&peers).await, [0]);
        assert!(!peers.list[0].1.is_late());
    }

    #[tokio::test]
    async fn where_all_are_late_an_answer_waits_a_little() {
        let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let (open, opened) = watch::channel(true);
        let peers = Peers::new(vec![peer(opened).await], Duration::from_secs(60), None).unwrap();
        let late = &peers.list[0].1;
        // One answer in so little time may need several attempts.
        let mut answered = Vec::new();
        for _ in 0..100 {
            late.missed(Instant::now());
            answered = answering(&peers).await;
            if !answered.is_empty() {
                break;
            }
        }
        assert_eq!(answered, [0]);
        assert!(!late.is_late());
        open.send(false).unwrap();
        late.missed(Instant::now());
        let soon = tokio::time::timeout(Duration::from_secs(30), answering(&peers));
        assert_eq!(soon.await, Ok(vec![]));
    }
}
