//! Events that the worker gave up for an endpoint; the operator can send them again.
//!
//! Key: as that of a [delivery](super::delivery). Value, format 1: [`Dead`].
//!
//! The row lives for 30 days; some 150 bytes.

use serde::{Deserialize, Serialize};

use super::{
    DEAD,
    delivery::{Delivery, name},
};
use crate::store::Key;

const FORMAT: u8 = 1;

/// A delivery that was given up, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dead {
    pub why: String,
    /// Unix milliseconds.
    pub at: u64,
    pub delivery: Delivery,
}

stored!(Dead, "dead", encode, decode);

/// The key of the dead delivery of event `number` to `label`.
pub fn key(label: &str, number: u64) -> Key {
    Key::new(DEAD, name(label, number))
}
