//! Where requests stand in each order of the listing, and under each of their names.
//!
//! Key: the order's letter; 0 for a request that nothing has been seen of, else 1; behind the letter
//! `n` a name ([`Name::key`]); what it is ordered by, 8 bytes big endian; the request's id. Letters:
//! `c` creation and `u` last change (unix milliseconds), `a` amount (millionths of a dollar and one,
//! zero when unknown), `n` creation, of those with the name. What nothing has been seen of has not
//! changed since it was made: it has no `u`. Value: the request's summary, as in its own row, so that
//! thousands can be looked at where they lie.

use super::LISTED;
use crate::{
    request::{filter::Sort, name::Name, summary::Summary},
    store::Key,
};

const CREATED: u8 = b'c';
const UPDATED: u8 = b'u';
const AMOUNT: u8 = b'a';
const NAME: u8 = b'n';

/// Where a request stands in an order: what it is ordered by, and its id.
pub type Position = [u8; 40];

/// The position of `summary` in an order.
pub fn position(sort: Sort, summary: &Summary) -> Position {
    let mut position = [0; 40];
    position[..8].copy_from_slice(&sort.value(summary).to_be_bytes());
    position[8..].copy_from_slice(summary.id.as_slice());
    position
}

/// The position in the name of a row.
pub fn placed(name: &[u8]) -> Option<Position> {
    let at = name.len().checked_sub(40)?;
    name[at..].try_into().ok()
}

/// What the rows of an order start with: those of requests that nothing has been seen of first.
pub fn ordered(sort: Sort) -> [Vec<u8>; 2] {
    match sort {
        Sort::Created => [vec![CREATED, 0], vec![CREATED, 1]],
        Sort::Updated => [vec![CREATED, 0], vec![UPDATED, 1]],
        Sort::Amount => [vec![AMOUNT, 0], vec![AMOUNT, 1]],
    }
}

/// As [`ordered`], of those with a name, by creation.
pub fn named(name: &Name) -> [Vec<u8>; 2] {
    [0, 1].map(|touched| [&[NAME, touched], &*name.key()].concat())
}

/// Every row that leads to `summary`.
pub fn keys(summary: &Summary) -> Vec<Key> {
    let touched = usize::from(summary.touched);
    let place = |prefix: &[u8], sort: Sort| {
        let name = [prefix, &position(sort, summary)].concat();
        Key::new(LISTED, name)
    };
    let mut sorts = vec![Sort::Created, Sort::Amount];
    sorts.extend(summary.touched.then_some(Sort::Updated));
    let orders = sorts.into_iter();
    let orders = orders.map(|sort| place(&ordered(sort)[touched], sort));
    let names = summary.names().into_iter();
    let names = names.map(|name| place(&named(name)[touched], Sort::Created));
    orders.chain(names).collect()
}
