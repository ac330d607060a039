//! The final deposit of a request, as an event.

use alloy::primitives::{B256, U256};
use intentd::request::fact::{Deposit, Inclusion, Standing};

/// Who deposits, and what.
pub const USER: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
pub const NATIVE: &str = "0x0000000000000000000000000000000000000000";

/// The final deposit called `id`.
pub fn deposit(id: B256) -> Deposit {
    Deposit {
        onchain_id: id,
        network: "origin".into(),
        transaction: id.to_string(),
        depository: USER.into(),
        depositor: USER.into(),
        currency: NATIVE.into(),
        amount: U256::from(5),
        place: Inclusion {
            number: 7,
            hash: id,
            time: 1_700_000_000,
        },
        standing: Standing::Final,
        together: 1,
        own: true,
        named_by_other: false,
    }
}
