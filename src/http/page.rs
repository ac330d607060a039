//! The documentation page and the description behind it. Everything that the page loads comes from
//! this process; its content security policy lets the browser ask nobody else.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::FutureExt;
use hyper::{Method, StatusCode, header::HeaderValue};

use super::{
    ApiError, Request, Response, Route, Router,
    error::Errors,
    openapi,
    router::{Access, RouteError},
};

const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const SCRIPT: HeaderValue = HeaderValue::from_static("text/javascript; charset=utf-8");

/// Links are relative, so that the page also works behind a path prefix.
const PAGE: &str = concat!(
    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">",
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">",
    "<title>API reference</title><link rel=\"icon\" href=\"data:,\"></head>",
    "<body><div id=\"app\"></div><noscript><a href=\"documentation/json\">OpenAPI</a></noscript>",
    "<script src=\"documentation/static/scalar.js\"></script>",
    "<script src=\"documentation/static/start.js\"></script></body></html>",
);

/// Everything in Scalar that would ask another host is off.
const START: &str = r#"Scalar.createApiReference('#app', {
  url: 'documentation/json',
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
});
"#;

/// The description of one listener's API, as bytes.
pub struct Documentation {
    description: Bytes,
}

static ROUTES: [Route<Documentation>; 4] = [
    route("/documentation", |_, _| async { Ok(page()) }.boxed()),
    route("/documentation/json", |documentation, _| {
        async move { Ok(described(&documentation)) }.boxed()
    }),
    route("/documentation/static/scalar.js", |_, request| {
        async move { scalar(&request) }.boxed()
    }),
    route("/documentation/static/start.js", |_, _| {
        async { Ok(script(Bytes::from_static(START.as_bytes()))) }.boxed()
    }),
];

const fn route(path: &'static str, handler: super::Handler<Documentation>) -> Route<Documentation> {
    Route {
        method: Method::GET,
        path,
        access: Access::Open,
        handler,
        docs: None,
    }
}

/// `router` with the description of all its routes so far, and the page that shows it.
pub fn documented(
    router: Router,
    title: &str,
    version: &str,
    errors: Errors,
) -> Result<Router, RouteError> {
    let description = openapi::describe(&router, title, version, errors)?
        .to_json()
        .unwrap_or_default();
    let documentation = Documentation {
        description: description.into(),
    };
    router.with(&Arc::new(documentation), &ROUTES)
}

fn page() -> Response {
    Response::of(StatusCode::OK, HTML, Bytes::from_static(PAGE.as_bytes()))
        .with("content-security-policy", POLICY)
        .with(
            "x-content-type-options",
            HeaderValue::from_static("nosniff"),
        )
        .with("referrer-policy", HeaderValue::from_static("no-referrer"))
}

fn described(documentation: &Documentation) -> Response {
    Response::raw(StatusCode::OK, documentation.description.clone())
}

fn script(body: Bytes) -> Response {
    Response::of(StatusCode::OK, SCRIPT, body)
        .with(
            "x-content-type-options",
            HeaderValue::from_static("nosniff"),
        )
        .with("cache-control", HeaderValue::from_static("max-age=3600"))
}

/// Scalar's bundle (4.9 MB), taken out of the binary once.
fn scalar(request: &Request) -> Result<Response, ApiError> {
    static BUNDLE: OnceLock<Option<Bytes>> = OnceLock::new();
    BUNDLE
        .get_or_init(|| scalar_api_reference::get_asset("scalar.js").map(Bytes::from))
        .clone()
        .map(script)
        .ok_or_else(|| ApiError::internal(format!("no asset for {}", request.target)))
}
