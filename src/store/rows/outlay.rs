//! What fills have paid, while limits count it.
//!
//! Key: the request's id. Value, format 1: [`Outlay`].
//!
//! It lives until its fill is settled, or for the hour that it counts and until the next fill where there are
//! limits; some 200 bytes.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};

use super::{OUTLAY, RowError};
use crate::store::{Key, Range};

const FORMAT: u8 = 1;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlay {
    /// Unix seconds.
    pub at: u64,
    pub network: String,
    /// In lower case, as the user is.
    pub currency: String,
    /// `None`: nobody knows who had it.
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

/// All of them, from `after` on.
pub fn range(after: Option<&Key>, limit: usize) -> Range {
    Range::new(OUTLAY, &[], after.map(|key| key.name.clone()), limit)
}

/// One of them.
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
