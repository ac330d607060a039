//! The `lighter-vm` family.

pub mod address;
mod keys;
pub mod owner;
pub mod withdrawal;

use crate::{Family, Lengths, hint::Hints, spec::FinalityDefaults};

/// The table entry of `lighter-vm`.
pub static FAMILY: Family = Family {
    name: "lighter-vm",
    short: "lvm",
    codec: &address::Addresses,
    lengths: Lengths::ANY,
    native_decimals: None,
    tx_prefix: "",
    hints: Hints::NONE,
    unknown_is_empty: false,
    blooms: false,
    sole_depository: false,
    authorizable: true,
    withdraws_from: None,
    unproven: None,
    check_payload: Some(withdrawal::check_payload),
    withdrawals: Some(&withdrawal::Withdrawals),
    payloads: None,
    owners: Some(&owner::Owners),
    owner_keys: Some(keys::open),
    orders: None,
    finality: FinalityDefaults {
        blocks: 0,
        seconds: 0,
        counts_own_block: false,
        watch_blocks: 128,
        has_tags: false,
        block_seconds: 1,
        lag_seconds: 0,
    },
    entry: None,
    open: None,
    trade: None,
    limits: None,
    providers: None,
    keys: None,
    landing: None,
    steps: None,
    choices: false,
    own_call: None,
    approvals: None,
    swaps: None,
};
