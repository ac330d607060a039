//! The `bitcoin-vm` family.
//!
//! `read` judges what a [`source`] shows: a [`node`] (JSON-RPC, through `question` and `transport`) or an [`esplora`]
//! index. `raw`, `decode`, `payer` and `spend` are pure: they turn answers into chain-neutral facts. `withdrawal` is what
//! allocators sign: `signing` says what their signatures cover, and `unproven` what has to be read besides. [`trade`] is
//! the trading half.

mod address;
mod allocator;
mod combine;
pub mod decode;
mod esplora;
pub mod network;
mod node;
mod owner;
pub mod partial;
mod payer;
pub mod psbt;
mod question;
pub mod raw;
mod read;
mod script;
mod signing;
mod source;
mod spend;
pub mod trade;
mod transport;
mod unproven;
mod withdrawal;

pub use combine::combinations;

use self::network::{LOCAL, MAIN, Network, TEST};
use crate::{EntryRules, Family, Lengths, hint::Hints, spec::FinalityDefaults};

/// The table entry of `bitcoin-vm`, on the main network.
pub static FAMILY: Family = on(&MAIN);
static TESTNET: Family = on(&TEST);
static REGTEST: Family = on(&LOCAL);

const fn on(network: &'static Network) -> Family {
    Family {
        name: "bitcoin-vm",
        short: "bvm",
        codec: network,
        lengths: Lengths::ANY,
        native_decimals: Some(8),
        tx_prefix: "",
        hints: Hints::NONE,
        unknown_is_empty: false,
        blooms: false,
        sole_depository: false,
        authorizable: true,
        withdraws_from: Some(address::is_key_hash),
        unproven: Some(withdrawal::unproven),
        check_payload: Some(withdrawal::check_payload),
        withdrawals: Some(network),
        payloads: Some(&allocator::Payloads),
        owners: Some(network),
        owner_keys: None,
        orders: None,
        finality: FinalityDefaults {
            blocks: 2,
            seconds: 0,
            counts_own_block: true,
            watch_blocks: 12,
            has_tags: false,
            block_seconds: 600,
            lag_seconds: 0,
        },
        entry: Some(EntryRules {
            network: network::family,
            providers: esplora::providers,
        }),
        open: Some(read::open),
        trade: Some(trade::trade),
        limits: Some(trade::limits),
        providers: Some(trade::providers),
        keys: Some(trade::keys(network)),
        landing: Some(&trade::Landing),
        steps: Some(network),
        choices: false,
        own_call: None,
        approvals: None,
        swaps: None,
    }
}
