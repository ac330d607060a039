//! Values in which objects are read of objects alone. The readers that serde derives also take an array of an object's
//! values, which no client means and other readers of the body refuse.

use serde::{
    Deserializer,
    de::{
        Error as _, IntoDeserializer, Unexpected, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Error, Value};

/// Reads a value as serde_json reads it, but no array as a struct. What a type leaves open (maps, values, tuples) stays
/// open. Enums that hold more than their word are read as serde_json reads them.
pub struct Objects(pub Value);

impl<'de> IntoDeserializer<'de, Error> for Objects {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Objects {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => {
                let mut items = SeqDeserializer::new(items.into_iter().map(Self));
                let read = visitor.visit_seq(&mut items)?;
                items.end()?;
                Ok(read)
            }
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (name, Self(value)));
                let mut fields = MapDeserializer::new(fields);
                let read = visitor.visit_map(&mut fields)?;
                fields.end()?;
                Ok(read)
            }
            scalar => scalar.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(_) => Err(Error::invalid_type(Unexpected::Seq, &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::{Deserialize, de::DeserializeOwned};
    use serde_json::{Map, json};

    use super::*;
    use crate::json::{Fault, Number, Text};

    fn read<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
        let read = serde_path_to_error::deserialize(Objects(value.clone()));
        read.map_err(|error| Fault::of(error).message("body"))
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Dto {
        id: Number,
        inner: Option<Inner>,
        list: Option<Vec<Inner>>,
        named: Option<BTreeMap<String, Inner>>,
        open: Option<Map<String, Value>>,
        any: Option<Value>,
        rows: Option<Vec<Vec<u8>>>,
        pair: Option<(u8, Text)>,
        mode: Option<Mode>,
        wrapped: Option<Wrapped>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        text: Text,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Wrapped(Inner);

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Fast,
        Slow,
    }

    #[test]
    fn an_array_of_its_values_is_no_object_wherever_it_stands() {
        for (body, wanted) in [
            (json!([1]), "body: expected an object"),
            (
                json!({"id": 1, "inner": ["a"]}),
                "inner: expected an object",
            ),
            (json!({"id": 1, "inner": []}), "inner: expected an object"),
            (
                json!({"id": 1, "list": [{"text": "a"}, ["a"]]}),
                "list[1]: expected an object",
            ),
            (
                json!({"id": 1, "named": {"a": ["a"]}}),
                "named.a: expected an object",
            ),
            (
                json!({"id": 1, "wrapped": ["a"]}),
                "wrapped: expected an object",
            ),
        ] {
            assert_eq!(read::<Dto>(&body), Err(wanted.to_owned()), "{body}");
        }
    }

    #[test]
    fn all_else_is_read_as_serde_json_reads_it() {
        let whole = json!({
            "id": "7", "inner": {"text": 5, "more": [[]]}, "list": [{"text": ["a"]}], "named": {"b": {"text": true}},
            "open": {"a": [["b"], 1.5, null]}, "any": [["a"], {"b": [[-1]]}], "rows": [[1, 2], []],
            "pair": [3, "b"], "mode": "slow", "wrapped": {"text": "a"}, "more": [[1]],
        });
        let mut read_of = 0;
        for body in [
            whole.clone(),
            json!({"id": 1}),
            json!({"id": 1, "inner": null, "any": null, "open": null}),
            json!({"id": 1.0}),
            json!({"id": -1}),
            json!({"id": 1, "inner": {}}),
            json!({"id": 1, "inner": 5}),
            json!({"id": 1, "inner": "a"}),
            json!({"id": 1, "list": {}}),
            json!({"id": 1, "list": [null]}),
            json!({"id": 1, "open": []}),
            json!({"id": 1, "rows": [[256]]}),
            json!({"id": 1, "rows": [1]}),
            json!({"id": 1, "pair": {}}),
            json!({"id": 1, "mode": "x"}),
            json!({"id": 1, "mode": 5}),
            json!({}),
            json!(null),
        ] {
            let plain = serde_path_to_error::deserialize::<_, Dto>(body.clone());
            let plain = plain.map_err(|error| Fault::of(error).message("body"));
            assert_eq!(read::<Dto>(&body), plain, "{body}");
            read_of += usize::from(plain.is_ok());
        }
        assert_eq!(read_of, 4);
        assert_eq!(read::<Value>(&whole), Ok(whole));
    }
}
