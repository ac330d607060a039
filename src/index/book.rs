//! Facts of requests and the rows of the index, changed in one commit each.

use vm::B256;

use crate::{
    request::{
        Request,
        fact::{Deposit, Facts},
        mismatch::mismatch,
        reason::{FailReason, RefundFailReason},
    },
    store::{
        Batch,
        requests::{Requests, RequestsError, unless_forgotten},
        rows::{
            open,
            parked::{self, Parked},
            sighting,
            transaction::{self, Outcome, Tracked},
        },
    },
};

use super::apply;

/// Deposits of one order that are listed without a place in its facts: of those that are worth something,
/// and of the others.
const MOST_LEFT_OUT: usize = 32;
/// More parked deposits than one order has.
const MOST_SCANNED: usize = 2_048;
/// Why: nobody decides anything about it.
const LEFT_OUT: &str = "the order has too many deposits: its depositor recovers it at an oracle; as one provider shows it";

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
    /// More than one provider shows it, or there is only one.
    pub sure: bool,
}

impl Book {
    /// Records that a deposit is in a block. `Ok(false)`: nothing was new. An unknown request is one that
    /// was forgotten meanwhile. `now` in unix milliseconds.
    pub async fn seen(&self, entry: Entry<'_>, now: u64) -> Result<bool, RequestsError> {
        let Entry {
            request, deposit, ..
        } = entry;
        let facts = self.requests.facts(&request.id).await?;
        if !apply::has_room(request, &facts, deposit) {
            self.leave_out(request, deposit, now).await?;
            return Ok(false);
        }
        let change = |facts: &mut Facts| match entry.sure {
            true => apply::seen(facts, deposit),
            false => apply::shown(facts, deposit),
        };
        let news = is_news(&facts, change);
        if !news && !entry.sure {
            return Ok(false);
        }
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

    /// Lists a deposit that its order's facts have no place for, if not too many of its kind are listed.
    async fn leave_out(
        &self,
        request: &Request,
        deposit: &Deposit,
        now: u64,
    ) -> Result<(), RequestsError> {
        let key = parked::key(&request.id, &deposit.onchain_id);
        let minor = apply::is_small(request, deposit);
        let mut listed = 0;
        let rows = parked::of(&request.id, MOST_SCANNED);
        for (known, row) in self.requests.store().scan(rows).await? {
            if known == key {
                return Ok(());
            }
            let row = Parked::decode(&row)?;
            listed += usize::from(row.note == LEFT_OUT && row.minor == minor);
        }
        let (id, transaction) = (request.id, deposit.transaction.as_str());
        tracing::error!(request = %id, transaction, "too many deposits for one order: left out");
        metrics::counter!("intentd_index_deposits_left_out_total").increment(1);
        if listed >= MOST_LEFT_OUT {
            return Ok(());
        }
        let row = Parked {
            network: deposit.network.clone(),
            transaction: deposit.transaction.clone(),
            depositor: deposit.depositor.clone(),
            currency: deposit.currency.clone(),
            amount: deposit.amount,
            reason: mismatch(request, deposit).unwrap_or(FailReason::DoubleSpend),
            why: RefundFailReason::ManualRefundRequired,
            note: LEFT_OUT.to_owned(),
            minor,
            since: now,
        };
        let batch = Batch::new().put(key, row.encode()?);
        self.requests.store().commit(batch).await?;
        Ok(())
    }

    /// Records that the block of a sighting left the chain, as two providers say, or the only one.
    pub async fn lost(
        &self,
        network: &str,
        row: &sighting::Row,
        now: u64,
    ) -> Result<(), RequestsError> {
        let key = sighting::key(network, row.number, &row.onchain_id);
        let batch = Batch::new().delete(key.clone());
        let Some(request) = row.seen.request else {
            self.requests.store().commit(batch).await?;
            return Ok(());
        };
        let change = |facts: &mut Facts| apply::lost(facts, row.onchain_id, row.seen.hash);
        let batch = match is_news(&self.requests.facts(&request).await?, change) {
            true => opened(batch, request, row.onchain_id, now),
            false => batch,
        };
        let recorded = self.requests.record(&request, now, batch, change).await;
        if unless_forgotten(recorded)?.is_none() {
            let row = Batch::new().delete(key);
            self.requests.store().commit(row).await?;
        }
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
            claimed: None,
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        request::{fact::Standing, scene},
        store::memory::MemoryStore,
    };

    fn deposit(number: u64, depositor: &str, amount: u64) -> Deposit {
        Deposit {
            onchain_id: vm::U256::from(number).into(),
            depositor: depositor.into(),
            amount: vm::Amount::from(amount),
            ..scene::deposit(1, Standing::Included)
        }
    }

    #[tokio::test]
    async fn deposits_without_a_place_are_listed_for_the_operator_up_to_a_bound() {
        let book = Book {
            requests: Requests::new(Arc::new(MemoryStore::new())),
        };
        let request = scene::request(1);
        let insert = book.requests.insert(&request, Batch::new());
        insert.await.unwrap();
        let show = async |deposit: Deposit| {
            let entry = Entry {
                request: &request,
                deposit: &deposit,
                transaction: &[1; 32],
                sure: true,
            };
            book.seen(entry, 5).await.unwrap()
        };
        // As many as there are places for, and then some: dust of strangers, then halves of the user's.
        let (dust, half) = ((scene::USDC, 1), (scene::USER, 60_000_000));
        for (first, (name, amount)) in [(0, dust), (1_000, half)] {
            for number in first..first + 200 {
                show(deposit(number, name, amount)).await;
            }
        }
        let listed = async || {
            let rows = parked::of(&request.id, usize::MAX);
            let rows = book.requests.store().scan(rows).await.unwrap();
            let rows = rows.iter().map(|(_, row)| Parked::decode(row).unwrap());
            rows.collect::<Vec<_>>()
        };
        let of = |rows: &[Parked], minor| rows.iter().filter(|row| row.minor == minor).count();
        let rows = listed().await;
        assert_eq!((of(&rows, true), of(&rows, false)), (32, 32));
        let mut real = rows.iter().filter(|row| !row.minor);
        let first = real.next().unwrap();
        assert_eq!((first.depositor.as_str(), first.since), (scene::USER, 5));
        assert_eq!(first.reason, FailReason::DepositedAmountTooLowToFill);
        // What is listed is listed once, and what has a place in no list.
        assert!(!show(deposit(1_199, scene::USER, 60_000_000)).await);
        assert!(show(deposit(2_000, scene::USER, 100_000_000)).await);
        assert_eq!(listed().await.len(), 64);
    }
}
