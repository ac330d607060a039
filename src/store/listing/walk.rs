//! Rows of several ranges as one, in the order of their positions.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use crate::{
    request::filter::{Query, Span},
    store::{
        Range, Store, StoreError,
        rows::{LISTED, listed, listed::Position},
    },
};

/// Rows read of a range at a time, at most.
const MOST: usize = 1_000;

/// Where a walk goes.
pub enum Way {
    /// Through these rows.
    Few(BTreeMap<Position, Vec<u8>>),
    /// Through the rows that start with one of these, read in this order.
    Rows(Vec<Vec<u8>>),
}

/// A walk from one end to the other, within the limits of what is ordered by.
pub struct Walk {
    store: Arc<dyn Store>,
    descending: bool,
    span: Span,
    /// The last position that was given.
    after: Option<Position>,
    ended: bool,
    /// Rows to read next.
    step: usize,
}

type Found = Vec<(Position, Vec<u8>)>;

impl Walk {
    pub fn new(store: Arc<dyn Store>, query: &Query, after: Option<Position>) -> Self {
        Self {
            store,
            descending: query.descending,
            span: query.sort.span(&query.ranges),
            after,
            ended: false,
            step: 0,
        }
    }

    /// The next rows, `first` of them or so at first, more later and never more than `most` of a way
    /// with many; none when there are none left.
    pub async fn rows(
        &mut self,
        way: &Way,
        (first, most): (usize, usize),
    ) -> Result<Found, StoreError> {
        while !self.ended {
            self.step = (self.step * 4).max(first).min(most.min(MOST));
            let mut rows = match way {
                Way::Few(rows) => self.few(rows),
                Way::Rows(prefixes) => self.merged(prefixes).await?,
            };
            let before = rows.len();
            rows.retain(|(position, _)| self.inside(position));
            // They come in order: what is outside is behind all that is inside.
            self.ended |= rows.len() < before;
            if let Some((last, _)) = rows.last() {
                self.after = Some(*last);
                return Ok(rows);
            }
        }
        Ok(Vec::new())
    }

    fn few(&mut self, rows: &BTreeMap<Position, Vec<u8>>) -> Found {
        self.ended = true;
        let after = self.after.map_or(Bound::Unbounded, Bound::Excluded);
        let own = |(position, bytes): (&Position, &Vec<u8>)| (*position, bytes.clone());
        match self.descending {
            true => {
                let rows = rows.range((Bound::Unbounded, after)).rev();
                rows.map(own).filter(|(at, _)| self.inside(at)).collect()
            }
            false => {
                let rows = rows.range((after, Bound::Unbounded));
                rows.map(own).filter(|(at, _)| self.inside(at)).collect()
            }
        }
    }

    async fn merged(&mut self, prefixes: &[Vec<u8>]) -> Result<Found, StoreError> {
        let mut rows = BTreeMap::new();
        // Beyond this, a range that was cut may have rows that have not been read.
        let mut horizon: Option<Position> = None;
        for prefix in prefixes {
            let found = self.store.scan(self.range(prefix)).await?;
            let cut = found.len() == self.step;
            let mut last = None;
            for (key, bytes) in found {
                last = listed::placed(&key.name);
                rows.extend(last.map(|position| (position, bytes)));
            }
            if let Some(last) = last.filter(|_| cut) {
                horizon = Some(match (horizon, self.descending) {
                    (None, _) => last,
                    (Some(other), true) => other.max(last),
                    (Some(other), false) => other.min(last),
                });
            }
        }
        self.ended = horizon.is_none();
        let mut rows: Found = rows.into_iter().collect();
        if self.descending {
            rows.reverse();
        }
        if let Some(horizon) = horizon {
            rows.retain(|(at, _)| {
                if self.descending {
                    *at >= horizon
                } else {
                    *at <= horizon
                }
            });
        }
        rows.truncate(self.step);
        // What was left over is read again.
        self.ended &= rows.len() < self.step;
        Ok(rows)
    }

    fn range(&self, prefix: &[u8]) -> Range {
        let limit = match self.descending {
            true => self.span.to.and_then(|to| to.checked_add(1)),
            false => self.span.from,
        };
        let start = match (self.after, limit) {
            (Some(after), _) => Some(after.to_vec()),
            (None, Some(limit)) => Some(limit.to_be_bytes().to_vec()),
            (None, None) => None,
        };
        Range {
            kind: LISTED,
            prefix: prefix.to_vec(),
            after: start.map(|start| [prefix, &start].concat()),
            limit: self.step,
            reverse: self.descending,
        }
    }

    fn inside(&self, position: &Position) -> bool {
        let mut value = [0; 8];
        value.copy_from_slice(&position[..8]);
        self.span.holds(u64::from_be_bytes(value))
    }
}
