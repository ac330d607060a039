//! Quotes in the store: how one gets its place there, and how one is forgotten for another's.

use std::{
    slice,
    sync::{MutexGuard, PoisonError},
};

use alloy::primitives::B256;

use super::{Requests, RequestsError};
use crate::{
    request::Request,
    store::{
        Batch, Expect,
        large::{Ledger, Room},
        retention,
        rows::{self, large::Large},
        walk::Walk,
    },
};

impl Requests {
    /// As [`Self::insert_by`], for nobody in particular.
    pub async fn insert(&self, request: &Request, with: Batch) -> Result<(), RequestsError> {
        self.insert_by(request, 0, with).await
    }

    /// Stores a new quote with the rows of `with`; durable when it returns. An id or order that
    /// exists is [`RequestsError::Refused`]. It becomes a request when something is seen of it. `by`
    /// stands for who asked: a large one has its place among the caller's.
    pub async fn insert_by(
        &self,
        request: &Request,
        by: u64,
        with: Batch,
    ) -> Result<(), RequestsError> {
        self.insert_all(slice::from_ref(request), by, with).await
    }

    /// As [`Self::insert_by`], several quotes in one commit: all of them, or none.
    pub async fn insert_all(
        &self,
        requests: &[Request],
        by: u64,
        with: Batch,
    ) -> Result<(), RequestsError> {
        self.room()?;
        let (mut batch, mut large) = (with, Vec::new());
        for request in requests {
            let row = rows::quote::encode(request)?;
            if rows::quote::is_large(&row) {
                let one = Large {
                    bytes: row.len() as u64,
                    by,
                    keyed: request.api_key.is_some(),
                    network: request.origin.network.clone(),
                    valid_until: request.valid_until,
                };
                batch = batch.put(rows::large::key(&request.id), one.encode()?);
                large.push((request, one));
            }
            batch = with_rows(batch, request, row);
        }
        let stored = self.placed(&large, batch).await;
        if stored.is_err() {
            let mut ledger = self.large();
            large
                .iter()
                .for_each(|(request, _)| ledger.remove(&request.id));
        }
        stored
    }

    /// Commits once every large quote has its place.
    async fn placed(&self, large: &[(&Request, Large)], batch: Batch) -> Result<(), RequestsError> {
        for (request, one) in large {
            self.make_room(request, one.clone()).await?;
        }
        self.apply(batch).await
    }

    /// Forgets what makes room for a large quote, and takes its place.
    async fn make_room(&self, request: &Request, large: Large) -> Result<(), RequestsError> {
        loop {
            let room = self.large().take(request.id, large.clone());
            match room {
                Room::Taken => return Ok(()),
                Room::Full => return Err(RequestsError::TooLarge),
                Room::After(first) => {
                    self.forget(&first).await?;
                    self.large().remove(&first);
                }
            }
        }
    }

    /// Forgets a quote, unless it was acted on.
    async fn forget(&self, id: &B256) -> Result<(), RequestsError> {
        let key = rows::quote::key(id);
        let Some(bytes) = self.store.read(&key).await? else {
            return Ok(());
        };
        let gone = retention::quote_rows(&rows::quote::decode(&bytes)?, &bytes);
        let batch = Batch::new()
            .expect(key.clone(), Expect::Equals(bytes))
            .delete(key);
        let batch = gone.into_iter().fold(batch, Batch::delete);
        // Refused: it is acted on just now.
        self.store.commit(batch).await?;
        Ok(())
    }

    /// All blocks of `network` up to one of this time, in unix seconds, are indexed: what is asked of the
    /// past there is over.
    pub fn reached(&self, network: &str, time: u64) {
        self.large().reach(network, time);
    }

    pub(in crate::store) fn large(&self) -> MutexGuard<'_, Ledger> {
        self.large.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the large quotes of a store that nobody writes to yet.
    pub(super) async fn count_large(&self) -> Result<(), RequestsError> {
        let mut walk = Walk::of(&**self.store(), rows::LARGE);
        loop {
            let page = walk.page().await?;
            if page.is_empty() {
                return Ok(());
            }
            for (key, bytes) in page {
                let id = rows::large::request(&key)?;
                self.large().add(id, Large::decode(&bytes)?);
            }
        }
    }
}

/// `batch`, and the rows of a new quote.
fn with_rows(batch: Batch, request: &Request, row: Vec<u8>) -> Batch {
    let order = rows::order::key(&request.order_id);
    let key = rows::quote::key(&request.id);
    batch
        .expect(key.clone(), Expect::Absent)
        .expect(rows::request::key(&request.id), Expect::Absent)
        .expect(order.clone(), Expect::Absent)
        .put(key, row)
        .put(order, rows::order::encode(&request.id))
}
