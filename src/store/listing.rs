//! Requests by what they are asked for: which rows a query looks at, and the page that it gets.
//!
//! Listed is what something has been seen of. A quote that nobody acted on is found by its own id or its
//! order's, and by the status `waiting`. A query that names requests (ids, transactions, accounts) looks at
//! those; every other walks the order that it asks for. Either looks at a bounded number of summaries: a page may be short, or
//! empty, and still say where to go on. It goes on behind the last request that was looked at, by
//! position and not by count, so that what arrives meanwhile moves nothing: whoever pages to the end
//! gets every request that was there when the first page was asked for, once. Requests that change
//! meanwhile move in the order of the last change, and only there.

mod records;
mod walk;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use alloy::primitives::B256;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

pub use self::records::Record;
use self::walk::{Walk, Way};
use super::{
    Key, Range, Store, StoreError,
    requests::RequestsError,
    rows::{
        self, LISTED,
        listed::{self, Listed, Position},
        summary,
    },
    summaries,
};
use crate::request::{
    fact::Facts,
    filter::{Lookup, Query, matches},
    name::Name,
    summary::Summary,
};

/// Summaries that a page looks at, at most.
const LOOKED: usize = 2_000;
/// Summaries that are looked at to tell how many are meant.
const COUNTED: usize = 10_000;
/// Requests that are looked at one by one where what is asked for leads to them.
const FEW: usize = 1_000;
/// Quotes that nobody acted on are looked at as so many summaries: they are made of the whole quote.
const DEARER: usize = 4;
/// Values that a page compares summaries with, at most: a query of many values looks at fewer.
const COMPARED: usize = 512_000;
/// Continuations of this layout.
const VERSION: u8 = 1;

/// Why there is no page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListingError {
    #[error(transparent)]
    Requests(#[from] RequestsError),
    /// Requests of an older version are still being read.
    #[error("the listing is being made")]
    Incomplete,
    /// No continuation of this query.
    #[error("not a continuation of this query")]
    Foreign,
}

impl From<StoreError> for ListingError {
    fn from(error: StoreError) -> Self {
        Self::Requests(error.into())
    }
}

impl From<rows::RowError> for ListingError {
    fn from(error: rows::RowError) -> Self {
        Self::Requests(error.into())
    }
}

/// How much of a query's answer is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    pub limit: usize,
    pub continuation: Option<&'a str>,
    pub total: bool,
}

/// Part of a query's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// In the order asked for.
    pub found: Vec<Summary>,
    /// Where to go on; `None` when there is nothing more.
    pub continuation: Option<String>,
    /// How many requests the query means; `None` unless asked for, and when too many would have to be
    /// looked at.
    pub total: Option<u64>,
}

/// See the module.
#[derive(Clone)]
pub struct Listing {
    store: Arc<dyn Store>,
    complete: Arc<AtomicBool>,
}

impl Listing {
    /// Over `store`, whose summaries may not be there yet: see [`Listing::complete`].
    pub async fn open(store: Arc<dyn Store>) -> Result<Self, RequestsError> {
        let mut complete = summaries::are_complete(&*store).await?;
        if !complete && summaries::none(&*store).await? {
            summaries::complete(&*store).await?;
            complete = true;
        }
        Ok(Self {
            store,
            complete: Arc::new(complete.into()),
        })
    }

    /// Makes what an older version did not write; at once where there is nothing to do.
    pub async fn complete(&self) -> Result<(), RequestsError> {
        if self.complete.load(Ordering::Acquire) {
            return Ok(());
        }
        let made = summaries::complete(&*self.store).await?;
        tracing::info!(made, "the listing is complete");
        self.complete.store(true, Ordering::Release);
        Ok(())
    }

    /// The requests that `query` means, a page of them.
    pub async fn page(&self, query: &Query, cut: Cut<'_>) -> Result<Page, ListingError> {
        if !self.complete.load(Ordering::Acquire) {
            return Err(ListingError::Incomplete);
        }
        let after = cut.continuation.map(|text| position(query, text));
        let after = after.transpose()?;
        let way = self.way(query).await?;
        let mut walk = Walk::new(self.store.clone(), query, after);
        let (mut found, mut next) = (Vec::new(), None);
        let mut looked = 0;
        let most = LOOKED.min(COMPARED / query.values().max(1)) / dearness(&way);
        let most = most.max(1);
        'pages: while looked < most && !walk.is_spent() {
            let step = (cut.limit.max(32), most - looked);
            let rows = walk.rows(&way, step).await?;
            tokio::task::yield_now().await;
            if rows.is_empty() {
                next = None;
                break;
            }
            for (position, bytes) in rows {
                looked += 1;
                let summary = summary::decode(&bytes)?;
                if matches(query, &summary) {
                    if found.len() == cut.limit {
                        break 'pages;
                    }
                    found.push(summary);
                }
                next = Some(position);
            }
        }
        let total = if cut.total {
            self.total(query, &way).await?
        } else {
            None
        };
        Ok(Page {
            found,
            continuation: next.map(|position| token(query, &position)),
            total,
        })
    }

    async fn total(&self, query: &Query, way: &Way) -> Result<Option<u64>, ListingError> {
        let mut walk = Walk::new(self.store.clone(), query, None);
        let (mut looked, mut total) = (0, 0);
        let most = COUNTED.min(COMPARED / query.values().max(1)) / dearness(way);
        while looked <= most && !walk.is_spent() {
            let rows = walk.rows(way, (FEW, FEW)).await?;
            tokio::task::yield_now().await;
            if rows.is_empty() {
                return Ok(Some(total));
            }
            for (_, bytes) in &rows {
                total += u64::from(matches(query, &summary::decode(bytes)?));
            }
            looked += rows.len();
        }
        Ok(None)
    }

    /// Where the requests that `query` means are looked for.
    async fn way(&self, query: &Query) -> Result<Way, ListingError> {
        let quotes = query.waits();
        let ordered = || Way {
            quotes,
            ..Way::along(vec![listed::ordered(query.sort)])
        };
        let Some(lookups) = query.lookups() else {
            return Ok(ordered());
        };
        let (mut way, mut names) = (Way::default(), Vec::new());
        for lookup in lookups {
            match lookup {
                Lookup::Name(name) => names.push(name),
                Lookup::Id(id) => self.point(query, &id, &mut way).await?,
                Lookup::Order(order) => {
                    if let Some(row) = self.store.read(&rows::order::key(&order)).await? {
                        let id = rows::order::decode(&row)?;
                        self.point(query, &id, &mut way).await?;
                    }
                }
            }
        }
        for name in &names {
            if !self.sent(query, name, &mut way).await? {
                return Ok(ordered());
            }
            way.rows.push(listed::named(query.sort, name));
        }
        // No name leads to a quote.
        way.quotes = quotes && !names.is_empty();
        Ok(way)
    }

    /// Adds the requests of the transaction `name`; `false` where they are too many.
    async fn sent(&self, query: &Query, name: &Name, way: &mut Way) -> Result<bool, ListingError> {
        let left = FEW.saturating_sub(way.few.len()) + 1;
        let found = self.store.scan(range(&listed::sent(name), left)).await?;
        if found.len() >= left {
            return Ok(false);
        }
        for ((key, value), summary) in found.iter().zip(self.led(&found).await?) {
            let Listed::Transaction(roles) = listed::decode(key, value)? else {
                continue;
            };
            if let Some(mut summary) = summary {
                // Its summary may not tell of this one.
                summary.with(&roles, name);
                way.point(query.sort, &summary)?;
            }
        }
        Ok(true)
    }

    /// The summaries that rows lead to.
    async fn led(&self, rows: &[(Key, Vec<u8>)]) -> Result<Vec<Option<Summary>>, ListingError> {
        let ids = rows.iter().map(|(key, _)| listed::placed(&key.name));
        let ids = ids.map(|at| B256::from_slice(&at.unwrap_or([0; 40])[8..]));
        let keys: Vec<_> = ids.map(|id| summary::key(&id)).collect();
        let found = self.store.read_all(&keys).await?.into_iter();
        let found = found.map(|bytes| bytes.map(|bytes| summary::decode(&bytes)).transpose());
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// Adds one request, or a quote that nobody acted on.
    async fn point(&self, query: &Query, id: &B256, way: &mut Way) -> Result<(), ListingError> {
        let (quote, own) = (rows::quote::key(id), summary::key(id));
        // A quote becomes a request: whoever looks in this order meets one of them.
        let mut found = self.store.read_all(&[quote, own]).await?.into_iter();
        let (quote, own) = (found.next().flatten(), found.next().flatten());
        let summary = match (own, quote) {
            (Some(bytes), _) => summary::decode(&bytes)?,
            (None, Some(bytes)) => Summary::of(&rows::quote::decode(&bytes)?, &Facts::default()),
            (None, None) => return Ok(()),
        };
        Ok(way.point(query.sort, &summary)?)
    }
}

/// How many summaries cost as much as one of `way`.
fn dearness(way: &Way) -> usize {
    if way.quotes { DEARER } else { 1 }
}

fn range(prefix: &[u8], limit: usize) -> Range {
    Range::new(LISTED, prefix, None, limit)
}

/// Layout: version, the query's fingerprint (8 bytes), the position of the last request looked at.
fn token(query: &Query, position: &Position) -> String {
    let bytes = [&[VERSION], query.fingerprint().as_slice(), position].concat();
    URL_SAFE_NO_PAD.encode(bytes)
}

fn position(query: &Query, text: &str) -> Result<Position, ListingError> {
    let bytes = URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
    let own = [&[VERSION], query.fingerprint().as_slice()].concat();
    let position = bytes.strip_prefix(own.as_slice());
    let position = position.and_then(|position| position.try_into().ok());
    position.ok_or(ListingError::Foreign)
}

#[cfg(test)]
mod tests;
