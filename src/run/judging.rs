//! The oracle without a daemon: it judges a claim over the chains, or over the evidence of a signed statement in their
//! place, and lets no signature out.

use std::{collections::HashMap, net::Ipv4Addr, sync::Arc, time::Duration};

use hyper::{HeaderMap, Method, StatusCode, Version, header};
use serde_json::Value;
use vm::{
    B256, EvmAddress,
    evidence::{self, Read, Recorder, Replay, Rule},
};

use super::{
    clock::unix_seconds,
    oracle,
    rules::{self, Rules},
};
use crate::{
    api,
    attest::{
        evidence::{Claim, Judge, ruled},
        journal::Journal,
        peers::Peers,
        service::Attestor,
    },
    config::Config,
    http::{KeyLabel, Request, Router, auth::Toll},
    sign::{Signer, raw::RawKey},
    store::{
        Range, Store, StoreError,
        memory::MemoryStore,
        rows::{self, Row},
    },
};

tokio::task_local! {
    static NOW: u64;
}

fn now() -> u64 {
    NOW.try_with(|now| *now).unwrap_or_else(|_| unix_seconds())
}

/// Where a claim is judged.
pub struct Judging {
    router: Router,
    store: Arc<MemoryStore>,
    at: u64,
    /// The evidence in place of the chains.
    replay: Option<Arc<Replay>>,
}

/// What became of a claim.
#[derive(Clone, Debug)]
pub struct Judged {
    pub status: StatusCode,
    /// The oracle's answer, its signatures those of nobody.
    pub answer: Value,
    /// What would be signed, each message by its statement.
    pub statements: Vec<Statement>,
    /// Everything that was read.
    pub reads: Vec<Read>,
    /// The rules besides finality that the claim meets, in words.
    pub met: Vec<String>,
    /// What the evidence has no answer about.
    pub lacking: Vec<String>,
}

/// A statement that would be signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its key in the journal.
    pub key: String,
    /// The EIP-712 digest of its message.
    pub digest: B256,
    /// The rules by which blocks counted as final, by chain.
    pub rules: Vec<Rule>,
}

/// Why a claim could not be judged at all.
#[derive(Debug, thiserror::Error)]
pub enum JudgingError {
    #[error("the oracle has no route POST {0}")]
    Route(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Setup(String),
}

impl Judging {
    /// Judges over the chains, now.
    pub fn over_chains(config: &Config, rules: &Rules) -> Result<Self, JudgingError> {
        Self::of(config, rules, None, unix_seconds())
    }

    /// Judges over `reads` in place of the chains, as at the unix second `at`. Chains need no providers for it.
    pub fn over(
        config: &Config,
        rules: &Rules,
        reads: &[Read],
        at: u64,
    ) -> Result<Self, JudgingError> {
        Self::of(config, rules, Some(reads.to_vec()), at)
    }

    fn of(
        config: &Config,
        rules: &Rules,
        reads: Option<Vec<Read>>,
        at: u64,
    ) -> Result<Self, JudgingError> {
        let setup = |why: &dyn ToString| JudgingError::Setup(why.to_string());
        let key = RawKey::nobody().map_err(|error| setup(&error))?;
        let peers = Peers::new(Vec::new(), Duration::ZERO, None).map_err(|error| setup(&error))?;
        let store = Arc::new(MemoryStore::default());
        let judge = Judge {
            replays: true,
            ..rules.judge.clone()
        };
        let journal = Journal::new(store.clone(), Arc::new(key)).judged_by(judge);
        let settings = rules.settings.clone();
        let unasked = reads.is_some().then(|| rules.chains.unasked());
        let unasked = unasked.transpose().map_err(|error| setup(&error))?;
        let judged = oracle(
            unasked.as_ref().unwrap_or(&rules.chains),
            settings,
            Arc::new(journal),
            store.clone(),
            peers,
        );
        let state = Arc::new(api::oracle::State {
            oracle: Attestor {
                clock: now,
                ..rules::with_rules(config, judged)
            },
            listed: Vec::new(),
            repeated: api::oracle::Repeated::default(),
            shadow: None,
            force: config.claims.force.clone(),
        });
        let router = Router::default().with(&state, api::oracle::ROUTES);
        Ok(Self {
            router: router.map_err(|error| setup(&error))?,
            store,
            at,
            replay: reads.map(Replay::new),
        })
    }

    /// The account whose signatures stand in the answers.
    pub fn nobody() -> Option<EvmAddress> {
        let key = RawKey::nobody().ok()?;
        Some(key.address())
    }

    /// Judges `claim`.
    pub async fn judge(&self, claim: &Claim) -> Result<Judged, JudgingError> {
        let path = claim.target.split('?').next().unwrap_or_default();
        let missing = || JudgingError::Route(path.to_owned());
        let (endpoint, params) = self.router.find(&Method::POST, path).ok_or_else(missing)?;
        let mut headers = HeaderMap::new();
        let json = header::HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
        let request = Request {
            toll: Toll::default(),
            method: Method::POST,
            version: Version::HTTP_11,
            target: claim.target.clone(),
            headers,
            body: claim.body.clone().into(),
            client: Ipv4Addr::LOCALHOST.into(),
            key: claim.key.as_deref().map(KeyLabel::new),
            scopes: Arc::new([]),
            params,
        };
        let reads = Recorder::default();
        let judging = ruled(evidence::during(&reads, (endpoint.call)(request)));
        let judging = NOW.scope(self.at, judging);
        let (answer, met) = match &self.replay {
            None => judging.await,
            Some(replay) => replay.answering(judging).await,
        };
        let answer = answer.unwrap_or_else(|error| error.into_response());
        let whole = answer.body.bytes().cloned().unwrap_or_default();
        Ok(Judged {
            status: answer.status,
            answer: serde_json::from_slice(&whole).unwrap_or_default(),
            statements: self.statements().await?,
            reads: reads.all(),
            met,
            lacking: self
                .replay
                .iter()
                .flat_map(|replay| replay.lacking())
                .collect(),
        })
    }

    /// The statements that were recorded.
    async fn statements(&self) -> Result<Vec<Statement>, JudgingError> {
        let all = |kind| Range::new(kind, &[], None, usize::MAX);
        let evidence = self.store.scan(all(rows::EVIDENCE)).await?;
        let rules = evidence.iter().filter_map(|(key, row)| {
            let Ok(Row::Evidence(statement, _, evidence)) = Row::decode(key, row) else {
                return None;
            };
            Some((statement, evidence.rules))
        });
        let mut rules: HashMap<String, Vec<Rule>> = rules.collect();
        let entries = self.store.scan(all(rows::ENTRY)).await?;
        let found = entries.iter().filter_map(|(key, row)| {
            let Ok(Row::Entry(key, entry)) = Row::decode(key, row) else {
                return None;
            };
            Some(Statement {
                rules: rules.remove(&key).unwrap_or_default(),
                key,
                digest: entry.digest,
            })
        });
        Ok(found.collect())
    }
}
