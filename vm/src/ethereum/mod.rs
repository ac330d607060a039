//! The `ethereum-vm` family.
//!
//! `read` and `head` talk to one node through `rpc` and `http`; `raw`, `decode`, `event`, `deposit`
//! and `suffix` are pure: node answers in, chain-neutral facts out.

pub mod address;
pub mod decode;
mod deposit;
mod event;
mod fork;
mod head;
mod http;
pub mod order;
pub mod owner;
pub mod raw;
mod read;
mod rpc;
mod suffix;
pub mod withdrawal;

use crate::{Family, Lengths, spec::FinalityDefaults};

/// The table entry of `ethereum-vm`.
pub static FAMILY: Family = Family {
    name: "ethereum-vm",
    codec: &address::Addresses,
    lengths: Lengths::both(20),
    tx_prefix: "",
    withdrawals: Some(&withdrawal::Withdrawals),
    owners: Some(&owner::Owners),
    orders: Some(&order::Orders),
    finality: FinalityDefaults {
        blocks: 10,
        seconds: 60,
        counts_own_block: false,
        watch_blocks: 128,
        has_tags: true,
    },
    open: Some(read::open),
    trade: None,
    steps: None,
    transactions: None,
};
