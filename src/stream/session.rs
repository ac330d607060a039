//! One WebSocket connection (guide: protocol 11.16): reads the client's commands and sends it events.

use std::{collections::HashMap, sync::Arc, time::Duration};

use alloy::primitives::B256;
use tokio::time::Instant;

use super::{
    Fanout, Listener, Present,
    encoded_event::{EncodedEvent, is_own},
    feed::FOLLOWED,
    protocol::{self, Asked, Wrong},
    subscriptions::Interest,
};
use crate::http::{End, KeyLabel, Socket, Utf8Bytes};

/// The most wrong messages of a client before the server disconnects it.
const MISTAKES: u32 = 8;
/// The most messages of a client per window; each may read the store, as a request does.
const MESSAGES: u32 = 300;
const WINDOW: Duration = Duration::from_secs(60);
/// Why a socket ends of whose only request there may never be an event. Who waits for one asks for the status instead.
const NO_EVENTS: &str = "nobody may ever tell of it: ask for the status";

/// One WebSocket connection.
pub struct Session {
    fanout: Arc<Fanout>,
    listener: Listener,
    key: Option<KeyLabel>,
    /// The version of the facts that the session sent for each request of its subscriptions.
    shown: HashMap<B256, u64>,
    mistakes: u32,
    messages: u32,
    since: Instant,
}

/// The status message of a request that a client subscribes to.
struct Shown {
    message: Utf8Bytes,
    /// There may never be an event of it, and the session follows nothing else.
    ends: bool,
}

enum Came {
    Said(Result<Utf8Bytes, End>),
    EncodedEvent(Option<Arc<EncodedEvent>>),
}

impl Session {
    /// `key`: the label of the client's key.
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
        // Removes the interests before the closing handshake.
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
                encoded = self.listener.next() => Came::EncodedEvent(encoded),
            };
            match came {
                Came::Said(said) => self.hear(socket, &said?).await?,
                Came::EncodedEvent(encoded) => {
                    let encoded = encoded.ok_or(End::Slow)?;
                    self.push(socket, &encoded).await?;
                }
            }
        }
    }

    async fn push(&self, socket: &mut Socket, encoded: &EncodedEvent) -> Result<(), End> {
        let wanted = self.listener.wants(encoded);
        let shown = self.shown.get(&encoded.event.request);
        if wanted && shown.is_none_or(|shown| encoded.event.version > *shown) {
            let message = encoded.message(self.key.as_ref()).clone();
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
                let Some(Shown { message, ends }) = now else {
                    return Ok(());
                };
                socket.send(message).await?;
                match ends {
                    true => Err(End::Done(NO_EVENTS)),
                    false => Ok(()),
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

    /// Runs a command. Returns the status message of a request, where one is to be sent.
    async fn act(&mut self, asked: Asked) -> Result<Option<Shown>, Wrong> {
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

    /// Subscribes before it reads, so that no event is missed; skips queued events that are older than what it read.
    async fn follow(&mut self, id: B256) -> Result<Shown, Wrong> {
        if !self.shown.contains_key(&id) && self.shown.len() >= FOLLOWED {
            return Err(Wrong::TooMany(FOLLOWED));
        }
        let interest = Interest::Request(id);
        self.listener.want(std::slice::from_ref(&interest));
        match self.fanout.now(&id).await {
            Ok(Some(Present { event, may_be_last })) => {
                self.shown.insert(id, event.version);
                let own = is_own(&event, self.key.as_ref());
                Ok(Shown {
                    message: event.message(own).into(),
                    ends: may_be_last && self.listener.wants_only(&interest),
                })
            }
            Ok(None) => {
                self.leave(id);
                Err(Wrong::Unknown)
            }
            Err(error) => {
                tracing::warn!(%error, "the session cannot read the request of a subscription");
                self.leave(id);
                Err(Wrong::Unavailable)
            }
        }
    }
}
