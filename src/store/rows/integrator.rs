//! Integrators with the digests of their keys; changed by compare-and-set only.
//!
//! Key: the label, text. Value, format 1: [`Integrator`] in JSON.
//!
//! The row lives for ever, also after a revocation, because labels are not reused. Some 500 bytes.

use super::INTEGRATOR;
use crate::{
    integrator::Integrator,
    store::{Key, Range},
};

const FORMAT: u8 = 1;

pub fn key(label: &str) -> Key {
    Key::new(INTEGRATOR, label)
}

/// All integrators.
pub fn range() -> Range {
    Range::new(INTEGRATOR, &[], None, usize::MAX)
}

stored!(foreign Integrator, "integrator", encode_json, decode_json);
