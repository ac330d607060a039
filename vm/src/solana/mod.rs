//! The `solana-vm` family.
//!
//! `read` talks to one node through `link`, `question` and `transport`; `raw`, `executed`, `transfer`, `deposit`,
//! `payment` and `decode` are pure: node answers in, chain-neutral facts out. `trade` is the trading half.

pub mod address;
pub mod decode;
mod deposit;
pub mod executed;
mod link;
pub mod owner;
mod payment;
pub mod programs;
mod question;
pub mod raw;
mod read;
mod trade;
mod transfer;
mod transport;
pub mod withdrawal;

use crate::{
    Family, Lengths, family::FamilyKeys, hint::Hints, spec::FinalityDefaults, trade::Scheme,
};

/// The table entry of `solana-vm`.
pub static FAMILY: Family = Family {
    name: "solana-vm",
    short: "svm",
    codec: &address::Addresses,
    lengths: Lengths {
        transaction: Some(64),
        ..Lengths::both(32)
    },
    native_decimals: Some(9),
    tx_prefix: "",
    hints: Hints::NONE,
    unknown_is_empty: true,
    blooms: false,
    sole_depository: true,
    authorizable: true,
    withdraws_from: None,
    unproven: None,
    check_payload: None,
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
        // A finalized slot has 32 on top, of 0.4 s each.
        lag_seconds: 13,
    },
    entry: None,
    open: Some(read::open),
    trade: Some(trade::open),
    limits: Some(trade::limits),
    providers: Some(trade::providers),
    keys: Some(FamilyKeys {
        scheme: Scheme::Ed25519,
        account: trade::account,
    }),
    landing: Some(&trade::Landing),
    steps: Some(&trade::Steps),
    choices: true,
    own_call: Some(trade::own_call),
    approvals: None,
    swaps: Some(trade::open_swaps),
};
