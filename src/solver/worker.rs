//! The solver's loop. A request with open work is looked at when its facts change, and at every poll.
//! Each way (origin and destination) has a queue with a limit of its own: a network that does not answer
//! delays only the ways that begin or end there. No two tasks look at one request.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use alloy::primitives::B256;
use futures::future::join_all;
use tokio::{
    sync::broadcast::error::RecvError,
    task::{Id, JoinError, JoinSet},
    time::MissedTickBehavior,
};
use tokio_util::sync::CancellationToken;

use super::{Solver, SolverError, account::SolverAccount, judge::Next, settle::Settler};
use crate::store::rows::open;

/// Rows read at once.
const PAGE: usize = 256;

/// Between two reconciliations.
const RECONCILED: Duration = Duration::from_secs(60);

/// Milliseconds between looks at allowances that are there.
const ALLOWANCES: u64 = 60_000;

/// Seconds between two looks at a request that fails. They double from one to [`PAUSE`], stay there while its
/// price may still hold, then double to [`LONGEST_PAUSE`]. New facts begin anew.
const LONGEST_PAUSE: u64 = 600;
const PAUSE: u64 = 40;
/// How many pauses of [`PAUSE`] there are.
const PAUSES: u32 = 7;

/// A request that failed lets others go first for at most so many rounds.
const MOST_BEHIND: u32 = 8;

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

/// The solver's loop, before it runs.
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
    /// Turn and request. Who failed comes some rounds later.
    waiting: BTreeSet<(u64, B256)>,
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
    /// How many of its last looks failed since its facts changed.
    errors: u32,
    /// It is queued, or being looked at.
    taken: bool,
    /// Its facts have changed since it was queued.
    news: bool,
}

impl Worker {
    /// Works until `stop`; what is under way then is finished first.
    pub async fn run(self, stop: CancellationToken) {
        let mut background = JoinSet::new();
        let lanes: BTreeMap<_, _> = self.solver.lanes.iter().collect();
        // A settlement chain that is not traded on has nonces that are nobody's, too.
        let settling = self.settler.as_ref().map(|settler| &settler.lane);
        let settling = settling.filter(|lane| !self.solver.lanes.contains_key(&lane.site.name));
        let lanes = lanes.into_values().chain(&self.solver.former);
        for lane in lanes.chain(settling) {
            let (solver, lane) = (self.solver.clone(), lane.clone());
            background.spawn(Self::tend(solver, lane, self.pace.poll, self.clock));
        }
        if let Some(settler) = self.settler.clone() {
            background.spawn(Self::settle(settler, self.pace.poll, self.clock));
        }
        let books = Self::reconcile(self.solver.clone(), self.clock);
        background.spawn(books);
        let mut news = self.solver.requests.changed();
        // Before that, what could be paid would be put off.
        let known = self.solver.lanes.values().map(|lane| lane.site.known());
        stop.run_until_cancelled(join_all(known)).await;
        let mut tick = tokio::time::interval(self.pace.poll);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut round = Round::default();
        loop {
            let found = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(done) = round.tasks.join_next_with_id() => match round.finished(done) {
                    Some(id) => self.hear(&mut round, id).await,
                    None => Ok(()),
                },
                _ = tick.tick() => self.collect(&mut round).await,
                heard = news.recv() => match heard {
                    Ok(id) => self.hear(&mut round, id).await,
                    Err(RecvError::Lagged(_)) => {
                        round.missed();
                        self.collect(&mut round).await
                    }
                    Err(RecvError::Closed) => break,
                },
            };
            if let Err(error) = found {
                tracing::error!(%error, "open requests cannot be read");
            }
            self.start(&mut round);
        }
        while round.tasks.join_next().await.is_some() {}
        background.shutdown().await;
    }

    /// Queues what is open and due.
    async fn collect(&self, round: &mut Round) -> Result<(), SolverError> {
        let (store, now) = (self.solver.requests.store(), (self.clock)());
        let mut after = None;
        let mut found = HashSet::new();
        loop {
            let rows = store.scan(open::range(after.as_ref(), PAGE)).await?;
            for (key, value) in &rows {
                let id = open::decode(key, value)?;
                found.insert(id);
                let known = self.known(round, &id).await;
                if known.is_some_and(|known| known.is_due(now)) {
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

    /// Queues a request whose facts have changed, if it is open.
    async fn hear(&self, round: &mut Round, id: B256) -> Result<(), SolverError> {
        let taken = round.open.get_mut(&id).filter(|known| known.taken);
        if let Some(known) = taken {
            known.news = true;
            return Ok(());
        }
        let row = self.solver.requests.store().read(&open::key(&id)).await?;
        if row.is_some() && self.known(round, &id).await.is_some() {
            round.queue(id);
        }
        Ok(())
    }

    /// What is known of an open request, unless it cannot be read: one such holds up no other.
    async fn known<'a>(&self, round: &'a mut Round, id: &B256) -> Option<&'a Open> {
        let known = match round.open.entry(*id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => match self.way(id).await {
                Ok(way) => place.insert(Open::new(way)),
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

    fn start(&self, round: &mut Round) {
        for queue in round.queues.values_mut() {
            while queue.running < self.pace.at_once {
                let Some((_, id)) = queue.waiting.pop_first() else {
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

    async fn tend(
        solver: Arc<Solver>,
        lane: Arc<SolverAccount>,
        poll: Duration,
        clock: fn() -> u64,
    ) {
        let network = lane.site.name.as_str();
        let mut due = 0;
        loop {
            let now = clock();
            // First, as after a start everybody waits for it.
            if (lane.site.is_unsure() || due <= now)
                && let Err(error) = lane.site.survey().await
            {
                tracing::warn!(network, %error, "the market file cannot be compared with the chain");
            }
            if let Err(error) = lane.sweep(now / 1_000).await {
                tracing::warn!(network, %error, "lane cannot be looked after");
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
            errors: 0,
            taken: false,
            news: false,
        }
    }

    /// `now` in unix milliseconds.
    fn is_due(&self, now: u64) -> bool {
        let due = |seen: Looked| seen.until.saturating_mul(1_000) <= now;
        !self.taken && self.seen.is_none_or(due)
    }

    /// Takes note of a look; what other facts brought is forgotten.
    fn note(&mut self, seen: Looked) {
        if self
            .seen
            .is_some_and(|before| before.version != seen.version)
        {
            self.errors = 0;
        }
        self.errors = match seen.failed {
            true => self.errors.saturating_add(1),
            false => 0,
        };
        self.seen = Some(seen);
    }
}

/// Seconds until a request is looked at again that failed so often before this time.
fn pause(errors: u32) -> u64 {
    let length = |errors| 1_u64.checked_shl(errors).unwrap_or(u64::MAX);
    match length(errors) {
        short if short <= PAUSE => short,
        _ => length(errors.saturating_sub(PAUSES)).clamp(PAUSE, LONGEST_PAUSE),
    }
}

impl Round {
    fn queue(&mut self, id: B256) {
        let Some(known) = self.open.get_mut(&id) else {
            return;
        };
        (known.taken, known.news) = (true, false);
        let queue = self.queues.entry(known.way.clone()).or_default();
        self.queued = self.queued.wrapping_add(1);
        let round = u64::try_from(queue.waiting.len()).unwrap_or(u64::MAX);
        let behind = round.saturating_mul(known.errors.min(MOST_BEHIND).into());
        queue
            .waiting
            .insert((self.queued.saturating_add(behind), id));
    }

    /// Notices of changes were lost: every open request counts as changed.
    fn missed(&mut self) {
        for known in self.open.values_mut() {
            (known.news, known.seen) = (known.taken, None);
        }
    }

    /// The request, if its facts have changed since it was queued. One that panicked is looked at again like
    /// any other.
    fn finished(&mut self, done: Result<(Id, Looked), JoinError>) -> Option<B256> {
        let (task, seen) = match done {
            Ok((task, seen)) => (task, Some(seen)),
            Err(error) => {
                tracing::error!(%error, "looking at a request panicked");
                (error.id(), None)
            }
        };
        let id = self.busy.remove(&task)?;
        let known = self.open.get_mut(&id)?;
        known.taken = false;
        if let Some(seen) = seen {
            known.note(seen);
        }
        if let Some(queue) = self.queues.get_mut(&known.way) {
            queue.running = queue.running.saturating_sub(1);
        }
        known.news.then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(ids: &[u8]) -> Round {
        let mut round = Round::default();
        for id in ids {
            let open = Open::new(Way::default());
            round.open.insert(B256::repeat_byte(*id), open);
        }
        round
    }

    fn next(round: &mut Round) -> u8 {
        let queue = round.queues.get_mut(&Way::default()).unwrap();
        queue.waiting.pop_first().unwrap().1[0]
    }

    fn seen(version: u64, failed: bool) -> Looked {
        Looked {
            version,
            until: 0,
            failed,
        }
    }

    #[test]
    fn who_waits_or_is_being_paid_has_his_turn_as_who_comes_anew_has() {
        let mut round = round(&[1, 2, 3]);
        for _ in 0..1_000 {
            let old = round.open.get_mut(&B256::repeat_byte(1)).unwrap();
            old.note(seen(1, false));
        }
        for id in [2, 1, 3] {
            round.queue(B256::repeat_byte(id));
        }
        assert_eq!([(); 3].map(|()| next(&mut round)), [2, 1, 3]);
    }

    #[test]
    fn who_failed_is_some_rounds_behind_and_no_more() {
        let all: Vec<u8> = (1..=40).collect();
        let mut round = round(&all);
        for _ in 0..1_000 {
            let failing = round.open.get_mut(&B256::repeat_byte(1)).unwrap();
            failing.note(seen(1, true));
        }
        for id in [2, 3, 1] {
            round.queue(B256::repeat_byte(id));
        }
        let mut turns = 0;
        for id in 4..=40 {
            round.queue(B256::repeat_byte(id));
            turns += 1;
            if next(&mut round) == 1 {
                break;
            }
        }
        assert!((10..30).contains(&turns), "{turns}");
    }

    #[test]
    fn pauses_grow_when_no_price_holds_any_more() {
        let mut at = 0;
        let looks: Vec<u64> = (0..20)
            .map(|errors| {
                at += pause(errors);
                at
            })
            .collect();
        let while_it_holds: Vec<_> = looks.iter().filter(|at| **at < 300).collect();
        assert!(
            while_it_holds
                .windows(2)
                .all(|two| two[1] - two[0] <= PAUSE)
        );
        assert!(while_it_holds.len() < 14);
        assert_eq!(pause(30), LONGEST_PAUSE);
    }
}
