//! The bitcoin family against recorded answers, hostile transactions and lying nodes.

mod agreement;
mod decode;
mod index;
pub mod ledger;
mod node;
mod read;
mod withdrawal;
