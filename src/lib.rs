//! intentd.

pub mod attest;
pub mod http;
pub mod sign;
pub mod store;
