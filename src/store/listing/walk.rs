//! Walks the rows of several ranges as one sequence, in the order of their positions.

use std::{cmp::Ordering, collections::BTreeMap, ops::Bound, sync::Arc};

use alloy::primitives::B256;

use super::ListingError;
use crate::{
    request::{
        fact::Facts,
        filter::{Query, Sort, Span},
        summary::Summary,
        time_of,
    },
    store::{
        Key, Range, Store, StoreError,
        rows::{
            self, LISTED, QUOTE, RowError,
            listed::{self, Position},
        },
    },
};

/// The most rows per read of a range.
const MOST: usize = 1_000;
/// Quotes per read: one may have 1 MiB.
const QUOTES: usize = 16;
/// The most bytes of quotes that a walk reads, apart from the last read.
const QUOTE_BYTES: usize = 8 << 20;
/// The greatest time at the start of an id.
const LAST: u64 = (1 << 48) - 1;

/// The sources of a walk; the walk merges them in the order of positions.
#[derive(Default)]
pub struct Way {
    /// These summaries.
    pub few: BTreeMap<Position, Vec<u8>>,
    /// The rows whose names start with one of these.
    pub rows: Vec<Vec<u8>>,
    /// All quotes that nobody acted on, in the order of time.
    pub quotes: bool,
}

impl Way {
    /// A walk through the rows whose names start with one of `rows`.
    pub fn along(rows: Vec<Vec<u8>>) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }

    /// Adds `summary` to the walk.
    pub fn point(&mut self, sort: Sort, summary: &Summary) -> Result<(), RowError> {
        let at = listed::position(sort, summary);
        self.few.insert(at, rows::summary::encode(summary)?);
        Ok(())
    }
}

/// A walk from one end to the other, within the limits of the sort value.
pub struct Walk {
    store: Arc<dyn Store>,
    sort: Sort,
    descending: bool,
    span: Span,
    /// The last position that the walk returned.
    after: Option<Position>,
    ended: bool,
    /// The rows of the next read.
    step: usize,
    /// The bytes of quotes read so far.
    spent: usize,
}

type Found = Vec<(Position, Vec<u8>)>;

impl Walk {
    pub fn new(store: Arc<dyn Store>, query: &Query, after: Option<Position>) -> Self {
        Self {
            store,
            sort: query.sort,
            descending: query.descending,
            span: query.sort.span(&query.ranges),
            after,
            ended: false,
            step: 0,
            spent: 0,
        }
    }

    /// Whether the walk has read as much as a page may; there may be more.
    pub fn is_spent(&self) -> bool {
        self.spent >= QUOTE_BYTES
    }

    /// The next rows: about `first` at first, later more, but at most `most` from a source with many; empty at the
    /// end.
    pub async fn rows(
        &mut self,
        way: &Way,
        (first, most): (usize, usize),
    ) -> Result<Found, ListingError> {
        while !self.ended {
            self.step = (self.step * 4).max(first).min(most.min(MOST));
            let mut rows = self.merged(way).await?;
            let before = rows.len();
            rows.retain(|(position, _)| self.inside(position));
            // Rows are sorted: a row outside the limits comes after all rows inside.
            self.ended |= rows.len() < before;
            let Some((last, _)) = rows.last() else {
                continue;
            };
            self.after = Some(*last);
            let rows = self.led(rows).await?;
            if !rows.is_empty() {
                return Ok(rows);
            }
        }
        Ok(Vec::new())
    }

    /// Replaces the rows that lead to a summary by that summary. Leaves out a summary that has moved in the order:
    /// the walk finds it at its new position.
    async fn led(&self, rows: Found) -> Result<Found, StoreError> {
        let leads = |bytes: &[u8]| bytes.len() == 1;
        let ids = rows.iter().filter(|(_, bytes)| leads(bytes));
        let ids = ids.map(|(at, _)| B256::from_slice(&at[8..]));
        let keys: Vec<_> = ids.map(|id| rows::summary::key(&id)).collect();
        if keys.is_empty() {
            return Ok(rows);
        }
        let mut found = self.store.read_all(&keys).await?.into_iter();
        let read = |(at, bytes): (Position, Vec<u8>)| {
            let bytes = match leads(&bytes) {
                true => found.next().flatten()?,
                false => bytes,
            };
            Some((at, bytes)).filter(|(at, bytes)| self.stands(at, bytes))
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }

    /// Whether the summary's position is `at`; true for an unreadable one, which the caller reports.
    fn stands(&self, at: &Position, bytes: &[u8]) -> bool {
        let summary = rows::summary::decode(bytes);
        summary.map_or(true, |one| listed::position(self.sort, &one) == *at)
    }

    /// The part of `few` that the walk has not returned.
    fn ahead(&self, few: &BTreeMap<Position, Vec<u8>>) -> BTreeMap<Position, Vec<u8>> {
        let after = self.after.map_or(Bound::Unbounded, Bound::Excluded);
        let ahead = match self.descending {
            true => few.range((Bound::Unbounded, after)),
            false => few.range((after, Bound::Unbounded)),
        };
        let own = |(position, bytes): (&Position, &Vec<u8>)| (*position, bytes.clone());
        ahead.map(own).filter(|(at, _)| self.inside(at)).collect()
    }

    async fn merged(&mut self, way: &Way) -> Result<Found, ListingError> {
        let mut rows = BTreeMap::new();
        // Beyond this position a range that was cut off may have unread rows.
        let mut horizon: Option<Position> = None;
        for prefix in &way.rows {
            let last = self.read(prefix, horizon, &mut rows).await?;
            horizon = self.nearer(horizon, last);
        }
        if way.quotes {
            let last = self.quotes(horizon, &mut rows).await?;
            horizon = self.nearer(horizon, last);
        }
        self.ended = horizon.is_none();
        // Unlike the other rows these contain their summaries.
        rows.extend(self.ahead(&way.few));
        let mut rows: Found = rows.into_iter().collect();
        if self.descending {
            rows.reverse();
        }
        if let Some(horizon) = horizon {
            rows.retain(|(at, _)| !self.precedes(&horizon, at));
        }
        rows.truncate(self.step);
        // The next read returns the truncated rows again.
        self.ended &= rows.len() < self.step;
        Ok(rows)
    }

    /// Reads rows of a range into `rows`: at most a step, and hardly beyond `horizon`. Returns the last position
    /// where there may be more.
    async fn read(
        &self,
        prefix: &[u8],
        horizon: Option<Position>,
        rows: &mut BTreeMap<Position, Vec<u8>>,
    ) -> Result<Option<Position>, StoreError> {
        let (mut after, mut left) = (self.after, self.step);
        // The ranges differ in density.
        let mut limit = horizon.map_or(self.step, |_| self.step.div_ceil(8));
        loop {
            let found = self.store.scan(self.range(prefix, after, limit)).await?;
            if found.len() < limit {
                rows.extend(placed(found));
                return Ok(None);
            }
            left -= limit;
            rows.extend(placed(found).inspect(|(at, _)| after = Some(*at)));
            let beyond = horizon
                .zip(after)
                .is_some_and(|(horizon, last)| self.precedes(&horizon, &last));
            if beyond || left == 0 {
                return Ok(after);
            }
            limit = (limit * 2).min(left);
        }
    }

    /// As [`Self::read`], for quotes, as their summaries.
    async fn quotes(
        &mut self,
        horizon: Option<Position>,
        rows: &mut BTreeMap<Position, Vec<u8>>,
    ) -> Result<Option<Position>, ListingError> {
        let (mut after, mut left) = (self.quote_before(), self.step);
        loop {
            let range = Range {
                kind: QUOTE,
                prefix: Vec::new(),
                after,
                limit: QUOTES,
                reverse: self.descending,
            };
            let found = self.store.scan(range).await?;
            let Some((last, _)) = found.last().filter(|_| found.len() == QUOTES) else {
                self.summarized(&found, rows)?;
                return Ok(None);
            };
            after = Some(last.name.clone());
            let last = self.summarized(&found, rows)?;
            tokio::task::yield_now().await;
            left = left.saturating_sub(QUOTES);
            let beyond = horizon
                .zip(last)
                .is_some_and(|(horizon, last)| self.precedes(&horizon, &last));
            if beyond || left == 0 || self.is_spent() {
                return Ok(last);
            }
        }
    }

    /// Adds the summaries of quotes; returns the last position.
    fn summarized(
        &mut self,
        found: &[(Key, Vec<u8>)],
        rows: &mut BTreeMap<Position, Vec<u8>>,
    ) -> Result<Option<Position>, RowError> {
        let mut last = None;
        for (_, bytes) in found {
            self.spent = self.spent.saturating_add(bytes.len());
            let request = rows::quote::decode(bytes)?;
            let summary = Summary::of(&request, &Facts::default());
            let at = listed::quoted(&request.id);
            rows.insert(at, rows::summary::encode(&summary)?);
            last = Some(at);
        }
        Ok(last)
    }

    /// The name after which the remaining quotes come; `None` when all of them remain.
    fn quote_before(&self) -> Option<Vec<u8>> {
        let start = |time: u64| time.min(LAST).to_be_bytes()[2..].to_vec();
        let Some(after) = self.after else {
            return self.limit().map(start);
        };
        let (value, id) = (valued(&after), B256::from_slice(&after[8..]));
        // By last change a request sorts at or after the time in its id.
        Some(match time_of(&id).cmp(&value) {
            Ordering::Equal => id.to_vec(),
            Ordering::Less => start(value),
            Ordering::Greater => start(value.saturating_add(1)),
        })
    }

    /// The one of both that comes first in the walk.
    fn nearer(&self, one: Option<Position>, other: Option<Position>) -> Option<Position> {
        match (one, other) {
            (Some(one), Some(other)) if self.precedes(&one, &other) => Some(one),
            (one, other) => other.or(one),
        }
    }

    /// Whether `one` comes before `other` in the walk.
    fn precedes(&self, one: &Position, other: &Position) -> bool {
        match self.descending {
            true => one > other,
            false => one < other,
        }
    }

    fn range(&self, prefix: &[u8], after: Option<Position>, rows: usize) -> Range {
        let start = match (after, self.limit()) {
            (Some(after), _) => Some(after.to_vec()),
            (None, Some(limit)) => Some(limit.to_be_bytes().to_vec()),
            (None, None) => None,
        };
        Range {
            kind: LISTED,
            prefix: prefix.to_vec(),
            after: start.map(|start| [prefix, &start].concat()),
            limit: rows,
            reverse: self.descending,
        }
    }

    /// The sort value at which the walk begins, or the one just before.
    fn limit(&self) -> Option<u64> {
        match self.descending {
            true => self.span.to.and_then(|to| to.checked_add(1)),
            false => self.span.from,
        }
    }

    fn inside(&self, position: &Position) -> bool {
        self.span.holds(valued(position))
    }
}

/// The sort value of a position.
fn valued(position: &Position) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&position[..8]);
    u64::from_be_bytes(value)
}

/// The rows of a range by position.
fn placed(found: Vec<(Key, Vec<u8>)>) -> impl Iterator<Item = (Position, Vec<u8>)> {
    let found = found.into_iter();
    found.filter_map(|(key, bytes)| Some((listed::placed(&key.name)?, bytes)))
}
