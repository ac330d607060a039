//! The `xrp-vm` family.

pub mod address;
pub mod withdrawal;

use crate::Family;

/// The table entry of `xrp-vm`.
pub static FAMILY: Family = Family {
    name: "xrp-vm",
    codec: &address::Addresses,
    withdrawals: Some(&withdrawal::Withdrawals),
    owners: None,
    orders: None,
    open: None,
};
