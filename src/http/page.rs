//! The documentation page, the description behind it, a page for each code of an error and one for each guide.
//! Everything that a page loads comes from this process; its content security policy lets the browser ask
//! nobody else.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, OnceLock},
};

use bytes::Bytes;
use futures::FutureExt;
use hyper::{Method, StatusCode, header::HeaderValue};

use super::{
    ApiError, Request, Response, Route, Router,
    codes::{self, Code, Codes},
    error::Errors,
    guide,
    openapi::{self, About},
    router::{Access, RouteError},
};
use crate::guide::GUIDES;

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
    "<title>API reference</title><link rel=\"icon\" href=\"data:,\"><style>",
    // The reference begins below the line of links.
    ":root{--scalar-custom-header-height:40px}",
    "nav{position:sticky;top:0;z-index:100;height:40px;line-height:40px;padding:0 1em;background:#fff;",
    "border-bottom:1px solid #ddd;font-family:sans-serif}nav a{margin-right:1em;color:#04c}",
    "</style></head><body><nav><a href=\"documentation/guide\">Guides</a>",
    "<a href=\"documentation/errors\">Errors</a><a href=\"documentation/json\">OpenAPI</a></nav>",
    "<div id=\"app\"></div>",
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

/// What stands around the text of a page without scripts; its title comes in between.
const HEAD: &str = concat!(
    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">",
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">",
    "<link rel=\"icon\" href=\"data:,\"><style>",
    "body{font:16px/1.5 sans-serif;max-width:54em;margin:2em auto;padding:0 1em}h1,li,td,p{overflow-wrap:anywhere}",
    "pre{overflow-x:auto;padding:.8em;background:#f4f4f4;font-size:13px}code{font-size:.9em}",
    "table{border-collapse:collapse;display:block;overflow-x:auto}",
    "td,th{border:1px solid #ccc;padding:.3em .6em;text-align:left;vertical-align:top}",
    "</style><title>",
);
const BODY: &str = "</title></head><body>";
const TAIL: &str = "</body></html>\n";

/// The description of one listener's API, as bytes, and the codes of its errors.
pub struct Documentation {
    description: Bytes,
    codes: Codes,
}

static ROUTES: [Route<Documentation>; 8] = [
    route("/documentation", |_, _| {
        async { Ok(html(StatusCode::OK, Bytes::from_static(PAGE.as_bytes()))) }.boxed()
    }),
    route(codes::PATH, |documentation, _| {
        async move { Ok(list(documentation.codes)) }.boxed()
    }),
    route("/documentation/errors/{code}", |documentation, request| {
        async move { Ok(code(documentation.codes, &request)) }.boxed()
    }),
    route(guide::PATH, |_, _| {
        async { Ok(html(StatusCode::OK, guides())) }.boxed()
    }),
    route("/documentation/guide/{name}", |_, request| {
        async move { Ok(named_guide(&request)) }.boxed()
    }),
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
pub fn documented(router: Router, about: About, errors: Errors) -> Result<Router, RouteError> {
    let description = openapi::described(&router, about, errors)?;
    let documentation = Documentation {
        description: description.into(),
        codes: errors.codes,
    };
    router.with(&Arc::new(documentation), &ROUTES)
}

fn html(status: StatusCode, body: Bytes) -> Response {
    Response::of(status, HTML, body)
        .with("content-security-policy", POLICY)
        .with(
            "x-content-type-options",
            HeaderValue::from_static("nosniff"),
        )
        .with("referrer-policy", HeaderValue::from_static("no-referrer"))
}

/// A page without scripts. `title` is text, `body` is HTML.
fn plain(title: &str, body: &str) -> Bytes {
    format!("{HEAD}{}{BODY}{body}{TAIL}", escaped(title)).into()
}

fn list(codes: Codes) -> Response {
    let links = links(codes, "errors/");
    let body = format!(
        "<h1>Errors</h1><p>What the codes of this listener's errors mean. \
         <a href=\"../documentation\">Reference</a></p>{links}"
    );
    html(StatusCode::OK, plain("Errors", &body))
}

/// The page of the code in the path; of no code, 404 and those that there are.
fn code(codes: Codes, request: &Request) -> Response {
    let named = request.param("code").unwrap_or_default();
    match codes::find(codes, named) {
        Some(code) => html(StatusCode::OK, plain(code.text, &explained(code))),
        None => {
            let links = links(codes, "");
            let body = format!("<h1>No such code</h1><p>These are known here:</p>{links}");
            html(StatusCode::NOT_FOUND, plain("No such code", &body))
        }
    }
}

fn explained(code: &Code) -> String {
    let [happened, advice, retry] = [code.happened, code.advice, code.retry.text()].map(escaped);
    format!(
        "<h1>{}</h1><p>{happened}</p><h2>What to do</h2><p>{advice}</p>\
         <h2>Try again?</h2><p>{retry}</p>\
         <p><a href=\"../errors\">All codes</a> · <a href=\"../../documentation\">Reference</a></p>",
        code.text
    )
}

fn guides() -> Bytes {
    let links = guide_links("guide/");
    let reference = "<p><a href=\"../documentation\">Reference</a></p>";
    plain("Guides", &format!("<h1>Guides</h1>{links}{reference}"))
}

/// The page of the guide in the path; of no guide, 404 and those that there are.
fn named_guide(request: &Request) -> Response {
    /// Made once: a text takes longer than a request may cost that counts in no limit.
    static PAGES: LazyLock<HashMap<&str, Bytes>> = LazyLock::new(|| {
        let pages = GUIDES.iter().map(|guide| {
            let body = format!(
                "<p><a href=\"../guide\">All guides</a> · <a href=\"../../documentation\">Reference</a></p>{}",
                guide::rendered(guide)
            );
            (guide.name, plain(guide.name, &body))
        });
        pages.collect()
    });
    let named = request.param("name").unwrap_or_default();
    match PAGES.get(named) {
        Some(page) => html(StatusCode::OK, page.clone()),
        None => {
            let links = guide_links("");
            let body = format!("<h1>No such guide</h1><p>These are here:</p>{links}");
            html(StatusCode::NOT_FOUND, plain("No such guide", &body))
        }
    }
}

/// A list of links; a guide's page is behind `before`.
fn guide_links(before: &str) -> String {
    let items = GUIDES.iter().map(|guide| {
        let (name, about) = (guide.name, escaped(guide.about));
        format!("<li><a href=\"{before}{name}\">{name}</a>: {about}</li>")
    });
    format!("<ul>{}</ul>", items.collect::<String>())
}

/// A list of links; a code's page is behind `before`.
fn links(codes: Codes, before: &str) -> String {
    let all = codes.iter().copied().flatten();
    let items = all.map(|code| {
        let (text, happened) = (code.text, escaped(code.happened));
        format!("<li><a href=\"{before}{text}\">{text}</a>: {happened}</li>")
    });
    format!("<ul>{}</ul>", items.collect::<String>())
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
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
