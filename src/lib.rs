//! intentd: a cross-chain intent service in one daemon. See README.md for the map.

pub mod api;
pub mod attest;
pub mod config;
pub mod http;
pub mod hub;
pub mod redact;
pub mod sign;
pub mod store;
pub mod telemetry;
