//! One look at one transaction, through its network's quorum.

use std::sync::Arc;

use vm::{B256, Block, Head, ReadError, Receipt, Transaction, TxRef};

use super::{ManualError, Network, Transactions};
use crate::{
    index::{IndexError, apply, book::Entry},
    request::{
        Execution, Request,
        fact::{Facts, Sent, State},
    },
    store::{
        Batch,
        rows::transaction::{self, Outcome, Row},
    },
};

/// Milliseconds until the second look; each later one takes twice as long, up to [`SLOWEST`].
const FIRST: u64 = 1_000;
/// See [`FIRST`].
const SLOWEST: u64 = 60_000;
/// Milliseconds after which a transaction that no block has is given up.
const GIVE_UP: u64 = 6 * 3_600_000;
/// The same for one that nobody says belongs to a request.
const GIVE_UP_UNCLAIMED: u64 = 600_000;

/// What a transaction is at one look.
struct Sight {
    transaction: TxRef,
    head: Head,
    found: Transaction,
}

impl Transactions {
    /// Looks for a row's transaction and records what is there. Without an answer the row waits.
    pub(super) async fn look(&self, row: &Row, now: u64) -> Result<(), IndexError> {
        let Some(network) = self.networks.get(&row.network) else {
            return self.later(row, now).await;
        };
        let family = network.chain.spec.family;
        let Ok(transaction) = family.tx(&row.tracked.text, None) else {
            return self.settled(row, Outcome::GivenUp, now).await;
        };
        let Ok(sight) = sight(network, transaction).await else {
            return self.later(row, now).await;
        };
        let finality = &network.chain.spec.finality;
        let settled = |block: &Block| finality.met(block, &sight.head);
        match &sight.found {
            Transaction::Missing => self.missing(row, now).await,
            Transaction::Failed(block) => {
                let state = State::Reverted {
                    place: apply::place(block),
                    reason: None,
                };
                let hinted = self.hinted(row).await?;
                self.own(row, &hinted, &state, now).await?;
                match hinted.is_empty() || settled(block) {
                    true => self.settled(row, Outcome::Failed, now).await,
                    false => self.soon(row, network, Outcome::Failed, now).await,
                }
            }
            Transaction::Succeeded(receipt) => {
                self.deposits(&row.network, &sight.transaction, receipt, now)
                    .await?;
                let done = settled(&receipt.block);
                let owners = self.owned(row, receipt, done, now).await?;
                let finished = owners.is_empty() || done;
                let row = belonging(row, owners);
                match finished {
                    true => self.settled(&row, Outcome::Included, now).await,
                    false => self.soon(&row, network, Outcome::Included, now).await,
                }
            }
        }
    }

    /// Looks for a transaction that may only be told of once it is in a block.
    pub(super) async fn at_once(
        &self,
        name: &str,
        transaction: &TxRef,
        now: u64,
    ) -> Result<(), ManualError> {
        let unknown = || ManualError::UnknownChain(name.to_owned());
        let network = self.networks.get(name).ok_or_else(unknown)?;
        let sight = sight(network, transaction.clone()).await;
        match sight.map_err(IndexError::from)?.found {
            Transaction::Missing => Err(ManualError::NotIncluded(transaction.text.to_string())),
            Transaction::Failed(_) => Ok(()),
            Transaction::Succeeded(receipt) => {
                Ok(self.deposits(name, transaction, &receipt, now).await?)
            }
        }
    }

    /// Records the deposits of known orders.
    async fn deposits(
        &self,
        network: &str,
        transaction: &TxRef,
        receipt: &Receipt,
        now: u64,
    ) -> Result<(), IndexError> {
        // What cannot be attributed is no deposit of anybody's.
        for found in receipt.deposits.iter().flatten() {
            let Some(order) = apply::order(found) else {
                continue;
            };
            let Some(request) = self.book.requests.by_order(&order).await? else {
                continue;
            };
            let place = apply::place(&receipt.block);
            let deposit = apply::deposit(network, transaction, &place, found);
            let entry = Entry {
                request: &request,
                deposit: &deposit,
                transaction: &transaction.bytes,
            };
            self.book.seen(entry, now).await?;
        }
        Ok(())
    }

    /// Records whose own transaction a successful one is: of the requests whose orders it names, and
    /// of no other that it was said to belong to. Answers with those requests.
    async fn owned(
        &self,
        row: &Row,
        receipt: &Receipt,
        done: bool,
        now: u64,
    ) -> Result<Vec<B256>, IndexError> {
        let place = apply::place(&receipt.block);
        let state = match done {
            true => State::Confirmed(place),
            false => State::Included(place),
        };
        let named = self.named(&row.network, &receipt.references).await?;
        self.own(row, &named, &state, now).await?;
        let ids: Vec<B256> = named.iter().map(|request| request.id).collect();
        for other in self.hinted(row).await? {
            if !ids.contains(&other.id) {
                self.disown(row, &other.id, now).await?;
            }
        }
        Ok(ids)
    }

    /// The requests, carried out by their users on `network`, whose orders a transaction names.
    async fn named(
        &self,
        network: &str,
        references: &[Arc<str>],
    ) -> Result<Vec<Request>, IndexError> {
        let mut named = Vec::new();
        for order in references.iter().filter_map(|text| text.parse().ok()) {
            let found = self.book.requests.by_order(&order).await?;
            named.extend(found.filter(|request| is_own(request, network)));
        }
        Ok(named)
    }

    /// The requests, carried out by their users, that the row's transaction was said to belong to.
    async fn hinted(&self, row: &Row) -> Result<Vec<Request>, IndexError> {
        let mut hinted = Vec::new();
        for id in &row.tracked.requests {
            let found = self.book.requests.by_id(id).await?;
            hinted.extend(found.filter(|request| is_own(request, &row.network)));
        }
        Ok(hinted)
    }

    async fn own(
        &self,
        row: &Row,
        requests: &[Request],
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
            let all = &self.book.requests;
            all.record(&request.id, now, Batch::new(), change).await?;
        }
        Ok(())
    }

    async fn disown(&self, row: &Row, request: &B256, now: u64) -> Result<(), IndexError> {
        let change = |facts: &mut Facts| {
            apply::disowned(facts, &row.network, &row.tracked.text);
        };
        let all = &self.book.requests;
        all.record(request, now, Batch::new(), change).await?;
        Ok(())
    }

    async fn missing(&self, row: &Row, now: u64) -> Result<(), IndexError> {
        let tracked = &row.tracked;
        if tracked.outcome != Outcome::Waiting {
            // Its block left the chain: it may be in another soon.
            for request in self.hinted(row).await? {
                self.disown(row, &request.id, now).await?;
                self.own(row, &[request], &State::Broadcast, now).await?;
            }
        }
        let patience = match tracked.requests.is_empty() {
            true => GIVE_UP_UNCLAIMED,
            false => GIVE_UP,
        };
        if now.saturating_sub(tracked.first) < patience {
            return self.later(row, now).await;
        }
        for request in self.hinted(row).await? {
            self.disown(row, &request.id, now).await?;
        }
        self.settled(row, Outcome::GivenUp, now).await
    }

    /// The next look, each time after a longer wait.
    async fn later(&self, row: &Row, now: u64) -> Result<(), IndexError> {
        let mut next = row.clone();
        let wait = FIRST << row.tracked.tries.min(6);
        next.tracked.tries = row.tracked.tries.saturating_add(1);
        next.tracked.outcome = Outcome::Waiting;
        next.tracked.next = now.saturating_add(wait.min(SLOWEST));
        self.keep(&next).await
    }

    /// The next look after a block: in one it is already.
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
        next.tracked.next = now.saturating_add(wait.clamp(FIRST, SLOWEST));
        self.keep(&next).await
    }

    async fn keep(&self, row: &Row) -> Result<(), IndexError> {
        let key = transaction::watched(&row.network, &row.id);
        let batch = Batch::new().put(key, row.tracked.encode()?);
        self.book.requests.store().commit(batch).await?;
        Ok(())
    }

    /// Looks no more. What belongs to nobody's request is forgotten.
    async fn settled(&self, row: &Row, outcome: Outcome, now: u64) -> Result<(), IndexError> {
        let store = self.book.requests.store();
        let key = transaction::settled(&row.network, &row.id);
        let mut batch = Batch::new().delete(transaction::watched(&row.network, &row.id));
        // Where a deposit was recorded its row is there already, with the requests it belongs to.
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

fn is_own(request: &Request, network: &str) -> bool {
    request.execution == Execution::User && request.origin.network == network
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

async fn sight(network: &Network, transaction: TxRef) -> Result<Sight, ReadError> {
    let head = network.chain.reader.fresh_head().await?;
    let found = network
        .chain
        .reader
        .transaction(&transaction, &head)
        .await?;
    Ok(Sight {
        transaction,
        head,
        found,
    })
}
