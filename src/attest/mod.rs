//! The oracle's judges, and the journal of what it has signed.
//!
//! One file per claim, pure over what was read: [`deposit`], [`order`] with [`fill`] and [`refund`] (both over
//! [`paid`]), [`recover`], [`owner`], [`withdrawal`], [`mapping`]. [`execution`] makes the hub's actions, [`finality`] the
//! required finality, [`refusal`] has every refusal, [`claim`] the limits of claims, and [`measured`] the rules of an
//! order beside what was found.
//!
//! [`document`] is a signed statement with its evidence, and its checks.
//!
//! The rest does I/O: [`evidence`] records why a statement is signed, [`read`] reads a claim's transactions, [`journal`]
//! signs, [`peers`] asks other oracles, [`shadow`] compares with another oracle, [`service`] combines these, and
//! [`watch`] checks that signed facts are still on the chain. [`basis`] notes what an answer depends on.

pub mod backing;
pub mod basis;
pub mod claim;
pub mod deposit;
pub mod document;
pub mod evidence;
pub mod exchange;
pub mod execution;
pub mod fill;
pub mod finality;
#[cfg(test)]
mod fixtures;
pub mod journal;
pub mod mapping;
pub mod measured;
pub mod order;
pub mod owner;
pub mod paid;
pub mod peers;
pub mod plan;
pub mod read;
pub mod recover;
pub mod refund;
pub mod refusal;
pub mod service;
pub mod shadow;
mod spelled;
pub mod statement;
#[cfg(test)]
mod tests;
pub mod watch;
pub mod withdrawal;

pub use refusal::Refusal;
