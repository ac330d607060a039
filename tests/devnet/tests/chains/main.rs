//! Chains, contracts and the proxy by themselves, and the program `devnet` over all of them. One program: what is
//! generic is compiled and linked once for all of these.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what a test finds broken ends it"
)]

#[path = "../../../support/mod.rs"]
mod support;

mod attacks;
mod bitcoin;
mod claims;
mod cluster;
mod depository;
mod landing;
mod logs;
mod node;
mod orders;
mod proxy;
mod router;
mod settlement;
mod solana;
mod story;
