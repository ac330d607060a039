//! Listeners of the event log: WebSockets and Server-Sent Events. One task follows the log. Each listener gets its
//! events through a short queue of its own and is dropped when the queue is full, so no listener waits for another.

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

/// The most events that wait for one listener; one more drops it. Several pages, so that a listener of all events can
/// keep up.
const QUEUE: usize = 1024;
/// The most events per read of the log.
const PAGE: usize = 128;
/// The most listeners that read the past of the log at the same time; others wait.
const LATE: usize = 4;
/// The pause after a failed read of the log.
const PAUSE: Duration = Duration::from_secs(1);

/// Follows the log and hands its events to the listeners.
pub struct Fanout {
    requests: Requests,
    post: Mutex<Post>,
    listeners: AtomicU64,
    /// Permits to read the log's past.
    late: Semaphore,
    /// The same for listeners of single requests, which need no key, so that they do not delay listeners with a key.
    named: Semaphore,
}

/// State that changes in one step, so that no listener misses an event or gets one twice.
#[derive(Default)]
struct Post {
    subscriptions: Subscriptions,
    queues: HashMap<u64, Queue>,
    /// Every event up to this number is handed out.
    position: u64,
    /// The newest events by request.
    past: Past,
}

/// Where a request stands.
struct Present {
    event: Event,
    /// No event may ever follow.
    may_be_last: bool,
}

/// The sending side of one listener.
struct Queue {
    /// The label of the listener's key.
    key: Option<KeyLabel>,
    sender: mpsc::Sender<Arc<EncodedEvent>>,
}

impl Fanout {
    /// Starts after the newest durable event.
    pub fn new(requests: Requests) -> Arc<Self> {
        let position = *requests.newest_event().borrow();
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

    /// Reads the earlier events, as far back as a listener may resume.
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
        let mut newest = self.requests.newest_event();
        loop {
            newest.borrow_and_update();
            let position = self.post().position;
            let page = self.page(position).await;
            if page.is_empty() && newest.changed().await.is_err() {
                return;
            }
            for (number, event) in page {
                self.hand_out(Arc::new(EncodedEvent::new(number, event)));
            }
            tokio::task::yield_now().await;
        }
    }

    /// The next page of events after `after`; retries until the log can be read.
    async fn page(&self, after: u64) -> Vec<(u64, Event)> {
        loop {
            match self.requests.events(after, PAGE).await {
                Ok(page) => return page,
                Err(error) => {
                    tracing::warn!(%error, "the fanout cannot read events");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Until `shutdown`, drops the listeners of an integrator that lost a key (revocation, rotation, changed scopes,
    /// expiry). A client with another key of that integrator reconnects. `clock` in unix milliseconds.
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
                let integrators = changes.borrow_and_update().clone();
                let now = clock();
                let readers = readers(&integrators, now);
                for (label, _) in before.difference(&readers) {
                    self.dismiss(&KeyLabel::new(label));
                }
                before = readers;
                let ends = integrators.values().filter_map(|one| one.ends(now)).min();
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

    fn hand_out(&self, encoded: Arc<EncodedEvent>) {
        let mut post = self.post();
        post.position = encoded.number;
        post.past.push(encoded.number, encoded.event.request);
        for listener in post
            .subscriptions
            .takers(encoded.event.request, encoded.key.as_ref())
        {
            let queue = post.queues.get(&listener);
            if queue.is_some_and(|queue| queue.sender.try_send(encoded.clone()).is_err()) {
                // The listener still reads what is queued, then removes its own interests.
                post.queues.remove(&listener);
                metrics::counter!("intentd_stream_slow_listeners_total").increment(1);
            }
        }
    }

    /// Adds a listener without interests. `key`: the label of its key.
    pub fn listen(self: &Arc<Self>, key: Option<KeyLabel>) -> Listener {
        let number = self.listeners.fetch_add(1, Ordering::Relaxed);
        let (sender, queue) = mpsc::channel(QUEUE);
        self.post().queues.insert(number, Queue { key, sender });
        Listener {
            fanout: self.clone(),
            number,
            wants: Vec::new(),
            queue,
        }
    }

    /// The number of the newest event that a listener can know.
    fn newest(&self) -> u64 {
        let durable = *self.requests.newest_event().borrow();
        durable.max(self.post().position)
    }

    /// The next page of events after `after`; shorter at the end of the log. `named`: for a listener of single
    /// requests, which needs no key.
    async fn past(&self, after: u64, named: bool) -> Result<Vec<EncodedEvent>, RequestsError> {
        let permits = if named { &self.named } else { &self.late };
        let _permit = permits.acquire().await;
        let page = self.requests.events(after, PAGE).await?;
        let events = page
            .into_iter()
            .map(|(number, event)| EncodedEvent::new(number, event));
        Ok(events.collect())
    }

    /// The numbers of the events of `requests` after `after`; `None` when only the log knows them.
    fn past_of(&self, requests: &[B256], after: u64) -> Option<BTreeSet<u64>> {
        self.post().past.of(requests.iter(), after)
    }

    /// The events of these numbers; leaves out deleted ones.
    async fn single(&self, numbers: &[u64]) -> Result<Vec<EncodedEvent>, RequestsError> {
        let keys: Vec<_> = numbers
            .iter()
            .map(|number| event_row::key(*number))
            .collect();
        let read = self.requests.store().read_all(&keys).await?;
        let mut events = Vec::with_capacity(keys.len());
        for (key, bytes) in keys.iter().zip(read) {
            if let Some(bytes) = bytes {
                let (number, event) = event_row::row(key, &bytes)?;
                events.push(EncodedEvent::new(number, event));
            }
        }
        Ok(events)
    }

    /// Fails when events after `after` are deleted, or are more than [`feed::PAST`].
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

    /// The current status of a request; `None` if there is no such request.
    async fn now(&self, id: &B256) -> Result<Option<Present>, RequestsError> {
        let Some(request) = self.requests.by_id(id).await? else {
            return Ok(None);
        };
        let facts = self.requests.facts(id).await?;
        Ok(Some(Present {
            event: event::now(&request, &facts),
            may_be_last: event::may_never_come(&request, &facts),
        }))
    }

    fn post(&self) -> MutexGuard<'_, Post> {
        self.post.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keys with access to all requests of their integrators: label and digest.
fn readers(integrators: &ByLabel, now: u64) -> BTreeSet<(String, [u8; 32])> {
    let may = |one: &&Arc<Integrator>| one.scopes.contains(&Scope::RequestsRead);
    let keys = integrators.values().filter(may).flat_map(|one| {
        let usable = one.usable(now);
        usable.map(|key| (one.label.clone(), key.digest))
    });
    keys.collect()
}

/// Whether one of `interests` covers the event.
fn covers(interests: &[Interest], encoded: &EncodedEvent) -> bool {
    let key = encoded.key.as_ref();
    let mut interests = interests.iter();
    interests.any(|interest| interest.covers(&encoded.event.request, key))
}

/// A listener; dropping it removes its interests.
pub struct Listener {
    fanout: Arc<Fanout>,
    number: u64,
    wants: Vec<Interest>,
    queue: mpsc::Receiver<Arc<EncodedEvent>>,
}

impl Listener {
    /// Adds `interests`. The listener gets every event after the returned number, and none before.
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

    /// Removes `interest`; events that are already queued are still delivered.
    pub fn leave(&mut self, interest: &Interest) {
        self.wants.retain(|known| known != interest);
        self.fanout
            .post()
            .subscriptions
            .leave(self.number, interest);
    }

    /// Removes all interests; events that are already queued are still delivered.
    pub fn leave_all(&mut self) {
        let mut post = self.fanout.post();
        for interest in self.wants.drain(..) {
            post.subscriptions.leave(self.number, &interest);
        }
    }

    /// Whether the listener is interested in nothing else.
    pub fn wants_only(&self, interest: &Interest) -> bool {
        matches!(&self.wants[..], [only] if only == interest)
    }

    /// Whether the listener is interested in the event.
    pub fn wants(&self, encoded: &EncodedEvent) -> bool {
        covers(&self.wants, encoded)
    }

    /// The number of queued events.
    fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The listener's number, unique in this process.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next event, in the order of the log; `None` once the queue overflowed or the key was lost. Cancel-safe.
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
