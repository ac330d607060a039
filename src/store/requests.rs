//! Requests and their facts in the store. All code reads and changes them through this module.

mod quotes;

use std::sync::{Arc, Mutex};

use alloy::primitives::B256;
use tokio::sync::{broadcast, watch};

use super::{
    Batch, Expect, Key, Outcome, Store, StoreError,
    large::{Budget, Ledger},
    reserve::Reserve,
    rows::{self, RowError},
    summaries::{self, Changed},
};
use crate::request::{
    Request,
    event::{self, Event},
    fact::Facts,
};

/// Why requests cannot be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestsError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Row(#[from] RowError),
    /// The request does not exist.
    #[error("unknown request {0}")]
    Unknown(B256),
    /// A precondition of the commit did not hold.
    #[error("another commit came first")]
    Refused,
    /// The remaining disk space is reserved.
    #[error("the disk is nearly full")]
    NoRoom,
    /// The large quotes that nobody has acted on use up their budget.
    #[error("too many large quotes")]
    TooLarge,
}

/// The most changed requests that wait for a listener.
const NEWS: usize = 1_024;

/// Reads and changes requests, and announces the changes.
#[derive(Clone)]
pub struct Requests {
    store: Arc<dyn Store>,
    changes: watch::Sender<u64>,
    changed: broadcast::Sender<B256>,
    newest_event: watch::Sender<u64>,
    reserve: Arc<Reserve>,
    large: Arc<Mutex<Ledger>>,
}

/// Maps [`RequestsError::Unknown`], for a request deleted meanwhile, to `None`.
pub fn unless_forgotten<T>(recorded: Result<T, RequestsError>) -> Result<Option<T>, RequestsError> {
    match recorded {
        Err(RequestsError::Unknown(_)) => Ok(None),
        recorded => recorded.map(Some),
    }
}

/// A request as somebody saw it who decides by that.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub id: &'a B256,
    pub facts: &'a Facts,
}

impl Requests {
    /// For a store without events, or a caller that reads none.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            changes: watch::Sender::new(0),
            changed: broadcast::Sender::new(NEWS),
            newest_event: watch::Sender::new(0),
            reserve: Arc::default(),
            large: Arc::default(),
        }
    }

    /// Refuses quotes while `reserve` is low.
    #[must_use]
    pub fn with_reserve(self, reserve: Arc<Reserve>) -> Self {
        Self { reserve, ..self }
    }

    /// Fails while the daemon accepts no quotes.
    pub fn room(&self) -> Result<(), RequestsError> {
        match self.reserve.is_low() {
            true => Err(RequestsError::NoRoom),
            false => Ok(()),
        }
    }

    /// Opens a store that nothing writes to yet, so that all its events are durable.
    pub async fn open(store: Arc<dyn Store>) -> Result<Self, RequestsError> {
        Self::open_within(store, Budget::default()).await
    }

    /// As [`Self::open`], with `budget` for large quotes.
    pub async fn open_within(store: Arc<dyn Store>, budget: Budget) -> Result<Self, RequestsError> {
        let requests = Self::new(store);
        *requests.large() = Ledger::new(budget);
        let newest = requests.store.scan(rows::event::newest()).await?;
        if let Some((key, bytes)) = newest.first() {
            requests
                .newest_event
                .send_replace(rows::event::row(key, bytes)?.0);
        }
        requests.count_large().await?;
        Ok(requests)
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Wakes when facts have changed. The value has no meaning: the listener reads the store.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Sends the id of each request whose facts changed; a listener that lags reads all requests.
    pub fn changed(&self) -> broadcast::Receiver<B256> {
        self.changed.subscribe()
    }

    /// The number of the newest durable event; wakes when there is a newer one.
    pub fn newest_event(&self) -> watch::Receiver<u64> {
        self.newest_event.subscribe()
    }

    pub async fn by_id(&self, id: &B256) -> Result<Option<Request>, RequestsError> {
        let found = self.kept(id).await?;
        let request = found.map(|kept| rows::request::decode(kept.row()?));
        Ok(request.transpose()?)
    }

    /// The row of a quote or request. A quote becomes a request and never the reverse, so reading in this order finds
    /// one of the two.
    async fn kept(&self, id: &B256) -> Result<Option<Kept>, RequestsError> {
        let keys = [rows::quote::key(id), rows::request::key(id)];
        let mut found = self.store.read_all(&keys).await?.into_iter();
        let (quote, request) = (found.next().flatten(), found.next().flatten());
        Ok(quote.map(Kept::Quote).or(request.map(Kept::Request)))
    }

    pub async fn by_order(&self, order: &B256) -> Result<Option<Request>, RequestsError> {
        let Some(found) = self.store.read(&rows::order::key(order)).await? else {
            return Ok(None);
        };
        self.by_id(&rows::order::decode(&found)?).await
    }

    /// The facts of a request; empty for a new or unknown one.
    pub async fn facts(&self, id: &B256) -> Result<Facts, RequestsError> {
        let found = self.store.read(&rows::facts::key(id)).await?;
        let facts = found.map(|bytes| rows::facts::decode(&bytes)).transpose()?;
        Ok(facts.unwrap_or_default())
    }

    /// Changes the facts of `id` and commits `with` in the same step. Another change in between makes `change` run
    /// again; where it changes nothing, only `with` is committed. Refused when a precondition of `with` does not
    /// hold; commits nothing for an unknown request. `now` in unix milliseconds.
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
            let moving = [
                rows::facts::key(id),
                rows::summary::key(id),
                rows::quote::key(id),
            ];
            let batch = self.rows_of(&stored, &mut after, now, with.clone()).await?;
            match self.changed_by(id, batch).await? {
                None => return Ok(after),
                Some(key) if moving.contains(&key) => {}
                Some(_) => return Err(RequestsError::Refused),
            }
        }
    }

    /// As [`Requests::record`], for a decision based on the facts `seen`: refused when the stored facts differ.
    /// Durable even where `change` changes nothing.
    pub async fn decide(
        &self,
        Seen { id, facts: seen }: Seen<'_>,
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
            let same = with.expect(rows::facts::key(id), Expect::unchanged(stored.bytes));
            self.apply(same).await?;
            return Ok(after);
        }
        let batch = self.rows_of(&stored, &mut after, now, with).await?;
        match self.changed_by(id, batch).await? {
            None => Ok(after),
            Some(_) => Err(RequestsError::Refused),
        }
    }

    /// Commits a change of the facts of `id` and announces it. Returns the key of the row that refused it.
    async fn changed_by(&self, id: &B256, batch: Batch) -> Result<Option<Key>, RequestsError> {
        match self.store.commit(batch).await? {
            Outcome::Refused { key, .. } => Ok(Some(key)),
            Outcome::Applied { number } => {
                self.large().remove(id);
                self.announce(id, number);
                Ok(None)
            }
        }
    }

    /// The durable events after number `after`, oldest first, with their numbers.
    pub async fn events(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Event)>, RequestsError> {
        let newest = *self.newest_event.borrow();
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

    /// The durable events of the request `id` after number `after`, oldest first, with their numbers; leaves out
    /// deleted ones.
    pub async fn events_of(
        &self,
        id: &B256,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Event)>, RequestsError> {
        let newest = *self.newest_event.borrow();
        let led = rows::history::after(id, after, limit);
        let mut numbers = Vec::new();
        for (key, value) in self.store.scan(led).await? {
            let (_, number) = rows::history::row(&key, &value)?;
            numbers.extend((number <= newest).then_some(number));
        }
        let keys: Vec<_> = numbers.iter().copied().map(rows::event::key).collect();
        let found = self.store.read_all(&keys).await?;
        let rows = keys.iter().zip(found);
        let rows = rows.filter_map(|(key, bytes)| Some(rows::event::row(key, &bytes?)));
        Ok(rows.collect::<Result<_, _>>()?)
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

    /// Adds to `with` the rows of the change from `stored` to `after`; sets the version and time of `after`.
    async fn rows_of(
        &self,
        stored: &Stored,
        after: &mut Facts,
        now: u64,
        with: Batch,
    ) -> Result<Batch, RequestsError> {
        after.version = stored.facts.version + 1;
        after.updated_at = now.max(stored.facts.updated_at);
        let key = rows::facts::key(&stored.id);
        let batch = with.swap(key, stored.bytes.clone(), rows::facts::encode(after)?);
        let batch = rows::tx_details::wanted(batch, &stored.id, (&stored.facts, after), now)?;
        // Retention may delete a quote between two reads of a caller that is about to act on it.
        let kept = self.kept(&stored.id).await?;
        let kept = kept.ok_or(RequestsError::Unknown(stored.id))?;
        let request = rows::request::decode(kept.row()?)?;
        let batch = kept.acted_on(&stored.id, batch)?;
        let changed = Changed {
            request: &request,
            before: Some(&stored.facts),
            after,
        };
        let batch = summaries::changed(&*self.store, batch, changed).await?;
        match event::of(&request, &stored.facts, after) {
            Some(event) => {
                let lead = rows::history::lead(&stored.id);
                Ok(batch.append_led(rows::EVENT, rows::event::encode(&event)?, lead))
            }
            None => Ok(batch),
        }
    }

    async fn apply(&self, batch: Batch) -> Result<(), RequestsError> {
        if batch.is_empty() {
            return Ok(());
        }
        let applied = self.store.commit(batch).await?.is_applied();
        applied.then_some(()).ok_or(RequestsError::Refused)
    }

    /// Announces that the facts of `id`, and all events up to `number`, are durable.
    fn announce(&self, id: &B256, number: Option<u64>) {
        if let Some(number) = number {
            self.newest_event.send_if_modified(|newest| {
                let newer = number > *newest;
                *newest = number.max(*newest);
                newer
            });
        }
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
        // There may be no listener.
        let _ = self.changed.send(*id);
    }
}

/// The row of a quote or of a request.
enum Kept {
    Quote(Vec<u8>),
    Request(Vec<u8>),
}

impl Kept {
    /// The bytes of the request row.
    fn row(&self) -> Result<&[u8], RowError> {
        match self {
            Self::Quote(bytes) => Ok(rows::quote::split(bytes)?.1),
            Self::Request(bytes) => Ok(bytes),
        }
    }

    /// Adds to `batch` that the quote becomes a request; refused when it already is one, or was deleted.
    fn acted_on(&self, id: &B256, batch: Batch) -> Result<Batch, RowError> {
        let Self::Quote(bytes) = self else {
            return Ok(batch);
        };
        let key = rows::quote::key(id);
        let batch = match rows::quote::is_large(bytes) {
            true => batch.delete(rows::large::key(id)),
            false => batch,
        };
        Ok(batch
            .remove(key, bytes.clone())
            .put(rows::request::key(id), self.row()?.to_vec()))
    }
}

/// Facts as stored; empty for a request without any.
struct Stored {
    id: B256,
    facts: Facts,
    bytes: Option<Vec<u8>>,
}

#[cfg(test)]
mod tests;
