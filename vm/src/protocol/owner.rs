//! Owner operations and their digest (guide: protocol 6.3).
//!
//! Pure. An owner signs the digest of a canonical JSON text; each family has its own scheme.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

/// The operation of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Withdrawal,
    Transfer,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Withdrawal => "withdrawal",
            Self::Transfer => "transfer",
        }
    }
}

/// An operation with the texts of the request; the hash covers them unchanged.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    pub kind: Kind,
    pub chain_id: &'a str,
    pub currency: &'a str,
    pub amount: &'a str,
    pub owner_chain_id: &'a str,
    pub owner: &'a str,
    pub recipient: &'a str,
    pub nonce: &'a str,
    pub additional: Option<&'a Value>,
}

impl Operation<'_> {
    /// The canonical text: compact JSON, keys sorted at every depth, numbers in JavaScript's form, no absent
    /// `additionalData`.
    pub fn canonical(&self) -> String {
        let mut object = Map::new();
        let texts = [
            ("operation", self.kind.as_str()),
            ("chainId", self.chain_id),
            ("currency", self.currency),
            ("amount", self.amount),
            ("ownerChainId", self.owner_chain_id),
            ("owner", self.owner),
            ("recipient", self.recipient),
            ("nonce", self.nonce),
        ];
        for (key, text) in texts {
            object.insert(key.into(), text.into());
        }
        if let Some(additional) = self.additional {
            object.insert("additionalData".into(), additional.clone());
        }
        let mut out = String::new();
        write_object(&object, &mut out);
        out
    }

    /// sha256 of the canonical text.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.canonical()).into()
    }
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => write_object(object, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(index, out);
                write(item, out);
            }
            out.push(']');
        }
        Value::Number(number) => out.push_str(&javascript(number)),
        // Texts, booleans and null: serde_json escapes as JSON.stringify does.
        other => out.push_str(&other.to_string()),
    }
}

fn write_object(object: &Map<String, Value>, out: &mut String) {
    let mut entries: Vec<(&String, &Value)> = object.iter().collect();
    entries.sort_by(|(a, _), (b, _)| utf16(a, b));
    out.push('{');
    for (index, (key, value)) in entries.into_iter().enumerate() {
        separate(index, out);
        out.push_str(&Value::from(key.as_str()).to_string());
        out.push(':');
        write(value, out);
    }
    out.push('}');
}

fn separate(index: usize, out: &mut String) {
    if index > 0 {
        out.push(',');
    }
}

/// JavaScript sorts texts by their UTF-16 units.
fn utf16(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// ECMA-262 Number::toString: the shortest digits that read back, without an exponent from 1e-6 up to 1e21.
/// JavaScript numbers are doubles, so integers beyond 2^53 are rounded.
fn javascript(number: &Number) -> String {
    let Some(double) = number.as_f64() else {
        return number.to_string();
    };
    if double == 0.0 {
        return "0".into();
    }
    let text = format!("{:e}", double.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = mantissa.replace('.', "");
    // The number of digits before the decimal point.
    let point = exponent.parse::<i32>().unwrap_or_default() + 1;
    let sign = if double < 0.0 { "-" } else { "" };
    format!("{sign}{}", place_point(&digits, point))
}

fn place_point(digits: &str, point: i32) -> String {
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or_default());
    match point {
        22.. | ..=-6 => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            format!("{first}{dot}{rest}e{:+}", point - 1)
        }
        ..=0 => format!("0.{}{digits}", zeros(-point)),
        _ if count <= point => format!("{digits}{}", zeros(point - count)),
        _ => {
            let (integer, fraction) = digits.split_at(usize::try_from(point).unwrap_or_default());
            format!("{integer}.{fraction}")
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn operation(additional: Option<&Value>) -> Operation<'_> {
        Operation {
            kind: Kind::Withdrawal,
            chain_id: "solana",
            currency: "c",
            amount: "1",
            owner_chain_id: "ethereum",
            owner: "o",
            recipient: "r",
            nonce: "n",
            additional,
        }
    }

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let additional = json!({"b": [{"z": 1, "a": null}], "a": true});
        assert_eq!(
            operation(Some(&additional)).canonical(),
            r#"{"additionalData":{"a":true,"b":[{"a":null,"z":1}]},"amount":"1","chainId":"solana","currency":"c","nonce":"n","operation":"withdrawal","owner":"o","ownerChainId":"ethereum","recipient":"r"}"#
        );
    }

    #[test]
    fn absent_and_empty_additional_data_differ() {
        let empty = json!({});
        assert!(!operation(None).canonical().contains("additionalData"));
        assert!(
            operation(Some(&empty))
                .canonical()
                .starts_with(r#"{"additionalData":{},"#)
        );
        assert_ne!(operation(None).digest(), operation(Some(&empty)).digest());
    }

    #[test]
    fn transfers_and_withdrawals_have_different_digests() {
        let transfer = Operation {
            kind: Kind::Transfer,
            ..operation(None)
        };
        assert_ne!(transfer.digest(), operation(None).digest());
    }

    #[test]
    fn texts_are_escaped_as_javascript_does() {
        let additional = json!({"k\"": "\u{8}\u{c}\n\r\t\u{1}\u{7f}\u{2028}é/\\"});
        let canonical = operation(Some(&additional)).canonical();
        let expected = "{\"k\\\"\":\"\\b\\f\\n\\r\\t\\u0001\u{7f}\u{2028}é/\\\\\"}";
        assert!(canonical.contains(expected), "{canonical}");
    }

    #[test]
    fn keys_sort_by_utf16_units() {
        let additional = json!({"\u{ff5e}": 1, "\u{1f600}": 2});
        let canonical = operation(Some(&additional)).canonical();
        assert!(
            canonical.contains("{\"\u{1f600}\":2,\"\u{ff5e}\":1}"),
            "{canonical}"
        );
    }

    #[test]
    fn numbers_are_written_as_javascript_does() {
        let table = [
            ("0", "0"),
            ("-0.0", "0"),
            ("10", "10"),
            ("10.0", "10"),
            ("2.5", "2.5"),
            ("-1.5", "-1.5"),
            ("0.1", "0.1"),
            ("123.456", "123.456"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("0.00000012", "1.2e-7"),
            ("1e21", "1e+21"),
            ("1.25e21", "1.25e+21"),
            ("1e20", "100000000000000000000"),
            ("9007199254740993", "9007199254740992"),
            ("18446744073709551615", "18446744073709552000"),
            ("-9223372036854775808", "-9223372036854776000"),
            ("1e300", "1e+300"),
            ("5e-324", "5e-324"),
            ("1854635937336", "1854635937336"),
        ];
        for (text, expected) in table {
            let number: Number = serde_json::from_str(text).unwrap();
            assert_eq!(javascript(&number), expected, "{text}");
        }
    }

    /// Whoever sees a request could change such a number under the owner's signature.
    #[test]
    fn numbers_that_a_digest_does_not_tell_apart_are_not_read() {
        let read = |value: &Value| crate::protocol::json::text::deserialize::<u64, _>(value).ok();
        let digest = |number: u64| operation(Some(&json!([number]))).digest();
        let most: u64 = (1 << 53) - 1;
        assert_eq!(digest(most + 1), digest(most + 2));
        assert_ne!(digest(most), digest(most + 1));
        assert_eq!(read(&json!(most)), Some(most));
        for number in [most + 1, most + 2, u64::MAX] {
            assert_eq!(read(&json!(number)), None, "{number}");
            assert_eq!(read(&json!(number.to_string())), Some(number));
        }
    }

    /// Without `float_roundtrip`, serde_json reads numbers like these as a neighbouring double.
    #[test]
    fn numbers_are_the_nearest_double_to_their_text() {
        for text in [
            "2.638344616030823e-256",
            "1.7976931348623157e+308",
            "31.245270191439438",
            "121.48791951161945",
            "100.78399658203125",
            "0.1000000000000000055511151231257827021181583404541015625",
        ] {
            let additional: Value = serde_json::from_str(&format!("[{text}]")).unwrap();
            let nearest: f64 = text.parse().unwrap();
            let plain = javascript(&Number::from_f64(nearest).unwrap());
            let canonical = operation(Some(&additional)).canonical();
            assert!(canonical.contains(&format!("[{plain}]")), "{canonical}");
        }
    }

    proptest! {
        #[test]
        fn a_number_reads_back(double in proptest::num::f64::NORMAL) {
            let number = Number::from_f64(double).unwrap();
            prop_assert_eq!(javascript(&number).parse::<f64>().unwrap(), double);
        }

        #[test]
        fn an_integer_is_written_plainly(integer in -9_007_199_254_740_991_i64..9_007_199_254_740_991) {
            prop_assert_eq!(javascript(&Number::from(integer)), integer.to_string());
        }
    }
}
