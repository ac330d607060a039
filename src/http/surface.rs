//! One API of the daemon: what its listener answers with, whom it lets in, how much of the process callers may
//! take, how it says no, and which pages in browsers may read its answers. Nothing of it is shared with
//! another surface.

use std::{sync::Arc, time::Duration};

use hyper::{Method, header::HeaderName};
use tower_http::cors::{AllowHeaders, Any, CorsLayer};
use vm::protocol::limits;

use super::{
    Gate, Response, Router, error::Errors, forwarded::Proxies, limit::Allowance, openapi::About,
    page, plain::PLAIN, router::RouteError, service::App,
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
    /// Gets every answer before it is sent, errors too, with the route's path or `unmatched`; returns what is
    /// sent. `None` changes nothing.
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

/// What callers may take of the process.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections, about 25 KB each while idle; more wait in the kernel's queue.
    pub connections: usize,
    /// What one address has of the places at one time. A trusted proxy's connections are not counted,
    /// since they are everybody's.
    pub each: Each,
    /// How old a connection gets: requests under way finish, and the caller comes again.
    pub age: Duration,
    /// Streams and WebSockets besides, under 20 KB each while idle; more get 503. A connection that
    /// carries one is counted here and not above, so that neither kind starves the other.
    pub sockets: usize,
    /// Requests of protected routes being answered at one time, their bodies whole; more get 503.
    pub requests: usize,
    /// Bytes of a body.
    pub body: usize,
    /// Bytes of all bodies in memory at one time; more get 503.
    pub bodies: usize,
    /// Bytes of a request head.
    pub head: usize,
    /// Header fields of a request.
    pub fields: usize,
    /// For a head to arrive.
    pub head_time: Duration,
    /// For a body to arrive.
    pub body_time: Duration,
    /// For an answer to be made.
    pub deadline: Duration,
    /// Silence after which a connection ends.
    pub idle: Duration,
    /// Silence of a WebSocket's peer after which it is asked for a sign of life; three times as much
    /// ends it.
    pub ping: Duration,
    /// For requests under way when the end is asked for.
    pub drain: Duration,
    /// HTTP/2: streams of a connection at one time.
    pub streams: u32,
    /// HTTP/2: streams that a peer may reset before they are looked at, and that may break the
    /// rules, before the connection ends.
    pub resets: usize,
}

/// What an address (IPv6: a /64) has at one time. A /48 has four times as much.
#[derive(Clone, Copy, Debug)]
pub struct Each {
    /// Connections; more are closed as they come.
    pub connections: usize,
    /// Requests under way, whatever connection or HTTP/2 stream they came over; more get 503.
    pub requests: usize,
    /// Streams and WebSockets; more get 503.
    pub sockets: usize,
    /// Messages over WebSockets, pings too, in a window; who sends more is cut off.
    pub messages: Allowance,
}

impl Default for Each {
    fn default() -> Self {
        Self {
            connections: 256,
            requests: 256,
            sockets: 128,
            messages: Allowance {
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
