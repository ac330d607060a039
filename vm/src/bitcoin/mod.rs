//! The `bitcoin-vm` family.
//!
//! `read` talks to one node through `question` and `transport`; `raw` and `decode` are pure: they turn a node's
//! answers into chain-neutral facts.

pub mod address;
mod combine;
pub mod decode;
pub mod owner;
pub mod partial;
mod payer;
pub mod psbt;
mod question;
pub mod raw;
mod read;
pub mod script;
mod transport;
pub mod withdrawal;

pub use combine::combinations;

use crate::{Family, Lengths, hint::Hints, spec::FinalityDefaults};

/// The table entry of `bitcoin-vm`.
pub static FAMILY: Family = Family {
    name: "bitcoin-vm",
    short: "bvm",
    codec: &address::Addresses,
    lengths: Lengths::ANY,
    native_decimals: None,
    tx_prefix: "",
    hints: Hints::NONE,
    withdrawals: Some(&withdrawal::Withdrawals),
    owners: Some(&owner::Owners),
    orders: None,
    finality: FinalityDefaults {
        blocks: 2,
        seconds: 0,
        counts_own_block: true,
        watch_blocks: 12,
        has_tags: false,
    },
    open: Some(read::open),
    trade: None,
    limits: None,
    providers: None,
    keys: None,
    landing: None,
    steps: None,
    approvals: None,
    swaps: None,
};
