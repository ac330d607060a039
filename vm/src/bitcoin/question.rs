//! The questions to a Bitcoin node, one after another. Blocking: only for threads made for that.
//!
//! Every answer is pinned to a head: the head's hash and the transaction's block must both be what the node has at
//! those heights now, else there is no answer.

use std::collections::{BTreeSet, HashMap, HashSet};

use bitcoin::{
    BlockHash, OutPoint, ScriptBuf, Transaction, Txid, consensus::encode::deserialize_hex,
};
use bitcoincore_rpc::{
    Client, RpcApi,
    jsonrpc::{self, serde_json::value::to_raw_value},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    raw::{RawHeader, RawInput, RawTransaction, RawUnspent},
    source::{self, Found, MAX_PREVIOUS, shown},
    spend::MAX_RIVALS,
};
use crate::{
    ReadError,
    http::PostError,
    protocol::text,
    types::{B256, Block},
};

/// Questions per round trip.
pub const BATCH: usize = 100;
/// Bytes of all scripts that are kept of other transactions: as many of the longest that can be spent as are asked for.
const SCRIPTS: usize = MAX_PREVIOUS * 10_000;
/// Bitcoin Core's codes for an unknown transaction, block or height (RPC_INVALID_ADDRESS_OR_KEY and
/// RPC_INVALID_PARAMETER).
const UNKNOWN: [i32; 2] = [-5, -8];

/// Why a node's answers give no result.
pub enum Fault {
    Rpc(bitcoincore_rpc::Error),
    /// Some answers did not come in time.
    Late,
    OtherChain,
    /// Says itself what it is.
    Read(ReadError),
    /// An answer contradicts itself or the question.
    Doubtful(&'static str),
}

impl From<bitcoincore_rpc::Error> for Fault {
    fn from(error: bitcoincore_rpc::Error) -> Self {
        Self::Rpc(error)
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Rpc(bitcoincore_rpc::Error::JsonRpc(jsonrpc::Error::Json(error))) => {
                Self::Doubtful(format!("unreadable answer: {}", brief(&error)))
            }
            Fault::Rpc(bitcoincore_rpc::Error::JsonRpc(jsonrpc::Error::Transport(error)))
                if matches!(error.downcast_ref::<PostError>(), Some(PostError::TooLarge)) =>
            {
                Self::TooLarge
            }
            Fault::Rpc(error) => Self::Unavailable(brief(&error)),
            Fault::Late => Self::Unavailable("timed out".into()),
            Fault::Read(error) => error,
            Fault::OtherChain => Self::Doubtful("another chain: wrong genesis block".into()),
            Fault::Doubtful(what) => Self::Doubtful(what.into()),
        }
    }
}

/// What is wrong, which may repeat an answer of any length.
fn brief(error: &dyn std::fmt::Display) -> String {
    text::short(&error.to_string())
}

/// `None` where the node does not know the thing.
pub fn known<T>(answer: Result<T, bitcoincore_rpc::Error>) -> Result<Option<T>, Fault> {
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
    let header = found.ok_or_else(source::moved)?;
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

fn anchor(client: &Client, block: &Block) -> Result<(), Fault> {
    let found = hash_at(client, block.number)?.map(|hash| shown(&hash));
    Ok(source::anchored(found, block)?)
}

/// A transaction, wherever it is.
pub fn raw(client: &Client, txid: &Txid) -> Result<Option<Transaction>, Fault> {
    let asked = client.call::<String>("getrawtransaction", &[json!(txid), json!(false)]);
    known(asked)?.map(|text| decoded(&text)).transpose()
}

pub fn decoded(text: &str) -> Result<Transaction, Fault> {
    deserialize_hex(text).map_err(|_| Fault::Doubtful("no transaction"))
}

/// Reads the transaction as seen from `head`; `None` when it is in no block at or below it.
pub fn look(client: &Client, txid: &Txid, head: &Block) -> Result<Option<Found>, Fault> {
    anchor(client, head)?;
    let asked = client.call::<RawTransaction>("getrawtransaction", &[json!(txid), json!(2)]);
    let Some(transaction) = known(asked)? else {
        return Ok(None);
    };
    if transaction.txid != *txid {
        return Err(Fault::Doubtful("another transaction"));
    }
    check_order(&transaction)?;
    let Some(hash) = transaction.blockhash else {
        return Ok(None);
    };
    let block = header(client, &hash)?;
    if block.number > head.number {
        return Ok(None);
    }
    let spent = spent(client, &transaction)?;
    let is_there = |block: &Block| {
        let hash = hash_at(client, block.number)?.map(|hash| shown(&hash));
        Ok::<_, Fault>(hash == Some(block.hash))
    };
    let stands = is_there(&block)?;
    if !is_there(head)? {
        return Err(source::moved().into());
    }
    // A node still finds what a reorg removed, in the block that is gone.
    Ok(stands.then_some(Found {
        transaction,
        spent,
        block,
    }))
}

/// Reads the transaction of a block that has it, without a look at the chain.
pub fn look_in(client: &Client, txid: &Txid, block: Block) -> Result<Found, Fault> {
    let hash = source::block_hash(&block.hash);
    let asked = [json!(txid), json!(2), json!(hash)];
    let transaction: Option<RawTransaction> = known(client.call("getrawtransaction", &asked))?;
    let transaction = transaction.ok_or_else(source::moved)?;
    if transaction.txid != *txid || transaction.blockhash != Some(hash) {
        return Err(Fault::Doubtful("another transaction"));
    }
    check_order(&transaction)?;
    Ok(Found {
        spent: spent(client, &transaction)?,
        transaction,
        block,
    })
}

/// Refuses outputs whose numbers are not their places.
fn check_order(transaction: &RawTransaction) -> Result<(), Fault> {
    let mut outputs = transaction.vout.iter().enumerate();
    match outputs.all(|(at, output)| output.n as usize == at) {
        true => Ok(()),
        false => Err(Fault::Doubtful("outputs out of order")),
    }
}

/// See [`Found::spent`].
pub fn spent(
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
    let outpoint = |input: &RawInput| Some(OutPoint::new(input.txid?, input.vout));
    let previous = previous(client, &missing.filter_map(outpoint).collect())?;
    let script = |input: &RawInput| {
        let Some(output) = outpoint(input) else {
            return Ok(None);
        };
        if let Some(prevout) = &input.prevout {
            return Ok(Some(prevout.script.hex.clone()));
        }
        let script = previous.known.get(&output).cloned();
        let wrong = "an input spends an output that does not exist";
        script.map(Some).ok_or(Fault::Doubtful(wrong))
    };
    let scripts: Result<_, _> = transaction.vin.iter().map(script).collect();
    scripts.map(Some)
}

/// Scripts of outputs, within a size.
#[derive(Default)]
struct Scripts {
    known: HashMap<OutPoint, ScriptBuf>,
    size: usize,
}

impl Scripts {
    fn add(&mut self, output: OutPoint, script: &ScriptBuf) -> Result<(), Fault> {
        self.size += script.len();
        if self.size > SCRIPTS {
            return Err(ReadError::TooLarge.into());
        }
        self.known.insert(output, script.clone());
        Ok(())
    }
}

/// The scripts of those outputs that exist. Nothing else is kept of their transactions, which may be large.
fn previous(client: &Client, outputs: &BTreeSet<OutPoint>) -> Result<Scripts, Fault> {
    let txids: BTreeSet<Txid> = outputs.iter().map(|output| output.txid).collect();
    let txids: Vec<Txid> = txids.into_iter().collect();
    let mut scripts = Scripts::default();
    for txids in txids.chunks(BATCH) {
        let params: Vec<_> = txids.iter().map(|txid| json!([txid, true])).collect();
        let answers: Vec<RawTransaction> = together(client, "getrawtransaction", &params)?;
        for (txid, answer) in txids.iter().zip(&answers) {
            if answer.txid != *txid {
                return Err(Fault::Doubtful("another transaction"));
            }
            check_order(answer)?;
            let wanted = outputs.range(OutPoint::new(*txid, 0)..=OutPoint::new(*txid, u32::MAX));
            for wanted in wanted {
                if let Some(output) = answer.vout.get(wanted.vout as usize) {
                    scripts.add(*wanted, &output.script.hex)?;
                }
            }
        }
    }
    Ok(scripts)
}

/// Whether each output is unspent at the node's tip, whatever is in its memory pool.
pub fn unspent(client: &Client, outputs: &[OutPoint]) -> Result<Vec<bool>, Fault> {
    let params = outputs.iter();
    let params: Vec<_> = params.map(|it| json!([it.txid, it.vout, false])).collect();
    let answers: Vec<Option<RawUnspent>> = together(client, "gettxout", &params)?;
    Ok(answers.iter().map(Option::is_some).collect())
}

/// Which of the transactions are in a block and spend the output that they stand with, as the node knows them.
pub fn spending(client: &Client, named: &[(OutPoint, Txid)]) -> Result<Vec<bool>, Fault> {
    let mut known_spends: HashMap<Txid, HashSet<OutPoint>> = HashMap::new();
    for (_, txid) in named {
        // Further ones stay unknown.
        if known_spends.contains_key(txid) || known_spends.len() >= MAX_RIVALS {
            continue;
        }
        let asked = client.call::<RawTransaction>("getrawtransaction", &[json!(txid), json!(true)]);
        let found = known(asked)?.filter(|it| it.txid == *txid && it.blockhash.is_some());
        let inputs = found.iter().flat_map(|it| &it.vin);
        let spent = inputs.filter_map(|input| Some(OutPoint::new(input.txid?, input.vout)));
        known_spends.insert(*txid, spent.collect());
    }
    let spends = |(output, txid): &(OutPoint, Txid)| {
        let spent = known_spends.get(txid);
        spent.is_some_and(|spent| spent.contains(output))
    };
    Ok(named.iter().map(spends).collect())
}

/// Asks one question with each of `params`, [`BATCH`] of them per round trip.
pub fn together<T: DeserializeOwned>(
    client: &Client,
    method: &str,
    params: &[Value],
) -> Result<Vec<T>, Fault> {
    let answers = answers(client, method, params)?.into_iter();
    let read = answers.map(|answer| answer.result().map_err(bitcoincore_rpc::Error::from));
    Ok(read.collect::<Result<_, _>>()?)
}

/// The same; `None` where the node does not know the thing.
pub fn known_together<T: DeserializeOwned>(
    client: &Client,
    method: &str,
    params: &[Value],
) -> Result<Vec<Option<T>>, Fault> {
    let answers = answers(client, method, params)?.into_iter();
    let read = answers.map(|answer| known(answer.result().map_err(bitcoincore_rpc::Error::from)));
    read.collect()
}

fn answers(
    client: &Client,
    method: &str,
    params: &[Value],
) -> Result<Vec<jsonrpc::Response>, Fault> {
    let rpc = client.get_jsonrpc_client();
    let mut all = Vec::with_capacity(params.len());
    for params in params.chunks(BATCH) {
        let params = params.iter().map(to_raw_value);
        let params = params
            .collect::<Result<Vec<_>, _>>()
            .map_err(jsonrpc::Error::Json);
        let params = params.map_err(bitcoincore_rpc::Error::from)?;
        let requests: Vec<_> = params
            .iter()
            .map(|params| rpc.build_request(method, Some(params.as_ref())))
            .collect();
        let answers = rpc
            .send_batch(&requests)
            .map_err(bitcoincore_rpc::Error::from)?;
        for answer in answers {
            all.push(answer.ok_or(Fault::Doubtful("an answer is missing"))?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use bitcoin::hashes::Hash;

    use super::*;

    #[test]
    fn scripts_of_other_transactions_are_kept_within_a_size() {
        let script = ScriptBuf::from_bytes(vec![0x6a; 10_000]);
        let mut scripts = Scripts::default();
        let output = |vout: usize| OutPoint::new(Txid::all_zeros(), u32::try_from(vout).unwrap());
        for vout in 0..MAX_PREVIOUS {
            assert!(scripts.add(output(vout), &script).is_ok(), "{vout}");
        }
        assert!(scripts.add(output(MAX_PREVIOUS), &script).is_err());
        assert_eq!(scripts.known.len(), MAX_PREVIOUS);
    }
}
