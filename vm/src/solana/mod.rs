//! The `solana-vm` family.

pub mod address;
pub mod owner;
pub mod withdrawal;

use crate::{Family, Lengths, hint::Hints, spec::FinalityDefaults};

/// The table entry of `solana-vm`.
pub static FAMILY: Family = Family {
    name: "solana-vm",
    short: "svm",
    codec: &address::Addresses,
    lengths: Lengths::both(32),
    native_decimals: None,
    tx_prefix: "",
    hints: Hints::NONE,
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
    open: None,
    trade: None,
    limits: None,
    providers: None,
    keys: None,
    landing: None,
    steps: None,
    approvals: None,
    swaps: None,
};
