//! Changes the facts of requests and the rows of the index, in one commit each.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use vm::B256;

use crate::{
    request::{
        Request,
        fact::{Deposit, Facts},
        mismatch::mismatch,
        reason::{FailReason, RefundFailReason},
    },
    store::{
        Batch, Key,
        requests::{Requests, RequestsError, unless_forgotten},
        rows::{
            deposit_tx, open,
            parked::{self, Parked, Reasons},
            transaction::{self, Outcome, Tracked},
        },
    },
};

use super::{apply, listed::Listed};

/// Why such a deposit is listed: no solver decides anything about it.
const LEFT_OUT: &str = "the order has too many deposits: its depositor recovers it at an oracle; as one provider shows it";

/// Writes facts and index rows together.
#[derive(Clone)]
pub struct Recorder {
    pub requests: Requests,
}

/// A deposit of a known request, with its transaction's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub deposit: &'a Deposit,
    pub transaction: &'a [u8],
    /// Two providers show it, or there is only one provider.
    pub sure: bool,
}

impl Entry<'_> {
    fn apply(&self, facts: &mut Facts) {
        match self.sure {
            true => apply::seen(facts, self.deposit),
            false => apply::shown(facts, self.deposit),
        }
    }

    /// The row that remembers where the deposit was seen.
    fn row(&self, request: &Request) -> Result<(Key, Vec<u8>), RequestsError> {
        let Deposit {
            network,
            place,
            onchain_id,
            ..
        } = self.deposit;
        let seen = deposit_tx::Seen {
            hash: place.hash,
            request: Some(request.id),
        };
        let key = deposit_tx::key(network, place.number, onchain_id);
        Ok((key, deposit_tx::encode(&seen)?))
    }
}

impl Recorder {
    /// Records in one commit that deposits of one request are in blocks. `Ok(false)`: nothing was new. An unknown
    /// request is one that was forgotten meanwhile. `now` in unix milliseconds.
    pub async fn seen(
        &self,
        request: &Request,
        entries: &[Entry<'_>],
        now: u64,
    ) -> Result<bool, RequestsError> {
        let mut after = self.requests.facts(&request.id).await?;
        let (mut kept, mut left_out) = (Vec::new(), Vec::new());
        let (mut batch, mut cause) = (Batch::new(), None);
        for entry in entries {
            if !apply::has_room(request, &after, entry.deposit) {
                left_out.push(entry.deposit);
                continue;
            }
            let before = after.clone();
            entry.apply(&mut after);
            let news = after != before;
            if !news && !entry.sure {
                continue;
            }
            let (key, row) = entry.row(request)?;
            if !news && self.requests.store().read(&key).await?.as_ref() == Some(&row) {
                continue;
            }
            batch = batch.put(key, row);
            cause = cause.or(news.then_some(entry.deposit.onchain_id));
            kept.push(*entry);
        }
        if !kept.is_empty() {
            let mut batch = self.found(request, &kept, batch, now).await?;
            if let Some(cause) = cause {
                batch = opened(batch, request.id, cause, now);
            }
            let change = |facts: &mut Facts| kept.iter().for_each(|entry| entry.apply(facts));
            let recorded = self.requests.record(&request.id, now, batch, change);
            recorded.await?;
        }
        if !left_out.is_empty() {
            self.leave_out(request, &left_out, now).await?;
        }
        Ok(!kept.is_empty())
    }

    /// Lists deposits for which the order's facts have no room, unless too many of their kind are listed.
    async fn leave_out(
        &self,
        request: &Request,
        deposits: &[&Deposit],
        now: u64,
    ) -> Result<(), RequestsError> {
        let store = self.requests.store();
        let mut listed = Listed::of(&**store, &request.id).await?;
        let (mut batch, mut count) = (Batch::new(), 0_u64);
        for deposit in deposits {
            let key = parked::key(&request.id, &deposit.onchain_id);
            if !listed.is_new(&key) {
                continue;
            }
            count += 1;
            let row = left_out(request, deposit, now);
            if listed.takes(&row) {
                batch = batch.put(key, row.encode()?);
            }
        }
        if count > 0 {
            let first = deposits.first().map(|deposit| deposit.transaction.as_str());
            tracing::error!(request = %request.id, first, count, "too many deposits for one order: left out");
            metrics::counter!("intentd_index_deposits_left_out_total").increment(count);
            self.requests.store().commit(batch).await?;
        }
        Ok(())
    }

    /// Records that a deposit's block left the chain, as two providers say, or the only one.
    pub async fn lost(
        &self,
        network: &str,
        row: &deposit_tx::Row,
        now: u64,
    ) -> Result<(), RequestsError> {
        let key = deposit_tx::key(network, row.number, &row.onchain_id);
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

    /// `batch`, and the rows of the entries' transactions with this request among their own.
    async fn found(
        &self,
        request: &Request,
        entries: &[Entry<'_>],
        mut batch: Batch,
        now: u64,
    ) -> Result<Batch, RequestsError> {
        let keyed = entries.iter().map(|entry| {
            let key = transaction::settled(&entry.deposit.network, entry.transaction);
            (key, entry.deposit)
        });
        for (key, deposit) in keyed.collect::<BTreeMap<_, _>>() {
            let stored = self.requests.store().read(&key).await?;
            let stored = stored.map(|bytes| Tracked::decode(&bytes)).transpose()?;
            let mut tracked = stored.unwrap_or(Tracked {
                text: deposit.transaction.clone(),
                requests: Vec::new(),
                claimed: None,
                outcome: Outcome::Included,
                tries: 0,
                first: now,
                next: 0,
            });
            tracked.outcome = Outcome::Included;
            if !tracked.requests.contains(&request.id) {
                tracked.requests.push(request.id);
            }
            batch = batch.put(key, tracked.encode()?);
        }
        Ok(batch)
    }
}

/// The list's row of a deposit for which there was no room.
fn left_out(request: &Request, deposit: &Deposit, now: u64) -> Parked {
    let minor = apply::is_small(request, deposit);
    let reasons = Reasons {
        fill: mismatch(request, deposit).unwrap_or(FailReason::DoubleSpend),
        refund: RefundFailReason::ManualRefundRequired,
    };
    Parked::new(deposit, reasons, LEFT_OUT, minor, now)
}

fn is_news(before: &Facts, change: impl Fn(&mut Facts)) -> bool {
    let mut after = before.clone();
    change(&mut after);
    after != *before
}

/// `batch`, and the request opened for the solver because of `cause`. No two such rows are equal, even of one moment:
/// readers see by them that there is something new.
pub fn opened(batch: Batch, request: B256, mut cause: B256, now: u64) -> Batch {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    cause[24..].copy_from_slice(&count.to_be_bytes());
    batch.put(open::key(&request), open::encode(now, &cause))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        index::listed,
        request::{fact::Standing, fixtures},
        store::memory::MemoryStore,
    };

    fn deposit(number: u64, depositor: &str, amount: u64) -> Deposit {
        Deposit {
            onchain_id: vm::U256::from(number).into(),
            depositor: depositor.into(),
            amount: vm::Amount::from(amount),
            ..fixtures::deposit(1, Standing::Included)
        }
    }

    #[tokio::test]
    async fn deposits_without_a_place_are_listed_for_the_operator_up_to_a_bound() {
        let recorder = Recorder {
            requests: Requests::new(Arc::new(MemoryStore::new())),
        };
        let request = fixtures::request(1);
        let insert = recorder.requests.insert(&request, Batch::new());
        insert.await.unwrap();
        let show = async |deposit: Deposit| {
            let entry = Entry {
                deposit: &deposit,
                transaction: &[1; 32],
                sure: true,
            };
            recorder.seen(&request, &[entry], 5).await.unwrap()
        };
        // As many as there are places for, and then some: dust of strangers, then halves of the user's.
        let (dust, half) = ((fixtures::USDC, 1), (fixtures::USER, 60_000_000));
        for (first, (name, amount)) in [(0, dust), (1_000, half)] {
            for number in first..first + 200 {
                show(deposit(number, name, amount)).await;
            }
        }
        let listed = async || {
            let rows = parked::of(&request.id, usize::MAX);
            let rows = recorder.requests.store().scan(rows).await.unwrap();
            let rows = rows.iter().map(|(_, row)| Parked::decode(row).unwrap());
            rows.collect::<Vec<_>>()
        };
        let of = |rows: &[Parked], minor| rows.iter().filter(|row| row.minor == minor).count();
        let rows = listed().await;
        assert_eq!((of(&rows, true), of(&rows, false)), (32, 32));
        let mut real = rows.iter().filter(|row| !row.minor);
        let first = real.next().unwrap();
        assert_eq!((first.depositor.as_str(), first.since), (fixtures::USER, 5));
        assert_eq!(first.reason, FailReason::DepositedAmountTooLowToFill);
        // What is listed is listed once, and what has a place in no list.
        assert!(!show(deposit(1_199, fixtures::USER, 60_000_000)).await);
        assert!(show(deposit(2_000, fixtures::USER, 100_000_000)).await);
        assert_eq!(listed().await.len(), 64);
    }

    #[tokio::test]
    async fn all_deposits_of_a_request_are_one_commit() {
        let recorder = Recorder {
            requests: Requests::new(Arc::new(MemoryStore::new())),
        };
        let request = fixtures::request(1);
        let insert = recorder.requests.insert(&request, Batch::new());
        insert.await.unwrap();
        let dust = (0..200).map(|number| deposit(number, fixtures::USDC, 1));
        let whole = deposit(1_000, fixtures::USER, 100_000_000);
        let all: Vec<_> = dust.chain([whole]).collect();
        let entries = |sure| {
            all.iter().map(move |deposit| Entry {
                deposit,
                transaction: &[1; 32],
                sure,
            })
        };
        let shown: Vec<_> = entries(false).collect();
        assert_eq!(recorder.seen(&request, &shown, 5).await, Ok(true));
        let facts = recorder.requests.facts(&request.id).await.unwrap();
        // 64 of others have a place, and who pays has one of his own.
        assert_eq!((facts.version, facts.deposits.len()), (1, 65));
        assert_eq!(facts.deposits[64].amount, vm::Amount::from(100_000_000));
        let listed = async || {
            let rows = parked::of(&request.id, usize::MAX);
            recorder.requests.store().scan(rows).await.unwrap().len()
        };
        assert_eq!(listed().await, listed::MOST);
        let store = recorder.requests.store();
        let deposit_txs = store.scan(deposit_tx::range("origin", 0, usize::MAX));
        assert_eq!(deposit_txs.await.unwrap().len(), 65);
        let row = store.read(&transaction::settled("origin", &[1; 32])).await;
        let row = Tracked::decode(&row.unwrap().unwrap()).unwrap();
        assert_eq!(row.requests, [request.id]);
        // Shown again, and by two: nothing is new, nothing is listed twice.
        for sure in [false, true] {
            let again: Vec<_> = entries(sure).collect();
            assert_eq!(
                recorder.seen(&request, &again, 6).await,
                Ok(false),
                "{sure}"
            );
        }
        assert_eq!(listed().await, listed::MOST);
        assert_eq!(recorder.requests.facts(&request.id).await.unwrap(), facts);
    }
}
