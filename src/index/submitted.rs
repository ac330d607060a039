//! Submitted transactions (guide: protocol 11.13): the index looks for them at once, and again until the network's
//! quorum shows them, however fresh they are. What they hold is recorded as the tail records it, but only for the
//! depositor or sender whose request it is. What the caller says of a transaction changes nothing; it only makes the
//! search last longer.

mod lately;
mod look;
mod permits;
mod rounds;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde::Deserialize;
use vm::{B256, Chain, CodecError, TxRef};

use self::{lately::Lately, permits::LookPermits};
use super::{IndexError, Wakeup, apply, recorder::Recorder};
use crate::{
    market::Market,
    request::{Execution, Request, fact::Facts},
    store::{
        Batch, StoreError, by_way_of,
        requests::{Requests, RequestsError},
        rows::{
            RowError,
            transaction::{self, Outcome, Tracked},
        },
    },
};

/// Transactions that are looked for at the same time, in all. Each round forgets what is above it, the longest unseen
/// first; until then there is room for as many again.
const MOST: usize = 10_000;
/// Bytes of a transaction id: a hash, up to a signature. Codecs of ids take any length.
const ID_BYTES: std::ops::RangeInclusive<usize> = 32..=64;

/// A network as this module knows it.
#[derive(Clone)]
pub struct Network {
    pub chain: Chain,
    /// Wakes the network's tail.
    pub wakeup: Arc<Wakeup>,
    /// Seconds between two blocks.
    pub block_seconds: u64,
    /// Whether the network's memory pools are watched: what waits is then found without being submitted.
    pub pool_watched: bool,
}

/// The body of `POST /transactions/index`.
#[derive(Clone, Debug)]
pub struct Submission<'a> {
    /// The chain as the API numbers it.
    pub chain: u64,
    pub transaction: &'a str,
    pub request: Option<B256>,
}

/// What is known of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    pub network: String,
    pub transaction: String,
    pub outcome: Outcome,
    /// The first request that it belongs to, with its facts.
    pub request: Option<(Request, Facts)>,
}

/// Why a transaction is not looked for; each with its HTTP status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmittedError {
    /// 400.
    #[error("unknown chain {0}")]
    UnknownChain(String),
    /// 400.
    #[error("{0}")]
    BadHash(String),
    /// 400.
    #[error("{0}")]
    BadTransaction(String),
    /// 404.
    #[error("unknown request {0}")]
    UnknownRequest(B256),
    /// 404: a network on which only transactions in blocks count does not have it.
    #[error("transaction {0} is not in a block")]
    NotIncluded(String),
    /// 404.
    #[error("unknown transaction {0}")]
    UnknownTransaction(String),
    /// 503: too many transactions are looked for now.
    #[error("too many transactions are being looked for")]
    Busy,
    /// 503.
    #[error(transparent)]
    Index(#[from] IndexError),
}

by_way_of!(SubmittedError, IndexError: StoreError, RowError, RequestsError);

/// Takes submitted transactions, looks for them, and says what is known of them.
pub struct Transactions {
    market: Arc<Market>,
    networks: HashMap<String, Network>,
    recorder: Recorder,
    /// Wakes the rounds.
    wakeup: Wakeup,
    waiting: AtomicUsize,
    /// What was looked for lately, and is not asked for again yet.
    lately: Lately,
    /// By the network's name.
    permits: HashMap<String, LookPermits>,
}

/// The part of the client's transaction that is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spelled {
    tx_hash: Option<String>,
    replacement_tx_hash: Option<String>,
}

impl Transactions {
    /// `networks` by the name that orders use.
    pub fn new(
        market: Arc<Market>,
        networks: HashMap<String, Network>,
        requests: Requests,
    ) -> Self {
        let names = networks.keys().cloned();
        Self {
            permits: names.map(|name| (name, LookPermits::default())).collect(),
            market,
            networks,
            recorder: Recorder { requests },
            wakeup: Wakeup::default(),
            waiting: AtomicUsize::new(0),
            lately: Lately::default(),
        }
    }

    /// `POST /transactions/index`: looks for a transaction now and for as long as it takes. Durable when it returns.
    /// `now` in unix milliseconds.
    pub async fn index(&self, submission: Submission<'_>, now: u64) -> Result<(), SubmittedError> {
        let (name, network) = self.network(submission.chain)?;
        let transaction = parse(network, submission.transaction)?;
        let request = match submission.request {
            Some(id) => Some(self.request(&id).await?),
            None => None,
        };
        if self.lately.has(name, &transaction.bytes, now) {
            return Ok(());
        }
        if network.pool_watched {
            return self.look_now(name, &transaction, now).await;
        }
        self.watch(name, &transaction, request.as_ref(), now)
            .await?;
        network.wakeup.wake();
        self.wakeup.wake();
        Ok(())
    }

    /// `POST /transactions/single`: `spelled` is the client's transaction in JSON with `txHash`, or
    /// with `replacementTxHash` after it was replaced.
    pub async fn single(
        &self,
        request: B256,
        chain: u64,
        spelled: &str,
        now: u64,
    ) -> Result<(), SubmittedError> {
        let bad = |what: &str| SubmittedError::BadTransaction(what.to_owned());
        let spelled: Spelled =
            serde_json::from_str(spelled).map_err(|_| bad("tx: expected a JSON object"))?;
        let newest = spelled.replacement_tx_hash.or(spelled.tx_hash);
        let hash = newest.ok_or_else(|| bad("tx: neither txHash nor replacementTxHash"))?;
        let submission = Submission {
            chain,
            transaction: &hash,
            request: Some(request),
        };
        self.index(submission, now).await
    }

    /// `GET /transactions/status`: on one chain, or on the first that knows it.
    pub async fn status(&self, text: &str, chain: Option<u64>) -> Result<Known, SubmittedError> {
        let networks: Vec<(&str, &Network)> = match chain {
            Some(number) => vec![self.network(number)?],
            None => self.all().collect(),
        };
        let (mut refused, mut readable) = (None, false);
        for (name, network) in networks {
            match parse(network, text) {
                Err(error) => refused = Some(error),
                Ok(transaction) => {
                    readable = true;
                    if let Some(known) = self.known(name, &transaction).await? {
                        return Ok(known);
                    }
                }
            }
        }
        match refused {
            Some(error) if !readable => Err(error),
            _ => Err(SubmittedError::UnknownTransaction(text.to_owned())),
        }
    }

    /// Stores that `transaction` is looked for; for longer where it may be `request`'s.
    async fn watch(
        &self,
        network: &str,
        transaction: &TxRef,
        request: Option<&Request>,
        now: u64,
    ) -> Result<(), SubmittedError> {
        let store = self.recorder.requests.store();
        let key = transaction::looked_for(network, &transaction.bytes);
        let before = store.read(&key).await?;
        if before.is_none() && self.waiting.load(Ordering::Relaxed) >= 2 * MOST {
            return Err(SubmittedError::Busy);
        }
        let mut tracked = match &before {
            Some(bytes) => Tracked::decode(bytes)?,
            None => Tracked {
                text: transaction.text.to_string(),
                requests: Vec::new(),
                claimed: None,
                outcome: Outcome::Waiting,
                tries: 0,
                first: now,
                next: now,
            },
        };
        // It is looked for at once, as if it were new.
        (tracked.next, tracked.tries) = (now, 0);
        let own = request.filter(|request| is_own(request, network));
        tracked.claimed = own.map(|request| request.id).or(tracked.claimed);
        let batch = Batch::new().put(key, tracked.encode()?);
        store.commit(batch).await?;
        if before.is_none() {
            self.waiting.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn known(&self, network: &str, tx: &TxRef) -> Result<Option<Known>, SubmittedError> {
        // A row that is settled between two reads is found: what is looked for is read first.
        let keys =
            [transaction::looked_for, transaction::settled].map(|key| key(network, &tx.bytes));
        let found = self.recorder.requests.store().read_all(&keys).await?;
        let Some(bytes) = found.into_iter().rev().flatten().next() else {
            return Ok(None);
        };
        let tracked = Tracked::decode(&bytes)?;
        let requests = &self.recorder.requests;
        let request = match tracked.requests.first() {
            None => None,
            Some(id) => match requests.by_id(id).await? {
                None => None,
                Some(request) => Some((request, requests.facts(id).await?)),
            },
        };
        let reorged = request
            .as_ref()
            .is_some_and(|(_, facts)| apply::is_reorged(facts, network, &tracked.text));
        Ok(Some(Known {
            network: network.to_owned(),
            transaction: tracked.text,
            outcome: match tracked.outcome {
                Outcome::Included if reorged => Outcome::Failed,
                outcome => outcome,
            },
            request,
        }))
    }

    async fn request(&self, id: &B256) -> Result<Request, SubmittedError> {
        let found = self.recorder.requests.by_id(id).await?;
        found.ok_or(SubmittedError::UnknownRequest(*id))
    }

    fn network(&self, number: u64) -> Result<(&str, &Network), SubmittedError> {
        let unknown = || SubmittedError::UnknownChain(number.to_string());
        let listed = self.market.by_number(number).ok_or_else(unknown)?;
        let network = self.networks.get(&listed.name).ok_or_else(unknown)?;
        Ok((&listed.name, network))
    }

    /// Every network in the market's order.
    fn all(&self) -> impl Iterator<Item = (&str, &Network)> {
        let listed = self.market.networks().iter();
        listed.filter_map(|one| Some((one.name.as_str(), self.networks.get(&one.name)?)))
    }
}

/// A transaction id in the network's own spelling, whatever the caller's.
fn parse(network: &Network, text: &str) -> Result<TxRef, SubmittedError> {
    let family = network.chain.spec.family;
    let bad = |error: CodecError| SubmittedError::BadHash(error.0);
    let asked = family.tx(text, None).map_err(bad)?;
    if !ID_BYTES.contains(&asked.bytes.len()) {
        let what = format!("txHash: {} bytes are no transaction id", asked.bytes.len());
        return Err(SubmittedError::BadHash(what));
    }
    let spelled = family
        .codec
        .decode_transaction_id(&asked.bytes)
        .map_err(bad)?;
    family
        .tx(&format!("{}{spelled}", family.tx_prefix), None)
        .map_err(bad)
}

/// Whether the user's own transaction on `network` does all that was asked for.
fn is_own(request: &Request, network: &str) -> bool {
    request.execution == Execution::User && request.origin.network == network
}
