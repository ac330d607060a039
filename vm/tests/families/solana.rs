//! The solana family against built transactions, hostile ones among them, and nodes that lie.

mod build;
mod decode;
mod doubt;
mod node;
mod payments;
mod read;
mod withdrawals;
