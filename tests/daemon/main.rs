//! The daemon: in this process, against real local nodes, the recorded world, and what others wrote; as a process that
//! is started, killed and asked for its verbs; and its HTTP layer and its trading by themselves. One program: what is
//! generic in the daemon is compiled and linked once for all of these. Metrics are of each test's runtime, log lines of
//! the process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed unwrap is a failed test"
)]

#[path = "../support/mod.rs"]
mod support;

mod clients;
mod conflicts;
mod crash;
mod description;
mod evidence;
mod fee_tokens;
mod halts;
mod http;
mod index;
mod integrators;
mod kms;
mod limits;
mod logs;
mod mapping;
mod operations;
mod orders;
mod owners;
mod peers;
mod prices;
mod providers;
mod recorded;
mod reorg;
mod scripts;
mod sdk;
mod settlement;
mod settler;
mod solana;
mod start;
mod store;
mod swaps;
mod tampered;
mod trade;
mod unsigned;
