//! Parses the bytes of a body into a JSON object, then into a type. Pure. It refuses what two parsers could read
//! differently (duplicate fields, prototype keys, trailing bytes). What existing clients rely on, and the wording of
//! errors, is in [`json`](crate::json).

use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value, error::Category};

use super::ApiError;
use crate::json::{Cause, Fault, Objects, short};

const JSON: &str = "application/json";

/// Parses a body that must be a JSON object, by the content-type rules of the guide's protocol 10.1.
pub fn object(content_type: Option<&str>, body: &[u8]) -> Result<Value, ApiError> {
    let media = media(content_type);
    match (media.to_ascii_lowercase().as_str(), body.is_empty()) {
        (JSON, true) => Err(ApiError::refused(
            "EMPTY_BODY",
            "Body cannot be empty when content-type is set to 'application/json'",
        )),
        (JSON, false) => object_of(body),
        ("text/plain", _) | ("", true) => Err(not_object()),
        ("", false) => Err(ApiError::MediaType("none".into())),
        _ => Err(ApiError::MediaType(short(media))),
    }
}

/// Whether a body of this content type is read as JSON.
pub fn is_json(content_type: Option<&str>) -> bool {
    media(content_type).eq_ignore_ascii_case(JSON)
}

/// The media type without its parameters; empty without one.
fn media(content_type: Option<&str>) -> &str {
    let media = content_type.unwrap_or_default();
    media.split(';').next().unwrap_or_default().trim()
}

/// Reads `value` as `T`; no array stands for an object. A 400 names the first wrong field and what was expected.
pub fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(Objects(value)).map_err(|error| wrong("body", error))
}

/// Reads a query string as `T`, with the errors of [`typed`]. It ignores unknown parameters and refuses a parameter
/// that occurs twice.
pub fn query<T: DeserializeOwned>(text: &str) -> Result<T, ApiError> {
    let pairs = url::form_urlencoded::parse(text.as_bytes());
    let reader = serde_urlencoded::Deserializer::new(pairs);
    serde_path_to_error::deserialize(reader).map_err(|error| wrong("query", error))
}

fn wrong(root: &str, error: serde_path_to_error::Error<impl fmt::Display>) -> ApiError {
    let fault = Fault::of(error);
    let code = match fault.cause {
        Cause::Missing => "MISSING_FIELD",
        Cause::Amount => "INVALID_AMOUNT",
        Cause::Field => "INVALID_FIELD",
    };
    ApiError::refused(code, fault.message(root))
}

/// A 400 for a field that the type accepts and the caller refuses.
pub fn invalid_field(path: &str, expected: &str) -> ApiError {
    ApiError::refused("INVALID_FIELD", format!("{path}: {expected}"))
}

fn not_object() -> ApiError {
    ApiError::refused("INVALID_BODY", "body must be object")
}

fn object_of(body: &[u8]) -> Result<Value, ApiError> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = Strict
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| json_error(&error))?;
    match value {
        Value::Object(_) => Ok(value),
        _ => Err(not_object()),
    }
}

fn json_error(error: &serde_json::Error) -> ApiError {
    match error.classify() {
        Category::Eof => ApiError::refused("INVALID_JSON", "Unexpected end of JSON input"),
        Category::Data if error.to_string().starts_with(PROTOTYPE) => {
            ApiError::refused("INVALID_JSON", PROTOTYPE)
        }
        _ => ApiError::refused("INVALID_JSON", format!("body is not valid JSON: {error}")),
    }
}

const PROTOTYPE: &str = "Object contains forbidden prototype property";

/// Reads JSON without duplicate fields and prototype keys; serde_json limits the depth (128).
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(Strict)? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = fields.next_value_seed(Strict)?;
            if poisonous(&name, &value) {
                return Err(Error::custom(PROTOTYPE));
            }
            if all.contains_key(&name) {
                let name = short(&name);
                return Err(Error::custom(format_args!("duplicate field `{name}`")));
            }
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }
}

/// Whether the key sets an object's prototype in JavaScript, where other readers of this body run.
fn poisonous(name: &str, value: &Value) -> bool {
    name == "__proto__" || (name == "constructor" && value.get("prototype").is_some())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::http::{Flag, Number, Text};

    fn refusal(result: Result<impl fmt::Debug, ApiError>) -> (u16, String) {
        let error = result.expect_err("refused");
        let status = error.status().as_u16();
        let text = match error {
            ApiError::Refused { code, message, .. } => format!("{code} {message}"),
            other => other.to_string(),
        };
        (status, text)
    }

    #[test]
    fn body_table() {
        let json = Some("application/json");
        let cases: &[(Option<&str>, &[u8], u16, &str)] = &[
            (
                json,
                b"",
                400,
                "EMPTY_BODY Body cannot be empty when content-type is set to 'application/json'",
            ),
            (
                json,
                b"{\"a\": ",
                400,
                "INVALID_JSON Unexpected end of JSON input",
            ),
            (json, b"[1]", 400, "INVALID_BODY body must be object"),
            (json, b"null", 400, "INVALID_BODY body must be object"),
            (
                json,
                b"{\"__proto__\":{}}",
                400,
                "INVALID_JSON Object contains forbidden prototype property",
            ),
            (
                json,
                b"{\"a\":[{\"constructor\":{\"prototype\":1}}]}",
                400,
                "INVALID_JSON Object contains forbidden prototype property",
            ),
            (None, b"", 400, "INVALID_BODY body must be object"),
            (
                Some("text/plain"),
                b"hi",
                400,
                "INVALID_BODY body must be object",
            ),
            (None, b"{}", 415, "media type none"),
            (
                Some("application/xml"),
                b"<a/>",
                415,
                "media type application/xml",
            ),
            (
                Some("application/jsonp"),
                b"{}",
                415,
                "media type application/jsonp",
            ),
        ];
        for (media, body, status, text) in cases {
            assert_eq!(refusal(object(*media, body)), (*status, (*text).to_owned()));
        }
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Listing {
        chain_id: Number,
        limit: Option<u8>,
        user: Option<Text>,
        include_total: Option<Flag>,
    }

    #[test]
    fn queries_are_typed_and_refused_like_bodies() {
        let all: Listing =
            query("chainId=8453&limit=20&user=a%20b%2B+c&includeTotal=true&referrer=x").unwrap();
        let expected = Listing {
            chain_id: Number(8453),
            limit: Some(20),
            user: Some(Text("a b+ c".into())),
            include_total: Some(Flag(true)),
        };
        assert_eq!(all, expected);
        assert_eq!(query::<Listing>("chainId=1").unwrap().limit, None);
        let hex: Listing = query("chainId=0x2105").unwrap();
        assert_eq!(hex.chain_id, Number(8453));
        let cases = [
            ("", "MISSING_FIELD chainId: required"),
            (
                "chainId=x",
                "INVALID_FIELD chainId: expected a whole number from 0 to 9007199254740991",
            ),
            (
                "chainId=-1",
                "INVALID_FIELD chainId: expected a whole number from 0 to 9007199254740991",
            ),
            (
                "chainId=1&limit=256",
                "INVALID_FIELD limit: expected a smaller number",
            ),
            (
                "chainId=1&limit=x",
                "INVALID_FIELD limit: expected a whole number",
            ),
            (
                "chainId=0x",
                "INVALID_FIELD chainId: expected a whole number from 0 to 9007199254740991",
            ),
            (
                "chainId=1&includeTotal=yes",
                "INVALID_FIELD includeTotal: expected a boolean",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(
                refusal(query::<Listing>(text)),
                (400, expected.to_owned()),
                "{text}"
            );
        }
        let (status, text) = refusal(query::<Listing>("chainId=1&chainId=2"));
        assert!(
            status == 400 && text.contains("duplicate field `chainId`"),
            "{text}"
        );
    }

    #[test]
    fn malformed_json_is_refused() {
        let deep = "[".repeat(10_000);
        let bodies: &[&[u8]] = &[
            b"{\"a\":NaN}",
            b"{\"a\":1e400}",
            b"{\"a\":0x10}",
            b"{\"a\":1,\"a\":1}",
            b"{\"a\":{\"b\":1,\"b\":2}}",
            b"{} x",
            b"{}{}",
            b"{\"a\":\"\xff\"}",
            b"{'a':1}",
            b"{\"a\":1,}",
            b"{\"a\":01}",
            deep.as_bytes(),
        ];
        for body in bodies {
            let (status, text) = refusal(object(Some("application/json"), body));
            assert_eq!(status, 400);
            assert!(text.starts_with("INVALID_JSON "), "{text}");
            assert!(text.len() < 300, "{text}");
        }
    }

    #[test]
    fn readable_bodies_are_kept_whole() {
        let bodies = [
            (
                "application/json",
                r#"{"a":1,"unknown":{"b":[true,null,-0.5,"x"]}}"#,
            ),
            ("application/json; charset=utf-8", r#"{"constructor":1}"#),
            ("Application/JSON", " {} "),
        ];
        for (media, body) in bodies {
            let expected: Value = serde_json::from_str(body).expect("JSON");
            let got = object(Some(media), body.as_bytes()).expect("accepted");
            assert_eq!(got, expected);
        }
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only read from JSON")]
    struct Dto {
        chain_id: Text,
        request_peer_signatures: Option<Flag>,
        inputs: Option<Vec<Input>>,
        mode: Option<Mode>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only read from JSON")]
    struct Input {
        input_index: Number,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Fast,
        Slow,
    }

    #[test]
    fn wrong_fields_are_named_with_what_was_expected() {
        let cases = [
            ("{}", "MISSING_FIELD chainId: required"),
            (
                r#"{"chainId":{}}"#,
                "INVALID_FIELD chainId: expected a string",
            ),
            (
                r#"{"chainId":"a","requestPeerSignatures":"maybe"}"#,
                "INVALID_FIELD requestPeerSignatures: expected a boolean",
            ),
            (
                r#"{"chainId":"a","inputs":[{"inputIndex":0},{}]}"#,
                "MISSING_FIELD inputs[1].inputIndex: required",
            ),
            (
                r#"{"chainId":"a","inputs":[{"inputIndex":"0x"}]}"#,
                "INVALID_FIELD inputs[0].inputIndex: expected a whole number from 0 to 9007199254740991",
            ),
            (
                r#"{"chainId":"a","inputs":{}}"#,
                "INVALID_FIELD inputs: expected an array",
            ),
            (
                r#"{"chainId":"a","inputs":["x"]}"#,
                "INVALID_FIELD inputs[0]: expected an object",
            ),
            (
                r#"{"chainId":"a","inputs":[[0]]}"#,
                "INVALID_FIELD inputs[0]: expected an object",
            ),
            (
                r#"{"chainId":"a","inputs":[{"inputIndex":0},[0]]}"#,
                "INVALID_FIELD inputs[1]: expected an object",
            ),
            (
                r#"{"chainId":"a","mode":"x"}"#,
                "INVALID_FIELD mode: expected `fast` or `slow`",
            ),
        ];
        for (body, expected) in cases {
            let value = serde_json::from_str(body).expect("JSON");
            assert_eq!(refusal(typed::<Dto>(value)), (400, expected.to_owned()));
        }
        let accepted = serde_json::json!({"chainId": 1, "mode": "slow", "foo": {}, "inputs": null});
        let dto: Dto = typed(accepted).expect("accepted");
        assert_eq!((dto.chain_id.0.as_str(), dto.inputs.is_none()), ("1", true));
        // What no type says anything about is as free as it was, and one element still stands for itself.
        let free = serde_json::json!({"chainId": ["a"], "foo": [[0]], "inputs": [{"inputIndex": [0], "x": [[1]]}]});
        assert!(typed::<Dto>(free).is_ok());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(0_u8.., 0..200)) {
            object(Some("application/json"), &bytes).ok();
        }

        /// Accepts exactly what serde_json reads.
        #[test]
        fn accepted_bodies_are_read_as_written(text in "\\{(\"[ab]\":([0-9]|\"x\"|\\[1\\]),?){0,3}\\}") {
            if let Ok(value) = object(Some("application/json"), text.as_bytes()) {
                proptest::prop_assert_eq!(value, serde_json::from_str::<Value>(&text).expect("JSON"));
            }
        }
    }
}
