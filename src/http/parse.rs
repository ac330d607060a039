//! Bytes of a body → a JSON object, then a typed one. Pure. What two parsers could read in two ways
//! (duplicate fields, prototype keys, trailing bytes) is refused; what existing clients rely on is in
//! [`coerce`](super::coerce).

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value, error::Category};

use super::ApiError;

/// Longest piece of the caller's own text that an error repeats.
const ECHO: usize = 120;

/// A body that must be a JSON object, by the content-type rules of oracle.md section 2.
pub fn object(content_type: Option<&str>, body: &[u8]) -> Result<Value, ApiError> {
    match media(content_type) {
        Media::Json if body.is_empty() => Err(ApiError::refused(
            "EMPTY_BODY",
            "Body cannot be empty when content-type is set to 'application/json'",
        )),
        Media::Json => object_of(body),
        Media::Text => Err(not_object()),
        Media::None if body.is_empty() => Err(not_object()),
        Media::None => Err(ApiError::MediaType("none".into())),
        Media::Other(essence) => Err(ApiError::MediaType(short(&essence))),
    }
}

/// `value` as `T`. A 400 names the first field that is wrong and what was expected.
pub fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." {
            String::new()
        } else {
            short(&path)
        };
        field_error(&path, &error.into_inner().to_string())
    })
}

/// A field that is wrong for a reason that its type does not know.
pub fn invalid_field(path: &str, expected: &str) -> ApiError {
    ApiError::refused("INVALID_FIELD", format!("{path}: {expected}"))
}

enum Media {
    Json,
    Text,
    None,
    Other(String),
}

fn media(content_type: Option<&str>) -> Media {
    let Some(text) = content_type else {
        return Media::None;
    };
    let essence = text.split(';').next().unwrap_or_default().trim();
    match essence.to_ascii_lowercase().as_str() {
        "application/json" => Media::Json,
        "text/plain" => Media::Text,
        "" => Media::None,
        _ => Media::Other(essence.to_owned()),
    }
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
    if value.is_object() {
        Ok(value)
    } else {
        Err(not_object())
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

/// serde's own wording → ours: `missing field`, and what stands after `expected`.
fn field_error(path: &str, text: &str) -> ApiError {
    let missing = text
        .strip_prefix("missing field `")
        .and_then(|rest| rest.split('`').next());
    if let Some(field) = missing {
        let whole = if path.is_empty() {
            field.to_owned()
        } else {
            format!("{path}.{field}")
        };
        return ApiError::refused("MISSING_FIELD", format!("{whole}: required"));
    }
    let expected = text
        .rfind("expected ")
        .map_or_else(|| short(text), |at| text[at..].to_owned());
    invalid_field(if path.is_empty() { "body" } else { path }, &expected)
}

fn short(text: &str) -> String {
    text.chars().take(ECHO).collect()
}

const PROTOTYPE: &str = "Object contains forbidden prototype property";

/// JSON without duplicate fields and prototype keys; depth is limited by serde_json (128).
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

/// Keys that give an object another prototype in JavaScript, where other readers of this body run.
fn poisonous(name: &str, value: &Value) -> bool {
    name == "__proto__" || (name == "constructor" && value.get("prototype").is_some())
}

/// Reads one field leniently; see the newtypes of [`coerce`](super::coerce).
pub(super) fn scalar<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Array(mut items) if items.len() == 1 => items.remove(0),
        other => other,
    })
}
