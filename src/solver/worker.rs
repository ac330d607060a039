//! The solver's loop. A request with open work is looked at when its facts change, and at every poll.
//! Each way (origin and destination) has a queue with a limit of its own: a network that does not answer
//! delays only the ways that begin or end there. No two tasks look at one request.

mod looks;

use std::{
    collections::{BTreeMap, HashSet, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use alloy::primitives::B256;
use futures::future::join_all;
use tokio::{sync::broadcast::error::RecvError, task::JoinSet, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use self::looks::{Looked, Looks, Open, Way, pause};
use super::{Solver, SolverError, account::SolverAccount, judge::Next, settle::Settler};
use crate::store::{
    rows::{OPEN, open},
    walk::Walk,
};

/// Between two reconciliations.
const RECONCILED: Duration = Duration::from_secs(60);

/// Milliseconds between looks at approvals that are there.
const APPROVALS: u64 = 60_000;

/// How often and how much the worker does.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How often every open request is looked at.
    pub poll: Duration,
    /// Requests of one way looked at at a time.
    pub at_once: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(2),
            at_once: 32,
        }
    }
}

/// The solver's loop, before it runs.
pub struct Worker {
    pub solver: Arc<Solver>,
    /// Unset where no oracle is asked.
    pub settler: Option<Arc<Settler>>,
    pub pace: Pace,
    /// Unix milliseconds.
    pub clock: fn() -> u64,
}

impl Worker {
    /// Works until `stop`, and finishes what is under way then.
    pub async fn run(self, stop: CancellationToken) {
        let mut background = JoinSet::new();
        let accounts: BTreeMap<_, _> = self.solver.accounts.iter().collect();
        let accounts = accounts.into_values().chain(&self.solver.former);
        // The account on a settlement chain that is not traded on has gaps and attempts to tend, too.
        for account in accounts.chain(&self.solver.settling) {
            let (solver, account) = (self.solver.clone(), account.clone());
            background.spawn(Self::tend(solver, account, self.pace.poll, self.clock));
        }
        if let Some(settler) = self.settler.clone() {
            let (poll, clock) = (self.pace.poll, self.clock);
            background.spawn(async move { settler.run(poll, clock).await });
        }
        let reconciling = Self::reconcile(self.solver.clone(), self.clock);
        background.spawn(reconciling);
        let mut news = self.solver.requests.changed();
        // Before the first survey, orders that could be paid would be put off. Each account is vouched for before it.
        let present = self.solver.present();
        let surveyed = present.map(|account| account.chain.surveyed());
        stop.run_until_cancelled(join_all(surveyed)).await;
        let mut tick = tokio::time::interval(self.pace.poll);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looks = Looks::default();
        loop {
            let found = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(done) = looks.tasks.join_next_with_id() => match looks.finished(done) {
                    Some(id) => self.hear(&mut looks, id).await,
                    None => Ok(()),
                },
                _ = tick.tick() => self.collect(&mut looks).await,
                heard = news.recv() => match heard {
                    Ok(id) => self.hear(&mut looks, id).await,
                    Err(RecvError::Lagged(_)) => {
                        looks.missed();
                        self.collect(&mut looks).await
                    }
                    Err(RecvError::Closed) => break,
                },
            };
            if let Err(error) = found {
                tracing::error!(%error, "open requests cannot be read");
            }
            self.start(&mut looks);
        }
        while looks.tasks.join_next().await.is_some() {}
        background.shutdown().await;
    }

    /// Queues what is open and due.
    async fn collect(&self, looks: &mut Looks) -> Result<(), SolverError> {
        let (store, now) = (self.solver.requests.store(), (self.clock)());
        let (mut walk, mut found) = (Walk::of(&**store, OPEN), HashSet::new());
        while let Some((key, value)) = walk.next().await? {
            let id = open::decode(&key, &value)?;
            found.insert(id);
            let known = self.known(looks, &id).await;
            if known.is_some_and(|known| known.is_due(now)) {
                looks.queue(id);
            }
        }
        looks
            .open
            .retain(|id, known| known.taken || found.contains(id));
        metrics::gauge!("intentd_solver_open_requests")
            .set(u32::try_from(found.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Queues a request whose facts have changed, if it is open.
    async fn hear(&self, looks: &mut Looks, id: B256) -> Result<(), SolverError> {
        let taken = looks.open.get_mut(&id).filter(|known| known.taken);
        if let Some(known) = taken {
            known.news = true;
            return Ok(());
        }
        let row = self.solver.requests.store().read(&open::key(&id)).await?;
        if row.is_some() && self.known(looks, &id).await.is_some() {
            looks.queue(id);
        }
        Ok(())
    }

    /// What is known of an open request. One that cannot be read is left out, and holds up no other.
    async fn known<'a>(&self, looks: &'a mut Looks, id: &B256) -> Option<&'a Open> {
        let known = match looks.open.entry(*id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => match self.way(id).await {
                Ok(way) => {
                    for network in [&way.0, &way.1] {
                        let opened =
                            network.is_empty() || self.solver.accounts.contains_key(network);
                        if !opened && looks.unopened.insert(network.clone()) {
                            tracing::warn!(network, "not opened: its open orders wait");
                        }
                    }
                    place.insert(Open::new(way))
                }
                Err(error) => {
                    tracing::error!(request = %id, %error, "an open request cannot be read");
                    metrics::counter!("intentd_solver_unreadable_total").increment(1);
                    return None;
                }
            },
        };
        Some(known)
    }

    async fn way(&self, id: &B256) -> Result<Way, SolverError> {
        let request = self.solver.requests.by_id(id).await?;
        let ends = request.map(|request| (request.origin.network, request.destination.network));
        Ok(ends.unwrap_or_default())
    }

    fn start(&self, looks: &mut Looks) {
        for queue in looks.queues.values_mut() {
            while queue.running < self.pace.at_once {
                let Some((_, id)) = queue.waiting.pop_first() else {
                    break;
                };
                queue.running += 1;
                let errors = looks.open.get(&id).map_or(0, |known| known.errors);
                let look = Self::look(self.solver.clone(), id, self.clock, errors);
                looks.busy.insert(looks.tasks.spawn(look).id(), id);
            }
        }
    }

    /// Looks at a request that failed so often before.
    async fn look(solver: Arc<Solver>, id: B256, clock: fn() -> u64, errors: u32) -> Looked {
        let version = solver.requests.facts(&id).await;
        let next = solver.advance(&id, clock()).await;
        if let Err(error) = &next {
            tracing::warn!(request = %id, %error, "request waits");
            metrics::counter!("intentd_solver_errors_total").increment(1);
        }
        Looked {
            version: version.map_or(0, |facts| facts.version),
            until: match next {
                Ok(Next::Until(at)) => at,
                Ok(_) => 0,
                Err(_) => (clock() / 1_000).saturating_add(pause(errors)),
            },
            failed: next.is_err(),
        }
    }

    async fn tend(
        solver: Arc<Solver>,
        account: Arc<SolverAccount>,
        poll: Duration,
        clock: fn() -> u64,
    ) {
        let network = account.chain.name.as_str();
        let mut due = 0;
        loop {
            let now = clock();
            // What the store does not know of is looked for before anything is paid: payments wait for the survey.
            let vouched = tokio::time::timeout(poll, account.vouch()).await;
            if let Ok(Err(error)) = vouched {
                tracing::debug!(network, %error, "the store is not known to be current");
            }
            // The survey comes first: after a start all callers wait for it.
            if (account.chain.is_unsure() || due <= now)
                && let Err(error) = account.chain.survey().await
            {
                tracing::warn!(network, %error, "the market file cannot be compared with the chain");
            }
            if let Err(error) = account.sweep(now / 1_000).await {
                tracing::warn!(network, %error, "lane cannot be looked after");
            }
            if due <= now {
                let there = solver.approve_ahead(&account, now).await;
                let there = there
                    .inspect_err(|error| tracing::warn!(network, %error, "approvals wait"))
                    .unwrap_or(true);
                if there {
                    due = now.saturating_add(APPROVALS);
                }
            }
            tokio::time::sleep(poll).await;
        }
    }

    async fn reconcile(solver: Arc<Solver>, clock: fn() -> u64) {
        loop {
            if let Err(error) = solver.reconcile(clock()).await {
                tracing::error!(%error, "what was paid cannot be reconciled");
            }
            tokio::time::sleep(RECONCILED).await;
        }
    }
}
