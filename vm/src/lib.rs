//! The protocol's wire formats and every VM family that intentd knows.
//!
//! - [`types`]: chain-neutral facts (receipts, deposits, payments).
//! - [`family`]: the seam: what a family offers.
//! - [`endpoint`]: where a provider is.
//! - [`oracle`]: reading: the reader traits. [`owner`]: signatures of owners, and reading their keys.
//! - [`finality`]: when a block counts.
//! - [`protocol`]: pure encodings that all families share: orders, hub ids, typed data, actions.
//! - [`trade`]: what trading needs besides: scanning, accounts, writing, steps.
//! - [`http`]: round trips to providers that are not trusted to behave. [`hint`]: what callers say besides an id.
//! - [`permits`]: bounds on work under way, narrower ones for callers without a key.
//! - [`quorum`]: agreement of several providers, written once for all families. [`evidence`]: what was read for one
//!   claim, and which providers said so.
//! - one module per family; each is a cargo feature. The daemon meets them only in [`FAMILIES`].

mod aside;
pub mod endpoint;
pub mod evidence;
pub mod family;
pub mod finality;
pub mod hint;
pub mod http;
pub mod oracle;
pub mod owner;
pub mod permits;
pub mod protocol;
pub mod quorum;
mod seen;
mod shared_head;
pub mod spec;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod trade;
pub mod types;

#[cfg(feature = "bitcoin")]
pub mod bitcoin;
#[cfg(feature = "ethereum")]
pub mod ethereum;
#[cfg(feature = "hyperliquid")]
pub mod hyperliquid;
#[cfg(feature = "lighter")]
pub mod lighter;
#[cfg(feature = "solana")]
pub mod solana;
#[cfg(feature = "ton")]
pub mod ton;
#[cfg(feature = "tron")]
pub mod tron;
#[cfg(feature = "xrp")]
pub mod xrp;

pub use aside::{Kept, LARGE_BYTES, LARGE_EVENTS, Large, aside};
pub use endpoint::Endpoint;
pub use family::*;
pub use finality::{Finality, FinalityTag};
pub use oracle::*;
pub use owner::*;
pub use seen::{Seen, Unusable};
pub use spec::{ChainEntry, EntryRules, FinalityDefaults};
pub use types::*;

/// Every family of this build.
pub static FAMILIES: &[&Family] = &[
    #[cfg(feature = "ethereum")]
    &ethereum::FAMILY,
    #[cfg(feature = "solana")]
    &solana::FAMILY,
    #[cfg(feature = "bitcoin")]
    &bitcoin::FAMILY,
    #[cfg(feature = "hyperliquid")]
    &hyperliquid::FAMILY,
    #[cfg(feature = "lighter")]
    &lighter::FAMILY,
    #[cfg(feature = "ton")]
    &ton::FAMILY,
    #[cfg(feature = "tron")]
    &tron::FAMILY,
    #[cfg(feature = "xrp")]
    &xrp::FAMILY,
];

/// The family of the settlement (hub) chain.
#[cfg(feature = "ethereum")]
pub static SETTLEMENT: &Family = &ethereum::FAMILY;

/// Families that only tests know: no API describes them.
static OF_TESTS: &[&Family] = &[
    #[cfg(any(test, feature = "testing"))]
    &testing::scripted::FAMILY,
];

/// The family called `name` (`ethereum-vm`), if this build has it.
pub fn family(name: &str) -> Option<&'static Family> {
    let mut all = FAMILIES.iter().chain(OF_TESTS);
    all.find(|family| family.name == name).copied()
}
