//! Server-Sent Events: first the events after the last one that the reader saw, then new ones, without gaps and
//! without repetition.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use alloy::primitives::B256;
use bytes::Bytes;
use futures::{Stream, stream};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::{
    Fanout, Listener, PAGE, covers,
    encoded_event::{self, EncodedEvent},
    subscriptions::Interest,
};
use crate::{http::KeyLabel, store::requests::RequestsError};

/// The interval of comments, so that no intermediary closes an idle connection.
const BEAT: Duration = Duration::from_secs(15);
/// Tells readers how long to wait before they reconnect.
const RETRY: &[u8] = b"retry: 2000\n\n";
/// The most past events that the daemon searches for one reader.
pub const PAST: u64 = 200_000;

/// The most requests that one feed may follow by id.
pub const FOLLOWED: usize = 100;

/// Why a feed cannot open.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    #[error(transparent)]
    Requests(#[from] RequestsError),
    #[error("unknown request {0}")]
    Unknown(B256),
    /// Events after the last one that the reader saw are no longer kept, or that event never existed.
    #[error("events behind {0} are not kept")]
    Gone(u64),
}

/// What a feed currently reads.
#[derive(Clone, Copy)]
enum FeedPosition {
    /// The log, far from its end.
    Past,
    /// The log, up to the event at which the feed began to listen.
    Nearly {
        until: u64,
    },
    /// The events of the feed's requests, up to the event at which it began to listen.
    Own {
        until: u64,
    },
    Live,
}

struct Feed {
    fanout: Arc<Fanout>,
    listener: Listener,
    key: Option<KeyLabel>,
    interests: Vec<Interest>,
    position: FeedPosition,
    /// The reader has every event up to this number.
    after: u64,
    /// The version of the facts that the feed sent for each request.
    shown: HashMap<B256, u64>,
    ready: VecDeque<Bytes>,
    /// The numbers of the feed's own events that it has not read yet.
    own: VecDeque<u64>,
    beat: Interval,
}

/// The events of `interests` as a `text/event-stream`; it ends when the reader is too slow. With `after` it starts
/// after that event, else with the current status of each request. `key`: the reader's key, where it may read its
/// requests.
pub async fn open(
    fanout: &Arc<Fanout>,
    interests: Vec<Interest>,
    key: Option<KeyLabel>,
    after: Option<u64>,
) -> Result<impl Stream<Item = Bytes> + Send + 'static, FeedError> {
    let mut beat = interval_at(Instant::now() + BEAT, BEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut feed = Feed {
        fanout: fanout.clone(),
        listener: fanout.listen(key.clone()),
        key,
        interests,
        position: FeedPosition::Past,
        after: after.unwrap_or_default(),
        shown: HashMap::new(),
        ready: VecDeque::from([Bytes::from_static(RETRY)]),
        own: VecDeque::new(),
        beat,
    };
    match after {
        Some(after) => feed.resume(after).await?,
        None => feed.begin().await?,
    }
    let next = |mut feed: Feed| async move { feed.next().await.map(|piece| (piece, feed)) };
    Ok(stream::unfold(feed, next))
}

impl Feed {
    async fn resume(&mut self, after: u64) -> Result<(), FeedError> {
        let mut named = Vec::new();
        for interest in &self.interests {
            if let Interest::Request(id) = interest {
                let known = self.fanout.requests.by_id(id).await?;
                known.ok_or(FeedError::Unknown(*id))?;
                named.push(*id);
            }
        }
        self.fanout.kept(after).await?;
        if named.len() < self.interests.len() {
            return Ok(());
        }
        // A feed of single requests reads only their events.
        let until = self.listener.want(&self.interests);
        match self.fanout.past_of(&named, after) {
            Some(own) => {
                self.own = own.into_iter().filter(|number| *number <= until).collect();
                self.position = FeedPosition::Own { until };
            }
            None => self.listener.leave_all(),
        }
        Ok(())
    }

    /// Subscribes before it reads, so that no event is missed; skips queued events that are older than what it read.
    async fn begin(&mut self) -> Result<(), FeedError> {
        self.after = self.listener.want(&self.interests);
        self.position = FeedPosition::Live;
        for interest in &self.interests {
            let Interest::Request(id) = interest else {
                // The reader must learn its position before the first event, in case it is cut off at once.
                self.ready.push_back(progress(self.after));
                continue;
            };
            let now = self.fanout.now(id).await?;
            let now = now.ok_or(FeedError::Unknown(*id))?.event;
            self.shown.insert(*id, now.version);
            let own = encoded_event::is_own(&now, self.key.as_ref());
            self.ready.push_back(encoded_event::frame(None, &now, own));
        }
        Ok(())
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            match self.position {
                FeedPosition::Past => self.read(u64::MAX).await?,
                FeedPosition::Nearly { until } if self.after < until => self.read(until).await?,
                FeedPosition::Own { .. } if !self.own.is_empty() => self.read_own().await?,
                FeedPosition::Own { until } => {
                    self.after = self.after.max(until);
                    self.position = FeedPosition::Live;
                }
                FeedPosition::Nearly { .. } => self.position = FeedPosition::Live,
                FeedPosition::Live => {
                    tokio::select! {
                        encoded = self.listener.next() => self.push(&*encoded?),
                        _ = self.beat.tick() => return Some(self.alive()),
                    }
                }
            }
        }
    }

    /// Reads a page of the log up to `until`. `None` where the log cannot be read further: the feed ends, and the
    /// reader learns why when it reconnects.
    async fn read(&mut self, until: u64) -> Option<()> {
        let named = |interest: &Interest| matches!(interest, Interest::Request(_));
        let named = self.interests.iter().all(named);
        let page = self.fanout.past(self.after, named).await;
        let page = page
            .inspect_err(|error| tracing::warn!(%error, "the feed ends: the log cannot be read"))
            .ok()?;
        let ended = page.len() < PAGE;
        for encoded in page.iter().take_while(|encoded| encoded.number <= until) {
            if encoded.number != self.after + 1 {
                return None;
            }
            self.push(encoded);
        }
        if self.ready.is_empty() && !page.is_empty() {
            self.ready.push_back(progress(self.after));
        }
        self.position = match self.position {
            FeedPosition::Past if ended => FeedPosition::Nearly {
                until: self.listener.want(&self.interests),
            },
            FeedPosition::Nearly { .. } if page.is_empty() => return None,
            position => position,
        };
        Some(())
    }

    /// Reads the next of the feed's own events. `None` as in [`Feed::read`], also when one of them was deleted.
    async fn read_own(&mut self) -> Option<()> {
        let some: Vec<u64> = self.own.drain(..self.own.len().min(PAGE)).collect();
        let events = self.fanout.single(&some).await;
        let events = events
            .inspect_err(|error| tracing::warn!(%error, "the feed ends: events cannot be read"))
            .ok()?;
        if events.len() < some.len() {
            return None;
        }
        events.iter().for_each(|encoded| self.push(encoded));
        Some(())
    }

    /// A heartbeat. It moves the reader's position past events of others, so that a reconnecting reader skips them.
    fn alive(&mut self) -> Bytes {
        let position = self.fanout.post().position;
        if self.listener.waiting() > 0 || position <= self.after {
            return Bytes::from_static(b":\n\n");
        }
        self.after = position;
        progress(position)
    }

    fn push(&mut self, encoded: &EncodedEvent) {
        if encoded.number <= self.after {
            return;
        }
        self.after = encoded.number;
        let shown = self.shown.get(&encoded.event.request);
        if covers(&self.interests, encoded)
            && shown.is_none_or(|shown| encoded.event.version > *shown)
        {
            let frame = encoded.frame(self.key.as_ref()).clone();
            self.ready.push_back(frame);
        }
    }
}

/// Moves the reader's position; clients dispatch no event for it.
fn progress(number: u64) -> Bytes {
    format!("id: {number}\n\n").into()
}
