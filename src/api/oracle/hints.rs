//! Hints as bodies bring them: a map from a family's name to what that family declares ([`vm::hint`]). The
//! echo has them in the same order and as what they stand for.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        Ref, RefOr, Schema,
        schema::{ObjectBuilder, OneOfBuilder, Type},
    },
};
use vm::{
    FAMILIES,
    hint::{HintField, HintKind, HintShape, Purpose},
};

use crate::http::{ApiError, Number, Text};

const INPUT_INDEX: &str = "inputIndex";

/// Declares what bodies bring of one purpose. Its text stands in the description, too.
macro_rules! hints {
    ($(#[doc = $about:literal])+ $name:ident, $purpose:expr) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Serialize)]
        #[serde(transparent)]
        pub struct $name(Entries);

        impl $name {
            /// As claims carry them.
            pub fn value(&self) -> Result<Value, ApiError> {
                serde_json::to_value(self).map_err(ApiError::internal)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let read = deserializer.deserialize_map(Reader {
                    purpose: $purpose,
                    indexed: false,
                });
                Ok(Self(read?.1))
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                object(concat!($($about),+).trim(), $purpose, &[])
            }
        }

        impl ToSchema for $name {
            fn schemas(schemas: &mut Schemas) {
                referred($purpose, schemas);
            }
        }
    };
}

hints! {
    /// What a family needs besides the id to find a transaction.
    DepositHints, Purpose::Deposit
}
hints! {
    /// What families need to find a fill or refund.
    FillHints, Purpose::Payment
}

/// What families need to find the deposit of one input.
#[derive(Clone, Debug)]
pub struct InputHint {
    pub input_index: Number,
    hints: Entries,
}

/// Hints by the name of their family.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
struct Entries(BTreeMap<&'static str, Hint>);

/// Fields with their values, in the order of their declaration.
#[derive(Clone, Debug)]
struct Hint(Vec<(&'static str, Scalar)>);

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Scalar {
    Text(Text),
    Number(Number),
}

impl InputHint {
    /// As claims carry them.
    pub fn value(&self) -> Result<Value, ApiError> {
        serde_json::to_value(&self.hints).map_err(ApiError::internal)
    }
}

/// The families that take a hint for `purpose`, and which.
fn shapes(purpose: Purpose) -> impl Iterator<Item = (&'static str, &'static HintShape)> {
    let shape = move |family: &&'static vm::Family| Some((family.name, family.hints.of(purpose)?));
    FAMILIES.iter().filter_map(shape)
}

impl Serialize for Hint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Serialize for InputHint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(INPUT_INDEX, &self.input_index)?;
        for (name, hint) in &self.hints.0 {
            map.serialize_entry(name, hint)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for InputHint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let reader = Reader {
            purpose: Purpose::Deposit,
            indexed: true,
        };
        let (index, hints) = deserializer.deserialize_map(reader)?;
        Ok(Self {
            input_index: index.ok_or_else(|| D::Error::missing_field(INPUT_INDEX))?,
            hints,
        })
    }
}

/// Reads an object of hints. What is of no family is left out.
struct Reader {
    purpose: Purpose,
    /// The object also says which input it is about.
    indexed: bool,
}

impl<'de> Visitor<'de> for Reader {
    type Value = (Option<Number>, Entries);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let (mut index, mut entries) = (None, Entries::default());
        while let Some(field) = fields.next_key::<String>()? {
            if self.indexed && field == INPUT_INDEX {
                index = Some(fields.next_value()?);
                continue;
            }
            match shapes(self.purpose).find(|(name, _)| *name == field) {
                Some((name, shape)) => {
                    let hint = fields.next_value_seed(MaybeHint(shape))?;
                    entries.0.extend(hint.map(|hint| (name, hint)));
                }
                None => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok((index, entries))
    }
}

/// Reads a hint of this shape, or null.
struct MaybeHint(&'static HintShape);

impl<'de> DeserializeSeed<'de> for MaybeHint {
    type Value = Option<Hint>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MaybeHint {
    type Value = Option<Hint>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut found: Vec<Option<Scalar>> = vec![None; self.0.fields.len()];
        while let Some(name) = fields.next_key::<String>()? {
            let known = self.0.fields.iter().zip(&mut found);
            match known.into_iter().find(|(field, _)| field.name == name) {
                Some((field, slot)) => *slot = scalar(field, &mut fields)?,
                None => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        let mut values = Vec::with_capacity(found.len());
        for (field, value) in self.0.fields.iter().zip(found) {
            match value {
                Some(value) => values.push((field.name, value)),
                None if field.required => return Err(A::Error::missing_field(field.name)),
                None => {}
            }
        }
        Ok(Some(Hint(values)))
    }
}

/// The value of `field`, which is next; `None` for null where it may be left out.
fn scalar<'de, A: MapAccess<'de>>(
    field: &HintField,
    fields: &mut A,
) -> Result<Option<Scalar>, A::Error> {
    Ok(match (field.kind, field.required) {
        (HintKind::Text, true) => Some(Scalar::Text(fields.next_value()?)),
        (HintKind::Text, false) => fields.next_value::<Option<_>>()?.map(Scalar::Text),
        (HintKind::Number, true) => Some(Scalar::Number(fields.next_value()?)),
        (HintKind::Number, false) => fields.next_value::<Option<_>>()?.map(Scalar::Number),
    })
}

type Schemas = Vec<(String, RefOr<Schema>)>;

/// What is described under `name`, or null.
fn nullable(name: &str) -> RefOr<Schema> {
    OneOfBuilder::new()
        .item(Ref::from_schema_name(name))
        .item(ObjectBuilder::new().schema_type(Type::Null))
        .into()
}

/// An object that has `fields` first and then a hint for each family.
fn object(about: &str, purpose: Purpose, fields: &[(&str, Cow<'static, str>)]) -> RefOr<Schema> {
    let mut object = ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(about));
    for (name, of) in fields {
        let of = Ref::from_schema_name(of.clone());
        object = object.property(*name, of).required(*name);
    }
    for (name, shape) in shapes(purpose) {
        object = object.property(name, nullable(shape.title));
    }
    object.into()
}

/// The schemas that the one of `purpose` refers to.
fn referred(purpose: Purpose, schemas: &mut Schemas) {
    for (_, shape) in shapes(purpose) {
        schemas.push((shape.title.to_owned(), hint(shape)));
        schemas.extend(shape.fields.iter().map(|field| kind(field.kind)));
    }
}

/// What a field of this kind refers to.
fn kind(kind: HintKind) -> (String, RefOr<Schema>) {
    match kind {
        HintKind::Text => (Text::name().into_owned(), Text::schema()),
        HintKind::Number => (Number::name().into_owned(), Number::schema()),
    }
}

fn hint(shape: &HintShape) -> RefOr<Schema> {
    let mut object = ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(shape.about).filter(|about| !about.is_empty()));
    for field in shape.fields {
        let (of, _) = kind(field.kind);
        object = match field.required {
            true => object
                .property(field.name, Ref::from_schema_name(of))
                .required(field.name),
            false => object.property(field.name, nullable(&of)),
        };
    }
    object.into()
}

impl PartialSchema for InputHint {
    fn schema() -> RefOr<Schema> {
        let about = "What families need to find the deposit of one input.";
        object(about, Purpose::Deposit, &[(INPUT_INDEX, Number::name())])
    }
}

impl ToSchema for InputHint {
    fn schemas(schemas: &mut Schemas) {
        schemas.push(kind(HintKind::Number));
        referred(Purpose::Deposit, schemas);
    }
}

#[cfg(test)]
mod tests;
