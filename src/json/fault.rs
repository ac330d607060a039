//! Translates serde's errors into a path and an expectation in JSON's words, without names of Rust types.

use std::fmt::Display;

use super::scalar::DIGITS;

/// The most characters of the caller's own text that a message repeats.
const ECHO: usize = 120;
/// The kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The value is missing.
    Missing,
    /// An amount was expected, and the value is no unambiguous number.
    Amount,
    /// The value has another type, or is none of the allowed values.
    Field,
}

/// Why a value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The path in JavaScript's syntax (`txs[0].value`); empty for the root.
    pub path: String,
    pub cause: Cause,
    /// `required`, or the expected value.
    pub what: String,
}

impl Fault {
    /// Translates an error of serde.
    pub fn of(error: serde_path_to_error::Error<impl Display>) -> Self {
        let path = match error.path().to_string() {
            root if root == "." => String::new(),
            path => short(&path),
        };
        Self::said(&path, &error.into_inner().to_string())
    }

    fn said(path: &str, text: &str) -> Self {
        let missing = text
            .strip_prefix("missing field `")
            .and_then(|rest| rest.split('`').next());
        if let Some(field) = missing {
            let path = match path {
                "" => field.to_owned(),
                path => format!("{path}.{field}"),
            };
            return Self {
                path,
                cause: Cause::Missing,
                what: "required".to_owned(),
            };
        }
        let what = expected(text);
        Self {
            path: path.to_owned(),
            cause: if what == DIGITS {
                Cause::Amount
            } else {
                Cause::Field
            },
            what,
        }
    }

    /// The top-level field of the path.
    pub fn field(&self) -> &str {
        self.path.split(['.', '[']).next().unwrap_or_default()
    }

    /// The message, e.g. `amount: required`; `root` names the root value.
    pub fn message(&self, root: &str) -> String {
        let path = if self.path.is_empty() {
            root
        } else {
            &self.path
        };
        format!("{path}: {}", self.what)
    }
}

/// What serde, or a reader that it called, expected, in JSON's words.
fn expected(text: &str) -> String {
    if let Some(at) = text.rfind("expected ") {
        return in_json_words(&text[at..]);
    }
    match text {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "expected a whole number".to_owned()
        }
        "number too large to fit in target type" => "expected a smaller number".to_owned(),
        "number too small to fit in target type" => "expected a larger number".to_owned(),
        "provided string was not `true` or `false`" => "expected a boolean".to_owned(),
        text if text.starts_with("data did not match any variant") => {
            "expected one of the shapes that the description has".to_owned()
        }
        text => short(text),
    }
}

/// `expected …` with the names of Rust's types replaced.
fn in_json_words(expected: &str) -> String {
    let named = expected.strip_prefix("expected ").unwrap_or(expected);
    let starts = |all: &[&str]| all.iter().any(|one| named.starts_with(one));
    let word = match named {
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a whole number from 0 up",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "unit" => "null",
        "string or map" => "a string",
        _ if starts(&["struct ", "a map", "map", "internally ", "adjacently "]) => "an object",
        _ if starts(&["a sequence", "sequence", "a tuple", "tuple"]) => "an array",
        _ if starts(&["enum ", "variant ", "field "]) => "a string",
        _ => return expected.to_owned(),
    };
    format!("expected {word}")
}

/// The first characters of a caller's text.
pub fn short(text: &str) -> String {
    text.chars().take(ECHO).collect()
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, de::DeserializeOwned};
    use serde_json::{Value, json};

    use super::*;
    use crate::json::{Digits, Flag, Number, Text};

    fn fault<T: DeserializeOwned>(value: Value) -> Fault {
        match serde_path_to_error::deserialize::<_, T>(value) {
            Ok(_) => panic!("accepted"),
            Err(error) => Fault::of(error),
        }
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only read from JSON")]
    struct Dto {
        amount: Digits,
        chain_id: Option<Number>,
        flag: Option<Flag>,
        text: Option<Text>,
        plain: Option<String>,
        count: Option<u64>,
        small: Option<i32>,
        size: Option<usize>,
        truth: Option<bool>,
        inner: Option<Inner>,
        list: Option<Vec<Inner>>,
        pair: Option<(u8, u8)>,
        mode: Option<Mode>,
        either: Option<Either>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only read from JSON")]
    struct Inner {
        value: Digits,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Fast,
        Slow,
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only read from JSON")]
    enum Either {
        Number(u64),
        Text(String),
    }

    #[test]
    fn rust_has_no_word_in_what_callers_are_told() {
        let chain = "chainId: expected a whole number from 0 to 9007199254740991";
        let cases = [
            (json!({"plain": 5}), "plain: expected a string"),
            (json!({"plain": {}}), "plain: expected a string"),
            (
                json!({"count": -1}),
                "count: expected a whole number from 0 up",
            ),
            (
                json!({"count": "1"}),
                "count: expected a whole number from 0 up",
            ),
            (
                json!({"size": 1.5}),
                "size: expected a whole number from 0 up",
            ),
            (json!({"small": "x"}), "small: expected a whole number"),
            (json!({"truth": 1}), "truth: expected a boolean"),
            (json!({"flag": "maybe"}), "flag: expected a boolean"),
            (json!({"text": {}}), "text: expected a string"),
            (json!({"chainId": "x"}), chain),
            (json!({"inner": 5}), "inner: expected an object"),
            (json!({"inner": {}}), "inner.value: required"),
            (json!({"list": {}}), "list: expected an array"),
            (json!({"list": [5]}), "list[0]: expected an object"),
            (
                json!({"list": [{"value": "1"}, {}]}),
                "list[1].value: required",
            ),
            (json!({"pair": "x"}), "pair: expected an array"),
            (json!({"mode": "x"}), "mode: expected `fast` or `slow`"),
            (json!({"mode": 5}), "mode: expected a string"),
            (
                json!({"either": {}}),
                "either: expected one of the shapes that the description has",
            ),
            (json!({}), "amount: required"),
        ];
        for (mut body, wanted) in cases {
            if body != json!({}) {
                body["amount"] = json!("1");
            }
            let message = fault::<Dto>(body.clone()).message("body");
            assert_eq!(message, wanted, "{body}");
            for rust in ["struct", "u64", "i32", "usize", "tuple", "enum", "invalid"] {
                assert!(!message.contains(rust), "{message}");
            }
        }
        assert_eq!(
            fault::<Dto>(json!(5)).message("body"),
            "body: expected an object"
        );
        assert!(serde_path_to_error::deserialize::<_, Dto>(json!({"amount": "1"})).is_ok());
    }

    #[test]
    fn a_cause_tells_an_amount_from_a_type_and_from_nothing() {
        let cause = |body: Value| fault::<Dto>(body).cause;
        assert_eq!(cause(json!({"amount": "1e18"})), Cause::Amount);
        assert_eq!(cause(json!({"amount": 1.5})), Cause::Amount);
        assert_eq!(cause(json!({"amount": true})), Cause::Field);
        assert_eq!(cause(json!({"amount": {}})), Cause::Field);
        assert_eq!(cause(json!({})), Cause::Missing);
        let inner = fault::<Dto>(json!({"amount": "1", "list": [{"value": ""}]}));
        assert_eq!((inner.cause, inner.field()), (Cause::Amount, "list"));
        assert_eq!(inner.path, "list[0].value");
    }

    #[test]
    fn a_path_that_a_caller_wrote_is_cut() {
        let long = "x".repeat(5_000);
        let value = json!({ long.as_str(): {} });
        let found = fault::<std::collections::BTreeMap<String, u64>>(value);
        assert!(found.path.len() <= ECHO, "{}", found.path.len());
    }
}
