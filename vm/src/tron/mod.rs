//! The `tron-vm` family.

pub mod address;
pub mod order;
pub mod owner;
pub mod withdrawal;

use crate::{Family, Lengths, hint::Hints, spec::FinalityDefaults};

/// The table entry of `tron-vm`.
pub static FAMILY: Family = Family {
    name: "tron-vm",
    short: "tvm",
    codec: &address::Addresses,
    lengths: Lengths::ANY,
    native_decimals: None,
    tx_prefix: "0x",
    hints: Hints::NONE,
    unknown_is_empty: false,
    blooms: false,
    sole_depository: true,
    authorizable: true,
    withdraws_from: None,
    unproven: None,
    check_payload: None,
    withdrawals: Some(&withdrawal::WITHDRAWALS),
    payloads: None,
    owners: Some(&owner::Owners),
    owner_keys: None,
    orders: Some(&order::Orders),
    finality: FinalityDefaults {
        blocks: 10,
        seconds: 60,
        counts_own_block: false,
        watch_blocks: 128,
        has_tags: false,
        block_seconds: 3,
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
