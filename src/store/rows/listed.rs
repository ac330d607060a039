//! The positions of requests in each order of the listing, and the rows that lead to requests by name. Quotes that
//! nobody acted on have none.
//!
//! A row of an order, key: the order's letter; the sort value, 8 bytes big endian; the request's id. Letters: `c`
//! creation and `u` last change (unix milliseconds), `a` amount (millionths of a dollar plus one, zero when unknown).
//! Value: the request's summary, as in its own row, so that a page reads thousands without further reads.
//!
//! A row of an account, in every order: `n`, the order's letter, the name ([`Name::key`]), then like the order's row.
//! Value, format 1: empty. A row of a transaction: `t`, the name, the creation, the request's id. Value, format 1:
//! the bits of its [`Role`]s.
//!
//! The rows live as long as their request. A change rewrites the rows of the orders and moves those of the last
//! change; a transaction's row is written once. Some 3 KB, whatever the number of transactions.

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

/// A request's position in an order: the sort value and the id.
pub type Position = [u8; 40];

/// The content of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Listed {
    Ordered(Box<Summary>),
    /// A name of one of the request's accounts.
    Account,
    /// The roles of the transaction for the request.
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

/// The position in a row's name.
pub fn placed(name: &[u8]) -> Option<Position> {
    let at = name.len().checked_sub(40)?;
    name[at..].try_into().ok()
}

/// The prefix of the rows of an order.
pub fn ordered(sort: Sort) -> Vec<u8> {
    vec![letter(sort)]
}

/// The prefix of the rows of an account in an order.
pub fn named(sort: Sort, name: &Name) -> Vec<u8> {
    [&[NAME, letter(sort)], &*name.key()].concat()
}

/// The prefix of the rows of a transaction.
pub fn sent(name: &Name) -> Vec<u8> {
    [&[TRANSACTION], &*name.key()].concat()
}

/// The rows of `summary` in every order, and those of its accounts.
pub fn rows(summary: &Summary) -> Result<BTreeMap<Key, Vec<u8>>, RowError> {
    let bytes = row::encode(summary)?;
    let mut rows = BTreeMap::new();
    for sort in SORTS {
        let at = position(sort, summary);
        let key = |prefix: Vec<u8>| Key::new(LISTED, [&*prefix, &at].concat());
        rows.insert(key(ordered(sort)), bytes.clone());
        for name in summary.accounts() {
            rows.insert(key(named(sort, name)), vec![FORMAT]);
        }
    }
    Ok(rows)
}

/// The rows of the transactions in `facts`, for the request of `summary`.
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

/// Whether the row only leads to a summary.
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
