//! The `hyperliquid-vm` family.

pub mod address;
pub mod owner;
pub mod withdrawal;

use crate::{
    Family, Lengths,
    hint::{HintField, HintShape, Hints},
    spec::FinalityDefaults,
};

/// The hints that find a payment: its sender and time.
const HINTS: Hints = Hints {
    deposit: None,
    payment: Some(HintShape {
        title: "HyperliquidHint",
        about: "",
        fields: &[HintField::text("user"), HintField::number("timestamp")],
    }),
};

/// The table entry of `hyperliquid-vm`.
pub static FAMILY: Family = Family {
    name: "hyperliquid-vm",
    short: "hypevm",
    codec: &address::ADDRESSES,
    lengths: Lengths {
        account: (20, 20),
        // A token id, followed by the name of its exchange.
        currency: (16, 48),
        transaction: None,
    },
    native_decimals: None,
    tx_prefix: "",
    hints: HINTS,
    unknown_is_empty: false,
    blooms: false,
    sole_depository: false,
    authorizable: false,
    withdraws_from: None,
    unproven: None,
    check_payload: Some(withdrawal::check_payload),
    withdrawals: Some(&withdrawal::Withdrawals),
    payloads: None,
    owners: Some(&owner::Owners),
    owner_keys: None,
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
