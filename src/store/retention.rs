//! Deletes what is due: old quotes that nobody acted on, settled transactions, old prices, and requests with nothing
//! but dust. It works through the rows a page at a time, with pauses, so that nothing else waits for it.
//!
//! The file of each row kind says how long its rows live. Webhooks' pruning deletes events and dead deliveries, and
//! the watcher deletes the blocks of statements.

mod dust;

use std::{sync::Arc, time::Duration};

use alloy::primitives::B256;
use tokio_util::sync::CancellationToken;

use super::{
    Batch, Key, Range, Store,
    requests::{Requests, RequestsError},
    rows::{self, RowError, candle, large, order, parked, quote, transaction},
};
use crate::request::Request;

/// Milliseconds for which a transaction is kept after its submission.
pub const KNOWN: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Rows per step, and the most that its commit deletes.
const PAGE: usize = 512;
/// Parked deposits per step; each of their requests has a commit of its own.
const FEW: usize = 64;
/// The pause between two steps.
const PAUSE: Duration = Duration::from_millis(250);
/// The pause after all rows, before the next run.
const REST: Duration = Duration::from_secs(10 * 60);

/// The result of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub quotes: u64,
    pub transactions: u64,
    /// Pages of candles.
    pub candles: u64,
    /// Requests with nothing but dust.
    pub dust: u64,
    /// Whether the step reached the end of all rows.
    pub ended: bool,
}

/// The kind of rows that the sweep works on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Quotes,
    Transactions,
    Candles,
    Dust,
}

/// The rows that are deleted with a quote's row.
pub(super) fn quote_rows(request: &Request, row: &[u8]) -> Vec<Key> {
    let mut keys = vec![order::key(&request.order_id)];
    keys.extend(quote::is_large(row).then(|| large::key(&request.id)));
    keys
}

/// Sweeps all rows, again and again.
#[derive(Default)]
pub struct Sweep {
    stage: Stage,
    /// The last row of the previous step.
    after: Option<Vec<u8>>,
    /// Tells which large quotes are due.
    requests: Option<Requests>,
}

impl Sweep {
    /// Sweeps the store of `requests`.
    pub fn of(requests: &Requests) -> Self {
        Self {
            requests: Some(requests.clone()),
            ..Self::default()
        }
    }

    /// Works on the next rows. `now` in unix milliseconds.
    pub async fn step(&mut self, store: &dyn Store, now: u64) -> Result<Swept, RequestsError> {
        if self.stage == Stage::Dust {
            return self.dust(store, now).await;
        }
        let page = store.scan(self.range()).await?;
        let (mut batch, mut some, more) = (Batch::new(), 0, page.len() == PAGE);
        self.after = page.last().map(|(key, _)| key.name.clone());
        for (key, bytes) in page {
            if let Some(gone) = self.gone(&key, &bytes, now)?
                && !self.is_open(store, &key, now).await?
            {
                // The row may change at this moment.
                batch = batch.remove(key, bytes);
                batch = gone.into_iter().fold(batch, Batch::delete);
                some += 1;
            }
        }
        let refused = some > 0 && !store.commit(batch).await?.is_applied();
        let mut swept = Swept::default();
        match self.stage {
            _ if refused => {}
            Stage::Quotes => swept.quotes = some,
            Stage::Transactions => swept.transactions = some,
            Stage::Candles => swept.candles = some,
            Stage::Dust => {}
        }
        if !more {
            self.after = None;
            self.stage = match self.stage {
                Stage::Quotes => Stage::Transactions,
                Stage::Transactions => Stage::Candles,
                Stage::Candles => Stage::Dust,
                Stage::Dust => Stage::Quotes,
            };
        }
        Ok(swept)
    }

    async fn dust(&mut self, store: &dyn Store, now: u64) -> Result<Swept, RequestsError> {
        let page = store.scan(self.range()).await?;
        let mut swept = Swept {
            ended: page.len() < FEW,
            ..Swept::default()
        };
        self.after = page.last().map(|(key, _)| key.name.clone());
        if swept.ended {
            (self.after, self.stage) = (None, Stage::Quotes);
        }
        let mut wanted = dust::Wanted::default();
        for id in dust::candidates(&page, now)? {
            swept.dust += u64::from(dust::forget(store, &id, now, &mut wanted).await?);
        }
        Ok(swept)
    }

    fn range(&self) -> Range {
        match self.stage {
            Stage::Quotes => quote::range(self.after.clone(), PAGE),
            Stage::Transactions => transaction::settled_range(self.after.clone(), PAGE),
            Stage::Candles => candle::range(self.after.clone(), PAGE),
            Stage::Dust => parked::range(self.after.clone(), FEW),
        }
    }

    /// Whether no deposit can need a large quote any more.
    fn is_over(&self, key: &Key) -> bool {
        let Ok(id) = B256::try_from(key.name.as_slice()) else {
            return false;
        };
        let requests = self.requests.iter();
        let mut ledgers = requests.map(Requests::large);
        ledgers.any(|ledger| ledger.is_over(&id, quote::GRACE))
    }

    /// The rows to delete with this one; `None` if the row stays.
    fn gone(&self, key: &Key, bytes: &[u8], now: u64) -> Result<Option<Vec<Key>>, RowError> {
        match self.stage {
            Stage::Quotes => {
                let (until, row) = quote::split(bytes)?;
                if until > now / 1_000 && !self.is_over(key) {
                    return Ok(None);
                }
                let request = rows::request::decode(row)?;
                Ok(Some(quote_rows(&request, bytes)))
            }
            Stage::Transactions => {
                let first = transaction::row(key, bytes)?.tracked.first;
                Ok((first.saturating_add(KNOWN) <= now).then(Vec::new))
            }
            Stage::Candles => Ok(candle::is_over(key, now / 1_000)?.then(Vec::new)),
            Stage::Dust => Ok(None),
        }
    }

    /// Whether this is the last page of a currency's prices, which the next page must sum up.
    async fn is_open(&self, store: &dyn Store, key: &Key, now: u64) -> Result<bool, RequestsError> {
        if self.stage != Stage::Candles || candle::is_long_over(key, now / 1_000)? {
            return Ok(false);
        }
        Ok(store.scan(candle::behind(key)).await?.is_empty())
    }

    /// Sweeps until `shutdown`. `clock` gives unix milliseconds.
    pub async fn run(
        mut self,
        store: Arc<dyn Store>,
        clock: fn() -> u64,
        shutdown: CancellationToken,
    ) {
        loop {
            let wait = match self.step(&*store, clock()).await {
                Ok(swept) => {
                    metrics::counter!("intentd_store_quotes_forgotten_total")
                        .increment(swept.quotes);
                    metrics::counter!("intentd_store_requests_forgotten_total")
                        .increment(swept.dust);
                    if swept.ended { REST } else { PAUSE }
                }
                Err(error) => {
                    tracing::warn!(%error, "the sweep cannot delete old rows");
                    REST
                }
            };
            let waited = shutdown.run_until_cancelled(tokio::time::sleep(wait)).await;
            if waited.is_none() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
