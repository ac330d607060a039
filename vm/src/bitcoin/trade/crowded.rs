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
/// Outputs that are looked at, and shown, the largest.
const SHOWN: usize = 32;
/// Questions at once.
const AT_ONCE: usize = 16;
/// Outputs that are kept, the largest.
const KEPT: usize = 1_000;
/// Transactions that are known to be read; beyond, all are read anew.
const SEEN: usize = 100_000;

/// What is known of an account.
#[derive(Default)]
pub struct Crowd {
    /// Satoshis of outputs that may be unspent.
    coins: HashMap<OutPoint, u64>,
    /// Outputs of the account that it has spent.
    spent: HashSet<OutPoint>,
    /// Transactions that were read.
    seen: HashSet<Txid>,
    /// Transactions below which reading goes on: what is newer was read down to there.
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

impl Crowd {
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
        let mut crowds = self.crowds.lock().await;
        let crowd = crowds.entry(payee.address.clone()).or_default();
        self.walk(payee, crowd).await?;
        crowd.bound();
        let each = stream::iter(crowd.largest(SHOWN)).map(|(at, value)| self.unspent_at(at, value));
        let looked: Vec<_> = each.buffered(AT_ONCE).try_collect().await?;
        for (at, one) in &looked {
            if *one == At::Spent {
                crowd.coins.remove(at);
            }
        }
        let coins = looked.into_iter().filter_map(|(_, one)| match one {
            At::There(coin) => Some(coin),
            At::Spent | At::Waits => None,
        });
        Ok(coins.collect())
    }

    /// Reads the newest pages down to what is known, then older ones that were left open.
    async fn walk(&self, payee: &Payee, crowd: &mut Crowd) -> Result<(), ReadError> {
        let mut below: Option<Txid> = None;
        for _ in 0..PAGES {
            let page = match self.page(payee, below).await {
                Ok(Some(page)) => page,
                // The index does not know where it was: a reorg.
                Ok(None) => {
                    *crowd = Crowd {
                        coins: std::mem::take(&mut crowd.coins),
                        ..Crowd::default()
                    };
                    return Ok(());
                }
                Err(error) => {
                    crowd.open.extend(below);
                    return Err(error);
                }
            };
            let goes_on = crowd.take(&payee.script, &page);
            let next = page.last().filter(|_| goes_on).map(|last| last.txid);
            below = match next.or_else(|| crowd.open.pop()) {
                Some(next) => Some(next),
                None => return Ok(()),
            };
        }
        crowd.open.extend(below);
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
#[derive(PartialEq, Eq)]
enum At {
    There(Coin),
    /// In a block.
    Spent,
    /// It, or what spends it, is in no block.
    Waits,
}

#[cfg(test)]
mod tests;
