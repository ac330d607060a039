//! The names of accounts, currencies and transactions, in the form in which they are compared.

use alloy::primitives::{Bytes, hex};
use serde::{Deserialize, Serialize};

/// Hex is compared without case, everything else as it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Name {
    /// `0x` and an even number of hex digits.
    Hex(Bytes),
    Text(String),
}

impl Name {
    pub fn of(text: &str) -> Self {
        let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let Some(digits) = hex else {
            return Self::Text(text.to_owned());
        };
        match hex::decode(digits) {
            Ok(bytes) => Self::Hex(bytes.into()),
            Err(_) => Self::Text(text.to_ascii_lowercase()),
        }
    }

    /// Bytes that only an equal name has: what it is, how long, and itself.
    pub fn key(&self) -> Vec<u8> {
        let (kind, bytes) = match self {
            Self::Hex(bytes) => (b'x', bytes.as_ref()),
            Self::Text(text) => (b't', text.as_bytes()),
        };
        // No name in a store is that long; what is asked for may be.
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_be_bytes();
        [&[kind], length.as_slice(), bytes].concat()
    }

    /// Its 32 bytes, if it is so many.
    pub fn word(&self) -> Option<alloy::primitives::B256> {
        match self {
            Self::Hex(bytes) => bytes.as_ref().try_into().ok(),
            Self::Text(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_has_no_case_and_everything_else_has() {
        let same = [
            ("0xAb", "0xaB"),
            ("0XAB", "0xab"),
            ("0xF", "0xf"),
            ("bc1q", "bc1q"),
        ];
        for (one, other) in same {
            assert_eq!(Name::of(one), Name::of(other));
        }
        for (one, other) in [
            ("bc1q", "BC1q"),
            ("ab", "0xab"),
            ("0x", ""),
            ("0xf", "0x0f"),
        ] {
            assert_ne!(Name::of(one).key(), Name::of(other).key(), "{one} {other}");
        }
    }
}
