//! Events that are still owed to an integrator's endpoint.
//!
//! Key: the integrator's label ‖0, the event's number, 8 bytes big endian. Value, format 1: [`Delivery`]. The commit
//! that moves the webhooks' mark past the event writes the row.
//!
//! The row lives until a commit records that the delivery ended; some 100 bytes.

use serde::{Deserialize, Serialize};

use super::{DELIVERY, prefix};
use crate::store::{Key, Kind, Range, number};

const FORMAT: u8 = 1;

/// The state of a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Unix milliseconds.
    pub since: u64,
    /// The time of the next try, in unix milliseconds.
    pub due: u64,
    /// The tries so far, oldest first.
    pub tries: Vec<Try>,
}

/// One try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Try {
    /// Unix milliseconds.
    pub at: u64,
    /// Milliseconds.
    pub took: u64,
    pub said: String,
}

stored!(Delivery, "delivery", encode, decode);

impl Delivery {
    /// A delivery that is due at `now` (unix milliseconds).
    pub fn fresh(now: u64) -> Self {
        Self {
            since: now,
            due: now,
            tries: Vec::new(),
        }
    }
}

/// The key of the delivery of event `number` to `label`.
pub fn key(label: &str, number: u64) -> Key {
    Key::new(DELIVERY, name(label, number))
}

pub(super) fn name(label: &str, number: u64) -> Vec<u8> {
    [label.as_bytes(), &[0], &number.to_be_bytes()].concat()
}

/// The label and the number in the name of a delivery, live or dead.
pub fn parts(name: &[u8]) -> Option<(&str, u64)> {
    let (label, digits) = name.split_last_chunk::<8>()?;
    let label = std::str::from_utf8(label.strip_suffix(&[0])?).ok()?;
    (!label.is_empty()).then_some((label, number(digits)?))
}

/// The deliveries to `label`, live or dead by `kind`, of events after number `after`.
pub fn of(kind: Kind, label: &str, after: u64, limit: usize) -> Range {
    Range::new(kind, &prefix(label), Some(name(label, after)), limit)
}

/// The newest of [`of`].
pub fn newest(kind: Kind, label: &str) -> Range {
    Range {
        after: None,
        reverse: true,
        ..of(kind, label, 0, 1)
    }
}

/// The first row of any label that sorts after `label`.
pub fn behind(kind: Kind, label: Option<&str>) -> Range {
    Range::new(kind, &[], label.map(|label| name(label, u64::MAX)), 1)
}
