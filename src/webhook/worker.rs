//! The worker: it follows the log, makes the tries and records how they end. Besides the worker only the operator's
//! replays write deliveries.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    WebhookContext, WebhookError,
    admin::{Command, Standing},
    attempt::{self, Change, Tried},
    fair_queue::{FairQueue, Label, Turn},
    fan::{self, Fanned},
    prune::{self, Pruned},
    queue::Queue,
    record::{self, Record, Rows},
    schedule::BACKLOG,
};
use crate::store::{
    rows::{self, DELIVERY},
    walk::Walk,
};

/// The most outcomes per commit.
const RECORDS: usize = 1_024;
/// The worker starts no try while this many outcomes are unrecorded.
const UNRECORDED: usize = 8 * RECORDS;
/// How often the worker looks for due deliveries and updates metrics, even if the clock jumps.
const TICK: Duration = Duration::from_secs(5);
/// The pause after a store error.
const PAUSE: Duration = Duration::from_secs(1);
/// The most time for running tries at shutdown.
const LAST: Duration = Duration::from_secs(3);
/// Milliseconds between two runs of [`prune`].
const PRUNING: u64 = 60 * 60 * 1_000;

/// Follows the log, makes the tries, and records how they end.
pub struct Worker {
    context: Arc<WebhookContext>,
    asked: mpsc::Receiver<Command>,
    fair_queue: FairQueue,
    tasks: JoinSet<Done>,
    /// The log is processed up to this event.
    mark: u64,
    following: bool,
    /// The deliveries that are owed, in memory or not.
    owed: u64,
    records: Vec<Record>,
    recording: bool,
    /// When events were last pruned, in unix milliseconds.
    pruned: u64,
}

/// The result of an ended task.
enum Done {
    Tried(Turn, Tried),
    Followed(Result<Fanned, WebhookError>),
    Recorded(Vec<Record>, Result<(), WebhookError>),
    Page(Label, (usize, u64), Result<Rows, WebhookError>),
    Pruned(Result<Pruned, WebhookError>),
}

impl Worker {
    pub(super) fn new(context: Arc<WebhookContext>, asked: mpsc::Receiver<Command>) -> Self {
        Self {
            context,
            asked,
            fair_queue: FairQueue::default(),
            tasks: JoinSet::new(),
            mark: 0,
            following: false,
            owed: 0,
            records: Vec::new(),
            recording: false,
            pruned: 0,
        }
    }

    /// Works until `shutdown`, then waits up to `LAST` for running tries.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut newest = self.context.requests.newest_event();
        let started = async {
            while let Err(error) = self.read_back().await {
                log_error(
                    &error,
                    "the worker cannot read the deliveries of the last run",
                );
                sleep(PAUSE).await;
            }
        };
        if shutdown.run_until_cancelled(started).await.is_none() {
            return;
        }
        let mut ticks = tokio::time::interval(TICK);
        loop {
            let now = (self.context.clock)();
            self.step(&newest, now);
            let due = self.fair_queue.wake().filter(|_| self.sends());
            let wake = due.map_or(TICK, |at| {
                TICK.min(Duration::from_millis(at.saturating_sub(now)))
            });
            tokio::select! {
                () = shutdown.cancelled() => break,
                Some(done) = self.tasks.join_next() => match done {
                    Ok(done) => self.done(done),
                    // The daemon stops with its worker and resumes from the store.
                    Err(_panic) => return,
                },
                _ = newest.changed(), if !self.following => {}
                Some(command) = self.asked.recv() => self.command(command),
                () = sleep(wake) => {}
                _ = ticks.tick() => self.tick(),
            }
            while let Some(Ok(done)) = self.tasks.try_join_next() {
                self.done(done);
            }
        }
        self.finish().await;
    }

    /// Reads the mark and the owed deliveries of the last run.
    async fn read_back(&mut self) -> Result<(), WebhookError> {
        self.owed = 0;
        let store = self.context.requests.store().clone();
        self.mark = fan::mark(&*store).await?;
        let mut walk = Walk::of(&*store, DELIVERY);
        while let Some((key, _)) = walk.next().await? {
            // `store verify` reports rows with unreadable names.
            if let Some((label, number)) = rows::delivery::parts(&key.name) {
                self.owed += 1;
                let label = label.into();
                self.fair_queue.with(&label, |queue| queue.left(number));
                self.turn_pages(&label);
            }
        }
        Ok(())
    }

    /// Starts every task that can start: following, tries, recording, pruning.
    fn step(&mut self, newest: &watch::Receiver<u64>, now: u64) {
        if !self.following && self.mark < *newest.borrow() {
            self.following = true;
            self.follow(Duration::ZERO);
        }
        if !self.recording && !self.records.is_empty() {
            self.recording = true;
            let some = self.records.len().min(RECORDS);
            let records: Vec<_> = self.records.drain(..some).collect();
            let context = self.context.clone();
            self.tasks.spawn(async move {
                let outcome = record::write(&context, &records).await;
                Done::Recorded(records, outcome)
            });
        }
        while self.sends()
            && let Some(turn) = self.fair_queue.next(now)
        {
            let context = self.context.clone();
            self.tasks.spawn(async move {
                let tried = attempt::make(&context, &turn).await;
                Done::Tried(turn, tried)
            });
        }
        if now >= self.pruned + PRUNING {
            self.pruned = now;
            let context = self.context.clone();
            self.tasks
                .spawn(async move { Done::Pruned(prune::prune(&context.requests, now).await) });
        }
    }

    /// Processes one more page of the log, after `pause`.
    fn follow(&mut self, pause: Duration) {
        let full = self.fair_queue.queues();
        let full = full.filter(|(_, queue)| queue.owed() >= BACKLOG);
        let full: BTreeSet<Label> = full.map(|(label, _)| label.clone()).collect();
        let (context, mark) = (self.context.clone(), self.mark);
        self.tasks.spawn(async move {
            sleep(pause).await;
            Done::Followed(fan::further(&context, mark, &full).await)
        });
    }

    /// Whether tries may start: not while too many outcomes are unrecorded.
    fn sends(&self) -> bool {
        self.records.len() < UNRECORDED
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Tried(turn, tried) => self.tried(&turn, tried),
            Done::Followed(followed) => self.followed(followed),
            Done::Recorded(records, outcome) => self.recorded(records, outcome),
            Done::Page(label, (asked, written), Ok(rows)) => {
                let held = |queue: &mut Queue| queue.page(&rows, asked, written);
                self.fair_queue.with(&label, held);
                self.turn_pages(&label);
            }
            Done::Page(label, _, Err(error)) => {
                log_error(&error, "the worker cannot read deliveries");
                self.fair_queue.with(&label, Queue::page_failed);
            }
            Done::Pruned(Ok(Pruned { events, dead })) => {
                tracing::debug!(events, dead, "the worker deleted old events and deliveries");
            }
            Done::Pruned(Err(error)) => log_error(&error, "the worker cannot delete old events"),
        }
    }

    fn tried(&mut self, turn: &Turn, tried: Tried) {
        let (label, number) = (turn.label.clone(), turn.number);
        match tried {
            Tried::Gone => {
                self.fair_queue.ended(turn, None);
                self.fair_queue.with(&label, |queue| queue.remove(number));
            }
            Tried::Unread(error) => {
                log_error(&error, "the worker cannot read a delivery");
                let due = (self.context.clock)() + 1_000;
                self.fair_queue.ended(turn, None);
                self.fair_queue
                    .with(&label, |queue| queue.again(number, due));
            }
            Tried::Made(ended, change) => {
                let outcome = match &change {
                    Change::Delivered => "delivered",
                    Change::Again(_) => "failed",
                    Change::Dead(_) => "dead",
                };
                metrics::counter!("intentd_webhook_tries_total", "outcome" => outcome).increment(1);
                metrics::histogram!("intentd_webhook_try_seconds", "outcome" => outcome)
                    .record(Duration::from_millis(ended.took));
                if let Change::Dead(dead) = &change {
                    tracing::warn!(%label, number, why = dead.why, "the worker gives a webhook up");
                }
                self.fair_queue.ended(turn, Some(ended));
                self.records.push(Record {
                    label,
                    number,
                    change,
                });
            }
        }
    }

    fn followed(&mut self, followed: Result<Fanned, WebhookError>) {
        match followed {
            Ok(Fanned {
                mark,
                owed,
                given_up,
                at,
            }) => {
                (self.mark, self.following) = (mark, false);
                if let Some((label, number)) = given_up.first() {
                    let count = given_up.len();
                    tracing::warn!(%label, number, count, "too many webhooks wait: the worker gives new ones up");
                    metrics::counter!("intentd_webhook_over_total").increment(count as u64);
                }
                self.owed += owed.len() as u64;
                for (label, number) in owed {
                    let label = label.into();
                    self.fair_queue
                        .with(&label, |queue| queue.add(number, at, at));
                }
            }
            Err(error) => {
                log_error(&error, "the worker cannot follow the event log");
                self.follow(PAUSE);
            }
        }
    }

    fn recorded(&mut self, records: Vec<Record>, outcome: Result<(), WebhookError>) {
        if let Err(error) = outcome {
            log_error(&error, "the worker cannot record webhooks");
            let context = self.context.clone();
            self.tasks.spawn(async move {
                sleep(PAUSE).await;
                let outcome = record::write(&context, &records).await;
                Done::Recorded(records, outcome)
            });
            return;
        }
        self.recording = false;
        for Record {
            label,
            number,
            change,
        } in records
        {
            let settle = |queue: &mut Queue| match change {
                Change::Again(delivery) => {
                    queue.again(number, delivery.due);
                    0
                }
                Change::Delivered | Change::Dead(_) => {
                    queue.remove(number);
                    1
                }
            };
            self.owed = self
                .owed
                .saturating_sub(self.fair_queue.with(&label, settle));
            self.turn_pages(&label);
        }
    }

    /// Reads more rows of an endpoint when the queue has room for them.
    fn turn_pages(&mut self, label: &Label) {
        let wants = |queue: &mut Queue| (queue.wants(), queue.written());
        let (Some((after, limit)), written) = self.fair_queue.with(label, wants) else {
            return;
        };
        let (context, label) = (self.context.clone(), label.clone());
        self.tasks.spawn(async move {
            let rows = record::page(&context, &label, after, limit).await;
            Done::Page(label, (limit, written), rows)
        });
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Owed { label, numbers, at } => {
                self.owed += numbers.len() as u64;
                for number in numbers {
                    self.fair_queue
                        .with(&label, |queue| queue.add(number, at, at));
                }
                self.turn_pages(&label);
            }
            Command::Standing(reply) => {
                let standing = self.fair_queue.queues().map(|(label, queue)| {
                    let standing = Standing {
                        last_success: queue.last_success,
                        last_failure: queue.last_failure.clone(),
                    };
                    (label.to_string(), standing)
                });
                // The operator may have disconnected.
                let _gone = reply.send(standing.collect());
            }
        }
    }

    fn tick(&mut self) {
        let now = (self.context.clock)();
        let loads = self.fair_queue.queues().map(|(_, queue)| queue.load().1);
        let oldest = loads.flatten().min().map_or(0, |at| now.saturating_sub(at));
        metrics::gauge!("intentd_webhook_waiting").set(figure(self.owed));
        metrics::gauge!("intentd_webhook_oldest_seconds").set(figure(oldest / 1_000));
        let labels: Vec<_> = self
            .fair_queue
            .queues()
            .map(|(label, _)| label.clone())
            .collect();
        // Retries pages that could not be read.
        labels.iter().for_each(|label| self.turn_pages(label));
    }

    /// Records the tries that end within [`LAST`].
    async fn finish(mut self) {
        let end = Instant::now() + LAST;
        while self.fair_queue.running() > 0 || self.recording {
            match timeout_at(end, self.tasks.join_next()).await {
                Ok(Some(Ok(done))) => self.done(done),
                _ => break,
            }
        }
        if let Err(error) = record::write(&self.context, &self.records).await {
            log_error(&error, "the worker cannot record webhooks");
        }
    }
}

fn figure(count: u64) -> f64 {
    u32::try_from(count).unwrap_or(u32::MAX).into()
}

fn log_error(error: &WebhookError, what: &str) {
    metrics::counter!("intentd_webhook_errors_total").increment(1);
    tracing::error!(%error, "{what}");
}
