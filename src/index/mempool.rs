//! Deposits that wait for a block, on chains whose providers show them: one watcher per network. A deposit that is
//! sighted makes its request pending. One that is replaced or dropped leaves its request as it was before: nothing is
//! paid because of a sighting. What a quorum shows is kept with its time: where the market file says so, the order's
//! price holds by it.
//!
//! A sighting is a transaction of the user's among the request's facts, and a row of the transactions that are looked
//! for, so that it outlives the process ([`submitted`](super::submitted)).

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
    /// What was sighted, by the transaction's bytes; unset until the store was read.
    known: Option<Known>,
}

type Known = BTreeMap<Vec<u8>, Watched>;

/// The memory pools of a network's providers.
pub struct Pools {
    pub all: Vec<Arc<dyn Mempool>>,
    /// How many of them have to show the same.
    pub required: usize,
}

/// A transaction that waits, with the requests that it pays for.
struct Watched {
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

impl Watched {
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
            known: None,
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
        let mut known = match self.known.take() {
            Some(known) => known,
            None => self.stored().await?,
        };
        let done = self.look(&mut known, now).await;
        self.known = Some(known);
        done
    }

    async fn look(&self, known: &mut Known, now: u64) -> Result<(), IndexError> {
        let sighted = known.values().filter(|one| one.is_asked_for());
        let sighted: Vec<_> = sighted.map(|one| one.transaction.clone()).collect();
        let (waiting, whole) = self.waiting(&sighted).await?;
        for (id, shown) in &waiting {
            let before = known.remove(id);
            // One that a block had is sighted anew.
            let before = before.filter(|one| matches!(one.whereabouts, Whereabouts::Waiting));
            let mut sighting = match before {
                Some(sighting) => sighting,
                None => self.sight(&shown.waiting, now).await?,
            };
            sighting.missed = 0;
            let agree = shown.by >= self.pools.required && !sighting.agreed;
            let agreed = match agree {
                true => self.agree(&sighting, now).await,
                false => Ok(()),
            };
            sighting.agreed |= agree && agreed.is_ok();
            known.insert(id.clone(), sighting);
            agreed?;
        }
        // A provider that does not answer may be the one that has it.
        if !whole {
            return Ok(());
        }
        known.retain(|id, sighting| {
            let is_shown = waiting.contains_key(id);
            if !is_shown {
                sighting.missed = sighting.missed.saturating_add(1);
            }
            is_shown || !sighting.requests.is_empty()
        });
        self.follow(known, now).await
    }

    /// What the providers show that answer, and whether all of them do. An error where none does. Each is asked for the
    /// `sighted` ones by name: strangers may fill what a provider lists.
    async fn waiting(
        &self,
        sighted: &[TxRef],
    ) -> Result<(BTreeMap<Vec<u8>, Shown>, bool), ReadError> {
        let (mut all, mut failure) = (BTreeMap::<_, Shown>::new(), None);
        let mut answered = false;
        let pools = self.pools.all.iter();
        for answer in join_all(pools.map(|pool| pool.waiting(sighted))).await {
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
    async fn sight(&self, one: &WaitingTx, now: u64) -> Result<Watched, IndexError> {
        let mut requests = BTreeSet::new();
        for deposit in &one.deposits {
            let Some(order) = apply::order(deposit) else {
                continue;
            };
            let request = self.requests.by_order(&order).await?;
            let paid = request.filter(|request| self.pays(request, &one.transaction, deposit));
            requests.extend(paid.map(|request| request.id));
        }
        let sighting = Watched {
            transaction: one.transaction.clone(),
            requests: requests.into_iter().collect(),
            missed: 0,
            agreed: false,
            whereabouts: Whereabouts::Waiting,
        };
        let key = transaction::watched(&self.network, &one.transaction.bytes);
        let row = Tracked {
            text: one.transaction.text.to_string(),
            requests: sighting.requests.clone(),
            claimed: None,
            outcome: Outcome::Waiting,
            tries: 0,
            first: now,
            next: now,
        };
        let row = row.encode()?;
        for request in &sighting.requests {
            let batch = Batch::new().put(key.clone(), row.clone());
            let change = |facts: &mut Facts| self.sighted(facts, &one.transaction);
            let recorded = self.requests.record(request, now, batch, change).await;
            unless_forgotten(recorded)?;
        }
        Ok(sighting)
    }

    /// Records since when a quorum shows a transaction waiting.
    async fn agree(&self, sighting: &Watched, now: u64) -> Result<(), IndexError> {
        let seen = Waited {
            network: self.network.clone(),
            transaction: sighting.transaction.text.to_string(),
            since: now / 1_000,
        };
        for request in &sighting.requests {
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
    fn sighted(&self, facts: &mut Facts, transaction: &TxRef) {
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

    /// What was sighted before the process began.
    async fn stored(&self) -> Result<Known, IndexError> {
        let store = &**self.requests.store();
        let mut walk = Walk::under(store, TRANSACTION, vec![transaction::WATCHED]);
        let mut known = BTreeMap::new();
        while let Some((key, value)) = walk.next().await? {
            let row = transaction::row(&key, &value)?;
            let sighted = row.network == self.network && !row.tracked.requests.is_empty();
            let found = self.chain.spec.family.tx(&row.tracked.text, None);
            if let Some(transaction) = found.ok().filter(|_| sighted) {
                let sighting = Watched {
                    transaction,
                    requests: row.tracked.requests,
                    missed: 0,
                    agreed: false,
                    whereabouts: Whereabouts::Waiting,
                };
                known.insert(row.id, sighting);
            }
        }
        Ok(known)
    }
}

#[cfg(test)]
mod tests;
