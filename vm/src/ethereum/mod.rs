//! The `ethereum-vm` family.

pub mod address;
pub mod order;
pub mod owner;
pub mod withdrawal;

use crate::{Family, spec::FinalityDefaults};

/// The table entry of `ethereum-vm`.
pub static FAMILY: Family = Family {
    name: "ethereum-vm",
    codec: &address::Addresses,
    tx_prefix: "",
    withdrawals: Some(&withdrawal::Withdrawals),
    owners: Some(&owner::Owners),
    orders: Some(&order::Orders),
    finality: FinalityDefaults {
        blocks: 10,
        seconds: 60,
        counts_own_block: false,
        watch_blocks: 128,
    },
    open: None,
};
