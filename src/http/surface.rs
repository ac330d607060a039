//! One API of the daemon: its routes, its gate, the limits of its callers, the form of its errors, and the origins
//! whose pages may read its answers. Surfaces share nothing.

use std::{sync::Arc, time::Duration};

use hyper::{Method, header::HeaderName};
use tower_http::cors::{AllowHeaders, Any, CorsLayer};
use vm::protocol::limits;

use super::{
    Gate, Response, Router, error::Errors, forwarded::Proxies, limit::Quota, openapi::About, page,
    plain::PLAIN, router::RouteError, service::App,
};

/// How long a browser may cache the answer to a preflight.
const REMEMBERED: Duration = Duration::from_secs(86_400);

/// The last step of an answer: see [`Surface::finish`].
pub type Finish = Arc<dyn Fn(&'static str, Response) -> Response + Send + Sync>;

/// Everything that defines one listener's API.
pub struct Surface {
    /// The name in logs and metrics.
    pub name: &'static str,
    /// The general part of the API description.
    pub about: About,
    pub router: Router,
    /// Whether paths and methods are matched leniently: several leading slashes count as one (they come from a base
    /// URL with a trailing slash), and another method of a known path is 405. Otherwise paths are exact, and both are
    /// 404 (guide: protocol 10.1).
    pub lenient: bool,
    pub gate: Gate,
    pub limits: Limits,
    /// The proxies whose headers name the client.
    pub proxies: Proxies,
    pub errors: Errors,
    /// Transforms every answer before it is sent, errors included; its first argument is the route's path, or
    /// `unmatched`.
    pub finish: Option<Finish>,
    /// With `None` no page of another origin may read an answer. See [`any_origin`].
    pub cors: Option<CorsLayer>,
}

impl Surface {
    /// The routes of `router`, open to everybody, with the default limits and errors and without CORS.
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

    /// Adds a documentation page and makes the app that [`serve`](super::serve) answers with.
    pub fn open(mut self) -> Result<App, RouteError> {
        self.router = page::documented(self.router, self.about, self.errors)?;
        Ok(App::new(self))
    }
}

/// Pages of every origin may call with any header, and read the `exposed` headers besides the default ones. Browsers
/// send no cookies; keys are sent.
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
        // `*` would not cover `authorization`.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(exposed.into_iter().collect::<Vec<_>>())
        .max_age(REMEMBERED)
}

/// The limits of a surface.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections, about 25 KB each while idle; further ones wait in the kernel's queue.
    pub connections: usize,
    /// The limits per client address. Connections of a trusted proxy are exempt, since all its clients share them.
    pub each: Each,
    /// The longest life of a connection: running requests finish, then the caller reconnects.
    pub age: Duration,
    /// Streams and WebSockets, under 20 KB each while idle; further ones get 503. They do not count as `connections`,
    /// so that neither kind starves the other.
    pub sockets: usize,
    /// Requests of protected routes in progress, from their bodies' end until their answers are made; further ones get
    /// 503. Where there are keys, half of them is for callers with one. An answer that nobody reads does not count, so
    /// that strangers hold nobody up by not reading.
    pub requests: usize,
    /// Bytes of a body.
    pub body: usize,
    /// Bytes of all bodies in memory at one time; further ones get 503.
    pub bodies: usize,
    /// Bytes of a request head.
    pub head: usize,
    /// Header fields of a request.
    pub fields: usize,
    /// Time for a head to arrive.
    pub head_time: Duration,
    /// Time for a body to arrive.
    pub body_time: Duration,
    /// Time for an answer to be made.
    pub deadline: Duration,
    /// Silence after which the server closes a connection.
    pub idle: Duration,
    /// Silence of a WebSocket's peer after which the server pings it; after three times as much the server closes the
    /// socket.
    pub ping: Duration,
    /// Time for running requests at shutdown.
    pub drain: Duration,
    /// HTTP/2: concurrent streams of a connection.
    pub streams: u32,
    /// HTTP/2: streams that a peer may reset early or with an error before the server closes the connection.
    pub resets: usize,
}

/// The limits per client address (IPv6: a /64). A /48 gets four times as much; of requests at most half of
/// [`Limits::requests`], and never less than one address.
#[derive(Clone, Copy, Debug)]
pub struct Each {
    /// Connections; the server closes further ones at once.
    pub connections: usize,
    /// Requests over all connections and HTTP/2 streams whose answers are not sent yet; further ones get 503. As many
    /// of these refusals count in the same way, and further ones have no body.
    pub requests: usize,
    /// Streams and WebSockets; further ones get 503.
    pub sockets: usize,
    /// Messages over WebSockets in a window, pings included; the server closes the socket of a peer that sends more.
    pub messages: Quota,
}

impl Default for Each {
    fn default() -> Self {
        Self {
            connections: 256,
            requests: 256,
            sockets: 128,
            messages: Quota {
                max: 1200,
                window_ms: 60_000,
            },
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_240,
            each: Each::default(),
            age: Duration::from_secs(600),
            sockets: 10_240,
            requests: 1024,
            body: limits::REQUEST,
            bodies: 256 << 20,
            head: 32 << 10,
            fields: 64,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(15),
            deadline: Duration::from_secs(60),
            idle: Duration::from_secs(72),
            ping: Duration::from_secs(25),
            drain: Duration::from_secs(30),
            streams: 100,
            resets: 20,
        }
    }
}
