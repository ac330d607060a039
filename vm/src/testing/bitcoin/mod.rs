//! A scripted Bitcoin chain, in the process of its tests: nodes that speak JSON-RPC (`rpc`) and an index that answers as
//! Esplora does (`index`), both through [`crate::http::inside`], over blocks, forks and a memory pool under the control of
//! a test (`world`). `ledger` is what the blocks have, `pool` what nodes take into their memory pools, `key` who signs.
//!
//! Scripts are those of keys only: an input of any other script is spent by nobody but the chain itself.

mod index;
mod key;
mod ledger;
mod pool;
mod rpc;
mod view;
mod world;

#[cfg(test)]
mod tests;

pub use self::{
    index::LISTED,
    key::Key,
    world::{Done, INDEX, Rules, World},
};
