//! A description without references: the tools that agents use read each body where it stands, and follow
//! none. Pure. Only a type that holds itself is still referred to.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

const SCHEMAS: &str = "#/components/schemas/";

/// `document` with every schema written out where it is used, under its name as `title`.
pub fn inline(document: &mut Value) {
    let schemas = document.pointer_mut("/components/schemas");
    let schemas = match schemas.map(Value::take) {
        Some(Value::Object(schemas)) => schemas,
        _ => Map::new(),
    };
    let mut writer = Writer {
        schemas: &schemas,
        within: Vec::new(),
        kept: BTreeSet::new(),
    };
    if let Some(paths) = document.get_mut("paths") {
        writer.write(paths);
    }
    let kept = writer.kept();
    if let Some(place) = document.pointer_mut("/components/schemas") {
        *place = Value::Object(kept);
    }
}

struct Writer<'a> {
    schemas: &'a Map<String, Value>,
    /// The types that are being written out, the outermost first.
    within: Vec<String>,
    /// Those that are referred to from within themselves.
    kept: BTreeSet<String>,
}

impl Writer<'_> {
    fn write(&mut self, part: &mut Value) {
        let name = part
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|target| target.strip_prefix(SCHEMAS))
            .map(str::to_owned);
        match (name, part) {
            (Some(name), part) => self.replace(name, part),
            (None, Value::Object(fields)) => {
                fields.values_mut().for_each(|field| self.write(field));
            }
            (None, Value::Array(items)) => items.iter_mut().for_each(|item| self.write(item)),
            (None, _) => {}
        }
    }

    /// The schema in place of the reference. What the reference says of itself (a description) stays.
    fn replace(&mut self, name: String, part: &mut Value) {
        if self.within.contains(&name) {
            self.kept.insert(name);
            return;
        }
        let Some(schema) = self.schemas.get(&name) else {
            return;
        };
        let mut schema = schema.clone();
        if let (Value::Object(schema), Value::Object(said)) = (&mut schema, &mut *part) {
            said.remove("$ref");
            schema.append(said);
            let title = || Value::String(name.clone());
            schema.entry("title").or_insert_with(title);
        }
        self.within.push(name);
        self.write(&mut schema);
        self.within.pop();
        *part = schema;
    }

    /// The schemas that are still referred to.
    fn kept(mut self) -> Map<String, Value> {
        let mut kept = Map::new();
        while let Some(name) = self.kept.pop_first() {
            if kept.contains_key(&name) {
                continue;
            }
            let Some(schema) = self.schemas.get(&name) else {
                continue;
            };
            let mut schema = schema.clone();
            self.within = vec![name.clone()];
            self.write(&mut schema);
            kept.insert(name, schema);
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn inlined(schemas: Value, body: Value) -> Value {
        let mut document = json!({
            "paths": {"/a": {"post": {"schema": body}}}, "components": {"schemas": schemas},
        });
        inline(&mut document);
        document
    }

    #[test]
    fn schemas_stand_where_they_are_used() {
        let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        let document = inlined(
            json!({
                "Outer": {"type": "object", "properties": {
                    "one": reference("Inner"), "many": {"type": "array", "items": reference("Inner")},
                    "maybe": {"oneOf": [{"type": "null"}, reference("Inner")]},
                }},
                "Inner": {"type": "string", "description": "own"},
                "Unused": {"type": "string"},
            }),
            reference("Outer"),
        );
        let inner = json!({"type": "string", "description": "own", "title": "Inner"});
        assert_eq!(
            document["paths"]["/a"]["post"]["schema"],
            json!({"type": "object", "title": "Outer", "properties": {
                "one": inner, "many": {"type": "array", "items": inner},
                "maybe": {"oneOf": [{"type": "null"}, inner]},
            }})
        );
        assert_eq!(document["components"]["schemas"], json!({}));
    }

    #[test]
    fn what_a_reference_says_of_itself_stays() {
        let document = inlined(
            json!({"Inner": {"type": "string", "description": "own"}}),
            json!({"$ref": "#/components/schemas/Inner", "description": "here"}),
        );
        let schema = &document["paths"]["/a"]["post"]["schema"];
        assert_eq!(schema["description"], "here");
        assert_eq!(schema.get("$ref"), None);
    }

    #[test]
    fn a_type_that_holds_itself_is_referred_to_and_kept() {
        let tree = json!({"type": "object", "properties": {
            "left": {"$ref": "#/components/schemas/Tree"}, "leaf": {"$ref": "#/components/schemas/Leaf"},
        }});
        let document = inlined(
            json!({"Tree": tree, "Leaf": {"type": "string"}}),
            json!({"$ref": "#/components/schemas/Tree"}),
        );
        let schema = &document["paths"]["/a"]["post"]["schema"];
        let left = json!({"$ref": "#/components/schemas/Tree"});
        assert_eq!(schema["properties"]["left"], left);
        let kept = &document["components"]["schemas"];
        assert_eq!(kept["Tree"]["properties"]["left"], left);
        assert_eq!(kept["Tree"]["properties"]["leaf"]["type"], "string");
        assert_eq!(kept.get("Leaf"), None);
    }

    #[test]
    fn a_description_without_schemas_is_left_alone() {
        let mut document = json!({"paths": {}});
        inline(&mut document);
        assert_eq!(document, json!({"paths": {}}));
        let unknown = inlined(json!({}), json!({"$ref": "#/components/schemas/Nothing"}));
        let schema = &unknown["paths"]["/a"]["post"]["schema"];
        assert_eq!(schema["$ref"], "#/components/schemas/Nothing");
    }
}
