//! The solana family against built transactions, hostile ones among them, and nodes that lie.

mod bank;
mod build;
mod decode;
mod doubt;
mod landing;
mod node;
mod payments;
mod read;
mod scan;
mod withdrawals;
