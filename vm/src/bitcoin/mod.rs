//! The `bitcoin-vm` family.

pub mod address;
pub mod owner;
pub mod withdrawal;

use crate::Family;

/// The table entry of `bitcoin-vm`.
pub static FAMILY: Family = Family {
    name: "bitcoin-vm",
    codec: &address::Addresses,
    withdrawals: Some(&withdrawal::Withdrawals),
    owners: Some(&owner::Owners),
    orders: None,
    open: None,
};
