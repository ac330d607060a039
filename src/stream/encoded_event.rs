//! An event with its encodings: each wire format is encoded once and shared by all listeners. Pure.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::{
    http::{KeyLabel, Utf8Bytes},
    request::event::{Event, KIND},
};

/// An event of the log.
#[derive(Debug)]
pub struct EncodedEvent {
    /// The number in the log, by which readers resume.
    pub number: u64,
    pub key: Option<KeyLabel>,
    pub event: Event,
    owners: Wires,
    others: Wires,
}

/// The encodings for listeners of one kind (own key or not), each made on first use.
#[derive(Debug, Default)]
struct Wires {
    frame: OnceLock<Bytes>,
    message: OnceLock<Utf8Bytes>,
}

impl EncodedEvent {
    pub fn new(number: u64, event: Event) -> Self {
        Self {
            number,
            key: event.key.as_deref().map(KeyLabel::new),
            event,
            owners: Wires::default(),
            others: Wires::default(),
        }
    }

    /// The Server-Sent Event: its id is the number, its data the webhook's body. `key`: the listener's.
    pub fn frame(&self, key: Option<&KeyLabel>) -> &Bytes {
        let (own, wires) = self.wires(key);
        wires
            .frame
            .get_or_init(|| frame(Some(self.number), &self.event, own))
    }

    /// The WebSocket message (guide: protocol 11.16). `key`: the listener's.
    pub fn message(&self, key: Option<&KeyLabel>) -> &Utf8Bytes {
        let (own, wires) = self.wires(key);
        wires.message.get_or_init(|| self.event.message(own).into())
    }

    fn wires(&self, key: Option<&KeyLabel>) -> (bool, &Wires) {
        match is_own(&self.event, key) {
            true => (true, &self.owners),
            false => (false, &self.others),
        }
    }
}

/// Whether the request of `event` was quoted with the listener's key.
pub fn is_own(event: &Event, key: Option<&KeyLabel>) -> bool {
    key.is_some_and(|label| event.key.as_deref() == Some(label.as_str()))
}

/// One Server-Sent Event. Without a number the reader's position does not change.
pub fn frame(number: Option<u64>, event: &Event, own: bool) -> Bytes {
    let id = number.map_or_else(String::new, |number| format!("id: {number}\n"));
    format!("{id}event: {KIND}\ndata: {}\n\n", event.body(own)).into()
}
