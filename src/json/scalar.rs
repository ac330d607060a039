//! The scalars of bodies and queries: as lenient as existing clients need (guide: protocol 10.1), and never lossy.
//! Texts accept numbers, booleans and null; numbers accept decimal or hex texts; flags accept `"true"`, `"false"`, 0,
//! 1 and null; all accept an array of one element. Amounts are digits, and accept hex quantities and small integers.

use std::{fmt, ops::Deref};

use alloy::primitives::U256;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{ObjectBuilder, SchemaType, Type},
    },
};

/// The largest integer that every JSON reader keeps exactly: 2^53 − 1.
pub const MAX_NUMBER: u64 = (1 << 53) - 1;
/// The expectation in the message for a wrong amount.
pub(super) const DIGITS: &str =
    "expected digits, 0x and hex digits, or a whole number from 0 to 9007199254740991";
/// The pattern of amounts in API descriptions.
const WRITTEN: &str = "^(0x[0-9a-fA-F]+|[0-9]+)$";

/// A text. Accepts integers up to 2^53 − 1, booleans and null (empty).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[schema(value_type = String)]
#[serde(transparent)]
pub struct Text(pub String);

/// A boolean. Accepts `"true"`, `"false"`, 0, 1 and null (false).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(value_type = bool)]
#[serde(transparent)]
pub struct Flag(pub bool);

/// An integer from 0 to 2^53 − 1. Accepts its text: decimal digits, or `0x` and hex digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Number(pub u64);

/// An amount as decimal digits of any size. Accepts and converts `0x` and hex digits of at most 256 bits, and JSON
/// integers from 0 to 2^53 − 1. Refuses fractions, exponents, signs and larger JSON numbers, because JSON readers
/// disagree about them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Digits(String);

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Deref for Digits {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(scalar(deserializer)?)
            .map(Self)
            .ok_or_else(|| Error::custom("expected a string"))
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        flag(&scalar(deserializer)?)
            .map(Self)
            .ok_or_else(|| Error::custom("expected a boolean"))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        number_of(&scalar(deserializer)?)
            .map(Self)
            .ok_or_else(|| Error::custom("expected a whole number from 0 to 9007199254740991"))
    }
}

impl<'de> Deserialize<'de> for Digits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = match Value::deserialize(deserializer)? {
            Value::String(text) => digits(&text),
            Value::Number(number) => {
                let number = number.as_u64().filter(|number| *number <= MAX_NUMBER);
                number.map(|number| number.to_string())
            }
            _ => return Err(Error::custom("expected a string of digits")),
        };
        read.map(Self).ok_or_else(|| Error::custom(DIGITS))
    }
}

impl PartialSchema for Number {
    fn schema() -> RefOr<Schema> {
        let object = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::Integer, Type::String]))
            .description(Some(
                "A whole number, or its text: decimal digits, or 0x and hex digits.",
            ))
            .minimum(Some(0_u64))
            .maximum(Some(MAX_NUMBER))
            .pattern(Some(WRITTEN));
        object.into()
    }
}

impl ToSchema for Number {}

impl PartialSchema for Digits {
    fn schema() -> RefOr<Schema> {
        let object = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::String, Type::Integer]))
            .description(Some(
                "Decimal digits, in the smallest unit. 0x and hex digits, and whole numbers up to \
                 2^53 - 1, are taken for them.",
            ))
            .minimum(Some(0_u64))
            .maximum(Some(MAX_NUMBER))
            .pattern(Some(WRITTEN));
        object.into()
    }
}

impl ToSchema for Digits {}

/// Reads one field; replaces an array of one element by the element.
fn scalar<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Array(mut items) if items.len() == 1 => items.remove(0),
        other => other,
    })
}

/// Parses an integer from 0 to 2^53 − 1: decimal digits, or `0x` and hex digits.
pub fn number(text: &str) -> Option<u64> {
    let (digits, radix) = radix(text)?;
    let number = u64::from_str_radix(digits, radix).ok()?;
    (number <= MAX_NUMBER).then_some(number)
}

/// The decimal digits of an amount's text.
fn digits(text: &str) -> Option<String> {
    let (digits, radix) = radix(text)?;
    if radix == 10 {
        return Some(text.to_owned());
    }
    let digits = digits.trim_start_matches('0');
    let number = U256::from_str_radix(if digits.is_empty() { "0" } else { digits }, 16);
    number.ok().map(|number| number.to_string())
}

/// Splits the radix prefix from the digits.
fn radix(text: &str) -> Option<(&str, u32)> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let clean = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    clean.then_some((digits, radix))
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null => Some(String::new()),
        Value::Number(number) => integer(&number).map(|n| n.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Null => Some(false),
        Value::String(text) if text == "true" => Some(true),
        Value::String(text) if text == "false" => Some(false),
        Value::Number(number) => match integer(number)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
        _ => None,
    }
}

fn number_of(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => u64::try_from(integer(number)?).ok(),
        Value::String(text) => number(text),
        _ => None,
    }
}

/// A JSON number that is an integer within ±(2^53 − 1), which no reader rounds; `1.0` is 1 and `-0` is 0.
fn integer(number: &serde_json::Number) -> Option<i64> {
    let limit = i64::try_from(MAX_NUMBER).ok()?;
    if let Some(n) = number.as_i64() {
        return (-limit..=limit).contains(&n).then_some(n);
    }
    let float = number.as_f64().filter(|f| f.fract() == 0.0)?;
    let text = format!("{float:.0}");
    let n = text.parse::<i64>().ok()?;
    (-limit..=limit).contains(&n).then_some(n)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_table() {
        let cases = [
            (json!("a"), Some("a")),
            (json!(""), Some("")),
            (json!(1), Some("1")),
            (json!(-1), Some("-1")),
            (json!(1.0), Some("1")),
            (json!(-0.0), Some("0")),
            (json!(true), Some("true")),
            (json!(null), Some("")),
            (json!(["a"]), Some("a")),
            (json!([1]), Some("1")),
            (json!(9_007_199_254_740_991_u64), Some("9007199254740991")),
            (json!(9_007_199_254_740_992_u64), None),
            (json!(9_007_199_254_740_993_u64), None),
            (json!(1.157_920_892_373_162e77), None),
            (json!(1.5), None),
            (json!([]), None),
            (json!(["a", "b"]), None),
            (json!([["a"]]), None),
            (json!({}), None),
        ];
        for (given, expected) in cases {
            let got = Text::deserialize(&given).ok().map(|text| text.0);
            assert_eq!(got.as_deref(), expected, "{given}");
        }
    }

    #[test]
    fn flag_table() {
        let cases = [
            (json!(true), Some(true)),
            (json!("true"), Some(true)),
            (json!("false"), Some(false)),
            (json!(0), Some(false)),
            (json!(1), Some(true)),
            (json!(null), Some(false)),
            (json!([true]), Some(true)),
            (json!(2), None),
            (json!("maybe"), None),
            (json!("TRUE"), None),
            (json!(""), None),
            (json!({}), None),
        ];
        for (given, expected) in cases {
            let got = Flag::deserialize(&given).ok().map(|flag| flag.0);
            assert_eq!(got, expected, "{given}");
        }
    }

    #[test]
    fn number_table() {
        let cases = [
            (json!(0), Some(0)),
            (json!("12"), Some(12)),
            (json!(12.0), Some(12)),
            (json!([12]), Some(12)),
            (json!(9_007_199_254_740_991_u64), Some(MAX_NUMBER)),
            (json!("9007199254740991"), Some(MAX_NUMBER)),
            (json!(9_007_199_254_740_992_u64), None),
            (json!("9007199254740992"), None),
            (json!("99999999999999999999999"), None),
            (json!(-1), None),
            (json!("-1"), None),
            (json!(1.5), None),
            (json!(""), None),
            (json!("0x"), None),
            (json!("0X10"), None),
            (json!("0xg"), None),
            (json!("0x10"), Some(16)),
            (json!("0x1fffffffffffff"), Some(MAX_NUMBER)),
            (json!("0x20000000000000"), None),
            (json!("+1"), None),
            (json!("٣"), None),
            (json!("1e3"), None),
            (json!(" 1"), None),
            (json!(true), None),
            (json!(null), None),
        ];
        for (given, expected) in cases {
            let got = Number::deserialize(&given).ok().map(|number| number.0);
            assert_eq!(got, expected, "{given}");
        }
    }

    #[test]
    fn digits_table() {
        let most = U256::MAX;
        let cases = [
            (json!("0"), Some("0".to_owned())),
            (json!("12"), Some("12".into())),
            (json!("0012"), Some("0012".into())),
            (json!("9".repeat(100)), Some("9".repeat(100))),
            (json!("0x0"), Some("0".into())),
            (json!("0x00"), Some("0".into())),
            (json!("0xfF"), Some("255".into())),
            (json!(format!("{most:#x}")), Some(most.to_string())),
            (json!(format!("0x000{most:x}")), Some(most.to_string())),
            (json!(0), Some("0".into())),
            (json!(5), Some("5".into())),
            (json!(MAX_NUMBER), Some(MAX_NUMBER.to_string())),
            (json!(MAX_NUMBER + 1), None),
            (json!(format!("0x1{}", "0".repeat(64))), None),
            (json!(1.0), None),
            (json!(1e18), None),
            (json!(-1), None),
            (json!("-1"), None),
            (json!("1.0"), None),
            (json!("1e18"), None),
            (json!(" 1"), None),
            (json!(""), None),
            (json!("0x"), None),
            (json!("0X1"), None),
            (json!("٣"), None),
            (json!(true), None),
            (json!(null), None),
            (json!(["1"]), None),
            (json!({}), None),
        ];
        for (given, expected) in cases {
            let got = Digits::deserialize(&given).ok().map(|digits| digits.0);
            assert_eq!(got, expected, "{given}");
        }
    }

    #[test]
    fn written_as_what_they_stand_for() {
        let amount = Digits::deserialize(json!("0x10")).unwrap();
        let written = json!((Text("a".into()), Flag(true), Number(7), amount));
        assert_eq!(written, json!(["a", true, 7, "16"]));
    }
}
