//! An event as it is sent: encoded once per wire format, shared by all listeners. Pure.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::{
    http::{KeyLabel, Utf8Bytes},
    request::event::{Event, KIND},
};

/// An event of the log.
#[derive(Debug)]
pub struct EncodedEvent {
    /// Its number in the log, by which readers resume.
    pub number: u64,
    pub key: Option<KeyLabel>,
    pub event: Event,
    owners: Wires,
    others: Wires,
}

/// Encoded once for all listeners of one kind.
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

    /// For Server-Sent Events: the number as its id, the webhook's body as its data. `key`: the
    /// listener's.
    pub fn frame(&self, key: Option<&KeyLabel>) -> &Bytes {
        let (own, wires) = self.wires(key);
        wires
            .frame
            .get_or_init(|| frame(Some(self.number), &self.event, own))
    }

    /// For WebSockets (guide: protocol 11.16).
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

/// Whether `event` is of the key that a listener came with.
pub fn is_own(event: &Event, key: Option<&KeyLabel>) -> bool {
    key.is_some_and(|label| event.key.as_deref() == Some(label.as_str()))
}

/// One Server-Sent Event. Without a number the reader's position stays.
pub fn frame(number: Option<u64>, event: &Event, own: bool) -> Bytes {
    let id = number.map_or_else(String::new, |number| format!("id: {number}\n"));
    format!("{id}event: {KIND}\ndata: {}\n\n", event.body(own)).into()
}
