//! The daemon in this process, against real local nodes, the recorded world, and what others wrote. One program: what is
//! generic in the daemon is compiled and linked once for all of these.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed unwrap is a failed test"
)]

#[path = "../support/mod.rs"]
mod support;

mod bitcoin_fills;
mod clients;
mod conflicts;
mod fee_tokens;
mod halts;
mod index;
mod integrators;
mod limits;
mod operations;
mod orders;
mod peers;
mod prices;
mod recorded;
mod reorg;
mod sdk;
mod settlement;
mod settler;
mod swaps;
