//! The lease of something that may have one holder; the holder proves it with every commit (the row:
//! [`rows::lease`]).

use super::{
    Batch, Expect, Key, Store,
    requests::RequestsError,
    rows::{self, lease::Lease},
};

/// A lease as its holder knows it.
#[derive(Clone, Debug)]
pub struct Held {
    key: Key,
    row: Vec<u8>,
}

impl Held {
    /// Takes the lease of `what` from its holder. `None` when another process took it at the same moment. `now` in
    /// unix milliseconds.
    pub async fn take(
        store: &dyn Store,
        what: &str,
        now: u64,
    ) -> Result<Option<Self>, RequestsError> {
        let key = rows::lease::key(what);
        let found = store.read(&key).await?;
        let before = found.as_deref().map(Lease::decode).transpose()?;
        let fence = before.map_or(1, |lease| lease.fence + 1);
        let row = Lease { fence, since: now }.encode()?;
        let batch = Batch::new().swap(key.clone(), found, row.clone());
        let taken = store.commit(batch).await?.is_applied();
        Ok(taken.then_some(Self { key, row }))
    }

    /// An empty commit of this holder; the store refuses it once there is another holder.
    pub fn batch(&self) -> Batch {
        self.with(Batch::new())
    }

    /// Makes `batch` a commit of this holder.
    pub fn with(&self, batch: Batch) -> Batch {
        batch.expect(self.key.clone(), Expect::Equals(self.row.clone()))
    }

    /// Whether this holder is still the current one.
    pub async fn stands(&self, store: &dyn Store) -> Result<bool, RequestsError> {
        Ok(store.read(&self.key).await?.as_ref() == Some(&self.row))
    }
}
