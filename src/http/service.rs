//! One request from the transport to its handler and back: framing, gate, body, deadline, metrics.

use std::{
    convert::Infallible,
    net::IpAddr,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::FutureExt;
use hyper::{
    HeaderMap, Method, StatusCode,
    body::Incoming,
    header::{
        AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue,
        TRANSFER_ENCODING,
    },
    http::request::Parts,
    upgrade::OnUpgrade,
};
use tokio::sync::Semaphore;
use tower::{Layer, ServiceExt, service_fn};

use super::{
    ApiError, Body, Request, Response, Surface,
    auth::{self, Admission, KEY, StandingNames},
    body::{Bodies, Held},
    crowd::Crowd,
    forwarded::Proxies,
    limit::{Meter, Standing},
    line::Signals,
    reply::{Outgoing, Seat},
    router::{Access, Endpoint, Params},
    server::{Limits, Link},
    socket,
};

/// Fields that decide something here and therefore may stand only once.
const SINGLE: [HeaderName; 5] = [HOST, CONTENT_TYPE, CONTENT_LENGTH, AUTHORIZATION, KEY];
/// Longest path that an answer repeats.
const ECHO: usize = 256;

/// A [`Surface`] at work.
pub struct App {
    surface: Surface,
    slots: Semaphore,
    sockets: Arc<Semaphore>,
    asking: Arc<Crowd>,
    listening: Arc<Crowd>,
    messages: Arc<Meter>,
    bodies: Bodies,
    started: Instant,
}

impl App {
    pub(super) fn new(surface: Surface) -> Self {
        Self {
            slots: Semaphore::new(surface.limits.requests),
            sockets: Arc::new(Semaphore::new(surface.limits.sockets)),
            asking: Crowd::new(surface.limits.each.requests),
            listening: Crowd::new(surface.limits.each.sockets),
            messages: Meter::new(surface.limits.each.messages),
            bodies: Bodies::new(surface.limits),
            started: Instant::now(),
            surface,
        }
    }

    /// What logs and metrics call this listener.
    pub fn name(&self) -> &'static str {
        self.surface.name
    }

    /// Who may say whom a request comes from.
    pub fn proxies(&self) -> &Proxies {
        &self.surface.proxies
    }

    /// What this listener's callers may take.
    pub fn limits(&self) -> &Limits {
        &self.surface.limits
    }

    /// The answer to a request; never fails and never takes longer than its limits.
    pub(super) async fn answer(
        &self,
        link: &Arc<Link>,
        request: hyper::Request<Incoming>,
    ) -> hyper::Response<Outgoing> {
        let signals = &link.signals;
        let _answering = signals.answering();
        let chunked = request.headers().contains_key(TRANSFER_ENCODING);
        let mut response = match &self.surface.cors {
            Some(cors) if !signals.ambiguous() => {
                let handle =
                    |request| async { Ok::<_, Infallible>(self.handled(link, request).await) };
                let Ok(response) = cors.layer(service_fn(handle)).oneshot(request).await;
                response
            }
            _ => self.handled(link, request).await,
        };
        // After a chunked body the next request's start is the library's word alone.
        if chunked || signals.ambiguous() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        response
    }

    async fn handled(
        &self,
        link: &Link,
        mut request: hyper::Request<Incoming>,
    ) -> hyper::Response<Outgoing> {
        let begun = Instant::now();
        let upgraded = hyper::upgrade::on(&mut request);
        let (parts, body) = request.into_parts();
        let method = parts.method.clone();
        let found = self.surface.router.find(&method, self.path(&parts));
        let route = found.as_ref().map_or("unmatched", |(found, _)| found.path);
        let client = self.surface.proxies.client(link.peer.ip(), &parts.headers);
        let mut standing = None;
        let answered = match (
            frame(&link.signals, &parts.headers),
            self.asking.enter(client),
        ) {
            (Ok(()), Some(_asking)) => {
                let caller = (client, &mut standing);
                self.routed(parts, body, found, caller).await
            }
            (Ok(()), None) => Err(ApiError::unavailable(
                "OVERLOADED",
                "Too many requests of this address are being answered",
                client,
            )),
            (Err(error), _) => Err(error),
        };
        if let Err(ApiError::RateLimited(over)) = &answered {
            // It may be a limit of the route's own.
            standing = Some(*over);
        }
        let seated = answered.and_then(|response| self.seated(response, (link, client)));
        let (mut response, seat) =
            seated.unwrap_or_else(|error| ((self.surface.errors.answer)(error), None));
        if let Some(standing) = standing {
            let names = self.surface.gate.standing_names();
            put_standing(&mut response, names, &standing);
        }
        if let Some(finish) = &self.surface.finish {
            response = finish(route, response);
        }
        self.record(route, &method, response.status, begun);
        let stays = seat.map(|seat| Stays {
            seat,
            upgraded,
            ping: self.surface.limits.ping,
        });
        transport(response, &method, (link, stays))
    }

    /// With a seat for an answer that is not over with its head; 503 when none is free.
    fn seated(
        &self,
        response: Response,
        (link, client): (&Link, IpAddr),
    ) -> Result<(Response, Option<Arc<Seat>>), ApiError> {
        if response.body.whole().is_some() {
            return Ok((response, None));
        }
        let full = |error| {
            let message = "Too many subscribers are connected";
            ApiError::unavailable("TOO_MANY_SOCKETS", message, error)
        };
        let member = self.listening.enter(client);
        let member = member.ok_or_else(|| full(format!("{client} has its share")))?;
        let permit = self.sockets.clone().try_acquire_owned();
        let permit = permit.map_err(|error| full(error.to_string()))?;
        let tally = self.messages.of(client);
        let seat = Seat::new(self.surface.name, (permit, member), tally);
        link.sit(&seat);
        Ok((response, Some(seat)))
    }

    async fn routed(
        &self,
        parts: Parts,
        body: Incoming,
        found: Option<(&Arc<Endpoint>, Params)>,
        (client, standing): (IpAddr, &mut Option<Standing>),
    ) -> Result<Response, ApiError> {
        let access = found.as_ref().map_or_else(
            || auth::unrouted(self.path(&parts)),
            |(endpoint, _)| endpoint.access,
        );
        let admission = self.admit(access, &parts, client, standing)?;
        let Some((endpoint, params)) = found else {
            return Err(self.unrouted(&parts));
        };
        let body = match parts.method {
            Method::GET | Method::HEAD => Held::nothing(),
            _ => self.bodies.read(body).await?,
        };
        // Only now: a body that drips in would hold the slot all the while.
        let _slot = match access {
            Access::Protected => Some(self.slots.try_acquire().map_err(|error| {
                ApiError::unavailable("OVERLOADED", "Too many requests are being answered", error)
            })?),
            Access::Open | Access::Counted | Access::Keyed(_) | Access::Socket => None,
        };
        let toll = admission.toll.clone();
        let request = Request {
            toll: toll.clone(),
            target: target(&parts),
            method: parts.method,
            version: parts.version,
            headers: parts.headers,
            body: body.bytes.clone(),
            client,
            scopes: scopes(&admission),
            key: admission.key.map(|known| known.label.clone()),
            params,
        };
        let handled = AssertUnwindSafe((endpoint.call)(request)).catch_unwind();
        let handled = tokio::time::timeout(self.surface.limits.deadline, handled).await;
        *standing = toll.standing().or(*standing);
        match handled {
            Ok(Ok(answered)) => answered,
            Ok(Err(_)) => {
                metrics::counter!("intentd_http_panics_total", "route" => endpoint.path)
                    .increment(1);
                Err(ApiError::internal("the handler panicked"))
            }
            Err(_) => Err(ApiError::Deadline),
        }
    }

    /// The path that is looked up.
    fn path<'a>(&self, parts: &'a Parts) -> &'a str {
        let path = parts.uri.path();
        if !self.surface.lenient {
            return path;
        }
        let slashes = path.len() - path.trim_start_matches('/').len();
        path.get(slashes.saturating_sub(1)..).unwrap_or(path)
    }

    fn unrouted(&self, parts: &Parts) -> ApiError {
        let allowed = match self.surface.lenient {
            true => self.surface.router.allowed(self.path(parts)),
            false => String::new(),
        };
        let (method, path) = (parts.method.to_string(), shown(parts));
        match allowed.is_empty() {
            true => ApiError::NoRoute { method, path },
            false => ApiError::WrongMethod {
                method,
                path,
                allowed,
            },
        }
    }

    fn record(&self, route: &'static str, method: &Method, status: StatusCode, begun: Instant) {
        let surface = self.surface.name;
        let elapsed = begun.elapsed();
        let class = ["1xx", "2xx", "3xx", "4xx", "5xx"]
            .get(usize::from(status.as_u16() / 100).wrapping_sub(1))
            .copied()
            .unwrap_or("other");
        metrics::counter!("intentd_http_requests_total", "route" => route, "status" => class, "surface" => surface)
        .increment(1);
        metrics::histogram!("intentd_http_request_seconds", "route" => route, "surface" => surface)
            .record(elapsed);
        tracing::debug!(surface, %method, route, status = status.as_u16(), elapsed_us = elapsed.as_micros(), "request");
    }

    fn admit(
        &self,
        access: Access,
        parts: &Parts,
        client: IpAddr,
        standing: &mut Option<Standing>,
    ) -> Result<Admission, ApiError> {
        let asked = matches!(access, Access::Socket)
            .then(|| query_key(parts))
            .flatten();
        let shown = self.surface.gate.key(&parts.headers);
        let key = shown.or(asked.as_deref().map(str::as_bytes));
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let admitted = self.surface.gate.admit(access, key, client, now);
        *standing = match &admitted {
            Ok(admission) => admission.standing,
            Err(denial) => denial.standing,
        };
        match admitted {
            Ok(admission)
                if matches!(access, Access::Socket) && key.is_some() && admission.key.is_none() =>
            {
                Err(ApiError::Unauthorized)
            }
            admitted => admitted.map_err(|denial| denial.error),
        }
    }
}

/// A key in the query, known or not.
fn query_key(parts: &Parts) -> Option<String> {
    let pairs: Vec<(String, String)> = serde_urlencoded::from_str(parts.uri.query()?).ok()?;
    let mut keys = pairs.into_iter().filter(|(name, _)| name == "apiKey");
    keys.next().map(|(_, key)| key)
}

/// What an answer that is not over with its head goes on with.
struct Stays {
    seat: Arc<Seat>,
    upgraded: OnUpgrade,
    ping: Duration,
}

/// Requests that two readers could understand differently.
fn frame(signals: &Signals, headers: &HeaderMap) -> Result<(), ApiError> {
    if signals.ambiguous() {
        return Err(ApiError::refused(
            "AMBIGUOUS_LENGTH",
            "Content-Length and Transfer-Encoding in one request",
        ));
    }
    for name in &SINGLE {
        if headers.get_all(name).iter().nth(1).is_some() {
            return Err(ApiError::refused(
                "DUPLICATE_HEADER",
                format!("Header {name} stands more than once"),
            ));
        }
    }
    Ok(())
}

fn target(parts: &Parts) -> String {
    parts
        .uri
        .path_and_query()
        .map_or_else(String::new, ToString::to_string)
}

/// The target as answers repeat it.
fn shown(parts: &Parts) -> String {
    target(parts).chars().take(ECHO).collect()
}

fn scopes(admission: &Admission) -> Arc<[&'static str]> {
    let known = admission.key.as_ref();
    known.map_or_else(Arc::default, |known| known.scopes.clone())
}

fn put_standing(response: &mut Response, names: StandingNames, standing: &Standing) {
    let [limit, remaining, reset] = names;
    response.put_number(limit, standing.limit.into());
    response.put_number(remaining, standing.remaining.into());
    response.put_number(reset, standing.reset_seconds());
}

fn transport(
    response: Response,
    method: &Method,
    (link, stays): (&Link, Option<Stays>),
) -> hyper::Response<Outgoing> {
    let Response {
        status,
        mut headers,
        body,
    } = response;
    let body = match (body, stays) {
        (Body::Whole(bytes), _) => {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
            Outgoing::whole(bytes)
        }
        (Body::Stream(pieces), Some(stays)) => {
            Outgoing::stream(pieces, stays.seat, link.ending.clone())
        }
        (Body::Upgrade(upgrade), Some(stays)) => {
            let until = (stays.ping, link.ending.clone());
            let run = socket::run(stays.upgraded, upgrade, until, stays.seat);
            link.tasks.spawn(run);
            Outgoing::default()
        }
        (Body::Stream(_) | Body::Upgrade(_), None) => Outgoing::default(),
    };
    let body = if method == Method::HEAD {
        Outgoing::default()
    } else {
        body
    };
    let mut transported = hyper::Response::new(body);
    *transported.status_mut() = status;
    *transported.headers_mut() = headers;
    transported
}
