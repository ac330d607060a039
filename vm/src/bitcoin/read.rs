//! Reads of one Bitcoin node through bitcoincore-rpc. Its calls block: each request of the daemon
//! is one closure on a thread made for blocking.
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
use tokio::{runtime::Handle, time::Instant};

use super::{
    decode::{self, Rules},
    raw::{RawHeader, RawTransaction},
    transport::Blocking,
};
use crate::{
    ChainReader, ChainSpec, Endpoint, Provider, ReadError, SpecError,
    http::Channel,
    types::{B256, Block, Head, Transaction, TxRef},
};

/// How long a head is good enough: blocks come every ten minutes.
const HEAD_AGE: Duration = Duration::from_secs(5);
/// Previous transactions asked for in one round trip.
const BATCH: usize = 100;
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
    let node = Node {
        rules: Rules::new(spec)?,
        channel: Channel::new(&spec.id, endpoint),
        genesis,
        client: Mutex::new(None),
        identified: AtomicBool::new(false),
        head: Mutex::new(None),
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
    /// The first block of the chain that this node must be of, where the entry names it.
    genesis: Option<BlockHash>,
    client: Mutex<Option<Arc<Client>>>,
    identified: AtomicBool,
    head: Mutex<Option<(Instant, Head)>>,
}

#[async_trait]
impl ChainReader for Node {
    async fn head(&self) -> Result<Head, ReadError> {
        let known = self
            .head
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match known {
            Some((seen, head)) if seen.elapsed() < HEAD_AGE => Ok(head),
            _ => self.fresh_head().await,
        }
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        let block = self
            .ask(|client| {
                let height: u64 = client.call("getblockcount", &[])?;
                header(client, &hash_at(client, height)?.ok_or(Fault::Moved)?)
            })
            .await?;
        let head = Head {
            block,
            tagged: None,
        };
        *self.head.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Instant::now(), head.clone()));
        Ok(head)
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
        Ok(Transaction::Succeeded(decode::decode(
            &self.rules,
            &transaction,
            &spent,
            block,
        )))
    }
}

impl Node {
    /// Runs `question` where it may block, after making sure that the node is of our chain.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Client) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, ReadError> {
        let client = self.client();
        let genesis = self.genesis.filter(|_| !self.identified.load(Relaxed));
        let answered = tokio::task::spawn_blocking(move || {
            if let Some(genesis) = genesis
                && hash_at(&client, 0)? != Some(genesis)
            {
                return Err(Fault::OtherChain);
            }
            question(&client)
        });
        let answer = answered
            .await
            .map_err(|error| ReadError::Unavailable(error.to_string()))?
            .map_err(ReadError::from)?;
        self.identified.store(true, Relaxed);
        Ok(answer)
    }

    fn client(&self) -> Arc<Client> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let made = client.get_or_insert_with(|| {
            let transport = Blocking {
                channel: self.channel.clone(),
                runtime: Handle::current(),
            };
            Arc::new(Client::from_jsonrpc(jsonrpc::Client::with_transport(
                transport,
            )))
        });
        made.clone()
    }
}

/// Why a node's answers make no statement.
enum Fault {
    Rpc(bitcoincore_rpc::Error),
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
    spent: Vec<Option<ScriptBuf>>,
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

/// The script of each input's previous output; `None` for a coinbase.
fn spent(client: &Client, transaction: &RawTransaction) -> Result<Vec<Option<ScriptBuf>>, Fault> {
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
    transaction.vin.iter().map(script).collect()
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
