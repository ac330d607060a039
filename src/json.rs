//! JSON as callers send it: the scalars of bodies and queries, and the messages for wrong values. Pure. It depends on
//! no route and no claim: the oracle, the integrator API and the quotes share it.

mod fault;
mod objects;
mod scalar;

pub use fault::{Cause, Fault, short};
pub use objects::Objects;
pub use scalar::{Digits, Flag, MAX_NUMBER, Number, Text, number};

/// Schemas that types do not derive.
pub mod schema {
    use utoipa::openapi::{
        RefOr, Schema,
        schema::{ObjectBuilder, Type},
    };

    /// A string that is one of `words`; `what` describes the string.
    pub fn one_of<'a>(what: &str, words: impl IntoIterator<Item = &'a str>) -> RefOr<Schema> {
        let object = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(what))
            .enum_values(Some(words));
        object.into()
    }
}
