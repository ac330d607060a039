//! Where requests of which something has been seen stand in each order of the listing, and what leads
//! to them by their names.
//!
//! An order's row, key: the order's letter; what it is ordered by, 8 bytes big endian; the request's id.
//! Letters: `c` creation and `u` last change (unix milliseconds), `a` amount (millionths of a dollar and
//! one, zero when unknown). Value: the request's summary, as in its own row, so that thousands can be
//! looked at where they lie.
//!
//! An account's row, of every order: `n`, the order's letter, the name ([`Name::key`]), and on like the
//! order's row. Value, format 1: nothing more. A transaction's row: `t`, the name, the creation, the
//! request's id. Value, format 1: bits of the [`Role`]s that it had.
//!
//! They live as long as their request. A change rewrites the rows of the orders and moves those of the
//! last change; a transaction's row is written once: some 3 KB, however many transactions there are.

use std::collections::BTreeMap;

use alloy::primitives::B256;

use super::{LISTED, RowError, summary as row};
use crate::{
    request::{
        fact::Facts,
        filter::Sort,
        name::Name,
        summary::{Role, Summary, transactions},
        time_of,
    },
    store::Key,
};

const FORMAT: u8 = 1;
const NAME: u8 = b'n';
const TRANSACTION: u8 = b't';
const SORTS: [Sort; 3] = [Sort::Created, Sort::Updated, Sort::Amount];

/// Where a request stands in an order: what it is ordered by, and its id.
pub type Position = [u8; 40];

/// What is under a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Listed {
    Ordered(Box<Summary>),
    /// One of the names of an account of it.
    Account,
    /// What the transaction was for it.
    Transaction(Vec<Role>),
}

fn letter(sort: Sort) -> u8 {
    match sort {
        Sort::Created => b'c',
        Sort::Updated => b'u',
        Sort::Amount => b'a',
    }
}

/// The position of `summary` in an order.
pub fn position(sort: Sort, summary: &Summary) -> Position {
    placed_at(sort.value(summary), &summary.id)
}

/// The position of a quote that nobody acted on, in either order of time: its id begins with its time.
pub fn quoted(id: &B256) -> Position {
    placed_at(time_of(id), id)
}

fn placed_at(value: u64, id: &B256) -> Position {
    let mut position = [0; 40];
    position[..8].copy_from_slice(&value.to_be_bytes());
    position[8..].copy_from_slice(id.as_slice());
    position
}

/// The position in the name of a row.
pub fn placed(name: &[u8]) -> Option<Position> {
    let at = name.len().checked_sub(40)?;
    name[at..].try_into().ok()
}

/// What the rows of an order start with.
pub fn ordered(sort: Sort) -> Vec<u8> {
    vec![letter(sort)]
}

/// What the rows of an account start with, in an order.
pub fn named(sort: Sort, name: &Name) -> Vec<u8> {
    [&[NAME, letter(sort)], &*name.key()].concat()
}

/// What the rows of a transaction start with.
pub fn sent(name: &Name) -> Vec<u8> {
    [&[TRANSACTION], &*name.key()].concat()
}

/// The rows of `summary` in every order, and those of its accounts.
pub fn rows(summary: &Summary) -> Result<BTreeMap<Key, Vec<u8>>, RowError> {
    let bytes = row::encode(summary)?;
    let mut rows = BTreeMap::new();
    for sort in SORTS {
        let at = position(sort, summary);
        let place = |prefix: Vec<u8>| Key::new(LISTED, [&*prefix, &at].concat());
        rows.insert(place(ordered(sort)), bytes.clone());
        for name in summary.accounts() {
            rows.insert(place(named(sort, name)), vec![FORMAT]);
        }
    }
    Ok(rows)
}

/// The rows of the transactions that `facts` tell of, for the request of `summary`.
pub fn sendings(summary: &Summary, facts: &Facts) -> BTreeMap<Key, Vec<u8>> {
    let at = position(Sort::Created, summary);
    let mut rows = BTreeMap::<Key, Vec<u8>>::new();
    for (role, name) in transactions(facts) {
        let key = Key::new(LISTED, [&*sent(&name), &at].concat());
        let value = rows.entry(key).or_insert_with(|| vec![FORMAT, 0]);
        value[1] |= role.bit();
    }
    rows
}

/// Whether the bytes of a row only lead to a summary.
pub fn leads(key: &Key) -> bool {
    matches!(key.name.first(), Some(&(NAME | TRANSACTION)))
}

pub fn decode(key: &Key, value: &[u8]) -> Result<Listed, RowError> {
    let wrong = || RowError::new("listed", "not of format 1");
    match (key.name.first(), value) {
        (Some(&NAME), [FORMAT]) => Ok(Listed::Account),
        (Some(&TRANSACTION), [FORMAT, roles]) => Ok(Listed::Transaction(Role::of(*roles))),
        (Some(b'c' | b'u' | b'a'), value) => Ok(Listed::Ordered(row::decode(value)?.into())),
        _ => Err(wrong()),
    }
}
