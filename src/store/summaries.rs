//! Summaries of requests and the rows that lead to them: kept in the commits that change requests, and
//! made for those that an older version wrote.

use super::{
    Batch, Expect, Key, Outcome, Store,
    requests::RequestsError,
    rows::{self, RowError, listed, mark, summary},
    walk::Walk,
};
use crate::request::{
    Request,
    fact::Facts,
    summary::{Summary, VERSION},
};

/// The mark that says which version of summaries every request has.
pub const MARK: &str = "summaries";
/// Rows in a commit, roughly.
const COMMIT: usize = 64;

/// `batch`, and the rows of `after` in place of those of `before`.
pub(super) fn put(
    mut batch: Batch,
    before: Option<&Summary>,
    after: &Summary,
) -> Result<Batch, RowError> {
    let bytes = summary::encode(after)?;
    let keys = listed::keys(after);
    let gone = before.map(listed::keys).unwrap_or_default();
    for key in gone.into_iter().filter(|key| !keys.contains(key)) {
        batch = batch.delete(key);
    }
    for key in keys {
        batch = batch.put(key, bytes.clone());
    }
    Ok(batch.put(summary::key(&after.id), bytes))
}

/// `batch`, and the summary of `request` after `facts`; refused when its summary, under the key of
/// [`summary::key`], changes meanwhile. A stored one that cannot be read is none: what is paid must not
/// wait for what is listed.
pub(super) async fn changed(
    store: &dyn Store,
    batch: Batch,
    request: &Request,
    facts: &Facts,
) -> Result<Batch, RequestsError> {
    let key = summary::key(&request.id);
    let found = store.read(&key).await?;
    let before = found
        .as_deref()
        .and_then(|bytes| summary::decode(bytes).ok());
    let batch = batch.expect(key, found.map_or(Expect::Absent, Expect::Equals));
    Ok(put(batch, before.as_ref(), &Summary::of(request, facts))?)
}

/// Whether every request has a summary of this version.
pub async fn are_complete(store: &dyn Store) -> Result<bool, RequestsError> {
    let found = store.read(&mark::key(MARK)).await?;
    let version = found.map(|bytes| mark::decode(&bytes)).transpose()?;
    Ok(version == Some(VERSION))
}

/// Whether there is no request yet.
pub async fn none(store: &dyn Store) -> Result<bool, RequestsError> {
    Ok(Walk::of(store, rows::REQUEST).page().await?.is_empty())
}

/// Gives every request its summary, and says that they all have one; how many there are. Requests may
/// be written and changed meanwhile.
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
    let batch = Batch::new().put(mark::key(MARK), mark::encode(VERSION));
    store.commit(batch).await?;
    Ok(made)
}

/// One commit for all of them; where one of them changes meanwhile, one for each.
async fn several(store: &dyn Store, rows: &[(Key, Vec<u8>)]) -> Result<(), RequestsError> {
    let mut batch = Batch::new();
    for (_, bytes) in rows {
        batch = made(store, &rows::request::decode(bytes)?, batch).await?;
    }
    if let Outcome::Applied { .. } = store.commit(batch).await? {
        return Ok(());
    }
    for (_, bytes) in rows {
        let request = rows::request::decode(bytes)?;
        loop {
            let batch = made(store, &request, Batch::new()).await?;
            if let Outcome::Applied { .. } = store.commit(batch).await? {
                break;
            }
        }
    }
    Ok(())
}

/// `batch` with the rows of `request` as its facts are now; refused if they change.
async fn made(store: &dyn Store, request: &Request, batch: Batch) -> Result<Batch, RequestsError> {
    let key = rows::facts::key(&request.id);
    let found = store.read(&key).await?;
    let facts = found.as_deref().map(rows::facts::decode).transpose()?;
    let batch = batch.expect(key, found.map_or(Expect::Absent, Expect::Equals));
    changed(store, batch, request, &facts.unwrap_or_default()).await
}
