//! Trading on a real chain: deposits are found, transactions are sent and followed, accounts are
//! read, through a provider that may lie.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed unwrap is a failed test"
)]

mod accounts;
mod rig;
mod scan;
mod witness;
mod write;
