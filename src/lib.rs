//! intentd.
pub mod http;
