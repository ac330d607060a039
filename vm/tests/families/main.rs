//! The families as their users see them: codecs, owners and withdrawals of all, readers of three against recorded answers
//! and lying nodes. One program: what is generic is compiled and linked once for all of these.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what a test finds broken ends it"
)]

mod bitcoin;
mod channel;
mod codecs;
mod evm;
mod odd;
mod owners;
mod server;
mod solana;
mod withdrawals;
