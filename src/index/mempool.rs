//! Deposits that wait for a block, on chains whose providers show them: one watcher per network. A waiting deposit makes
//! its request pending. One that is replaced or dropped leaves its request as it was before: nothing is paid because of
//! a waiting deposit. What a quorum shows is kept with its time: where the market file says so, the order's price holds
//! by it.
//!
//! A waiting deposit is a transaction of the user's among the request's facts, and a row of the transactions that are
//! looked for, so that it outlives the process ([`submitted`](super::submitted)).

mod vanished;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::future::join_all;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use vm::{
    B256, Block, Chain, ReadError, TxRef,
    trade::{Mempool, WaitingTx},
};

use super::{IndexError, apply};
use crate::{
    request::{
        Execution, Request,
        fact::{Facts, Inclusion, Sent, State, Waited},
        mismatch::mismatch,
    },
    store::{
        Batch,
        requests::{Requests, unless_forgotten},
        rows::{
            TRANSACTION,
            transaction::{self, Outcome, Tracked},
        },
        walk::Walk,
    },
};

/// Rounds in which no provider shows a transaction before its network's quorum is asked where it is: a new block takes
/// some time to all providers.
const MISSED: u32 = 3;
/// Rounds between two looks whether the block that has a transaction, and is not final, is still on the chain.
const INCLUDED: u32 = 20;
/// Of the time between two blocks, the part between two rounds.
const PARTS: u64 = 200;
/// The pause between two rounds in milliseconds, at least and at most.
const PAUSE: (u64, u64) = (1_000, 10_000);

/// Watches for deposits of one network.
pub struct Watcher {
    network: String,
    chain: Chain,
    pools: Pools,
    requests: Requests,
    /// Unset until the store was read.
    waiting: Option<WaitingDeposits>,
}

/// Waiting deposits by the transaction's bytes, until their block is final.
type WaitingDeposits = BTreeMap<Vec<u8>, WaitingDeposit>;

/// The memory pools of a network's providers.
pub struct Pools {
    pub all: Vec<Arc<dyn Mempool>>,
    /// How many of them have to show the same.
    pub required: usize,
}

/// A transaction that waits, with the requests that it pays for.
struct WaitingDeposit {
    transaction: TxRef,
    requests: Vec<B256>,
    /// Rounds since a provider showed it last.
    missed: u32,
    /// A quorum has shown it.
    agreed: bool,
    whereabouts: Whereabouts,
}

/// Where the quorum had a transaction.
enum Whereabouts {
    /// In no block yet.
    Waiting,
    /// In a block that is not final.
    In(Block),
    /// In a block that has left the chain.
    Left,
}

impl WaitingDeposit {
    /// Whether providers are asked for it by name. What is in a block waits nowhere.
    const fn is_asked_for(&self) -> bool {
        !self.requests.is_empty() && !matches!(self.whereabouts, Whereabouts::In(_))
    }
}

/// A transaction that providers show.
struct Shown {
    waiting: WaitingTx,
    /// By how many of them.
    by: usize,
}

impl Watcher {
    /// For the network that orders call `network`.
    pub fn new(network: &str, chain: Chain, pools: Pools, requests: Requests) -> Self {
        Self {
            network: network.to_owned(),
            chain,
            pools,
            requests,
            waiting: None,
        }
    }

    /// Looks again and again until `shutdown`, some hundred times in the time between two blocks. `clock` gives unix
    /// milliseconds.
    pub async fn run(
        mut self,
        block_seconds: u64,
        clock: fn() -> u64,
        shutdown: CancellationToken,
    ) {
        let pause = block_seconds.saturating_mul(1_000) / PARTS;
        let pause = Duration::from_millis(pause.clamp(PAUSE.0, PAUSE.1));
        let rounds = async {
            loop {
                if let Err(error) = self.round(clock()).await {
                    tracing::warn!(network = self.network, %error, "waiting deposits not seen");
                }
                sleep(pause).await;
            }
        };
        shutdown.run_until_cancelled(rounds).await;
    }

    /// Looks once. `now` in unix milliseconds.
    pub async fn round(&mut self, now: u64) -> Result<(), IndexError> {
        let mut waiting = match self.waiting.take() {
            Some(waiting) => waiting,
            None => self.stored().await?,
        };
        let done = self.look(&mut waiting, now).await;
        self.waiting = Some(waiting);
        done
    }

    async fn look(&self, waiting: &mut WaitingDeposits, now: u64) -> Result<(), IndexError> {
        let asked = waiting.values().filter(|one| one.is_asked_for());
        let asked: Vec<_> = asked.map(|one| one.transaction.clone()).collect();
        let (shown, whole) = self.shown(&asked).await?;
        for (id, one) in &shown {
            let before = waiting.remove(id);
            // One that a block had is recorded anew.
            let before = before.filter(|one| matches!(one.whereabouts, Whereabouts::Waiting));
            let mut deposit = match before {
                Some(deposit) => deposit,
                None => self.record_waiting(&one.waiting, now).await?,
            };
            deposit.missed = 0;
            let agree = one.by >= self.pools.required && !deposit.agreed;
            let agreed = match agree {
                true => self.agree(&deposit, now).await,
                false => Ok(()),
            };
            deposit.agreed |= agree && agreed.is_ok();
            waiting.insert(id.clone(), deposit);
            agreed?;
        }
        // A provider that does not answer may be the one that has it.
        if !whole {
            return Ok(());
        }
        waiting.retain(|id, deposit| {
            let is_shown = shown.contains_key(id);
            if !is_shown {
                deposit.missed = deposit.missed.saturating_add(1);
            }
            is_shown || !deposit.requests.is_empty()
        });
        self.follow(waiting, now).await
    }

    /// What the providers show that answer, and whether all of them do. An error where none does. Each is `asked` for
    /// these by name, too: strangers may fill what a provider lists.
    async fn shown(&self, asked: &[TxRef]) -> Result<(BTreeMap<Vec<u8>, Shown>, bool), ReadError> {
        let (mut all, mut failure) = (BTreeMap::<_, Shown>::new(), None);
        let mut answered = false;
        let pools = self.pools.all.iter();
        for answer in join_all(pools.map(|pool| pool.waiting(asked))).await {
            match answer {
                Ok(waiting) => {
                    answered = true;
                    let each = waiting.into_iter();
                    // A provider counts once, however often it shows a transaction.
                    let each = each.map(|one| (one.transaction.bytes.to_vec(), one));
                    for (id, waiting) in each.collect::<BTreeMap<_, _>>() {
                        all.entry(id).or_insert(Shown { waiting, by: 0 }).by += 1;
                    }
                }
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if !answered => Err(error),
            failure => Ok((all, failure.is_none())),
        }
    }

    /// Records a transaction that waits with the requests that it pays for.
    async fn record_waiting(
        &self,
        one: &WaitingTx,
        now: u64,
    ) -> Result<WaitingDeposit, IndexError> {
        let mut requests = BTreeSet::new();
        for deposit in &one.deposits {
            let Some(order) = apply::order(deposit) else {
                continue;
            };
            let request = self.requests.by_order(&order).await?;
            let paid = request.filter(|request| self.pays(request, &one.transaction, deposit));
            requests.extend(paid.map(|request| request.id));
        }
        let waiting = WaitingDeposit {
            transaction: one.transaction.clone(),
            requests: requests.into_iter().collect(),
            missed: 0,
            agreed: false,
            whereabouts: Whereabouts::Waiting,
        };
        let key = transaction::looked_for(&self.network, &one.transaction.bytes);
        let row = Tracked {
            text: one.transaction.text.to_string(),
            requests: waiting.requests.clone(),
            claimed: None,
            outcome: Outcome::Waiting,
            tries: 0,
            first: now,
            next: now,
        };
        let row = row.encode()?;
        for request in &waiting.requests {
            let batch = Batch::new().put(key.clone(), row.clone());
            let change = |facts: &mut Facts| self.add_unless_included(facts, &one.transaction);
            let recorded = self.requests.record(request, now, batch, change).await;
            unless_forgotten(recorded)?;
        }
        Ok(waiting)
    }

    /// Records since when a quorum shows a transaction waiting.
    async fn agree(&self, waiting: &WaitingDeposit, now: u64) -> Result<(), IndexError> {
        let seen = Waited {
            network: self.network.clone(),
            transaction: waiting.transaction.text.to_string(),
            since: now / 1_000,
        };
        for request in &waiting.requests {
            let change = |facts: &mut Facts| apply::waited(facts, &seen);
            let recorded = self.requests.record(request, now, Batch::new(), change);
            unless_forgotten(recorded.await)?;
        }
        Ok(())
    }

    /// Whether a waiting deposit would pay for the request, and is its user's.
    fn pays(&self, request: &Request, transaction: &TxRef, deposit: &vm::Deposit) -> bool {
        let nowhere = Inclusion {
            number: 0,
            hash: B256::ZERO,
            time: 0,
        };
        let user = self.chain.spec.family.address(&request.user);
        let own = user.is_ok_and(|user| user == deposit.depositor) && !deposit.named_by_other;
        let deposit = apply::deposit(&self.network, transaction, &nowhere, deposit);
        own && request.execution == Execution::Solver && mismatch(request, &deposit).is_none()
    }

    /// Adds the transaction, unless it is in a block.
    fn add_unless_included(&self, facts: &mut Facts, transaction: &TxRef) {
        let same = |one: &crate::request::fact::Deposit| {
            one.network == self.network && *one.transaction == *transaction.text
        };
        if facts.standing().any(same) {
            return;
        }
        let sent = Sent {
            network: self.network.clone(),
            transaction: transaction.text.to_string(),
            state: State::Broadcast,
        };
        apply::own(facts, &sent);
    }

    /// The deposits that waited before the process began.
    async fn stored(&self) -> Result<WaitingDeposits, IndexError> {
        let store = &**self.requests.store();
        let mut walk = Walk::under(store, TRANSACTION, vec![transaction::LOOKED_FOR]);
        let mut waiting = BTreeMap::new();
        while let Some((key, value)) = walk.next().await? {
            let row = transaction::row(&key, &value)?;
            let pays = row.network == self.network && !row.tracked.requests.is_empty();
            let found = self.chain.spec.family.tx(&row.tracked.text, None);
            if let Some(transaction) = found.ok().filter(|_| pays) {
                let deposit = WaitingDeposit {
                    transaction,
                    requests: row.tracked.requests,
                    missed: 0,
                    agreed: false,
                    whereabouts: Whereabouts::Waiting,
                };
                waiting.insert(row.id, deposit);
            }
        }
        Ok(waiting)
    }
}

#[cfg(test)]
mod tests;
