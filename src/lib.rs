//! intentd: a cross-chain intent service in one daemon. README.md is the front door, [`guide`] has the rest; the
//! map of the source is in [`guide::develop`].

pub mod admin;
pub mod api;
pub mod attest;
pub mod chains;
pub mod chart;
pub mod cli;
pub mod config;
pub mod format;
pub mod guide;
pub mod http;
pub mod hub;
pub mod index;
pub mod integrator;
pub mod json;
pub mod market;
pub mod price;
pub mod quote;
pub mod redact;
pub mod request;
pub mod run;
pub mod sign;
pub mod solver;
pub mod store;
pub mod stream;
pub mod telemetry;
pub mod webhook;
