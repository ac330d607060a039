//! Changes of requests' statuses in the order of their commits: a log
//! ([`Batch::append`](crate::store::Batch::append)).
//!
//! Key: the event's number, 8 bytes big endian. Value, format 1: [`Event`].
//!
//! The row lives for 30 days, longer while a follower or a delivery needs it; the newest one stays. Some 1 KB.

use super::{EVENT, RowError};
use crate::{
    request::event::Event,
    store::{Key, Range},
};

const FORMAT: u8 = 1;

pub fn key(number: u64) -> Key {
    Key::new(EVENT, number.to_be_bytes())
}

/// The events after `number`, oldest first.
pub fn after(number: u64, limit: usize) -> Range {
    Range::new(EVENT, &[], Some(number.to_be_bytes().into()), limit)
}

/// The newest event.
pub fn newest() -> Range {
    Range {
        after: None,
        limit: 1,
        reverse: true,
        ..after(0, 1)
    }
}

stored!(foreign Event, "event", encode, decode);

/// The event and its number.
pub fn row(key: &Key, bytes: &[u8]) -> Result<(u64, Event), RowError> {
    let number = crate::store::number(&key.name);
    let number = number.ok_or_else(|| RowError::new("event", "its name is no number"))?;
    Ok((number, decode(bytes)?))
}
