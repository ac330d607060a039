//! Requests and their facts in the store: the only way to read and change them.

use std::sync::Arc;

use alloy::primitives::B256;
use tokio::sync::watch;

use super::{
    Batch, Expect, Outcome, Store, StoreError,
    rows::{self, RowError},
    witnesses,
};
use crate::request::{Request, fact::Facts};

/// Why requests cannot be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestsError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Row(#[from] RowError),
    /// No such request.
    #[error("unknown request {0}")]
    Unknown(B256),
    /// A row that was committed together with the facts was not as demanded.
    #[error("another commit came first")]
    Refused,
}

/// See the module.
#[derive(Clone)]
pub struct Requests {
    store: Arc<dyn Store>,
    changes: watch::Sender<u64>,
}

impl Requests {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            changes: watch::Sender::new(0),
        }
    }

    /// The rows below.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Wakes whenever facts have changed. It carries nothing: who wakes reads.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Stores a new request with the rows of `with`; durable when it returns. An id or order that
    /// exists is [`RequestsError::Refused`].
    pub async fn insert(&self, request: &Request, with: Batch) -> Result<(), RequestsError> {
        let order = rows::order::key(&request.order_id);
        let key = rows::request::key(&request.id);
        let batch = with
            .expect(key.clone(), Expect::Absent)
            .expect(order.clone(), Expect::Absent)
            .put(key, rows::request::encode(request)?)
            .put(order, rows::order::encode(&request.id));
        match self.store.commit(batch).await? {
            Outcome::Applied => Ok(()),
            Outcome::Refused { .. } => Err(RequestsError::Refused),
        }
    }

    pub async fn by_id(&self, id: &B256) -> Result<Option<Request>, RequestsError> {
        let found = self.store.read(&rows::request::key(id)).await?;
        Ok(found
            .map(|bytes| rows::request::decode(&bytes))
            .transpose()?)
    }

    pub async fn by_order(&self, order: &B256) -> Result<Option<Request>, RequestsError> {
        let Some(found) = self.store.read(&rows::order::key(order)).await? else {
            return Ok(None);
        };
        self.by_id(&rows::order::decode(&found)?).await
    }

    /// What has been seen of a request; nothing yet for one that is new or unknown.
    pub async fn facts(&self, id: &B256) -> Result<Facts, RequestsError> {
        let found = self.store.read(&rows::facts::key(id)).await?;
        let facts = found.map(|bytes| rows::facts::decode(&bytes)).transpose()?;
        Ok(facts.unwrap_or_default())
    }

    /// Changes the facts of `id` and commits `with` in the same step. `change` runs again when
    /// another change came in between; where it changes nothing, only `with` is committed. Refused
    /// when a precondition of `with` does not hold. `now` in unix milliseconds.
    pub async fn record(
        &self,
        id: &B256,
        now: u64,
        with: Batch,
        change: impl Fn(&mut Facts) + Send + Sync,
    ) -> Result<Facts, RequestsError> {
        let key = rows::facts::key(id);
        loop {
            let found = self.store.read(&key).await?;
            let before = found.as_deref().map(rows::facts::decode).transpose()?;
            let before = before.unwrap_or_default();
            let mut after = before.clone();
            change(&mut after);
            let changed = after != before;
            let mut batch = with.clone();
            if !changed && batch.is_empty() {
                return Ok(after);
            }
            if changed {
                after.version = before.version + 1;
                after.updated_at = now.max(before.updated_at);
                let expect = found.map_or(Expect::Absent, Expect::Equals);
                batch = batch
                    .expect(key.clone(), expect)
                    .put(key.clone(), rows::facts::encode(&after)?);
                batch = witnesses::wanted(batch, id, (&before, &after), now)?;
            }
            match self.store.commit(batch).await? {
                Outcome::Applied => {
                    if changed {
                        self.changes
                            .send_modify(|count| *count = count.wrapping_add(1));
                    }
                    return Ok(after);
                }
                Outcome::Refused { key: other, .. } if changed && other == key => {}
                Outcome::Refused { .. } => return Err(RequestsError::Refused),
            }
        }
    }

    /// Like [`Requests::record`], but for a decision that rests on the facts `seen`: refused when
    /// they are not the stored ones any more. Durable also where `change` changes nothing.
    pub async fn decide(
        &self,
        (id, seen): (&B256, &Facts),
        now: u64,
        with: Batch,
        change: impl FnOnce(&mut Facts) + Send,
    ) -> Result<Facts, RequestsError> {
        let key = rows::facts::key(id);
        let found = self.store.read(&key).await?;
        let stored = found.as_deref().map(rows::facts::decode).transpose()?;
        if stored.unwrap_or_default() != *seen {
            return Err(RequestsError::Refused);
        }
        let mut after = seen.clone();
        change(&mut after);
        let changed = after != *seen;
        let mut batch = with.expect(key.clone(), found.map_or(Expect::Absent, Expect::Equals));
        if changed {
            after.version = seen.version + 1;
            after.updated_at = now.max(seen.updated_at);
            batch = batch.put(key, rows::facts::encode(&after)?);
            batch = witnesses::wanted(batch, id, (seen, &after), now)?;
        }
        match self.store.commit(batch).await? {
            Outcome::Refused { .. } => Err(RequestsError::Refused),
            Outcome::Applied => {
                if changed {
                    self.changes
                        .send_modify(|count| *count = count.wrapping_add(1));
                }
                Ok(after)
            }
        }
    }
}

#[cfg(test)]
mod tests;
