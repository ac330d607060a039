//! What a node shows to those who trade on its chain (Bitcoin Core's RPC: `getblock`, `scantxoutset`,
//! `gettxspendingprevout`, `getrawmempool`). Accounts of our own are watched by a wallet in it: `watched`.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use bitcoin::{Block, OutPoint, ScriptBuf, Txid, consensus::encode::deserialize_hex};
use bitcoincore_rpc::{Client, RpcApi, jsonrpc};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{
    coin::Coin,
    scan_source::{Asked, Blocks, Looked, MATURITY, Payee, Seen, Waits, Whose},
};
use crate::{
    ReadError,
    bitcoin::{
        node::Node,
        question::{BATCH, Fault, decoded, known, known_together, look_in, spent},
        raw::{RawTransaction, bitcoins},
        source::{Found, block_hash},
    },
    types::{self, B256},
};

/// Outputs of an account of ours that are kept, the largest: transactions spend fewer. Of others no more are shown.
pub const MOST_COINS: usize = 1_000;
/// New waiting transactions that one look reads.
const MOST_NEW: usize = 2_000;
/// Inputs of a waiting transaction whose previous ones are read: a wallet's usual payment has fewer.
const MOST_INPUTS: usize = 50;
/// Inputs of all waiting transactions that one look reads; further ones with the next look.
const INPUTS: usize = 500;
/// New waiting transactions that a look reads first together. Then more, while the answers are not long: one that is
/// late, or too long, would have been read for nothing.
const FIRST: usize = 16;
/// Hex digits of transactions from which on an answer is long.
const LONG: usize = 4 << 20;
/// Bitcoin Core's code for a method that it does not have (RPC_METHOD_NOT_FOUND).
pub const NO_METHOD: i32 = -32_601;
/// Its code for a search while it makes another one (RPC_INVALID_PARAMETER).
const INVALID: i32 = -8;
/// Between two tries of a search.
const PAUSE: Duration = Duration::from_millis(50);

#[async_trait]
impl Blocks for Node {
    async fn whole(&self, hash: &B256) -> Result<Block, ReadError> {
        let hash = block_hash(hash);
        self.ask(move |client| {
            let text: String = client.call("getblock", &[json!(hash), json!(0)])?;
            deserialize_hex(&text).map_err(|_| Fault::Doubtful("no block"))
        })
        .await
    }

    async fn look_in(&self, txid: Txid, block: &types::Block) -> Result<Found, ReadError> {
        let block = block.clone();
        self.ask(move |client| look_in(client, &txid, block)).await
    }

    async fn unspent(&self, payee: &Payee, whose: Whose) -> Result<Vec<Coin>, ReadError> {
        if whose == Whose::Own
            && let Some(coins) = self.watched(payee).await?
        {
            return Ok(coins);
        }
        if let Some(index) = &self.index {
            let coins = index.unspent(payee, whose).await?;
            return match whose {
                Whose::Own => self.held(payee, coins).await,
                Whose::Others => Ok(coins),
            };
        }
        self.searched(payee, whose).await
    }

    async fn waiting(&self, asked: Asked<'_>, seen: &mut Seen) -> Result<(), ReadError> {
        let mut budget = Budget {
            end: Instant::now() + self.patience(),
            inputs: INPUTS,
        };
        let all = self.ask(|client| Ok(client.call::<Vec<Txid>>("getrawmempool", &[])?));
        let new = new(all.await?, asked.known, seen);
        let payees = asked.payees.iter();
        let scripts: Arc<[ScriptBuf]> = payees.map(|payee| payee.script.clone()).collect();
        let (mut left, mut most) = (new.as_slice(), FIRST);
        while !left.is_empty() && Instant::now() < budget.end {
            let (batch, rest) = left.split_at(most.min(left.len()));
            match self.paying(&scripts, batch).await {
                Ok(paying) => {
                    most = match paying.digits > LONG {
                        true => (batch.len() / 2).max(1),
                        false => (most * 2).min(BATCH),
                    };
                    if !self.take(batch, &paying, (&mut *seen, &mut budget)).await? {
                        break;
                    }
                }
                Err(ReadError::TooLarge) if batch.len() > 1 => {
                    most = batch.len() / 2;
                    continue;
                }
                // Nobody can read it.
                Err(ReadError::TooLarge) => seen.extend(batch.iter().map(|txid| (*txid, None))),
                Err(error) => return Err(error),
            }
            left = rest;
        }
        Ok(())
    }
}

impl Node {
    /// The account's outputs, searched among all that are unspent: one account at a time, where that is allowed.
    async fn searched(&self, payee: &Payee, whose: Whose) -> Result<Vec<Coin>, ReadError> {
        if !self.access.scans {
            let why = "the node shows outputs of watched accounts only, and there is no index";
            return Err(ReadError::Unavailable(why.into()));
        }
        let late = || ReadError::Unavailable("other accounts are searched for".into());
        let end = Instant::now() + self.patience();
        let turn = timeout(self.patience(), self.scans.lock()).await;
        let _turn = turn.map_err(|_| late())?;
        loop {
            let script = payee.script.clone();
            if let Some(coins) = self
                .ask(move |client| unspent(client, script, whose))
                .await?
            {
                return Ok(coins);
            }
            if Instant::now() >= end {
                return Err(late());
            }
            sleep(PAUSE).await;
        }
    }

    async fn paying(
        &self,
        scripts: &Arc<[ScriptBuf]>,
        txids: &[Txid],
    ) -> Result<Paying, ReadError> {
        let (scripts, txids) = (scripts.clone(), txids.to_vec());
        self.ask(move |client| paying(client, &scripts, &txids))
            .await
    }

    /// Looks at those of a batch that pay; false once a look has read enough.
    async fn take(
        &self,
        batch: &[Txid],
        paying: &Paying,
        (seen, budget): (&mut Seen, &mut Budget),
    ) -> Result<bool, ReadError> {
        for txid in batch {
            // What has left the pool meanwhile is not looked at.
            let Some(pays) = paying.inputs.get(txid) else {
                continue;
            };
            let looked: Option<Looked> = match pays {
                None => Some(None),
                // Nobody attributes it before it is in a block: what it spends may be large, and others wait.
                Some(count) if *count > MOST_INPUTS => Some(None),
                Some(count) if !budget.has(*count) => return Ok(false),
                Some(_) => self.shown(*txid).await?,
            };
            seen.extend(looked.map(|looked| (*txid, looked)));
        }
        Ok(true)
    }

    /// A waiting transaction; `None` where it has left the pool, or contradicts itself: it is looked at again.
    async fn shown(&self, txid: Txid) -> Result<Option<Looked>, ReadError> {
        match self.ask(move |client| shown(client, &txid)).await {
            Ok(waits) => Ok(waits.map(|waits| Some(Arc::new(waits)))),
            Err(ReadError::TooLarge) => Ok(Some(None)),
            Err(ReadError::Doubtful(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What a look at the memory pool may still read.
struct Budget {
    end: Instant,
    inputs: usize,
}

impl Budget {
    /// Whether there is so much; it is taken.
    fn has(&mut self, inputs: usize) -> bool {
        let left = self.inputs.checked_sub(inputs);
        self.inputs = left.unwrap_or(self.inputs);
        left.is_some() && Instant::now() < self.end
    }
}

/// What `scantxoutset` finds.
#[derive(Deserialize)]
struct Scanned {
    success: bool,
    height: u64,
    unspents: Vec<Output>,
}

#[derive(Deserialize)]
struct Output {
    txid: Txid,
    vout: u32,
    #[serde(rename = "scriptPubKey")]
    script: ScriptBuf,
    #[serde(deserialize_with = "bitcoins")]
    amount: bitcoin::Amount,
    height: u64,
    /// Unset by nodes before version 25.
    #[serde(default)]
    coinbase: bool,
}

/// `None` while the node searches for somebody else: whoever else asks it, too. `TooLarge` where others have more outputs
/// than [`MOST_COINS`].
fn unspent(client: &Client, script: ScriptBuf, whose: Whose) -> Result<Option<Vec<Coin>>, Fault> {
    let wanted = json!([format!("raw({})", script.to_hex_string())]);
    let scanned: Scanned = match client.call("scantxoutset", &[json!("start"), wanted]) {
        Err(bitcoincore_rpc::Error::JsonRpc(jsonrpc::Error::Rpc(error)))
            if error.code == INVALID && error.message.contains("in progress") =>
        {
            return Ok(None);
        }
        answer => answer?,
    };
    if !scanned.success || scanned.unspents.iter().any(|it| it.script != script) {
        return Err(Fault::Doubtful("not the outputs of the account"));
    }
    let ripe = |it: &Output| {
        !it.coinbase || it.height.saturating_add(MATURITY) <= scanned.height.saturating_add(1)
    };
    let found = scanned.unspents.iter().filter(|it| ripe(it));
    let coins = found.map(|it| Coin {
        outpoint: OutPoint::new(it.txid, it.vout),
        value: it.amount.to_sat(),
        height: it.height,
    });
    let mut coins: Vec<Coin> = coins.collect();
    if whose == Whose::Others && coins.len() > MOST_COINS {
        return Err(ReadError::TooLarge.into());
    }
    coins.sort_by_key(|coin| Reverse(coin.value));
    coins.truncate(MOST_COINS);
    let used = used(client, &coins)?;
    coins.retain(|coin| !used.contains(&coin.outpoint));
    Ok(Some(coins))
}

/// The coins that waiting transactions spend; none where the node cannot tell.
fn used(client: &Client, coins: &[Coin]) -> Result<HashSet<OutPoint>, Fault> {
    #[derive(Deserialize)]
    struct Used {
        txid: Txid,
        vout: u32,
        spendingtxid: Option<Txid>,
    }
    if coins.is_empty() {
        return Ok(HashSet::new());
    }
    let asked = coins.iter().map(|coin| {
        let OutPoint { txid, vout } = coin.outpoint;
        json!({"txid": txid, "vout": vout})
    });
    let asked = Value::Array(asked.collect());
    let used: Vec<Used> = match client.call("gettxspendingprevout", &[asked]) {
        Err(bitcoincore_rpc::Error::JsonRpc(jsonrpc::Error::Rpc(error)))
            if error.code == NO_METHOD =>
        {
            Vec::new()
        }
        answer => answer?,
    };
    let used = used.into_iter().filter(|it| it.spendingtxid.is_some());
    Ok(used.map(|it| OutPoint::new(it.txid, it.vout)).collect())
}

/// Those that were not looked at, first what others have shown. What waits no more is forgotten.
fn new(all: Vec<Txid>, known: &[Txid], seen: &mut Seen) -> Vec<Txid> {
    let here: HashSet<Txid> = all.iter().copied().collect();
    seen.retain(|txid, _| here.contains(txid));
    let known: HashSet<&Txid> = known.iter().collect();
    let (first, rest): (Vec<Txid>, _) = all.into_iter().partition(|txid| known.contains(txid));
    let new = first.into_iter().chain(rest);
    let new = new.filter(|txid| !seen.contains_key(txid));
    new.take(MOST_NEW).collect()
}

/// What transactions pay.
struct Paying {
    /// How many inputs each has, `None` for those that pay none of the scripts; without those that the node no longer
    /// knows.
    inputs: HashMap<Txid, Option<usize>>,
    /// Hex digits of all.
    digits: usize,
}

fn paying(client: &Client, scripts: &[ScriptBuf], txids: &[Txid]) -> Result<Paying, Fault> {
    let params: Vec<_> = txids.iter().map(|txid| json!([txid, false])).collect();
    let answers: Vec<Option<String>> = known_together(client, "getrawtransaction", &params)?;
    let digits: usize = answers.iter().flatten().map(String::len).sum();
    let found = txids.iter().zip(answers);
    let found = found.filter_map(|(txid, text)| Some((txid, text?)));
    let inputs = found.map(|(txid, text)| {
        let transaction = decoded(&text)?;
        if transaction.compute_txid() != *txid {
            return Err(Fault::Doubtful("another transaction"));
        }
        let mut outputs = transaction.output.iter();
        let pays = outputs.any(|output| scripts.contains(&output.script_pubkey));
        Ok((*txid, pays.then_some(transaction.input.len())))
    });
    Ok(Paying {
        inputs: inputs.collect::<Result<_, _>>()?,
        digits,
    })
}

fn shown(client: &Client, txid: &Txid) -> Result<Option<Waits>, Fault> {
    let asked = client.call::<RawTransaction>("getrawtransaction", &[json!(txid), json!(2)]);
    let Some(transaction) = known(asked)? else {
        return Ok(None);
    };
    if transaction.txid != *txid {
        return Err(Fault::Doubtful("another transaction"));
    }
    if transaction.blockhash.is_some() {
        return Ok(None);
    }
    let spent = spent(client, &transaction)?;
    Ok(Some(Waits { transaction, spent }))
}

#[cfg(test)]
mod tests;
