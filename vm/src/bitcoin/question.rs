//! The questions to a Bitcoin node, one after another. Blocking: only for threads made for that.
//!
//! Every answer is pinned to a head: the head's hash and the transaction's block must both be what the node has at
//! those heights now, else there is no answer.

use std::collections::{BTreeSet, HashMap};

use bitcoin::{BlockHash, ScriptBuf, Txid, hashes::Hash};
use bitcoincore_rpc::{
    Client, RpcApi,
    jsonrpc::{self, serde_json::value::to_raw_value},
};
use serde_json::json;

use super::raw::{RawHeader, RawInput, RawTransaction};
use crate::{
    ReadError,
    types::{B256, Block},
};

/// Previous transactions per round trip.
const BATCH: usize = 100;
/// The most inputs of a transaction that is read as a deposit: more would take longer than a request has.
pub const MAX_PREVIOUS: usize = 1_000;
/// Bitcoin Core's codes for an unknown transaction, block or height (RPC_INVALID_ADDRESS_OR_KEY and
/// RPC_INVALID_PARAMETER).
const UNKNOWN: [i32; 2] = [-5, -8];

/// Why a node's answers give no result.
pub enum Fault {
    Rpc(bitcoincore_rpc::Error),
    /// Some answers did not come in time.
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

/// `None` where the node does not know the thing.
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

pub fn hash_at(client: &Client, height: u64) -> Result<Option<BlockHash>, Fault> {
    known(client.call("getblockhash", &[json!(height)]))
}

pub fn header(client: &Client, hash: &BlockHash) -> Result<Block, Fault> {
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

pub fn is_canonical(client: &Client, block: &Block) -> Result<bool, Fault> {
    Ok(hash_at(client, block.number)?.is_some_and(|hash| shown(&hash) == block.hash))
}

/// A transaction, the scripts that it spends, and its block.
pub struct Found {
    pub transaction: RawTransaction,
    /// `None` when it has more than [`MAX_PREVIOUS`] inputs.
    pub spent: Option<Vec<Option<ScriptBuf>>>,
    pub block: Block,
}

/// Reads the transaction as seen from `head`; `None` when it is in no block at or below it.
pub fn look(client: &Client, txid: &Txid, head: &Block) -> Result<Option<Found>, Fault> {
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

/// The script of each input's previous output; `None` for a coinbase. The whole result is `None` above
/// [`MAX_PREVIOUS`], whatever the node shows unasked, because all providers must decide alike.
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
    let script = |input: &RawInput| {
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

/// A hash in the usual reversed byte order.
fn shown(hash: &BlockHash) -> B256 {
    reversed(&B256::from(hash.to_byte_array()))
}

pub fn reversed(bytes: &B256) -> B256 {
    let mut bytes = *bytes;
    bytes.0.reverse();
    bytes
}
