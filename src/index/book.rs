//! Facts of requests and the rows of the index, changed in one commit each.

use vm::B256;

use crate::{
    request::{
        Request,
        fact::{Deposit, Facts},
    },
    store::{
        Batch,
        requests::{Requests, RequestsError},
        rows::{
            open, sighting,
            transaction::{self, Outcome, Tracked},
        },
    },
};

use super::apply;

/// See the module.
#[derive(Clone)]
pub struct Book {
    pub requests: Requests,
}

/// A deposit of a known request, with its transaction's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub request: &'a Request,
    pub deposit: &'a Deposit,
    pub transaction: &'a [u8],
}

impl Book {
    /// Records that a deposit is in a block. `Ok(false)`: nothing was new. `now` in unix milliseconds.
    pub async fn seen(&self, entry: Entry<'_>, now: u64) -> Result<bool, RequestsError> {
        let Entry {
            request, deposit, ..
        } = entry;
        let facts = self.requests.facts(&request.id).await?;
        if !apply::has_room(request, &facts, deposit) {
            let (request, transaction) = (request.id, deposit.transaction.as_str());
            tracing::error!(%request, transaction, "too many deposits for one order: left out");
            metrics::counter!("intentd_index_deposits_left_out_total").increment(1);
            return Ok(false);
        }
        let change = |facts: &mut Facts| apply::seen(facts, deposit);
        let news = is_news(&facts, change);
        let key = sighting::key(&deposit.network, deposit.place.number, &deposit.onchain_id);
        let seen = sighting::encode(&sighting::Seen {
            hash: deposit.place.hash,
            request: Some(request.id),
        })?;
        let stored = self.requests.store().read(&key).await?;
        if !news && stored.as_ref() == Some(&seen) {
            return Ok(false);
        }
        let mut batch = Batch::new().put(key, seen);
        let tracked = self.found(entry, now).await?;
        let settled = transaction::settled(&deposit.network, entry.transaction);
        batch = batch.put(settled, tracked.encode()?);
        if news {
            batch = opened(batch, request.id, deposit.onchain_id, now);
        }
        self.requests
            .record(&request.id, now, batch, change)
            .await?;
        Ok(true)
    }

    /// Records that the block of a sighting left the chain.
    pub async fn lost(
        &self,
        network: &str,
        row: &sighting::Row,
        now: u64,
    ) -> Result<(), RequestsError> {
        let key = sighting::key(network, row.number, &row.onchain_id);
        let batch = Batch::new().delete(key);
        let Some(request) = row.seen.request else {
            self.requests.store().commit(batch).await?;
            return Ok(());
        };
        let change = |facts: &mut Facts| apply::lost(facts, row.onchain_id, row.seen.hash);
        let batch = match is_news(&self.requests.facts(&request).await?, change) {
            true => opened(batch, request, row.onchain_id, now),
            false => batch,
        };
        self.requests.record(&request, now, batch, change).await?;
        Ok(())
    }

    /// The transaction's row with this request among its own.
    async fn found(&self, entry: Entry<'_>, now: u64) -> Result<Tracked, RequestsError> {
        let network = &entry.deposit.network;
        let key = transaction::settled(network, entry.transaction);
        let stored = self.requests.store().read(&key).await?;
        let stored = stored.map(|bytes| Tracked::decode(&bytes)).transpose()?;
        let mut tracked = stored.unwrap_or(Tracked {
            text: entry.deposit.transaction.clone(),
            requests: Vec::new(),
            claimed: false,
            outcome: Outcome::Included,
            tries: 0,
            first: now,
            next: 0,
        });
        tracked.outcome = Outcome::Included;
        if !tracked.requests.contains(&entry.request.id) {
            tracked.requests.push(entry.request.id);
        }
        Ok(tracked)
    }
}

fn is_news(before: &Facts, change: impl Fn(&mut Facts)) -> bool {
    let mut after = before.clone();
    change(&mut after);
    after != *before
}

/// `batch`, and the request open for the solver because of `cause`.
pub fn opened(batch: Batch, request: B256, cause: B256, now: u64) -> Batch {
    batch.put(open::key(&request), open::encode(now, &cause))
}
