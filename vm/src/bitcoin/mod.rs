//! The `bitcoin-vm` family.

pub mod address;
mod combine;
pub mod owner;
pub mod partial;
pub mod psbt;
pub mod script;
pub mod withdrawal;

pub use combine::combinations;

use crate::{Family, spec::FinalityDefaults};

/// The table entry of `bitcoin-vm`.
pub static FAMILY: Family = Family {
    name: "bitcoin-vm",
    codec: &address::Addresses,
    tx_prefix: "",
    withdrawals: Some(&withdrawal::Withdrawals),
    owners: Some(&owner::Owners),
    orders: None,
    finality: FinalityDefaults {
        blocks: 2,
        seconds: 0,
        counts_own_block: true,
        watch_blocks: 12,
    },
    open: None,
};
