//! What a listing is asked for, and whether a request matches (guide: protocol 11.11).
//!
//! Everything that stands in [`Query`] must hold. Quotes that nobody acted on match their own ids, and
//! `status=waiting` if they are the caller's own or a named user's. `pending` matches `submitted`, too,
//! which is no word of the filter.

mod field;
mod form;
mod groups;
mod params;
mod table;

use field::Found;
pub use field::{Field, Value};
pub use params::{Asked, Caller, Edition};
pub use table::described;

use alloy::primitives::B256;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{name::Name, status::Status, summary::Summary};

/// Lookups by name that one query may make.
const LOOKUPS: usize = 64;

/// A query that cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{parameter}: {why}")]
pub struct Wrong {
    /// Stable, in capitals.
    pub code: &'static str,
    pub parameter: String,
    pub why: String,
}

impl Wrong {
    fn new(code: &'static str, parameter: &str, why: impl Into<String>) -> Self {
        Self {
            code,
            parameter: parameter.to_owned(),
            why: why.into(),
        }
    }

    fn field(parameter: &str, why: impl Into<String>) -> Self {
        Self::new("INVALID_FIELD", parameter, why)
    }

    fn filters(why: impl Into<String>) -> Self {
        Self::new("INVALID_FILTERS", "filters", why)
    }

    fn not_owned(parameter: &str, why: &str) -> Self {
        Self::new("API_KEY_NOT_OWNED", parameter, why)
    }
}

/// Which requests are asked for, and in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Query {
    pub all: Vec<Clause>,
    /// One of these groups must hold, every clause of it; without groups nothing is asked.
    pub any: Vec<Vec<Clause>>,
    pub ranges: Ranges,
    /// Bits of features, of which one must be there; zero asks nothing.
    pub features: u8,
    /// Chains whose requests are not shown.
    pub hidden: Vec<u64>,
    pub sort: Sort,
    pub descending: bool,
}

/// What one field must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Clause {
    pub field: Field,
    /// It must not be that.
    pub not: bool,
    /// One of these; without any the field must be empty.
    pub values: Vec<Value>,
}

/// Limits, all of them inclusive; a request that has no such figure is in none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ranges {
    /// Unix milliseconds of the creation, or of the last change when it is sorted by.
    pub time: Span,
    pub block: Span,
    /// Only the origin's blocks count.
    pub origin_block: bool,
    pub amount: Span,
    pub app_fees: Span,
    pub fill_time: Span,
}

/// From and to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Span {
    pub from: Option<u64>,
    pub to: Option<u64>,
}

/// What the listing is ordered by; the request's id decides between equals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Sort {
    #[default]
    Created,
    Updated,
    /// Those without a known amount come first.
    Amount,
}

/// How requests can be found without looking at others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookup {
    Id(B256),
    Order(B256),
    /// Whatever is named so.
    Name(Name),
}

impl Span {
    fn open(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// Whether `value` is within.
    pub fn holds(&self, value: u64) -> bool {
        self.from.is_none_or(|from| from <= value) && self.to.is_none_or(|to| value <= to)
    }

    fn has(&self, value: Option<u64>) -> bool {
        self.open() || value.is_some_and(|value| self.holds(value))
    }
}

impl Sort {
    /// What `summary` is ordered by, and its limits in `ranges`. Amounts are counted from one: zero
    /// is no amount.
    pub fn value(self, summary: &Summary) -> u64 {
        match self {
            Self::Created => summary.created_at,
            Self::Updated => summary.updated_at,
            Self::Amount => summary.amount.map_or(0, |amount| amount.saturating_add(1)),
        }
    }

    /// The limits of [`Sort::value`] that `ranges` set.
    pub fn span(self, ranges: &Ranges) -> Span {
        match self {
            Self::Created | Self::Updated => ranges.time,
            Self::Amount if ranges.amount.open() => Span::default(),
            Self::Amount => Span {
                from: Some(ranges.amount.from.unwrap_or(0).saturating_add(1)),
                to: ranges.amount.to.map(|to| to.saturating_add(1)),
            },
        }
    }
}

/// Whether `summary` is meant.
pub fn matches(query: &Query, summary: &Summary) -> bool {
    let hidden = |chain: u64| query.hidden.contains(&chain);
    let every = |clauses: &[Clause]| clauses.iter().all(|clause| clause.holds(summary));
    !hidden(summary.origin.chain)
        && !hidden(summary.destination.chain)
        && (query.features == 0 || query.features & summary.features != 0)
        && every(&query.all)
        && (query.any.is_empty() || query.any.iter().any(|group| every(group)))
        && query.ranges.hold(query.sort, summary)
}

impl Ranges {
    fn span(&mut self, of: table::Limited) -> &mut Span {
        match of {
            table::Limited::Time => &mut self.time,
            table::Limited::Block => &mut self.block,
            table::Limited::Amount => &mut self.amount,
            table::Limited::AppFees => &mut self.app_fees,
            table::Limited::FillTime => &mut self.fill_time,
        }
    }

    fn hold(&self, sort: Sort, summary: &Summary) -> bool {
        let time = match sort {
            Sort::Updated => summary.updated_at,
            Sort::Created | Sort::Amount => summary.created_at,
        };
        let there = !self.origin_block;
        let there = summary.destination_blocks.iter().filter(|_| there);
        let mut blocks = summary.origin_blocks.iter().chain(there);
        self.time.holds(time)
            && (self.block.open() || blocks.any(|block| self.block.holds(*block)))
            && self.amount.has(summary.amount)
            && self.app_fees.has(summary.app_fees)
            && self.fill_time.has(summary.fill_time)
    }
}

impl Clause {
    fn holds(&self, summary: &Summary) -> bool {
        let is = match self.values.as_slice() {
            [] => !self.field.any(summary, |_| true),
            all => {
                let meant = |found: Found<'_>| all.iter().any(|value| value.means(found));
                self.field.any(summary, meant)
            }
        };
        is != self.not
    }

    /// The names of all that it may mean.
    fn lookups(&self) -> Option<Vec<Lookup>> {
        if self.not || self.values.is_empty() || self.values.len() > LOOKUPS {
            return None;
        }
        let form = table::form(self.field)?;
        let found = self.values.iter().map(|value| form.lookups(value));
        let found: Option<Vec<Vec<Lookup>>> = found.collect();
        Some(found?.concat())
    }
}

impl Query {
    /// The names that every request that it means has one of; `None` when it asks for none, or too
    /// many.
    pub fn lookups(&self) -> Option<Vec<Lookup>> {
        let of = |clauses: &[Clause]| {
            let named = clauses.iter().filter_map(Clause::lookups);
            named.min_by_key(|lookups| (lookups.len(), rank(lookups)))
        };
        let mut lookups = of(&self.all).or_else(|| {
            let groups: Option<Vec<_>> = self.any.iter().map(|group| of(group)).collect();
            groups
                .map(|groups| groups.concat())
                .filter(|all| !all.is_empty())
        })?;
        lookups.sort();
        lookups.dedup();
        (lookups.len() <= LOOKUPS).then_some(lookups)
    }

    /// Whether it asks for what waits for a deposit: quotes that nobody acted on, too.
    pub fn waits(&self) -> bool {
        let waiting = |value: &Value| *value == Value::Status(Status::Waiting);
        let mut asked = self.all.iter().filter(|clause| !clause.not);
        asked.any(|clause| clause.values.iter().any(waiting))
    }

    /// How many values each summary may be compared with.
    pub fn values(&self) -> usize {
        let clauses = self.all.iter().chain(self.any.iter().flatten());
        clauses.map(|clause| clause.values.len().max(1)).sum()
    }

    /// What tells it from other queries, for continuations.
    pub fn fingerprint(&self) -> [u8; 8] {
        let bytes = postcard::to_stdvec(self).unwrap_or_default();
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        let mut short = [0; 8];
        short.copy_from_slice(&digest[..8]);
        short
    }
}

/// Accounts have many requests, transactions and ids few.
fn rank(lookups: &[Lookup]) -> usize {
    let account = |lookup: &&Lookup| matches!(lookup, Lookup::Name(name) if name.word().is_none());
    lookups.iter().filter(account).count()
}

#[cfg(test)]
mod tests;
