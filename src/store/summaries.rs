//! Summaries of requests, and the rows that lead to them. The commits that change requests write them; [`complete`]
//! adds those that an older version did not write. Quotes that nobody acted on have none.

use std::collections::BTreeMap;

use super::{
    Batch, Expect, Key, Store,
    requests::RequestsError,
    rows::{self, listed, summary, version},
    walk::Walk,
};
use crate::request::{
    Request,
    fact::Facts,
    summary::{Summary, VERSION},
};

/// The row under this name holds the version of summaries that every request has.
pub const MADE: &str = "summaries";
/// The approximate rows per commit.
const COMMIT: usize = 64;

/// A change of facts.
#[derive(Clone, Copy)]
pub(super) struct Changed<'a> {
    pub request: &'a Request,
    /// `None` when nothing is known of the rows that may exist.
    pub before: Option<&'a Facts>,
    pub after: &'a Facts,
}

/// Adds to `batch` the summary of `changed` and the rows that lead to it. The store refuses the commit when the
/// stored summary ([`summary::key`]) changes meanwhile. An unreadable summary counts as missing, because payments
/// must not wait for listings.
pub(super) async fn changed(
    store: &dyn Store,
    batch: Batch,
    changed: Changed<'_>,
) -> Result<Batch, RequestsError> {
    let key = summary::key(&changed.request.id);
    let found = store.read(&key).await?;
    let before = found
        .as_deref()
        .and_then(|bytes| summary::decode(bytes).ok());
    let after = Summary::of(changed.request, changed.after);
    let batch = batch.swap(key, found, summary::encode(&after)?);
    let gone = before.as_ref().map(listed::rows).transpose()?;
    let mut gone = gone.unwrap_or_default();
    if changed.before.is_none() {
        // Writes all rows: an older version's summary does not tell which ones exist.
        gone.values_mut().for_each(Vec::clear);
    }
    let batch = replaced(batch, gone, listed::rows(&after)?);
    let sent = |facts: &Facts| listed::sendings(&after, facts);
    let gone = changed.before.filter(|_| before.is_some()).map(sent);
    Ok(replaced(
        batch,
        gone.unwrap_or_default(),
        sent(changed.after),
    ))
}

/// Replaces `before` by `after` in `batch`; does not write rows that are in both.
fn replaced(
    mut batch: Batch,
    before: BTreeMap<Key, Vec<u8>>,
    after: BTreeMap<Key, Vec<u8>>,
) -> Batch {
    for key in before.keys().filter(|key| !after.contains_key(key)) {
        batch = batch.delete(key.clone());
    }
    let fresh = after
        .into_iter()
        .filter(|(key, value)| before.get(key) != Some(value));
    fresh.fold(batch, |batch, (key, value)| batch.put(key, value))
}

/// Whether every request has a summary of this version.
pub async fn are_complete(store: &dyn Store) -> Result<bool, RequestsError> {
    let found = store.read(&version::key(MADE)).await?;
    let version = found.map(|bytes| version::decode(&bytes)).transpose()?;
    Ok(version == Some(VERSION))
}

/// Whether the store has no requests.
pub async fn none(store: &dyn Store) -> Result<bool, RequestsError> {
    Ok(Walk::of(store, rows::REQUEST).next().await?.is_none())
}

/// Writes the missing summaries and records that all exist; returns their number. Requests may be written and changed
/// meanwhile.
pub async fn complete(store: &dyn Store) -> Result<u64, RequestsError> {
    let (mut walk, mut made) = (Walk::of(store, rows::REQUEST), 0);
    loop {
        let page = walk.page().await?;
        if page.is_empty() {
            break;
        }
        for part in page.chunks(COMMIT) {
            several(store, part).await?;
            made += part.len() as u64;
        }
    }
    let batch = Batch::new().put(version::key(MADE), version::encode(VERSION));
    store.commit(batch).await?;
    Ok(made)
}

/// One commit for all rows; when one of them changes meanwhile, one commit per row.
async fn several(store: &dyn Store, rows: &[(Key, Vec<u8>)]) -> Result<(), RequestsError> {
    let mut batch = Batch::new();
    for (_, bytes) in rows {
        batch = made(store, &rows::request::decode(bytes)?, batch).await?;
    }
    if store.commit(batch).await?.is_applied() {
        return Ok(());
    }
    for (_, bytes) in rows {
        let request = rows::request::decode(bytes)?;
        loop {
            let batch = made(store, &request, Batch::new()).await?;
            if store.commit(batch).await?.is_applied() {
                break;
            }
        }
    }
    Ok(())
}

/// Adds the rows of `request` for its current facts to `batch`; the store refuses the commit if they change.
async fn made(store: &dyn Store, request: &Request, batch: Batch) -> Result<Batch, RequestsError> {
    let key = rows::facts::key(&request.id);
    let found = store.read(&key).await?;
    let facts = found.as_deref().map(rows::facts::decode).transpose()?;
    let batch = batch.expect(key, Expect::unchanged(found));
    let facts = facts.unwrap_or_default();
    let all = Changed {
        request,
        before: None,
        after: &facts,
    };
    changed(store, batch, all).await
}
