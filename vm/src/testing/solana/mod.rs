//! A scripted Solana chain, in the process of its tests: nodes that speak JSON-RPC without a network (`rpc`, through
//! [`crate::http::inside`]), blocks and forks under the control of a test (`world`), and the instructions that this crate
//! makes, executed on balances (`bank`). No runtime: nothing else has any effect.
//!
//! A slot is a height, and every third has no block. `wire` reads transactions as they are sent. `aggregator` has
//! one exchange, whose effects no transaction has.

pub mod aggregator;
mod bank;
mod rpc;
mod wire;
mod world;

#[cfg(test)]
mod tests;

pub use solana_pubkey::Pubkey;

pub use self::{
    bank::{Bank, Done, Paid},
    wire::{Sent, signed},
    world::{FINAL, Rules, World},
};
