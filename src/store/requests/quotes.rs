//! Quotes in the store: insertion, and deletion of large ones to make room.

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
    /// As [`Self::insert_by`], without a caller.
    pub async fn insert(&self, request: &Request, with: Batch) -> Result<(), RequestsError> {
        self.insert_by(request, 0, with).await
    }

    /// Stores a new quote with the rows of `with`; durable when it returns. [`RequestsError::Refused`] for an id or
    /// order that exists. The first fact turns the quote into a request. `by` is a number that stands for the caller,
    /// whose budget a large quote uses.
    pub async fn insert_by(
        &self,
        request: &Request,
        by: u64,
        with: Batch,
    ) -> Result<(), RequestsError> {
        self.insert_all(slice::from_ref(request), by, with).await
    }

    /// As [`Self::insert_by`], for several quotes in one commit: all of them, or none.
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
                    valid_until: request.mined_until.unwrap_or(request.valid_until),
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

    /// Commits once every large quote has room.
    async fn placed(&self, large: &[(&Request, Large)], batch: Batch) -> Result<(), RequestsError> {
        for (request, one) in large {
            self.make_room(request, one.clone()).await?;
        }
        self.apply(batch).await
    }

    /// Deletes quotes until a large one has room, and counts that one.
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

    /// Deletes a quote, unless it was acted on.
    async fn forget(&self, id: &B256) -> Result<(), RequestsError> {
        let key = rows::quote::key(id);
        let Some(bytes) = self.store.read(&key).await? else {
            return Ok(());
        };
        let gone = retention::quote_rows(&rows::quote::decode(&bytes)?, &bytes);
        let batch = Batch::new().remove(key, bytes);
        let batch = gone.into_iter().fold(batch, Batch::delete);
        // A refusal means that the quote was just acted on.
        self.store.commit(batch).await?;
        Ok(())
    }

    /// Records that all blocks of `network` up to this time (unix seconds) are indexed, so that large quotes before
    /// it become due.
    pub fn reached(&self, network: &str, time: u64) {
        self.large().reach(network, time);
    }

    pub(in crate::store) fn large(&self) -> MutexGuard<'_, Ledger> {
        self.large.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the large quotes of a store that nothing writes to yet.
    pub(super) async fn count_large(&self) -> Result<(), RequestsError> {
        let mut walk = Walk::of(&**self.store(), rows::LARGE);
        while let Some((key, bytes)) = walk.next().await? {
            let id = rows::large::request(&key)?;
            self.large().add(id, Large::decode(&bytes)?);
        }
        Ok(())
    }
}

/// Adds the rows of a new quote to `batch`.
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
