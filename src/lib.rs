//! intentd.

pub mod attest;
pub mod sign;
pub mod store;
