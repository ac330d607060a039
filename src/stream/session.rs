//! One WebSocket (guide: protocol 11.16): what its client asks for, and what is sent to it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use alloy::primitives::B256;
use tokio::time::Instant;

use super::{
    Fanout, Listener,
    encoded_event::{EncodedEvent, is_own},
    feed::FOLLOWED,
    protocol::{self, Asked, Wrong},
    subscriptions::Interest,
};
use crate::http::{End, KeyLabel, Socket, Utf8Bytes};

/// Wrong messages that a client may send before it is disconnected.
const MISTAKES: u32 = 8;
/// Messages of a client in a window; each may read the store, as a request does.
const MESSAGES: u32 = 300;
const WINDOW: Duration = Duration::from_secs(60);

/// One WebSocket connection.
pub struct Session {
    fanout: Arc<Fanout>,
    listener: Listener,
    key: Option<KeyLabel>,
    /// The version of the facts that each request of its own subscription was shown with.
    shown: HashMap<B256, u64>,
    mistakes: u32,
    messages: u32,
    since: Instant,
}

enum Came {
    Said(Result<Utf8Bytes, End>),
    EncodedEvent(Option<Arc<EncodedEvent>>),
}

impl Session {
    /// `key`: the label of the key that the client showed.
    pub fn new(fanout: &Arc<Fanout>, key: Option<KeyLabel>) -> Self {
        Self {
            fanout: fanout.clone(),
            listener: fanout.listen(key.clone()),
            key,
            shown: HashMap::new(),
            mistakes: 0,
            messages: 0,
            since: Instant::now(),
        }
    }

    /// Serves the connection until either side ends it.
    pub async fn run(mut self, mut socket: Socket) {
        let end = self.talk(&mut socket).await;
        // The interests are removed before the closing message.
        drop(self);
        if let Err(end) = end {
            socket.close(end).await;
        }
    }

    async fn talk(&mut self, socket: &mut Socket) -> Result<(), End> {
        let ready = protocol::ready(&format!("{:x}", self.listener.number()));
        socket.send(ready.into()).await?;
        loop {
            let came = tokio::select! {
                said = socket.next() => Came::Said(said),
                told = self.listener.next() => Came::EncodedEvent(told),
            };
            match came {
                Came::Said(said) => self.hear(socket, &said?).await?,
                Came::EncodedEvent(told) => {
                    let told = told.ok_or(End::Slow)?;
                    self.tell(socket, &told).await?;
                }
            }
        }
    }

    async fn tell(&self, socket: &mut Socket, told: &EncodedEvent) -> Result<(), End> {
        let wanted = self.listener.wants(told);
        let shown = self.shown.get(&told.event.request);
        if wanted && shown.is_none_or(|shown| told.event.version > *shown) {
            let message = told.message(self.key.as_ref()).clone();
            socket.send(message).await?;
        }
        Ok(())
    }

    async fn hear(&mut self, socket: &mut Socket, text: &str) -> Result<(), End> {
        self.count()?;
        let asked = protocol::read(text);
        let known = asked.as_ref().ok().copied();
        let done = match asked {
            Ok(asked) => self.act(asked).await.map(|now| (asked, now)),
            Err(wrong) => Err(wrong),
        };
        match done {
            Ok((asked, now)) => {
                socket.send(protocol::done(&asked).into()).await?;
                match now {
                    Some(now) => socket.send(now).await,
                    None => Ok(()),
                }
            }
            Err(wrong) => {
                let reply = protocol::refused(known.as_ref(), &wrong);
                socket.send(reply.into()).await?;
                self.mistakes += u32::from(wrong.blamed());
                match self.mistakes {
                    MISTAKES.. => Err(End::Misused("too many mistakes")),
                    _ => Ok(()),
                }
            }
        }
    }

    fn count(&mut self) -> Result<(), End> {
        let now = Instant::now();
        if now.duration_since(self.since) >= WINDOW {
            (self.since, self.messages) = (now, 0);
        }
        self.messages += 1;
        if self.messages > MESSAGES {
            return Err(End::Misused("too many messages"));
        }
        Ok(())
    }

    /// Does what was asked. Where a request's status is to be sent, returns it.
    async fn act(&mut self, asked: Asked) -> Result<Option<Utf8Bytes>, Wrong> {
        match asked {
            Asked::Subscribe(Some(id)) => self.follow(id).await.map(Some),
            Asked::Subscribe(None) => {
                let key = self.key.clone().ok_or(Wrong::KeyRequired)?;
                self.listener.want(&[Interest::Key(key)]);
                Ok(None)
            }
            Asked::Unsubscribe(Some(id)) => {
                self.leave(id);
                Ok(None)
            }
            Asked::Unsubscribe(None) => {
                self.listener.leave_all();
                self.shown.clear();
                Ok(None)
            }
        }
    }

    fn leave(&mut self, id: B256) {
        self.listener.leave(&Interest::Request(id));
        self.shown.remove(&id);
    }

    /// Listens first and reads then, so that no event is missed in between. Events in the queue that are older than
    /// what was read are not sent.
    async fn follow(&mut self, id: B256) -> Result<Utf8Bytes, Wrong> {
        if !self.shown.contains_key(&id) && self.shown.len() >= FOLLOWED {
            return Err(Wrong::TooMany(FOLLOWED));
        }
        self.listener.want(&[Interest::Request(id)]);
        match self.fanout.now(&id).await {
            Ok(Some(now)) => {
                self.shown.insert(id, now.version);
                Ok(now.message(is_own(&now, self.key.as_ref())).into())
            }
            Ok(None) => {
                self.leave(id);
                Err(Wrong::Unknown)
            }
            Err(error) => {
                tracing::warn!(%error, "a subscriber is not served");
                self.leave(id);
                Err(Wrong::Unavailable)
            }
        }
    }
}
