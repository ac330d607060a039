//! Integers and bytes in the typed JSON bodies of this crate: texts in the form of [`text`](super::text), or JSON
//! numbers up to 2^53 - 1, of which `1.0` is 1. Independent of families.

use std::{fmt, marker::PhantomData};

use alloy::hex;
use serde::{
    Deserialize,
    de::{self, DeserializeOwned, Deserializer, Unexpected, Visitor},
};
use serde_json::Value;

use super::text::number;
use crate::{
    family::CodecError,
    types::{Bytes, U256},
};

/// The largest integer that every JSON reader keeps exact (2^53 - 1).
const MAX_SAFE: u64 = (1 << 53) - 1;

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
        Self::fit(number(text).map_err(E::custom)?)
    }

    /// A number that is exact: an owner's digest rounds others, and would be the same for another number.
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        let exact = (number <= MAX_SAFE).then(|| U256::from(number));
        let wrong = || E::invalid_value(Unexpected::Unsigned(number), &self);
        Self::fit(exact.ok_or_else(wrong)?)
    }

    /// A whole number that is exact.
    fn visit_f64<E: de::Error>(self, float: f64) -> Result<T, E> {
        // `-0` is 0, too.
        let whole = format!("{float:.0}").parse::<i64>().ok();
        let whole = whole.filter(|_| float.fract() == 0.0);
        let whole = whole.and_then(|whole| u64::try_from(whole).ok());
        let whole = whole.filter(|whole| *whole <= MAX_SAFE);
        let wrong = || E::invalid_value(Unexpected::Float(float), &self);
        Self::fit(U256::from(whole.ok_or_else(wrong)?))
    }
}

/// `serde(with)`: an integer, written as decimal text.
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

struct Read<T>(T);

impl<'de, T: TryFrom<U256>> Deserialize<'de> for Read<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        text::deserialize(d).map(Self)
    }
}

/// `serde(deserialize_with)`: an integer, or none for null.
pub(crate) fn optional<'de, T, D>(d: D) -> Result<Option<T>, D::Error>
where
    T: TryFrom<U256>,
    D: Deserializer<'de>,
{
    let read = Option::<Read<T>>::deserialize(d)?;
    Ok(read.map(|Read(number)| number))
}

/// `serde(with)`: an integer, written as a JSON number while that is exact, else as text.
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
    use super::{Bytes, Deserializer, de, hex};

    pub fn serialize<S: serde::Serializer>(bytes: &Bytes, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&hex::encode_prefixed(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Bytes, D::Error> {
        let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(d)?;
        super::super::text::bytes(&text).map_err(de::Error::custom)
    }
}
