//! Reads part of a kind's rows, from either end.

use std::ops::Bound;

use ::sled::{IVec, Result, Tree};

use super::flat_name;
use crate::store::{Key, Range};

type Row = (Key, Vec<u8>);
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

pub(super) fn rows(tree: &Tree, range: &Range) -> Result<Vec<Row>> {
    let prefix = flat_name(range.kind, &range.prefix);
    let found = tree.range::<Vec<u8>, _>(bounds(&prefix, range));
    match range.reverse {
        true => take(found.rev(), &prefix, range),
        false => take(found, &prefix, range),
    }
}

fn bounds(prefix: &[u8], range: &Range) -> Bounds {
    let after = range.after.as_ref();
    let after = after.map(|after| flat_name(range.kind, after));
    if range.reverse {
        let end = [after, successor(prefix)].into_iter().flatten().min();
        let to = end.map_or(Bound::Unbounded, Bound::Excluded);
        return (Bound::Unbounded, to);
    }
    let from = match after.filter(|after| after.as_slice() >= prefix) {
        Some(after) => Bound::Excluded(after),
        None => Bound::Included(prefix.to_vec()),
    };
    (from, Bound::Unbounded)
}

fn take(
    found: impl Iterator<Item = Result<(IVec, IVec)>>,
    prefix: &[u8],
    range: &Range,
) -> Result<Vec<Row>> {
    let inside = |row: &Result<(IVec, IVec)>| {
        let key = row.as_ref().map(|(key, _)| key);
        key.map_or(true, |key| key.starts_with(prefix))
    };
    let named = |(key, value): (IVec, IVec)| (Key::new(range.kind, &key[1..]), value.to_vec());
    let rows = found.take_while(inside).take(range.limit);
    rows.map(|row| row.map(named)).collect()
}

/// The least key above all keys with `prefix`; `None` when there is none.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let at = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut next = prefix[..=at].to_vec();
    next[at] += 1;
    Some(next)
}
