//! The `ethereum-vm` family.
//!
//! `read` and `head` talk to one node through `rpc` and `http`; `raw`, `decode`, `event`, `deposit`
//! and `suffix` are pure: node answers in, chain-neutral facts out.
//!
//! For trading: `scan` (with `block_logs`), `accounts`, `writer`, `simulate` and `inspect` talk to one node, opened by
//! `trade`, which also has how payments land; `deposit_tx`, `rpc_error`, `revert` and `inspect::decode` read its
//! answers, `steps` and `transaction` make what is signed. Those six are pure. `swap` has the exchanges.

mod abi;
mod accounts;
pub mod address;
mod block_logs;
mod bloom;
pub mod decode;
mod deposit;
mod deposit_tx;
mod event;
mod fork;
mod head;
mod http;
mod inspect;
pub mod order;
pub mod owner;
pub mod raw;
mod read;
mod revert;
mod rpc;
mod rpc_error;
mod scan;
mod simulate;
mod steps;
mod suffix;
mod swap;
pub mod trade;
mod transaction;
pub mod withdrawal;
mod writer;

use crate::{Family, Lengths, hint::Hints, spec::FinalityDefaults};

/// The table entry of `ethereum-vm`.
pub static FAMILY: Family = Family {
    name: "ethereum-vm",
    short: "evm",
    codec: &address::Addresses,
    lengths: Lengths::both(20),
    native_decimals: Some(18),
    tx_prefix: "",
    hints: Hints::NONE,
    withdrawals: Some(&withdrawal::Withdrawals),
    owners: Some(&owner::Owners),
    orders: Some(&order::Orders),
    finality: FinalityDefaults {
        blocks: 10,
        seconds: 60,
        counts_own_block: false,
        watch_blocks: 128,
        has_tags: true,
    },
    open: Some(read::open),
    trade: Some(trade::open),
    landing: Some(&trade::Landing),
    steps: Some(&steps::Steps),
    transactions: Some(&transaction::Transactions),
    swaps: Some(swap::open),
};
