//! The `ton-vm` family.

pub mod address;
mod keys;
pub mod owner;
pub mod withdrawal;

use crate::{
    Family, Lengths,
    hint::{HintField, HintShape, Hints},
    spec::FinalityDefaults,
};

/// The hints that find a transaction: its account and logical time.
const HINTS: Hints = Hints {
    deposit: Some(HintShape {
        title: "TonHint",
        about: "The logical time of a TON transaction.",
        fields: &[HintField::text("lt").optional()],
    }),
    payment: Some(HintShape {
        title: "TonFillHint",
        about: "",
        fields: &[
            HintField::text("solverAddress"),
            HintField::text("lt").optional(),
        ],
    }),
};

/// The table entry of `ton-vm`.
pub static FAMILY: Family = Family {
    name: "ton-vm",
    short: "tonvm",
    codec: &address::Addresses,
    lengths: Lengths::ANY,
    native_decimals: None,
    tx_prefix: "",
    hints: HINTS,
    unknown_is_empty: false,
    blooms: false,
    sole_depository: false,
    authorizable: true,
    withdraws_from: None,
    unproven: None,
    check_payload: None,
    withdrawals: Some(&withdrawal::Withdrawals),
    payloads: None,
    owners: Some(&owner::Owners),
    owner_keys: Some(keys::open),
    orders: None,
    finality: FinalityDefaults {
        blocks: 5,
        seconds: 0,
        counts_own_block: false,
        watch_blocks: 128,
        has_tags: false,
        block_seconds: 5,
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
