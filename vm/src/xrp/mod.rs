//! The `xrp-vm` family.

pub mod address;
pub mod withdrawal;

use crate::{Family, Lengths, hint::Hints, spec::FinalityDefaults};

/// The table entry of `xrp-vm`.
pub static FAMILY: Family = Family {
    name: "xrp-vm",
    short: "xrpvm",
    codec: &address::Addresses,
    lengths: Lengths::ANY,
    native_decimals: None,
    tx_prefix: "",
    hints: Hints::NONE,
    unknown_is_empty: false,
    blooms: false,
    sole_depository: false,
    authorizable: false,
    withdraws_from: None,
    unproven: None,
    check_payload: None,
    withdrawals: Some(&withdrawal::Withdrawals),
    payloads: None,
    owners: None,
    owner_keys: None,
    orders: None,
    finality: FinalityDefaults {
        blocks: 0,
        seconds: 0,
        counts_own_block: false,
        watch_blocks: 128,
        has_tags: false,
        block_seconds: 4,
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
