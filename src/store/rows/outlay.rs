//! The amounts that fills paid, while limits count them.
//!
//! Key: the request's id. Value, format 1: [`Outlay`].
//!
//! The row lives until its fill is settled; where there are limits, at least for the hour in which it counts and
//! until the next fill. Some 200 bytes.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};

use super::{OUTLAY, RowError};
use crate::store::Key;

const FORMAT: u8 = 1;

/// The amount of one fill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlay {
    /// Unix seconds.
    pub at: u64,
    pub network: String,
    /// In the one spelling of its family, like the user.
    pub currency: String,
    /// `None` when the user is unknown.
    pub user: Option<String>,
    /// Millionths of a dollar.
    pub usd: u64,
}

stored!(Outlay, "outlay", encode, decode);

pub fn key(request: &B256) -> Key {
    Key::new(OUTLAY, request.as_slice())
}

/// The request of a key.
pub fn request(key: &Key) -> Result<B256, RowError> {
    B256::try_from(key.name.as_slice()).map_err(|error| RowError::new("outlay", error))
}

/// An example.
#[cfg(test)]
pub fn sample() -> Outlay {
    Outlay {
        at: 1,
        network: "b".into(),
        currency: "c".into(),
        user: Some("u".into()),
        usd: 128,
    }
}
