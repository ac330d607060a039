//! Pure encodings that all families share. No I/O, no clock.

pub mod action;
pub mod address;
pub mod call;
pub mod hub;
pub mod id;
pub mod json;
pub mod limits;
pub mod mapping;
pub mod message;
pub mod order;
pub mod owner;
pub mod request;
pub mod signature;
pub mod text;
pub mod trigger;

/// Basis points of a whole.
pub const BASIS_POINTS: u64 = 10_000;
