//! The documentation page, the API description, a page per error code and a page per guide. This process serves
//! everything that a page loads; the content security policy forbids requests to other hosts.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, OnceLock},
};

use bytes::Bytes;
use futures::FutureExt;
use hyper::{Method, StatusCode, header::HeaderValue};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html as markdown};

use super::{
    ApiError, Request, Response, Route, Router,
    codes::{self, Code, Codes},
    error::Errors,
    openapi::{self, About},
    router::{Access, RouteError},
};
use crate::guide::{self, GUIDES, Guide};

const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const SCRIPT: HeaderValue = HeaderValue::from_static("text/javascript; charset=utf-8");

/// The path of the list of guides; the page of one guide is below it.
const GUIDE: &str = "/documentation/guide";

/// Links are relative, so that the page also works behind a path prefix.
const PAGE: &str = concat!(
    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">",
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">",
    "<title>API reference</title><link rel=\"icon\" href=\"data:,\"><style>",
    // The reference starts below the navigation bar.
    ":root{--scalar-custom-header-height:40px}",
    "nav{position:sticky;top:0;z-index:100;height:40px;line-height:40px;padding:0 1em;background:#fff;",
    "border-bottom:1px solid #ddd;font-family:sans-serif}nav a{margin-right:1em;color:#04c}",
    "</style></head><body><nav><a href=\"documentation/guide\">Guides</a>",
    "<a href=\"documentation/errors\">Errors</a><a href=\"documentation/json\">OpenAPI</a></nav>",
    "<div id=\"app\"></div>",
    "<script src=\"documentation/static/scalar.js\"></script>",
    "<script src=\"documentation/static/start.js\"></script></body></html>",
);

/// Turns off everything in Scalar that would contact another host.
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

/// The start of a page without scripts; the title follows it.
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

/// One listener's API description as bytes, its error codes, and their pages.
struct Documentation {
    description: Bytes,
    codes: Codes,
    errors: Pages,
}

/// The pages about one subject and their list, each made once: no limit counts a request for one of them, so that it
/// must not take time or memory of its own.
struct Pages {
    list: Bytes,
    named: HashMap<&'static str, Bytes>,
    /// The list as the answer for any other name.
    missing: Bytes,
}

static GUIDE_PAGES: LazyLock<Pages> = LazyLock::new(Pages::of_guides);

static ROUTES: [Route<Documentation>; 8] = [
    route("/documentation", |_, _| {
        async { Ok(html(StatusCode::OK, Bytes::from_static(PAGE.as_bytes()))) }.boxed()
    }),
    route(codes::PATH, |documentation, _| {
        async move { Ok(documentation.errors.list()) }.boxed()
    }),
    route("/documentation/errors/{code}", |documentation, request| {
        async move { Ok(code(&documentation, &request)) }.boxed()
    }),
    route(GUIDE, |_, _| async { Ok(GUIDE_PAGES.list()) }.boxed()),
    route("/documentation/guide/{name}", |_, request| {
        async move { Ok(guide_page(&request)) }.boxed()
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

/// Adds the description of all routes of `router` so far, and the page that shows it.
pub fn documented(router: Router, about: About, errors: Errors) -> Result<Router, RouteError> {
    let description = openapi::described(&router, about, errors)?;
    let documentation = Documentation {
        description: description.into(),
        codes: errors.codes,
        errors: Pages::of_codes(errors.codes),
    };
    router.with(&Arc::new(documentation), &ROUTES)
}

fn html(status: StatusCode, body: Bytes) -> Response {
    Response::of(status, HTML, body)
        .with("content-security-policy", POLICY)
        .saying("x-content-type-options", "nosniff")
        .saying("referrer-policy", "no-referrer")
}

/// A page without scripts. `title` is text, `body` is HTML.
fn plain(title: &str, body: &str) -> Bytes {
    format!("{HEAD}{}{BODY}{body}{TAIL}", escaped(title)).into()
}

impl Pages {
    fn of_codes(codes: Codes) -> Self {
        let all = codes.iter().copied().flatten();
        let named = all.map(|code| (code.text, plain(code.text, &explained(code))));
        let list = format!(
            "<h1>Errors</h1><p>What the codes of this listener's errors mean. \
             <a href=\"../documentation\">Reference</a></p>{}",
            code_links(codes, "errors/")
        );
        let links = code_links(codes, "");
        let missing = format!("<h1>No such code</h1><p>These are known here:</p>{links}");
        Self {
            list: plain("Errors", &list),
            named: named.collect(),
            missing: plain("No such code", &missing),
        }
    }

    fn of_guides() -> Self {
        let named = GUIDES.iter().map(|guide| {
            let body = format!(
                "<p><a href=\"../guide\">All guides</a> · <a href=\"../../documentation\">Reference</a></p>{}",
                rendered(guide)
            );
            (guide.name, plain(guide.name, &body))
        });
        let links = guide_links("guide/");
        let reference = "<p><a href=\"../documentation\">Reference</a></p>";
        let list = format!("<h1>Guides</h1>{links}{reference}");
        let links = guide_links("");
        let missing = format!("<h1>No such guide</h1><p>These are here:</p>{links}");
        Self {
            list: plain("Guides", &list),
            named: named.collect(),
            missing: plain("No such guide", &missing),
        }
    }

    fn list(&self) -> Response {
        html(StatusCode::OK, self.list.clone())
    }

    /// The page of a name; for an unknown name 404 with the list.
    fn page(&self, name: &str) -> Response {
        match self.named.get(name) {
            Some(page) => html(StatusCode::OK, page.clone()),
            None => html(StatusCode::NOT_FOUND, self.missing.clone()),
        }
    }
}

/// The page of the code in the path, in capitals or not.
fn code(documentation: &Documentation, request: &Request) -> Response {
    let named = request.param("code").unwrap_or_default();
    let known = codes::find(documentation.codes, named);
    documentation
        .errors
        .page(known.map_or(named, |code| code.text))
}

/// The page of the guide in the path.
fn guide_page(request: &Request) -> Response {
    GUIDE_PAGES.page(request.param("name").unwrap_or_default())
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

/// An HTML list of links to the pages below `before`, each with its text.
fn links<'a>(pages: impl Iterator<Item = (&'a str, &'a str)>, before: &str) -> String {
    let items = pages.map(|(name, about)| {
        let about = escaped(about);
        format!("<li><a href=\"{before}{name}\">{name}</a>: {about}</li>")
    });
    format!("<ul>{}</ul>", items.collect::<String>())
}

fn code_links(codes: Codes, before: &str) -> String {
    let all = codes.iter().copied().flatten();
    links(all.map(|code| (code.text, code.happened)), before)
}

fn guide_links(before: &str) -> String {
    links(GUIDES.iter().map(|guide| (guide.name, guide.about)), before)
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
        .saying("x-content-type-options", "nosniff")
        .saying("cache-control", "max-age=3600")
}

/// Scalar's bundle (4.9 MB), decompressed once.
fn scalar(request: &Request) -> Result<Response, ApiError> {
    static BUNDLE: OnceLock<Option<Bytes>> = OnceLock::new();
    BUNDLE
        .get_or_init(|| scalar_api_reference::get_asset("scalar.js").map(Bytes::from))
        .clone()
        .map(script)
        .ok_or_else(|| ApiError::internal(format!("no asset for {}", request.target)))
}

/// The guide as HTML. The id of each heading is the one that GitHub gives it.
fn rendered(guide: &Guide) -> String {
    let mut events: Vec<_> = Parser::new_ext(guide.text, Options::ENABLE_TABLES).collect();
    name_headings(&mut events);
    let mut body = String::new();
    markdown::push_html(&mut body, linked(events).into_iter());
    body
}

fn name_headings(events: &mut [Event<'_>]) {
    for at in 0..events.len() {
        let (before, behind) = events.split_at_mut(at + 1);
        if let Some(Event::Start(Tag::Heading { id, .. })) = before.last_mut() {
            *id = Some(CowStr::from(slug(&heading(behind))));
        }
    }
}

/// The text up to the end of the heading.
fn heading(behind: &[Event<'_>]) -> String {
    let inside = behind
        .iter()
        .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let texts = inside.map(|event| match event {
        Event::Text(text) | Event::Code(text) => text.to_string(),
        _ => String::new(),
    });
    texts.collect()
}

/// GitHub's form of a heading id: letters, digits, `-` and `_` stay, spaces become `-`.
fn slug(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    let dashed = kept.map(|c| if c == ' ' { '-' } else { c });
    dashed.collect::<String>().to_lowercase()
}

/// Keeps the links that a page may have. HTML tags in the text are shown as text.
fn linked(events: Vec<Event<'_>>) -> Vec<Event<'_>> {
    let mut kept = Vec::with_capacity(events.len());
    let mut bare = false;
    for mut event in events {
        match &mut event {
            Event::Start(Tag::Link { dest_url, .. }) => match target(dest_url) {
                Some(found) => *dest_url = CowStr::from(found),
                None => {
                    bare = true;
                    continue;
                }
            },
            // The end of a removed link.
            Event::End(TagEnd::Link) if bare => {
                bare = false;
                continue;
            }
            Event::Html(text) | Event::InlineHtml(text) => event = Event::Text(text.clone()),
            _ => {}
        }
        kept.push(event);
    }
    kept
}

/// The page link of a file link: `solver.md#funds` → `solver#funds`; `None` if no page matches.
fn target(link: &str) -> Option<String> {
    if link.starts_with('#') {
        return Some(link.to_owned());
    }
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let found = guide::find(file.strip_suffix(".md")?)?;
    let hash = if heading.is_empty() { "" } else { "#" };
    Some(format!("{}{hash}{heading}", found.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &'static str) -> String {
        rendered(&Guide {
            name: "a",
            about: "",
            text,
        })
    }

    #[test]
    fn headings_have_the_ids_that_links_mean() {
        assert_eq!(
            page("## 3.2 What `force` is, and is not"),
            "<h2 id=\"32-what-force-is-and-is-not\">3.2 What <code>force</code> is, and is not</h2>\n"
        );
    }

    #[test]
    fn links_lead_to_pages_or_nowhere() {
        for (link, found) in [
            ("operate.md", Some("operate")),
            ("protocol.md#5-executions", Some("protocol#5-executions")),
            ("#here", Some("#here")),
            ("nothing.md", None),
            ("../../config.example.env", None),
            ("https://example.org/operate.md", None),
            ("operate", None),
        ] {
            assert_eq!(target(link).as_deref(), found, "{link}");
        }
        assert_eq!(
            page("[a `b`](operate.md) [c](../x.rs)"),
            "<p><a href=\"operate\">a <code>b</code></a> c</p>\n"
        );
    }

    #[test]
    fn tags_are_shown_and_not_meant() {
        let page = page("<script>a</script>\n\nb <img src=x>\n");
        assert!(
            !page.contains("<script") && !page.contains("<img"),
            "{page}"
        );
        assert!(page.contains("&lt;img src=x&gt;"), "{page}");
    }

    #[test]
    fn pages_are_made_once_for_everybody() {
        let pages = Pages::of_codes(&[codes::SERVER]);
        let ask = || ["OVERLOADED", "nothing"].map(|name| pages.page(name));
        let bytes = |answer: Response| answer.body.bytes().unwrap().as_ptr();
        assert_eq!(ask().map(bytes), ask().map(bytes));
        assert_eq!(bytes(pages.list()), bytes(pages.list()));
        let statuses = ask().map(|answer| answer.status);
        assert_eq!(statuses, [StatusCode::OK, StatusCode::NOT_FOUND]);
    }

    #[test]
    fn tables_are_tables() {
        assert!(page("| a |\n|---|\n| b |\n").contains("<td>b</td>"));
    }
}
