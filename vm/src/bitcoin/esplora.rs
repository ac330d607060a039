//! An Esplora-compatible index of a Bitcoin chain over HTTP (guide: protocol 4.3): a provider like a node, and what
//! names the transaction that spent an output, which nodes do not know.
//!
//! A chain's entry names it in `additionalData`: `esploraCompatibleApiUrl`, and `maestroApiKey`, or
//! `blockstreamClientId` with `blockstreamClientSecret`.

mod auth;

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use bitcoin::{BlockHash, OutPoint, Transaction, Txid, consensus::deserialize};
use futures::stream::{self, StreamExt, TryStreamExt};
use reqwest::header::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::timeout;
use url::Url;

use self::auth::Auth;
use super::{
    raw::{IndexedBlock, IndexedSpend, IndexedTransaction, RawTransaction},
    source::{
        Found, MAX_PREVIOUS, Source, Spender, Transactions, anchored, block_hash, moved, shown,
    },
    trade::AccountHistory,
};
use crate::{
    ChainSpec, Endpoint, ReadError, SpecError,
    http::{Body, Channel, PostError},
    protocol::text,
    spec::setting,
    types::{B256, Block},
};

const URL: &str = "esploraCompatibleApiUrl";
/// Outputs asked about at once.
const AT_ONCE: usize = 8;

/// The index that a chain's entry names; none or one.
pub fn providers(additional: &Map<String, Value>) -> Result<Vec<Url>, SpecError> {
    let Some(text) = setting(additional, URL)? else {
        return Ok(Vec::new());
    };
    // The text may hold credentials: the mistake does not repeat it.
    let url = text.parse::<Url>().ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
    let wrong = || {
        SpecError(format!(
            "additionalData.{URL}: expected an http or https URL"
        ))
    };
    Ok(vec![url.ok_or_else(wrong)?])
}

/// One index.
pub struct Esplora {
    channel: Channel,
    auth: Auth,
    /// The most time for one read with all its questions.
    patience: Duration,
    genesis: Option<BlockHash>,
    /// What was read of accounts of ours with more outputs than the index lists, by their addresses.
    pub(super) histories: tokio::sync::Mutex<HashMap<String, AccountHistory>>,
    /// Transactions that are known to be no coinbase.
    pub(super) plain: Mutex<HashSet<Txid>>,
    /// The last waiting transaction that was asked for by its id.
    pub(super) last_asked: Mutex<Option<Txid>>,
    /// Whether the index showed that block and no read has failed since.
    identified: AtomicBool,
}

impl Esplora {
    /// The index that the chain's entry names, asked within the limits of `endpoint`; `None` without one.
    pub fn of(
        spec: &ChainSpec,
        endpoint: &Endpoint,
        genesis: Option<BlockHash>,
    ) -> Result<Option<Self>, SpecError> {
        let Some(url) = providers(&spec.additional)?.pop() else {
            return Ok(None);
        };
        let endpoint = Endpoint {
            url,
            ..endpoint.clone()
        };
        Ok(Some(Self {
            auth: Auth::of(spec, &endpoint)?,
            channel: Channel::new(&spec.id, &endpoint),
            patience: endpoint.timeout * 3 / 2,
            genesis,
            histories: tokio::sync::Mutex::default(),
            plain: Mutex::default(),
            last_asked: Mutex::default(),
            identified: AtomicBool::new(false),
        }))
    }

    /// The provider's name, fit for logs.
    pub(super) fn provider(&self) -> &str {
        self.channel.provider()
    }

    /// Runs a read within its time, after a check that the index is of our chain.
    pub(super) async fn ask<T>(
        &self,
        read: impl Future<Output = Result<T, ReadError>>,
    ) -> Result<T, ReadError> {
        let identified = async {
            if let Some(genesis) = self.genesis.filter(|_| !self.identified.load(Relaxed)) {
                if self.hash(0).await? != Some(genesis) {
                    let what = "another chain: wrong genesis block";
                    return Err(ReadError::Doubtful(what.into()));
                }
                self.identified.store(true, Relaxed);
            }
            read.await
        };
        let late = |_| Err(ReadError::Unavailable("timed out".into()));
        let answer = timeout(self.patience, identified)
            .await
            .unwrap_or_else(late);
        if matches!(answer, Err(ReadError::Unavailable(_))) {
            self.identified.store(false, Relaxed);
        }
        answer
    }

    /// The answer's body; `None` where the index does not know the thing.
    pub(super) async fn get(&self, path: &str) -> Result<Option<Body>, ReadError> {
        match self.exchange(path, None).await? {
            Ok(body) => Ok(Some(body)),
            Err((404, _)) => Ok(None),
            Err((status, _)) => Err(ReadError::Unavailable(format!("HTTP status {status}"))),
        }
    }

    /// Posts a text, and gives the answer's; `Err` inside: why the index refuses it.
    pub(super) async fn post(
        &self,
        path: &str,
        text: Vec<u8>,
    ) -> Result<Result<String, String>, ReadError> {
        let read = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let answer = self.exchange(path, Some(&text)).await?;
        Ok(answer
            .map(|body| read(&body))
            .map_err(|(_, body)| read(&body)))
    }

    /// The answer to a question, or its status and text where the index refuses the question itself.
    async fn exchange(
        &self,
        path: &str,
        text: Option<&[u8]>,
    ) -> Result<Result<Body, (u16, Arc<Body>)>, ReadError> {
        let mut again = self.auth.may_expire();
        loop {
            self.channel.admit(1).map_err(|error| failed(&error))?;
            let mut headers = HeaderMap::new();
            headers.extend(self.auth.header().await?);
            let answer = match text {
                None => self.channel.get(path, headers).await,
                Some(text) => self.channel.post_below(path, headers, text.to_vec()).await,
            };
            match answer {
                Ok(body) => return Ok(Ok(body)),
                Err(PostError::Status {
                    status: status @ (400 | 404),
                    body,
                }) => return Ok(Err((status, body))),
                Err(PostError::Status { status: 401, .. }) if again => {
                    self.auth.forget().await;
                    again = false;
                }
                Err(PostError::TooLarge) => return Err(ReadError::TooLarge),
                Err(error) => return Err(failed(&error)),
            }
        }
    }

    pub(super) async fn json<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, ReadError> {
        let said = self.unless_refused(path).await?;
        said.map_err(|()| ReadError::Unavailable("HTTP status 400".into()))
    }

    /// The same; `Err` inside where the index refuses the question itself.
    pub(super) async fn unless_refused<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Result<Option<T>, ()>, ReadError> {
        match self.exchange(path, None).await? {
            Ok(body) => {
                let read = serde_json::from_slice(&body);
                Ok(Ok(Some(read.map_err(|error| unreadable(&error))?)))
            }
            Err((404, _)) => Ok(Ok(None)),
            Err(_) => Ok(Err(())),
        }
    }

    /// A hash, which is no JSON.
    pub(super) async fn text(&self, path: &str) -> Result<Option<BlockHash>, ReadError> {
        let Some(body) = self.get(path).await? else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&body).unwrap_or_default();
        let hash: Result<BlockHash, _> = text.trim().parse();
        hash.map(Some).map_err(|error| unreadable(&error))
    }

    async fn hash(&self, height: u64) -> Result<Option<BlockHash>, ReadError> {
        self.text(&format!("block-height/{height}")).await
    }

    pub(super) async fn header(&self, hash: &BlockHash) -> Result<Block, ReadError> {
        let found: Option<IndexedBlock> = self.json(&format!("block/{hash}")).await?;
        let found = found.ok_or_else(moved)?;
        if found.id != *hash {
            return Err(doubt("another block's header"));
        }
        let parent = found.previousblockhash;
        Ok(Block {
            number: found.height,
            hash: shown(hash),
            parent: parent.map_or(B256::ZERO, |parent| shown(&parent)),
            time: found.timestamp,
        })
    }

    async fn is_there(&self, block: &Block) -> Result<bool, ReadError> {
        let found = self.hash(block.number).await?;
        Ok(found.is_some_and(|hash| shown(&hash) == block.hash))
    }

    /// A transaction, in a block or not; `None` where the index does not know it.
    async fn transaction(&self, txid: Txid) -> Result<Option<RawTransaction>, ReadError> {
        let indexed: Option<IndexedTransaction> = self.json(&format!("tx/{txid}")).await?;
        let transaction = indexed.map(RawTransaction::try_from).transpose();
        let transaction = transaction.map_err(doubt)?;
        match transaction.as_ref().is_none_or(|it| it.txid == txid) {
            true => Ok(transaction),
            false => Err(doubt("another transaction")),
        }
    }

    async fn found(&self, txid: Txid, head: &Block) -> Result<Option<Found>, ReadError> {
        anchored(self.hash(head.number).await?.map(|it| shown(&it)), head)?;
        let Some(transaction) = self.transaction(txid).await? else {
            return Ok(None);
        };
        let Some(hash) = transaction.blockhash else {
            return Ok(None);
        };
        let block = self.header(&hash).await?;
        if block.number > head.number {
            return Ok(None);
        }
        let stands = self.is_there(&block).await?;
        if !self.is_there(head).await? {
            return Err(moved());
        }
        Ok(stands.then(|| Found {
            spent: spent(&transaction),
            transaction,
            block,
        }))
    }

    /// Reads the transaction of a block that has it, without a look at the chain.
    pub(super) async fn found_in(&self, txid: Txid, block: &Block) -> Result<Found, ReadError> {
        let transaction = self.transaction(txid).await?.ok_or_else(moved)?;
        // It left the block, or the index has not come so far.
        if transaction.blockhash != Some(block_hash(&block.hash)) {
            return Err(moved());
        }
        Ok(Found {
            spent: spent(&transaction),
            transaction,
            block: block.clone(),
        })
    }

    async fn spender(&self, output: OutPoint) -> Result<Spender, ReadError> {
        let OutPoint { txid, vout } = output;
        let spend: Option<IndexedSpend> = self.json(&format!("tx/{txid}/outspend/{vout}")).await?;
        let Some(spend) = spend else {
            return Ok(Spender::Somebody);
        };
        let is_mined = spend.status.is_some_and(|status| status.block().is_some());
        match (spend.spent && is_mined, spend.txid) {
            (false, _) => Ok(Spender::Nobody),
            (true, Some(txid)) => Ok(Spender::By(txid)),
            (true, None) => Err(doubt("an output spent by no transaction")),
        }
    }
}

/// See [`Found::spent`].
pub(super) fn spent(transaction: &RawTransaction) -> Option<Vec<Option<bitcoin::ScriptBuf>>> {
    let inputs = || transaction.vin.iter();
    let mut all: Vec<Txid> = inputs().filter_map(|input| input.txid).collect();
    all.sort_unstable();
    all.dedup();
    let script = |prevout: &super::raw::RawPrevout| prevout.script.hex.clone();
    let scripts = inputs().map(|input| input.prevout.as_ref().map(script));
    (all.len() <= MAX_PREVIOUS).then(|| scripts.collect())
}

#[async_trait]
impl Source for Esplora {
    async fn tip(&self) -> Result<Block, ReadError> {
        self.ask(async {
            let tip = self.text("blocks/tip/hash").await?;
            self.header(&tip.ok_or_else(moved)?).await
        })
        .await
    }

    async fn hash_at(&self, height: u64) -> Result<Option<B256>, ReadError> {
        let found = self.ask(self.hash(height)).await?;
        Ok(found.map(|hash| shown(&hash)))
    }

    async fn block(&self, hash: B256) -> Result<Block, ReadError> {
        let hash = block_hash(&hash);
        self.ask(self.header(&hash)).await
    }

    async fn look(&self, txid: Txid, head: &Block) -> Result<Option<Found>, ReadError> {
        self.ask(self.found(txid, head)).await
    }

    async fn spenders(&self, outputs: &[OutPoint]) -> Result<Vec<Spender>, ReadError> {
        let each = stream::iter(outputs.to_vec()).map(|output| self.spender(output));
        self.ask(each.buffered(AT_ONCE).try_collect()).await
    }
}

#[async_trait]
impl Transactions for Esplora {
    async fn raw(&self, txid: Txid) -> Result<Option<Transaction>, ReadError> {
        let path = format!("tx/{txid}/raw");
        let body = self.ask(self.get(&path)).await?;
        let read = body.map(|body| deserialize(&body));
        read.transpose().map_err(|_| doubt("no transaction"))
    }
}

fn doubt(what: &str) -> ReadError {
    ReadError::Doubtful(what.into())
}

fn failed(error: &PostError) -> ReadError {
    ReadError::Unavailable(error.to_string())
}

fn unreadable(error: &dyn std::fmt::Display) -> ReadError {
    let what = text::short(&error.to_string());
    ReadError::Doubtful(format!("unreadable answer: {what}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_index_is_named_by_an_http_url_or_not_at_all() {
        let named = |value: Value| {
            let entry = json!({ URL: value });
            providers(entry.as_object().unwrap()).map(|urls| urls.len())
        };
        assert_eq!(named(json!("https://index.example/api")), Ok(1));
        assert_eq!(named(json!(null)), Ok(0));
        assert_eq!(named(json!("")), Ok(0));
        for wrong in [json!("ftp://index.example"), json!("s3cret"), json!(7)] {
            let error = named(wrong).unwrap_err().0;
            assert!(error.contains(URL) && !error.contains("s3cret"), "{error}");
        }
    }
}
