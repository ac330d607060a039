//! Keeps the solver going: requests with open work are looked at whenever their facts change and
//! every so often, some at a time, each by one at a time.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use alloy::primitives::B256;
use tokio::{task::JoinSet, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::{Solver, SolverError, settle::Settler};
use crate::store::rows::open;

/// Rows read at once.
const PAGE: usize = 256;

/// How the worker goes about it.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How often everything open is looked at.
    pub poll: Duration,
    /// Requests looked at at a time.
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

/// See the module.
pub struct Worker {
    pub solver: Arc<Solver>,
    /// Unset where no oracle is asked.
    pub settler: Option<Arc<Settler>>,
    pub pace: Pace,
    /// Unix milliseconds.
    pub clock: fn() -> u64,
}

/// What is under way.
#[derive(Default)]
struct Round {
    tasks: JoinSet<(B256, u64)>,
    busy: HashSet<B256>,
    queue: VecDeque<B256>,
    /// The version of the facts that a request was last looked at with.
    seen: HashMap<B256, u64>,
}

impl Worker {
    /// Works until `stop`; what is under way then is finished first.
    pub async fn run(self, stop: CancellationToken) {
        let mut background = JoinSet::new();
        background.spawn(Self::tend(self.solver.clone(), self.pace.poll, self.clock));
        if let Some(settler) = self.settler.clone() {
            background.spawn(Self::settle(settler, self.pace.poll, self.clock));
        }
        let mut changes = self.solver.requests.changes();
        let mut tick = tokio::time::interval(self.pace.poll);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut round = Round::default();
        loop {
            let found = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(done) = round.tasks.join_next() => {
                    round.finished(done.ok());
                    Ok(())
                }
                _ = tick.tick() => self.collect(&mut round, true).await,
                Ok(()) = changes.changed() => self.collect(&mut round, false).await,
            };
            if let Err(error) = found {
                tracing::error!(%error, "open requests cannot be read");
            }
            self.start(&mut round);
        }
        while let Some(done) = round.tasks.join_next().await {
            round.finished(done.ok());
        }
        background.shutdown().await;
    }

    /// Queues what is open: all of it, or what has changed since it was last looked at.
    async fn collect(&self, round: &mut Round, all: bool) -> Result<(), SolverError> {
        let mut after = None;
        let mut open = HashSet::new();
        loop {
            let range = open::range(after.as_ref(), PAGE);
            let rows = self.solver.requests.store().scan(range).await?;
            for (key, value) in &rows {
                let id = open::decode(key, value)?;
                open.insert(id);
                if round.busy.contains(&id) || round.queue.contains(&id) {
                    continue;
                }
                let fresh = || async {
                    let facts = self.solver.requests.facts(&id).await?;
                    Ok::<_, SolverError>(round.seen.get(&id) != Some(&facts.version))
                };
                if all || fresh().await? {
                    round.queue.push_back(id);
                }
            }
            if rows.len() < PAGE {
                break;
            }
            after = rows.into_iter().next_back().map(|(key, _)| key);
        }
        round.seen.retain(|id, _| open.contains(id));
        metrics::gauge!("intentd_solver_open_requests")
            .set(u32::try_from(open.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    fn start(&self, round: &mut Round) {
        while round.tasks.len() < self.pace.at_once {
            let Some(id) = round.queue.pop_front() else {
                return;
            };
            round.busy.insert(id);
            let (solver, now) = (self.solver.clone(), (self.clock)());
            round.tasks.spawn(async move {
                let version = solver.requests.facts(&id).await;
                if let Err(error) = solver.advance(&id, now).await {
                    tracing::warn!(request = %id, %error, "request waits");
                    metrics::counter!("intentd_solver_errors_total").increment(1);
                }
                (id, version.map_or(0, |facts| facts.version))
            });
        }
    }

    async fn tend(solver: Arc<Solver>, poll: Duration, clock: fn() -> u64) {
        loop {
            for lane in solver.lanes.values() {
                if let Err(error) = lane.sweep(clock() / 1_000).await {
                    let network = lane.site.name.as_str();
                    tracing::warn!(network, %error, "lane cannot be looked after");
                }
            }
            tokio::time::sleep(poll).await;
        }
    }

    async fn settle(settler: Arc<Settler>, poll: Duration, clock: fn() -> u64) {
        loop {
            if let Err(error) = settler.round(clock()).await {
                tracing::warn!(%error, "settlements wait");
            }
            tokio::time::sleep(poll).await;
        }
    }
}

impl Round {
    fn finished(&mut self, done: Option<(B256, u64)>) {
        match done {
            Some((id, version)) => {
                self.busy.remove(&id);
                self.seen.insert(id, version);
            }
            // A task that panicked does not say whose it was: all are looked at again.
            None => self.busy.clear(),
        }
    }
}
