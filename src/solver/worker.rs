//! Keeps the solver going: requests with open work are looked at whenever their facts change and
//! every so often, some of each way at a time, each by one at a time. A network that does not answer
//! holds up the ways that it is an end of, and no others.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use alloy::primitives::B256;
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::MissedTickBehavior,
};
use tokio_util::sync::CancellationToken;

use super::{Solver, SolverError, judge::Next, lane::Lane, settle::Settler};
use crate::store::rows::open;

/// Rows read at once.
const PAGE: usize = 256;

/// Between two reconciliations.
const RECONCILED: Duration = Duration::from_secs(60);

/// Milliseconds between looks at allowances that are there.
const ALLOWANCES: u64 = 60_000;

/// The longest pause of a request that cannot be looked at, in seconds: the first lasts one, each next
/// twice as long, until its facts change.
const LONGEST_PAUSE: u64 = 600;

/// How the worker goes about it.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How often everything open is looked at.
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

/// See the module.
pub struct Worker {
    pub solver: Arc<Solver>,
    /// Unset where no oracle is asked.
    pub settler: Option<Arc<Settler>>,
    pub pace: Pace,
    /// Unix milliseconds.
    pub clock: fn() -> u64,
}

/// The networks that a request goes from and to.
type Way = (String, String);

/// What is under way.
#[derive(Default)]
struct Round {
    tasks: JoinSet<Looked>,
    busy: HashMap<Id, B256>,
    queues: BTreeMap<Way, Queue>,
    /// How many have been queued.
    queued: u64,
    /// What is known of open requests.
    open: HashMap<B256, Open>,
}

#[derive(Default)]
struct Queue {
    /// Looks that brought nothing, turn, request: who has had few is before who has had many.
    waiting: BTreeSet<(u32, u64, B256)>,
    running: usize,
}

/// What a look at a request saw.
#[derive(Clone, Copy)]
struct Looked {
    /// The version of its facts.
    version: u64,
    /// Unix seconds before which nothing is to be done, unless the facts change.
    until: u64,
    failed: bool,
}

struct Open {
    way: Way,
    /// What the last look saw.
    seen: Option<Looked>,
    /// Looks since its facts changed, and how many of them failed, the last ones.
    looks: u32,
    errors: u32,
    /// It is queued, or being looked at.
    taken: bool,
}

impl Worker {
    /// Works until `stop`; what is under way then is finished first.
    pub async fn run(self, stop: CancellationToken) {
        let mut background = JoinSet::new();
        let lanes: BTreeMap<_, _> = self.solver.lanes.iter().collect();
        for lane in lanes.into_values().chain(&self.solver.former) {
            let (solver, lane) = (self.solver.clone(), lane.clone());
            background.spawn(Self::tend(solver, lane, self.pace.poll, self.clock));
        }
        if let Some(settler) = self.settler.clone() {
            background.spawn(Self::settle(settler, self.pace.poll, self.clock));
        }
        let books = Self::reconcile(self.solver.clone(), self.clock);
        background.spawn(books);
        let mut changes = self.solver.requests.changes();
        let mut tick = tokio::time::interval(self.pace.poll);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut round = Round::default();
        loop {
            let found = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(done) = round.tasks.join_next_with_id() => {
                    round.finished(done);
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
        while round.tasks.join_next().await.is_some() {}
        background.shutdown().await;
    }

    /// Queues what is open: all of it, or what has changed since it was last looked at.
    async fn collect(&self, round: &mut Round, all: bool) -> Result<(), SolverError> {
        let (requests, now) = (&self.solver.requests, (self.clock)());
        let mut after = None;
        let mut found = HashSet::new();
        loop {
            let range = open::range(after.as_ref(), PAGE);
            let rows = requests.store().scan(range).await?;
            for (key, value) in &rows {
                let id = open::decode(key, value)?;
                found.insert(id);
                let known = match round.open.entry(id) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(place) => place.insert(Open::new(self.way(&id).await?)),
                };
                if known.taken {
                    continue;
                }
                let seen = known.seen;
                let due = seen.is_none_or(|seen| seen.until.saturating_mul(1_000) <= now);
                let changed = match seen {
                    Some(seen) if !all || !due => {
                        seen.version != requests.facts(&id).await?.version
                    }
                    _ => true,
                };
                if changed {
                    round.queue(id);
                }
            }
            if rows.len() < PAGE {
                break;
            }
            after = rows.into_iter().next_back().map(|(key, _)| key);
        }
        round
            .open
            .retain(|id, known| known.taken || found.contains(id));
        metrics::gauge!("intentd_solver_open_requests")
            .set(u32::try_from(found.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    async fn way(&self, id: &B256) -> Result<Way, SolverError> {
        let request = self.solver.requests.by_id(id).await?;
        let ends = request.map(|request| (request.origin.network, request.destination.network));
        Ok(ends.unwrap_or_default())
    }

    fn start(&self, round: &mut Round) {
        for queue in round.queues.values_mut() {
            while queue.running < self.pace.at_once {
                let Some((_, _, id)) = queue.waiting.pop_first() else {
                    break;
                };
                queue.running += 1;
                let errors = round.open.get(&id).map_or(0, |known| known.errors);
                let look = Self::look(self.solver.clone(), id, self.clock, errors);
                round.busy.insert(round.tasks.spawn(look).id(), id);
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

    async fn tend(solver: Arc<Solver>, lane: Arc<Lane>, poll: Duration, clock: fn() -> u64) {
        let network = lane.site.name.as_str();
        let mut due = 0;
        loop {
            let now = clock();
            if let Err(error) = lane.sweep(now / 1_000).await {
                tracing::warn!(network, %error, "lane cannot be looked after");
            }
            if (lane.site.is_unsure() || due <= now)
                && let Err(error) = lane.site.survey().await
            {
                tracing::warn!(network, %error, "the market file cannot be compared with the chain");
            }
            if due <= now {
                let there = solver.allow_ahead(&lane, now).await;
                let there = there
                    .inspect_err(|error| tracing::warn!(network, %error, "allowances wait"))
                    .unwrap_or(true);
                if there {
                    due = now.saturating_add(ALLOWANCES);
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

    async fn settle(settler: Arc<Settler>, poll: Duration, clock: fn() -> u64) {
        loop {
            if let Err(error) = settler.round(clock()).await {
                tracing::warn!(%error, "settlements wait");
            }
            tokio::time::sleep(poll).await;
        }
    }
}

impl Open {
    fn new(way: Way) -> Self {
        Self {
            way,
            seen: None,
            looks: 0,
            errors: 0,
            taken: false,
        }
    }

    /// Takes note of a look; what other facts brought is forgotten.
    fn note(&mut self, seen: Looked) {
        if self
            .seen
            .is_some_and(|before| before.version != seen.version)
        {
            (self.looks, self.errors) = (0, 0);
        }
        self.looks = self.looks.saturating_add(1);
        self.errors = match seen.failed {
            true => self.errors.saturating_add(1),
            false => 0,
        };
        self.seen = Some(seen);
    }
}

/// Seconds until a request is looked at again that failed so often before this time.
fn pause(errors: u32) -> u64 {
    let length = 1_u64.checked_shl(errors).unwrap_or(u64::MAX);
    length.min(LONGEST_PAUSE)
}

impl Round {
    fn queue(&mut self, id: B256) {
        let Some(known) = self.open.get_mut(&id) else {
            return;
        };
        known.taken = true;
        let queue = self.queues.entry(known.way.clone()).or_default();
        self.queued = self.queued.wrapping_add(1);
        queue.waiting.insert((known.looks, self.queued, id));
    }

    /// One that panicked is looked at again like any other.
    fn finished(&mut self, done: Result<(Id, Looked), JoinError>) {
        let (task, seen) = match done {
            Ok((task, seen)) => (task, Some(seen)),
            Err(error) => {
                tracing::error!(%error, "looking at a request panicked");
                (error.id(), None)
            }
        };
        let id = self.busy.remove(&task);
        let Some(known) = id.and_then(|id| self.open.get_mut(&id)) else {
            return;
        };
        known.taken = false;
        if let Some(seen) = seen {
            known.note(seen);
        }
        if let Some(queue) = self.queues.get_mut(&known.way) {
            queue.running = queue.running.saturating_sub(1);
        }
    }
}
