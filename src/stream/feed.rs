//! Server-Sent Events: first the events behind the one that the reader saw last, then new ones, without a gap and
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

/// How often a comment is sent, so that no intermediary takes the connection for dead.
const BEAT: Duration = Duration::from_secs(15);
/// How long readers are told to wait before they come back.
const RETRY: &[u8] = b"retry: 2000\n\n";
/// Past events that are searched for one reader.
pub const PAST: u64 = 200_000;

/// Requests that one feed may follow by their ids.
pub const FOLLOWED: usize = 100;

/// Why there is no feed.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    #[error(transparent)]
    Requests(#[from] RequestsError),
    #[error("unknown request {0}")]
    Unknown(B256),
    /// The events behind the one that the reader saw last are no longer kept, or that event never existed.
    #[error("events behind {0} are not kept")]
    Gone(u64),
}

/// What a feed reads now.
#[derive(Clone, Copy)]
enum FeedPosition {
    /// The log, far from its end.
    Past,
    /// The log, up to where the feed began to listen.
    Nearly {
        until: u64,
    },
    /// The events of its own requests, up to where it began to listen.
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
    place: FeedPosition,
    /// The reader has everything up to this number.
    after: u64,
    /// The version of the facts that each request was shown with.
    shown: HashMap<B256, u64>,
    ready: VecDeque<Bytes>,
    /// Numbers of its own events that it has not read.
    own: VecDeque<u64>,
    beat: Interval,
}

/// The events of `interests` as a body of `text/event-stream`; it ends when its reader is too slow. With `after` it
/// begins behind that event; without, with the present status of each request. `key`: the reader's, where it may read
/// its requests.
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
        place: FeedPosition::Past,
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
                self.place = FeedPosition::Own { until };
            }
            None => self.listener.leave_all(),
        }
        Ok(())
    }

    /// Listens first and reads then: events in the queue that are older than what was read are not sent.
    async fn begin(&mut self) -> Result<(), FeedError> {
        self.after = self.listener.want(&self.interests);
        self.place = FeedPosition::Live;
        for interest in &self.interests {
            let Interest::Request(id) = interest else {
                // Nothing has been sent yet, so a reader that is cut off at once must learn its position.
                self.ready.push_back(progress(self.after));
                continue;
            };
            let now = self.fanout.now(id).await?;
            let now = now.ok_or(FeedError::Unknown(*id))?;
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
            match self.place {
                FeedPosition::Past => self.read(u64::MAX).await?,
                FeedPosition::Nearly { until } if self.after < until => self.read(until).await?,
                FeedPosition::Own { .. } if !self.own.is_empty() => self.read_own().await?,
                FeedPosition::Own { until } => {
                    self.after = self.after.max(until);
                    self.place = FeedPosition::Live;
                }
                FeedPosition::Nearly { .. } => self.place = FeedPosition::Live,
                FeedPosition::Live => {
                    tokio::select! {
                        told = self.listener.next() => self.tell(&*told?),
                        _ = self.beat.tick() => return Some(self.alive()),
                    }
                }
            }
        }
    }

    /// Reads a page of the log, no further than `until`. `None` where the log cannot be read on: the reader comes
    /// back and learns why.
    async fn read(&mut self, until: u64) -> Option<()> {
        let named = |interest: &Interest| matches!(interest, Interest::Request(_));
        let named = self.interests.iter().all(named);
        let page = self.fanout.past(self.after, named).await;
        let page = page
            .inspect_err(|error| tracing::warn!(%error, "a feed ends"))
            .ok()?;
        let ended = page.len() < PAGE;
        for told in page.iter().take_while(|told| told.number <= until) {
            if told.number != self.after + 1 {
                return None;
            }
            self.tell(told);
        }
        if self.ready.is_empty() && !page.is_empty() {
            self.ready.push_back(progress(self.after));
        }
        self.place = match self.place {
            FeedPosition::Past if ended => FeedPosition::Nearly {
                until: self.listener.want(&self.interests),
            },
            FeedPosition::Nearly { .. } if page.is_empty() => return None,
            place => place,
        };
        Some(())
    }

    /// Reads the next of its own events. `None` as in [`Feed::read`], also where one of them is gone.
    async fn read_own(&mut self) -> Option<()> {
        let some: Vec<u64> = self.own.drain(..self.own.len().min(PAGE)).collect();
        let told = self.fanout.single(&some).await;
        let told = told
            .inspect_err(|error| tracing::warn!(%error, "a feed ends"))
            .ok()?;
        if told.len() < some.len() {
            return None;
        }
        told.iter().for_each(|told| self.tell(told));
        Some(())
    }

    /// A heartbeat. Where other events have passed, it moves the reader's position, so that a reader that comes back
    /// does not go through events that never concerned it.
    fn alive(&mut self) -> Bytes {
        let position = self.fanout.post().position;
        if self.listener.waiting() > 0 || position <= self.after {
            return Bytes::from_static(b":\n\n");
        }
        self.after = position;
        progress(position)
    }

    fn tell(&mut self, told: &EncodedEvent) {
        if told.number <= self.after {
            return;
        }
        self.after = told.number;
        let shown = self.shown.get(&told.event.request);
        if covers(&self.interests, told) && shown.is_none_or(|shown| told.event.version > *shown) {
            let frame = told.frame(self.key.as_ref()).clone();
            self.ready.push_back(frame);
        }
    }
}

/// Moves the reader's position; the client dispatches nothing.
fn progress(number: u64) -> Bytes {
    format!("id: {number}\n\n").into()
}
