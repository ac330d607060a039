//! The bitcoin family against recorded answers, hostile transactions and lying nodes.

mod agreement;
pub mod allocator;
mod decode;
mod index;
mod key_hash;
pub mod ledger;
mod node;
mod read;
mod sending;
mod withdrawal;
