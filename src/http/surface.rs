//! One API of the daemon: what its listener answers with, whom it lets in, how it says no, and which
//! pages in browsers may read its answers. Nothing of it is shared with another surface.

use std::{sync::Arc, time::Duration};

use hyper::{Method, header::HeaderName};
use tower_http::cors::{AllowHeaders, Any, CorsLayer};

use super::{
    Gate, Response, Router, error::Errors, forwarded::Proxies, openapi::About, page, plain::PLAIN,
    router::RouteError, server::Limits, service::App,
};

/// How long a browser remembers a preflight's answer.
const REMEMBERED: Duration = Duration::from_secs(86_400);

/// See [`Surface::finish`].
pub type Finish = Arc<dyn Fn(&'static str, Response) -> Response + Send + Sync>;

/// See the module.
pub struct Surface {
    /// What logs and metrics call it.
    pub name: &'static str,
    /// What its documentation says of the whole.
    pub about: About,
    pub router: Router,
    /// Whether clients may be wrong about paths and methods: slashes in front of a path are one, as they
    /// come from a base URL that ends in one, and another method of a known path is 405. Without it paths
    /// are exact, and both are 404 (guide: protocol 10.1).
    pub lenient: bool,
    pub gate: Gate,
    pub limits: Limits,
    /// Who may say whom a request comes from.
    pub proxies: Proxies,
    pub errors: Errors,
    /// What is done to every answer of a route, whoever gave it, by the route's path; unknown paths are
    /// `unmatched`. `None`: nothing.
    pub finish: Option<Finish>,
    /// `None`: no page of another origin may read an answer. See [`any_origin`].
    pub cors: Option<CorsLayer>,
}

impl Surface {
    /// The routes of `router`, open to everybody, with the usual limits and errors and without CORS.
    pub fn new(name: &'static str, about: impl Into<About>, router: Router) -> Self {
        Self {
            name,
            about: about.into(),
            router,
            lenient: false,
            gate: Gate::default(),
            limits: Limits::default(),
            proxies: Proxies::default(),
            errors: PLAIN,
            finish: None,
            cors: None,
        }
    }

    /// What [`serve`](super::serve) answers with: the routes and a documentation page of their own.
    pub fn open(mut self) -> Result<App, RouteError> {
        self.router = page::documented(self.router, self.about, self.errors)?;
        Ok(App::new(self))
    }
}

/// Pages of every origin may call, with any header, and read these headers of answers besides those
/// that they always may. Cookies and the like are never sent along: keys are.
pub fn any_origin(exposed: impl IntoIterator<Item = HeaderName>) -> CorsLayer {
    CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ])
        // `*` would leave out `authorization`.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(exposed.into_iter().collect::<Vec<_>>())
        .max_age(REMEMBERED)
}
