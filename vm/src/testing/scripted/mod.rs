//! The `scripted-vm` family. It trades, and has none of EVM's habits.
//!
//! Accounts are ed25519 keys of 32 bytes in base58, transaction ids are signatures of 64 bytes. A transaction is a
//! list of transfers with a memo. It can land up to a height that it names. An account can have any number of
//! transactions under way. There are no sequence numbers, no gas, no approvals, no contracts and no exchanges. Every
//! third height has no block.
//!
//! `world` is the chain, in the process of its tests, with the `state` that it has. `registry` finds worlds by the
//! hosts of their providers' URLs. `provider` is one provider, and `receipt` what it says of a transaction; `wallet`
//! is all providers together. `transaction` is what accounts sign, `steps` builds it, `submit` lands it, and `attempt`
//! is what the solver stores meanwhile.

mod attempt;
mod codec;
mod key;
mod provider;
mod receipt;
mod registry;
mod state;
mod steps;
mod submit;
mod transaction;
mod wallet;
mod world;

#[cfg(test)]
mod tests;

use crate::{
    Family, Lengths, family::FamilyKeys, hint::Hints, spec::FinalityDefaults, trade::Scheme,
};

#[cfg(feature = "solana")]
pub(crate) use self::key::is_signed;
pub use self::{
    codec::{address, spelled},
    key::Key,
    registry::{HOST, register, url},
    state::{Done, Included},
    submit::LIFE,
    transaction::{MOST_BYTES, Payments, SALT, Transaction, Transfer, Unsigned},
    world::World,
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
    unknown_is_empty: false,
    blooms: false,
    sole_depository: false,
    authorizable: true,
    withdraws_from: None,
    unproven: None,
    check_payload: None,
    withdrawals: None,
    payloads: None,
    owners: None,
    owner_keys: None,
    orders: None,
    finality: FinalityDefaults {
        blocks: 6,
        seconds: 0,
        counts_own_block: false,
        watch_blocks: 32,
        has_tags: false,
        block_seconds: 2,
        lag_seconds: 0,
    },
    entry: None,
    open: Some(registry::open),
    trade: Some(registry::trade),
    limits: Some(wallet::limits),
    providers: Some(wallet::providers),
    keys: Some(FamilyKeys {
        scheme: Scheme::Ed25519,
        account: codec::account,
    }),
    landing: Some(&attempt::Landing),
    steps: Some(&steps::Steps),
    choices: false,
    own_call: None,
    approvals: None,
    swaps: None,
};
