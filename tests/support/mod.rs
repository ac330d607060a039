//! What the daemon's tests share: the recorded world, real chains, fake peers, and a daemon in this process.
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod bitcoin;
pub mod chain;
pub mod daemon;
pub mod http;
pub mod peer;
pub mod request;
pub mod solana;
pub mod world;

use std::path::Path;

use alloy::primitives::U256;
use serde_json::Value;

/// A fixture of the root crate.
pub fn fixture(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    read(&path)
}

/// A fixture of the crate `vm`.
pub fn vm_fixture(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("vm/fixtures")
        .join(name);
    read(&path)
}

fn read(path: &Path) -> Value {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether so much of the native currency is what the solver never promises: gas of fifty payments, at
/// a price that a local node asks. What an order still kept would show in the remainder.
pub fn is_gas_of_fifty(kept: U256) -> bool {
    let (units, most) = (U256::from(5_000_000), U256::from(10_000_000_000_u64));
    (kept % units).is_zero() && !kept.is_zero() && kept / units < most
}
