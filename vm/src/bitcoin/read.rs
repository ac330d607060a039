//! Reads of one Bitcoin node through bitcoincore-rpc. Its calls block: each request of the daemon
//! is one closure on a thread made for blocking. Few of them run at once, and each has a deadline,
//! so that a node that hangs holds no more than its share of threads.
//!
//! Everything is pinned to a head: the head's hash and the transaction's block must both be what
//! this node has at those heights now, or the read is refused.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use bitcoin::{BlockHash, ScriptBuf, Txid, hashes::Hash};
use bitcoincore_rpc::{
    Client, RpcApi,
    jsonrpc::{self, serde_json::value::to_raw_value},
};
use serde_json::json;
use tokio::{
    runtime::Handle,
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use super::{
    decode::{self, Rules},
    raw::{RawHeader, RawTransaction},
    transport::Blocking,
};
use crate::{
    ChainReader, ChainSpec, Endpoint, Provider, ReadError, SpecError,
    http::Channel,
    types::{B256, Block, Head, Refusal, Transaction, TxRef},
};

/// How long a head is good enough: blocks come every ten minutes.
const HEAD_AGE: Duration = Duration::from_secs(5);
/// Previous transactions asked for in one round trip.
const BATCH: usize = 100;
/// Transactions whose outputs one may spend and still be looked into as a deposit: more would take
/// longer than a request has.
const MAX_PREVIOUS: usize = 1_000;
/// Reads of one node at once.
const AT_ONCE: usize = 16;
/// Bitcoin Core: no such transaction, block or height (RPC_INVALID_ADDRESS_OR_KEY and
/// RPC_INVALID_PARAMETER).
const UNKNOWN: [i32; 2] = [-5, -8];

/// Opens one node. See [`crate::Family::open`].
pub fn open(spec: &Arc<ChainSpec>, endpoint: &Endpoint) -> Result<Provider, SpecError> {
    let genesis = spec
        .additional
        .get("genesisHash")
        .and_then(|value| value.as_str());
    let genesis = genesis
        .map(|text| {
            text.parse()
                .map_err(|_| SpecError("genesisHash: expected a hash".into()))
        })
        .transpose()?;
    if genesis.is_none() && endpoint.position == 1 {
        let chain = &spec.id;
        tracing::warn!(%chain, "no genesisHash: a node of another network would not be noticed");
    }
    let node = Node {
        rules: Rules::new(spec)?,
        channel: Channel::new(&spec.id, endpoint),
        // One slow answer may be followed by others that are quick.
        patience: endpoint.timeout * 3 / 2,
        places: Arc::new(Semaphore::new(AT_ONCE)),
        genesis,
        identified: AtomicBool::new(false),
        turn: tokio::sync::Mutex::new(()),
        tip: Mutex::default(),
    };
    Ok(Provider {
        name: endpoint.name().into(),
        reader: Arc::new(node),
        state: None,
    })
}

struct Node {
    rules: Rules,
    channel: Channel,
    /// How long one read may take with all its questions.
    patience: Duration,
    places: Arc<Semaphore>,
    /// The first block of the chain that this node must be of, where the entry names it.
    genesis: Option<BlockHash>,
    /// The node showed that block, and nothing failed since.
    identified: AtomicBool,
    /// One reader of the head at a time; the others use what it found.
    turn: tokio::sync::Mutex<()>,
    tip: Mutex<Tip>,
}

#[derive(Default)]
struct Tip {
    /// When reading it began.
    head: Option<(Instant, Head)>,
    /// When the last attempt failed, and why.
    failed: Option<(Instant, ReadError)>,
}

#[async_trait]
impl ChainReader for Node {
    async fn head(&self) -> Result<Head, ReadError> {
        let known = self.tip(|tip| tip.head.clone());
        match known {
            Some((seen, head)) if seen.elapsed() < HEAD_AGE => Ok(head),
            _ => self.fresh_head().await,
        }
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        let since = Instant::now();
        let _turn = self.turn.lock().await;
        if let Some(found) = self.tip(|tip| tip.found_since(since)) {
            return found;
        }
        let started = Instant::now();
        let read = self.read_head().await;
        self.tip(|tip| match &read {
            Ok(head) => tip.head = Some((started, head.clone())),
            Err(error) => tip.failed = Some((Instant::now(), error.clone())),
        });
        read
    }

    async fn contains(&self, block: &Block) -> Result<bool, ReadError> {
        let block = block.clone();
        self.ask(move |client| is_canonical(client, &block)).await
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError> {
        let Ok(txid) = B256::try_from(tx.bytes.as_ref()) else {
            return Ok(Transaction::Missing);
        };
        // Ids are written backwards.
        let txid = Txid::from_byte_array(reversed(&txid).0);
        let head = head.block.clone();
        let found = self.ask(move |client| look(client, &txid, &head)).await?;
        let Some(Found {
            transaction,
            spent,
            block,
        }) = found
        else {
            return Ok(Transaction::Missing);
        };
        let known = spent.as_deref().unwrap_or_default();
        let mut receipt = decode::decode(&self.rules, &transaction, known, block);
        if spent.is_none() {
            let what = format!("Transaction spends outputs of more than {MAX_PREVIOUS} others");
            receipt.deposits = Err(Refusal(what));
        }
        Ok(Transaction::Succeeded(receipt))
    }
}

impl Tip {
    /// What an attempt found that somebody made after `since`.
    fn found_since(&self, since: Instant) -> Option<Result<Head, ReadError>> {
        let head = self.head.as_ref().filter(|(started, _)| *started >= since);
        let failed = self.failed.as_ref().filter(|(ended, _)| *ended >= since);
        let head = head.map(|(_, head)| Ok(head.clone()));
        head.or_else(|| failed.map(|(_, error)| Err(error.clone())))
    }
}

impl Node {
    async fn read_head(&self) -> Result<Head, ReadError> {
        let block = self.ask(|client| {
            let height: u64 = client.call("getblockcount", &[])?;
            header(client, &hash_at(client, height)?.ok_or(Fault::Moved)?)
        });
        Ok(Head {
            block: block.await?,
            tagged: None,
        })
    }

    /// Runs `question` where it may block, after making sure that the node is of our chain.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Client) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, ReadError> {
        let deadline = Instant::now() + self.patience;
        let place = timeout_at(deadline, self.places.clone().acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            return Err(ReadError::Unavailable("too many reads under way".into()));
        };
        let client = self.client(deadline);
        let genesis = self.genesis.filter(|_| !self.identified.load(Relaxed));
        let answered = tokio::task::spawn_blocking(move || {
            // Held until the thread is free, even if nobody waits any more.
            let _place = place;
            if let Some(genesis) = genesis
                && hash_at(&client, 0)? != Some(genesis)
            {
                return Err(Fault::OtherChain);
            }
            question(&client)
        });
        let answer = match timeout_at(deadline, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(stopped)) => return Err(ReadError::Unavailable(stopped.to_string())),
            Err(_) => Err(Fault::Late),
        };
        match &answer {
            Ok(_) if genesis.is_some() => self.identified.store(true, Relaxed),
            // Another node may stand behind the same name when it comes back.
            Err(Fault::Rpc(_) | Fault::Late) => self.identified.store(false, Relaxed),
            _ => {}
        }
        Ok(answer?)
    }

    fn client(&self, deadline: Instant) -> Client {
        let transport = Blocking {
            channel: self.channel.clone(),
            runtime: Handle::current(),
            deadline,
        };
        Client::from_jsonrpc(jsonrpc::Client::with_transport(transport))
    }

    fn tip<T>(&self, with: impl FnOnce(&mut Tip) -> T) -> T {
        with(&mut self.tip.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Why a node's answers make no statement.
enum Fault {
    Rpc(bitcoincore_rpc::Error),
    /// Not all answers came in time.
    Late,
    /// The chain changed between two answers.
    Moved,
    /// The pinned head is not on this node's chain.
    OtherFork,
    /// The node has not reached the pinned head.
    Behind,
    OtherChain,
    /// An answer contradicts itself or the question.
    Doubtful(&'static str),
}

impl From<bitcoincore_rpc::Error> for Fault {
    fn from(error: bitcoincore_rpc::Error) -> Self {
        Self::Rpc(error)
    }
}

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Rpc(bitcoincore_rpc::Error::JsonRpc(jsonrpc::Error::Json(error))) => {
                Self::Doubtful(format!("unreadable answer: {error}"))
            }
            Fault::Rpc(error) => Self::Unavailable(error.to_string()),
            Fault::Late => Self::Unavailable("timed out".into()),
            Fault::Moved => Self::Unavailable("the chain changed between two reads".into()),
            Fault::Behind => Self::Unavailable("behind the agreed head".into()),
            Fault::OtherFork => Self::Doubtful("the head is not on this provider's chain".into()),
            Fault::OtherChain => Self::Doubtful("another chain: wrong genesis block".into()),
            Fault::Doubtful(what) => Self::Doubtful(what.into()),
        }
    }
}

/// `None` where the node says that it knows no such thing.
fn known<T>(answer: Result<T, bitcoincore_rpc::Error>) -> Result<Option<T>, Fault> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(bitcoincore_rpc::Error::JsonRpc(jsonrpc::Error::Rpc(error)))
            if UNKNOWN.contains(&error.code) =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn hash_at(client: &Client, height: u64) -> Result<Option<BlockHash>, Fault> {
    known(client.call("getblockhash", &[json!(height)]))
}

fn header(client: &Client, hash: &BlockHash) -> Result<Block, Fault> {
    let found: Option<RawHeader> = known(client.call("getblockheader", &[json!(hash)]))?;
    let header = found.ok_or(Fault::Moved)?;
    if header.hash != *hash {
        return Err(Fault::Doubtful("another block's header"));
    }
    let parent = header
        .previousblockhash
        .map_or(B256::ZERO, |parent| shown(&parent));
    Ok(Block {
        number: header.height,
        hash: shown(hash),
        parent,
        time: header.time,
    })
}

fn is_canonical(client: &Client, block: &Block) -> Result<bool, Fault> {
    Ok(hash_at(client, block.number)?.is_some_and(|hash| shown(&hash) == block.hash))
}

/// A transaction, what it spends, and its block.
struct Found {
    transaction: RawTransaction,
    /// `None` when it spends too much to look into.
    spent: Option<Vec<Option<ScriptBuf>>>,
    block: Block,
}

/// The transaction as seen from `head`; `None` when it is in no block at or below it.
fn look(client: &Client, txid: &Txid, head: &Block) -> Result<Option<Found>, Fault> {
    match hash_at(client, head.number)? {
        None => return Err(Fault::Behind),
        Some(hash) if shown(&hash) != head.hash => return Err(Fault::OtherFork),
        Some(_) => {}
    }
    let asked = client.call::<RawTransaction>("getrawtransaction", &[json!(txid), json!(2)]);
    let Some(transaction) = known(asked)? else {
        return Ok(None);
    };
    if transaction.txid != *txid {
        return Err(Fault::Doubtful("another transaction"));
    }
    if transaction
        .vout
        .iter()
        .enumerate()
        .any(|(at, output)| output.n as usize != at)
    {
        return Err(Fault::Doubtful("outputs out of order"));
    }
    let Some(hash) = transaction.blockhash else {
        return Ok(None);
    };
    let block = header(client, &hash)?;
    if block.number > head.number {
        return Ok(None);
    }
    let spent = spent(client, &transaction)?;
    if !is_canonical(client, &block)? || !is_canonical(client, head)? {
        return Err(Fault::Moved);
    }
    Ok(Some(Found {
        transaction,
        spent,
        block,
    }))
}

/// The script of each input's previous output; `None` for a coinbase. `None` at all beyond
/// [`MAX_PREVIOUS`], whatever the node shows unasked: all providers must decide it alike.
fn spent(
    client: &Client,
    transaction: &RawTransaction,
) -> Result<Option<Vec<Option<ScriptBuf>>>, Fault> {
    let all: BTreeSet<Txid> = transaction.vin.iter().filter_map(|i| i.txid).collect();
    if all.len() > MAX_PREVIOUS {
        return Ok(None);
    }
    let missing = transaction
        .vin
        .iter()
        .filter(|input| input.prevout.is_none());
    let missing: BTreeSet<Txid> = missing.filter_map(|input| input.txid).collect();
    let previous = previous(client, missing.into_iter().collect::<Vec<_>>().as_slice())?;
    let script = |input: &super::raw::RawInput| {
        let Some(txid) = input.txid else {
            return Ok(None);
        };
        if let Some(prevout) = &input.prevout {
            return Ok(Some(prevout.script.hex.clone()));
        }
        let output = previous
            .get(&txid)
            .and_then(|found| found.vout.get(input.vout as usize));
        output
            .map(|output| Some(output.script.hex.clone()))
            .ok_or(Fault::Doubtful(
                "an input spends an output that does not exist",
            ))
    };
    let scripts: Result<_, _> = transaction.vin.iter().map(script).collect();
    scripts.map(Some)
}

fn previous(client: &Client, txids: &[Txid]) -> Result<HashMap<Txid, RawTransaction>, Fault> {
    let rpc = client.get_jsonrpc_client();
    let mut found = HashMap::new();
    for txids in txids.chunks(BATCH) {
        let params = txids.iter().map(|txid| to_raw_value(&json!([txid, true])));
        let params = params
            .collect::<Result<Vec<_>, _>>()
            .map_err(jsonrpc::Error::Json);
        let params = params.map_err(bitcoincore_rpc::Error::from)?;
        let requests: Vec<_> = params
            .iter()
            .map(|params| rpc.build_request("getrawtransaction", Some(params.as_ref())))
            .collect();
        let answers = rpc
            .send_batch(&requests)
            .map_err(bitcoincore_rpc::Error::from)?;
        for (txid, answer) in txids.iter().zip(answers) {
            let answer = answer.ok_or(Fault::Doubtful("an answer is missing"))?;
            let answer: RawTransaction = answer.result().map_err(bitcoincore_rpc::Error::from)?;
            if answer.txid != *txid {
                return Err(Fault::Doubtful("another transaction"));
            }
            found.insert(*txid, answer);
        }
    }
    Ok(found)
}

/// A hash as people write it.
fn shown(hash: &BlockHash) -> B256 {
    reversed(&B256::from(hash.to_byte_array()))
}

fn reversed(bytes: &B256) -> B256 {
    let mut bytes = *bytes;
    bytes.0.reverse();
    bytes
}
