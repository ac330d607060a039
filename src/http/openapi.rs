//! Writes the API description (OpenAPI 3.1) from the route tables and the DTO types. The description has no
//! references, because agents' tools read each body where it stands and do not follow references. Only a recursive
//! type keeps a reference.

use std::collections::BTreeSet;

use hyper::Method;
use serde_json::{Map, Value};
use utoipa::openapi::{
    Components, ContentBuilder, HttpMethod, Info, InfoBuilder, OpenApi, OpenApiBuilder, Paths,
    Required, ResponseBuilder, ResponsesBuilder,
    info::LicenseBuilder,
    path::{Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
    request_body::RequestBodyBuilder,
    schema::{ObjectBuilder, Type},
    security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme},
    server::{Server, ServerBuilder},
    tag::{Tag, TagBuilder},
};

use super::{
    codes,
    error::Errors,
    router::{Access, Described, RouteError, Router, Schemas, Shape, Terms},
};

const KEY: &str = "key";
const SCHEMAS: &str = "#/components/schemas/";
/// The version of the build.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The license as an SPDX expression.
const LICENSE: &str = env!("CARGO_PKG_LICENSE");

/// The general part of a listener's API description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    pub title: &'static str,
    /// The purpose of the API.
    pub text: &'static str,
    /// The groups of routes in the order of the documentation, each with its purpose.
    pub groups: &'static [(&'static str, &'static str)],
}

/// A description with a title alone.
impl From<&'static str> for About {
    fn from(title: &'static str) -> Self {
        Self {
            title,
            text: "",
            groups: &[],
        }
    }
}

/// The API description of all routes of `router` that have docs, as JSON.
pub fn described(router: &Router, about: About, errors: Errors) -> Result<String, RouteError> {
    let described = describe(router, about, errors)?;
    let mut document = serde_json::to_value(described).unwrap_or_default();
    inline(&mut document);
    Ok(document.to_string())
}

fn describe(router: &Router, about: About, errors: Errors) -> Result<OpenApi, RouteError> {
    let mut schemas = Schemas::new();
    let mut paths = Paths::new();
    for route in router.described() {
        if let Some(method) = http_method(&route.method) {
            let operation = operation(route, errors, &mut schemas);
            paths.add_path_operation(route.path, vec![method], operation);
        }
    }
    let key = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("x-api-key")));
    let mut components = Components::new();
    for (name, schema) in schemas {
        let schema = match name == codes::SCHEMA {
            true => codes::schema(errors.codes),
            false => schema,
        };
        let before = components.schemas.get(&name);
        if before.is_some_and(|before| *before != schema) {
            return Err(RouteError::Namesakes(name));
        }
        components.schemas.insert(name, schema);
    }
    if router.described().iter().any(gated) {
        components.add_security_scheme(KEY, key);
    }
    let described = OpenApiBuilder::new()
        .info(info(about))
        .servers(Some([here()]))
        .tags(Some(tags(about)))
        .paths(paths)
        .components(Some(components))
        .build();
    Ok(described)
}

fn info(about: About) -> Info {
    let license = LicenseBuilder::new()
        .name(LICENSE)
        .identifier(Some(LICENSE));
    InfoBuilder::new()
        .title(about.title)
        .description(Some(about.text).filter(|text| !text.is_empty()))
        .version(VERSION)
        .license(Some(license.build()))
        .build()
}

/// Paths are relative to the root of the server that served the description.
fn here() -> Server {
    ServerBuilder::new()
        .url("/")
        .description(Some("The service that serves this description"))
        .build()
}

fn tags(about: About) -> Vec<Tag> {
    let tag = |(name, text): &(&str, &str)| {
        let tag = TagBuilder::new().name(*name);
        tag.description(Some(*text)).build()
    };
    about.groups.iter().map(tag).collect()
}

fn http_method(method: &Method) -> Option<HttpMethod> {
    match *method {
        Method::GET => Some(HttpMethod::Get),
        Method::POST => Some(HttpMethod::Post),
        Method::PUT => Some(HttpMethod::Put),
        Method::PATCH => Some(HttpMethod::Patch),
        Method::DELETE => Some(HttpMethod::Delete),
        _ => None,
    }
}

fn gated(route: &Described) -> bool {
    !matches!(route.access, Access::Open)
}

fn operation(route: &Described, errors: Errors, schemas: &mut Schemas) -> Operation {
    let docs = route.docs;
    let mut operation = OperationBuilder::new()
        .summary(Some(docs.summary))
        .description(Some(docs.text))
        .operation_id(Some(operation_id(route)))
        .tag(docs.group);
    for name in route.path.split('/').filter_map(path_parameter) {
        operation = operation.parameter(path_text(name));
    }
    for parameter in (docs.query.0)() {
        operation = operation.parameter(parameter);
    }
    if let Some(body) = docs.body {
        let content = ContentBuilder::new()
            .schema(Some((body.schema)(schemas)))
            .build();
        operation = operation.request_body(Some(
            RequestBodyBuilder::new()
                .content(body.media, content)
                .required(Some(Required::True))
                .build(),
        ));
    }
    let gated = gated(route);
    if gated {
        operation = operation.security(SecurityRequirement::new(KEY, Vec::<String>::new()));
        if !matches!(route.access, Access::Keyed(Terms { required: true, .. })) {
            operation = operation.security(SecurityRequirement::default());
        }
    } else {
        // Explicitly empty: the route requires no key.
        operation = operation.securities(Some([]));
    }
    let mut responses =
        ResponsesBuilder::new().response("200", answer("The answer", docs.answer, schemas));
    let errors = errors.described.iter();
    let errors = errors.filter(|error| gated || !error.gated);
    for other in errors.chain(docs.also) {
        let answer = answer(other.meaning, other.shape, schemas);
        responses = responses.response(other.status, answer);
    }
    operation.responses(responses.build()).build()
}

/// `POST /attestations/solver-fills/v1` → `post-attestations-solver-fills-v1`.
fn operation_id(route: &Described) -> String {
    let path = route.path.replace(['{', '}', '*'], "").replace('/', "-");
    format!("{}{path}", route.method.as_str().to_ascii_lowercase())
}

fn path_parameter(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

fn path_text(name: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .description(Some(format!("`{name}`, as a part of the path.")))
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

fn answer(meaning: &str, shape: Shape, schemas: &mut Schemas) -> utoipa::openapi::Response {
    let schema = (shape.schema)(schemas);
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new()
        .description(meaning)
        .content(shape.media, content)
        .build()
}

/// Replaces every reference in `document` by the schema itself, with the schema's name as `title`.
fn inline(document: &mut Value) {
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
    if let Some(schemas) = document.pointer_mut("/components/schemas") {
        *schemas = Value::Object(kept);
    }
}

struct Writer<'a> {
    schemas: &'a Map<String, Value>,
    /// The types that are being written, the outermost first.
    within: Vec<String>,
    /// The types that contain a reference to themselves.
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

    /// Puts the schema in place of the reference; keeps the reference's own fields (a description).
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

    /// The schemas that are still referenced.
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
