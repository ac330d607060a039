//! The `ethereum-vm` family.
//!
//! `read` and `head` talk to one node through `rpc` and `http`; `raw`, `decode`, `event`, `deposit`, `suffix`,
//! `rpc_error` and `revert` are pure: node answers in, chain-neutral facts out. `trade` is the other half.

mod abi;
pub mod address;
pub mod decode;
mod deposit;
mod event;
mod fork;
mod head;
mod http;
pub mod order;
pub mod owner;
pub mod raw;
mod read;
mod revert;
mod rpc;
mod rpc_error;
mod suffix;
pub mod trade;
pub mod withdrawal;

use crate::{Family, FamilyKeys, Lengths, hint::Hints, spec::FinalityDefaults, trade::Scheme};

/// The table entry of `ethereum-vm`.
pub static FAMILY: Family = Family {
    name: "ethereum-vm",
    short: "evm",
    codec: &address::ADDRESSES,
    lengths: Lengths::both(20),
    native_decimals: Some(18),
    tx_prefix: "",
    hints: Hints::NONE,
    unknown_is_empty: false,
    blooms: true,
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
        has_tags: true,
        block_seconds: 2,
        lag_seconds: 0,
    },
    entry: None,
    open: Some(read::open),
    trade: Some(trade::open),
    limits: Some(trade::limits),
    providers: Some(trade::providers),
    keys: Some(FamilyKeys {
        scheme: Scheme::Secp256k1,
        account: address::account_of_key,
    }),
    landing: Some(&trade::Landing),
    steps: Some(&trade::Steps),
    choices: false,
    own_call: None,
    approvals: Some(&trade::Steps),
    swaps: Some(trade::open_swaps),
};
