//! The API's description (OpenAPI 3.1), written from the route tables and the DTOs' own types.

use hyper::Method;
use utoipa::{
    ToSchema,
    openapi::{
        Components, ContentBuilder, HttpMethod, InfoBuilder, OpenApi, OpenApiBuilder, Paths, Ref,
        RefOr, Required, ResponseBuilder, ResponsesBuilder, Schema,
        path::{Operation, OperationBuilder, ParameterBuilder, ParameterIn},
        request_body::RequestBodyBuilder,
        schema::{ObjectBuilder, Type},
        security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme},
    },
};

use super::router::{Access, Described, Router, Schemas};

const KEY: &str = "key";

/// A 400, 409 or 503: what happened, and a code that does not change.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "only its schema is used; error.rs writes the bytes"
)]
struct Failure {
    message: String,
    code: String,
}

/// A 401 or 429.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "only its schema is used; error.rs writes the bytes"
)]
struct Denied {
    error: String,
}

/// Errors that any described route may answer with: status, meaning, schema, only behind the gate.
const ERRORS: [(&str, &str, &str, bool); 6] = [
    (
        "400",
        "The request cannot be used, or is refused",
        "Failure",
        false,
    ),
    ("401", "A known key is required", "Denied", true),
    (
        "409",
        "It contradicts what was signed before",
        "Failure",
        true,
    ),
    ("413", "The body is above 1 MiB", "Failure", true),
    (
        "429",
        "The limit for callers without a key is used up",
        "Denied",
        true,
    ),
    (
        "503",
        "The chain or its providers cannot be used now",
        "Failure",
        true,
    ),
];

/// The description of everything that `router` has docs for.
pub fn describe(router: &Router, title: &str, version: &str) -> OpenApi {
    let mut schemas = Schemas::new();
    for (name, schema) in [
        (
            Failure::name(),
            <Failure as utoipa::PartialSchema>::schema(),
        ),
        (Denied::name(), <Denied as utoipa::PartialSchema>::schema()),
    ] {
        schemas.push((name.into_owned(), schema));
    }
    let mut paths = Paths::new();
    for route in router.described() {
        if let Some(method) = http_method(&route.method) {
            let operation = operation(route, &mut schemas);
            paths.add_path_operation(route.path, vec![method], operation);
        }
    }
    let key = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("x-api-key")));
    let mut components = Components::new();
    components.schemas = schemas.into_iter().collect();
    components.add_security_scheme(KEY, key);
    OpenApiBuilder::new()
        .info(InfoBuilder::new().title(title).version(version).build())
        .paths(paths)
        .components(Some(components))
        .build()
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

fn operation(route: &Described, schemas: &mut Schemas) -> Operation {
    let docs = route.docs;
    let mut operation = OperationBuilder::new()
        .summary(Some(docs.summary))
        .operation_id(Some(operation_id(route)))
        .tag(docs.group);
    for name in route.path.split('/').filter_map(path_parameter) {
        operation = operation.parameter(parameter(name, ParameterIn::Path, None));
    }
    for (name, meaning) in docs.query {
        operation = operation.parameter(parameter(name, ParameterIn::Query, Some(meaning)));
    }
    if let Some(body) = docs.body {
        let content = ContentBuilder::new().schema(Some(body.0(schemas))).build();
        operation = operation.request_body(Some(
            RequestBodyBuilder::new()
                .content("application/json", content)
                .required(Some(Required::True))
                .build(),
        ));
    }
    let gated = route.access != Access::Open;
    if gated {
        operation = operation
            .security(SecurityRequirement::new(KEY, Vec::<String>::new()))
            .security(SecurityRequirement::default());
    }
    let mut responses =
        ResponsesBuilder::new().response("200", answer("The answer", docs.answer.0(schemas)));
    for (status, meaning, schema, only_gated) in ERRORS {
        if gated || !only_gated {
            let schema = Ref::from_schema_name(schema).into();
            responses = responses.response(status, answer(meaning, schema));
        }
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

fn parameter(
    name: &str,
    place: ParameterIn,
    meaning: Option<&str>,
) -> utoipa::openapi::path::Parameter {
    let required = match place {
        ParameterIn::Path => Required::True,
        _ => Required::False,
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(required)
        .description(meaning)
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

fn answer(meaning: &str, schema: RefOr<Schema>) -> utoipa::openapi::Response {
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new()
        .description(meaning)
        .content("application/json", content)
        .build()
}
