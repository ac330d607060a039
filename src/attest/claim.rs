//! Limits of every claim. Pure: no I/O, no clock.

use vm::{Family, protocol::limits};

use super::Refusal;

/// Finds the family of a configured chain by the chain's name.
pub type Families<'a> = &'a (dyn Fn(&str) -> Option<&'static Family> + Sync);

/// The most inputs, refunds, payments, calls or fees that one request may bring.
pub const MOST_ITEMS: usize = limits::ITEMS;

/// Refuses more than [`MOST_ITEMS`] items under `field`.
pub fn bounded(field: &'static str, items: usize) -> Result<(), Refusal> {
    if items <= MOST_ITEMS {
        return Ok(());
    }
    Err(Refusal::TooMany {
        field,
        most: MOST_ITEMS,
    })
}

/// A malformed field: its path and what is wrong with it.
pub fn malformed(path: &str, what: impl std::fmt::Display) -> Refusal {
    Refusal::Malformed(format!("{path}: {what}").into())
}
