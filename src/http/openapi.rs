//! The API's description (OpenAPI 3.1), written from the route tables and the DTOs' own types, without
//! references.

mod inline;

use hyper::Method;
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
/// The build's.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// An SPDX expression.
const LICENSE: &str = env!("CARGO_PKG_LICENSE");

/// What the description of a listener's API says of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    pub title: &'static str,
    /// What it is for.
    pub text: &'static str,
    /// The groups of its routes in the order in which they are shown, and what each is for.
    pub groups: &'static [(&'static str, &'static str)],
}

/// With a title alone.
impl From<&'static str> for About {
    fn from(title: &'static str) -> Self {
        Self {
            title,
            text: "",
            groups: &[],
        }
    }
}

/// The description of everything that `router` has docs for, as JSON.
pub fn described(router: &Router, about: About, errors: Errors) -> Result<String, RouteError> {
    let described = describe(router, about, errors)?;
    let mut document = serde_json::to_value(described).unwrap_or_default();
    inline::inline(&mut document);
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

/// Paths are behind the root of whatever served the description.
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
        // Said, not left out: that nothing is asked for is meant.
        operation = operation.securities(Some([]));
    }
    let mut responses =
        ResponsesBuilder::new().response("200", answer("The answer", docs.answer, schemas));
    for error in errors.described {
        if gated || !error.gated {
            let answer = answer(error.meaning, error.shape, schemas);
            responses = responses.response(error.status, answer);
        }
    }
    for other in docs.also {
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
