//! Real local chains, contracts and lying providers, for tests and for people.
//!
//! [`tools`] installs anvil and solc, [`artifact`] compiles `contracts/`, [`node`] runs a chain,
//! [`world`] puts three of them together, [`proxy`] stands between a daemon and a node and lies. [`bitcoin`] and
//! [`solana`] are chains of other families.
//! Nothing here is part of the daemon, and none of its keys may ever hold anything of value.

pub mod account;
pub mod anvil;
pub mod artifact;
pub mod bitcoin;
pub mod claim;
pub mod contracts;
mod leash;
pub mod node;
pub mod proxy;
pub mod solana;
pub mod tools;
pub mod world;
