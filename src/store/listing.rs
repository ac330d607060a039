//! The listing of requests: which rows a query reads, and the page that it gets.
//!
//! The listing has the requests with facts. A quote that nobody acted on is found by its own id or its order's, and
//! by the status `waiting`. A query that names requests (ids, transactions, accounts) reads those; every other query
//! walks its order. Either reads a bounded number of summaries, so a page may be short or empty and still have a
//! continuation. The next page starts after the last request that was read, by position and not by count, so new
//! requests do not shift it: a client that reads all pages gets every request that existed at the first page, once.
//! Only the order of the last change moves requests meanwhile.

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
    Key, Range, Store, StoreError, by_way_of,
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

/// The most summaries that a page reads.
const LOOKED: usize = 2_000;
/// The most summaries that a count reads.
const COUNTED: usize = 10_000;
/// The most requests that a query reads one by one.
const FEW: usize = 1_000;
/// A quote that nobody acted on costs as much as this many summaries, because its summary is made of the whole quote.
const DEARER: usize = 4;
/// The most comparisons of a page: a query of many values reads fewer summaries.
const COMPARED: usize = 512_000;
/// The version of continuations.
const VERSION: u8 = 1;

/// Why there is no page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListingError {
    #[error(transparent)]
    Requests(#[from] RequestsError),
    /// The requests of an older version have no summaries yet.
    #[error("the listing is not complete yet")]
    Incomplete,
    /// The continuation belongs to another query.
    #[error("not a continuation of this query")]
    Foreign,
}

by_way_of!(ListingError, RequestsError: StoreError, rows::RowError);

/// The part of a query's answer that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    pub limit: usize,
    pub continuation: Option<&'a str>,
    pub total: bool,
}

/// A part of a query's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// In the order of the query.
    pub found: Vec<Summary>,
    /// Where the next page starts; `None` at the end.
    pub continuation: Option<String>,
    /// The number of matching requests; `None` unless asked for, and when a count would read too many.
    pub total: Option<u64>,
}

/// Answers queries for requests by pages.
#[derive(Clone)]
pub struct Listing {
    store: Arc<dyn Store>,
    complete: Arc<AtomicBool>,
}

impl Listing {
    /// The listing of `store`, whose summaries may be incomplete: see [`Listing::complete`].
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

    /// Writes the summaries that an older version did not; returns at once where there are all.
    pub async fn complete(&self) -> Result<(), RequestsError> {
        if self.complete.load(Ordering::Acquire) {
            return Ok(());
        }
        let made = summaries::complete(&*self.store).await?;
        tracing::info!(made, "the daemon completed the listing");
        self.complete.store(true, Ordering::Release);
        Ok(())
    }

    /// A page of the requests that match `query`.
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

    /// The sources in which to look for the matching requests.
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

    /// Adds the requests of the transaction `name`; `false` where there are too many.
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
                // The summary may not contain this transaction.
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
        // A quote becomes a request, so reading in this order finds one of the two.
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

/// The number of summaries that cost as much as one of `way`.
fn dearness(way: &Way) -> usize {
    if way.quotes { DEARER } else { 1 }
}

fn range(prefix: &[u8], limit: usize) -> Range {
    Range::new(LISTED, prefix, None, limit)
}

/// Layout: version, the query's fingerprint (8 bytes), the position of the last request that was read.
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
