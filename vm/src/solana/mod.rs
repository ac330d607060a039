//! The `solana-vm` family.
//!
//! `read` talks to one node through `question` and `transport`; `raw`, `executed`, `transfer`, `deposit`, `payment` and
//! `decode` are pure: node answers in, chain-neutral facts out.

pub mod address;
pub mod decode;
mod deposit;
pub mod executed;
pub mod owner;
mod payment;
pub mod programs;
mod question;
pub mod raw;
mod read;
mod transfer;
mod transport;
pub mod withdrawal;

use crate::{Family, Lengths, hint::Hints, spec::FinalityDefaults};

/// The table entry of `solana-vm`.
pub static FAMILY: Family = Family {
    name: "solana-vm",
    short: "svm",
    codec: &address::Addresses,
    lengths: Lengths {
        transaction: Some(64),
        ..Lengths::both(32)
    },
    native_decimals: None,
    tx_prefix: "",
    hints: Hints::NONE,
    unknown_is_empty: true,
    withdrawals: Some(&withdrawal::Withdrawals),
    owners: Some(&owner::Owners),
    orders: None,
    finality: FinalityDefaults {
        blocks: 0,
        seconds: 0,
        counts_own_block: false,
        watch_blocks: 128,
        has_tags: false,
    },
    entry: None,
    open: Some(read::open),
    trade: None,
    limits: None,
    providers: None,
    keys: None,
    landing: None,
    steps: None,
    approvals: None,
    swaps: None,
};
