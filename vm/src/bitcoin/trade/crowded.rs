//! Accounts of our own with more outputs than an index lists: anybody can pay one many small outputs. The larger ones are
//! found in the account's transactions, page by page, and each is looked at before it is shown.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use bitcoin::{OutPoint, ScriptBuf, Txid};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Deserialize;

use super::{coin::Coin, scan_source::Payee};
use crate::{
    ReadError,
    bitcoin::{
        esplora::Esplora,
        raw::{IndexedSpend, IndexedStatus},
    },
};

/// Satoshis below which an output is left out.
pub const LEAST: u64 = 1_000;
/// Pages that one read asks for; a later one goes on.
const PAGES: usize = 8;
/// Outputs that are shown, the largest that can be spent.
const SHOWN: usize = 32;
/// Outputs that one read looks at for them, the largest.
const LOOKS: usize = 128;
/// Questions at once.
const AT_ONCE: usize = 16;
/// Outputs that are kept, the largest.
const KEPT: usize = 1_000;
/// Transactions that are known to be read; beyond, all are read anew.
const SEEN: usize = 100_000;

/// What was read of an account's transactions.
#[derive(Default)]
pub struct AccountHistory {
    /// Satoshis of outputs that may be unspent.
    coins: HashMap<OutPoint, u64>,
    /// Outputs of the account that it has spent.
    spent: HashSet<OutPoint>,
    /// Transactions that were read.
    seen: HashSet<Txid>,
    /// Transactions below which reading goes on: what is newer was read down to there. The last is next, and stays until
    /// the page below it is taken.
    open: Vec<Txid>,
}

#[derive(Deserialize)]
struct Paged {
    txid: Txid,
    vin: Vec<PagedInput>,
    vout: Vec<PagedOutput>,
}

#[derive(Deserialize)]
struct PagedInput {
    txid: Txid,
    vout: u32,
    /// Absent in a coinbase.
    prevout: Option<PagedOutput>,
    is_coinbase: bool,
}

#[derive(Deserialize)]
struct PagedOutput {
    #[serde(rename = "scriptpubkey")]
    script: ScriptBuf,
    /// Satoshis.
    value: u64,
}

impl AccountHistory {
    /// Takes a page; whether all of it is new.
    fn take(&mut self, script: &ScriptBuf, page: &[Paged]) -> bool {
        let mut new = 0;
        for one in page {
            if !self.seen.insert(one.txid) {
                continue;
            }
            new += 1;
            let own = |output: &PagedOutput| output.script == *script;
            for input in &one.vin {
                if input.prevout.as_ref().is_some_and(own) {
                    let output = OutPoint::new(input.txid, input.vout);
                    self.coins.remove(&output);
                    self.spent.insert(output);
                }
            }
            // A coinbase's outputs cannot be spent for long.
            if one.vin.iter().any(|input| input.is_coinbase) {
                continue;
            }
            for (vout, output) in (0..).zip(&one.vout) {
                let at = OutPoint::new(one.txid, vout);
                if own(output) && output.value >= LEAST && !self.spent.contains(&at) {
                    self.coins.insert(at, output.value);
                }
            }
        }
        new == page.len()
    }

    /// Takes the page below `below`, which is the last of `open`, or else the newest. Where reading goes on is known at
    /// once: a read may end at any question.
    fn advance(&mut self, script: &ScriptBuf, below: Option<Txid>, page: &[Paged]) {
        if below.is_some() {
            self.open.pop();
        }
        let goes_on = self.take(script, page);
        let next = page.last().filter(|_| goes_on).map(|last| last.txid);
        self.open.extend(next);
    }

    fn bound(&mut self) {
        if self.seen.len() > SEEN {
            self.seen.clear();
            self.spent.clear();
            self.open.clear();
        }
        if self.coins.len() > KEPT {
            let largest = self.largest(KEPT);
            self.coins = largest.into_iter().collect();
        }
    }

    fn largest(&self, most: usize) -> Vec<(OutPoint, u64)> {
        let all = self.coins.iter().map(|(at, value)| (*at, *value));
        let mut all: Vec<_> = all.collect();
        all.sort_unstable_by_key(|(at, value)| (Reverse(*value), *at));
        all.truncate(most);
        all
    }
}

impl Esplora {
    /// The larger unspent outputs of an account: all that are among the newest transactions, and with every call more of
    /// the older ones.
    pub(super) async fn crowded(&self, payee: &Payee) -> Result<Vec<Coin>, ReadError> {
        let mut histories = self.histories.lock().await;
        let history = histories.entry(payee.address.clone()).or_default();
        let walked = self.walk(payee, history).await;
        // What is known is shown though the rest cannot be read: each of them is looked at.
        if history.coins.is_empty() {
            walked?;
        }
        history.bound();
        self.largest_there(history).await
    }

    /// The largest that can be spent. Those that a waiting transaction spends take no place of others.
    async fn largest_there(&self, history: &mut AccountHistory) -> Result<Vec<Coin>, ReadError> {
        let mut coins = Vec::new();
        let largest = history.largest(LOOKS);
        for some in largest.chunks(SHOWN) {
            let each = stream::iter(some.to_vec()).map(|(at, value)| self.unspent_at(at, value));
            let looked: Vec<_> = each.buffered(AT_ONCE).try_collect().await?;
            for (at, one) in looked {
                match one {
                    At::There(coin) => coins.push(coin),
                    At::Spent => {
                        history.coins.remove(&at);
                    }
                    At::Waits => {}
                }
            }
            if coins.len() >= SHOWN {
                break;
            }
        }
        coins.truncate(SHOWN);
        Ok(coins)
    }

    /// Reads the newest pages down to what is known, then older ones that were left open. It may be cut off at any page:
    /// the next one goes on there.
    async fn walk(&self, payee: &Payee, history: &mut AccountHistory) -> Result<(), ReadError> {
        let mut below: Option<Txid> = None;
        for _ in 0..PAGES {
            match self.page(payee, below).await {
                Ok(Some(page)) => history.advance(&payee.script, below, &page),
                // The index does not know where it was: a reorg.
                Ok(None) => {
                    *history = AccountHistory {
                        coins: std::mem::take(&mut history.coins),
                        ..AccountHistory::default()
                    };
                    return Ok(());
                }
                // It would be too large with every read, and others would wait for it.
                Err(ReadError::TooLarge) if below.is_some() => {
                    let (provider, address) = (self.provider(), &payee.address);
                    tracing::warn!(provider, %address, ?below, "a page of transactions is too large: it is left out, with what lies between it and the next place where reading goes on");
                    history.open.pop();
                }
                Err(error) => return Err(error),
            }
            below = history.open.last().copied();
            if below.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// A page of the account's transactions in blocks, the newest first; `None` where the index does not know `below`.
    async fn page(
        &self,
        payee: &Payee,
        below: Option<Txid>,
    ) -> Result<Option<Vec<Paged>>, ReadError> {
        let address = &payee.address;
        let path = match below {
            None => format!("address/{address}/txs/chain"),
            Some(txid) => format!("address/{address}/txs/chain/{txid}"),
        };
        Ok(self.unless_refused(&path).await?.unwrap_or_default())
    }

    async fn unspent_at(&self, at: OutPoint, value: u64) -> Result<(OutPoint, At), ReadError> {
        let OutPoint { txid, vout } = at;
        let (status, spend) = (
            format!("tx/{txid}/status"),
            format!("tx/{txid}/outspend/{vout}"),
        );
        let (status, spend) = futures::try_join!(
            self.json::<IndexedStatus>(&status),
            self.json::<IndexedSpend>(&spend)
        )?;
        let height = status.and_then(|status| status.height());
        let mined = |spend: &IndexedSpend| {
            let block = spend.status.as_ref().and_then(IndexedStatus::block);
            spend.spent && block.is_some()
        };
        let found = match (height, spend) {
            (_, Some(spend)) if mined(&spend) => At::Spent,
            (Some(height), Some(spend)) if !spend.spent => At::There(Coin {
                outpoint: at,
                value,
                height,
            }),
            _ => At::Waits,
        };
        Ok((at, found))
    }
}

/// How an output is.
enum At {
    There(Coin),
    /// In a block.
    Spent,
    /// It, or what spends it, is in no block.
    Waits,
}

#[cfg(test)]
mod tests;
