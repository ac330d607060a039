//! Listeners: WebSockets and Server-Sent Events over the event log. The log is followed once. Each listener gets its
//! events through a short queue of its own, and is dropped when that queue is full, so no listener waits for another.

pub mod encoded_event;
pub mod feed;
pub mod past;
pub mod protocol;
pub mod session;
pub mod subscriptions;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use alloy::primitives::B256;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use self::{
    encoded_event::EncodedEvent,
    feed::FeedError,
    past::Past,
    subscriptions::{Interest, Subscriptions},
};
use crate::{
    http::KeyLabel,
    integrator::{Integrator, Scope},
    request::event::{self, Event},
    store::{
        integrators::{ByLabel, Integrators},
        requests::{Requests, RequestsError},
        rows::event as event_row,
    },
};

/// Events that may wait for one listener; one more and it is dropped. It is several pages, so that a listener of
/// everything can keep up.
const QUEUE: usize = 1024;
/// Events read of the log at one time.
const PAGE: usize = 128;
/// Listeners that read the log's past at the same time; others wait.
const LATE: usize = 4;
/// The pause after the log could not be read.
const PAUSE: Duration = Duration::from_secs(1);

/// Follows the log and hands its events to the listeners.
pub struct Fanout {
    requests: Requests,
    post: Mutex<Post>,
    listeners: AtomicU64,
    /// Permits to read the log's past.
    late: Semaphore,
    /// The same for listeners of single requests, which need no key: they delay no listener with a key.
    named: Semaphore,
}

/// What changes in one step, so that no listener misses an event or hears one twice.
#[derive(Default)]
struct Post {
    subscriptions: Subscriptions,
    queues: HashMap<u64, Queue>,
    /// Every event up to this number has been handed out.
    position: u64,
    /// What was handed out, and the events before it.
    past: Past,
}

/// The sending side of one listener.
struct Queue {
    /// The key that the listener came with.
    key: Option<KeyLabel>,
    told: mpsc::Sender<Arc<EncodedEvent>>,
}

impl Fanout {
    /// Follows what comes after the newest durable event.
    pub fn new(requests: Requests) -> Arc<Self> {
        let position = *requests.told().borrow();
        Arc::new(Self {
            requests,
            post: Mutex::new(Post {
                position,
                ..Post::default()
            }),
            listeners: AtomicU64::new(0),
            late: Semaphore::new(LATE),
            named: Semaphore::new(LATE),
        })
    }

    /// Follows the log until `shutdown`.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let following = async {
            self.look_back().await;
            self.follow().await;
        };
        shutdown.run_until_cancelled(following).await;
    }

    /// Learns the events before, as far back as a listener may resume.
    async fn look_back(&self) {
        let until = self.post().position;
        let mut after = until.saturating_sub(feed::PAST);
        let mut past = Past::behind(after);
        while after < until {
            let page = self.page(after).await;
            let Some((last, _)) = page.last() else { break };
            after = *last;
            for (number, event) in page.iter().filter(|(number, _)| *number <= until) {
                past.push(*number, event.request);
            }
            tokio::task::yield_now().await;
        }
        self.post().past = past;
    }

    async fn follow(&self) {
        let mut told = self.requests.told();
        loop {
            told.borrow_and_update();
            let position = self.post().position;
            let page = self.page(position).await;
            if page.is_empty() && told.changed().await.is_err() {
                return;
            }
            for (number, event) in page {
                self.hand_out(Arc::new(EncodedEvent::new(number, event)));
            }
            tokio::task::yield_now().await;
        }
    }

    /// The next events behind `after`, asked for until they can be read.
    async fn page(&self, after: u64) -> Vec<(u64, Event)> {
        loop {
            match self.requests.events(after, PAGE).await {
                Ok(page) => return page,
                Err(error) => {
                    tracing::warn!(%error, "events cannot be read");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Drops listeners whose integrator has lost a key, by revocation, rotation, other scopes or expiry, until
    /// `shutdown`. A client with another key of that integrator reconnects. `clock` in unix milliseconds.
    pub async fn watch(
        self: Arc<Self>,
        integrators: Integrators,
        clock: fn() -> u64,
        shutdown: CancellationToken,
    ) {
        let mut changes = integrators.changes();
        let mut before = BTreeSet::new();
        let watch = async {
            loop {
                let book = changes.borrow_and_update().clone();
                let now = clock();
                let readers = readers(&book, now);
                for (label, _) in before.difference(&readers) {
                    self.dismiss(&KeyLabel::new(label));
                }
                before = readers;
                let ends = book.values().filter_map(|one| one.ends(now)).min();
                let ended = async {
                    match ends {
                        Some(end) => tokio::time::sleep(Duration::from_millis(end - now)).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    changed = changes.changed() => if changed.is_err() { return },
                    () = ended => {}
                }
            }
        };
        shutdown.run_until_cancelled(watch).await;
    }

    fn dismiss(&self, key: &KeyLabel) {
        let mut post = self.post();
        post.queues
            .retain(|_, queue| queue.key.as_ref() != Some(key));
    }

    fn hand_out(&self, told: Arc<EncodedEvent>) {
        let mut post = self.post();
        post.position = told.number;
        post.past.push(told.number, told.event.request);
        for listener in post
            .subscriptions
            .takers(told.event.request, told.key.as_ref())
        {
            let queue = post.queues.get(&listener);
            if queue.is_some_and(|queue| queue.told.try_send(told.clone()).is_err()) {
                // The queue ends behind what is in it; the listener removes its own interests.
                post.queues.remove(&listener);
                metrics::counter!("intentd_stream_slow_listeners_total").increment(1);
            }
        }
    }

    /// Adds a listener without interests. `key`: the label of the key that it came with.
    pub fn listen(self: &Arc<Self>, key: Option<KeyLabel>) -> Listener {
        let number = self.listeners.fetch_add(1, Ordering::Relaxed);
        let (told, queue) = mpsc::channel(QUEUE);
        self.post().queues.insert(number, Queue { key, told });
        Listener {
            fanout: self.clone(),
            number,
            wants: Vec::new(),
            queue,
        }
    }

    /// The number of the newest event that any listener can know.
    fn newest(&self) -> u64 {
        let durable = *self.requests.told().borrow();
        durable.max(self.post().position)
    }

    /// The next events behind `after`; fewer than a page where the log ends. `named`: for a listener of single
    /// requests, which needs no key.
    async fn past(&self, after: u64, named: bool) -> Result<Vec<EncodedEvent>, RequestsError> {
        let turns = if named { &self.named } else { &self.late };
        let _turn = turns.acquire().await;
        let page = self.requests.events(after, PAGE).await?;
        let told = page
            .into_iter()
            .map(|(number, event)| EncodedEvent::new(number, event));
        Ok(told.collect())
    }

    /// The numbers of the events of `requests` behind `after`; `None` where they are not known without reading the
    /// log.
    fn past_of(&self, requests: &[B256], after: u64) -> Option<BTreeSet<u64>> {
        self.post().past.of(requests.iter(), after)
    }

    /// Single events of the log; deleted ones are left out.
    async fn single(&self, numbers: &[u64]) -> Result<Vec<EncodedEvent>, RequestsError> {
        let keys: Vec<_> = numbers
            .iter()
            .map(|number| event_row::key(*number))
            .collect();
        let read = self.requests.store().read_all(&keys).await?;
        let mut told = Vec::with_capacity(keys.len());
        for (key, bytes) in keys.iter().zip(read) {
            if let Some(bytes) = bytes {
                let (number, event) = event_row::row(key, &bytes)?;
                told.push(EncodedEvent::new(number, event));
            }
        }
        Ok(told)
    }

    /// Fails where the events behind `after` are not all kept, or are too many.
    async fn kept(&self, after: u64) -> Result<(), FeedError> {
        let newest = self.newest();
        let behind = newest.checked_sub(after).ok_or(FeedError::Gone(after))?;
        if behind > feed::PAST {
            return Err(FeedError::Gone(after));
        }
        let first = self.requests.events(after, 1).await?;
        match first.first() {
            Some((number, _)) if *number != after + 1 => Err(FeedError::Gone(after)),
            None if behind > 0 => Err(FeedError::Gone(after)),
            _ => Ok(()),
        }
    }

    /// The present status of a request; `None` if there is no such request.
    async fn now(&self, id: &B256) -> Result<Option<Event>, RequestsError> {
        let Some(request) = self.requests.by_id(id).await? else {
            return Ok(None);
        };
        let facts = self.requests.facts(id).await?;
        Ok(Some(event::now(&request, &facts)))
    }

    fn post(&self) -> MutexGuard<'_, Post> {
        self.post.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keys that may read all requests of their integrators: label and digest.
fn readers(book: &ByLabel, now: u64) -> BTreeSet<(String, [u8; 32])> {
    let may = |one: &&Arc<Integrator>| one.scopes.contains(&Scope::RequestsRead);
    let keys = book.values().filter(may).flat_map(|one| {
        let usable = one.usable(now);
        usable.map(|key| (one.label.clone(), key.digest))
    });
    keys.collect()
}

/// Whether one of `interests` is about `encoded_event`.
fn covers(interests: &[Interest], told: &EncodedEvent) -> bool {
    let key = told.key.as_ref();
    let mut interests = interests.iter();
    interests.any(|interest| interest.covers(&told.event.request, key))
}

/// A listener, until it is dropped.
pub struct Listener {
    fanout: Arc<Fanout>,
    number: u64,
    wants: Vec<Interest>,
    queue: mpsc::Receiver<Arc<EncodedEvent>>,
}

impl Listener {
    /// Adds `interests`. The listener hears of every event behind the number that this returns, and of none before.
    pub fn want(&mut self, interests: &[Interest]) -> u64 {
        let mut post = self.fanout.post();
        for interest in interests {
            if !self.wants.contains(interest) {
                self.wants.push(interest.clone());
                post.subscriptions.want(self.number, interest.clone());
            }
        }
        post.position
    }

    /// Removes `interest`; events that wait already are still delivered.
    pub fn leave(&mut self, interest: &Interest) {
        self.wants.retain(|known| known != interest);
        self.fanout
            .post()
            .subscriptions
            .leave(self.number, interest);
    }

    /// Removes all interests; events that wait already are still delivered.
    pub fn leave_all(&mut self) {
        let mut post = self.fanout.post();
        for interest in self.wants.drain(..) {
            post.subscriptions.leave(self.number, &interest);
        }
    }

    /// Whether the listener wants to hear of `encoded_event`.
    pub fn wants(&self, told: &EncodedEvent) -> bool {
        covers(&self.wants, told)
    }

    /// Events that wait to be taken with [`Listener::next`].
    fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The listener's number, unique in this process.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next event, in the order of the log; `None` once too many waited or its key is lost. Cancel-safe: nothing
    /// is lost when this is dropped early.
    pub async fn next(&mut self) -> Option<Arc<EncodedEvent>> {
        self.queue.recv().await
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.leave_all();
        self.fanout.post().queues.remove(&self.number);
    }
}

#[cfg(test)]
mod tests;
