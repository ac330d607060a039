//! The `scripted-vm` family, for tests: it has none of EVM's habits.
//!
//! Accounts are ed25519 keys of 32 bytes in base58, transaction ids are signatures of 64 bytes. A transaction is a
//! list of transfers with a memo, and can land up to a height that it names. Some heights have no block.
//!
//! `world` is the chain, in the process of its tests; `registry` finds worlds by the hosts of their providers'
//! URLs. `provider` answers for one provider.

mod codec;
mod key;
mod provider;
mod receipt;
mod registry;
mod state;
mod transaction;
mod world;

use crate::{
    Family, Lengths, family::FamilyKeys, hint::Hints, spec::FinalityDefaults, trade::Scheme,
};

pub use self::{
    codec::{address, spelled},
    key::Key,
    registry::{HOST, register, url},
    state::{Done, Included},
    transaction::{MOST_BYTES, Payments, SALT, Transaction, Transfer, Unsigned},
    world::{Manners, World},
};

/// The table entry of `scripted-vm`.
pub static FAMILY: Family = Family {
    name: "scripted-vm",
    short: "scripted",
    codec: &codec::Texts,
    lengths: Lengths::both(32),
    native_decimals: Some(9),
    tx_prefix: "",
    hints: Hints::NONE,
    withdrawals: None,
    owners: None,
    orders: None,
    finality: FinalityDefaults {
        blocks: 6,
        seconds: 0,
        counts_own_block: false,
        watch_blocks: 32,
        has_tags: false,
    },
    open: Some(registry::open),
    trade: None,
    limits: None,
    providers: None,
    keys: Some(FamilyKeys {
        scheme: Scheme::Ed25519,
        account: codec::account,
    }),
    landing: None,
    steps: None,
    approvals: None,
    swaps: None,
};
