//! Rows of several ranges as one, in the order of their positions.

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

/// Rows read of a range at a time, at most.
const MOST: usize = 1_000;
/// Quotes read at a time: one may have 1 MiB.
const QUOTES: usize = 16;
/// Bytes of quotes that a walk reads, but for those that it reads last.
const QUOTE_BYTES: usize = 8 << 20;
/// The greatest time that an id can begin with.
const LAST: u64 = (1 << 48) - 1;

/// Where a walk goes: all of it in the order of positions.
#[derive(Default)]
pub struct Way {
    /// Through these summaries.
    pub few: BTreeMap<Position, Vec<u8>>,
    /// Through the rows that start with one of these.
    pub rows: Vec<Vec<u8>>,
    /// Through all quotes that nobody acted on. They are in the order of time.
    pub quotes: bool,
}

impl Way {
    /// Through the rows that start so.
    pub fn along(rows: Vec<Vec<u8>>) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }

    /// Through `summary`, too.
    pub fn point(&mut self, sort: Sort, summary: &Summary) -> Result<(), RowError> {
        let at = listed::position(sort, summary);
        self.few.insert(at, rows::summary::encode(summary)?);
        Ok(())
    }
}

/// A walk from one end to the other, within the limits of what is ordered by.
pub struct Walk {
    store: Arc<dyn Store>,
    sort: Sort,
    descending: bool,
    span: Span,
    /// The last position that was given.
    after: Option<Position>,
    ended: bool,
    /// Rows to read next.
    step: usize,
    /// Bytes of quotes that have been read.
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

    /// Whether it has read as much as a page may, though there may be more.
    pub fn is_spent(&self) -> bool {
        self.spent >= QUOTE_BYTES
    }

    /// The next rows, `first` of them or so at first, more later and never more than `most` of a way
    /// with many; none when there are none left.
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
            // They come in order: what is outside is behind all that is inside.
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

    /// `rows`, with the summaries that some of them lead to. What has moved in the order meanwhile is
    /// left out: it is met where it is now.
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

    /// Whether a summary stands at `at`; one that cannot be read is told by who looks at it.
    fn stands(&self, at: &Position, bytes: &[u8]) -> bool {
        let summary = rows::summary::decode(bytes);
        summary.map_or(true, |one| listed::position(self.sort, &one) == *at)
    }

    /// What of `few` is still ahead.
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
        // Beyond this, a range that was cut may have rows that have not been read.
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
        // These are whole, what the rows of names lead to is not.
        rows.extend(self.ahead(&way.few));
        let mut rows: Found = rows.into_iter().collect();
        if self.descending {
            rows.reverse();
        }
        if let Some(horizon) = horizon {
            rows.retain(|(at, _)| !self.precedes(&horizon, at));
        }
        rows.truncate(self.step);
        // What was left over is read again.
        self.ended &= rows.len() < self.step;
        Ok(rows)
    }

    /// Reads the rows of a range into `rows`, no more than a step and hardly beyond `horizon`; the last
    /// of them where there may be more.
    async fn read(
        &self,
        prefix: &[u8],
        horizon: Option<Position>,
        rows: &mut BTreeMap<Position, Vec<u8>>,
    ) -> Result<Option<Position>, StoreError> {
        let (mut after, mut left) = (self.after, self.step);
        // Ranges are of different density.
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

    /// As [`Self::read`], of quotes, as their summaries.
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

    /// Adds what quotes are listed as; the last one's position.
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

    /// The name that the quotes still ahead come after; `None`: all of them are.
    fn quote_before(&self) -> Option<Vec<u8>> {
        let start = |time: u64| time.min(LAST).to_be_bytes()[2..].to_vec();
        let Some(after) = self.after else {
            return self.limit().map(start);
        };
        let (value, id) = (valued(&after), B256::from_slice(&after[8..]));
        // What is ordered by its last change is younger than the time in its id.
        Some(match time_of(&id).cmp(&value) {
            Ordering::Equal => id.to_vec(),
            Ordering::Less => start(value),
            Ordering::Greater => start(value.saturating_add(1)),
        })
    }

    /// The one of both that comes first in the order of the walk.
    fn nearer(&self, one: Option<Position>, other: Option<Position>) -> Option<Position> {
        match (one, other) {
            (Some(one), Some(other)) if self.precedes(&one, &other) => Some(one),
            (one, other) => other.or(one),
        }
    }

    /// Whether `one` comes before `other` in the order of the walk.
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

    /// The value that the walk begins with, or just before.
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

/// What a position is ordered by.
fn valued(position: &Position) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&position[..8]);
    u64::from_be_bytes(value)
}

/// What is in the rows of a range, by position.
fn placed(found: Vec<(Key, Vec<u8>)>) -> impl Iterator<Item = (Position, Vec<u8>)> {
    let found = found.into_iter();
    found.filter_map(|(key, bytes)| Some((listed::placed(&key.name)?, bytes)))
}
