//! An event as it goes out: written once per wire, shared by everybody who hears of it. Pure.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::{
    http::{KeyLabel, Utf8Bytes},
    request::event::{Event, KIND},
};

/// An event of the log.
#[derive(Debug)]
pub struct Told {
    /// Its number in the log, by which readers resume.
    pub number: u64,
    pub key: Option<KeyLabel>,
    pub event: Event,
    frame: OnceLock<Bytes>,
    message: OnceLock<Utf8Bytes>,
}

impl Told {
    pub fn new(number: u64, event: Event) -> Self {
        Self {
            number,
            key: event.key.as_deref().map(KeyLabel::new),
            event,
            frame: OnceLock::new(),
            message: OnceLock::new(),
        }
    }

    /// For Server-Sent Events: the number as its id, the webhook's body as its data.
    pub fn frame(&self) -> &Bytes {
        self.frame
            .get_or_init(|| frame(Some(self.number), &self.event))
    }

    /// For WebSockets (integrator-api.md 15).
    pub fn message(&self) -> &Utf8Bytes {
        self.message.get_or_init(|| self.event.message().into())
    }
}

/// One Server-Sent Event. Without a number the reader's place stays where it was.
pub fn frame(number: Option<u64>, event: &Event) -> Bytes {
    let id = number.map_or_else(String::new, |number| format!("id: {number}\n"));
    format!("{id}event: {KIND}\ndata: {}\n\n", event.body()).into()
}
