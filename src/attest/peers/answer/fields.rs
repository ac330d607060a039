//! Some fields of a JSON object, undecoded: decoded, what nobody asked for would take memory.

use std::{collections::HashMap, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of the object `text` that `names` lists; `None` where it is no object, or one of them stands twice.
pub fn of<'n, 'a>(text: &'a str, names: &'n [&'n str]) -> Option<HashMap<&'n str, &'a RawValue>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let fields = Names(names).deserialize(&mut reader).ok()?;
    reader.end().ok().map(|()| fields)
}

struct Names<'n>(&'n [&'n str]);

impl<'n, 'de> DeserializeSeed<'de> for Names<'n> {
    type Value = HashMap<&'n str, &'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'n, 'de> Visitor<'de> for Names<'n> {
    type Value = HashMap<&'n str, &'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut found = HashMap::new();
        while let Some(name) = fields.next_key::<String>()? {
            let Some(name) = self.0.iter().find(|wanted| **wanted == name) else {
                fields.next_value::<IgnoredAny>()?;
                continue;
            };
            if found.insert(*name, fields.next_value()?).is_some() {
                return Err(A::Error::custom("a field stands twice"));
            }
        }
        Ok(found)
    }
}
