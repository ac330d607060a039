//! One look at one transaction, through its network's quorum.

use std::sync::Arc;

use vm::{B256, Block, Head, Kept, ReadError, Receipt, Transaction, TxRef};

use super::{Network, SubmittedError, Transactions, is_own};
use crate::{
    index::{IndexError, apply, recorder::Entry},
    request::{
        Request,
        fact::{Facts, Inclusion, Sent, State},
    },
    store::{
        Batch,
        requests::unless_forgotten,
        rows::transaction::{self, Outcome, Row},
    },
};

/// Milliseconds before the second look; each later pause is twice as long.
const FIRST: u64 = 1_000;
/// The longest such pause, in milliseconds.
const SLOWEST: u64 = 60_000;
/// Milliseconds after which a transaction that is in no block is looked for rarely.
const SELDOM_AFTER: u64 = 600_000;
/// Milliseconds between two looks from then on.
const SELDOM: u64 = 600_000;
/// Milliseconds after which a transaction that is in no block is given up, unless its network's memory pools are watched.
const GIVE_UP: u64 = 6 * 3_600_000;
/// The same for one that no caller assigned to a request.
const GIVE_UP_UNCLAIMED: u64 = 600_000;

/// What one look found of a transaction.
struct Reading {
    transaction: TxRef,
    head: Head,
    /// It may be large.
    found: Kept<Transaction>,
}

impl Transactions {
    /// Looks for a row's transaction and records what it finds. Without an answer the row waits.
    pub(super) async fn look(&self, row: &Row, now: u64) -> Result<(), IndexError> {
        let Some(network) = self.networks.get(&row.network) else {
            return self.later(row, now).await;
        };
        let family = network.chain.spec.family;
        let Ok(transaction) = family.tx(&row.tracked.text, None) else {
            return self.settled(row, Outcome::GivenUp, now).await;
        };
        let Ok(reading) = read(network, transaction).await else {
            return self.later(row, now).await;
        };
        let finality = &network.chain.spec.finality;
        let settled = |block: &Block| finality.met(block, &reading.head);
        let mut used = false;
        let (state, done, outcome, act) = match &*reading.found {
            Transaction::Missing => return self.missing(row, network, now).await,
            Transaction::Failed(failure) => {
                let place = Inclusion::from(&failure.block);
                let reason = None;
                let act = (failure.references.as_slice(), failure.outer_call);
                let done = settled(&failure.block);
                (
                    State::Reverted { place, reason },
                    done,
                    Outcome::Failed,
                    act,
                )
            }
            Transaction::Succeeded(receipt) => {
                used = self
                    .deposits(&row.network, &reading.transaction, receipt, now)
                    .await?;
                let place = Inclusion::from(&receipt.block);
                let act = (receipt.references.as_slice(), receipt.outer_call);
                match settled(&receipt.block) {
                    true => (State::Confirmed(place), true, Outcome::Included, act),
                    false => (State::Included(place), false, Outcome::Included, act),
                }
            }
        };
        let owners = self.owners(&row.network, act).await?;
        self.own(row, &owners, &state, now).await?;
        let finished = owners.is_empty() || done;
        if finished {
            let nobodys = done && owners.is_empty() && !used;
            self.lately.found(&row.network, &row.id, (nobodys, now));
        }
        let row = belonging(row, owners);
        match finished {
            true => self.settled(&row, outcome, now).await,
            false => self.soon(&row, network, outcome, now).await,
        }
    }

    /// Looks for a transaction that may only be submitted once it is in a block, while the caller waits. What all callers
    /// may have looked for at a time is bounded ([`LookPermits`](super::permits::LookPermits)); beyond it is busy.
    pub(super) async fn look_now(
        &self,
        name: &str,
        transaction: &TxRef,
        now: u64,
    ) -> Result<(), SubmittedError> {
        let unknown = || SubmittedError::UnknownChain(name.to_owned());
        let network = self.networks.get(name).ok_or_else(unknown)?;
        let permits = self.permits.get(name).ok_or_else(unknown)?;
        let missing = || SubmittedError::NotIncluded(transaction.text.to_string());
        if self.lately.lacks(name, &transaction.bytes, now) {
            return Err(missing());
        }
        let _permit = permits.enter(now).await.ok_or(SubmittedError::Busy)?;
        let reading = read(network, transaction.clone()).await;
        let reading = reading.map_err(IndexError::from)?;
        let (block, used) = match &*reading.found {
            Transaction::Missing => {
                self.lately.missed(name, &transaction.bytes, now);
                return Err(missing());
            }
            Transaction::Failed(failure) => (&failure.block, false),
            Transaction::Succeeded(receipt) => {
                let used = self.deposits(name, transaction, receipt, now);
                (&receipt.block, used.await?)
            }
        };
        let nobodys = !used && network.chain.spec.finality.met(block, &reading.head);
        self.lately.found(name, &transaction.bytes, (nobodys, now));
        Ok(())
    }

    /// Records the deposits of known orders by their users; the tail finds everybody else's. Returns whether there is
    /// any, or may be: what cannot be attributed now can be later.
    async fn deposits(
        &self,
        network: &str,
        transaction: &TxRef,
        receipt: &Receipt,
        now: u64,
    ) -> Result<bool, IndexError> {
        let mut used = receipt.deposits.is_err();
        // What cannot be attributed is no deposit of anybody's.
        for found in receipt.deposits.iter().flatten() {
            let Some(order) = apply::order(found) else {
                continue;
            };
            let request = self.recorder.requests.by_order(&order).await?;
            let users = |request: &Request| self.is_users(network, request, found);
            let Some(request) = request.filter(users) else {
                continue;
            };
            let place = Inclusion::from(&receipt.block);
            let deposit = apply::deposit(network, transaction, &place, found);
            let entry = Entry {
                deposit: &deposit,
                transaction: &transaction.bytes,
                sure: true,
            };
            unless_forgotten(self.recorder.seen(&request, &[entry], now).await)?;
            used = true;
        }
        Ok(used)
    }

    fn is_users(&self, network: &str, request: &Request, found: &vm::Deposit) -> bool {
        let network = self.networks.get(network);
        let user = network.map(|network| network.chain.spec.family.address(&request.user));
        user.is_some_and(|user| user.is_ok_and(|user| user == found.depositor))
    }

    /// The requests whose users' own transaction on `network` it is: it names their orders, and its
    /// sender and call are the quotes'.
    async fn owners(
        &self,
        network: &str,
        (references, outer_call): (&[Arc<str>], Option<B256>),
    ) -> Result<Vec<B256>, IndexError> {
        let mut owners = Vec::new();
        let Some(call) = outer_call else {
            return Ok(owners);
        };
        for order in references.iter().filter_map(|text| text.parse().ok()) {
            let found = self.recorder.requests.by_order(&order).await?;
            let own = |one: &Request| is_own(one, network) && one.own_call == Some(call);
            owners.extend(found.filter(own).map(|request| request.id));
        }
        Ok(owners)
    }

    async fn own(
        &self,
        row: &Row,
        requests: &[B256],
        state: &State,
        now: u64,
    ) -> Result<(), IndexError> {
        let sent = Sent {
            network: row.network.clone(),
            transaction: row.tracked.text.clone(),
            state: state.clone(),
        };
        for request in requests {
            let change = |facts: &mut Facts| apply::own(facts, &sent);
            let all = &self.recorder.requests;
            let recorded = all.record(request, now, Batch::new(), change).await;
            unless_forgotten(recorded)?;
        }
        Ok(())
    }

    async fn disown(&self, row: &Row, request: &B256, now: u64) -> Result<(), IndexError> {
        let change = |facts: &mut Facts| {
            apply::disowned(facts, &row.network, &row.tracked.text);
        };
        let all = &self.recorder.requests;
        let recorded = all.record(request, now, Batch::new(), change).await;
        unless_forgotten(recorded)?;
        Ok(())
    }

    async fn missing(&self, row: &Row, network: &Network, now: u64) -> Result<(), IndexError> {
        let tracked = &row.tracked;
        if tracked.outcome != Outcome::Waiting {
            // Its block left the chain: it may be in another soon.
            for request in &tracked.requests {
                self.disown(row, request, now).await?;
            }
            self.own(row, &tracked.requests, &State::Broadcast, now)
                .await?;
        }
        let patience = match tracked.claimed.is_some() || !tracked.requests.is_empty() {
            true => GIVE_UP,
            false => GIVE_UP_UNCLAIMED,
        };
        // A memory pool may show it for days: who watches it ends what it shows no more (`mempool`).
        let pool_watched = network.pool_watched && !tracked.requests.is_empty();
        if pool_watched || now.saturating_sub(tracked.first) < patience {
            return self.later(row, now).await;
        }
        for request in &tracked.requests {
            self.disown(row, request, now).await?;
        }
        self.settled(row, Outcome::GivenUp, now).await
    }

    /// Schedules the next look, each time after a longer pause.
    async fn later(&self, row: &Row, now: u64) -> Result<(), IndexError> {
        let mut next = row.clone();
        let old = now.saturating_sub(row.tracked.first) >= SELDOM_AFTER;
        let wait = match old && row.tracked.requests.is_empty() {
            true => SELDOM,
            false => (FIRST << row.tracked.tries.min(6)).min(SLOWEST),
        };
        next.tracked.tries = row.tracked.tries.saturating_add(1);
        next.tracked.outcome = Outcome::Waiting;
        next.tracked.next = now.saturating_add(wait);
        self.keep(&next).await
    }

    /// Schedules the next look after the next block.
    async fn soon(
        &self,
        row: &Row,
        network: &Network,
        outcome: Outcome,
        now: u64,
    ) -> Result<(), IndexError> {
        let mut next = row.clone();
        let wait = network.block_seconds.saturating_mul(1_000);
        next.tracked.outcome = outcome;
        next.tracked.tries = next.tracked.tries.max(1);
        next.tracked.next = now.saturating_add(wait.clamp(FIRST, SLOWEST));
        self.keep(&next).await
    }

    /// Stores the row. Where it has changed or is gone since it was read, it stays so: the next round reads it anew.
    async fn keep(&self, row: &Row) -> Result<(), IndexError> {
        let key = transaction::looked_for(&row.network, &row.id);
        let batch = Batch::new().swap(key, Some(row.stored.clone()), row.tracked.encode()?);
        self.recorder.requests.store().commit(batch).await?;
        Ok(())
    }

    /// Ends the search, unless the row has changed since it was read: then the next round looks again. What belongs to
    /// nobody's request is forgotten.
    async fn settled(&self, row: &Row, outcome: Outcome, now: u64) -> Result<(), IndexError> {
        let store = self.recorder.requests.store();
        let key = transaction::settled(&row.network, &row.id);
        let looked_for = transaction::looked_for(&row.network, &row.id);
        let mut batch = Batch::new().remove(looked_for, row.stored.clone());
        // Where a deposit was recorded, the row exists already, with the requests that it belongs to.
        if !row.tracked.requests.is_empty() && store.read(&key).await?.is_none() {
            let mut tracked = row.tracked.clone();
            tracked.outcome = outcome;
            tracked.next = now;
            batch = batch.put(key, tracked.encode()?);
        }
        store.commit(batch).await?;
        Ok(())
    }
}

/// `row` with these requests among its own.
fn belonging(row: &Row, requests: Vec<B256>) -> Row {
    let mut row = row.clone();
    for id in requests {
        if !row.tracked.requests.contains(&id) {
            row.tracked.requests.push(id);
        }
    }
    row
}

async fn read(network: &Network, transaction: TxRef) -> Result<Reading, ReadError> {
    let head = network.chain.reader.fresh_head().await?;
    let found = network
        .chain
        .reader
        .transaction(&transaction, &head)
        .await?;
    Ok(Reading {
        transaction,
        head,
        found: Kept::new(found),
    })
}
