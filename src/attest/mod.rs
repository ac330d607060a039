//! The oracle's judgements, and the journal of what it has signed.
//!
//! One file per claim, pure over what was read: [`deposit`], [`order`] with [`fill`] and [`refund`] (both over
//! [`paid`]), [`recover`], [`withdrawal`], [`mapping`]. [`execution`] says what follows for the hub, [`finality`] how
//! final a block must be, [`refusal`] has every refusal, and [`claim`] the limits of claims.
//!
//! The rest does I/O: [`read`] reads what a claim names, [`journal`] signs once and for ever, [`peers`] asks other
//! oracles, [`service`] puts these together, and [`watch`] checks that signed facts are still on the chain.

pub mod backing;
pub mod claim;
pub mod deposit;
pub mod execution;
pub mod fill;
pub mod finality;
#[cfg(test)]
mod fixtures;
pub mod journal;
pub mod mapping;
pub mod order;
pub mod paid;
pub mod peers;
pub mod plan;
pub mod read;
pub mod recover;
pub mod refund;
pub mod refusal;
pub mod service;
pub mod statement;
#[cfg(test)]
mod tests;
pub mod watch;
pub mod withdrawal;

pub use refusal::Refusal;
