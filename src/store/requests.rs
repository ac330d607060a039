//! Requests and their facts in the store: the only way to read and change them.

use std::sync::Arc;

use alloy::primitives::B256;
use tokio::sync::watch;

use super::{
    Batch, Expect, Outcome, Store, StoreError,
    rows::{self, RowError},
    summaries, witnesses,
};
use crate::request::{
    Request,
    event::{self, Event},
    fact::Facts,
    summary::Summary,
};

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
    told: watch::Sender<u64>,
}

impl Requests {
    /// Over a store that has no events, or for somebody who reads none.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            changes: watch::Sender::new(0),
            told: watch::Sender::new(0),
        }
    }

    /// Over a store that nobody writes to yet: whatever events it has are durable.
    pub async fn open(store: Arc<dyn Store>) -> Result<Self, RequestsError> {
        let requests = Self::new(store);
        let newest = requests.store.scan(rows::event::newest()).await?;
        if let Some((key, bytes)) = newest.first() {
            requests.told.send_replace(rows::event::row(key, bytes)?.0);
        }
        Ok(requests)
    }

    /// The rows below.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Wakes whenever facts have changed. It carries nothing: who wakes reads.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The number of the newest event that is durable; wakes when there is a newer one.
    pub fn told(&self) -> watch::Receiver<u64> {
        self.told.subscribe()
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
        let summary = Summary::of(request, &Facts::default());
        let batch = summaries::put(batch, None, &summary)?;
        match self.store.commit(batch).await? {
            Outcome::Applied { .. } => Ok(()),
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
        loop {
            let stored = self.stored(id).await?;
            let mut after = stored.facts.clone();
            change(&mut after);
            if after == stored.facts {
                self.apply(with).await?;
                return Ok(after);
            }
            let (key, summary) = (rows::facts::key(id), rows::summary::key(id));
            let batch = self.changed(&stored, &mut after, now, with.clone()).await?;
            match self.store.commit(batch).await? {
                Outcome::Applied { number } => {
                    self.tell(number);
                    return Ok(after);
                }
                Outcome::Refused { key: other, .. } if other == key || other == summary => {}
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
        let stored = self.stored(id).await?;
        if stored.facts != *seen {
            return Err(RequestsError::Refused);
        }
        let mut after = seen.clone();
        change(&mut after);
        if after == *seen {
            let same = with.expect(rows::facts::key(id), stored.expect());
            self.apply(same).await?;
            return Ok(after);
        }
        let batch = self.changed(&stored, &mut after, now, with).await?;
        match self.store.commit(batch).await? {
            Outcome::Refused { .. } => Err(RequestsError::Refused),
            Outcome::Applied { number } => {
                self.tell(number);
                Ok(after)
            }
        }
    }

    /// The events after number `after` that are durable, the oldest first, with their numbers.
    pub async fn events(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Event)>, RequestsError> {
        let newest = *self.told.borrow();
        let rows = self.store.scan(rows::event::after(after, limit)).await?;
        let mut events = Vec::with_capacity(rows.len());
        for (key, bytes) in rows {
            let (number, event) = rows::event::row(&key, &bytes)?;
            if number > newest {
                break;
            }
            events.push((number, event));
        }
        Ok(events)
    }

    async fn stored(&self, id: &B256) -> Result<Stored, RequestsError> {
        let bytes = self.store.read(&rows::facts::key(id)).await?;
        let facts = bytes.as_deref().map(rows::facts::decode).transpose()?;
        Ok(Stored {
            id: *id,
            facts: facts.unwrap_or_default(),
            bytes,
        })
    }

    /// `with`, and the rows that say that `stored` became `after`, which gets its version and time.
    async fn changed(
        &self,
        stored: &Stored,
        after: &mut Facts,
        now: u64,
        with: Batch,
    ) -> Result<Batch, RequestsError> {
        after.version = stored.facts.version + 1;
        after.updated_at = now.max(stored.facts.updated_at);
        let key = rows::facts::key(&stored.id);
        let batch = with
            .expect(key.clone(), stored.expect())
            .put(key, rows::facts::encode(after)?);
        let batch = witnesses::wanted(batch, &stored.id, (&stored.facts, after), now)?;
        let Some(request) = self.by_id(&stored.id).await? else {
            return Ok(batch);
        };
        let batch = summaries::changed(&*self.store, batch, &request, after).await?;
        match event::of(&request, &stored.facts, after) {
            Some(event) => Ok(batch.append(rows::EVENT, rows::event::encode(&event)?)),
            None => Ok(batch),
        }
    }

    async fn apply(&self, batch: Batch) -> Result<(), RequestsError> {
        if batch.is_empty() {
            return Ok(());
        }
        match self.store.commit(batch).await? {
            Outcome::Applied { .. } => Ok(()),
            Outcome::Refused { .. } => Err(RequestsError::Refused),
        }
    }

    /// Facts have changed, durably, and with them all events up to `number`.
    fn tell(&self, number: Option<u64>) {
        if let Some(number) = number {
            self.told.send_if_modified(|newest| {
                let newer = number > *newest;
                *newest = number.max(*newest);
                newer
            });
        }
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// Facts as they are stored; none of a request that nothing has been seen of.
struct Stored {
    id: B256,
    facts: Facts,
    bytes: Option<Vec<u8>>,
}

impl Stored {
    /// That they still are.
    fn expect(&self) -> Expect {
        self.bytes.clone().map_or(Expect::Absent, Expect::Equals)
    }
}

#[cfg(test)]
mod tests;
