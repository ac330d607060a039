//! The scalars of request bodies, as lenient as existing clients rely on (oracle.md section 2) and
//! never lossy: numbers, booleans and null for texts; numeric texts for numbers; `"true"`, `"false"`,
//! 0, 1 and null for flags; an array of one element for any of them.

use std::{fmt, ops::Deref};

use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::Value;
use utoipa::ToSchema;

use super::parse::scalar;

/// The largest integer that every JSON reader keeps exactly: 2^53 − 1.
pub const MAX_NUMBER: u64 = (1 << 53) - 1;

/// A text. Whole numbers up to 2^53 − 1, booleans and null (empty) are taken for one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[schema(value_type = String)]
#[serde(transparent)]
pub struct Text(pub String);

/// A boolean. `"true"`, `"false"`, 0, 1 and null (false) are taken for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(value_type = bool)]
#[serde(transparent)]
pub struct Flag(pub bool);

/// A whole number from 0 to 2^53 − 1. Its decimal text is taken for one.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema,
)]
#[schema(value_type = u64)]
#[serde(transparent)]
pub struct Number(pub u64);

impl Deref for Text {
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
        number(&scalar(deserializer)?)
            .map(Self)
            .ok_or_else(|| Error::custom("expected a whole number from 0 to 9007199254740991"))
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null => Some(String::new()),
        Value::Number(number) => whole(&number).map(|n| n.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Null => Some(false),
        Value::String(text) if text == "true" => Some(true),
        Value::String(text) if text == "false" => Some(false),
        Value::Number(number) => match whole(number)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
        _ => None,
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => u64::try_from(whole(number)?).ok(),
        Value::String(text) => {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.then(|| text.parse().ok())??;
            (number <= MAX_NUMBER).then_some(number)
        }
        _ => None,
    }
}

/// A JSON number that is whole and small enough that no reader rounded it; `1.0` is 1 and `-0` is 0.
fn whole(number: &serde_json::Number) -> Option<i64> {
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
            (json!("0x10"), None),
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
    fn written_as_what_they_stand_for() {
        let written = json!((Text("a".into()), Flag(true), Number(7)));
        assert_eq!(written, json!(["a", true, 7]));
    }
}
