//! Requests by what they are asked for: which rows a query looks at, and the page that it gets.
//!
//! A query that names requests (ids, transactions, accounts) looks at those; every other walks the
//! order that it asks for. Either looks at a bounded number of summaries: a page may be short, or
//! empty, and still say where to go on. It goes on behind the last request that was looked at, by
//! position and not by count, so that what arrives meanwhile moves nothing: whoever pages to the end
//! gets every request that was there when the first page was asked for, once. Requests that change
//! meanwhile move in the order of the last change, and only there.

mod records;
mod walk;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

pub use self::records::Record;
use self::walk::{Walk, Way};
use super::{
    Range, Store, StoreError,
    requests::RequestsError,
    rows::{self, LISTED, listed, listed::Position, summary},
    summaries,
};
use crate::request::{
    filter::{Lookup, Query, Sort, matches},
    summary::Summary,
};

/// Summaries that a page looks at, at most.
const LOOKED: usize = 2_000;
/// Summaries that are looked at to tell how many are meant.
const COUNTED: usize = 10_000;
/// Requests that a name may lead to for all of them to be looked at in any order.
const FEW: usize = 1_000;
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
        let most = LOOKED.min(COMPARED / query.values().max(1)).max(1);
        'pages: while looked < most {
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
        let most = COUNTED.min(COMPARED / query.values().max(1));
        while looked <= most {
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
        let ordered = Way::Rows(seen(query, listed::ordered(query.sort)));
        let Some(lookups) = query.lookups() else {
            return Ok(ordered);
        };
        let (mut few, mut streams) = (BTreeMap::new(), Vec::new());
        let mut points = false;
        for lookup in lookups {
            let name = match lookup {
                Lookup::Name(name) => name,
                Lookup::Id(id) => {
                    points = true;
                    self.point(query, &id, &mut few).await?;
                    continue;
                }
                Lookup::Order(order) => {
                    points = true;
                    if let Some(row) = self.store.read(&rows::order::key(&order)).await? {
                        let id = rows::order::decode(&row)?;
                        self.point(query, &id, &mut few).await?;
                    }
                    continue;
                }
            };
            streams.extend(seen(query, listed::named(&name)));
        }
        for stream in &streams {
            // One more than there may be.
            let left = FEW.saturating_sub(few.len()) + 1;
            for (key, bytes) in self.store.scan(range(stream, left)).await? {
                match query.sort {
                    Sort::Created => few.extend(listed::placed(&key.name).map(|at| (at, bytes))),
                    sort => {
                        let at = listed::position(sort, &summary::decode(&bytes)?);
                        few.insert(at, bytes);
                    }
                }
            }
            if few.len() > FEW {
                let walked = query.sort == Sort::Created && !points && streams.len() <= 8;
                return Ok(if walked { Way::Rows(streams) } else { ordered });
            }
        }
        Ok(Way::Few(few))
    }

    async fn point(
        &self,
        query: &Query,
        id: &alloy::primitives::B256,
        few: &mut BTreeMap<Position, Vec<u8>>,
    ) -> Result<(), ListingError> {
        if let Some(bytes) = self.store.read(&summary::key(id)).await? {
            let at = listed::position(query.sort, &summary::decode(&bytes)?);
            few.insert(at, bytes);
        }
        Ok(())
    }
}

/// The rows of requests that `query` can mean.
fn seen(query: &Query, [waiting, touched]: [Vec<u8>; 2]) -> Vec<Vec<u8>> {
    if query.touched() {
        return vec![touched];
    }
    // A request goes from the first to the second: whoever reads them in this order meets it.
    vec![waiting, touched]
}

fn range(prefix: &[u8], limit: usize) -> Range {
    Range {
        kind: LISTED,
        prefix: prefix.to_vec(),
        after: None,
        limit,
        reverse: false,
    }
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
