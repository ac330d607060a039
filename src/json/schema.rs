//! Schemas that types do not derive by themselves.

use utoipa::openapi::{
    RefOr, Schema,
    schema::{ObjectBuilder, Type},
};

/// A string that is one of `words`; `what` says of what.
pub fn one_of<'a>(what: &str, words: impl IntoIterator<Item = &'a str>) -> RefOr<Schema> {
    let object = ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(what))
        .enum_values(Some(words));
    object.into()
}
