//! Real local chains, contracts and lying providers, for tests and for people.
//!
//! [`tools`] installs anvil and solc, [`artifact`] compiles `contracts/`, [`node`] runs a chain,
//! [`world`] puts three of them together, [`proxy`] stands between a daemon and a node and lies.
//! Nothing here is part of the daemon, and none of its keys may ever hold anything of value.

pub mod account;
pub mod anvil;
pub mod artifact;
pub mod claim;
pub mod contracts;
pub mod node;
pub mod proxy;
pub mod tools;
pub mod world;
