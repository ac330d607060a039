//! Integers and bytes as they stand in JSON bodies: decimal or `0x` text, or a JSON number.
//!
//! Stricter than a JavaScript reader on purpose: empty text, signs, spaces, fractions and hex
//! without `0x` are refused. Nothing here knows a family.

use std::{fmt, marker::PhantomData};

use alloy::hex;
use serde::de::{self, DeserializeOwned, Deserializer, Visitor};
use serde_json::Value;

use crate::{
    family::CodecError,
    types::{Bytes, U256},
};

/// The largest integer that every JSON reader keeps exact (2^53 - 1).
const MAX_SAFE: u64 = (1 << 53) - 1;

/// A non-negative integer of at most 256 bits: decimal digits, or `0x` and hex digits.
pub fn parse_uint(text: &str) -> Result<U256, CodecError> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    plain
        .then(|| U256::from_str_radix(digits, radix).ok())
        .flatten()
        .ok_or_else(|| CodecError(format!("not an unsigned 256-bit integer: {text:?}")))
}

/// Bytes from `0x` and an even number of hex digits.
pub fn parse_bytes(text: &str) -> Result<Vec<u8>, CodecError> {
    text.strip_prefix("0x")
        .and_then(|digits| hex::decode(digits).ok())
        .filter(|bytes| text.len() == 2 + 2 * bytes.len())
        .ok_or_else(|| CodecError(format!("not 0x hex bytes: {text:?}")))
}

/// Reads a typed value; the error names the field.
pub(crate) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, CodecError> {
    serde_json::from_value(value.clone()).map_err(|error| CodecError(error.to_string()))
}

/// Writes a typed value.
pub(crate) fn write<T: serde::Serialize>(value: &T) -> Result<Value, CodecError> {
    serde_json::to_value(value).map_err(|error| CodecError(error.to_string()))
}

struct Integer<T>(PhantomData<T>);

impl<T: TryFrom<U256>> Integer<T> {
    fn fit<E: de::Error>(number: U256) -> Result<T, E> {
        T::try_from(number).map_err(|_| E::custom(format_args!("integer out of range: {number}")))
    }
}

impl<T: TryFrom<U256>> Visitor<'_> for Integer<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an unsigned integer as decimal text, 0x text or number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        Self::fit(parse_uint(text).map_err(E::custom)?)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        Self::fit(U256::from(number))
    }
}

/// `serde(with)`: an integer that is written as decimal text.
pub mod text {
    use super::{Deserializer, Integer, PhantomData, U256, fmt};

    pub fn serialize<T: fmt::Display, S: serde::Serializer>(
        n: &T,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.collect_str(n)
    }

    pub fn deserialize<'de, T: TryFrom<U256>, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
        d.deserialize_any(Integer(PhantomData))
    }
}

/// `serde(with)`: an integer that is written as a JSON number while that is exact, else as text.
pub mod plain {
    use super::{MAX_SAFE, U256};

    pub use super::text::deserialize;

    pub fn serialize<S: serde::Serializer>(n: &U256, s: S) -> Result<S::Ok, S::Error> {
        match u64::try_from(*n) {
            Ok(small) if small <= MAX_SAFE => s.serialize_u64(small),
            _ => s.collect_str(n),
        }
    }
}

/// `serde(with)`: bytes as `0x` hex, lower case.
pub mod bytes {
    use super::{Bytes, Deserializer, de, hex, parse_bytes};

    pub fn serialize<S: serde::Serializer>(bytes: &Bytes, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&hex::encode_prefixed(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Bytes, D::Error> {
        let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(d)?;
        parse_bytes(&text)
            .map(Bytes::from)
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::{U256, parse_bytes, parse_uint};

    #[test]
    fn integers_are_decimal_or_0x_hex() {
        assert_eq!(parse_uint("0"), Ok(U256::ZERO));
        assert_eq!(parse_uint("0042"), Ok(U256::from(42)));
        assert_eq!(parse_uint("0xFf"), Ok(U256::from(255)));
        assert_eq!(parse_uint(&U256::MAX.to_string()), Ok(U256::MAX));
    }

    #[test]
    fn loose_integers_are_refused() {
        let over = format!("{}0", U256::MAX);
        for text in [
            "", " 1", "1 ", "-1", "+1", "1.0", "1e3", "ff", "0x", "0X1", "1_000", &over,
        ] {
            assert!(parse_uint(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn bytes_need_a_prefix_and_whole_bytes() {
        assert_eq!(parse_bytes("0x"), Ok(vec![]));
        assert_eq!(parse_bytes("0xAb01"), Ok(vec![0xab, 1]));
        for text in ["", "ab", "0xa", "0xzz", "0x0x12", " 0x12"] {
            assert!(parse_bytes(text).is_err(), "{text:?}");
        }
    }
}
